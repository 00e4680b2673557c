/* Scores with parameters, or with rows that are prepared: what must hold exactly, and what the preparation costs. */
#include "fixtures/attention_score.h"
#include "attn/call/scratch.h"
#include "attn/reference.h"
#include "fixtures/fail_alloc.h"

static void any_number_of_threads_gives_the_same_bits(void **state)
{
    (void)state;
    for (int k = 0; k < N_KINDS; k++)
        for (int shared = 0; shared < 2; shared++) {
            const sizes n = {2, 4, 2, 83, 300, 40, 40, 24, 24};
            test_call c = make_call(&kinds[k], n, shared);
            check_threads(check_step(15), &c.spec, &c.args, &c.grads);
            call_free(&c);
        }
}

/* Every `step`-th query, alone and with others behind it. */
static void check_rows_alone(const att_plan *plan, const test_call *c, int64_t step)
{
    const sizes n = c->n;
    for (int64_t first = 0; first < n.tq; first += step)
        for (int64_t count = 1; count <= 17 && first + count <= n.tq; count += 8) {
            float *out = check_numbers(n.heads * count * n.value_dim, 0);
            att_attention_args a = c->args;
            a.lse = (att_tensor){0};
            att_wrap(&a.q, floats(&c->args.q) + first * n.head_dim, ATT_F32, ATT_DIMS(1, n.heads, count, n.head_dim),
                     c->args.q.stride);
            att_wrap(&a.out, out, ATT_F32, ATT_DIMS(1, n.heads, count, n.value_dim), NULL);
            assert_int_equal(att_forward(plan, &a), ATT_OK);
            for (int64_t h = 0; h < n.heads; h++)
                assert_same_bits(floats(&c->args.out) + (h * n.tq + first) * n.value_dim, out + h * count * n.value_dim,
                                 count * n.value_dim);
            free(out);
        }
}

/* Some queries and keys are so large that additive attention computes parts of them in another way. */
static void a_row_alone_has_the_bits_that_it_has_among_others(void **state)
{
    (void)state;
    static const sizes of[] = {{1, 2, 1, 77, 90, 150, 150, 70, 12}, {1, 2, 1, 77, 90, 192, 192, 256, 12}};
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 1);)
        for (int k = 0; k < 2 * N_KINDS; k++) {
            const sizes n = of[k % 2];
            test_call c = make_call(&kinds[k / 2], n, false);
            for (int64_t i = 0; i < n.tk; i += 5)
                floats(&c.args.k)[i * n.key_dim + 37 * i % n.key_dim] *= 50;
            for (int64_t i = 0; i < n.tq; i += 38)
                floats(&c.args.q)[i * n.head_dim + i] *= 50;
            att_plan *plan = plan_of(ctx, &c.spec);
            assert_int_equal(att_forward(plan, &c.args), ATT_OK);
            check_rows_alone(plan, &c, 19);
            att_plan_free(plan);
            call_free(&c);
        }
}

/* The key is NaN or infinite, or so are parts of it; no query attends to it, or one in the tile does. */
static void what_is_not_finite_reaches_only_those_who_attend_to_it(void **state)
{
    (void)state;
    static const float strange[] = {NAN, INFINITY, -INFINITY, 3e38f, 30};
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 1);)
        for (int k = 0; k < N_KINDS; k++)
            for (int i = 0; i < 5; i++) {
                const sizes n = {1, 1, 1, 70, 70, 40, 40, 24, 12};
                test_call clean = make_call(&kinds[k], n, true), c = make_call(&kinds[k], n, true);
                add_mask(&clean.spec, att_mask_causal);
                add_mask(&c.spec, att_mask_causal);
                clean.spec.align = c.spec.align = ATT_ALIGN_TOP_LEFT;
                for (int64_t d = 45 * 12; d < 70 * 12; d++) /* nothing flows back from those who do attend */
                    floats(&clean.grads.dout)[d] = floats(&c.grads.dout)[d] = 0;
                for (int64_t q = 45; q < 70; q++)
                    floats(&clean.grads.dlse)[q] = floats(&c.grads.dlse)[q] = 0;
                for (int64_t d = 0; d < 40; d += 7)
                    floats(&c.args.k)[45 * 40 + d] = strange[i];
                run_call(ctx, &clean), run_call(ctx, &c);
                assert_same_bits(floats(&clean.args.out), floats(&c.args.out), 45 * 12);
                assert_same_bits(floats(&clean.args.lse), floats(&c.args.lse), 45);
                assert_same_bits(floats(&clean.grads.dq), floats(&c.grads.dq), 45 * 40);
                for (int64_t d = 45 * 12; i == 0 && d < 70 * 12; d++)
                    assert_true(isnan(floats(&c.args.out)[d]));
                call_free(&clean), call_free(&c);
            }
}

