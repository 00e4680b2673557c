/* CIDEr-D: cosines of vectors of n-grams, weighted by how few images have them. */
#include "io/bytes.h"
#include "io/cancelled.h"
#include "io/check_texts.h"
#include "util/util.h"
#include "metric/bootstrap.h"
#include "metric/sacrebleu_tokenizer.h"
#include "text/hash_table.h"
#include "text/utf8.h"
#include "util/array.h"

#include <math.h>
#include <string.h>

enum { ORDERS = 4, SIGMA = 6, NO_PREFIX = -1 };

/* An n-gram: the number of its (n-1)-gram prefix (NO_PREFIX for a single word) and that of its last word, so equal
 * n-grams are equal pairs. */
typedef struct gram {
    int32_t prefix, last;
    int32_t documents; /* images whose references have it */
    int32_t document;  /* the last one of these; -1: none yet */
    int32_t count;     /* scratch: in one text; otherwise 0 */
    int32_t clip;      /* scratch: in the reference that it is compared with; otherwise 0 */
    double rarity;     /* log(N / documents) */
} gram;

/* A text: the numbers of its n-grams for each of ORDERS orders, one order after the other. All are in
 * cider.occurrence. */
typedef struct gram_text {
    size_t begin;
    size_t words;
} gram_text;

typedef struct gram_vector {
    double norm[ORDERS];
} gram_vector;

typedef struct cider {
    att_ctx *ctx;
    att_byte_view *word; /* [words]: different ones */
    gram *gram;          /* [grams] */
    int32_t *occurrence; /* [occurrences] */
    size_t words, word_room, grams, gram_room, occurrences, occurrence_room;
    att_hash_table by_word, by_gram;
    gram_text *text; /* [n + references]: a text, then its references, then the next text */
} cider;

/* ---- words and n-grams to numbers */

static att_status number_word(cider *c, att_byte_view word, int32_t *number)
{
    const uint32_t hash = att_fnv32_bytes(ATT_FNV32_OFFSET, word.data, word.bytes);
    att_hash_slot *slot;
    att_status e = att_hash_reserve(&c->by_word, c->by_word.count + 1);
    if (e)
        return e;
    for (uint32_t i = 0; (slot = att_hash_slot_at(&c->by_word, hash, i))->item != ATT_NO_ITEM; i++) {
        const att_byte_view *w = &c->word[slot->item];
        if (slot->hash == hash && w->bytes == word.bytes && !memcmp(w->data, word.data, word.bytes))
            break;
    }
    if (slot->item == ATT_NO_ITEM) {
        e = att_grow(c->ctx, &c->word, sizeof *c->word, c->words, 1, &c->word_room);
        if (e)
            return e;
        c->word[c->words] = word;
        att_hash_insert(&c->by_word, slot, hash, (int32_t)c->words++);
    }
    *number = slot->item;
    return ATT_OK;
}

static att_status number_gram(cider *c, int32_t prefix, int32_t last, int32_t *number)
{
    const uint64_t mixed = ((uint64_t)(uint32_t)prefix << 32 | (uint32_t)last) * UINT64_C(0x9E3779B97F4A7C15);
    const uint32_t hash = (uint32_t)(mixed >> 32);
    att_hash_slot *slot;
    att_status e = att_hash_reserve(&c->by_gram, c->by_gram.count + 1);
    if (e)
        return e;
    for (uint32_t i = 0; (slot = att_hash_slot_at(&c->by_gram, hash, i))->item != ATT_NO_ITEM; i++)
        if (c->gram[slot->item].prefix == prefix && c->gram[slot->item].last == last)
            break;
    if (slot->item == ATT_NO_ITEM) {
        e = att_grow(c->ctx, &c->gram, sizeof *c->gram, c->grams, 1, &c->gram_room);
        if (e)
            return e;
        c->gram[c->grams] = (gram){.prefix = prefix, .last = last, .document = -1};
        att_hash_insert(&c->by_gram, slot, hash, (int32_t)c->grams++);
    }
    *number = slot->item;
    return ATT_OK;
}

/* Reads the next word of a text; false: none. */
static bool next_word(const char **at, att_byte_view *word)
{
    const char *end = *at + strlen(*at), *begin = NULL;
    while (*at < end) {
        uint32_t code;
        const size_t n = att_utf8_decode(*at, (size_t)(end - *at), &code);
        const bool space = att_is_space(code);
        if (space && begin)
            break;
        if (!space && !begin)
            begin = *at;
        *at += n;
    }
    *word = (att_byte_view){begin, begin ? (size_t)(*at - begin) : 0};
    return begin;
}

