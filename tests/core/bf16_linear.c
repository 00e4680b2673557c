/* Linear layers whose products compute in bf16: what is chosen, the bits of each product, rows, gradients. */
#include "fixtures/bf16_order.h"
#include "fixtures/tape.h"

enum { K_MAX = 130, N_MAX = 70, M_MAX = 40 };

/* Opens contexts on the sets that multiply bf16, one after the other. */
static bool next_context(att_ctx **ctx, int threads)
{
    while (check_next_context(ctx, threads))
        if (att_kernels_of((*ctx)->isa)->bf16_gemm.run)
            return true;
    return false;
}

static void skip_without_a_set(void)
{
    bool any = false;
    for (int isa = -1; check_next_isa(&isa);)
        any |= att_kernels_of(isa)->bf16_gemm.run != NULL;
    if (!any)
        skip();
}

static att_tape *bf16_tape(att_ctx *ctx, bool record)
{
    att_tape *t;
    const att_tape_config cfg = {.size = sizeof cfg, .record = record, .compute = ATT_COMPUTE_BF16};
    if (att_tape_new(ctx, &cfg, &t))
        fail_msg("%s", att_error(ctx));
    return t;
}

/* The order of the set's sums. */
static float dot(att_ctx *ctx, int64_t pairs, const uint16_t *a, const uint16_t *b, float c)
{
    const bool tiles = att_bf16_gemm_of(ctx) == &att_kernels_of(ctx->isa)->bf16_gemm_tiles;
    return (tiles ? dot_in_tiles : dot_in_vectors)(pairs, a, b, c);
}

/* ---- what is chosen */

static void bf16_is_refused_where_the_set_does_not_multiply_it(void **state)
{
    (void)state;
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 1);) {
        const bool has = att_kernels_of(ctx->isa)->bf16_gemm.run;
        att_compute in_force = ATT_COMPUTE_AUTO;
        char sentence[256];
        att_tape *t = NULL;
        assert_int_equal(att_compute_choose(ctx, ATT_COMPUTE_F32, &in_force), ATT_OK);
        assert_int_equal(in_force, ATT_COMPUTE_F32);
        assert_int_equal(att_compute_choose(ctx, ATT_COMPUTE_BF16, &in_force), has ? ATT_OK : ATT_ERR_UNSUPPORTED);
        assert_int_equal(in_force, has ? ATT_COMPUTE_BF16 : ATT_COMPUTE_F32);
        assert_int_equal(att_compute_choose(ctx, ATT_COMPUTE_AUTO, &in_force), ATT_OK);
        assert_true(has || in_force == ATT_COMPUTE_F32);
        assert_int_equal(att_tape_new(ctx, ATT_OPTIONS(att_tape_config, .compute = ATT_COMPUTE_BF16), &t),
                         has ? ATT_OK : ATT_ERR_UNSUPPORTED);
        snprintf(sentence, sizeof sentence,
                 "compute is bf16, but instruction set \"%s\" does not multiply it, only avx512bf16 and amx do: choose "
                 "f32 or auto",
                 att_isa(ctx));
        if (!has)
            assert_string_equal(att_error(ctx), sentence);
        assert_int_equal(att_tape_compute(t), has ? ATT_COMPUTE_BF16 : ATT_COMPUTE_F32);
        att_tape_free(t);
        assert_int_equal(att_compute_choose(ctx, (att_compute)3, &in_force), ATT_ERR_ARGUMENT);
        assert_string_equal(att_error(ctx), "compute is 3, expected an att_compute");
    }
    assert_string_equal(att_compute_name(ATT_COMPUTE_AUTO), "auto");
    assert_null(att_compute_name((att_compute)3));
}

/* ---- the bits of a product */

/* Numbers of all magnitudes that bf16 has, also denormal ones and zeros; or in [-1, 1). */
static void fill(float *x, int64_t n, uint64_t seed, bool wild)
{
    check_fill(x, n, seed, 0, 1);
    for (int64_t i = 0; i < n && wild; i++) {
        const int exponent = (int)(check_bits(seed + 1, (uint64_t)i) % 130) - 129;
        x[i] = i % 13 == 5 ? 0 : ldexpf(x[i], i % 3 ? exponent / 2 : exponent);
    }
}

