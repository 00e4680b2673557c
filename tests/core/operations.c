/* Each operation against its reference in double. */
#include "fixtures/tape.h"

static void linear_is_activation_of_x_w_plus_b_plus_residual(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 2);
    static const int64_t shapes[][3] = {{1, 1, 1}, {1, 7, 5}, {17, 31, 33}, {3, 384, 96}, {65, 64, 129}};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        const int64_t m = shapes[s][0], k = shapes[s][1], n = shapes[s][2];
        float *x = check_numbers(m * k, 1), *w = check_numbers(n * k, 2), *b = check_numbers(n, 3),
              *r = check_numbers(m * n, 4);
        double *expected = malloc((size_t)(m * n) * sizeof *expected);
        att_param *pw = param(ctx, w, ATT_F32, ATT_DIMS(n, k)), *pb = param(ctx, b, ATT_F32, ATT_DIMS(n));
        att_tape *t = new_tape(ctx);
        for (int act = ATT_ACTIVATION_IDENTITY; act <= ATT_ACTIVATION_QUICK_GELU; act++) {
            const att_epilogue e = {.bias = b, .residual = r, .residual_stride = n, .activation = act};
            att_ref_gemm_args product = {
                .m = m, .n = n, .k = k, .a = x, .lda = k, .b = w, .stride_n = k, .stride_k = 1, .epilogue = &e};
            att_ref_gemm(&product, expected, n);
            att_var *y =
                att_linear(t, input(t, x, ATT_DIMS(m, k)), pw, pb, (att_activation)act, input(t, r, ATT_DIMS(m, n)));
            /* k products of numbers below 1, each rounded once; bias, activation (a few ulp) and residual */
            assert_near(read_floats(t, y), expected, m * n, (double)(k + 8) * FLT_EPSILON);
            product.epilogue = NULL;
            att_ref_gemm(&product, expected, n);
            assert_near(
                read_floats(t, att_linear(t, input(t, x, ATT_DIMS(m, k)), pw, NULL, ATT_ACTIVATION_IDENTITY, NULL)),
                expected, m * n, (double)k * FLT_EPSILON);
            att_tape_reset(t);
        }
        att_tape_free(t);
        att_param_free(pw);
        att_param_free(pb);
        free(x), free(w), free(b), free(r), free(expected);
    }
    att_close(ctx);
}

/* bf16 is the upper half of an f32; these numbers are exact in it, and so in f16 (8 bits). */
static uint16_t to_bf16(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return (uint16_t)(u >> 16);
}

static uint16_t to_f16(float x) /* for numbers k / 8, |k| < 8, exact */
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    const int exponent = (int)(u >> 23 & 0xff) - 127 + 15;
    return x == 0 ? 0 : (uint16_t)((u >> 16 & 0x8000) | (uint32_t)exponent << 10 | (u >> 13 & 0x3ff));
}

static void half_parameters_give_the_bits_of_the_same_numbers_in_f32(void **state)
{
    (void)state;
    enum { M = 5, K = 19, N = 23 };
    att_ctx *ctx = check_open(NULL, 1);
    float f[N * K];
    uint16_t f16[N * K], bf16[N * K];
    for (int i = 0; i < N * K; i++) {
        f[i] = (float)(i * 7 % 15 - 7) / 8;
        f16[i] = to_f16(f[i]);
        bf16[i] = to_bf16(f[i]);
    }
    float *x = check_numbers(M * K, 5);
    att_tape *t = new_tape(ctx);
    const float *expected = NULL, *rows = NULL;
    att_param *p[3] = {param(ctx, f, ATT_F32, ATT_DIMS(N, K)), param(ctx, f16, ATT_F16, ATT_DIMS(N, K)),
                       param(ctx, bf16, ATT_BF16, ATT_DIMS(N, K))};
    att_param *bias[3] = {param(ctx, f, ATT_F32, ATT_DIMS(N)), param(ctx, f16, ATT_F16, ATT_DIMS(N)),
                          param(ctx, bf16, ATT_BF16, ATT_DIMS(N))};
    for (int i = 0; i < 3; i++) {
        const float *y =
            read_floats(t, att_linear(t, input(t, x, ATT_DIMS(M, K)), p[i], bias[i], ATT_ACTIVATION_IDENTITY, NULL));
        const float *e = read_floats(t, att_embedding(t, p[i], (const int32_t[]){22, 0, 3}, 3));
        expected = expected ? expected : y;
        rows = rows ? rows : e;
        assert_memory_equal(y, expected, M * N * sizeof *y);
        assert_memory_equal(e, rows, 3 * K * sizeof *e);
    }
    assert_memory_equal(rows, f + 22 * K, K * sizeof *f);
    for (int i = 0; i < 3; i++) {
        att_param_free(p[i]);
        att_param_free(bias[i]);
    }
    att_tape_free(t);
    free(x);
    att_close(ctx);
}

