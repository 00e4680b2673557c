/* The base of the library: context, errors, memory, threads, the operating system. */
#ifndef ATT_BASE_H
#define ATT_BASE_H

#include "attend_util.h"

#include <pthread.h>

typedef struct att_thread_pool att_thread_pool;

struct att_ctx {
    int isa;                /* index into the kernel tables */
    int n_threads;          /* at opening; bodies have smaller numbers, so scratch memory is for this many */
    _Atomic uint32_t limit; /* number of threads, at most n_threads: att_set_threads */
    int64_t cached;         /* floats that fit in a core's L2 cache */
    int ways;               /* associativity of the L1 data cache; 0: unknown */
    att_allocator allocator;
    att_parallel_fn parallel_for; /* the caller's, or NULL: the pool's */
    void *parallel_user;
    att_thread_pool *pool; /* NULL with one thread, or with the caller's parallel_for */
    const volatile int *cancel;
    att_note_fn note; /* or NULL */
    void *note_user;
};

/* ---- errors, and structs with a size field (error.c): all public */

/* ---- memory (memory.c): att_alloc and att_free are public; all results are 64-byte aligned */

/* a * b, or SIZE_MAX on overflow (which no allocation satisfies). */
size_t att_size_mul(size_t a, size_t b);

/* An arena: releasing a mark frees all that was allocated after it, last in first out. Blocks never move. */
typedef struct att_arena_block att_arena_block;
typedef struct att_arena {
    att_ctx *ctx;
    att_arena_block *first, *current;
    size_t used;     /* total bytes allocated: the mark */
    size_t max_used; /* maximum of used */
    bool tight;      /* for out-of-memory tests: each block has room for a single allocation */
} att_arena;
void att_arena_init(att_arena *a, att_ctx *ctx);
void *att_arena_alloc(att_arena *a, size_t bytes); /* NULL: error set */
size_t att_arena_mark(const att_arena *a);
void att_arena_release(att_arena *a, size_t mark); /* keeps the blocks */
void att_arena_reset(att_arena *a);                /* merges all blocks into one of max_used bytes */
size_t att_arena_bytes(const att_arena *a);        /* bytes of all blocks */
void att_arena_trim(att_arena *a);                 /* frees blocks without allocations */
void att_arena_free(att_arena *a);

/* ---- threads (pool.c) */

enum { ATT_MAX_THREADS = 1024 };

/* Opens a pool of n_threads - 1 workers besides the caller, where n_threads is the context's. Idle workers spin for at
 * most 50 us, then sleep. After an error *out must still be closed. */
att_status att_pool_open(att_ctx *ctx, att_thread_pool **out);
void att_pool_close(att_ctx *ctx, att_thread_pool *p); /* p may be NULL */

/* Calls body(arg, i, thread) for each i in [0, n), in parallel, in any order. att_parallel_for (public) is the same
 * without `thread`. `thread`, in [0, ctx->n_threads), selects scratch memory: within ONE call no two bodies with the
 * same number run at the same time. Concurrent or nested calls share numbers, so scratch belongs to a call, never to
 * the context. If the pool is busy, or the call is nested, it runs serially as thread 0; a call with n = 1 does not
 * occupy the pool, so a call nested in it may use it. With the caller's own parallel_for, the work is split into
 * att_threads(ctx) worker loops, numbered by `thread`. Bodies begin in ascending order of i and run in the default
 * floating-point environment, whatever the host's. */
void att_parallel(att_ctx *ctx, int n, void (*body)(void *arg, int i, int thread), void *arg);
/* Runs many tasks in parallel, neighbors on one thread if possible (partition.c); no order is defined. */
void att_parallel_partition(att_ctx *ctx, int64_t n, void (*body)(void *arg, int64_t i, int thread), void *arg);

/* Hints to the processor that this loop waits for another thread. */
static inline void att_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* ---- the operating system (os.c): every OS call of the library is here */

int att_os_cpu_count(void); /* by affinity and cgroup (v1, v2) quota, at least 1 */
/* Processors allowed by the cgroup quota, rounded up; 0: no limit. /proc and /sys are read below root (normally ""). */
int64_t att_os_cpu_quota(const char *root);
/* Returns the bytes that can still be allocated, by free memory and cgroup limits; 0: unknown. Reads below root,
 * too. */
size_t att_os_memory(const char *root);
/* Returns the bytes of the data cache of level 1 to 3 as /sys lists it; 0: it is not listed. */
size_t att_os_listed_cache(const char *root, int level);
size_t att_os_cache(int level);                     /* bytes of the data cache of level 1 to 3; 0: unknown */
bool att_os_allow_tiles(void);                      /* enables AMX tile registers for the process; false: refused */
double att_os_seconds(void);                        /* monotonic */
void *att_os_alloc(size_t bytes, size_t alignment); /* uses huge pages for large blocks; NULL on failure */
void att_os_free(void *p);
/* Releases the whole pages of [p, p + bytes), of a file that is mapped for reading; a later read brings them back. */
void att_os_release(const void *p, size_t bytes);
/* Starts a thread with all signals blocked; false if refused, errno has the reason. */
bool att_os_thread(pthread_t *thread, void *(*run)(void *), void *arg);
/* Futex: att_os_wait sleeps while *word is `value`, but may return early; att_os_wake wakes up to `count` sleepers. */
void att_os_wait(_Atomic uint32_t *word, uint32_t value);
void att_os_wake(_Atomic uint32_t *word, int count);
void att_os_yield(void); /* gives the processor to other threads */
/* The current process, to detect a fork: a child has the parent's memory but none of its threads. */
typedef struct att_os_process {
    _Atomic int id;
    _Atomic bool *here; /* a page that is zeroed in a child; NULL: not supported by the system */
} att_os_process;
att_os_process att_os_process_here(void);
void att_os_process_renew(att_os_process *p); /* for a child, whose threads then see what was written before */
void att_os_process_forget(att_os_process *p);
bool att_os_process_is(const att_os_process *p); /* whether it is the running process; takes nanoseconds */
/* A lock for rare use; 0: unlocked. A lock that another thread held during a fork counts as unlocked in the child. */
typedef struct att_lock {
    _Atomic uint32_t holder; /* process id */
} att_lock;
void att_lock_acquire(att_lock *l);
void att_lock_release(att_lock *l);

#endif
