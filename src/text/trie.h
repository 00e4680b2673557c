/* A trie of byte strings, for longest-prefix matching. */
#ifndef ATT_TRIE_H
#define ATT_TRIE_H

#include "attend_util.h"

#define ATT_NO_ID (-1)

typedef struct att_trie_entry {
    const char *text; /* [bytes], not empty */
    size_t bytes;
    int32_t id;
} att_trie_entry;

/* Compares the texts of two entries by their bytes, for qsort. */
int att_trie_order(const void *a, const void *b);

/* The children of a node are adjacent, sorted by byte. */
typedef struct att_trie_node {
    uint32_t first; /* index of the first child */
    int32_t id;     /* of the text that ends here, or ATT_NO_ID */
    uint16_t count; /* number of children */
    uint8_t byte;   /* on the edge to this node */
} att_trie_node;

typedef struct att_trie {
    att_ctx *ctx;
    att_trie_node *node; /* [size]; the first is the root */
    uint32_t size;
} att_trie;

/* Builds a trie of entries [n], sorted by att_trie_order; of entries with equal texts the last counts. After an error
 * nothing needs to be freed. */
att_status att_trie_init(att_trie *t, att_ctx *ctx, const att_trie_entry *entries, size_t n);
void att_trie_free(att_trie *t);

/* Returns the id of the longest text at the start of s [bytes], and its length; ATT_NO_ID and 0: none. */
int32_t att_trie_longest(const att_trie *t, const char *s, size_t bytes, size_t *length);

/* Returns the child of node `at` for a byte; 0 (the root's index): none. */
static inline uint32_t att_trie_step(const att_trie *t, uint32_t at, char byte)
{
    const uint8_t wanted = (uint8_t)byte;
    uint32_t low = t->node[at].first, count = t->node[at].count;
    while (count > 1) { /* branch-free binary search */
        const uint32_t half = count / 2;
        low += t->node[low + half].byte <= wanted ? half : 0;
        count -= half;
    }
    return count && t->node[low].byte == wanted ? low : 0;
}
/* Returns the node that text s [bytes] leads to from node `at`; 0: none. */
static inline uint32_t att_trie_walk(const att_trie *t, uint32_t at, const char *s, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if ((at = att_trie_step(t, at, s[i])) == 0)
            return 0;
    return at;
}

#endif