/* No query attends to the last key, which is NaN: all that is asked for stays as it is without that key. */
static void a_masked_key_that_is_nan_reaches_nothing(void **state)
{
    (void)state;
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);)
        for (int i = 0; i < 2 * N_KINDS; i++) {
            const int k = i / 2;
            const sizes n = {1, 2, 2, i % 2 ? 1 : 33, 40, 36, 36, 24, 12};
            test_call clean = make_call(&kinds[k], n, true), c = make_call(&kinds[k], n, true);
            uint8_t mask[40];
            memset(mask, 1, sizeof mask);
            mask[39] = 0;
            test_call *const calls[] = {&clean, &c};
            for (int j = 0; j < 2; j++) {
                add_mask(&calls[j]->spec, att_mask_boolean);
                att_wrap(param_at(&calls[j]->args, calls[j]->args.n_params), mask, ATT_BOOL, ATT_DIMS(1, 1, 1, 40),
                         NULL);
            }
            for (int64_t h = 0; h < 2; h++)
                for (int64_t d = 0; d < 36; d++)
                    floats(&c.args.k)[(h * 40 + 39) * 36 + d] = NAN;
            run_call(ctx, &clean), run_call(ctx, &c);
            assert_same_written(&clean, &c);
            call_free(&clean), call_free(&c);
        }
}

/* Sequences one after the other, or each in a row of its own with NaN behind its end. */
static void ragged_and_padded_give_the_same_bits(void **state)
{
    (void)state;
    static const int64_t lengths[3] = {20, 1, 13}, offsets[4] = {0, 20, 21, 34};
    enum { TOKENS = 34, T = 20, D = 24, DV = 12 };
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);)
        for (int kd = 0; kd < N_KINDS; kd++) {
            test_call c = make_call(&kinds[kd], (sizes){3, 1, 1, T, T, D, D, 10, DV}, true);
            test_call r = make_call(&kinds[kd], (sizes){1, 1, 1, TOKENS, TOKENS, D, D, 10, DV}, true);
            r.args.param = c.args.param;
            c.args.q_lengths = c.args.k_lengths = lengths;
            r.args.n_sequences = 3;
            r.args.q_offsets = offsets;
            att_tensor *const a[] = {&c.args.q,   &c.args.k,   &c.args.v,   &c.args.out,   &c.grads.dout,
                                     &c.grads.dq, &c.grads.dk, &c.grads.dv, &c.grads.dlse, &c.args.lse};
            att_tensor *const b[] = {&r.args.q,   &r.args.k,   &r.args.v,   &r.args.out,   &r.grads.dout,
                                     &r.grads.dq, &r.grads.dk, &r.grads.dv, &r.grads.dlse, &r.args.lse};
            for (int i = 0; i < 10; i++) {
                const int64_t dim = i < 8 ? a[i]->dim[3] : 1;
                for (int64_t s = 0; s < 3; s++) {
                    memcpy(floats(b[i]) + offsets[s] * dim, floats(a[i]) + s * T * dim,
                           (size_t)(lengths[s] * dim) * sizeof(float));
                    for (int64_t x = (s * T + lengths[s]) * dim; x < (s + 1) * T * dim; x++)
                        floats(a[i])[x] = NAN;
                }
                att_wrap(b[i], b[i]->data, ATT_F32, i < 8 ? 3 : 2, (const int64_t[]){TOKENS, 1, dim}, NULL);
            }
            run_call(ctx, &c), run_call(ctx, &r);
            for (int i = 3; i < 8; i++)
                for (int64_t s = 0; s < 3 && i != 4; s++)
                    assert_same_bits(floats(a[i]) + s * T * a[i]->dim[3], floats(b[i]) + offsets[s] * a[i]->dim[3],
                                     lengths[s] * a[i]->dim[3]);
            for (int i = 0; i < MOST_PARAMS; i++)
                assert_same_bits(floats(dparam_of(&c.grads, i)), floats(dparam_of(&r.grads, i)),
                                 check_count(dparam_of(&c.grads, i)));
            call_free(&c), call_free(&r);
        }
}

