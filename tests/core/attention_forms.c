/* The same call in another form: other strides, one of some ragged sequences alone, gradients added to what is there.
 */
#include "fixtures/attention_trial.h"

enum { TRIALS = 80 };

/* Returns the n-th element, counted as if dense. */
static char *element(const att_tensor *x, int64_t n)
{
    int64_t at = 0;
    for (int i = x->rank - 1; i >= 0; n /= x->dim[i--])
        at += n % x->dim[i] * x->stride[i];
    return (char *)x->data + at * (int64_t)att_dtype_size(x->dtype);
}

/* ---- strides */

/* The same numbers with gaps behind each row, and the first dimension the fastest of the others; of a parameter with
 * gaps between heads alone. */
static void spread(trial *t, att_tensor *x, bool param)
{
    const att_tensor from = *x;
    const int first = param && x->rank < 4 ? 1 : x->rank - 1; /* of the dimensions that stay */
    if (!x->data)
        return;
    int64_t stride = 3;
    for (int i = first; i < x->rank; i++)
        stride += x->stride[i] * (x->dim[i] - 1) + (i == first);
    for (int i = 0; i < first; i++) {
        x->stride[i] = stride;
        stride = stride * (x->dim[i] ? x->dim[i] : 1) + 5;
    }
    x->data = hold(t, calloc((size_t)stride, att_dtype_size(x->dtype)));
    for (int64_t n = 0; n < check_count(x); n++)
        memcpy(element(x, n), element(&from, n), att_dtype_size(x->dtype));
}

/* The weights of the last head's first query, [tk]. */
static void weights_of(att_ctx *ctx, const trial *t, float *weights)
{
    att_plan *plan = plan_of(ctx, &t->spec);
    if (t->q_lengths[0] > 0 && att_weights(plan, &t->args, 0, t->spec.heads - 1, 0, 1, weights))
        fail_msg("%s\n%s", name_of(t->c), att_error(ctx));
    att_plan_free(plan);
}

static void strides_of_what_is_read_and_written_change_nothing(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 2);
    for (int n = 0; n < TRIALS; n += check_step(4)) {
        const choice c = any_choice(9000 + (uint64_t)n);
        trial t;
        make_trial(&t, &c, 1000 * (uint64_t)n);
        run_trial(ctx, &t);
        trial other = t; /* what it holds is t's, and more */
        att_tensor *const rows[] = {&other.args.q,   &other.args.k,     &other.args.v,     &other.args.out,
                                    &other.args.lse, &other.grads.dout, &other.grads.dlse, &other.grads.dq,
                                    &other.grads.dk, &other.grads.dv};
        for (int i = 0; i < COUNT(rows); i++)
            spread(&other, rows[i], false);
        att_tensor *param = own_params(&other.args), *dparam = own_dparams(&other.grads);
        for (int i = 0; i < other.args.n_params; i++)
            if (param[i].dtype != ATT_I32)
                spread(&other, &param[i], param[i].dtype == ATT_F32);
        for (int i = 0; i < other.grads.n_dparams; i++)
            spread(&other, &dparam[i], true);
        for (int i = 0; i < WRITTEN; i++) {
            const att_tensor *x = written(&other.args, &other.grads, i);
            for (int64_t j = 0; j < check_count(x); j++)
                memset(element(x, j), 0xa5, att_dtype_size(x->dtype));
        }
        run_trial(ctx, &other);
        for (int i = 0; i < WRITTEN; i++) {
            const att_tensor *x = written(&t.args, &t.grads, i), *y = written(&other.args, &other.grads, i);
            for (int64_t j = 0; j < check_count(x); j++)
                if (memcmp(element(x, j), element(y, j), att_dtype_size(x->dtype)))
                    fail_msg("%s\ntensor %d, number %d has other bits", name_of(&c), i, (int)j);
        }
        float weights[2][2048] = {{0}};
        weights_of(ctx, &t, weights[0]);
        weights_of(ctx, &other, weights[1]);
        assert_memory_equal(weights[0], weights[1], sizeof weights[0]);
        trial_free(&other);
    }
    att_close(ctx);
}