static void a_strided_parameter_is_read_through_its_strides(void **state)
{
    (void)state;
    enum { K = 6, N = 4 };
    att_ctx *ctx = check_open(NULL, 1);
    float *w = check_numbers(K * N, 6), *x = check_numbers(3 * K, 7), dense[N * K];
    for (int i = 0; i < N; i++)
        for (int k = 0; k < K; k++)
            dense[i * K + k] = w[k * N + i];
    att_tensor transposed;
    assert_int_equal(att_wrap(&transposed, w, ATT_F32, 2, (const int64_t[]){N, K}, (const int64_t[]){1, N}), ATT_OK);
    att_param *p, *q = param(ctx, dense, ATT_F32, ATT_DIMS(N, K));
    assert_int_equal(att_param_new(ctx, &transposed, &p), ATT_OK);
    att_tape *t = new_tape(ctx);
    att_var *in = input(t, x, ATT_DIMS(3, K));
    assert_memory_equal(read_floats(t, att_linear(t, in, p, NULL, ATT_ACTIVATION_IDENTITY, NULL)),
                        read_floats(t, att_linear(t, in, q, NULL, ATT_ACTIVATION_IDENTITY, NULL)),
                        3 * N * sizeof(float));
    assert_memory_equal(read_floats(t, att_embedding(t, p, (const int32_t[]){2}, 1)), dense + 2 * K, K * sizeof(float));
    att_tape_free(t);
    att_param_free(p);
    att_param_free(q);
    free(w), free(x);
    att_close(ctx);
}

static void layer_norm_and_normalize_are_their_references(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 2);
    static const int64_t shapes[][2] = {{1, 1}, {1, 17}, {50, 384}, {200, 97}};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        const int64_t rows = shapes[s][0], f = shapes[s][1];
        float *x = check_numbers(rows * f, 1), *g = check_numbers(f, 2), *b = check_numbers(f, 3);
        double *expected = malloc((size_t)(rows * f) * sizeof *expected);
        att_param *pg = param(ctx, g, ATT_F32, ATT_DIMS(f)), *pb = param(ctx, b, ATT_F32, ATT_DIMS(f));
        att_tape *t = new_tape(ctx);
        att_var *in = input(t, x, ATT_DIMS(rows, f));
        for (int64_t i = 0; i < rows; i++)
            att_ref_layer_norm(f, x + i * f, g, b, 1e-5f, expected + i * f);
        /* numbers of order 1, normalized to at most sqrt(f); sums over f in lanes */
        const double tolerance = 8 * sqrt((double)f) * FLT_EPSILON;
        assert_near(read_floats(t, att_layer_norm(t, in, pg, pb, 1e-5f)), expected, rows * f, tolerance);
        for (int64_t i = 0; i < rows; i++)
            att_ref_layer_norm(f, x + i * f, g, NULL, 1e-5f, expected + i * f);
        assert_near(read_floats(t, att_layer_norm(t, in, pg, NULL, 1e-5f)), expected, rows * f, tolerance);
        for (int64_t i = 0; i < rows; i++)
            att_ref_normalize(f, x + i * f, 1e-12f, expected + i * f);
        assert_near(read_floats(t, att_normalize(t, in, 1e-12f)), expected, rows * f, 4 * FLT_EPSILON);
        att_tape_free(t);
        att_param_free(pg);
        att_param_free(pb);
        free(x), free(g), free(b), free(expected);
    }
    att_close(ctx);
}

