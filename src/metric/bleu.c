/* N-gram statistics for BLEU (tokens) and chrF (characters). */
#include "attend_metric.h"

#include "io/cancelled.h"
#include "io/check_texts.h"
#include "util/util.h"
#include "metric/sacrebleu_tokenizer.h"

#include <stdlib.h>
#include <string.h>

/* ---- n-grams of several texts, first the translation; items are token numbers or characters */

typedef struct ngram_counts {
    int64_t hypothesis, reference, matches; /* in the translation; in all references; in both (clipped) */
} ngram_counts;

/* An n-gram: the number of its (n-1)-gram prefix, and its last item. Equal n-grams have equal keys. */
typedef struct ngram {
    uint64_t key;
    uint32_t at; /* its position in the concatenated texts */
} ngram;

typedef struct ngrams {
    const att_code_points *text; /* [n] */
    int64_t n;
    uint32_t *number; /* [all items]: number of the n-gram that begins here; initially 0 */
    ngram *ngram;     /* [all items] */
    int64_t *times;   /* [n]: occurrences of one n-gram in each text */
} ngrams;

static int by_key(const void *x, const void *y)
{
    const uint64_t a = ((const ngram *)x)->key, b = ((const ngram *)y)->key;
    return (a > b) - (a < b);
}

/* Collects all n-grams of an order in g->ngram; returns their number. */
static size_t collect(ngrams *g, size_t order)
{
    size_t count = 0, begin = 0;
    for (int64_t t = 0; t < g->n; begin += g->text[t++].n) {
        const att_code_points *text = &g->text[t];
        for (size_t i = 0; i + order <= text->n; i++)
            g->ngram[count++] =
                (ngram){(uint64_t)g->number[begin + i] << 32 | text->c[i + order - 1], (uint32_t)(begin + i)};
    }
    return count;
}

/* Adds the counts of one distinct n-gram, ngram [count]. */
static void add_one(ngrams *g, const ngram *same, size_t count, uint32_t number, ngram_counts *sum)
{
    memset(g->times, 0, (size_t)g->n * sizeof *g->times);
    for (size_t i = 0; i < count; i++) {
        size_t end = g->text[0].n;
        int64_t t = 0;
        while (same[i].at >= end)
            end += g->text[++t].n;
        g->times[t]++;
        g->number[same[i].at] = number;
    }
    int64_t max = 0;
    for (int64_t t = 1; t < g->n; t++) {
        max = att_max(max, g->times[t]);
        sum->reference += g->times[t];
    }
    sum->hypothesis += g->times[0];
    sum->matches += att_min(g->times[0], max);
}

static ngram_counts count_order(ngrams *g, size_t order)
{
    const size_t count = collect(g, order);
    ngram_counts sum = {0};
    uint32_t number = 0;
    qsort(g->ngram, count, sizeof *g->ngram, by_key);
    for (size_t i = 0, next; i < count; i = next) {
        for (next = i + 1; next < count && g->ngram[next].key == g->ngram[i].key;)
            next++;
        add_one(g, g->ngram + i, next - i, number++, &sum);
    }
    return sum;
}

/* Counts n-grams of all orders of text [n] -> out [orders]. */
static att_status count_ngrams(att_ctx *ctx, const att_code_points *text, int64_t n, int orders, ngram_counts *out)
{
    size_t all = 0;
    for (int64_t t = 0; t < n; t++)
        all += text[t].n;
    ngrams g = {.text = text,
                .n = n,
                .number = att_alloc(ctx, all, sizeof *g.number),
                .ngram = att_alloc(ctx, all, sizeof *g.ngram),
                .times = att_alloc(ctx, (size_t)n, sizeof *g.times)};
    att_status e = g.number && g.ngram && g.times ? ATT_OK : ATT_ERR_MEMORY;
    if (!e)
        memset(g.number, 0, all * sizeof *g.number);
    for (int i = 0; !e && i < orders; i++) {
        e = att_check_cancelled(ctx, "att_bleu_count");
        out[i] = e ? out[i] : count_order(&g, (size_t)i + 1);
    }
    att_free(ctx, g.number);
    att_free(ctx, g.ngram);
    att_free(ctx, g.times);
    return e;
}

/* ---- tokens to numbers */

