/* The thread pool. The caller announces a job and opens a gate; workers that are awake enter, take indices from a
 * shared counter until none is left, and leave. The caller works too, then shuts the gate and waits only for workers
 * that have entered: a worker that still sleeps or was descheduled delays nothing. Workers beyond the context's limit
 * of threads park until it rises. A forked child has no workers and the parent's state of the pool: its first call
 * makes both anew, in the same memory.
 *
 *    caller   job, gate open, announce | work ............ | gate shut, wait until empty
 *    worker        spin or sleep       | enter, work, leave */
#include "base/base.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <string.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#else
#include <fenv.h>
#endif

#define SPIN_SECONDS 50e-6
enum { CACHE_LINE = 64 };

/* The gate: the number of workers inside, and two flags. */
enum { INSIDE = 0xffff, OPEN = 0x10000, CALLER_SLEEPS = 0x20000 };

typedef struct pool_job {
    void (*body)(void *arg, int i, int thread);
    void *arg;
    int n;
    const volatile int *cancel; /* the caller's flag, att_cancel_by */
    atomic_llong next;          /* first index not yet taken */
} pool_job;

struct att_thread_pool {
    att_ctx *ctx;
    att_os_process process; /* process of the workers, and of all that follows */
    att_lock renewal;
    int n_workers;
    int processors;
    atomic_bool quit;  /* set before the last announcement */
    atomic_bool taken; /* in use by a caller */

    _Alignas(CACHE_LINE) _Atomic uint32_t announced; /* number of announcements; workers spin and sleep on it */
    atomic_int sleepers;

    _Alignas(CACHE_LINE) _Atomic uint32_t gate;
    pool_job *job; /* on the caller's stack; valid while workers are inside */

    _Alignas(CACHE_LINE) struct worker {
        att_thread_pool *pool;
        pthread_t thread;
        int number; /* from 1; 0 is the caller */
    } worker[];
};

/* ---- the worker loop: takes indices until none is left */

static _Thread_local bool inside; /* whether this thread runs a body of a parallel call */
/* The flag of this thread's calls, and of the call whose body it runs */
static _Thread_local const volatile int *cancel_flag;

#if defined(__x86_64__)
typedef unsigned fp_state;
enum { MXCSR_DEFAULT = 0x1f80, MXCSR_FLAGS = 0x3f };

/* Sets rounding to nearest, denormals on, exceptions masked: the same bits whatever the host has set. */
static fp_state fp_enter(void)
{
    const fp_state host = _mm_getcsr();
    if ((host & ~MXCSR_FLAGS) != MXCSR_DEFAULT)
        _mm_setcsr(MXCSR_DEFAULT);
    return host;
}

static void fp_leave(fp_state host)
{
    if ((host & ~MXCSR_FLAGS) != MXCSR_DEFAULT)
        _mm_setcsr(host);
}

#else
typedef fenv_t fp_state;

static fp_state fp_enter(void)
{
    fp_state host;
    fegetenv(&host);
    fesetenv(FE_DFL_ENV);
    return host;
}

static void fp_leave(fp_state host) { fesetenv(&host); }
#endif

const volatile int *att_cancel_by(const volatile int *flag)
{
    const volatile int *before = cancel_flag;
    cancel_flag = flag;
    return before;
}

static bool is_set(const volatile int *flag) { return flag && __atomic_load_n(flag, __ATOMIC_RELAXED); }

bool att_cancelled(const att_ctx *ctx) { return ctx && (is_set(ctx->cancel) || is_set(cancel_flag)); }

static void worker_loop(pool_job *j, int thread)
{
    const volatile int *before = att_cancel_by(j->cancel);
    inside = true;
    for (long long i; (i = atomic_fetch_add_explicit(&j->next, 1, memory_order_relaxed)) < j->n;)
        j->body(j->arg, (int)i, thread);
    inside = false;
    att_cancel_by(before);
}

/* ---- waiting */

/* Spins for a limited time while *word is value; returns whether it has changed. With more threads than processors,
 * spinning would take time from working threads. */