/* Adds the words of a text, which are also its n-grams of order 1. */
static att_status add_words(cider *c, const char *s, gram_text *t)
{
    att_byte_view word;
    att_status e = ATT_OK;
    *t = (gram_text){.begin = c->occurrences};
    while (!e && next_word(&s, &word)) {
        int32_t number;
        e = att_grow(c->ctx, &c->occurrence, sizeof *c->occurrence, c->occurrences, 1, &c->occurrence_room);
        e = e ? e : number_word(c, word, &number);
        e = e ? e : number_gram(c, NO_PREFIX, number, &c->occurrence[c->occurrences]);
        if (!e)
            c->occurrences++, t->words++;
    }
    return e;
}

/* Returns where the n-grams of an order are, and how many; NULL: none. */
static int32_t *grams_of(const cider *c, const gram_text *t, size_t order, size_t *count)
{
    size_t at = t->begin;
    for (size_t k = 1; k < order; k++)
        at += t->words >= k ? t->words - k + 1 : 0;
    *count = t->words >= order ? t->words - order + 1 : 0;
    return *count > 0 ? c->occurrence + at : NULL;
}

static att_status add_text(cider *c, const char *s, gram_text *t)
{
    att_status e = add_words(c, s, t);
    e = e ? e
          : att_grow(c->ctx, &c->occurrence, sizeof *c->occurrence, c->occurrences, (ORDERS - 1) * t->words,
                     &c->occurrence_room);
    for (size_t order = 2; !e && order <= ORDERS; order++) {
        size_t shorter, count;
        const int32_t *prefix = grams_of(c, t, order - 1, &shorter);
        int32_t *longer = grams_of(c, t, order, &count);
        for (size_t i = 0; !e && i < count; i++) {
            const int32_t last = c->gram[c->occurrence[t->begin + i + order - 1]].last;
            e = number_gram(c, prefix[i], last, &longer[i]);
        }
        c->occurrences += count;
    }
    return e;
}

/* Counts an image for each n-gram of one of its references. */
static void count_document(cider *c, const gram_text *t, int32_t document)
{
    for (size_t order = 1, count; order <= ORDERS; order++) {
        const int32_t *number = grams_of(c, t, order, &count);
        for (size_t i = 0; i < count; i++) {
            gram *g = &c->gram[number[i]];
            g->documents += g->document != document;
            g->document = document;
        }
    }
}

/* ---- scores */

static double square(double x) { return x * x; }

/* Computes the norms of a text's vectors. */
static gram_vector vector_of(cider *c, const gram_text *t)
{
    gram_vector v = {{0}};
    for (size_t order = 1, count; order <= ORDERS; order++) {
        const int32_t *number = grams_of(c, t, order, &count);
        for (size_t i = 0; i < count; i++)
            c->gram[number[i]].count++;
        for (size_t i = 0; i < count; i++) { /* each n-gram once */
            gram *g = &c->gram[number[i]];
            v.norm[order - 1] += square(g->count * g->rarity);
            g->count = 0;
        }
        v.norm[order - 1] = sqrt(v.norm[order - 1]);
    }
    return v;
}

/* Returns the product of two texts' vectors of an order, those of the first clipped. */
static double product(cider *c, const gram_text *text, const gram_text *reference, size_t order)
{
    size_t count, reference_count;
    const int32_t *number = grams_of(c, text, order, &count);
    const int32_t *other = grams_of(c, reference, order, &reference_count);
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        c->gram[number[i]].count++;
    for (size_t i = 0; i < reference_count; i++)
        c->gram[other[i]].clip++;
    for (size_t i = 0; i < count; i++) {
        gram *g = &c->gram[number[i]];
        sum += (double)att_min(g->count, g->clip) * g->rarity * (g->clip * g->rarity);
        g->count = 0;
    }
    for (size_t i = 0; i < reference_count; i++)
        c->gram[other[i]].clip = 0;
    return sum;
}

static double bigrams(const gram_text *t) { return t->words > 1 ? (double)(t->words - 1) : 0; }

