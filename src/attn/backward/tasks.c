/* The tasks of a backward call. */
#include "attn/backward/tasks.h"
#include "attn/call/scratch.h"

#include <limits.h>
#include <stdatomic.h>

/* Returns the number of tasks of `keys` keys that a head of tk keys has. */
static int64_t parts_of(int64_t tk, int64_t keys) { return tk ? (tk + keys - 1) / keys : 1; }

static void fill(const att_call *c, att_backward_tasks *t, att_add_order order)
{
    const int64_t kv_heads = c->plan->spec.kv_heads, keys = t->blocks * ATT_KEY_BLOCK;
    int64_t n = 0;
    for (int64_t b = 0; b < c->sequences; b++) {
        att_head_view at;
        att_call_head(c, b, 0, &at);
        const int64_t parts = parts_of(at.head.tk, keys);
        for (int64_t h = 0; h < kv_heads; h++)
            for (int64_t k = 0; k < parts; k++, n++) {
                const int64_t left = at.head.tk - k * keys;
                t->task[n] = (att_backward_task){.index = n,
                                                 .sequence = b,
                                                 .kv_head = h,
                                                 .k0 = k * keys,
                                                 .keys = left < keys ? left : keys,
                                                 .last = k == parts - 1,
                                                 .k_rows = at.k_rows,
                                                 .before = k || order ? n - 1 : -1,
                                                 .slot_owner = -1};
            }
    }
}

/* Orders the tasks: `wave` key heads are processed together, block of keys by block of keys, so that each thread keeps
 * to its own head if there are enough. */
static void arrange(att_backward_tasks *t, int64_t wave)
{
    int64_t n = 0, head = 0;
    for (int64_t first = 0, end; first < t->count; first = end) {
        int64_t done = n; /* tasks in order [0, done) are followed by the next task of their head */
        end = first;
        for (int64_t h = 0; h < wave && end < t->count; h++, head++) {
            t->order[n++] = end;
            do
                t->task[end].slot = head % t->slots;
            while (!t->task[end++].last);
        }
        for (; done < n; done++)
            if (!t->task[t->order[done]].last)
                t->order[n++] = t->order[done] + 1;
    }
}

/* Makes a slot's next head, which is `slots` heads later, begin when the slot's last one has ended. */
static void chain_slots(att_backward_tasks *t)
{
    int64_t heads = 0, ended = -1; /* ended: the last task of the head that had the slot */
    for (int64_t i = 0; i < t->count; i++) {
        if (t->task[i].k0 > 0 || heads++ < t->slots)
            continue;
        do
            ended++;
        while (!t->task[ended].last);
        t->task[i].slot_owner = ended;
    }
}

static int64_t count_of(const att_call *c, int64_t blocks)
{
    int64_t count = 0;
    for (int64_t b = 0; b < c->sequences; b++) {
        att_head_view at;
        att_call_head(c, b, 0, &at);
        count += parts_of(at.head.tk, blocks * ATT_KEY_BLOCK) * c->plan->spec.kv_heads;
    }
    return count;
}

/* Returns how many key heads are processed together. */
static int64_t wave_of(const att_call *c)
{
    const int64_t threads = c->plan->ctx->n_threads, heads = c->sequences * c->plan->spec.kv_heads;
    return threads < heads ? threads : heads;
}

int64_t att_backward_tasks_slots(const att_call *c)
{
    enum { WAVES = 4, FLOATS = 1 << 18 }; /* floats that waves ahead of others may use */
    const att_plan *p = c->plan;
    const int64_t dq = c->max_tq * p->q_dim * (p->spec.heads / p->spec.kv_heads), some = FLOATS / (dq + 1);
    const int64_t wave = wave_of(c), max_slots = WAVES * wave, heads = c->sequences * p->spec.kv_heads;
    const int64_t slots = some < wave ? wave : some < max_slots ? some : max_slots;
    return slots < heads ? slots : heads;
}

/* Returns whether there are enough tasks to keep all threads busy. */
static bool suffice(int64_t tasks, int64_t threads)
{
    return tasks >= 8 * threads || (tasks >= 4 * threads && tasks % threads == 0);
}