static void accumulating_adds_to_what_is_there(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 2);
    for (int k = 0; k < N_KINDS; k++)
        for (int shared = 0; shared < 2; shared++) {
            const sizes n = {2, 4, 2, 20, 40, 16, 24, 18, 8};
            test_call set = make_call(&kinds[k], n, shared), add = make_call(&kinds[k], n, shared);
            test_call before = make_call(&kinds[k], n, shared);
            add.grads.accumulate = true;
            run_call(ctx, &set), run_call(ctx, &add);
            for (int t = WRITTEN_DQ; t < WRITTEN; t++) {
                const att_tensor *plain = written(&set.args, &set.grads, t);
                const float *x = floats(plain), *there = floats(written(&before.args, &before.grads, t));
                const float *sum = floats(written(&add.args, &add.grads, t));
                for (int64_t i = 0; i < check_count(plain); i++) /* a group of heads adds one after the other */
                    check_near((double)x[i] + there[i], sum[i], 0x1p-23 * (2 + 2 * fabs(x[i])), "%s: gradient %d",
                               kinds[k].name, t);
            }
            call_free(&set), call_free(&add), call_free(&before);
        }
    att_close(ctx);
}

/* The numbers of t, in place, as those of f16 that are nearest. */
static void to_halves(const att_kernels *k, test_call *c, att_tensor *t)
{
    uint16_t *halves = malloc((size_t)(check_count(t) + 1) * sizeof(float));
    k->vector.to_f16(check_count(t), t->data, halves);
    k->vector.from_f16(check_count(t), halves, t->data);
    c->data[c->n_data++] = (float *)(void *)halves;
    t->data = halves;
    t->dtype = ATT_F16;
}

/* Rows in f16 give what the same numbers give in f32, rounded; gradients also know only the rounded output. */
static void rows_in_f16_are_computed_in_f32(void **state)
{
    (void)state;
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);)
        for (int kd = 0; kd < N_KINDS; kd++)
            for (int shared = 0; shared < 2; shared++) {
                test_call c = make_call(&kinds[kd], (sizes){2, 4, 2, 40, 33, 20, 28, 18, 8}, shared), half = c;
                half.n_data = 0;
                half.spec.dtype = ATT_F16;
                att_tensor *const rows[] = {&half.args.q,     &half.args.k,   &half.args.v,   &half.args.out,
                                            &half.grads.dout, &half.grads.dq, &half.grads.dk, &half.grads.dv};
                att_tensor *const same[] = {&c.args.q,     &c.args.k,   &c.args.v,   &c.args.out,
                                            &c.grads.dout, &c.grads.dq, &c.grads.dk, &c.grads.dv};
                const att_kernels *k = att_kernels_of(att_isa_find(att_isa(ctx)));
                for (int i = 0; i < 8; i++)
                    to_halves(k, &half, rows[i]);
                run_call(ctx, &half);
                float *dparam[MOST_PARAMS]; /* a copy, for the f32 call writes there as well */
                for (int i = 0; i < MOST_PARAMS; i++) {
                    const att_tensor *t = dparam_of(&half.grads, i);
                    dparam[i] = check_numbers(check_count(t), 0);
                    if (t->data)
                        memcpy(dparam[i], t->data, (size_t)check_count(t) * sizeof(float));
                }
                run_call(ctx, &c);
                for (int i = 0; i < 8; i++) {
                    float *x = check_numbers(check_count(rows[i]), 0);
                    k->vector.from_f16(check_count(rows[i]), rows[i]->data, x);
                    for (int64_t j = 0; j < check_count(rows[i]); j++)
                        check_near(floats(same[i])[j], x[j],
                                   0x1p-11 * (fabs(floats(same[i])[j]) + (i > 4 ? 2 : 0x1p-14)), "%s %s: tensor %d[%d]",
                                   att_isa(ctx), kinds[kd].name, i, (int)j);
                    free(x);
                }
                /* a row's slopes are off by 2^-11 or so, of its output, times numbers up to 4; 320 rows add up */
                for (int i = 0; i < MOST_PARAMS; i++) {
                    for (int64_t j = 0; j < check_count(dparam_of(&c.grads, i)); j++)
                        check_near(floats(dparam_of(&c.grads, i))[j], dparam[i][j], 0x1p-11 * 4 * sqrt(320),
                                   "%s: parameter %d[%d]", kinds[kd].name, i, (int)j);
                    free(dparam[i]);
                }
                call_free(&half), call_free(&c);
            }
}

