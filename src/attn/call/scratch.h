/* Scratch memory of a call, and the tasks that its work is partitioned into. */
#ifndef ATT_ATTN_SCRATCH_H
#define ATT_ATTN_SCRATCH_H

#include "attn/call/plan.h"

/* Lays out scratch memory from p on, part after part, each in its own cache lines; returns how many floats it takes. */
typedef struct att_scratch_part {
    float **at;
    int64_t count;
} att_scratch_part;
size_t att_scratch_lay_out(float *p, int n, const att_scratch_part *part);
int64_t att_scratch_count(size_t a, int64_t b); /* a * b, or on overflow more than can be allocated */
/* Scratch memory of a call, 64-byte aligned; NULL: error set. A plan keeps the memory of finished calls, unless it is
 * large, so that most calls allocate nothing: for small calls, new memory from the system costs more time than their
 * arithmetic. */
float *att_scratch_acquire(const att_plan *plan, size_t count);
void att_scratch_release(const att_plan *plan, float *p);
/* Make a plan's pool, which is empty at first, and free it with its memory. */
att_status att_scratch_new(att_plan *plan);
void att_scratch_free(att_plan *plan);
enum { ATT_SCRATCH_HEADER = 64 }; /* bytes before the floats of each block */
/* Returns the number of tasks to which a call's items are distributed: enough to share the work evenly, and each large
 * enough to be worth waking a thread for. */
int64_t att_task_count(att_ctx *ctx, int64_t items, double work, double work_of_task, int tasks_per_thread);
/* Returns the i with first[i] <= item < first[i + 1]; first [n + 1] ascends. */
int64_t att_find_range(const int64_t *first, int64_t n, int64_t item);

#endif
