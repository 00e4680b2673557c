/* The floor of the house: context, errors, memory, threads. */
#ifndef ATT_BASE_H
#define ATT_BASE_H

#include "attend.h"

typedef struct att_thread_pool att_thread_pool;

struct att_ctx {
    int isa; /* index into the kernel tables */
    int n_threads;
    att_allocator allocator;
    att_parallel_fn parallel_for; /* the caller's, or NULL: the pool's */
    void *parallel_user;
    att_thread_pool *pool;
    const volatile int *cancel;
};

/* ---- errors (error.c): att_fail and att_error are public */

/* Copies an option struct whose size field may be that of an older or newer header: unknown bytes
 * must be zero. src NULL = all defaults. Each option struct starts with its size_t size. */
att_status att_take_options(void *dst, size_t dst_size, const void *src, const char *type_name);

/* ---- memory (memory.c): att_alloc and att_free are public; all results are 64-byte aligned */

void *att_calloc(att_ctx *ctx, size_t count, size_t element_size);
/* a * b, or SIZE_MAX where that overflows (which no allocation satisfies). */
size_t att_size_mul(size_t a, size_t b);

/* An arena: memory that is freed together, in the reverse order of marks. Blocks never move. */
typedef struct att_arena_block att_arena_block;
typedef struct att_arena {
    att_ctx *ctx;
    att_arena_block *first, *current;
    size_t used; /* total bytes handed out: the mark */
} att_arena;
void att_arena_init(att_arena *a, att_ctx *ctx);
void *att_arena_alloc(att_arena *a, size_t bytes); /* NULL: error set */
size_t att_arena_mark(const att_arena *a);
void att_arena_release(att_arena *a, size_t mark); /* keeps the blocks */
void att_arena_free(att_arena *a);

/* ---- threads (pool.c) */

/* n - 1 threads beside the caller's. Spins at most 50 us before it sleeps. NULL: error set. */
att_status att_pool_open(att_ctx *ctx, int n_threads, att_thread_pool **out);
void att_pool_close(att_ctx *ctx, att_thread_pool *p);
/* att_parallel_for (public) runs on it; a second caller at the same time, or a nested call, runs alone.
 * The same with the number of the thread that runs the body, in [0, att_threads(ctx)), for scratch memory. With the
 * caller's own parallel_for, n is split into att_threads(ctx) strands, whose number that is. */
void att_parallel(att_ctx *ctx, int n, void (*body)(void *arg, int i, int thread), void *arg);

/* ---- the operating system (os.c): every OS call of the library is here */

int att_os_cpu_count(void);     /* by affinity and cgroup (v1, v2) quota, at least 1 */
double att_os_seconds(void);    /* monotonic */
void *att_os_alloc(size_t bytes, size_t alignment); /* large ones ask for huge pages */
void att_os_free(void *p);

#endif