static void a_row_of_zeros_has_cosine_0_and_no_gradient(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    test_call c = make_call(&kinds[3], (sizes){1, 1, 1, 3, 4, 20, 20, 0, 8}, true);
    memset(c.args.q.data, 0, 20 * sizeof(float));
    memset(c.args.k.data, 0, 20 * sizeof(float));
    run_call(ctx, &c);
    assert_true(fabsf(floats(&c.args.lse)[0] - logf(4)) < 1e-6f);
    for (int i = 0; i < 20; i++)
        assert_true(floats(&c.grads.dq)[i] == 0 && floats(&c.grads.dk)[i] == 0);
    call_free(&c);
    att_close(ctx);
}

static void describing_counts_the_prepared_rows(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    test_call c = make_call(&kinds[1], (sizes){2, 3, 1, 10, 20, 8, 9, 32, 8}, true);
    att_plan *plan = plan_of(ctx, &c.spec);
    att_plan_info before = {.size = sizeof before}, info = {.size = sizeof info};
    assert_int_equal(att_plan_describe(plan, NULL, &before), ATT_OK);
    assert_int_equal(att_plan_describe(plan, &c.args, &info), ATT_OK);
    assert_int_equal(info.forward.workspace - before.forward.workspace,
                     (2 * 3 * 10 + 2 * 1 * 20) * 32 * sizeof(float) + 2 * ATT_SCRATCH_HEADER);
    att_plan_free(plan);
    call_free(&c);
    att_close(ctx);
}

static void every_failing_allocation_is_reported(void **state)
{
    (void)state;
    for (int k = 0; k < N_KINDS; k++) {
        test_call c = make_call(&kinds[k], (sizes){2, 2, 1, 9, 20, 12, 12, 10, 8}, false);
        c.grads.accumulate = true;
        bool done = false;
        for (long n = 1; !done; n++) {
            fail_alloc f = {0};
            att_ctx *ctx = fail_open(&f);
            f.fail_at = f.calls + n;
            att_plan *plan = NULL;
            att_status e = att_plan_new(ctx, &c.spec, &plan);
            e = e ? e : att_forward(plan, &c.args);
            e = e ? e : att_backward(plan, &c.args, &c.grads);
            done = f.calls < f.fail_at;
            assert_int_equal(e, done ? ATT_OK : ATT_ERR_MEMORY);
            att_plan_free(plan);
            att_close(ctx);
            assert_int_equal(f.live, 0);
        }
        call_free(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
        cmocka_unit_test(a_row_alone_has_the_bits_that_it_has_among_others),
        cmocka_unit_test(what_is_not_finite_reaches_only_those_who_attend_to_it),
        cmocka_unit_test(a_masked_key_that_is_nan_reaches_nothing),
        cmocka_unit_test(ragged_and_padded_give_the_same_bits),
        cmocka_unit_test(accumulating_adds_to_what_is_there),
        cmocka_unit_test(rows_in_f16_are_computed_in_f32),
        cmocka_unit_test(a_row_of_zeros_has_cosine_0_and_no_gradient),
        cmocka_unit_test(describing_counts_the_prepared_rows),
        cmocka_unit_test(every_failing_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
