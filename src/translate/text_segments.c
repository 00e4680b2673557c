#include "translate/text_segments.h"
#include "text/utf8.h"
#include "util/array.h"

#include <string.h>

enum { NO_CODE = -1 };

/* ---- split points */

static bool is_one_of(uint32_t c, const uint32_t *list)
{
    while (*list && *list != c)
        list++;
    return *list != 0;
}

static bool is_space(uint32_t c) { return c == ' ' || (c >= '\t' && c <= '\r') || c == 0xA0 || c == 0x3000; }

/* Returns the quality of a split point between two characters. */
static int rank(uint32_t before, uint32_t after)
{
    static const uint32_t ends[] = {0x3002, 0xFF01, 0xFF1F, 0x0964, 0}; /* ends of sentences: 。！？। */
    static const uint32_t ends_before_space[] = {'.', '!', '?', 0x2026, 0x061F, 0}; /* only before a space: … ؟ */
    if (is_one_of(before, ends) || (is_space(after) && is_one_of(before, ends_before_space)))
        return 3;
    return is_space(after) ? 2 : 1;
}

/* Returns the best split point in the middle half of a text; of equal ones, the one nearest to the middle. 0: there is
 * none. */
static size_t find_split(const char *text, size_t bytes)
{
    size_t best = 0, distance = 0;
    int best_rank = 0;
    uint32_t before = 0, c;
    for (size_t i = 0, n; i < bytes - bytes / 4; i += n, before = c) {
        n = att_utf8_decode(text + i, bytes - i, &c);
        const size_t away = i < bytes / 2 ? bytes / 2 - i : i - bytes / 2;
        const int r = i > 0 && i >= bytes / 4 ? rank(before, c) : 0;
        if (r > best_rank || (r == best_rank && r > 0 && away < distance))
            best = i, best_rank = r, distance = away;
    }
    return best;
}

/* ---- segments */

/* Adds tokens as a segment, after the language code if there is one. */
static att_status add_segment(att_text_segments *p, int64_t number, int32_t code, att_tokens *tokens)
{
    att_status e = att_grow(p->ctx, &p->segment, sizeof *p->segment, (size_t)p->count, 1, &p->room);
    if (!e && code != NO_CODE) {
        int32_t *ids = att_alloc(p->ctx, (size_t)tokens->count + 1, sizeof *ids);
        if (!ids)
            return ATT_ERR_MEMORY;
        ids[0] = code;
        memcpy(ids + 1, tokens->ids, (size_t)tokens->count * sizeof *ids);
        att_free(p->ctx, tokens->ids);
        tokens->ids = ids;
        tokens->count++;
    }
    if (!e) {
        p->segment[p->count++] = (att_text_segment){*tokens, number};
        *tokens = (att_tokens){0};
    }
    return e;
}

/* Returns the language code at the start of tokens. */
static int32_t code_of(const att_text_segments *p, const att_tokens *tokens)
{
    const char *first = tokens->count > 0 ? att_tokenizer_token(p->tokenizer, tokens->ids[0]) : NULL;
    const size_t n = first ? strlen(first) : 0;
    return n >= 4 && !strncmp(first, ">>", 2) && !strcmp(first + n - 2, "<<") ? tokens->ids[0] : NO_CODE;
}

/* Returns the smallest number of tokens of a text: eos and, if there is one, the language code. A segment must have
 * more. */
static int64_t minimum(int32_t code) { return 1 + (code != NO_CODE); }

static att_status fail_long(const att_text_segments *p, int64_t number, int64_t tokens)
{
    return att_fail(p->ctx, ATT_ERR_ARGUMENT, "text %lld has %lld tokens but the model has %lld positions",
                    (long long)number, (long long)tokens, (long long)p->max_tokens);
}

/* Adds a text, or a part of one whose language code was removed. */
static att_status add(att_text_segments *p, int64_t number, int32_t code, const char *text, size_t bytes)
{
    att_tokens tokens;
    att_status e = att_tokenize(p->tokenizer, text, bytes, NULL, &tokens);
    if (e)
        return e;
    const int32_t own_code = code_of(p, &tokens), next_code = code != NO_CODE ? code : own_code;
    const int64_t count = tokens.count + (code != NO_CODE);
    p->tokens = p->tokens ? p->tokens : count; /* the tokens of the whole text, which is added first */
    if (count <= p->max_tokens && tokens.count > minimum(own_code))
        e = add_segment(p, number, code, &tokens);
    att_tokens_free(p->ctx, &tokens);
    if (e || count <= p->max_tokens)
        return e;
    const size_t split_at = p->split ? find_split(text, bytes) : 0;
    if (split_at == 0)
        return fail_long(p, number, count);
    e = add(p, number, code, text, split_at);
    return e ? e : add(p, number, next_code, text + split_at, bytes - split_at);
}

att_status att_text_segments_add(att_text_segments *p, int64_t number, const char *text, size_t bytes)
{
    p->tokens = 0;
    return add(p, number, NO_CODE, text, bytes);
}

att_status att_text_segments_add_ids(att_text_segments *p, int64_t number, const int32_t *ids, int64_t n)
{
    att_tokens tokens = {.count = n};
    p->tokens = n;
    if (n > p->max_tokens)
        return fail_long(p, number, n);
    tokens.ids = att_alloc(p->ctx, (size_t)n + 1, sizeof *ids);
    if (!tokens.ids)
        return ATT_ERR_MEMORY;
    if (n > 0)
        memcpy(tokens.ids, ids, (size_t)n * sizeof *ids);
    const att_status e = n > minimum(code_of(p, &tokens)) ? add_segment(p, number, NO_CODE, &tokens) : ATT_OK;
    att_tokens_free(p->ctx, &tokens);
    return e;
}

void att_text_segments_truncate(att_text_segments *p, int64_t count)
{
    while (p->count > count)
        att_tokens_free(p->ctx, &p->segment[--p->count].tokens);
}

void att_text_segments_free(att_text_segments *p)
{
    att_text_segments_truncate(p, 0);
    att_free(p->ctx, p->segment);
    p->segment = NULL;
    p->room = 0;
}