static void add_and_activate_work_on_each_number(void **state)
{
    (void)state;
    enum { ROWS = 301, F = 97 };
    att_ctx *ctx = check_open(NULL, 3);
    float *a = check_numbers(ROWS * F, 1), *b = check_numbers(ROWS * F, 2);
    att_tape *t = new_tape(ctx);
    att_var *va = input(t, a, ATT_DIMS(ROWS, F)), *vb = input(t, b, ATT_DIMS(ROWS, F));
    const float *sum = read_floats(t, att_add(t, va, vb));
    for (int i = 0; i < ROWS * F; i++)
        assert_true(sum[i] == a[i] + b[i]);
    for (int act = ATT_ACTIVATION_IDENTITY; act <= ATT_ACTIVATION_QUICK_GELU; act++) {
        const float *y = read_floats(t, att_activate(t, va, (att_activation)act));
        for (int i = 0; i < ROWS * F; i++)
            assert_true(fabs((double)y[i] - att_ref_activate(act, (double)a[i])) <= 4 * FLT_EPSILON);
    }
    att_tape_free(t);
    free(a), free(b);
    att_close(ctx);
}

static void pooling_takes_mean_first_or_largest_and_zero_of_nothing(void **state)
{
    (void)state;
    enum { TOKENS = 130, F = 33, N = 5 };
    static const int64_t offsets[N + 1] = {0, 1, 1, 8, 130, 130};
    att_ctx *ctx = check_open(NULL, 2);
    float *x = check_numbers(TOKENS * F, 1);
    att_tape *t = new_tape(ctx);
    att_var *in = input(t, x, ATT_DIMS(TOKENS, F));
    const float *mean = read_floats(t, att_pool(t, in, offsets, N, ATT_POOLING_MEAN, 0));
    const float *first = read_floats(t, att_pool(t, in, offsets, N, ATT_POOLING_CLS, 0));
    const float *top = read_floats(t, att_pool(t, in, offsets, N, ATT_POOLING_MAX, 0));
    for (int s = 0; s < N; s++)
        for (int j = 0; j < F; j++) {
            const int64_t n = offsets[s + 1] - offsets[s];
            double sum = 0, largest = n ? -INFINITY : 0;
            for (int64_t i = offsets[s]; i < offsets[s + 1]; i++) {
                sum += (double)x[i * F + j];
                largest = fmax(largest, (double)x[i * F + j]);
            }
            /* n numbers below 1: partial sums below n, each rounded, divided by n */
            assert_true(fabs((double)mean[s * F + j] - (n ? sum / (double)n : 0)) <= (double)(n + 2) * FLT_EPSILON);
            assert_true(first[s * F + j] == (n ? x[offsets[s] * F + j] : 0));
            assert_true((double)top[s * F + j] == largest);
        }
    att_tape_free(t);
    free(x);
    att_close(ctx);
}

static void heads_are_views(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    att_tape *t = new_tape(ctx);
    float x[2 * 12] = {0};
    att_var *split = att_split_heads(t, input(t, x, ATT_DIMS(2, 12)), 3);
    att_tensor v;
    assert_int_equal(att_var_value(t, split, &v), ATT_OK);
    assert_ptr_equal(v.data, x);
    assert_int_equal(v.rank, 3);
    assert_int_equal(v.dim[1], 3);
    assert_int_equal(v.dim[2], 4);
    assert_int_equal(att_var_value(t, att_merge_heads(t, split), &v), ATT_OK);
    assert_ptr_equal(v.data, x);
    assert_int_equal(v.rank, 2);
    assert_int_equal(v.dim[1], 12);
    att_tape_free(t);
    att_close(ctx);
}

enum { HEADS = 3, DIM = 8, WIDTH = HEADS * DIM, TOKENS = 13 };
static const int64_t sequences[] = {0, 5, 5, 13};