static void round_row(int64_t k, const float *x, int64_t step, uint16_t *y)
{
    memset(y, 0, (K_MAX + 2) * sizeof *y);
    for (int64_t i = 0; i < k; i++)
        y[i] = round_to_bf16(x[i * step]);
}

/* Compares c [m, n] with the sums over k of a(i, p) b(p, j), bit for bit. */
static void check_product(att_ctx *ctx, const att_matmul_args *p, const float *before, const char *what)
{
    uint16_t a[K_MAX + 2], b[K_MAX + 2];
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            round_row(p->k, p->a.x + i * p->a.row, p->a.column, a);
            round_row(p->k, p->b.x + j * p->b.column, p->b.row, b);
            const float want = dot(ctx, att_ceil_div(p->k, 2), a, b, before ? before[i * p->n + j] : 0);
            const float is = p->c[i * p->ldc + j];
            if (bits_of_float(want) != bits_of_float(is) && !(isnan(want) && isnan(is)) && !(want == 0 && is == 0))
                fail_msg("%s on %s, %d x %d x %d: c[%d][%d] is %a, not %a", what, att_isa(ctx), (int)p->m, (int)p->n,
                         (int)p->k, (int)i, (int)j, (double)is, (double)want);
        }
}

static void products_have_the_bits_of_the_stated_order(void **state)
{
    (void)state;
    skip_without_a_set();
    static const int64_t ms[] = {1, 2, 3, 7, 16, 17, 40}, ns[] = {1, 31, 32, 33, 70};
    static float a[M_MAX * K_MAX], b[N_MAX * K_MAX], c[M_MAX * N_MAX], before[M_MAX * N_MAX];
    for (att_ctx *ctx = NULL; next_context(&ctx, 2);)
        for (int64_t k = 0; k <= K_MAX; k += k < 66 ? 1 : 32)
            for (int way = 0; way < 8; way++) {
                const int64_t m = ms[(k + way) % 7], n = ns[(k * 3 + way) % 5];
                const bool a_across = way & 1, b_across = way & 2, add = way & 4;
                fill(a, m * k, (uint64_t)k, way % 3 == 1);
                fill(b, n * k, (uint64_t)k + 7, way % 3 == 1);
                fill(before, m * n, 9, way % 3 == 1);
                memcpy(c, before, (size_t)(m * n) * sizeof *c);
                const att_matmul_args p = {.m = m,
                                           .n = n,
                                           .k = k,
                                           .a = {a, a_across ? 1 : k, a_across ? m : 1},
                                           .b = {b, b_across ? 1 : n, b_across ? k : 1},
                                           .add = add,
                                           .c = c,
                                           .ldc = n,
                                           .bf16 = true};
                float *scratch = att_alloc(ctx, att_matmul_scratch(ctx, &p), sizeof *scratch);
                att_matmul_strided(ctx, &p, scratch);
                att_free(ctx, scratch);
                check_product(ctx, &p, add ? before : NULL, "product");
            }
}

/* ---- layers */

typedef struct layer {
    att_ctx *ctx;
    int64_t m, n, k;
    float *x, *w, *bias, *residual;
    att_param *weight, *b;
} layer;

static layer new_layer(att_ctx *ctx, int64_t m, int64_t n, int64_t k)
{
    layer l = {.ctx = ctx,
               .m = m,
               .n = n,
               .k = k,
               .x = check_numbers(m * k, 1),
               .w = check_numbers(n * k, 2),
               .bias = check_numbers(n, 3),
               .residual = check_numbers(m * n, 4)};
    l.weight = param(ctx, l.w, ATT_F32, 2, (const int64_t[]){n, k});
    l.b = param(ctx, l.bias, ATT_F32, 1, &n);
    return l;
}

static void free_layer(layer *l)
{
    att_param_free(l->weight);
    att_param_free(l->b);
    free(l->x), free(l->w), free(l->bias), free(l->residual);
}

static att_var *apply(const layer *l, att_tape *t, int64_t first, int64_t rows, att_activation act)
{
    att_var *x = input(t, l->x + first * l->k, 2, (const int64_t[]){rows, l->k});
    att_var *residual = input(t, l->residual + first * l->n, 2, (const int64_t[]){rows, l->n});
    return att_linear(t, x, l->weight, l->b, act, residual);
}

