#include "text/added_tokens.h"

#include <stdlib.h>
#include <string.h>

att_status att_added_tokens_init(att_added_tokens *a, att_ctx *ctx, size_t max)
{
    *a = (att_added_tokens){.ctx = ctx};
    if (max == 0)
        return ATT_OK;
    a->token = att_alloc(ctx, max, sizeof *a->token);
    return a->token ? ATT_OK : ATT_ERR_MEMORY;
}

void att_added_tokens_free(att_added_tokens *a)
{
    att_free(a->ctx, a->token);
    a->token = NULL;
}

void att_added_tokens_add(att_added_tokens *a, att_added_token token)
{
    a->begins[(unsigned char)token.text[0]] = true;
    a->token[a->count++] = token;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(((const att_added_token *)a)->text, ((const att_added_token *)b)->text);
}

void att_added_tokens_sort(att_added_tokens *a)
{
    if (a->count > 0)
        qsort(a->token, (size_t)a->count, sizeof *a->token, by_text);
}

/* The first of the tokens [first, end) whose byte i is at least `c`; all are sorted, equal up to byte i, and longer
 * than i. */
static const att_added_token *first_from(const att_added_token *first, const att_added_token *end, size_t i, int byte)
{
    while (first < end) {
        const att_added_token *middle = first + (end - first) / 2;
        if ((unsigned char)middle->text[i] < byte)
            first = middle + 1;
        else
            end = middle;
    }
    return end;
}

/* Narrows the range byte by byte to the tokens that begin like s. */
const att_added_token *att_added_tokens_find(const att_added_tokens *a, const char *s, size_t bytes)
{
    const att_added_token *first = a->token, *end = first + a->count, *longest = NULL;
    for (size_t i = 0; first < end; i++) {
        for (; first < end && first->bytes == i; first++)
            longest = first;
        if (i == bytes)
            break;
        const int byte = (unsigned char)s[i];
        first = first_from(first, end, i, byte);
        end = first_from(first, end, i, byte + 1);
    }
    return longest;
}
