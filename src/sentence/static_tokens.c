/* Tokenizes texts for static embeddings: truncates characters and tokens, and removes unknown tokens. */
#include "attend_util.h"
#include "sentence/static_model.h"
#include "text/trie.h"

#include <stdlib.h>
#include <string.h>

/* ---- characters */

/* Returns the bytes of the first `max` characters of text [bytes]. */
static size_t first_characters(const char *text, size_t bytes, int64_t max)
{
    size_t at = 0;
    if ((uint64_t)bytes <= (uint64_t)max)
        return bytes;
    for (; at < bytes && max > 0; max--) {
        uint32_t code;
        at += att_utf8_decode(text + at, bytes - at, &code);
    }
    return at;
}

static int32_t characters(const char *text)
{
    const size_t bytes = strlen(text);
    uint32_t code;
    int32_t n = 0;
    for (size_t at = 0; at < bytes; n++)
        at += att_utf8_decode(text + at, bytes - at, &code);
    return n;
}

static int ascending(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* Computes the median of the lengths of all tokens in characters, rounded down. */
static att_status median_length(const att_static_model *m, int64_t *median)
{
    const int64_t size = att_tokenizer_size(m->tokenizer);
    int32_t *length = att_alloc(m->model.ctx, (size_t)size + 1, sizeof *length);
    int64_t n = 0;
    *median = 0;
    if (!length)
        return ATT_ERR_MEMORY;
    for (int64_t id = 0; id < size; id++) {
        const char *token = att_tokenizer_token(m->tokenizer, (int32_t)id);
        if (token)
            length[n++] = characters(token);
    }
    if (n > 0) {
        qsort(length, (size_t)n, sizeof *length, ascending);
        *median = ((int64_t)length[(n - 1) / 2] + length[n / 2]) / 2;
    }
    att_free(m->model.ctx, length);
    return ATT_OK;
}

att_status att_static_limit_characters(att_static_model *m)
{
    int64_t median;
    m->max_characters = -1;
    const att_status s = m->max_tokens > 0 ? median_length(m, &median) : ATT_OK;
    if (!s && m->max_tokens > 0 && __builtin_mul_overflow(m->max_tokens, median, &m->max_characters))
        m->max_characters = -1;
    return s;
}

/* ---- tokens */

static void remove_unknown(att_tokens *tokens, int32_t unknown)
{
    int64_t n = 0;
    for (int64_t i = 0; i < tokens->count; i++)
        if (tokens->ids[i] != unknown)
            tokens->ids[n++] = tokens->ids[i];
    tokens->count = n;
}

/* Computes the lengths of texts [n] in bytes, without what is beyond max_characters -> shorter [n]. */
static void truncate(const att_static_model *m, int64_t n, const char *const *texts, const size_t *bytes,
                     size_t *shorter)
{
    for (int64_t i = 0; i < n; i++) {
        const size_t all = bytes ? bytes[i] : strlen(texts[i]);
        shorter[i] = m->max_characters < 0 ? all : first_characters(texts[i], all, m->max_characters);
    }
}

att_status att_static_tokenize(const att_static_model *m, int64_t n, const char *const *texts, const size_t *bytes,
                               att_tokens *out)
{
    const att_tokenize_options o = {.size = sizeof o, .max_tokens = m->max_tokens, .no_special = true};
    const int32_t unknown = m->model2vec ? att_tokenizer_special(m->tokenizer, ATT_TOKEN_UNK) : ATT_NO_ID;
    if (m->max_characters < 0 && unknown == ATT_NO_ID)
        return att_tokenize_batch(m->tokenizer, n, texts, bytes, &o, out);
    size_t *shorter = att_alloc(m->model.ctx, (size_t)n + 1, sizeof *shorter);
    if (!shorter)
        return ATT_ERR_MEMORY;
    truncate(m, n, texts, bytes, shorter);
    const att_status s = att_tokenize_batch(m->tokenizer, n, texts, shorter, &o, out);
    for (int64_t i = 0; !s && i < n; i++) {
        out[i].truncated |= shorter[i] < (bytes ? bytes[i] : strlen(texts[i]));
        if (unknown != ATT_NO_ID)
            remove_unknown(&out[i], unknown);
    }
    att_free(m->model.ctx, shorter);
    return s;
}