static void layers_are_as_close_to_double_as_bf16_can_be(void **state)
{
    (void)state;
    skip_without_a_set();
    for (att_ctx *ctx = NULL; next_context(&ctx, 2);)
        for (int act = ATT_ACTIVATION_IDENTITY; act <= ATT_ACTIVATION_QUICK_GELU; act++) {
            layer l = new_layer(ctx, 37, 65, 100 + act);
            att_tape *t = bf16_tape(ctx, false);
            const float *y = read_floats(t, apply(&l, t, 0, l.m, (att_activation)act));
            for (int64_t i = 0; i < l.m * l.n; i++) {
                double z = (double)l.bias[i % l.n], size = fabs(z);
                for (int64_t p = 0; p < l.k; p++) {
                    const double product = (double)l.x[i / l.n * l.k + p] * (double)l.w[i % l.n * l.k + p];
                    z += product;
                    size += fabs(product);
                }
                /* Two factors are rounded, each by 2^-9 of itself; sums round to f32 at each step. The slope of an
                 * activation is at most 1.13. */
                const double tolerance = 1.13 * size * (0x1p-8 + 0x1p-18 + (double)(l.k + 4) * 0x1p-24);
                check_near(att_ref_activate(act, z) + (double)l.residual[i], y[i], tolerance + 0x1p-22,
                           "%s, activation %d, y[%d]", att_isa(ctx), act, (int)i);
            }
            att_tape_free(t);
            free_layer(&l);
        }
}

static void a_row_has_the_same_bits_alone_in_any_batch_and_for_any_threads(void **state)
{
    (void)state;
    skip_without_a_set();
    for (att_ctx *ctx = NULL; next_context(&ctx, 3);) {
        layer l = new_layer(ctx, 1100, 97, 131);
        float *all = calloc((size_t)(l.m * l.n), sizeof *all);
        att_tape *t = bf16_tape(ctx, false);
        memcpy(all, read_floats(t, apply(&l, t, 0, l.m, ATT_ACTIVATION_GELU_ERF)), (size_t)(l.m * l.n) * sizeof *all);
        for (int threads = 1; threads <= 3; threads += 2)
            for (int64_t first = 0, rows = 1; first + rows <= l.m; first += rows, rows = rows % 97 * 2 + 1) {
                att_set_threads(ctx, threads);
                att_tape_reset(t);
                const float *y = read_floats(t, apply(&l, t, first, rows, ATT_ACTIVATION_GELU_ERF));
                assert_memory_equal(y, all + first * l.n, (size_t)(rows * l.n) * sizeof *y);
            }
        att_tape_free(t);
        free(all);
        free_layer(&l);
    }
}

static void nan_and_infinity_in_all_other_rows_stay_there(void **state)
{
    (void)state;
    skip_without_a_set();
    for (att_ctx *ctx = NULL; next_context(&ctx, 1);)
        for (int64_t k = 1; k <= 65; k++)
            for (int64_t row = 0; row < 18; row += 17) {
                enum { M = 18, N = 33 };
                layer l = new_layer(ctx, M, N, k);
                float clean[N];
                att_tape *t = bf16_tape(ctx, false);
                memcpy(clean, read_floats(t, apply(&l, t, row, 1, ATT_ACTIVATION_IDENTITY)), sizeof clean);
                for (int64_t i = 0; i < M * k; i++)
                    l.x[i] = i / k == row ? l.x[i] : i % 2 ? NAN : INFINITY;
                att_tape_reset(t);
                const float *y = read_floats(t, apply(&l, t, 0, M, ATT_ACTIVATION_IDENTITY));
                assert_memory_equal(y + row * N, clean, sizeof clean);
                for (int64_t i = 0; i < M * N; i++)
                    assert_true(!isfinite(y[i]) == (i / N != row));
                att_tape_free(t);
                free_layer(&l);
            }
}