/* softmax(q k^T / sqrt(DIM)) v for each head of each sequence, in double */
static void reference_attention(const float *q, const float *k, const float *v, double *out)
{
    for (int s = 0; s < 3; s++)
        for (int64_t i = sequences[s]; i < sequences[s + 1]; i++)
            for (int h = 0; h < HEADS; h++) {
                double sum = 0, y[DIM] = {0};
                for (int64_t j = sequences[s]; j < sequences[s + 1]; j++) {
                    double score = 0;
                    for (int d = 0; d < DIM; d++)
                        score += (double)q[i * WIDTH + h * DIM + d] * (double)k[j * WIDTH + h * DIM + d];
                    const double p = exp(score / sqrt(DIM));
                    sum += p;
                    for (int d = 0; d < DIM; d++)
                        y[d] += p * (double)v[j * WIDTH + h * DIM + d];
                }
                for (int d = 0; d < DIM; d++)
                    out[i * WIDTH + h * DIM + d] = y[d] / sum;
            }
}

typedef struct seen {
    char ops[512];
    char scope[128]; /* of the last event */
    int attends;
    float weights[5 * 5];
    att_status status;
} seen;

static void see(void *user, const att_tape_event *event)
{
    seen *s = user;
    const size_t n = strlen(s->ops);
    snprintf(s->ops + n, sizeof s->ops - n, "%s ", event->op);
    snprintf(s->scope, sizeof s->scope, "%s", event->scope);
    assert_non_null(event->output->data);
    assert_true((event->plan != NULL) == !strcmp(event->op, "attend"));
    if (event->plan) {
        s->attends++;
        s->status = att_weights(event->plan, event->args, 0, 1, 0, 5, s->weights);
    }
}

static void attend_is_its_reference_and_shows_its_weights(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 2);
    float *q = check_numbers(TOKENS * WIDTH, 1), *k = check_numbers(TOKENS * WIDTH, 2),
          *v = check_numbers(TOKENS * WIDTH, 3);
    double expected[TOKENS * WIDTH];
    reference_attention(q, k, v, expected);
    att_plan *plan;
    assert_int_equal(att_plan_new(ctx, ATT_OPTIONS(att_attention_spec, .heads = HEADS, .head_dim = DIM), &plan),
                     ATT_OK);
    seen saw = {0};
    att_tape *t;
    assert_int_equal(att_tape_new(ctx, ATT_OPTIONS(att_tape_config, .hook = see, .hook_user = &saw), &t), ATT_OK);
    att_attention_args args = {.size = sizeof args, .n_sequences = 3, .q_offsets = sequences};
    att_scope s = att_scope_begin(t, "layer.0"), inner = att_scope_begin(t, "attention");
    att_var *y = att_attend(t, plan, att_split_heads(t, input(t, q, ATT_DIMS(TOKENS, WIDTH)), HEADS),
                            att_split_heads(t, input(t, k, ATT_DIMS(TOKENS, WIDTH)), HEADS),
                            att_split_heads(t, input(t, v, ATT_DIMS(TOKENS, WIDTH)), HEADS), &args, NULL);
    y = att_scope_end(t, s, att_scope_end(t, inner, att_merge_heads(t, y)));
    /* convex combinations of numbers below 1; scores of DIM products, exp of a few ulp */
    assert_near(read_floats(t, y), expected, TOKENS * WIDTH, 32 * FLT_EPSILON);
    assert_string_equal(saw.ops, "split_heads split_heads split_heads attend merge_heads scope scope ");
    assert_string_equal(saw.scope, "layer.0");
    assert_int_equal(saw.attends, 1);
    assert_int_equal(saw.status, ATT_OK);
    for (int i = 0; i < 5; i++) {
        double sum = 0;
        for (int j = 0; j < 5; j++)
            sum += (double)saw.weights[i * 5 + j];
        assert_true(fabs(sum - 1) < 8 * FLT_EPSILON);
    }
    att_tape_free(t);
    att_plan_free(plan);
    free(q), free(k), free(v);
    att_close(ctx);
}