static bool spin(const att_thread_pool *p, _Atomic uint32_t *word, uint32_t value)
{
    if (atomic_load_explicit(word, memory_order_acquire) != value)
        return true;
    const double end = att_os_seconds() + (atomic_load(&p->ctx->limit) <= (uint32_t)p->processors ? SPIN_SECONDS : 0);
    do {
        for (int k = 0; k < 16; k++) {
            att_pause();
            if (atomic_load_explicit(word, memory_order_acquire) != value)
                return true;
        }
    } while (att_os_seconds() < end);
    return false;
}

/* Waits until the announcement number differs from `seen`; returns it. */
static uint32_t await_call(att_thread_pool *p, uint32_t seen)
{
    while (!spin(p, &p->announced, seen)) {
        /* Either the caller sees this sleeper, or this worker sees the caller's announcement. */
        atomic_fetch_add(&p->sleepers, 1);
        if (atomic_load(&p->announced) == seen)
            att_os_wait(&p->announced, seen);
        atomic_fetch_sub(&p->sleepers, 1);
    }
    return atomic_load(&p->announced);
}

static void announce(att_thread_pool *p, int wanted)
{
    atomic_fetch_add(&p->announced, 1);
    if (atomic_load(&p->sleepers) > 0)
        att_os_wake(&p->announced, wanted);
}

/* ---- the gate */

static bool enter(att_thread_pool *p)
{
    uint32_t g = atomic_load_explicit(&p->gate, memory_order_relaxed);
    while (g & OPEN)
        if (atomic_compare_exchange_weak_explicit(&p->gate, &g, g + 1, memory_order_acquire, memory_order_relaxed))
            return true;
    return false;
}

static void leave(att_thread_pool *p)
{
    const uint32_t g = atomic_fetch_sub_explicit(&p->gate, 1, memory_order_release);
    if (g == (CALLER_SLEEPS | 1))
        att_os_wake(&p->gate, 1);
}

static void shut_and_wait(att_thread_pool *p)
{
    uint32_t g = atomic_fetch_and_explicit(&p->gate, ~(uint32_t)OPEN, memory_order_acquire) & ~(uint32_t)OPEN;
    while (g & INSIDE) {
        if (!spin(p, &p->gate, g) && atomic_compare_exchange_strong(&p->gate, &g, g | CALLER_SLEEPS))
            att_os_wait(&p->gate, g | CALLER_SLEEPS);
        g = atomic_load_explicit(&p->gate, memory_order_acquire);
    }
}

/* ---- threads */

/* Waits while the limit excludes a worker. */
static void park(const struct worker *w)
{
    _Atomic uint32_t *limit = &w->pool->ctx->limit;
    for (uint32_t n; (uint32_t)w->number >= (n = atomic_load(limit));)
        att_os_wait(limit, n);
}

static void *work(void *arg)
{
    struct worker *w = arg;
    att_thread_pool *p = w->pool;
    uint32_t seen = 0;
    for (;;) {
        park(w);
        seen = await_call(p, seen);
        if (p->quit)
            return NULL;
        if (!enter(p))
            continue;
        if ((uint32_t)w->number < atomic_load(&p->ctx->limit)) { /* it may have fallen since */
            fp_enter();                                          /* a new thread has its creator's settings */
            worker_loop(p->job, w->number);
        }
        leave(p);
    }
}

/* Initializes a pool that has no workers in this process, and starts as many as the system allows. */
static void start(att_thread_pool *p)
{
    p->processors = att_os_cpu_count();
    p->quit = p->taken = false;
    p->announced = p->gate = 0;
    p->sleepers = 0;
    for (p->n_workers = 0; p->n_workers < p->ctx->n_threads - 1; p->n_workers++) {
        struct worker *w = &p->worker[p->n_workers];
        *w = (struct worker){.pool = p, .number = p->n_workers + 1};
        if (!att_os_thread(&w->thread, work, w))
            return;
    }
}

/* Starts workers if this process has none because it is a forked child. */
static void renew(att_thread_pool *p)
{
    if (att_os_process_is(&p->process))
        return;
    att_lock_acquire(&p->renewal);
    if (!att_os_process_is(&p->process)) {
        start(p);
        att_os_process_renew(&p->process);
    }
    att_lock_release(&p->renewal);
}