static void strides_of_pieces_change_nothing_of_what_they_merge_to(void **state)
{
    (void)state;
    enum { OUT, LSE, OUT_2, LSE_2, TENSORS };
    att_ctx *ctx = check_open(NULL, 2);
    trial t = {.seed = 1};
    att_tensor dense[TENSORS], spaced[TENSORS];
    for (int i = 0; i < TENSORS; i++) {
        make_tensor(&t, &dense[i], i % 2 ? 3 : 4, (const int64_t[]){2, 3, 17, 21});
        spaced[i] = dense[i];
        spread(&t, &spaced[i], false);
    }
    assert_int_equal(att_merge(ctx, &dense[OUT], &dense[LSE], &dense[OUT_2], &dense[LSE_2]), ATT_OK);
    assert_int_equal(att_merge(ctx, &spaced[OUT], &spaced[LSE], &spaced[OUT_2], &spaced[LSE_2]), ATT_OK);
    for (int i = OUT; i <= LSE; i++)
        for (int64_t j = 0; j < check_count(&dense[i]); j++)
            assert_memory_equal(element(&dense[i], j), element(&spaced[i], j), sizeof(float));
    trial_free(&t);
    att_close(ctx);
}

/* ---- ragged */

/* Rows of a sequence, which in a tensor of rows [tokens, ...] are next to each other. */
static att_tensor rows_of(const att_tensor *x, const int64_t *offsets, int64_t b)
{
    return x->data ? slice(*x, 0, offsets[b], offsets[b + 1] - offsets[b]) : *x;
}

/* Returns what a sequence sees of a table over [B, heads, Tq, Tk]. */
static att_tensor table_of(const trial *t, att_tensor x, int64_t b)
{
    const int64_t length[] = {t->q_lengths[b], t->k_lengths[b]};
    if (x.rank == 4 && x.dim[0] > 1)
        x = slice(x, 0, b, 1);
    for (int i = 2; x.rank == 4 && i < 4; i++)
        x.dim[i] = x.dim[i] > 1 ? length[i - 2] : 1;
    return x;
}

/* The call of one of the ragged sequences; what is written goes to memory of its own. */
static void take_alone(trial *t, int64_t b, const int64_t *q_offsets, const int64_t *k_offsets, att_attention_args *a,
                       att_attention_grads *g)
{
    const att_attention_args *all = &t->args;
    *a = *all;
    a->n_sequences = 1;
    a->q_offsets = q_offsets;
    a->k_offsets = k_offsets;
    a->sequence_ids = all->sequence_ids ? all->sequence_ids + b : NULL;
    a->q = rows_of(&all->q, all->q_offsets, b);
    a->k = rows_of(&all->k, all->k_offsets, b);
    a->v = rows_of(&all->v, all->k_offsets, b);
    a->out = rows_of(&all->out, all->q_offsets, b);
    a->lse = rows_of(&all->lse, all->q_offsets, b);
    att_tensor *param = own_params(a);
    for (int i = 0, of_documents = 0; i < a->n_params; i++) /* ids of queries, then of keys */
        param[i] = param[i].dtype == ATT_I32
                       ? rows_of(&all->param[i], of_documents++ % 2 ? all->k_offsets : all->q_offsets, b)
                       : table_of(t, all->param[i], b);
    *g = (att_attention_grads){.size = sizeof *g,
                               .dout = rows_of(&t->grads.dout, all->q_offsets, b),
                               .dlse = rows_of(&t->grads.dlse, all->q_offsets, b),
                               .dq = a->q,
                               .dk = a->k,
                               .dv = a->v};
    att_tensor *const own[] = {&a->out, &a->lse, &g->dq, &g->dk, &g->dv};
    for (int i = 0; i < COUNT(own); i++)
        own[i]->data = hold(t, malloc(bytes_of(own[i]) + 1));
}

