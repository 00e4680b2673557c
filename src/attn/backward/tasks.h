/* The tasks of a backward call, and whose turn it is.
 *
 * What several tasks add to (dQ of a block of queries, over blocks of keys) must be added to in one order, or bits
 * would depend on who was faster. A task counts the steps that it has passed; another waits at a step until the one
 * before it has passed the same. Tasks begin in an order in which each waits only for earlier ones, so they cannot wait
 * for each other, whatever the number of threads. */
#ifndef ATT_ATTN_TASKS_H
#define ATT_ATTN_TASKS_H

#include "attn/call/call.h"

enum { ATT_BACKWARD_TASK_BLOCKS = 4 }; /* of keys, at most */

/* Tasks that add to the same place wait for each other. */
typedef enum att_add_order {
    ATT_ADD_UNORDERED, /* there is none */
    ATT_ADD_BY_STEP,   /* a step waits for the same one of the task before */
    ATT_ADD_BY_TASK    /* or for that task's end, as several of its steps add to one place */
} att_add_order;

typedef struct att_backward_task {
    int64_t index, sequence, kv_head;
    int64_t k0, keys;
    bool last;          /* of its head */
    int64_t k_rows;     /* of k and v */
    int64_t slot;       /* of memory for dQ, one for each key head in work */
    int64_t before;     /* the task to wait for at each step, -1: none */
    int64_t slot_owner; /* the task that must have ended before this one may begin, -1: none */
} att_backward_task;

typedef struct att_backward_tasks {
    int64_t count, slots;
    int64_t blocks;          /* of keys of a task, at most */
    att_backward_task *task; /* [count], by sequence, key head, keys */
    int64_t *order;          /* [count] in which they begin */
    _Atomic int64_t *passed; /* [count] steps; ~steps: and no others will be */
    bool padded;             /* wait for the end of the task before, not for its step */
} att_backward_tasks;

/* order: of what all tasks add to beside dQ; blocks: of keys for a task. */
att_status att_backward_tasks_make(const att_call *call, att_add_order order, int64_t blocks, att_backward_tasks *t);
void att_backward_tasks_free(att_ctx *ctx, att_backward_tasks *t);
/* How many blocks of keys a task may have: what is made of queries is made once for all of them. Several where keys,
 * values and their gradients then stay in the caches, and tasks remain for all threads. */
int64_t att_backward_tasks_blocks(const att_call *call);
/* Beforehand: for how many key heads there is memory for dQ, more than are in work together where that is little, so
 * that no thread waits for another's head to end; and the bytes that the lists of tasks take. */
int64_t att_backward_tasks_slots(const att_call *call);
size_t att_backward_tasks_bytes(const att_call *call);
/* The i-th to begin, when its memory is free. */
const att_backward_task *att_backward_tasks_begin(const att_backward_tasks *t, int i);
void att_ticket_wait(const att_backward_tasks *t, const att_backward_task *task, int64_t step);
void att_ticket_advance(const att_backward_tasks *t, const att_backward_task *task, int64_t steps);
/* Leaves after `steps` steps: the task has nothing to add in those that remain, and does not wait for its ticket in
 * them; the tasks after it wait for the one before it. Returns false if it must continue, as it is the first or the
 * last task of its head, or others wait for its end. */
bool att_ticket_leave(const att_backward_tasks *t, const att_backward_task *task, int64_t steps);
void att_ticket_end(const att_backward_tasks *t, const att_backward_task *task);

#endif