typedef struct token {
    const uint32_t *c; /* [n] */
    size_t n;
    uint32_t text, at; /* token `at` of this text */
    uint32_t number;
} token;

static int by_code_points(const void *x, const void *y)
{
    const token *a = x, *b = y;
    if (a->n != b->n)
        return a->n < b->n ? -1 : 1;
    return memcmp(a->c, b->c, a->n * sizeof *a->c);
}

/* Splits text number t at spaces into tokens w, and truncates the text to one item per token; returns their number. */
static size_t split(att_code_points *text, uint32_t t, token *w)
{
    size_t count = 0;
    for (size_t i = 0, end; i < text->n; i = end) {
        while (i < text->n && att_is_space(text->c[i]))
            i++;
        for (end = i; end < text->n && !att_is_space(text->c[end]);)
            end++;
        if (end > i) {
            w[count] = (token){text->c + i, end - i, t, (uint32_t)count, 0};
            count++;
        }
    }
    text->n = count;
    return count;
}

/* Replaces each token of text [n] by one item, equal tokens by equal items. */
static att_status number_tokens(att_ctx *ctx, att_code_points *text, int64_t n)
{
    size_t max = 0, count = 0;
    for (int64_t t = 0; t < n; t++)
        max += text[t].n / 2 + 1;
    token *w = att_alloc(ctx, max, sizeof *w);
    if (!w)
        return ATT_ERR_MEMORY;
    for (int64_t t = 0; t < n; t++)
        count += split(&text[t], (uint32_t)t, w + count);
    qsort(w, count, sizeof *w, by_code_points);
    for (size_t i = 1; i < count; i++)
        w[i].number = w[i - 1].number + (by_code_points(&w[i - 1], &w[i]) != 0);
    for (size_t i = 0; i < count; i++) /* only now the code points may be overwritten */
        text[w[i].text].c[w[i].at] = w[i].number;
    att_free(ctx, w);
    return ATT_OK;
}

static void remove_spaces(att_code_points *text)
{
    size_t used = 0;
    for (size_t i = 0; i < text->n; i++)
        if (!att_is_space(text->c[i]))
            text->c[used++] = text->c[i];
    text->n = used;
}

/* ---- one sentence */

typedef struct sentence {
    att_ctx *ctx;
    att_byte_view translation;
    const char *const *references; /* [n - 1] */
    const size_t *reference_bytes; /* [n - 1], or NULL: zero-terminated */
    int64_t n;                     /* texts: the translation is the first */
    att_code_points *code_points;  /* [n] */
} sentence;

static att_byte_view text_of(const sentence *s, int64_t t)
{
    if (t == 0)
        return s->translation;
    const char *text = s->references[t - 1];
    return (att_byte_view){text, s->reference_bytes ? s->reference_bytes[t - 1] : strlen(text)};
}

static att_status check_size(const sentence *s)
{
    size_t all = 0;
    for (int64_t t = 0; t < s->n; t++) {
        const size_t bytes = text_of(s, t).bytes;
        all = bytes > SIZE_MAX - all ? SIZE_MAX : all + bytes;
    }
    if (all <= INT32_MAX)
        return ATT_OK;
    return att_fail(s->ctx, ATT_ERR_UNSUPPORTED, "a translation and its references have %zu bytes, the maximum is %d",
                    all, INT32_MAX);
}

static att_status read_code_points(sentence *s)
{
    att_status e = ATT_OK;
    for (int64_t t = 0; !e && t < s->n; t++)
        e = att_code_points_read(s->ctx, text_of(s, t), &s->code_points[t]);
    return e;
}

static void free_code_points(sentence *s)
{
    for (int64_t t = 0; t < s->n; t++) {
        att_free(s->ctx, s->code_points[t].c);
        s->code_points[t] = (att_code_points){0};
    }
}

static att_status tokenize(sentence *s, att_bleu_tokenizer tokenizer)
{
    att_status e = ATT_OK;
    for (int64_t t = 0; !e && t < s->n; t++) {
        if (tokenizer == ATT_BLEU_TOKENIZER_13A)
            e = att_tokenize_13a(s->ctx, &s->code_points[t]);
        else if (tokenizer == ATT_BLEU_TOKENIZER_CHAR)
            remove_spaces(&s->code_points[t]);
    }
    return e || tokenizer == ATT_BLEU_TOKENIZER_CHAR ? e : number_tokens(s->ctx, s->code_points, s->n);
}