/* Weights of 16 bits, and those with strides, are rounded as their values in f32 are. */
static void weights_of_any_type_and_layout_have_the_bits_of_their_values(void **state)
{
    (void)state;
    skip_without_a_set();
    enum { M = 5, N = 4200, K = 67 }; /* converted in several blocks */
    for (att_ctx *ctx = NULL; next_context(&ctx, 2);)
        for (int dtype = ATT_F32; dtype <= ATT_BF16; dtype++) {
            layer l = new_layer(ctx, M, N, K);
            void *stored = calloc(N * K, 4);
            const int64_t dim[] = {N, K}, across[] = {1, N};
            att_tensor from = view(l.w, ATT_F32, 2, dim), to, back = view(l.w, ATT_F32, 2, dim);
            assert_int_equal(att_wrap(&to, stored, (att_dtype)dtype, 2, dim, dtype == ATT_F32 ? across : NULL), ATT_OK);
            assert_int_equal(att_tensor_convert(ctx, &from, &to), ATT_OK);
            assert_int_equal(att_tensor_convert(ctx, &to, &back), ATT_OK);
            att_param *weight;
            assert_int_equal(att_param_new(ctx, &to, &weight), ATT_OK);
            att_tape *t = bf16_tape(ctx, false);
            const float *want = read_floats(t, apply(&l, t, 0, M, ATT_ACTIVATION_RELU));
            att_param_free(l.weight);
            l.weight = weight;
            assert_memory_equal(read_floats(t, apply(&l, t, 0, M, ATT_ACTIVATION_RELU)), want, M * N * sizeof *want);
            assert_int_equal(att_param_copies(weight), att_param_pairs_count(weight) * sizeof(float));
            att_tape_free(t);
            free(stored);
            free_layer(&l);
        }
}

/* ---- logits */

static void logits_that_are_not_stored_have_the_bits_of_the_layer(void **state)
{
    (void)state;
    skip_without_a_set();
    enum { M = 9, N = 700, K = 65, TOP = 3 };
    for (att_ctx *ctx = NULL; next_context(&ctx, 2);) {
        layer l = new_layer(ctx, M, N, K);
        att_tape *t = bf16_tape(ctx, false);
        att_var *x = input(t, l.x, 2, (const int64_t[]){M, K});
        const float *y = read_floats(t, att_linear(t, x, l.weight, l.b, ATT_ACTIVATION_IDENTITY, NULL));
        att_top_column best[M], top[M][TOP];
        assert_int_equal(att_linear_argmax(t, x, l.weight, l.b, NULL, best), ATT_OK);
        assert_int_equal(att_linear_topk(t, x, l.weight, l.b, NULL, TOP, top[0], NULL), ATT_OK);
        for (int i = 0; i < M; i++) {
            int64_t largest = 0;
            for (int64_t j = 1; j < N; j++)
                largest = y[i * N + j] > y[i * N + largest] ? j : largest;
            assert_true(best[i].column == largest && best[i].value == y[i * N + largest]);
            assert_true(top[i][0].column == largest);
            for (int j = 0; j < TOP; j++)
                assert_true(top[i][j].value == y[i * N + top[i][j].column]);
        }
        att_tape_free(t);
        free_layer(&l);
    }
}

/* ---- gradients */

typedef struct slopes {
    float dx[M_MAX * K_MAX], dw[N_MAX * K_MAX], db[N_MAX];
} slopes;

static void compute_slopes(layer *l, float *dy, int threads, slopes *s)
{
    att_tape *t = bf16_tape(l->ctx, true);
    att_set_threads(l->ctx, threads);
    att_param_zero_grad(l->weight);
    att_param_zero_grad(l->b);
    att_var *x = input(t, l->x, 2, (const int64_t[]){l->m, l->k});
    att_var *y = att_linear(t, x, l->weight, l->b, ATT_ACTIVATION_IDENTITY, NULL);
    const att_tensor d = view(dy, ATT_F32, 2, (const int64_t[]){l->m, l->n});
    att_tensor dx;
    assert_int_equal(att_tape_backward(t, y, &d), ATT_OK);
    assert_int_equal(att_var_grad(t, x, &dx), ATT_OK);
    memcpy(s->dx, dx.data, (size_t)(l->m * l->k) * sizeof *s->dx);
    memcpy(s->dw, att_param_grad(l->weight)->data, (size_t)(l->n * l->k) * sizeof *s->dw);
    memcpy(s->db, att_param_grad(l->b)->data, (size_t)l->n * sizeof *s->db);
    att_tape_free(t);
}

