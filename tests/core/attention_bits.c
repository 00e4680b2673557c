/* The same bits, of results, gradients and weights: whatever the number of threads, what else is in the batch, what
 * else is asked for, what the host has set for its own numbers, and when it is done again. */
// labels: threads
#include "fixtures/attention_trial.h"
#include "fixtures/fp_control.h"

enum { WEIGHTS = 1 << 12 };

typedef struct results {
    void *of[WRITTEN];
    float weights[WEIGHTS];
} results;

static void results_free(results *r)
{
    for (int i = 0; i < WRITTEN; i++)
        free(r->of[i]);
}

static results copy_results(const trial *t)
{
    results r = {{NULL}, {0}};
    for (int i = 0; i < WRITTEN; i++) {
        const att_tensor *x = written(&t->args, &t->grads, i);
        r.of[i] = malloc(bytes_of(x) + 1);
        memcpy(r.of[i], x->data ? x->data : r.of[i], bytes_of(x));
    }
    return r;
}

/* Forward, backward and some rows of weights, onto something else. */
static results results_of(att_ctx *ctx, const trial *t)
{
    att_plan *plan;
    for (int i = 0; i < WRITTEN; i++)
        if (written(&t->args, &t->grads, i)->data)
            memset(written(&t->args, &t->grads, i)->data, 0xa5, bytes_of(written(&t->args, &t->grads, i)));
    if (att_plan_new(ctx, &t->spec, &plan) || att_forward(plan, &t->args) || att_backward(plan, &t->args, &t->grads))
        fail_msg("%s\n%s", name_of(t->c), att_error(ctx));
    results r = copy_results(t);
    const int64_t tk = t->k_offsets[1], rows = WEIGHTS / tk, tq = t->q_offsets[1]; /* of the first sequence, at least */
    if (att_weights(plan, &t->args, 0, t->spec.heads - 1, 0, rows < tq ? rows : tq, r.weights))
        fail_msg("%s\n%s", name_of(t->c), att_error(ctx));
    att_plan_free(plan);
    return r;
}

static void assert_same(const trial *t, const char *when, const results *a, results *b)
{
    static const char *const names[] = {"out", "lse", "dq", "dk", "dv"};
    for (int i = 0; i < WRITTEN; i++)
        if (memcmp(a->of[i], b->of[i], bytes_of(written(&t->args, &t->grads, i))))
            fail_msg("%s\n%s: %s has other bits", name_of(t->c), when, i < WRITTEN_DPARAM ? names[i] : "dparam");
    if (memcmp(a->weights, b->weights, sizeof a->weights))
        fail_msg("%s\n%s: weights have other bits", name_of(t->c), when);
    results_free(b);
}

enum { TRIALS = 80 };

static void again_and_with_any_number_of_threads_all_stages_give_the_same_bits(void **state)
{
    (void)state;
    static const int threads[] = {1, 2, 3, 16};
    for (int n = 0; n < TRIALS; n += check_step(4)) {
        const choice c = any_choice((uint64_t)n);
        trial t;
        results first = {{NULL}, {0}};
        make_trial(&t, &c, 1000 * (uint64_t)n);
        for (int i = 0; i < COUNT(threads); i++) {
            att_ctx *ctx = check_open(att_isa_name(nth_set(c.of[SET])), threads[i]);
            results r = results_of(ctx, &t);
            if (i == 0) {
                first = r;
                r = results_of(ctx, &t);
            }
            assert_same(&t, i ? "with more threads" : "again", &first, &r);
            att_close(ctx);
        }
        results_free(&first);
        trial_free(&t);
    }
}

/* Values are so small that outputs and slopes are denormals, and a sink's weight is one. */
static void make_tiny(trial *t)
{
    float *v = t->args.v.data;
    for (int64_t i = 0; i < check_count(&t->args.v) && t->spec.dtype == ATT_F32; i++)
        v[i] *= 1e-39f;
    for (int i = 0, n = first_stage_param(t); i < t->spec.n_stages; n += params_of_stage(&t->spec.stage[i++]))
        for (int64_t j = 0; t->spec.stage[i].modifier == att_modifier_sink && j < t->args.param[n].dim[0]; j++)
            ((float *)t->args.param[n].data)[j] -= 95;
}

static void a_host_that_flushes_denormals_and_rounds_up_gets_the_same_bits(void **state)
{
    (void)state;
    if (!fp_control_works())
        skip();
    att_ctx *ctx[MOST_LEVELS][2];
    for (int i = 0; i < levels(SET); i++)
        for (int j = 0; j < 2; j++)
            ctx[i][j] = check_open(att_isa_name(nth_set(i)), j + 1);
    for (int n = 0; n < TRIALS; n += check_step(4)) {
        const choice c = any_choice(TRIALS + (uint64_t)n);
        trial t;
        make_trial(&t, &c, 1000 * (uint64_t)n);
        make_tiny(&t);
        for (int j = 0; j < 2; j++) {
            results plain = results_of(ctx[c.of[SET]][j], &t);
            const uint64_t host = fp_control();
            set_fp_control(FLUSH_UP);
            results flushed = results_of(ctx[c.of[SET]][j], &t);
            set_fp_control(host);
            assert_same(&t, "the host flushes", &plain, &flushed);
            results_free(&plain);
        }
        trial_free(&t);
    }
    for (int i = 0; i < levels(SET); i++)
        for (int j = 0; j < 2; j++)
            att_close(ctx[i][j]);
}

