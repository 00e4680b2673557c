/* How a call's work is laid out: scratch memory, and tasks. */
#include "attn/call/scratch.h"

/* Parts are powers of two, mostly: without a gap they would all begin in the same set of the first cache. */
size_t att_lay_out(float *p, int n, const att_part *part)
{
    enum { LINE = 16, GAP = 11 * LINE };
    size_t count = 0;
    for (int i = 0; i < n; i++) {
        *part[i].at = p ? p + count : NULL;
        count += part[i].count ? (size_t)att_round_up(part[i].count, LINE) + GAP : 0;
    }
    return count;
}

int64_t att_part_count(size_t a, int64_t b)
{
    const size_t n = att_size_mul(a, (size_t)b);
    return n < INT64_MAX / 8 ? (int64_t)n : INT64_MAX / 8;
}

struct att_spare {
    size_t count;
    _Alignas(ATT_SPARE_BYTES) float data[];
};
_Static_assert(offsetof(att_spare, data) == ATT_SPARE_BYTES, "one line of the cache");

/* Puts it in the place of another, which it returns, or of none. */
static att_spare *swap(const att_plan *plan, int place, att_spare *s)
{
    return atomic_exchange(&((att_plan *)plan)->spare[place], s); /* only this changes in a plan */
}

static void keep(const att_plan *plan, att_spare *s)
{
    for (int i = 0; s && i < ATT_MAX_SPARES; i++)
        s = swap(plan, i, s);
    att_free(plan->ctx, s);
}

float *att_scratch_take(const att_plan *plan, size_t count)
{
    for (int i = 0; i < ATT_MAX_SPARES; i++) {
        att_spare *s = swap(plan, i, NULL);
        if (s && s->count >= count)
            return s->data;
        att_free(plan->ctx, swap(plan, i, s));
    }
    const size_t bytes = att_size_mul(count, sizeof(float));
    att_spare *s = att_alloc(plan->ctx, bytes < SIZE_MAX - sizeof *s ? sizeof *s + bytes : SIZE_MAX, 1);
    if (!s)
        return NULL;
    s->count = count;
    return s->data;
}

void att_scratch_give(const att_plan *plan, float *p)
{
    enum { LARGE = 2 << 20 };
    att_spare *s = p ? (att_spare *)((char *)p - offsetof(att_spare, data)) : NULL;
    if (s && s->count > LARGE)
        att_free(plan->ctx, s);
    else
        keep(plan, s);
}

void att_scratch_free(att_plan *plan)
{
    for (int i = 0; i < ATT_MAX_SPARES; i++)
        att_free(plan->ctx, swap(plan, i, NULL));
}

int64_t att_task_count(att_ctx *ctx, int64_t items, double work, double work_of_task, int tasks_per_thread)
{
    const double worth = work / work_of_task + 1, most = (double)att_threads(ctx) * tasks_per_thread;
    const int64_t tasks = (int64_t)(worth < most ? worth : most);
    return tasks < items ? tasks : items;
}

int64_t att_find(const int64_t *first, int64_t n, int64_t item)
{
    int64_t low = 0, high = n;
    const int64_t even = (int64_t)((double)item / (double)first[n] * (double)n); /* right where all are alike */
    if (even < n && first[even] <= item && item < first[even + 1])
        return even;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        *(first[middle] <= item ? &low : &high) = middle;
    }
    return low;
}