int64_t att_backward_tasks_blocks(const att_call *c)
{
    enum { CACHED = 2 << 20 };
    const att_plan *p = c->plan;
    const int64_t block = 2 * (int64_t)sizeof(float) * ATT_KEY_BLOCK * (p->k_dim + p->spec.value_dim);
    int64_t blocks = ATT_BACKWARD_TASK_BLOCKS;
    while (blocks > 1 && (blocks * block > CACHED || !suffice(count_of(c, blocks), att_threads(p->ctx))))
        blocks /= 2;
    return blocks;
}

size_t att_backward_tasks_bytes(const att_call *c)
{
    const att_backward_tasks *t = NULL;
    return (size_t)count_of(c, 1) * (sizeof *t->task + sizeof *t->order + sizeof *t->passed);
}

att_status att_backward_tasks_make(const att_call *c, att_add_order order, int64_t blocks, att_backward_tasks *t)
{
    att_ctx *ctx = c->plan->ctx;
    const att_attention_spec *s = &c->plan->spec;
    *t = (att_backward_tasks){.count = count_of(c, blocks), .blocks = blocks, .slots = att_backward_tasks_slots(c)};
    if (t->count > INT_MAX)
        return att_fail(ctx, ATT_ERR_SHAPE, "%lld blocks of keys of all heads and sequences are more than %d",
                        (long long)t->count, INT_MAX);
    /* The n-th steps of two tasks have the same queries if each task has one query head and both have as many
     * queries. */
    t->padded = order == ATT_ADD_BY_TASK || (order && (s->heads > s->kv_heads || c->ragged || c->args.q_lengths));
    t->task = att_calloc(ctx, (size_t)t->count, sizeof *t->task);
    t->order = att_calloc(ctx, (size_t)t->count, sizeof *t->order);
    t->passed = att_calloc(ctx, (size_t)t->count, sizeof *t->passed);
    if (!t->task || !t->order || !t->passed) {
        att_backward_tasks_free(ctx, t);
        return ATT_ERR_MEMORY;
    }
    fill(c, t, order);
    arrange(t, order ? 1 : wave_of(c));
    chain_slots(t);
    return ATT_OK;
}

void att_backward_tasks_free(att_ctx *ctx, att_backward_tasks *t)
{
    att_free(ctx, t->task);
    att_free(ctx, t->order);
    att_free(ctx, (void *)t->passed);
    *t = (att_backward_tasks){0};
}

/* Returns whether a task has passed `steps` steps. A task that has left passes a step when the task before it does. */
static bool has_passed(const att_backward_tasks *t, int64_t task, int64_t steps)
{
    for (; task >= 0; task = t->task[task].before) {
        const int64_t passed = atomic_load_explicit(&t->passed[task], memory_order_acquire);
        if (passed >= 0 || ~passed >= steps)
            return passed < 0 || passed >= steps;
    }
    return true;
}

/* Polls until a task has passed `steps` steps. After 1,000 polls the thread yields, because the other one may not be
 * running. */
static void await(const att_backward_tasks *t, int64_t task, int64_t steps)
{
    for (int polls = 0; !has_passed(t, task, steps); polls++)
        if (polls < 1000)
            att_pause();
        else
            att_os_yield();
}

const att_backward_task *att_backward_tasks_begin(const att_backward_tasks *t, int i)
{
    const att_backward_task *task = &t->task[t->order[i]];
    await(t, task->slot_owner, INT64_MAX);
    return task;
}

void att_ticket_wait(const att_backward_tasks *t, const att_backward_task *task, int64_t step)
{
    await(t, task->before, t->padded ? INT64_MAX : step + 1);
}

void att_ticket_advance(const att_backward_tasks *t, const att_backward_task *task, int64_t steps)
{
    atomic_store_explicit(&t->passed[task->index], steps, memory_order_release);
}

bool att_ticket_leave(const att_backward_tasks *t, const att_backward_task *task, int64_t steps)
{
    if (t->padded || task->last || task->k0 == 0)
        return false;
    att_ticket_advance(t, task, ~steps);
    return true;
}

void att_ticket_end(const att_backward_tasks *t, const att_backward_task *task)
{
    if (t->padded) /* its task may have had no step to wait at */
        await(t, task->before, INT64_MAX);
    if (atomic_load_explicit(&t->passed[task->index], memory_order_relaxed) >= 0)
        att_ticket_advance(t, task, INT64_MAX);
}
