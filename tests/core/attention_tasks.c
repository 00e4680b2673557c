/* The order in which the tasks of a backward begin, and what making it costs. */
#include "fixtures/attention_reference.h"
#include "attn/backward/tasks.h"

#include <time.h>

enum { SEQUENCES = 7, KV_HEADS = 3 };

/* Tensors of any length on one row of numbers. */
static att_call call_with(const att_plan *plan, int64_t sequences, int64_t tk, const int64_t *k_lengths)
{
    static float row[8];
    const int64_t heads = plan->spec.heads, kv_heads = plan->spec.kv_heads, dim = plan->spec.head_dim;
    static const int64_t same[] = {0, 0, 0, 1};
    att_attention_args a = {.size = sizeof a, .k_lengths = k_lengths};
    att_wrap(&a.q, row, ATT_F32, ATT_DIMS(sequences, heads, 1, dim), same);
    att_wrap(&a.k, row, ATT_F32, ATT_DIMS(sequences, kv_heads, tk, dim), same);
    att_call call;
    if (att_call_check(plan, &a, false, &call))
        fail_msg("%s", att_error(plan->ctx));
    return call;
}

/* Of `wave` heads after the other, all first tasks, all second ones, and so on. */
static void check_order(const att_backward_tasks *t, int64_t wave)
{
    int64_t n = 0;
    for (int64_t first = 0, end; first < t->count; first = end) {
        end = first;
        for (int64_t h = 0; h < wave && end < t->count; h++)
            while (!t->task[end++].last)
                ;
        for (int64_t k = 0; k < t->count; k++)
            for (int64_t i = first; i < end; i++)
                if (t->task[i].k0 == k * t->blocks * ATT_KEY_BLOCK)
                    assert_int_equal(t->order[n++], i);
    }
    assert_int_equal(n, t->count);
}

/* The last task of the newest head before it that has the same slot. */
static void check_owners(const att_backward_tasks *t)
{
    for (int64_t i = 0; i < t->count; i++) {
        int64_t owner = t->task[i].k0 == 0 ? i - 1 : -1;
        while (owner >= 0 && (t->task[owner].slot != t->task[i].slot || !t->task[owner].last))
            owner--;
        assert_int_equal(t->task[i].slot_owner, owner);
        assert_in_range(t->task[i].slot, 0, t->slots - 1);
    }
}

static void tasks_begin_block_by_block_of_the_heads_in_work(void **state)
{
    (void)state;
    static const int64_t lengths[SEQUENCES] = {0, 1, 2000, 256, 257, 9000, 300};
    static const int threads[] = {1, 2, 5, 16, 64};
    const shape n = {SEQUENCES, 2 * KV_HEADS, KV_HEADS, 1, 9000, 8, 8};
    for (int i = 0; i < 5; i++)
        for (int order = ATT_ADD_UNORDERED; order <= ATT_ADD_BY_TASK; order++)
            for (int64_t blocks = 1; blocks <= ATT_BACKWARD_TASK_BLOCKS; blocks *= 4) {
                att_ctx *ctx = check_open(NULL, threads[i]);
                const att_attention_spec s = spec_of(n);
                att_plan *plan = plan_of(ctx, &s);
                const att_call call = call_with(plan, SEQUENCES, n.tk, lengths);
                const int64_t heads = SEQUENCES * KV_HEADS;
                att_backward_tasks t;
                assert_int_equal(att_backward_tasks_make(&call, (att_add_order)order, blocks, &t), ATT_OK);
                check_order(&t, order ? 1 : threads[i] < heads ? threads[i] : heads);
                check_owners(&t);
                att_backward_tasks_free(ctx, &t);
                att_plan_free(plan);
                att_close(ctx);
            }
}

/* Processor time of making the tasks of `blocks` blocks of keys of each head, the minimum of some runs. */
static double seconds_for(const att_plan *plan, int64_t blocks)
{
    double least = INFINITY;
    const att_call call = call_with(plan, 1, blocks * ATT_KEY_BLOCK, NULL);
    for (int i = 0; i < 5; i++) {
        att_backward_tasks t;
        const clock_t start = clock();
        assert_int_equal(att_backward_tasks_make(&call, ATT_ADD_UNORDERED, 1, &t), ATT_OK);
        least = fmin(least, (double)(clock() - start) / CLOCKS_PER_SEC);
        att_backward_tasks_free(plan->ctx, &t);
    }
    return least;
}

/* Sixteen times as many take sixteen times as long where the time is in proportion, 256 times where it grows with the
 * square; memory that is met the first time may cost as much again. */
static void the_time_to_make_tasks_is_in_proportion_to_them(void **state)
{
    (void)state;
    enum { HEADS = 16, FEW = 256, TIMES = 16 };
    const shape n = {1, HEADS, HEADS, 1, 1, 8, 8};
    att_ctx *ctx = check_open(NULL, HEADS);
    const att_attention_spec s = spec_of(n);
    att_plan *plan = plan_of(ctx, &s);
    const double few = fmax(seconds_for(plan, FEW), 50e-6), many = seconds_for(plan, TIMES * FEW);
    if (many > 5 * TIMES * few)
        fail_msg("%d times as many tasks take %.1f times as long: %.6f s, not %.6f s", TIMES, many / few, many, few);
    att_plan_free(plan);
    att_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_begin_block_by_block_of_the_heads_in_work),
        cmocka_unit_test(the_time_to_make_tasks_is_in_proportion_to_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
