/* Gradients of the parameters that project rows. */
#include "fixtures/attention_score.h"
#include "attn/reference.h"

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
            float *w = floats(param_of(&c.args, 0)), *dw = floats(dparam_of(&c.grads, 0));
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
            call_free(&c);
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
            add_mask(&c->spec, att_mask_boolean);
            att_wrap(param_at(&c->args, c->args.n_params), mask, ATT_BOOL, ATT_DIMS(1, 1, TQ, 1), NULL);
            for (int64_t i = 0; i < 2 * 2 * TQ * DIM; i++)
                if (!mask[i / DIM % TQ])
                    floats(&c->args.q)[i] = j ? INFINITY : 0;
            run_call(ctx, c);
        }
        assert_same_written(&calls[0], &calls[1]);
        call_free(&calls[0]), call_free(&calls[1]);
    }
    att_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_gradient_of_a_parameter_is_that_of_all_rows),
        cmocka_unit_test(rows_without_a_gradient_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
