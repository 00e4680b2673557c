#include "translate/parallel_corpus.h"
#include "util/util.h"
#include "text/not_utf8.h"
#include "text/utf8.h"
#include "util/array.h"

#include <string.h>

/* ---- a block of lines, tokenized by all threads */

enum {
    BLOCK_PAIRS = 1 << 14,
    BATCH_LINES = 1 << 10
};                         /* pairs of a block; lines whose tokens are in memory at a
                            * time */
enum { OFFSET_BITS = 48 }; /* in an att_text_pair */

typedef enum result { USABLE, EMPTY, INVALID, TOO_LONG } result;

typedef struct checked_pair {
    result result;
    uint32_t tokens[2];
} checked_pair;

typedef struct block {
    const att_parallel_corpus *corpus;
    int64_t max_tokens, max_invalid, n;
    att_text_line line[2][BLOCK_PAIRS];
    const char *text[BATCH_LINES]; /* of one side, with their lengths and tokens */
    size_t bytes[BATCH_LINES];
    att_tokens tokens[BATCH_LINES];
    checked_pair checked_pair[BLOCK_PAIRS];
} block;

static bool blank(const att_text_line *l)
{
    size_t i = 0;
    while (i < l->bytes && (l->text[i] == ' ' || l->text[i] == '\t'))
        i++;
    return i == l->bytes;
}

att_status att_pair_encode(const att_parallel_corpus *s, int side, const att_text_line *l, att_tokens *out)
{
    return att_tokenize(s->tokenizer, l->text, l->bytes, ATT_OPTIONS(att_tokenize_options, .target = side == 1), out);
}

/* Counts the tokens of lines [first, last) of a side. A blank line has none. */
static att_status count_batch(block *b, int side, int64_t first, int64_t last)
{
    const att_parallel_corpus *s = b->corpus;
    for (int64_t k = first; k < last; k++) {
        b->text[k - first] = b->line[side][k].text;
        b->bytes[k - first] = b->line[side][k].bytes;
    }
    const att_status e = att_tokenize_batch(s->tokenizer, last - first, b->text, b->bytes,
                                            ATT_OPTIONS(att_tokenize_options, .target = side == 1), b->tokens);
    for (int64_t k = first; !e && k < last; k++) {
        b->checked_pair[k].tokens[side] = blank(&b->line[side][k]) ? 0 : (uint32_t)b->tokens[k - first].count;
        att_tokens_free(s->ctx, &b->tokens[k - first]);
    }
    return !e || e == ATT_ERR_CANCELLED
               ? e
               : att_fail(s->ctx, e, "%s: a line cannot be tokenized: %s", s->file[side].path, att_error(s->ctx));
}

static att_status count_tokens(block *b, int side)
{
    att_status e = ATT_OK;
    for (int64_t first = 0; !e && first < b->n; first += BATCH_LINES)
        e = count_batch(b, side, first, att_min(first + BATCH_LINES, b->n));
    return e;
}

static result check_pair(const block *b, int64_t k)
{
    const att_text_line *x = &b->line[0][k], *y = &b->line[1][k];
    const uint32_t *count = b->checked_pair[k].tokens;
    if (count[0] == 0 || count[1] == 0)
        return EMPTY;
    if (!att_utf8_valid(x->text, x->bytes) || !att_utf8_valid(y->text, y->bytes))
        return INVALID;
    return count[0] > b->max_tokens || count[1] > b->max_tokens ? TOO_LONG : USABLE;
}

/* ---- storage of pairs */

/* Allocates one more block of pairs. */
static att_status add_block(att_parallel_corpus *s)
{
    const int64_t n = s->n / ATT_PAIRS_PER_BLOCK;
    const att_status e = att_grow(s->ctx, &s->blocks, sizeof *s->blocks, (size_t)n, 1, &s->block_room);
    if (e)
        return e;
    s->blocks[n] = att_alloc(s->ctx, ATT_PAIRS_PER_BLOCK, sizeof **s->blocks);
    return s->blocks[n] ? ATT_OK : ATT_ERR_MEMORY;
}

static att_status keep(att_parallel_corpus *s, const block *b, int64_t k)
{
    const checked_pair *x = &b->checked_pair[k];
    if (s->n == UINT32_MAX)
        return att_fail(s->ctx, ATT_ERR_UNSUPPORTED, "%s, %s: more than %lld pairs cannot be trained on",
                        s->file[0].path, s->file[1].path, (long long)UINT32_MAX);
    const att_status e = s->n % ATT_PAIRS_PER_BLOCK == 0 ? add_block(s) : ATT_OK;
    if (e)
        return e;
    att_text_pair *p = &s->blocks[s->n / ATT_PAIRS_PER_BLOCK][s->n % ATT_PAIRS_PER_BLOCK];
    for (int i = 0; i < 2; i++) {
        const uint64_t offset = (uint64_t)b->line[i][k].offset;
        p->tokens[i] = x->tokens[i];
        p->low[i] = (uint32_t)offset;
        p->high[i] = (uint16_t)(offset >> 32);
    }
    s->target_tokens += x->tokens[1];
    s->n++;
    return ATT_OK;
}

/* Fails: pair k of the block is not UTF-8. */
static att_status refuse_invalid(const att_parallel_corpus *s, const block *b, int64_t k)
{
    const att_text_line *x = &b->line[0][k];
    const int side = att_utf8_valid(x->text, x->bytes) ? 1 : 0;
    const att_where where = {.ctx = s->ctx, .path = s->file[side].path, .number = s->file[side].lines - b->n + k + 1};
    return att_fail_not_utf8(&where, NULL, (att_byte_view){b->line[side][k].text, b->line[side][k].bytes});
}