/* Sequence b of a tensor whose first dimension is that of the sequences. */
static void take_sequence(att_tensor *t, int64_t batch, int64_t b)
{
    if (!t->data || t->dim[0] != batch)
        return;
    t->data = (char *)t->data + b * t->stride[0] * (int64_t)att_dtype_size(t->dtype);
    t->dim[0] = 1;
}

/* The call of one sequence alone; what is written goes to memory of its own. */
static void take_alone(trial *t, int64_t b, att_attention_args *a, att_attention_grads *g)
{
    const int64_t batch = t->args.q.dim[0];
    *a = t->args;
    *g = (att_attention_grads){
        .size = sizeof *g, .dout = t->grads.dout, .dlse = t->grads.dlse, .dq = a->q, .dk = a->k, .dv = a->v};
    att_tensor *const of_batch[] = {&a->q, &a->k, &a->v, &a->out, &a->lse, &g->dout, &g->dlse, &g->dq, &g->dk, &g->dv};
    for (int i = 0; i < COUNT(of_batch); i++)
        take_sequence(of_batch[i], batch, b);
    att_tensor *param = own_params(a);
    for (int i = 0; i < a->n_params; i++)
        if (param[i].rank == 4)
            take_sequence(&param[i], batch, b);
    att_tensor *const own[] = {&a->out, &a->lse, &g->dq, &g->dk, &g->dv};
    for (int i = 0; i < COUNT(own); i++)
        own[i]->data = hold(t, malloc(bytes_of(own[i]) + 1));
    a->q_starts = a->q_starts ? a->q_starts + b : NULL;
    a->q_lengths = a->q_lengths ? a->q_lengths + b : NULL;
    a->k_lengths = a->k_lengths ? a->k_lengths + b : NULL;
    a->sequence_ids = a->sequence_ids ? a->sequence_ids + b : NULL;
}

static void alone_a_sequence_has_the_results_and_gradients_that_it_has_among_others(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 2);
    int done = 0;
    for (int n = 0; n < 3 * TRIALS; n += check_step(4)) {
        choice c = any_choice(2 * TRIALS + (uint64_t)n);
        trial t;
        if (shapes[c.of[SHAPE]].batch == 1 || c.of[PLACE] == RAGGED)
            continue;
        make_trial(&t, &c, 1000 * (uint64_t)n);
        results all = results_of(ctx, &t);
        for (int64_t b = 0; b < shapes[c.of[SHAPE]].batch; b++, done++) {
            att_attention_args a;
            att_attention_grads g;
            att_plan *plan;
            take_alone(&t, b, &a, &g);
            if (att_plan_new(ctx, &t.spec, &plan) || att_forward(plan, &a) || att_backward(plan, &a, &g))
                fail_msg("%s\n%s", name_of(&c), att_error(ctx));
            att_plan_free(plan);
            for (int i = WRITTEN_OUT; i <= WRITTEN_DV; i++) {
                const att_tensor *x = written(&a, &g, i);
                if (memcmp((char *)all.of[i] + (size_t)b * bytes_of(x), x->data, bytes_of(x)))
                    fail_msg("%s\nsequence %d: tensor %d has other bits alone", name_of(&c), (int)b, i);
            }
        }
        results_free(&all);
        trial_free(&t);
    }
    assert_true(done > 100 / check_step(4));
    att_close(ctx);
}

static void what_else_is_asked_for_changes_nothing(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 2);
    for (int n = 0; n < TRIALS; n += check_step(4)) {
        const choice c = any_choice(5 * TRIALS + (uint64_t)n);
        trial t;
        make_trial(&t, &c, 1000 * (uint64_t)n);
        results all = results_of(ctx, &t);
        const att_attention_args with_lse = t.args;
        const att_attention_grads everything = t.grads;
        att_plan *plan;
        assert_int_equal(att_plan_new(ctx, &t.spec, &plan), ATT_OK);
        t.args.lse = (att_tensor){0};
        assert_int_equal(att_forward(plan, &t.args), ATT_OK);
        assert_memory_equal(t.args.out.data, all.of[WRITTEN_OUT], bytes_of(&t.args.out));
        t.args = with_lse;
        for (int i = WRITTEN_DQ; i < WRITTEN; i++) { /* one gradient alone */
            const att_tensor *x = written(&with_lse, &everything, i);
            t.grads = (att_attention_grads){.size = sizeof t.grads, .dout = everything.dout, .dlse = everything.dlse};
            if (!x->rank)
                continue;
            *(i < WRITTEN_DPARAM ? (att_tensor *)written(&t.args, &t.grads, i)
                                 : dparam_at(&t.grads, i - WRITTEN_DPARAM)) = *x;
            if (att_backward(plan, &t.args, &t.grads))
                fail_msg("%s\n%s", name_of(&c), att_error(ctx));
            if (x->data && memcmp(x->data, all.of[i], bytes_of(x)))
                fail_msg("%s\ngradient %d has other bits alone", name_of(&c), i);
        }
        att_plan_free(plan);
        results_free(&all);
        trial_free(&t);
    }
    att_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(again_and_with_any_number_of_threads_all_stages_give_the_same_bits),
        cmocka_unit_test(a_host_that_flushes_denormals_and_rounds_up_gets_the_same_bits),
        cmocka_unit_test(alone_a_sequence_has_the_results_and_gradients_that_it_has_among_others),
        cmocka_unit_test(what_else_is_asked_for_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
