/* Rows that a score has prepared, handed on by a forward to its backward; and the gradients of the parameters that
 * prepared them. */
#include "attention_score.h"
#include "attn/attn.h"

/* Memory for what a call's score prepares, full of NaN. */
static void make_prepared(const att_plan *plan, test_call *c)
{
    att_tensor shape[2], *const to[] = {&c->args.q_prepared, &c->args.k_prepared};
    assert_int_equal(att_prepared_shapes(plan, &c->args, &shape[0], &shape[1]), ATT_OK);
    for (int i = 0; i < 2; i++) {
        *to[i] = shape[i];
        if (!shape[i].rank)
            continue;
        to[i]->data = c->data[c->n_data++] = check_numbers(check_count(&shape[i]), 0);
        for (int64_t n = 0; n < check_count(&shape[i]); n++)
            floats(to[i])[n] = NAN;
    }
}

static void with_rows_handed_on_the_bits_are_the_same(void **state)
{
    (void)state;
    static const sizes of[] = {{2, 4, 2, 83, 70, 40, 36, 24, 24}, {3, 4, 4, 1, 50, 33, 40, 17, 8}};
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);)
        for (int i = 0; i < 4 * N_KINDS; i++) {
            test_call c = make_call(&kinds[i / 4], of[i % 2], i / 2 % 2), same = make_call(c.kind, c.n, i / 2 % 2);
            att_plan *plan = plan_of(ctx, &c.spec);
            make_prepared(plan, &c);
            assert_int_equal(att_forward(plan, &c.args), ATT_OK);
            assert_int_equal(att_backward(plan, &c.args, &c.grads), ATT_OK);
            run_call(ctx, &same);
            assert_same_written(&c, &same);
            att_plan_free(plan);
            drop_call(&c), drop_call(&same);
        }
}

/* Row x [n] of head h times one head's W [in, out] or, with out_first, [out, in] */
static double product(const att_tensor *w, bool out_first, int64_t h, const float *x, int64_t in, int64_t out,
                      int64_t o, double *magnitude)
{
    const float *at = floats(w) + (w->dim[0] > 1 ? h * in * out : 0);
    double sum = 0;
    *magnitude = 0;
    for (int64_t i = 0; i < in; i++) {
        const double term = (double)x[i] * (out_first ? at[o * in + i] : at[i * out + o]);
        sum += term;
        *magnitude += fabs(term);
    }
    return sum;
}

/* A chain of n products is off by at most n units of the sum of their magnitudes. */
static void check_rows(const test_call *c, const att_tensor *rows, const att_tensor *made, const att_tensor *w,
                       bool out_first)
{
    const int64_t in = rows->dim[3], out = made->dim[3], group = made->dim[1] / rows->dim[1];
    for (int64_t r = 0; r < made->dim[0] * made->dim[1] * made->dim[2]; r++) {
        const int64_t b = r / made->dim[2] / made->dim[1], h = r / made->dim[2] % made->dim[1], t = r % made->dim[2];
        const float *x = floats(rows) + ((b * rows->dim[1] + h / group) * rows->dim[2] + t) * in;
        for (int64_t o = 0; o < out; o++) {
            double magnitude;
            const double y = product(w, out_first, h, x, in, out, o, &magnitude);
            check_near(y, floats(made)[r * out + o], (double)in * 0x1p-24 * magnitude, "%s: row %lld", c->kind->name,
                       (long long)r);
        }
    }
}

