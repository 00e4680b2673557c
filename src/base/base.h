/* The floor of the house: context, errors, memory, threads. */
#ifndef ATT_BASE_H
#define ATT_BASE_H

#include "attend.h"

#include <pthread.h>

typedef struct att_thread_pool att_thread_pool;

struct att_ctx {
    int isa; /* index into the kernel tables */
    int n_threads;
    int64_t cached; /* floats that a thread's second-level cache has room for */
    int ways;       /* lines of addresses a page apart that the first-level cache holds together; 0: unknown */
    att_allocator allocator;
    att_parallel_fn parallel_for; /* the caller's, or NULL: the pool's */
    void *parallel_user;
    att_thread_pool *pool; /* NULL with one thread, or with the caller's parallel_for */
    const volatile int *cancel;
};

/* ---- errors, and structs with a size (error.c): all public */

/* ---- memory (memory.c): att_alloc and att_free are public; all results are 64-byte aligned */

/* a * b, or SIZE_MAX where that overflows (which no allocation satisfies). */
size_t att_size_mul(size_t a, size_t b);

/* An arena: memory that is freed together, in the reverse order of marks. Blocks never move. */
typedef struct att_arena_block att_arena_block;
typedef struct att_arena {
    att_ctx *ctx;
    att_arena_block *first, *current;
    size_t used; /* total bytes handed out: the mark */
    size_t most; /* that there ever were */
    bool tight;  /* for tests of a lack of memory: a block has room for the allocation that it is made for, no more */
} att_arena;
void att_arena_init(att_arena *a, att_ctx *ctx);
void *att_arena_alloc(att_arena *a, size_t bytes); /* NULL: error set */
size_t att_arena_mark(const att_arena *a);
void att_arena_release(att_arena *a, size_t mark); /* keeps the blocks */
void att_arena_reset(att_arena *a);                /* next time all that was used before fits in one block */
void att_arena_free(att_arena *a);

/* ---- threads (pool.c) */

enum { ATT_MAX_THREADS = 1024 };

/* n_threads - 1 threads beside the caller's. They spin at most 50 us before they sleep. On error *out is NULL. */
att_status att_pool_open(att_ctx *ctx, int n_threads, att_thread_pool **out);
void att_pool_close(att_ctx *ctx, att_thread_pool *p); /* NULL is allowed */

/* body(arg, i, thread) for each i in [0, n), in any order; att_parallel_for (public) is the same without `thread`.
 * `thread`, in [0, att_threads(ctx)), is for scratch memory: no two bodies of ONE call run at the same time with the
 * same number. Two calls at the same time (two callers, or a nested one) do share numbers, so scratch belongs to the
 * call, never to the context. A call that finds the threads taken, or is made inside another, runs alone as thread 0;
 * a call with n = 1 takes no threads, so one inside it may.
 * With the caller's own parallel_for, the call is split into att_threads(ctx) strands, whose number `thread` is.
 * Bodies begin in ascending order of i, and run with the default floating-point environment, whatever the host's. */
void att_parallel(att_ctx *ctx, int n, void (*body)(void *arg, int i, int thread), void *arg);
/* The same for many tasks, of which neighbours are best done by one thread (partition.c); in no order. */
void att_parallel_partition(att_ctx *ctx, int64_t n, void (*body)(void *arg, int64_t i, int thread), void *arg);

/* In a loop that waits for another thread: lets the processor do something else. */
static inline void att_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* ---- the operating system (os.c): every OS call of the library is here */

int att_os_cpu_count(void); /* by affinity and cgroup (v1, v2) quota, at least 1 */
/* With /proc and /sys below root (""): processors by cgroup quota alone, rounded up; 0: no limit. */
int64_t att_os_cpu_quota(const char *root);
/* The same for bytes that can still be had, by the system's free memory and cgroup limits; 0: unknown. */
size_t att_os_memory(const char *root);
size_t att_os_cache(int level);                     /* bytes of the data cache of level 1 to 3; 0: unknown */
bool att_os_allow_tiles(void);                      /* AMX: this process may use them from now on */
double att_os_seconds(void);                        /* monotonic */
void *att_os_alloc(size_t bytes, size_t alignment); /* large ones ask for huge pages; NULL on failure */
void att_os_free(void *p);
/* Starts a thread with all signals blocked: false if refused. */
bool att_os_thread(pthread_t *thread, void *(*run)(void *), void *arg);
/* Sleeps while *word is `value`; may return early. Wakes up to `count` that sleep on it. */
void att_os_wait(_Atomic uint32_t *word, uint32_t value);
void att_os_wake(_Atomic uint32_t *word, int count);
void att_os_yield(void); /* lets other threads run */
/* The process that asks first; a child that it forks is another one, and has its memory but none of its threads. */
typedef struct att_os_process {
    int id;
    const volatile bool *here; /* a page that is empty in a child; NULL: the system has none */
} att_os_process;
att_os_process att_os_process_here(void);
void att_os_process_forget(att_os_process *p);
bool att_os_process_is(const att_os_process *p); /* Is it the one that runs? Some nanoseconds, mostly */
/* For what is rare; 0: free. One that was held where fork was called is free in the child: its holder is not there. */
typedef struct att_lock {
    _Atomic uint32_t holder; /* a process */
} att_lock;
void att_lock_take(att_lock *l);
void att_lock_give(att_lock *l);

#endif
