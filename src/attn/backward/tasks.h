/* The tasks of a backward call, and the order in which they add.
 *
 * Several tasks add to dQ of a block of queries, one for each block of keys. They must add in one order, or bits would
 * depend on which is faster. A task counts the steps that it has passed; at each step it waits until the task before it
 * has passed the same step. Tasks begin in an order in which each waits only for earlier ones, so there is no deadlock,
 * whatever the number of threads. */
#ifndef ATT_ATTN_TASKS_H
#define ATT_ATTN_TASKS_H

#include "attn/call/call.h"

enum { ATT_BACKWARD_TASK_BLOCKS = 4 }; /* of keys, at most */

/* How tasks that add to the same gradient wait for each other. */
typedef enum att_add_order {
    ATT_ADD_UNORDERED, /* they do not add to the same gradient */
    ATT_ADD_BY_STEP,   /* a step waits for the same step of the task before */
    ATT_ADD_BY_TASK    /* a step waits for the end of the task before, because several of its steps add to one
                        * element */
} att_add_order;

typedef struct att_backward_task {
    int64_t index, sequence, kv_head;
    int64_t k0, keys;
    bool last;          /* of its head */
    int64_t k_rows;     /* of k and v */
    int64_t slot;       /* of memory for dQ, one for each key head that is being processed */
    int64_t before;     /* the task to wait for at each step, -1: none */
    int64_t slot_owner; /* the task that must have ended before this one may begin, -1: none */
} att_backward_task;

typedef struct att_backward_tasks {
    int64_t count, slots;
    int64_t blocks;          /* of keys of a task, at most */
    att_backward_task *task; /* [count], by sequence, key head, keys */
    int64_t *order;          /* [count] in which they begin */
    _Atomic int64_t *passed; /* [count] number of steps; ~steps: the last one was passed */
    bool padded;             /* wait for the end of the task before, not for its step */
} att_backward_tasks;

/* Makes the tasks of a call. order: that of gradients other than dQ to which all tasks add; blocks: of keys for a
 * task. */
att_status att_backward_tasks_make(const att_call *call, att_add_order order, int64_t blocks, att_backward_tasks *t);
void att_backward_tasks_free(att_ctx *ctx, att_backward_tasks *t);
/* Returns how many blocks of keys a task may have, which share the preparation of queries. There are several if keys,
 * values and their gradients then stay in the caches, and enough tasks remain for all threads. */
int64_t att_backward_tasks_blocks(const att_call *call);
/* These are known before the tasks are made. slots: for how many key heads there is memory for dQ; if it is small,
 * there are more than are processed together, so that no thread waits for another's head to end. bytes: those of the
 * lists of tasks. */
int64_t att_backward_tasks_slots(const att_call *call);
size_t att_backward_tasks_bytes(const att_call *call);
/* Returns the task that is the i-th to begin, when its memory is free. */
const att_backward_task *att_backward_tasks_begin(const att_backward_tasks *t, int i);
void att_ticket_wait(const att_backward_tasks *t, const att_backward_task *task, int64_t step);
void att_ticket_advance(const att_backward_tasks *t, const att_backward_task *task, int64_t steps);
/* Ends a task after `steps` steps, because it has nothing to add in the remaining ones. It then does not wait in these,
 * and the tasks after it wait for the task before it. Returns false if it must continue, because it is the first or the
 * last task of its head, or others wait for its end. */
bool att_ticket_leave(const att_backward_tasks *t, const att_backward_task *task, int64_t steps);
void att_ticket_end(const att_backward_tasks *t, const att_backward_task *task);

#endif