static void prepared_rows_are_what_the_score_says(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 2);
    for (int i = 0; i < 2 * N_KINDS; i++) {
        test_call c = make_call(&kinds[i / 2], (sizes){2, 4, 2, 9, 21, 20, 28, 18, 8}, i % 2);
        const att_attention_args *a = &c.args;
        att_plan *plan = plan_of(ctx, &c.spec);
        make_prepared(plan, &c);
        assert_int_equal(att_forward(plan, a), ATT_OK);
        if (c.kind->score == &att_score_general)
            check_rows(&c, &a->q, &a->q_prepared, &a->score_param[0], false);
        assert_int_equal(a->k_prepared.rank, c.kind->projected || c.kind->score == &att_score_cosine ? 4 : 0);
        if (c.kind->projected) {
            assert_int_equal(a->k_prepared.dim[1], i % 2 ? 2 : 4); /* keys of a query head of its own */
            check_rows(&c, &a->q, &a->q_prepared, &a->score_param[1], true);
            check_rows(&c, &a->k, &a->k_prepared, &a->score_param[2], true);
        }
        for (int64_t r = 0; c.kind->score == &att_score_cosine && r < 2 * 4 * 9; r++) {
            double length = 0;
            for (int d = 0; d < 20; d++)
                length += (double)floats(&a->q_prepared)[20 * r + d] * (double)floats(&a->q_prepared)[20 * r + d];
            check_near(1, (float)length, 0x1p-20, "the length of a unit row");
        }
        att_plan_free(plan);
        drop_call(&c);
    }
    att_close(ctx);
}

/* A backward that is given rows uses these: of others it makes other gradients. */
static void a_backward_takes_the_rows_that_it_is_given(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    for (int k = 0; k < N_KINDS; k++) {
        test_call c = make_call(&kinds[k], (sizes){1, 1, 1, 5, 9, 8, 8, 8, 8}, true),
                  same = make_call(c.kind, c.n, true);
        att_plan *plan = plan_of(ctx, &c.spec);
        make_prepared(plan, &c);
        assert_int_equal(att_forward(plan, &c.args), ATT_OK);
        if (c.args.q_prepared.rank)
            floats(&c.args.q_prepared)[3] += 1;
        assert_int_equal(att_backward(plan, &c.args, &c.grads), ATT_OK);
        run_call(ctx, &same);
        assert_int_equal(memcmp(c.grads.dk.data, same.grads.dk.data, bytes_of(&c.grads.dk)) != 0,
                         c.args.q_prepared.rank > 0);
        att_plan_free(plan);
        drop_call(&c), drop_call(&same);
    }
    att_close(ctx);
}

/* The gradient of W is the sum over all rows of x^T of the gradients of prepared rows, which with W = 1 are those of q.
 * There are more rows than one product takes, and more numbers than one task. */
static void the_gradient_of_a_parameter_is_that_of_all_rows(void **state)
{
    (void)state;
    enum { DIM = 300, TQ = 70 };
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);)
        for (int shared = 0; shared < 2; shared++) {
            const sizes n = {3, 2, 2, TQ, 20, DIM, DIM, 0, 16};
            test_call c = make_call(&kinds[2], n, shared);
            float *w = floats(&c.args.score_param[0]), *dw = floats(&c.grads.dscore_param[0]);
            for (int64_t i = 0; i < (shared ? 1 : 2) * DIM * DIM; i++)
                w[i] = i % (DIM * DIM) % (DIM + 1) == 0;
            c.spec.scale = 1 / sqrtf(DIM);
            run_call(ctx, &c);
            for (int64_t at = 0; at < (shared ? 1 : 2) * DIM * DIM; at += 37) {
                const int64_t head = at / (DIM * DIM), i = at / DIM % DIM, o = at % DIM;
                double sum = 0, magnitude = 0;
                for (int64_t r = 0; r < 3 * 2 * TQ; r++) {
                    const double x = (double)floats(&c.args.q)[r * DIM + i] * (double)floats(&c.grads.dq)[r * DIM + o];
                    sum += shared || r / TQ % 2 == head ? x : 0;
                    magnitude += fabs(x);
                }
                check_near(sum, dw[at], 3 * 2 * TQ * 0x1p-24 * magnitude, "dW[%lld][%lld]", (long long)i, (long long)o);
            }
            drop_call(&c);
        }
}

