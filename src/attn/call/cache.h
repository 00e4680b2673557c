/* What cache.c and cache_append.c share: a cache, its sequences and their pages. */
#ifndef ATT_ATTN_CACHE_H
#define ATT_ATTN_CACHE_H

#include "attn/call/call.h"

enum {
    ATT_CACHE_SLAB = ATT_KEY_SEGMENT / ATT_KEY_BLOCK, /* pages that are made together */
    ATT_CACHE_SIZES = 4                               /* of pages: ATT_KEY_BLOCK tokens, half as many, ... */
};

/* A page; head h begins at `at` + h ATT_CACHE_SLAB head_bytes: keys [tokens / panel][key_dim][panel], values
 * [tokens][value_dim] */
struct att_page {
    char *at;
    att_page *next; /* of the free ones */
    int64_t users;  /* sequences that it is part of */
    int size;       /* it has room for ATT_KEY_BLOCK >> size tokens */
};

/* A sequence. Several pages are all of size 0. */
typedef struct att_cached_sequence {
    att_page **page; /* [room], the first `pages` are in use: as many as `length` needs */
    int64_t pages, room, length;
    bool loose;     /* keys of a panel that is not full are rows; it may be an older one, which was full */
    att_page *past; /* what its last page is yet to become a copy of, or NULL */
} att_cached_sequence;

struct att_cache {
    att_ctx *ctx;
    const att_kernels *kernels;
    att_dtype dtype;
    int64_t kv_heads, key_dim, value_dim, sequences;
    size_t key_bytes, value_bytes; /* of a token, for each head */
    att_arena slabs, pages;        /* what pages have, and their structs: who fills a page is who first touches it */
    att_page *free_pages[ATT_CACHE_SIZES];
    att_cached_sequence *sequence;
};

/* In a page: a head's keys, with its values, and where the head begins. */
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

/* Sequences [*first, *last): one, or ATT_ALL_SEQUENCES. */
att_status att_cache_find(const att_cache *c, int64_t sequence, int64_t *first, int64_t *last);
/* The last page of a sequence becomes its own, if tokens are to go there and it is shared; its content follows with
 * att_cache_copy_shared, of all of sequences [first, last) at once. */
att_status att_cache_own_last_page(att_cache *c, att_cached_sequence *h);
void att_cache_copy_shared(att_cache *c, int64_t first, int64_t last);
/* Pages for n more tokens: one for all that is larger than before, or more of them. */
att_status att_cache_make_room(att_cache *c, att_cached_sequence *h, int64_t n);
/* Drops the pages that a sequence's length does not need. */
void att_cache_trim(att_cache *c, att_cached_sequence *h);

#endif