att_status att_pool_open(att_ctx *ctx, att_thread_pool **out)
{
    *out = NULL;
    att_thread_pool *p = att_calloc(ctx, 1, sizeof *p + (size_t)(ctx->n_threads - 1) * sizeof p->worker[0]);
    if (!p)
        return ATT_ERR_MEMORY;
    p->ctx = ctx;
    p->process = att_os_process_here();
    start(p);
    *out = p;
    if (p->n_workers == ctx->n_threads - 1)
        return ATT_OK;
    return att_fail(ctx, ATT_ERR_SYSTEM, "n_threads is %d, but the system gave only %d: %s", ctx->n_threads,
                    p->n_workers + 1, strerror(errno));
}

/* Makes all workers compare their numbers with the limit. */
static void compare_limit(att_thread_pool *p)
{
    announce(p, INT_MAX);
    att_os_wake(&p->ctx->limit, INT_MAX);
}

void att_pool_close(att_ctx *ctx, att_thread_pool *p)
{
    if (!p)
        return;
    if (att_os_process_is(&p->process)) {
        p->quit = true;
        atomic_store(&ctx->limit, INT_MAX);
        compare_limit(p);
        for (int i = 0; i < p->n_workers; i++)
            pthread_join(p->worker[i].thread, NULL);
    }
    att_os_process_forget(&p->process);
    att_free(ctx, p);
}

att_status att_set_threads(att_ctx *ctx, int n)
{
    if (att_require(__func__, ATT_NAMED({"ctx", ctx})))
        return ATT_ERR_ARGUMENT;
    if (n < 0 || n > ctx->n_threads)
        return att_fail(ctx, ATT_ERR_ARGUMENT,
                        "att_set_threads: n is %d, but must be from 0 to %d, the number at opening", n, ctx->n_threads);
    atomic_store(&ctx->limit, (uint32_t)(n ? n : ctx->n_threads));
    if (ctx->pool && att_os_process_is(&ctx->pool->process))
        compare_limit(ctx->pool);
    return ATT_OK;
}

int att_threads(const att_ctx *ctx)
{
    const int limit = ctx ? (int)atomic_load(&ctx->limit) : 0;
    if (limit <= 1 || !ctx->pool)
        return limit;
    renew(ctx->pool);
    return limit <= ctx->pool->n_workers ? limit : ctx->pool->n_workers + 1;
}

/* ---- calls */

static void pool_run(att_thread_pool *p, int threads, pool_job *j)
{
    p->job = j;
    atomic_store_explicit(&p->gate, OPEN, memory_order_release);
    announce(p, (j->n < threads ? j->n : threads) - 1);
    worker_loop(j, 0);
    shut_and_wait(p);
}

static void host_worker_loop(void *arg, int thread)
{
    const fp_state host = fp_enter();
    worker_loop(arg, thread);
    fp_leave(host);
}

void att_parallel(att_ctx *ctx, int n, void (*body)(void *arg, int i, int thread), void *arg)
{
    const fp_state host = fp_enter(); /* also before waiting, which computes with doubles */
    const int threads = n <= 1 || inside ? 1 : att_threads(ctx);
    pool_job j = {.body = body, .arg = arg, .n = n, .cancel = cancel_flag};
    if (threads == 1) {
        for (int i = 0; i < n; i++)
            body(arg, i, 0);
    } else if (ctx->parallel_for) {
        ctx->parallel_for(ctx->parallel_user, n < threads ? n : threads, host_worker_loop, &j);
    } else if (atomic_exchange_explicit(&ctx->pool->taken, true, memory_order_acquire)) {
        worker_loop(&j, 0);
    } else {
        pool_run(ctx->pool, threads, &j);
        atomic_store_explicit(&ctx->pool->taken, false, memory_order_release);
    }
    fp_leave(host);
}

typedef struct plain {
    void (*body)(void *arg, int i);
    void *arg;
} plain;

static void run_plain(void *arg, int i, int thread)
{
    (void)thread;
    const plain *p = arg;
    p->body(p->arg, i);
}

void att_parallel_for(att_ctx *ctx, int n, void (*body)(void *arg, int i), void *arg)
{
    if (ctx && body)
        att_parallel(ctx, n, run_plain, &(plain){body, arg});
}
