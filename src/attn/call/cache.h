/* Declarations that cache.c and cache_append.c share: a cache, its sequences and their pages. */
#ifndef ATT_ATTN_CACHE_H
#define ATT_ATTN_CACHE_H

#include "attn/call/call.h"

enum {
    ATT_CACHE_SLAB = ATT_KEY_SEGMENT / ATT_KEY_BLOCK, /* pages that are allocated together */
    ATT_CACHE_SIZES = 4                               /* of pages: ATT_KEY_BLOCK tokens, half as many, ... */
};

/* A page; head h begins at `at` + h ATT_CACHE_SLAB head_bytes: keys [tokens / panel][key_dim][panel], values
 * [tokens][value_dim] */
struct att_page {
    char *at;
    att_page *next; /* next page of the free list */
    int64_t users;  /* number of sequences that have it */
    int size;       /* it has room for ATT_KEY_BLOCK >> size tokens */
};

/* A sequence. Several pages are all of size 0. */
typedef struct att_cached_sequence {
    att_page **page; /* [room], the first `pages` are in use: as many as `length` needs */
    int64_t pages, room, length;
    bool loose;     /* keys of a panel that is not full are rows; the panel may have been full before */
    att_page *past; /* the page whose content is still to be copied to its last page, or NULL */
} att_cached_sequence;

struct att_cache {
    att_ctx *ctx;
    const att_kernels *kernels;
    att_dtype dtype;
    int64_t kv_heads, key_dim, value_dim, sequences;
    size_t key_bytes, value_bytes; /* of a token, for each head */
    att_arena slabs, pages;        /* the memory of pages, and their structs: the thread that fills a page touches it
                                    * first */
    att_page *free_pages[ATT_CACHE_SIZES];
    att_cached_sequence *sequence;
};

/* Return the bytes of a head's keys in a page, with its values, and where the head begins. */
static inline size_t att_cache_keys_bytes(const att_cache *c, int size)
{
    return c->key_bytes * (ATT_KEY_BLOCK >> size);
}
static inline size_t att_cache_head_bytes(const att_cache *c, int size)
{
    return att_cache_keys_bytes(c, size) + c->value_bytes * (ATT_KEY_BLOCK >> size);
}
static inline size_t att_cache_head_at(const att_cache *c, int64_t head, int size)
{
    return (size_t)head * ATT_CACHE_SLAB * att_cache_head_bytes(c, size);
}

/* Finds sequences [*first, *last): one, or ATT_ALL_SEQUENCES. */
att_status att_cache_find(const att_cache *c, int64_t sequence, int64_t *first, int64_t *last);
/* Replaces the last page of a sequence by a page of its own, if it is shared and tokens will be added to it.
 * att_cache_copy_shared then copies the content, of all sequences [first, last) at once. */
att_status att_cache_own_last_page(att_cache *c, att_cached_sequence *h);
void att_cache_copy_shared(att_cache *c, int64_t first, int64_t last);
/* Makes room for n more tokens: a single larger page, or further pages. */
att_status att_cache_make_room(att_cache *c, att_cached_sequence *h, int64_t n);
/* Releases the pages that a sequence's length does not need. */
void att_cache_trim(att_cache *c, att_cached_sequence *h);

#endif