/* A row without a gradient counts as 0 in that of W, whatever is in it: each third attends to nothing. */
static void rows_without_a_gradient_are_left_out(void **state)
{
    (void)state;
    enum { TQ = 300, DIM = 20 };
    uint8_t mask[TQ];
    for (int i = 0; i < TQ; i++)
        mask[i] = i % 3 > 0;
    att_ctx *ctx = check_open(NULL, 2);
    for (int k = 1; k < 3; k++) { /* of a parameter [out, in], and [in, out] */
        test_call calls[2];
        for (int j = 0; j < 2; j++) {
            test_call *c = &calls[j];
            *c = make_call(&kinds[k], (sizes){2, 2, 2, TQ, 12, DIM, DIM, 18, 8}, true);
            c->spec.mask[0] = &att_mask_boolean;
            att_wrap(&c->args.mask, mask, ATT_BOOL, ATT_DIMS(1, 1, TQ, 1), NULL);
            for (int64_t i = 0; i < 2 * 2 * TQ * DIM; i++)
                if (!mask[i / DIM % TQ])
                    floats(&c->args.q)[i] = j ? INFINITY : 0;
            run_call(ctx, c);
        }
        assert_same_written(&calls[0], &calls[1]);
        drop_call(&calls[0]), drop_call(&calls[1]);
    }
    att_close(ctx);
}

static void wrong_rows_are_named(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    const struct {
        int kind, dim, dtype;
        const char *words;
    } wrong[] = {{2, 3, 0, "q_prepared.dim[3] = 1 but what att_prepared_shapes tells = 10"},
                 {2, 1, 0, "q_prepared.dim[1] = 1 but what att_prepared_shapes tells = 2"},
                 {2, 2, 0, "q_prepared.dim[2] = 1 but what att_prepared_shapes tells = 5"},
                 {2, -1, ATT_F16, "q_prepared"},
                 {2, -2, 0, "q_prepared (at"},
                 {0, -3, 0, "q_prepared is given, but \"additive\" takes queries as they are"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        test_call c = make_call(&kinds[wrong[i].kind], (sizes){1, 2, 2, 5, 9, 8, 10, 6, 8}, false);
        test_call untouched = make_call(c.kind, c.n, false);
        att_plan *plan = plan_of(ctx, &c.spec);
        att_tensor *t = &c.args.q_prepared;
        make_prepared(plan, &c);
        if (wrong[i].dim >= 0)
            t->dim[wrong[i].dim] = 1;
        if (wrong[i].dim == -2)
            t->data = c.args.q.data;
        if (wrong[i].dim == -3)
            *t = c.args.q;
        t->dtype = (att_dtype)wrong[i].dtype;
        assert_true(att_forward(plan, &c.args) != ATT_OK);
        check_says(ctx, wrong[i].words);
        assert_same_written(&c, &untouched);
        att_plan_free(plan);
        drop_call(&c), drop_call(&untouched);
    }
    test_call c = make_call(&kinds[2], (sizes){1, 2, 2, 5, 9, 8, 10, 6, 8}, false);
    att_plan *plan = plan_of(ctx, &c.spec);
    make_prepared(plan, &c);
    assert_int_equal(att_forward(plan, &c.args), ATT_OK);
    c.grads.dk.data = c.args.q_prepared.data; /* 2 x 5 rows where 2 x 9 would be written */
    assert_true(att_backward(plan, &c.args, &c.grads) != ATT_OK);
    check_says(ctx, "dk (at");
    att_plan_free(plan);
    drop_call(&c);
    att_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(with_rows_handed_on_the_bits_are_the_same),
        cmocka_unit_test(prepared_rows_are_what_the_score_says),
        cmocka_unit_test(a_backward_takes_the_rows_that_it_is_given),
        cmocka_unit_test(the_gradient_of_a_parameter_is_that_of_all_rows),
        cmocka_unit_test(rows_without_a_gradient_are_left_out),
        cmocka_unit_test(wrong_rows_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
