/* The tasks of a backward call. */
#include "attn/tasks.h"

#include <limits.h>

/* Tasks of so many keys, of a head that has tk. */
static int64_t parts_of(int64_t tk, int64_t keys) { return tk ? (tk + keys - 1) / keys : 1; }

static void fill(const att_call *c, att_tasks *t, att_order order)
{
    const int64_t kv_heads = c->plan->spec.kv_heads, keys = t->blocks * ATT_KEY_BLOCK;
    int64_t n = 0;
    for (int64_t b = 0; b < c->sequences; b++) {
        att_site at;
        att_call_site(c, b, 0, &at);
        const int64_t parts = parts_of(at.place.tk, keys);
        for (int64_t h = 0; h < kv_heads; h++)
            for (int64_t k = 0; k < parts; k++, n++) {
                const int64_t left = at.place.tk - k * keys;
                t->task[n] = (att_task){.index = n,
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

/* `wave` key heads are in work together, block of keys by block of keys, so that threads keep to a head of their own
 * where there are enough. */
static void arrange(att_tasks *t, int64_t wave)
{
    int64_t n = 0, head = 0;
    for (int64_t first = 0, end; first < t->count; first = end) {
        int64_t done = n; /* of order [n]: tasks of which the next of their head is there too */
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

/* A slot's next head, which is `slots` heads later, begins when its last one has ended. */
static void chain_slots(att_tasks *t)
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
        att_site at;
        att_call_site(c, b, 0, &at);
        count += parts_of(at.place.tk, blocks * ATT_KEY_BLOCK) * c->plan->spec.kv_heads;
    }
    return count;
}

/* How many key heads are in work together. */
static int64_t wave_of(const att_call *c)
{
    const int64_t threads = att_threads(c->plan->ctx), heads = c->sequences * c->plan->spec.kv_heads;
    return threads < heads ? threads : heads;
}

int64_t att_tasks_slots(const att_call *c)
{
    enum { WAVES = 4, FLOATS = 1 << 18 }; /* what waves that are ahead of others may take */
    const att_plan *p = c->plan;
    const int64_t dq = c->max_tq * p->q_dim * (p->spec.heads / p->spec.kv_heads), some = FLOATS / (dq + 1);
    const int64_t wave = wave_of(c), most = WAVES * wave, heads = c->sequences * p->spec.kv_heads;
    const int64_t slots = some < wave ? wave : some < most ? some : most;
    return slots < heads ? slots : heads;
}

/* Can all threads be kept at work with so many tasks? */
static bool suffice(int64_t tasks, int64_t threads)
{
    return tasks >= 8 * threads || (tasks >= 4 * threads && tasks % threads == 0);
}

int64_t att_tasks_blocks(const att_call *c)
{
    enum { CACHED = 2 << 20 };
    const att_plan *p = c->plan;
    const int64_t block = 2 * (int64_t)sizeof(float) * ATT_KEY_BLOCK * (p->k_dim + p->spec.value_dim);
    int64_t blocks = ATT_TASK_BLOCKS;
    while (blocks > 1 && (blocks * block > CACHED || !suffice(count_of(c, blocks), att_threads(p->ctx))))
        blocks /= 2;
    return blocks;
}

size_t att_tasks_bytes(const att_call *c)
{
    const att_tasks *t = NULL;
    return (size_t)count_of(c, 1) * (sizeof *t->task + sizeof *t->order + sizeof *t->passed);
}

att_status att_tasks_make(const att_call *c, att_order order, int64_t blocks, att_tasks *t)
{
    att_ctx *ctx = c->plan->ctx;
    const att_attention_spec *s = &c->plan->spec;
    *t = (att_tasks){.count = count_of(c, blocks), .blocks = blocks, .slots = att_tasks_slots(c)};
    if (t->count > INT_MAX)
        return att_fail(ctx, ATT_ERR_SHAPE, "%lld blocks of keys of all heads and sequences are more than %d",
                        (long long)t->count, INT_MAX);
    /* The n-th steps of two tasks are of the same queries where each has one query head, and both as many queries. */
    t->whole = order == ATT_ORDER_BY_TASK || (order && (s->heads > s->kv_heads || c->ragged || c->args.q_lengths));
    t->task = att_calloc(ctx, (size_t)t->count, sizeof *t->task);
    t->order = att_calloc(ctx, (size_t)t->count, sizeof *t->order);
    t->passed = att_calloc(ctx, (size_t)t->count, sizeof *t->passed);
    if (!t->task || !t->order || !t->passed) {
        att_tasks_free(ctx, t);
        return ATT_ERR_MEMORY;
    }
    fill(c, t, order);
    arrange(t, order ? 1 : wave_of(c));
    chain_slots(t);
    return ATT_OK;
}

void att_tasks_free(att_ctx *ctx, att_tasks *t)
{
    att_free(ctx, t->task);
    att_free(ctx, t->order);
    att_free(ctx, (void *)t->passed);
    *t = (att_tasks){0};
}

/* Has a task passed so many steps? One that has left the rest out has when the one before it has. */
static bool has_passed(const att_tasks *t, int64_t task, int64_t steps)
{
    for (; task >= 0; task = t->task[task].before) {
        const int64_t passed = atomic_load_explicit(&t->passed[task], memory_order_acquire);
        if (passed >= 0 || ~passed >= steps)
            return passed < 0 || passed >= steps;
    }
    return true;
}

/* Others compute meanwhile, or are not being run: a look now and then costs little. */
static void await(const att_tasks *t, int64_t task, int64_t steps)
{
    for (int looks = 0; !has_passed(t, task, steps); looks++)
        if (looks < 1000)
            att_pause();
        else
            att_os_yield();
}

const att_task *att_tasks_begin(const att_tasks *t, int i)
{
    const att_task *task = &t->task[t->order[i]];
    await(t, task->slot_owner, INT64_MAX);
    return task;
}

void att_tasks_await(const att_tasks *t, const att_task *task, int64_t step)
{
    await(t, task->before, t->whole ? INT64_MAX : step + 1);
}

void att_tasks_pass(const att_tasks *t, const att_task *task, int64_t steps)
{
    atomic_store_explicit(&t->passed[task->index], steps, memory_order_release);
}

bool att_tasks_leave(const att_tasks *t, const att_task *task, int64_t steps)
{
    if (t->whole || task->last || task->k0 == 0)
        return false;
    att_tasks_pass(t, task, ~steps);
    return true;
}

void att_tasks_end(const att_tasks *t, const att_task *task)
{
    if (t->whole) /* it may have had no step to wait at */
        await(t, task->before, INT64_MAX);
    if (atomic_load_explicit(&t->passed[task->index], memory_order_relaxed) >= 0)
        att_tasks_pass(t, task, INT64_MAX);
}