/* Returns the score of a text, which `references` texts follow. */
static double score_of(cider *c, const gram_text *text, int64_t references)
{
    const gram_vector v = vector_of(c, text);
    double sum = 0;
    for (const gram_text *r = text + 1; r <= text + references; r++) {
        const gram_vector w = vector_of(c, r);
        const double penalty = exp(-square(bigrams(text) - bigrams(r)) / (2 * SIGMA * SIGMA));
        for (size_t order = 1; order <= ORDERS; order++) {
            const double norms = v.norm[order - 1] * w.norm[order - 1];
            if (norms > 0)
                sum += penalty * product(c, text, r, order) / norms;
        }
    }
    return 10 * sum / ORDERS / (double)references;
}

/* ---- the interface */

static att_status check(att_ctx *ctx, const char *const *texts, int64_t n, const char *const *references,
                        const int64_t *offsets)
{
    if (n < 1 || n > INT32_MAX)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "att_cider: n is %lld, but must be 1 to %d", (long long)n, INT32_MAX);
    if (offsets[0] != 0)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "att_cider: offsets[0] is %lld, but must be 0", (long long)offsets[0]);
    for (int64_t i = 0; i < n; i++)
        if (offsets[i + 1] <= offsets[i])
            return att_fail(
                ctx, ATT_ERR_ARGUMENT,
                "att_cider: offsets[%lld] is %lld and offsets[%lld] is %lld, but each text needs a reference",
                (long long)i, (long long)offsets[i], (long long)i + 1, (long long)offsets[i + 1]);
    const att_status e = att_check_texts(ctx, "att_cider: texts", texts, n);
    return e ? e : att_check_texts(ctx, "att_cider: references", references, offsets[n]);
}

static att_status add_all(cider *c, const char *const *texts, int64_t n, const char *const *references,
                          const int64_t *offsets)
{
    gram_text *t = c->text;
    att_status e = ATT_OK;
    for (int64_t i = 0; !e && i < n; i++) {
        e = att_check_cancelled(c->ctx, "att_cider");
        e = e ? e : add_text(c, texts[i], t++);
        for (int64_t r = offsets[i]; !e && r < offsets[i + 1]; r++) {
            e = add_text(c, references[r], t);
            if (!e)
                count_document(c, t++, (int32_t)i);
        }
    }
    for (size_t g = 0; g < c->grams; g++) /* an n-gram that is in no reference counts as if in one */
        c->gram[g].rarity = log((double)n) - log((double)att_max(1, c->gram[g].documents));
    return e;
}

static void free_all(cider *c)
{
    att_free(c->ctx, c->word);
    att_free(c->ctx, c->gram);
    att_free(c->ctx, c->occurrence);
    att_free(c->ctx, c->text);
    att_hash_free(&c->by_word);
    att_hash_free(&c->by_gram);
}

att_status att_cider(att_ctx *ctx, const char *const *texts, int64_t n, const char *const *references,
                     const int64_t *offsets, double *scores, double *mean)
{
    if (att_require(__func__,
                    ATT_NAMED({"ctx", ctx}, {"texts", texts}, {"references", references}, {"offsets", offsets})))
        return ATT_ERR_ARGUMENT;
    att_status e = check(ctx, texts, n, references, offsets);
    if (e)
        return e;
    cider c = {.ctx = ctx, .by_word.ctx = ctx, .by_gram.ctx = ctx};
    c.text = att_alloc(ctx, (size_t)(n + offsets[n]), sizeof *c.text);
    e = c.text ? add_all(&c, texts, n, references, offsets) : ATT_ERR_MEMORY;
    double sum = 0;
    const gram_text *t = c.text;
    for (int64_t i = 0; !e && i < n; i++) {
        const double score = score_of(&c, t, offsets[i + 1] - offsets[i]);
        t += 1 + offsets[i + 1] - offsets[i];
        sum += score;
        if (scores)
            scores[i] = score;
        e = att_check_cancelled(ctx, "att_cider");
    }
    if (!e && mean)
        *mean = sum / (double)n;
    free_all(&c);
    return e;
}

static void mean_of_resample(const void *of, att_resample *r, const att_bleu_resampling *options, double *score)
{
    const double *x = of;
    (void)options;
    *score = 0;
    for (int64_t i = 0; i < r->n; i++)
        *score += x[att_resample_draw(r, i)];
    *score /= (double)r->n;
}

att_status att_mean_interval(att_ctx *ctx, const double *x, int64_t n, const att_bleu_resampling *opt,
                             att_interval *out)
{
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"x", x}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    return att_bootstrap_intervals(ctx, &(const att_bootstrap){__func__, mean_of_resample, x, 1}, n, opt,
                                   (att_interval *const[]){out});
}
