/* An allocator for tests: fails at the n-th call, or at several from there, counts what lives and what lived at most.
 * Safe from several threads.
 *
 *     fail_alloc f = {.fail_at = n};                       // 0: never
 *     att_open(&ctx, ATT_OPTIONS(att_config, .allocator = fail_allocator(&f)));
 *     ... att_close(ctx); assert_int_equal(f.live, 0);
 */
#ifndef FAIL_ALLOC_H
#define FAIL_ALLOC_H

#include "attend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

typedef struct fail_alloc {
    long fail_at;      /* this call to alloc, counted from 1, gives NULL; 0: none does */
    long more;         /* and the next `more` calls, too */
    atomic_long calls; /* of alloc so far */
    atomic_long live;  /* blocks not yet freed */
    atomic_long bytes; /* of these */
    atomic_long peak;  /* the most bytes at once */
} fail_alloc;

/* Before each block lies what its size is. */
typedef struct fail_block {
    void *start;
    size_t bytes;
} fail_block;

static inline fail_block *fail_block_of(void *p) { return (fail_block *)p - 1; }

static inline void *fail_alloc_take(void *user, size_t bytes, size_t alignment)
{
    fail_alloc *f = user;
    const long call = ++f->calls;
    void *start = NULL;
    const bool fails = f->fail_at > 0 && call >= f->fail_at && call <= f->fail_at + f->more;
    if (fails || bytes > PTRDIFF_MAX - alignment || posix_memalign(&start, alignment, bytes + alignment))
        return NULL;
    void *p = (char *)start + alignment;
    *fail_block_of(p) = (fail_block){start, bytes};
    f->live++;
    const long now = atomic_fetch_add(&f->bytes, (long)bytes) + (long)bytes;
    for (long peak = f->peak; now > peak && !atomic_compare_exchange_weak(&f->peak, &peak, now);)
        ;
    return p;
}

static inline void fail_alloc_give(void *user, void *p)
{
    fail_alloc *f = user;
    const fail_block b = *fail_block_of(p);
    f->live--;
    f->bytes -= (long)b.bytes;
    free(b.start);
}

static inline att_allocator fail_allocator(fail_alloc *f)
{
    return (att_allocator){fail_alloc_take, fail_alloc_give, f};
}

/* A context with one thread, which must open. */
static inline att_ctx *fail_open(fail_alloc *f)
{
    att_ctx *ctx;
    assert_int_equal(att_open(&ctx, ATT_OPTIONS(att_config, .n_threads = 1, .allocator = fail_allocator(f))), ATT_OK);
    return ctx;
}

#endif