/* What the plan of a score with parameters, a modifier, a mask and dropout needs, for keys of others than the queries.
 */
enum { Q_TOKENS = 13, K_TOKENS = 19, KEYS = 11, KEY_DIM = 5, SCORE_DIM = 6, VALUE_DIM = 7, KEY_HEADS = 1 };

typedef struct watched {
    int64_t sequence, head, queries;
    float weights[8 * KEYS];
} watched;

static void ask_weights(void *user, const att_tape_event *event)
{
    watched *w = user;
    if (att_weights(event->plan, event->args, w->sequence, w->head, 0, w->queries, w->weights))
        fail_msg("att_weights fails in a watch");
}

/* Makes a variable of n numbers, which are also in *same. */
static att_var *tokens(att_tape *t, att_tensor *same, uint64_t seed, int64_t n, int64_t heads, int64_t dim)
{
    *same = view(check_numbers(n * heads * dim, seed), ATT_F32, ATT_DIMS(n, heads, dim));
    return att_input(t, same);
}

static void check_attend(att_ctx *ctx, const att_attention_spec *spec, const att_attention_args *args)
{
    static const int64_t q_offsets[] = {0, 5, 5, Q_TOKENS}, k_offsets[] = {0, 8, 8, K_TOKENS};
    static const uint32_t ids[] = {4, 2, 9};
    att_attention_args a = *args;
    a.n_sequences = 3, a.q_offsets = q_offsets, a.k_offsets = k_offsets;
    a.dropout_seed = 17, a.sequence_ids = ids;
    watched w = {.sequence = 2, .head = 1, .queries = 8};
    float expected[8 * KEYS], *out = check_numbers(Q_TOKENS * HEADS * VALUE_DIM, 9);
    att_plan *plan;
    att_tape *t;
    assert_int_equal(att_tape_new(ctx, ATT_OPTIONS(att_tape_config, .hook = ask_weights, .hook_user = &w), &t), ATT_OK);
    if (att_plan_new(ctx, spec, &plan))
        fail_msg("%s", att_error(ctx));
    att_attention_args direct = a;
    att_var *q = tokens(t, &direct.q, 1, Q_TOKENS, HEADS, DIM);
    att_var *k = tokens(t, &direct.k, 2, K_TOKENS, KEY_HEADS, spec->key_dim ? spec->key_dim : DIM);
    att_var *v = tokens(t, &direct.v, 3, K_TOKENS, KEY_HEADS, VALUE_DIM);
    direct.out = view(out, ATT_F32, ATT_DIMS(Q_TOKENS, HEADS, VALUE_DIM));
    const float *y = read_floats(t, att_attend(t, plan, q, k, v, &a, NULL));
    assert_int_equal(att_forward(plan, &direct), ATT_OK);
    assert_memory_equal(y, out, Q_TOKENS * HEADS * VALUE_DIM * sizeof *y);
    assert_int_equal(att_weights(plan, &direct, w.sequence, w.head, 0, w.queries, expected), ATT_OK);
    assert_memory_equal(w.weights, expected, sizeof expected);
    att_tape_free(t);
    att_plan_free(plan);
    free(direct.q.data), free(direct.k.data), free(direct.v.data), free(out);
}