/* Tokenizes the pairs of the block and stores the usable ones. */
static att_status tokenize_block(att_parallel_corpus *s, block *b)
{
    att_status e = count_tokens(b, 0);
    e = e ? e : count_tokens(b, 1);
    for (int64_t k = 0; !e && k < b->n; k++) {
        b->checked_pair[k].result = check_pair(b, k);
        s->empty += b->checked_pair[k].result == EMPTY;
        s->invalid += b->checked_pair[k].result == INVALID;
        s->too_long += b->checked_pair[k].result == TOO_LONG;
        e = b->checked_pair[k].result == USABLE ? keep(s, b, k) : ATT_OK;
        if (s->invalid > b->max_invalid)
            e = refuse_invalid(s, b, k);
    }
    return e;
}

/* ---- files to pairs */

att_status att_lines_differ(att_ctx *ctx, const char *source, int64_t source_lines, const char *target,
                            int64_t target_lines)
{
    return att_fail(ctx, ATT_ERR_FORMAT, "%s has %lld lines but %s has %lld", source, (long long)source_lines, target,
                    (long long)target_lines);
}

/* Fills the block with pairs of lines, as far as both files have been read. */
static void pair_lines(att_parallel_corpus *s, block *b)
{
    for (b->n = 0; b->n < BLOCK_PAIRS; b->n++) {
        if (!att_text_lines_next(&s->file[0], &b->line[0][b->n]))
            return;
        if (!att_text_lines_next(&s->file[1], &b->line[1][b->n])) {
            att_text_lines_unread(&s->file[0], &b->line[0][b->n]);
            return;
        }
    }
}

/* Reads to the end of the shorter file. */
static att_status read_pairs(att_parallel_corpus *s, block *b)
{
    att_status e;
    do {
        e = att_text_lines_fill(&s->file[0]);
        e = e ? e : att_text_lines_fill(&s->file[1]);
        if (!e)
            pair_lines(s, b);
        e = e ? e : tokenize_block(s, b);
        if (!e && att_cancelled(s->ctx))
            e = att_fail(s->ctx, ATT_ERR_CANCELLED, "cancelled");
    } while (!e && b->n > 0);
    return e;
}

/* Checks that both files have ended and are unchanged since opening. */
static att_status end_files(att_parallel_corpus *s)
{
    att_status e = ATT_OK;
    for (int i = 0; !e && i < 2; i++) {
        e = att_text_lines_skip(&s->file[i]);
        e = e ? e : att_text_lines_check(&s->file[i]);
        att_text_lines_free_block(&s->file[i]);
    }
    if (!e && s->file[0].lines != s->file[1].lines)
        e = att_lines_differ(s->ctx, s->file[0].path, s->file[0].lines, s->file[1].path, s->file[1].lines);
    return e;
}

static att_status open_files(att_parallel_corpus *s, const char *const paths[2])
{
    att_status e = ATT_OK;
    for (int i = 0; !e && i < 2; i++) {
        e = att_text_lines_open(&s->file[i], s->ctx, paths[i]);
        if (!e && s->file[i].opened.st_size >> OFFSET_BITS)
            e = att_fail(s->ctx, ATT_ERR_UNSUPPORTED, "%s has %lld bytes, the maximum is 2^%d", paths[i],
                         (long long)s->file[i].opened.st_size, OFFSET_BITS);
    }
    return e;
}

static att_status read_files(att_parallel_corpus *s, int64_t max_tokens, int64_t max_invalid)
{
    block *b = att_alloc(s->ctx, 1, sizeof *b);
    if (!b)
        return ATT_ERR_MEMORY;
    b->corpus = s;
    b->max_tokens = max_tokens;
    b->max_invalid = max_invalid;
    const att_status e = read_pairs(s, b);
    att_free(s->ctx, b);
    return e ? e : end_files(s);
}

att_status att_parallel_corpus_read(att_ctx *ctx, const att_tokenizer *t, const char *source, const char *target,
                                    int64_t max_tokens, int64_t max_invalid, att_parallel_corpus *out)
{
    *out = (att_parallel_corpus){.ctx = ctx, .tokenizer = t};
    att_status e = open_files(out, (const char *const[]){source, target});
    e = e ? e : read_files(out, max_tokens, max_invalid);
    if (!e && out->n == 0)
        e = att_fail(ctx, ATT_ERR_FORMAT,
                     "%s, %s: none of %lld pairs can be used (%lld are empty, %lld not UTF-8, %lld longer than "
                     "%lld tokens)",
                     source, target, (long long)out->file[0].lines, (long long)out->empty, (long long)out->invalid,
                     (long long)out->too_long, (long long)max_tokens);
    if (e)
        att_parallel_corpus_free(out);
    return e;
}

void att_parallel_corpus_free(att_parallel_corpus *s)
{
    if (!s->ctx)
        return;
    for (int64_t i = 0; i * ATT_PAIRS_PER_BLOCK < s->n; i++)
        att_free(s->ctx, s->blocks[i]);
    att_free(s->ctx, s->blocks);
    for (int i = 0; i < 2; i++)
        att_text_lines_close(&s->file[i]);
    *s = (att_parallel_corpus){0};
}
