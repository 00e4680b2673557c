/* How a call's work is laid out: scratch memory, and tasks. */
#include "attn/attn.h"

size_t att_lay_out(float *p, int n, const att_part *part)
{
    enum { LINE = 16 };
    size_t count = 0;
    for (int i = 0; i < n; i++) {
        *part[i].at = p ? p + count : NULL;
        count += (size_t)att_whole(part[i].count, LINE);
    }
    return count;
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
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        *(first[middle] <= item ? &low : &high) = middle;
    }
    return low;
}
