#include "train/pairs.h"
#include "text/utf8.h"
#include "train/text_lines.h"

#include <stdlib.h>
#include <string.h>

/* ---- lines to ids */

enum { LINES_A_STEP = 256 }; /* tokenised by one thread before it asks for more */

typedef struct job {
    att_ctx *ctx;
    const att_tokenizer *tokenizer;
    const att_text_lines *side[2];
    att_tokens *tokens[2]; /* [n] each */
    _Atomic int status;
} job;

static bool blank(const char *s, size_t n)
{
    while (n > 0 && (*s == ' ' || *s == '\t'))
        s++, n--;
    return n == 0;
}

static void tokenize_some(void *arg, int i)
{
    job *j = arg;
    const int64_t first = (int64_t)i * LINES_A_STEP, all = j->side[0]->n;
    const int64_t last = all - first < LINES_A_STEP ? all : first + LINES_A_STEP;
    for (int64_t k = first; k < last && !j->status; k++)
        for (int s = 0; s < 2; s++) {
            const att_text_lines *l = j->side[s];
            if (blank(l->text[k], l->bytes[k]))
                continue;
            const att_status e = att_encode(j->tokenizer, l->text[k], l->bytes[k],
                                            ATT_OPTIONS(att_encode_options, .target = s == 1), &j->tokens[s][k]);
            if (e)
                j->status = (int)e;
        }
}

static att_status allocate(att_pair_set *s, int64_t n, const int64_t tokens[2])
{
    s->source = att_alloc(s->ctx, (size_t)tokens[0] + 1, sizeof *s->source);
    s->target = att_alloc(s->ctx, (size_t)tokens[1] + 1, sizeof *s->target);
    s->source_offsets = att_calloc(s->ctx, (size_t)n + 1, sizeof *s->source_offsets);
    s->target_offsets = att_calloc(s->ctx, (size_t)n + 1, sizeof *s->target_offsets);
    s->line = att_alloc(s->ctx, (size_t)n + 1, sizeof *s->line);
    return s->source && s->target && s->source_offsets && s->target_offsets && s->line ? ATT_OK : ATT_ERR_MEMORY;
}

static bool valid(const job *j, int64_t k)
{
    return att_utf8_valid(j->side[0]->text[k], j->side[0]->bytes[k]) &&
           att_utf8_valid(j->side[1]->text[k], j->side[1]->bytes[k]);
}

static att_status gather(const job *j, int64_t max_tokens, att_pair_set *s)
{
    const int64_t n = j->side[0]->n;
    int64_t tokens[2] = {0, 0};
    for (int64_t k = 0; k < n; k++)
        for (int i = 0; i < 2; i++)
            tokens[i] += j->tokens[i][k].count;
    const att_status e = allocate(s, n, tokens);
    for (int64_t k = 0; !e && k < n; k++) {
        const att_tokens *x = &j->tokens[0][k], *y = &j->tokens[1][k];
        const bool empty = x->count == 0 || y->count == 0, longer = x->count > max_tokens || y->count > max_tokens;
        const bool invalid = !empty && !valid(j, k);
        s->empty += empty;
        s->invalid += invalid;
        s->longer += !empty && !invalid && longer;
        if (empty || invalid || longer)
            continue;
        memcpy(s->source + s->source_offsets[s->n], x->ids, (size_t)x->count * sizeof *x->ids);
        memcpy(s->target + s->target_offsets[s->n], y->ids, (size_t)y->count * sizeof *y->ids);
        s->source_offsets[s->n + 1] = s->source_offsets[s->n] + x->count;
        s->target_offsets[s->n + 1] = s->target_offsets[s->n] + y->count;
        s->line[s->n++] = k;
    }
    return e;
}

static att_status read_lines(att_ctx *ctx, const char *source, const char *target, att_text_lines side[2])
{
    att_status e = att_text_lines_read(ctx, source, &side[0]);
    e = e ? e : att_text_lines_read(ctx, target, &side[1]);
    if (!e && side[0].n != side[1].n)
        e = att_fail(ctx, ATT_ERR_FORMAT, "%s has %lld lines but %s has %lld", source, (long long)side[0].n, target,
                     (long long)side[1].n);
    return e;
}

att_status att_pair_set_read(att_ctx *ctx, const att_tokenizer *t, const char *source, const char *target,
                             int64_t max_tokens, att_pair_set *out)
{
    att_text_lines side[2] = {0};
    job j = {.ctx = ctx, .tokenizer = t, .side = {&side[0], &side[1]}};
    *out = (att_pair_set){.ctx = ctx};
    att_status e = read_lines(ctx, source, target, side);
    const int64_t n = side[0].n;
    for (int i = 0; !e && i < 2; i++)
        if (!(j.tokens[i] = att_calloc(ctx, (size_t)n + 1, sizeof *j.tokens[i])))
            e = ATT_ERR_MEMORY;
    if (!e) {
        att_parallel_for(ctx, (int)((n + LINES_A_STEP - 1) / LINES_A_STEP), tokenize_some, &j);
        e = j.status ? att_fail(ctx, (att_status)j.status, "%s, %s: a line cannot be tokenised", source, target)
                     : gather(&j, max_tokens, out);
    }
    if (!e && out->n == 0)
        e = att_fail(ctx, ATT_ERR_FORMAT,
                     "%s, %s: none of %lld pairs can be used (%lld are empty, %lld not UTF-8, %lld longer than "
                     "%lld tokens)",
                     source, target, (long long)n, (long long)out->empty, (long long)out->invalid,
                     (long long)out->longer, (long long)max_tokens);
    for (int i = 0; i < 2; i++) {
        for (int64_t k = 0; j.tokens[i] && k < n; k++)
            att_tokens_free(t, &j.tokens[i][k]);
        att_free(ctx, j.tokens[i]);
        att_text_lines_free(ctx, &side[i]);
    }
    if (e)
        att_pair_set_free(out);
    return e;
}

void att_pair_set_free(att_pair_set *s)
{
    if (!s->ctx)
        return;
    att_free(s->ctx, s->source);
    att_free(s->ctx, s->target);
    att_free(s->ctx, s->source_offsets);
    att_free(s->ctx, s->target_offsets);
    att_free(s->ctx, s->line);
    *s = (att_pair_set){0};
}
