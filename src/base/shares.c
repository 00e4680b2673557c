/* Tasks dealt to threads. Each thread begins with a share of its own, of which there are so many, and then takes what
 * others have left of theirs: so from task to task, and from call to call, it meets what lies together and what its
 * cache has, and yet nobody waits for a slow one. More threads than shares have one together. */
#include "base/base.h"

#include <stdatomic.h>

enum { CACHE_LINE = 64, MAX_SHARES = 64 };

/* Tasks [next, end). */
typedef struct share {
    _Alignas(CACHE_LINE) atomic_llong next;
    int64_t end;
} share;

typedef struct job {
    void (*body)(void *arg, int64_t i, int thread);
    void *arg;
    int shares;
    share share[MAX_SHARES];
} job;

static void strand(void *arg, int i, int thread)
{
    (void)i;
    job *j = arg;
    for (int n = 0; n < j->shares; n++) {
        share *from = &j->share[(thread + n) % j->shares];
        for (int64_t t; (t = atomic_fetch_add_explicit(&from->next, 1, memory_order_relaxed)) < from->end;)
            j->body(j->arg, t, thread);
    }
}

void att_parallel_shares(att_ctx *ctx, int64_t n, void (*body)(void *arg, int64_t i, int thread), void *arg)
{
    job j; /* only as many shares are set as there are */
    j.body = body;
    j.arg = arg;
    const int strands = att_threads(ctx) < n ? att_threads(ctx) : (int)n;
    j.shares = strands < MAX_SHARES ? strands : MAX_SHARES;
    for (int i = 0; i < j.shares; i++) {
        atomic_init(&j.share[i].next, n * i / j.shares);
        j.share[i].end = n * (i + 1) / j.shares;
    }
    att_parallel(ctx, strands, strand, &j);
}
