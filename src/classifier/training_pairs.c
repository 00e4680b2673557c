#include "classifier/training_pairs.h"
#include "text/tokenizer.h"
#include "util/util.h"

#include <string.h>

/* ---- all texts */

/* Returns the largest number of pairs of a row. */
static int64_t pairs_of_row(const att_training_pairs *p)
{
    if (!p->ranking)
        return 1;
    return p->columns - 1 + att_min(p->negatives, (p->batch - 1) * (p->columns - 1));
}

static att_status allocate(att_training_pairs *p)
{
    att_ctx *ctx = p->model->model.ctx;
    const int64_t texts = p->ranking ? p->rows * p->columns : p->rows, pairs = pairs_of_row(p) * p->batch;
    p->tokens = att_calloc(ctx, (size_t)texts, sizeof *p->tokens);
    p->ids = att_alloc(ctx, (size_t)(pairs * p->max_tokens), sizeof *p->ids);
    p->type_ids = att_alloc(ctx, (size_t)(pairs * p->max_tokens), sizeof *p->type_ids);
    p->offsets = att_alloc(ctx, (size_t)pairs + 1, sizeof *p->offsets);
    p->counting = att_alloc(ctx, (size_t)pairs + 1, sizeof *p->counting);
    p->sequence_ids = att_alloc(ctx, (size_t)pairs, sizeof *p->sequence_ids);
    p->others = att_alloc(ctx, (size_t)(p->columns * p->batch), sizeof *p->others);
    for (int64_t i = 0; p->counting && i <= pairs; i++)
        p->counting[i] = i;
    return p->tokens && p->ids && p->type_ids && p->offsets && p->counting && p->sequence_ids && p->others
               ? ATT_OK
               : ATT_ERR_MEMORY;
}

/* Tokenizes the pair of each row. texts [rows, 2], with lengths bytes or NULL. */
static att_status tokenize_pairs(att_training_pairs *p, const char *const *texts, const size_t *bytes)
{
    const att_tokenize_options o = {.size = sizeof o, .max_tokens = p->max_tokens};
    att_status s = ATT_OK;
    for (int64_t i = 0; !s && i < p->rows; i++) {
        const char *a = texts[2 * i], *b = texts[2 * i + 1];
        s = att_tokenize_pair(p->model->tokenizer, a, bytes ? bytes[2 * i] : strlen(a), b,
                              bytes ? bytes[2 * i + 1] : strlen(b), &o, &p->tokens[i]);
    }
    return s;
}

static att_status tokenize(att_training_pairs *p, const char *const *texts, const size_t *bytes)
{
    const att_tokenizer *t = p->model->tokenizer;
    if (p->ranking)
        return att_tokenize_batch(t, p->rows * p->columns, texts, bytes,
                                  ATT_OPTIONS(att_tokenize_options, .no_special = true), p->tokens);
    return p->columns == 1
               ? att_tokenize_batch(t, p->rows, texts, bytes,
                                    ATT_OPTIONS(att_tokenize_options, .max_tokens = p->max_tokens), p->tokens)
               : tokenize_pairs(p, texts, bytes);
}

/* Counts the rows with a pair that is truncated. */
static att_status count_truncated(att_training_pairs *p)
{
    const att_tokenize_options o = {.size = sizeof o};
    att_tokens empty = {0}, both;
    if (!p->ranking) {
        for (int64_t i = 0; i < p->rows; i++)
            p->truncated += p->tokens[i].truncated;
        return ATT_OK;
    }
    const att_status s = att_tokens_join(p->model->tokenizer, &empty, &empty, &o, &both);
    if (s)
        return s;
    for (int64_t i = 0; i < p->rows; i++) {
        const att_tokens *row = p->tokens + i * p->columns;
        bool truncated = false;
        for (int64_t k = 1; k < p->columns; k++)
            truncated |= row[0].count + row[k].count + both.count > p->max_tokens;
        p->truncated += truncated;
    }
    att_tokens_free(p->model->model.ctx, &both);
    return ATT_OK;
}

att_status att_training_pairs_open(att_training_pairs *p, const char *const *texts, const size_t *bytes)
{
    att_status s = allocate(p);
    s = s ? s : tokenize(p, texts, bytes);
    for (int64_t i = 0; !s && i < (p->ranking ? p->rows * p->columns : p->rows); i++)
        p->sum = att_fnv64_words(p->sum, p->tokens[i].ids, p->tokens[i].count);
    return s ? s : count_truncated(p);
}