static void attend_hands_on_all_that_a_plan_needs(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 2);
    const att_attention_spec spec = {
        .size = sizeof spec,
        .heads = HEADS,
        .kv_heads = KEY_HEADS,
        .head_dim = DIM,
        .value_dim = VALUE_DIM,
        ATT_STAGES({.modifier = att_modifier_sink}, {.mask = att_mask_window, .value = {2, 1}}),
        .align = ATT_ALIGN_BOTTOM_RIGHT,
        .dropout = 0.3f};
    float *vector = check_numbers(HEADS * DIM, 4), *matrix = check_numbers(HEADS * DIM * DIM, 5),
          *other = check_numbers(SCORE_DIM * KEY_DIM, 6), sinks[HEADS] = {0.5f, -1, 2};
    const att_tensor sink = view(sinks, ATT_F32, ATT_DIMS(HEADS));
    const att_attention_args args = {.size = sizeof args, ATT_PARAMS(sink)};

    att_attention_spec s = spec;
    att_attention_args a = args;
    check_attend(ctx, &s, &a);
    s.score = att_score_additive;
    const att_tensor additive[] = {view(vector, ATT_F32, ATT_DIMS(HEADS, DIM)), sink};
    a.param = additive, a.n_params = 2;
    check_attend(ctx, &s, &a);
    s.score_dim = SCORE_DIM;
    s.key_dim = KEY_DIM;
    const att_tensor projected[] = {view(vector, ATT_F32, ATT_DIMS(1, SCORE_DIM)),
                                    view(matrix, ATT_F32, ATT_DIMS(HEADS, SCORE_DIM, DIM)),
                                    view(other, ATT_F32, ATT_DIMS(1, SCORE_DIM, KEY_DIM)), sink};
    a.param = projected, a.n_params = 4;
    check_attend(ctx, &s, &a);
    s = spec, a = args;
    s.score = att_score_general;
    s.key_dim = KEY_DIM;
    const att_tensor general[] = {view(matrix, ATT_F32, ATT_DIMS(HEADS, DIM, KEY_DIM)), sink};
    a.param = general, a.n_params = 2;
    check_attend(ctx, &s, &a);
    free(vector), free(matrix), free(other);
    att_close(ctx);
}

/* W is turned and f16, so that using it makes a copy. */
static void attend_takes_parameters_of_its_stages_from_args_or_as_variables(void **state)
{
    (void)state;
    static const int64_t offsets[] = {0, 2}, dim[] = {1, DIM, DIM};
    att_ctx *ctx = check_open(NULL, 1);
    att_tape *t = new_tape(ctx);
    att_plan *plan;
    att_param *p;
    att_tensor turned;
    float *x = check_numbers(2 * DIM, 1), *w = check_numbers(DIM * DIM, 2);
    uint16_t codes[DIM * DIM];
    att_kernels_of(ctx->isa)->vector.to_f16(DIM * DIM, w, codes);
    att_kernels_of(ctx->isa)->vector.from_f16(DIM * DIM, codes, w);
    assert_int_equal(att_wrap(&turned, codes, ATT_F16, 3, dim, (const int64_t[]){0, 1, DIM}), ATT_OK);
    assert_int_equal(att_param_new(ctx, &turned, &p), ATT_OK);
    assert_int_equal(
        att_plan_new(ctx, ATT_OPTIONS(att_attention_spec, .heads = 1, .head_dim = DIM, .score = att_score_general),
                     &plan),
        ATT_OK);
    att_attention_args args = {.size = sizeof args, .n_sequences = 1, .q_offsets = offsets}, with_w = args;
    float straight[DIM * DIM];
    for (int i = 0; i < DIM * DIM; i++)
        straight[i] = w[i % DIM * DIM + i / DIM];
    const att_tensor given = view(straight, ATT_F32, 3, dim);
    with_w.param = &given, with_w.n_params = 1;
    att_var *v = input(t, x, ATT_DIMS(2, 1, DIM));
    att_var *w_of[] = {att_parameter(t, p), v};
    const att_attend_params params = {.size = sizeof params, .param = w_of, .n_params = 1};
    const float *expected = read_floats(t, att_attend(t, plan, v, v, v, &with_w, NULL));
    assert_memory_equal(read_floats(t, att_attend(t, plan, v, v, v, &args, &params)), expected, 2 * DIM * sizeof *x);
    assert_error(t, att_attend(t, plan, v, v, v, &with_w, &params), ATT_ERR_ARGUMENT,
                 "attend: param[0] is given in args and in params");
    att_tape_reset(t);
    v = input(t, x, ATT_DIMS(2, 1, DIM));
    w_of[0] = att_parameter(t, p), w_of[1] = v;
    assert_error(t, att_attend(t, plan, v, v, v, &args, ATT_OPTIONS(att_attend_params, .param = w_of, .n_params = 2)),
                 ATT_ERR_ARGUMENT, "attend: args.n_params is 2, but the plan has 1: W of \"general\"");
    att_param_free(p);
    att_tape_free(t);
    att_plan_free(plan);
    att_close(ctx);
    free(x), free(w);
}

