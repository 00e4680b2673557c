/* Reads and tokenizes the lines of batches. */
#include "util/util.h"
#include "translate/parallel_corpus.h"

#include <string.h>

enum { PAIRS_PER_TASK = 8 }; /* pairs of a task */

typedef struct reading {
    const att_parallel_corpus *corpus;
    const uint32_t *pairs; /* [n] */
    int64_t n;
    att_tokens *tokens[2]; /* [n] each */
    _Atomic int status, changed;
} reading;

/* Reads and tokenizes a line, with a stack buffer that suffices for most lines. */
static att_status read_line(const att_parallel_corpus *s, int side, const att_text_pair *p, att_tokens *out)
{
    enum { SHORT = 4096, LONG = ATT_MAX_LINE + 2 };
    char near[SHORT], *far = NULL;
    const int64_t offset = (int64_t)p->high[side] << 32 | p->low[side];
    att_text_line line;
    bool fits;
    att_status e = att_text_lines_at(&s->file[side], offset, near, SHORT, &line, &fits);
    if (!e && !fits) {
        far = att_alloc(s->ctx, LONG, 1);
        e = far ? att_text_lines_at(&s->file[side], offset, far, LONG, &line, &fits) : ATT_ERR_MEMORY;
    }
    if (!e && fits) /* a line that is longer than any at opening time means that the file has changed */
        e = att_pair_encode(s, side, &line, out);
    att_free(s->ctx, far);
    return e;
}

static void read_some(void *arg, int i)
{
    reading *r = arg;
    const int64_t first = (int64_t)i * PAIRS_PER_TASK, last = att_min(first + PAIRS_PER_TASK, r->n);
    for (int64_t k = first; k < last; k++)
        for (int side = 0; side < 2 && !r->status; side++) {
            const att_text_pair *p = att_pair_at(r->corpus, r->pairs[k]);
            att_tokens *x = &r->tokens[side][k];
            const att_status e = read_line(r->corpus, side, p, x);
            if (e)
                r->status = (int)e;
            else if (x->count != p->tokens[side])
                r->changed = side + 1;
        }
}

/* Reads all lines. If a file has changed, that is the error. */
static att_status read_all(reading *r)
{
    const att_parallel_corpus *s = r->corpus;
    att_parallel_for(s->ctx, (int)att_ceil_div(r->n, PAIRS_PER_TASK), read_some, r);
    att_status e = att_text_lines_check(&s->file[0]);
    e = e ? e : att_text_lines_check(&s->file[1]);
    if (!e && r->status)
        e = att_fail(s->ctx, (att_status)r->status, "%s, %s: a line cannot be read and tokenized", s->file[0].path,
                     s->file[1].path);
    if (!e && r->changed)
        e = att_fail(s->ctx, ATT_ERR_IO, "%s was changed while it was trained on: a line has other tokens now",
                     s->file[r->changed - 1].path);
    return e;
}

/* Concatenates tokens [n] of one side. */
static void gather(const att_tokens *x, int64_t n, int32_t *ids, int64_t *offsets)
{
    offsets[0] = 0;
    for (int64_t i = 0; i < n; i++) {
        memcpy(ids + offsets[i], x[i].ids, (size_t)x[i].count * sizeof *ids);
        offsets[i + 1] = offsets[i] + x[i].count;
    }
}

static att_status lay_out(const reading *r, att_batch *out)
{
    const size_t n = (size_t)r->n;
    size_t tokens[2] = {0, 0};
    for (size_t k = 0; k < n; k++)
        for (int side = 0; side < 2; side++)
            tokens[side] += (size_t)r->tokens[side][k].count;
    char *memory =
        att_alloc(r->corpus->ctx, 2 * (n + 1) * sizeof(int64_t) + (tokens[0] + tokens[1] + n) * sizeof(int32_t), 1);
    *out = (att_batch){.memory = memory};
    if (!memory)
        return ATT_ERR_MEMORY;
    int64_t *source_offsets = (int64_t *)(void *)memory, *target_offsets = source_offsets + n + 1;
    int32_t *source = (int32_t *)(void *)(target_offsets + n + 1), *target = source + tokens[0];
    out->ids = (uint32_t *)(void *)(target + tokens[1]);
    gather(r->tokens[0], r->n, source, source_offsets);
    gather(r->tokens[1], r->n, target, target_offsets);
    memcpy(out->ids, r->pairs, n * sizeof *out->ids);
    out->pairs = (att_sequence_pairs){sizeof out->pairs, r->n, source, source_offsets, target, target_offsets};
    return ATT_OK;
}

int64_t att_batch_size(const att_epoch *e, int64_t i)
{
    const uint32_t *first = e->first + e->group[i];
    return first[1] - first[0];
}

att_status att_batch_read_rows(const att_parallel_corpus *s, const att_epoch *e, int64_t i, int64_t first, int64_t last,
                               att_batch *out)
{
    const int64_t n = last - first;
    att_tokens *tokens = att_calloc(s->ctx, 2 * (size_t)n, sizeof *tokens);
    *out = (att_batch){0};
    if (!tokens)
        return ATT_ERR_MEMORY;
    reading r = {
        .corpus = s, .pairs = e->order + e->first[e->group[i]] + first, .n = n, .tokens = {tokens, tokens + n}};
    att_status status = read_all(&r);
    status = status ? status : lay_out(&r, out);
    for (int64_t k = 0; k < 2 * n; k++)
        att_tokens_free(s->ctx, &tokens[k]);
    att_free(s->ctx, tokens);
    return status;
}

att_status att_batch_read(const att_parallel_corpus *s, const att_epoch *e, int64_t i, att_batch *out)
{
    return att_batch_read_rows(s, e, i, 0, att_batch_size(e, i), out);
}

void att_batch_free(att_ctx *ctx, att_batch *b)
{
    att_free(ctx, b->memory);
    *b = (att_batch){0};
}