/* dx = dy W and dW = dy^T x in the stated order; db is a sum of f32. */
static void gradients_are_products_of_bf16_too(void **state)
{
    (void)state;
    skip_without_a_set();
    static slopes one, three;
    for (att_ctx *ctx = NULL; next_context(&ctx, 3);) {
        layer l = new_layer(ctx, M_MAX, N_MAX, 67);
        float *dy = check_numbers(l.m * l.n, 5);
        compute_slopes(&l, dy, 1, &one);
        compute_slopes(&l, dy, 3, &three);
        assert_memory_equal(&one, &three, sizeof one);
        check_product(ctx,
                      &(const att_matmul_args){l.m, l.k, l.n, {dy, l.n, 1}, {l.w, l.k, 1}, .c = one.dx, .ldc = l.k},
                      NULL, "dx");
        check_product(ctx,
                      &(const att_matmul_args){l.n, l.k, l.m, {dy, 1, l.n}, {l.x, l.k, 1}, .c = one.dw, .ldc = l.k},
                      NULL, "dw");
        for (int64_t j = 0; j < l.n; j++) {
            double sum = 0;
            for (int64_t i = 0; i < l.m; i++)
                sum += (double)dy[i * l.n + j];
            check_near(sum, one.db[j], M_MAX * M_MAX * 0x1p-25, "db[%d]", (int)j);
        }
        free(dy);
        free_layer(&l);
    }
}

/* The loss of logits that are not stored has the terms of the layer's logits, and its gradients are theirs, within the
 * rounding of dz to bf16 and of sums. */
static void the_cross_entropy_of_a_layer_computes_in_bf16(void **state)
{
    (void)state;
    skip_without_a_set();
    enum { M = 1100, N = 600, K = 33 }; /* two blocks of rows, two of classes */
    for (att_ctx *ctx = NULL; next_context(&ctx, 2);) {
        layer l = new_layer(ctx, M, N, K);
        int32_t targets[M];
        att_tensor dx[2];
        float loss[2], *dw[2];
        att_tape *t[2];
        for (int i = 0; i < M; i++)
            targets[i] = (int32_t)(check_bits(6, (uint64_t)i) % N);
        for (int fused = 0; fused < 2; fused++) {
            t[fused] = bf16_tape(ctx, true);
            att_param_zero_grad(l.weight);
            att_var *x = input(t[fused], l.x, 2, (const int64_t[]){M, K});
            att_var *y =
                fused
                    ? att_linear_cross_entropy(t[fused], x, l.weight, l.b, targets, NULL)
                    : att_cross_entropy(t[fused], att_linear(t[fused], x, l.weight, l.b, ATT_ACTIVATION_IDENTITY, NULL),
                                        targets, NULL);
            loss[fused] = *read_floats(t[fused], y);
            assert_int_equal(att_tape_backward(t[fused], y, NULL), ATT_OK);
            assert_int_equal(att_var_grad(t[fused], x, &dx[fused]), ATT_OK);
            dw[fused] = malloc(N * K * sizeof(float));
            memcpy(dw[fused], att_param_grad(l.weight)->data, N * K * sizeof(float));
        }
        check_near((double)loss[0], loss[1], 0x1p-19, "loss"); /* two units: sums of exponentials have other orders */
        for (int64_t i = 0; i < M * K;
             i++) /* |dz| of a row sums to at most 2 / M, |w| is at most 1: half a unit of bf16 */
            check_near((double)((float *)dx[0].data)[i], ((float *)dx[1].data)[i], 2.0 / M * 0x1p-8, "dx[%d]", (int)i);
        for (int64_t i = 0; i < N * K; i++) /* |dz| of a class sums to at most the mean of its softmax and its share */
            check_near((double)dw[0][i], dw[1][i], 0.02 * 0x1p-8, "dw[%d]", (int)i);
        for (int fused = 0; fused < 2; fused++) {
            free(dw[fused]);
            att_tape_free(t[fused]);
        }
        free_layer(&l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bf16_is_refused_where_the_set_does_not_multiply_it),
        cmocka_unit_test(products_have_the_bits_of_the_stated_order),
        cmocka_unit_test(layers_are_as_close_to_double_as_bf16_can_be),
        cmocka_unit_test(a_row_has_the_same_bits_alone_in_any_batch_and_for_any_threads),
        cmocka_unit_test(nan_and_infinity_in_all_other_rows_stay_there),
        cmocka_unit_test(weights_of_any_type_and_layout_have_the_bits_of_their_values),
        cmocka_unit_test(logits_that_are_not_stored_have_the_bits_of_the_layer),
        cmocka_unit_test(gradients_are_products_of_bf16_too),
        cmocka_unit_test(the_cross_entropy_of_a_layer_computes_in_bf16),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