/* Returns the reference length nearest to the translation's; of two equally near ones the shorter. */
static int64_t nearest_length(const sentence *s)
{
    int64_t tokens = (int64_t)s->code_points[0].n, best = 0, min = INT64_MAX;
    for (int64_t t = 1; t < s->n; t++) {
        const int64_t length = (int64_t)s->code_points[t].n, off = llabs(length - tokens);
        if (off < min || (off == min && length < best)) {
            min = off;
            best = length;
        }
    }
    return best;
}

static att_status count_tokens(sentence *s, att_bleu_tokenizer tokenizer, att_bleu_counts *out)
{
    ngram_counts counts[ATT_BLEU_ORDER] = {0};
    att_status e = read_code_points(s);
    e = e ? e : tokenize(s, tokenizer);
    e = e ? e : count_ngrams(s->ctx, s->code_points, s->n, ATT_BLEU_ORDER, counts);
    out->tokens = (int64_t)s->code_points[0].n;
    out->reference_tokens = nearest_length(s);
    for (int i = 0; i < ATT_BLEU_ORDER; i++) {
        out->token_ngrams[i] = counts[i].hypothesis;
        out->token_matches[i] = counts[i].matches;
    }
    free_code_points(s);
    return e;
}

static double chrf_of(const att_bleu_counts *c)
{
    att_bleu_info info = {.size = sizeof info};
    att_bleu_describe(c, NULL, &info);
    return info.chrf;
}

/* Counts characters against reference t alone, without orders for which the reference is too short. */
static att_status count_characters_of(sentence *s, int64_t t, att_bleu_counts *c)
{
    ngram_counts counts[ATT_CHRF_ORDER] = {0};
    const att_code_points pair[] = {s->code_points[0], s->code_points[t]};
    const att_status e = count_ngrams(s->ctx, pair, 2, ATT_CHRF_ORDER, counts);
    for (int i = 0; i < ATT_CHRF_ORDER; i++) {
        c->character_ngrams[i] = counts[i].reference ? counts[i].hypothesis : 0;
        c->reference_character_ngrams[i] = counts[i].reference;
        c->character_matches[i] = counts[i].matches;
    }
    return e;
}

static att_status count_characters(sentence *s, att_bleu_counts *out)
{
    att_status e = read_code_points(s);
    for (int64_t t = 0; !e && t < s->n; t++)
        remove_spaces(&s->code_points[t]);
    double best = -1;
    for (int64_t t = 1; !e && t < s->n; t++) {
        att_bleu_counts c = *out;
        e = count_characters_of(s, t, &c);
        const double chrf = chrf_of(&c);
        if (!e && chrf > best) {
            best = chrf;
            *out = c;
        }
    }
    free_code_points(s);
    return e;
}

att_status att_bleu_count(att_ctx *ctx, att_bleu_tokenizer tokenizer, const char *text, size_t bytes,
                          const char *const *references, const size_t *reference_bytes, int64_t n, att_bleu_counts *out)
{
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    if ((unsigned)tokenizer > ATT_BLEU_TOKENIZER_NONE)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "att_bleu_count: tokenizer is %d, but must be 0 to %d", (int)tokenizer,
                        ATT_BLEU_TOKENIZER_NONE);
    if (!text && bytes > 0)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "att_bleu_count: text is NULL, but bytes is %zu", bytes);
    if (n < 0 || n > INT32_MAX)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "att_bleu_count: n is %lld, but must be 0 to %d", (long long)n,
                        INT32_MAX);
    if (att_check_texts(ctx, "att_bleu_count: references", references, n))
        return ATT_ERR_ARGUMENT;
    sentence s = {ctx, {text, bytes}, references, reference_bytes, n + 1, NULL};
    att_bleu_counts c = {0};
    att_status e = check_size(&s);
    if (e)
        return e;
    s.code_points = att_calloc(ctx, (size_t)s.n, sizeof *s.code_points);
    e = s.code_points ? ATT_OK : ATT_ERR_MEMORY;
    e = e ? e : count_tokens(&s, tokenizer, &c);
    e = e ? e : count_characters(&s, &c);
    att_free(ctx, s.code_points);
    if (!e)
        *out = c;
    return e;
}
