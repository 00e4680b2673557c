/* Runs tasks in partitions, with work stealing. Each thread has its own partition of neighboring tasks, which it runs
 * in order; then it steals tasks from the partitions of other threads, so no thread is idle while tasks are left. In
 * each call a thread gets the same tasks, whose data may still be in its cache. Threads beyond MAX_PARTITIONS share a
 * partition. */
#include "base/base.h"

#include <stdatomic.h>

enum { CACHE_LINE = 64, MAX_PARTITIONS = 64 };

/* Tasks [next, end). */
typedef struct partition {
    _Alignas(CACHE_LINE) atomic_llong next;
    int64_t end;
} partition;

typedef struct partition_job {
    void (*body)(void *arg, int64_t i, int thread);
    void *arg;
    int n;
    partition partition[MAX_PARTITIONS];
} partition_job;

static void worker_loop(void *arg, int i, int thread)
{
    (void)i;
    partition_job *j = arg;
    for (int k = 0; k < j->n; k++) {
        partition *from = &j->partition[(thread + k) % j->n];
        for (int64_t t; (t = atomic_fetch_add_explicit(&from->next, 1, memory_order_relaxed)) < from->end;)
            j->body(j->arg, t, thread);
    }
}

void att_parallel_partition(att_ctx *ctx, int64_t n, void (*body)(void *arg, int64_t i, int thread), void *arg)
{
    partition_job j; /* only the first j.n elements of partition[] are initialized */
    j.body = body;
    j.arg = arg;
    const int workers = att_threads(ctx) < n ? att_threads(ctx) : (int)n;
    j.n = workers < MAX_PARTITIONS ? workers : MAX_PARTITIONS;
    for (int i = 0; i < j.n; i++) {
        atomic_init(&j.partition[i].next, n * i / j.n);
        j.partition[i].end = n * (i + 1) / j.n;
    }
    att_parallel(ctx, workers, worker_loop, &j);
}