void att_training_pairs_free(att_training_pairs *p)
{
    if (!p->model)
        return;
    att_ctx *ctx = p->model->model.ctx;
    for (int64_t i = 0; p->tokens && i < (p->ranking ? p->rows * p->columns : p->rows); i++)
        att_tokens_free(ctx, &p->tokens[i]);
    void *const all[] = {p->tokens, p->ids, p->type_ids, p->offsets, p->counting, p->sequence_ids, p->others};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        att_free(ctx, all[i]);
    *p = (att_training_pairs){0};
}

/* ---- a batch */

/* Appends tokens as pair i. */
static void append(att_training_pairs *p, int64_t i, const att_tokens *x, uint32_t sequence)
{
    const int64_t at = p->offsets[i];
    memcpy(p->ids + at, x->ids, (size_t)x->count * sizeof *x->ids);
    if (x->type_ids)
        memcpy(p->type_ids + at, x->type_ids, (size_t)x->count * sizeof *x->type_ids);
    else
        memset(p->type_ids + at, 0, (size_t)x->count * sizeof *x->type_ids);
    p->offsets[i + 1] = at + x->count;
    p->sequence_ids[i] = sequence;
}

/* Appends the pair of the anchor of a row and a text, number `text` of all, as pair i. */
static att_status append_joined(att_training_pairs *p, int64_t i, int64_t row, int64_t text)
{
    const att_tokenize_options o = {.size = sizeof o, .max_tokens = p->max_tokens};
    att_tokens joined;
    const att_status s =
        att_tokens_join(p->model->tokenizer, &p->tokens[row * p->columns], &p->tokens[text], &o, &joined);
    if (!s)
        append(p, i, &joined, (uint32_t)(row * p->rows * p->columns + text));
    att_tokens_free(p->model->model.ctx, &joined);
    return s;
}

/* Moves `count` of p->others [n], drawn for anchor i, to its front (Fisher, Yates). If count is n, their order stays.
 */
static void draw(att_training_pairs *p, int64_t n, int64_t count, int64_t i, uint64_t seed)
{
    for (int64_t k = 0; count < n && k < count; k++) {
        uint32_t word[4];
        att_random(seed, (const uint32_t[]){(uint32_t)k, (uint32_t)i, 0, 0x6e656773}, word);
        const uint64_t number = (uint64_t)word[0] << 32 | word[1];
        const int64_t other = k + (int64_t)(number % (uint64_t)(n - k)), kept = p->others[k];
        p->others[k] = p->others[other];
        p->others[other] = kept;
    }
}

/* Appends the pairs of anchor i: with its positive, then with texts of other rows, then its hard negatives: all columns
 * after the anchors, one after the other, are candidates. */
static att_status gather_anchor(att_training_pairs *p, const uint32_t *rows, int64_t i, uint64_t seed)
{
    const int64_t row = rows[i], first = i * p->candidates, negatives = p->candidates - (p->columns - 1);
    int64_t n = 0, at = first;
    for (int64_t k = 1; k < p->columns; k++)
        for (int64_t other = 0; other < p->n; other++)
            if (other != i)
                p->others[n++] = (int64_t)rows[other] * p->columns + k;
    draw(p, n, negatives, i, seed);
    att_status s = append_joined(p, at++, row, row * p->columns + 1);
    for (int64_t k = 0; !s && k < negatives; k++)
        s = append_joined(p, at++, row, p->others[k]);
    for (int64_t k = 2; !s && k < p->columns; k++)
        s = append_joined(p, at++, row, row * p->columns + k);
    return s;
}

att_status att_training_pairs_gather(att_training_pairs *p, const uint32_t *rows, int64_t n, uint64_t seed)
{
    att_status s = ATT_OK;
    p->n = n;
    p->candidates = p->ranking ? p->columns - 1 + att_min(p->negatives, (n - 1) * (p->columns - 1)) : 1;
    p->offsets[0] = 0;
    for (int64_t i = 0; !s && i < n; i++)
        if (p->ranking)
            s = gather_anchor(p, rows, i, seed);
        else
            append(p, i, &p->tokens[rows[i]], rows[i]);
    return s;
}