static void attend_refuses_a_plan_of_bf16_for_variables_are_f32(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    att_tape *t = new_tape(ctx);
    float x[2 * DIM] = {0};
    static const int64_t offsets[] = {0, 2};
    const att_attention_args args = {.size = sizeof args, .n_sequences = 1, .q_offsets = offsets};
    att_plan *plan;
    assert_int_equal(
        att_plan_new(ctx, ATT_OPTIONS(att_attention_spec, .heads = 1, .head_dim = DIM, .dtype = ATT_BF16), &plan),
        ATT_OK);
    att_var *v = input(t, x, ATT_DIMS(2, 1, DIM));
    assert_error(t, att_attend(t, plan, v, v, v, &args, NULL), ATT_ERR_DTYPE, "attend: q is f32 but must be bf16");
    att_tape_free(t);
    att_plan_free(plan);
    att_close(ctx);
}

/* A sequence has the same numbers dropped in any batch; about p of all are. */
static void dropout_belongs_to_the_sequence_and_none_is_nothing(void **state)
{
    (void)state;
    enum { TOKENS = 150, FEATURES = 70, FIRST = 61 };
    att_ctx *ctx = check_open(NULL, 2);
    att_tape *t = new_tape(ctx);
    float *x = check_numbers(TOKENS * FEATURES, 1);
    static const int64_t offsets[] = {0, FIRST, TOKENS}, own[] = {0, TOKENS - FIRST};
    static const uint32_t ids[] = {5, 9};
    att_var *both = input(t, x, ATT_DIMS(TOKENS, FEATURES)),
            *alone = input(t, x + FIRST * FEATURES, ATT_DIMS(TOKENS - FIRST, FEATURES));
    const att_positions at = {.size = sizeof at, .offsets = offsets, .n = 2},
                        at_alone = {.size = sizeof at, .offsets = own, .n = 1};
    const float *y = read_floats(t, att_dropout(t, both, NULL, 0.3f, 1, &at, ids));
    const float *z = read_floats(t, att_dropout(t, alone, NULL, 0.3f, 1, &at_alone, ids + 1));
    assert_memory_equal(y + FIRST * FEATURES, z, (TOKENS - FIRST) * FEATURES * sizeof *y);
    int dropped = 0;
    for (int i = 0; i < TOKENS * FEATURES; i++)
        dropped += y[i] == 0;
    /* six deviations of a sum of 10,500 */
    assert_true(fabs(dropped - 0.3 * TOKENS * FEATURES) < 6 * sqrt(0.21 * TOKENS * FEATURES));
    assert_ptr_equal(att_dropout(t, both, NULL, 0, 1, &at, ids), both);
    const float *sum = read_floats(t, att_dropout(t, both, both, 0, 1, &at, ids));
    assert_true(sum[17] == 2 * x[17]);
    free(x);
    att_tape_free(t);
    att_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(linear_is_activation_of_x_w_plus_b_plus_residual),
        cmocka_unit_test(half_parameters_give_the_bits_of_the_same_numbers_in_f32),
        cmocka_unit_test(a_strided_parameter_is_read_through_its_strides),
        cmocka_unit_test(layer_norm_and_normalize_are_their_references),
        cmocka_unit_test(add_and_activate_work_on_each_number),
        cmocka_unit_test(pooling_takes_mean_first_or_largest_and_zero_of_nothing),
        cmocka_unit_test(heads_are_views),
        cmocka_unit_test(attend_is_its_reference_and_shows_its_weights),
        cmocka_unit_test(attend_hands_on_all_that_a_plan_needs),
        cmocka_unit_test(attend_takes_parameters_of_its_stages_from_args_or_as_variables),
        cmocka_unit_test(dropout_belongs_to_the_sequence_and_none_is_nothing),
        cmocka_unit_test(attend_refuses_a_plan_of_bf16_for_variables_are_f32),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
