#include "text/trie.h"

#include <string.h>

/* The entries below a node; their first `depth` bytes are equal. */
typedef struct range {
    size_t begin, end, depth;
} range;

int att_trie_order(const void *a, const void *b)
{
    const att_trie_entry *x = a, *y = b;
    const int order = memcmp(x->text, y->text, x->bytes < y->bytes ? x->bytes : y->bytes);
    return order ? order : (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static size_t shared_prefix(att_trie_entry a, att_trie_entry b)
{
    size_t n = 0;
    while (n < a.bytes && n < b.bytes && a.text[n] == b.text[n])
        n++;
    return n;
}

/* Sets the id of node `at` and appends its children, with their ranges, after the `used` nodes; returns the new
 * number. */
static uint32_t expand(att_trie *t, range *ranges, const att_trie_entry *entries, uint32_t at, uint32_t used)
{
    range r = ranges[at];
    att_trie_node *node = &t->node[at];
    node->id = ATT_NO_ID;
    for (; r.begin < r.end && entries[r.begin].bytes == r.depth; r.begin++) /* the shortest come first */
        node->id = entries[r.begin].id;
    node->first = used;
    while (r.begin < r.end) {
        const char byte = entries[r.begin].text[r.depth];
        size_t end = r.begin + 1;
        while (end < r.end && entries[end].text[r.depth] == byte)
            end++;
        t->node[used].byte = (uint8_t)byte;
        ranges[used++] = (range){r.begin, end, r.depth + 1};
        r.begin = end;
    }
    node->count = (uint16_t)(used - node->first);
    return used;
}

att_status att_trie_init(att_trie *t, att_ctx *ctx, const att_trie_entry *entries, size_t n)
{
    size_t nodes = 1;
    for (size_t i = 0; i < n; i++)
        nodes += entries[i].bytes - (i > 0 ? shared_prefix(entries[i - 1], entries[i]) : 0);
    *t = (att_trie){.ctx = ctx, .size = (uint32_t)nodes};
    if (nodes > UINT32_MAX)
        return att_fail(ctx, ATT_ERR_UNSUPPORTED, "the pieces have %zu bytes, more than %u", nodes, UINT32_MAX);
    t->node = att_alloc(ctx, nodes, sizeof *t->node);
    range *ranges = att_alloc(ctx, nodes, sizeof *ranges);
    const bool made = t->node && ranges;
    if (made) {
        ranges[0] = (range){0, n, 0};
        for (uint32_t at = 0, used = 1; at < used; at++)
            used = expand(t, ranges, entries, at, used);
    }
    att_free(ctx, ranges);
    if (made)
        return ATT_OK;
    att_trie_free(t);
    return ATT_ERR_MEMORY;
}

void att_trie_free(att_trie *t)
{
    att_free(t->ctx, t->node);
    t->node = NULL;
}

int32_t att_trie_longest(const att_trie *t, const char *s, size_t bytes, size_t *length)
{
    int32_t id = ATT_NO_ID;
    uint32_t node = 0;
    *length = 0;
    for (size_t i = 0; i < bytes && (node = att_trie_step(t, node, s[i])) != 0; i++) {
        if (t->node[node].id == ATT_NO_ID)
            continue;
        id = t->node[node].id;
        *length = i + 1;
    }
    return id;
}
