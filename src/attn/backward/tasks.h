/* The tasks of a backward call, and whose turn it is.
 *
 * What several tasks add to (dQ of a block of queries, over blocks of keys) must be added to in one order, or bits
 * would depend on who was faster. A task counts the steps that it has passed; another waits at a step until the one
 * before it has passed the same. Tasks begin in an order in which each waits only for earlier ones, so they cannot wait
 * for each other, whatever the number of threads. */
#ifndef ATT_ATTN_TASKS_H
#define ATT_ATTN_TASKS_H

#include "attn/call/call.h"

enum { ATT_TASK_BLOCKS = 4 }; /* of keys, at most */

/* Tasks that add to the same place wait for each other. */
typedef enum att_order {
    ATT_ORDER_NONE,    /* there is none */
    ATT_ORDER_BY_STEP, /* a step waits for the same one of the task before */
    ATT_ORDER_BY_TASK  /* or for that task's end, as several of its steps add to one place */
} att_order;

typedef struct att_task {
    int64_t index, sequence, kv_head;
    int64_t k0, keys;
    bool last;          /* of its head */
    int64_t k_rows;     /* of k and v */
    int64_t slot;       /* of memory for dQ, one for each key head in work */
    int64_t before;     /* the task to wait for at each step, -1: none */
    int64_t slot_owner; /* the task that must have ended before this one may begin, -1: none */
} att_task;

typedef struct att_tasks {
    int64_t count, slots;
    int64_t blocks;          /* of keys of a task, at most */
    att_task *task;          /* [count], by sequence, key head, keys */
    int64_t *order;          /* [count] in which they begin */
    _Atomic int64_t *passed; /* [count] steps; ~steps: and no others will be */
    bool whole;              /* wait for the end of the task before, not for its step */
} att_tasks;

/* order: of what all tasks add to beside dQ; blocks: of keys for a task. */
att_status att_tasks_make(const att_call *call, att_order order, int64_t blocks, att_tasks *t);
void att_tasks_free(att_ctx *ctx, att_tasks *t);
/* How many blocks of keys a task may have: what is made of queries is made once for all of them. Several where keys,
 * values and their gradients then stay in the caches, and tasks remain for all threads. */
int64_t att_tasks_blocks(const att_call *call);
/* Beforehand: for how many key heads there is memory for dQ, more than are in work together where that is little, so
 * that no thread waits for another's head to end; and the bytes that the lists of tasks take. */
int64_t att_tasks_slots(const att_call *call);
size_t att_tasks_bytes(const att_call *call);
/* The i-th to begin, when its memory is free. */
const att_task *att_tasks_begin(const att_tasks *t, int i);
void att_tasks_await(const att_tasks *t, const att_task *task, int64_t step);
void att_tasks_pass(const att_tasks *t, const att_task *task, int64_t steps);
/* After so many steps the task has nothing to add in those that are left, and need not wait for its turn in them: the
 * ones behind it wait for the one before it instead. False: it must go on, as it is the first, or the last, of its
 * head, or others wait for its end. */
bool att_tasks_leave(const att_tasks *t, const att_task *task, int64_t steps);
void att_tasks_end(const att_tasks *t, const att_task *task);

#endif
