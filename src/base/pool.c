/* The thread pool. The caller announces a job and opens a gate; workers that are awake enter, take indices from a
 * shared counter until none is left, and leave. The caller works too, then shuts the gate and waits only for workers
 * that have entered: a worker that still sleeps or was descheduled delays nothing. A forked child has no workers; there
 * the pool's state is the parent's, and callers work alone.
 *
 *    caller   job, gate open, announce | work ............ | gate shut, wait until empty
 *    worker        spin or sleep       | enter, work, leave */
#include "base/base.h"

#include <limits.h>
#include <stdatomic.h>

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
    atomic_llong next; /* first index not yet taken */
} pool_job;

struct att_thread_pool {
    att_os_process process; /* process of the workers */
    int n_workers;
    double spin_seconds;
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

static _Thread_local bool inside; /* this thread runs a body of a parallel call */

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

static void worker_loop(pool_job *j, int thread)
{
    inside = true;
    for (long long i; (i = atomic_fetch_add_explicit(&j->next, 1, memory_order_relaxed)) < j->n;)
        j->body(j->arg, (int)i, thread);
    inside = false;
}

/* ---- waiting */

/* Spins for a limited time while *word is value; returns whether it has changed. */
static bool spin(const att_thread_pool *p, _Atomic uint32_t *word, uint32_t value)
{
    if (atomic_load_explicit(word, memory_order_acquire) != value)
        return true;
    const double end = att_os_seconds() + p->spin_seconds;
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

static void *work(void *arg)
{
    struct worker *w = arg;
    att_thread_pool *p = w->pool;
    uint32_t seen = 0;
    for (;;) {
        seen = await_call(p, seen);
        if (p->quit)
            return NULL;
        if (enter(p)) {
            fp_enter(); /* a new thread has its creator's settings */
            worker_loop(p->job, w->number);
            leave(p);
        }
    }
}

att_status att_pool_open(att_ctx *ctx, int n_threads, att_thread_pool **out)
{
    *out = NULL;
    att_thread_pool *p = att_calloc(ctx, 1, sizeof *p + (size_t)(n_threads - 1) * sizeof p->worker[0]);
    if (!p)
        return ATT_ERR_MEMORY;
    p->process = att_os_process_here();
    /* With more threads than processors, spinning would take time from working threads. */
    p->spin_seconds = n_threads <= att_os_cpu_count() ? SPIN_SECONDS : 0;
    for (int i = 0; i < n_threads - 1; i++) {
        struct worker *w = &p->worker[i];
        *w = (struct worker){.pool = p, .number = i + 1};
        if (!att_os_thread(&w->thread, work, w)) {
            att_pool_close(ctx, p);
            return att_fail(ctx, ATT_ERR_SYSTEM, "n_threads is %d, but the system gave only %d", n_threads, i + 1);
        }
        p->n_workers++;
    }
    *out = p;
    return ATT_OK;
}

void att_pool_close(att_ctx *ctx, att_thread_pool *p)
{
    if (!p)
        return;
    if (att_os_process_is(&p->process)) {
        p->quit = true;
        announce(p, INT_MAX);
        for (int i = 0; i < p->n_workers; i++)
            pthread_join(p->worker[i].thread, NULL);
    }
    att_os_process_forget(&p->process);
    att_free(ctx, p);
}

/* ---- calls */

static void pool_run(att_thread_pool *p, pool_job *j)
{
    p->job = j;
    atomic_store_explicit(&p->gate, OPEN, memory_order_release);
    announce(p, j->n - 1 < p->n_workers ? j->n - 1 : p->n_workers);
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
    const fp_state host = fp_enter(); /* before waiting, too: it computes with doubles */
    pool_job j = {.body = body, .arg = arg, .n = n};
    if (n <= 1 || ctx->n_threads == 1 || inside) {
        for (int i = 0; i < n; i++)
            body(arg, i, 0);
    } else if (ctx->parallel_for) {
        ctx->parallel_for(ctx->parallel_user, n < ctx->n_threads ? n : ctx->n_threads, host_worker_loop, &j);
    } else if (!att_os_process_is(&ctx->pool->process) ||
               atomic_exchange_explicit(&ctx->pool->taken, true, memory_order_acquire)) {
        worker_loop(&j, 0);
    } else {
        pool_run(ctx->pool, &j);
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
