/* Lays out a call's work: scratch memory and tasks. */
#include "attn/call/scratch.h"

#include <stdatomic.h>

/* Lays parts out with gaps: most sizes are powers of two, so without gaps all parts would begin in the same set of the
 * first-level cache. */
size_t att_scratch_lay_out(float *p, int n, const att_scratch_part *part)
{
    enum { LINE = 16, GAP = 11 * LINE };
    size_t count = 0;
    for (int i = 0; i < n; i++) {
        *part[i].at = p ? p + count : NULL;
        count += part[i].count ? (size_t)att_round_up(part[i].count, LINE) + GAP : 0;
    }
    return count;
}

int64_t att_scratch_count(size_t a, int64_t b)
{
    const size_t n = att_size_mul(a, (size_t)b);
    return n < INT64_MAX / 8 ? (int64_t)n : INT64_MAX / 8;
}

typedef struct att_scratch_block {
    size_t count;
    _Alignas(ATT_SCRATCH_HEADER) float data[];
} att_scratch_block;
_Static_assert(offsetof(att_scratch_block, data) == ATT_SCRATCH_HEADER, "one line of the cache");

/* The pool has this many blocks, for calls that run at once. */
enum { MAX_BLOCKS = 8 };
struct att_scratch_pool {
    _Atomic(att_scratch_block *) block[MAX_BLOCKS];
};

att_status att_scratch_new(att_plan *plan)
{
    plan->scratch = att_calloc(plan->ctx, 1, sizeof *plan->scratch);
    return plan->scratch ? ATT_OK : ATT_ERR_MEMORY;
}

/* Exchanges entry i of the pool. */
static att_scratch_block *swap(const att_plan *plan, int i, att_scratch_block *s)
{
    return atomic_exchange(&plan->scratch->block[i], s);
}

static void keep(const att_plan *plan, att_scratch_block *s)
{
    for (int i = 0; s && i < MAX_BLOCKS; i++)
        s = swap(plan, i, s);
    att_free(plan->ctx, s);
}

float *att_scratch_acquire(const att_plan *plan, size_t count)
{
    for (int i = 0; i < MAX_BLOCKS; i++) {
        att_scratch_block *s = swap(plan, i, NULL);
        if (s && s->count >= count)
            return s->data;
        att_free(plan->ctx, swap(plan, i, s));
    }
    const size_t bytes = att_size_mul(count, sizeof(float));
    att_scratch_block *s = att_alloc(plan->ctx, bytes < SIZE_MAX - sizeof *s ? sizeof *s + bytes : SIZE_MAX, 1);
    if (!s)
        return NULL;
    s->count = count;
    return s->data;
}

void att_scratch_release(const att_plan *plan, float *p)
{
    enum { LARGE = 2 << 20 };
    att_scratch_block *s = p ? (att_scratch_block *)((char *)p - offsetof(att_scratch_block, data)) : NULL;
    if (s && s->count > LARGE)
        att_free(plan->ctx, s);
    else
        keep(plan, s);
}

void att_plan_trim(const att_plan *plan)
{
    for (int i = 0; plan && plan->scratch && i < MAX_BLOCKS; i++)
        att_free(plan->ctx, swap(plan, i, NULL));
}

void att_scratch_free(att_plan *plan)
{
    att_plan_trim(plan);
    att_free(plan->ctx, plan->scratch);
}

int64_t att_task_count(att_ctx *ctx, int64_t items, double work, double work_of_task, int tasks_per_thread)
{
    const double worth = work / work_of_task + 1, max = (double)att_threads(ctx) * tasks_per_thread;
    const int64_t tasks = (int64_t)(worth < max ? worth : max);
    return tasks < items ? tasks : items;
}

int64_t att_find_range(const int64_t *first, int64_t n, int64_t item)
{
    int64_t low = 0, high = n;
    const int64_t even =
        (int64_t)((double)item / (double)first[n] * (double)n); /* correct if all items have the same length */
    if (even < n && first[even] <= item && item < first[even + 1])
        return even;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        *(first[middle] <= item ? &low : &high) = middle;
    }
    return low;
}