static void a_ragged_sequence_alone_has_the_results_and_gradients_that_it_has_among_others(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 2);
    int done = 0;
    for (int n = 0; n < TRIALS; n += check_step(4)) {
        choice c = any_choice(7000 + (uint64_t)n);
        trial t;
        c.of[PLACE] = RAGGED;
        if (shapes[c.of[SHAPE]].batch == 1)
            continue;
        make_trial(&t, &c, 1000 * (uint64_t)n);
        run_trial(ctx, &t);
        for (int64_t b = 0; b < t.args.n_sequences; b++, done++) {
            const int64_t q_offsets[] = {0, t.q_lengths[b]}, k_offsets[] = {0, t.k_lengths[b]};
            att_attention_args a;
            att_attention_grads g;
            att_plan *plan = plan_of(ctx, &t.spec);
            take_alone(&t, b, q_offsets, k_offsets, &a, &g);
            if (att_forward(plan, &a) || att_backward(plan, &a, &g))
                fail_msg("%s\n%s", name_of(&c), att_error(ctx));
            att_plan_free(plan);
            for (int i = WRITTEN_OUT; i <= WRITTEN_DV; i++) {
                const bool of_keys = i == WRITTEN_DK || i == WRITTEN_DV;
                const att_tensor *x = written(&a, &g, i);
                const att_tensor among =
                    rows_of(written(&t.args, &t.grads, i), of_keys ? t.args.k_offsets : t.args.q_offsets, b);
                if (memcmp(among.data, x->data, bytes_of(x)))
                    fail_msg("%s\nsequence %d: tensor %d has other bits alone", name_of(&c), (int)b, i);
            }
        }
        trial_free(&t);
    }
    assert_true(done > 50 / check_step(4));
    att_close(ctx);
}

/* ---- added to what is there */

static double number_at(const att_tensor *x, int64_t n)
{
    float y;
    if (x->dtype == ATT_F32)
        return (double)((const float *)x->data)[n];
    const att_kernels *k = att_kernels_of(0);
    (x->dtype == ATT_F16 ? k->vector.from_f16 : k->vector.from_bf16)(1, (const uint16_t *)x->data + n, &y);
    return (double)y;
}

/* What is there joins chains of additions of at most some thousand terms; short types are rounded
 * once to the sum and were once to the gradient. */
static void gradients_are_added_to_what_is_there_whatever_the_stages(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 2);
    for (int n = 0; n < TRIALS; n += check_step(4)) {
        const choice c = any_choice(8000 + (uint64_t)n);
        trial t, added;
        make_trial(&t, &c, 1000 * (uint64_t)n);
        make_trial(&added, &c, 1000 * (uint64_t)n);
        trial before;
        make_trial(&before, &c, 1000 * (uint64_t)n);
        added.grads.accumulate = true;
        run_trial(ctx, &t);
        run_trial(ctx, &added);
        const double rounding = 2 * types[c.of[TYPE]].rounding + 64 * UNIT;
        const char *name = name_of(&c);
        for (int i = WRITTEN_DQ; i < WRITTEN; i++) {
            const att_tensor *x = written(&t.args, &t.grads, i), *sum = written(&added.args, &added.grads, i);
            for (int64_t j = 0; j < check_count(x); j++) {
                const double there = number_at(written(&before.args, &before.grads, i), j), plain = number_at(x, j);
                check_near(there + plain, (float)number_at(sum, j), rounding * (fabs(there) + fabs(plain)),
                           "%s\ntensor %d, number %d", name, i, (int)j);
            }
        }
        trial_free(&t), trial_free(&added), trial_free(&before);
    }
    att_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strides_of_what_is_read_and_written_change_nothing),
        cmocka_unit_test(strides_of_pieces_change_nothing_of_what_they_merge_to),
        cmocka_unit_test(a_ragged_sequence_alone_has_the_results_and_gradients_that_it_has_among_others),
        cmocka_unit_test(gradients_are_added_to_what_is_there_whatever_the_stages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
