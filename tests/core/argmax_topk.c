/* The largest of each row of a product: att_linear_argmax and att_linear_topk, against all numbers that att_linear
 * gives; and the bounds of kernel/int8_bounds.c, against double. */
#include "fixtures/tape.h"
#include "fixtures/fail_alloc.h"

typedef struct problem {
    int64_t m, n, k;
    float *x, *w, *b;            /* [m, k], [n, k], [n] or NULL */
    att_dtype dtype;             /* of w */
    att_excluded_columns except; /* column NULL: none */
    int64_t best;
} problem;

static problem problem_of(int64_t m, int64_t n, int64_t k, uint64_t seed)
{
    return (problem){.m = m,
                     .n = n,
                     .k = k,
                     .x = check_numbers(m * k, seed),
                     .w = check_numbers(n * k, seed + 1),
                     .b = check_numbers(n, seed + 2),
                     .dtype = ATT_F32,
                     .best = 5};
}

static void problem_free(problem *p)
{
    free(p->x);
    free(p->w);
    free(p->b);
}

static bool is_out(const att_excluded_columns *e, int64_t column)
{
    bool out = false;
    for (int64_t i = 0; i < e->n; i++)
        out |= e->column[i] == column;
    return out;
}

/* Returns the largest of a row of logits that is not among `before` [count], by looking at all. */
static att_top_column next_largest(const problem *p, const float *logits, const att_top_column *before, int64_t count)
{
    att_top_column best = {-1, -INFINITY};
    for (int64_t v = 0; v < p->n; v++) {
        bool known = is_out(&p->except, v);
        for (int64_t i = 0; i < count; i++)
            known |= before[i].column == v;
        if (!known && logits[v] > best.value)
            best = (att_top_column){v, logits[v]};
    }
    return best;
}

static void assert_same(const att_top_column *a, const att_top_column *expected, int64_t row, int64_t rank)
{
    if (a->column != expected->column || memcmp(&a->value, &expected->value, sizeof a->value))
        fail_msg("row %lld, number %lld: column %lld has %.9g, not column %lld with %.9g", (long long)row,
                 (long long)rank, (long long)a->column, (double)a->value, (long long)expected->column,
                 (double)expected->value);
}

static double log_sum(const problem *p, const float *logits)
{
    double top = (double)-INFINITY, sum = 0;
    for (int64_t v = 0; v < p->n; v++)
        if (p->except.in_log_sum || !is_out(&p->except, v))
            top = fmax(top, (double)logits[v]);
    for (int64_t v = 0; v < p->n; v++)
        if (p->except.in_log_sum || !is_out(&p->except, v))
            sum += exp((double)logits[v] - (top == (double)-INFINITY ? 0 : top));
    return top + log(sum);
}

/* Returns the weight in the problem's type, which may be in memory [n, k] */
static att_param *weight_of(att_ctx *ctx, const problem *p, float *memory)
{
    att_tensor from, to;
    if (p->dtype == ATT_F32)
        return param(ctx, p->w, ATT_F32, ATT_DIMS(p->n, p->k));
    att_wrap(&from, p->w, ATT_F32, ATT_DIMS(p->n, p->k), NULL);
    att_wrap(&to, memory, p->dtype, ATT_DIMS(p->n, p->k), NULL);
    assert_int_equal(att_tensor_convert(ctx, &from, &to), ATT_OK);
    return param(ctx, memory, p->dtype, ATT_DIMS(p->n, p->k));
}

static void check(att_ctx *ctx, const problem *p)
{
    float *memory = malloc((size_t)(p->n * p->k + 32) * sizeof *memory);
    att_param *w = weight_of(ctx, p, memory), *b = p->b ? param(ctx, p->b, ATT_F32, ATT_DIMS(p->n)) : NULL;
    att_tape *t = new_tape(ctx);
    att_var *x = input(t, p->x, ATT_DIMS(p->m, p->k));
    const float *logits = read_floats(t, att_linear(t, x, w, b, ATT_ACTIVATION_IDENTITY, NULL));
    att_top_column *one = malloc((size_t)p->m * sizeof *one), *top = malloc((size_t)(p->m * p->best) * sizeof *top);
    att_top_column *same = malloc((size_t)(p->m * p->best) * sizeof *same);
    double *sums = malloc((size_t)p->m * sizeof *sums);
    const att_excluded_columns *except = p->except.column ? &p->except : NULL;
    assert_int_equal(att_linear_argmax(t, x, w, b, except, one), ATT_OK);
    assert_int_equal(att_linear_topk(t, x, w, b, except, p->best, top, sums), ATT_OK);
    assert_int_equal(att_linear_topk(t, x, w, b, except, p->best, same, NULL), ATT_OK);
    for (int64_t i = 0; i < p->m * p->best; i++)
        assert_same(&same[i], &top[i], i / p->best, i % p->best);
    for (int64_t i = 0; i < p->m; i++) {
        for (int64_t r = 0; r < p->best; r++) {
            const att_top_column expected = next_largest(p, logits + i * p->n, top + i * p->best, r);
            assert_same(&top[i * p->best + r], &expected, i, r);
            if (r == 0)
                assert_same(&one[i], &expected, i, r);
        }
        /* Each term and the sums of segments are rounded, of positive numbers: the logarithm of a factor near 1. */
        const double expected = log_sum(p, logits + i * p->n);
        if (!(fabs(sums[i] - expected) <= 64 * (double)FLT_EPSILON) && sums[i] != expected)
            fail_msg("row %lld: log-sum-exp is %.12g, not %.12g", (long long)i, sums[i], expected);
    }
    att_tape_free(t);
    att_param_free(w);
    att_param_free(b);
    free(memory);
    free(one);
    free(top);
    free(same);
    free(sums);
}

static void they_are_the_largest_of_all(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {{1, 1, 1},       {1, 7, 3},    {2, 33, 5},     {5, 100, 64},
                                        {258, 1030, 32}, {9, 511, 17}, {66, 3000, 40}, {1, 2048, 96}};
    static const att_dtype types[] = {ATT_F32, ATT_F16, ATT_BF16, ATT_Q8_0, ATT_Q4_0, ATT_Q4_1};
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);)
        for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
            problem p = problem_of(shapes[s][0], shapes[s][1], shapes[s][2], 10 * s);
            const int32_t out[] = {0, (int32_t)p.n - 1, (int32_t)p.n / 2};
            for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
                p.dtype = types[t];
                p.except = (att_excluded_columns){0};
                if (att_dtype_size(p.dtype) > 0 || p.k % 32 == 0)
                    check(ctx, &p);
                if (t == 1) {
                    free(p.b);
                    p.b = NULL;
                }
                p.except = (att_excluded_columns){.size = sizeof p.except, .column = out, .n = 3, .in_log_sum = s % 2};
                if (att_dtype_size(p.dtype) > 0 || p.k % 32 == 0)
                    check(ctx, &p);
            }
            problem_free(&p);
        }
}

/* Row r excludes `columns` [offsets[r], offsets[r + 1]): the list of all is that of each row alone. */
static void check_rows(att_ctx *ctx, const problem *p, const att_excluded_columns *all)
{
    const int64_t best = p->best;
    att_top_column *top = malloc((size_t)(p->m * best) * sizeof *top), *one = malloc((size_t)best * sizeof *one);
    double *sums = malloc((size_t)p->m * sizeof *sums), sum;
    att_param *w = param(ctx, p->w, ATT_F32, ATT_DIMS(p->n, p->k));
    att_tape *t = new_tape(ctx);
    assert_int_equal(att_linear_topk(t, input(t, p->x, ATT_DIMS(p->m, p->k)), w, NULL, all, best, top, sums), ATT_OK);
    for (int64_t r = 0; r < p->m; r++) {
        const att_excluded_columns own = {.size = sizeof own,
                                          .column = all->column + all->offsets[r],
                                          .n = all->offsets[r + 1] - all->offsets[r],
                                          .in_log_sum = all->in_log_sum};
        att_var *x = input(t, p->x + r * p->k, ATT_DIMS(1, p->k));
        assert_int_equal(att_linear_topk(t, x, w, NULL, &own, best, one, &sum), ATT_OK);
        assert_memory_equal(&sum, &sums[r], sizeof sum);
        for (int64_t k = 0; k < best; k++)
            assert_same(&top[r * best + k], &one[k], r, k);
    }
    att_tape_free(t);
    att_param_free(w);
    free(top);
    free(one);
    free(sums);
}

/* No columns of row 2, all of row 5, some twice; and 300,000 of the best, for which few rows are searched at a time */
static void rows_exclude_columns_of_their_own(void **state)
{
    (void)state;
    enum { M = 9, N = 600 };
    static int32_t columns[2 * M * N];
    static const int64_t most[] = {1, 7, N, 300000};
    int64_t offsets[M + 1] = {0};
    problem p = problem_of(M, N, 8, 11);
    for (int64_t r = 0, at = 0; r < M; r++) {
        for (int32_t c = 0; c < N; c++)
            for (int n = r == 2 ? 0 : r == 5 ? 1 : (c * 7 + r) % 11 < r ? 1 + c % 2 : 0; n > 0; n--)
                columns[at++] = c;
        offsets[r + 1] = at;
    }
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);)
        for (int i = 0; i < 6; i++) {
            p.best = most[i / 2];
            check_rows(ctx, &p,
                       &(att_excluded_columns){sizeof(att_excluded_columns), columns, offsets[M], i % 2, offsets});
        }
    att_ctx *ctx = check_open(NULL, 2);
    p.best = most[3];
    check_rows(ctx, &p, &(att_excluded_columns){sizeof(att_excluded_columns), columns, offsets[M], false, offsets});
    att_close(ctx);
    problem_free(&p);
}

static void results_are_the_same_with_any_number_of_threads_and_rows(void **state)
{
    (void)state;
    enum { M = 70, N = 2500, K = 48, BEST = 8 };
    problem p = problem_of(M, N, K, 5);
    att_top_column first[M * BEST], found[M * BEST];
    double sums[M], others[M];
    for (int threads = 1; threads <= 7; threads += 2) {
        att_ctx *ctx = check_open(NULL, threads);
        att_param *w = param(ctx, p.w, ATT_F32, ATT_DIMS(N, K)), *b = param(ctx, p.b, ATT_F32, ATT_DIMS(N));
        att_tape *t = new_tape(ctx);
        for (int64_t rows = M; rows > 0; rows = rows == M ? 1 : 0)
            for (int64_t i = 0; i < M; i += rows)
                assert_int_equal(att_linear_topk(t, input(t, p.x + i * K, ATT_DIMS(rows, K)), w, b, NULL, BEST,
                                                 found + i * BEST, others + i),
                                 ATT_OK);
        for (int64_t i = 0; threads == 1 && i < M * BEST; i++)
            first[i] = found[i];
        if (threads == 1)
            memcpy(sums, others, sizeof sums);
        assert_memory_equal(sums, others, sizeof sums);
        for (int64_t i = 0; i < M * BEST; i++)
            assert_same(&found[i], &first[i], i / BEST, i % BEST);
        att_tape_free(t);
        att_param_free(w);
        att_param_free(b);
        att_close(ctx);
    }
    problem_free(&p);
}

/* Numbers that are the same, or so large, small or far apart that bounds say little. */
static void bounds_that_say_little_do_no_harm(void **state)
{
    (void)state;
    enum { M = 3, N = 700, K = 20 };
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);)
        for (int how = 0; how < 8; how++) {
            problem p = problem_of(M, N, K, 3);
            for (int64_t i = 0; i < N * K; i++) {
                const float w = p.w[i];
                p.w[i] = how == 0   ? 0
                         : how == 1 ? p.w[i % K]                   /* equal columns */
                         : how == 2 ? p.w[i % (3 * K)]             /* each a third of them */
                         : how == 3 ? w * 1e30f                    /* squares overflow */
                         : how == 4 ? w * 1e-40f                   /* denormals */
                         : how == 5 ? (i % K == 7 ? w * 1e6f : w)  /* one number outweighs the others */
                         : how == 6 ? (i / K % 2 ? w * 1e-12f : w) /* columns far apart */
                                    : w + 100;                     /* hardly a difference between columns */
            }
            for (int64_t v = 0; v < N; v++)
                p.b[v] = how < 3 || how == 7 ? 1 : how == 4 ? p.b[v] * 1e-40f : v % 3 ? p.b[v] : -INFINITY;
            check(ctx, &p);
            problem_free(&p);
        }
}

static void numbers_that_are_not_finite_are_told(void **state)
{
    (void)state;
    enum { N = 300, K = 12 };
    static const float wrong[] = {NAN, INFINITY, -INFINITY};
    att_ctx *ctx = check_open(NULL, 2);
    for (int i = 0; i < 3; i++)
        for (int in_x = 0; in_x < 2; in_x++) {
            problem p = problem_of(1, N, K, 7);
            for (int64_t v = 0; v < N; v++)
                p.w[v * K + 3] = p.x[3] = 0.5f; /* so that infinities have their own sign in all products */
            if (in_x)
                p.x[3] = wrong[i];
            else
                p.w[100 * K + 3] = wrong[i];
            att_param *w = param(ctx, p.w, ATT_F32, ATT_DIMS(N, K));
            att_tape *t = new_tape(ctx);
            att_var *x = input(t, p.x, ATT_DIMS(1, K));
            att_top_column one, top[2], same[2];
            double sum;
            assert_int_equal(att_linear_argmax(t, x, w, NULL, NULL, &one), ATT_OK);
            assert_int_equal(att_linear_topk(t, x, w, NULL, NULL, 2, top, &sum), ATT_OK);
            assert_int_equal(att_linear_topk(t, x, w, NULL, NULL, 2, same, NULL), ATT_OK);
            assert_true(same[0].column == top[0].column);
            assert_true(i > 0 || (top[0].column == -1 && isnan(top[0].value) && isnan(same[0].value)));
            if (i == 2 && in_x) {
                assert_true(one.column == -1 && one.value == -INFINITY && top[0].column == -1);
                assert_true(sum == (double)-INFINITY);
            } else if (i == 2) {
                assert_true(isfinite(one.value) && one.column != 100 && isfinite(sum) && top[0].column == one.column);
            } else {
                assert_true(!isfinite(one.value) && isnan(sum));
                assert_true(i == 0 || one.value == INFINITY);
            }
            att_tape_free(t);
            att_param_free(w);
            problem_free(&p);
        }
    att_close(ctx);
}

/* ---- the bounds themselves */

static double product(int64_t k, const float *x, const float *w, double *norms)
{
    double sum = 0, xx = 0, ww = 0;
    for (int64_t i = 0; i < k; i++) {
        sum += (double)x[i] * (double)w[i];
        xx += (double)x[i] * (double)x[i];
        ww += (double)w[i] * (double)w[i];
    }
    *norms = sqrt(xx * ww);
    return sum;
}

enum { MOST = 64, K = 300, WORDS = K / 4 };

/* A row as it is kept, and what that loses */
typedef struct kept {
    att_int8_row of;
    float words[WORDS], near[K], rest[K];
} kept;

static kept keep(const att_kernels *kernels, bool left, const float *x)
{
    const int levels = left ? ATT_INT8_LEFT : ATT_INT8_RIGHT, shift = left ? ATT_INT8_SHIFT : 0;
    kept y;
    y.of = kernels->int8.quantize(levels, shift, K, x, (int8_t *)y.words);
    for (int i = 0; i < K; i++) {
        y.near[i] = y.of.step * (float)(((const int8_t *)y.words)[i] - shift);
        y.rest[i] = x[i] - y.near[i];
    }
    return y;
}

/* Errors of random rows cancel. So there is a column that is what is lost of x; or x is what is lost of a column, and
 * nothing of itself is; or nothing is lost of any, and bounds are next to the product. */
enum { LOST_OF_X, LOST_OF_COLUMN, NOTHING_LOST, ROUNDS };

static void check_bounds(int isa, int round)
{
    const att_kernels *kernels = att_kernels_of(isa);
    const int panel = kernels->nr, columns = panel - 1;
    float *numbers = check_numbers((MOST + 1) * K, (uint64_t)isa), *x = numbers + MOST * K, words[MOST * WORDS];
    float packed[(WORDS + 4) * MOST], upper[MOST], best = -INFINITY, bias[MOST];
    att_int8_row of[MOST];
    assert_true(panel <= MOST && kernels->int8.extra_rows == 4);
    for (int i = 0; i < (MOST + 1) * K; i++)
        numbers[i] *= numbers[i] * numbers[i]; /* some outweigh others */
    if (round == LOST_OF_COLUMN)
        memcpy(x, keep(kernels, false, numbers).rest, K * sizeof *x);
    if (round != LOST_OF_X)
        memcpy(x, keep(kernels, true, x).near, K * sizeof *x);
    const kept left = keep(kernels, true, x);
    if (round == LOST_OF_X)
        memcpy(numbers, left.rest, K * sizeof *x);
    for (int j = 0; j < panel; j++) {
        if (round == NOTHING_LOST)
            memcpy(numbers + j * K, keep(kernels, false, numbers + j * K).near, K * sizeof *x);
        const kept column = keep(kernels, false, numbers + j * K);
        memcpy(words + j * WORDS, column.words, sizeof column.words);
        of[j] = column.of;
        bias[j] = (float)j / 16;
    }
    kernels->int8.pack(WORDS, words, of, packed);
    kernels->int8.bounds(&(const att_int8_args){.m = 1,
                                                .words = WORDS,
                                                .x = left.words,
                                                .of = &left.of,
                                                .columns = columns,
                                                .panel = packed,
                                                .bias = bias,
                                                .upper = upper,
                                                .stride = 0,
                                                .best = &best});
    double largest = (double)-INFINITY;
    for (int j = 0; j < columns; j++) {
        double norms;
        const double exact = product(K, x, numbers + j * K, &norms) + (double)bias[j];
        /* Of numbers of at most 1, in steps of 1/63 and 1/127 and of a mean square of 1/7, rests are 0.02. */
        const double most = exact + (round == NOTHING_LOST ? 2e-4 * (norms + 1) : 0.08 * norms);
        largest = fmax(largest, exact);
        if (!((double)upper[j] >= exact && (double)upper[j] <= most))
            fail_msg("%s, round %d: column %d is %g, from %g to %g", att_isa_name(isa), round, j, (double)upper[j],
                     exact, most);
    }
    assert_true((double)best <= largest && (double)best >= largest - (round == NOTHING_LOST ? 0.1 : 8));
    free(numbers);
}

static void bounds_hold_and_are_near(void **state)
{
    (void)state;
    for (int isa = -1; check_next_isa(&isa);)
        for (int round = 0; round < ROUNDS; round++)
            check_bounds(isa, round);
}

/* ---- errors */

static void refuse_offsets(att_tape *t, float *x, att_param *w, const int64_t offsets[3], const char *sentence)
{
    static const int32_t columns[] = {0, 5, 2};
    const att_excluded_columns except = {.size = sizeof except, .column = columns, .n = 3, .offsets = offsets};
    att_top_column out[2];
    att_tape_reset(t);
    assert_int_equal(att_linear_topk(t, input(t, x, ATT_DIMS(2, 3)), w, NULL, &except, 1, out, NULL), ATT_ERR_ARGUMENT);
    assert_string_equal(att_error(NULL), sentence);
}

static void wrong_shapes_and_columns_are_refused(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    problem p = problem_of(2, 6, 3, 1);
    att_param *w = param(ctx, p.w, ATT_F32, ATT_DIMS(6, 3)), *b = param(ctx, p.b, ATT_F32, ATT_DIMS(5));
    att_tape *t = new_tape(ctx);
    att_top_column out[2];
    double sum[2];
    const att_excluded_columns wrong = {.size = sizeof wrong, .column = (const int32_t[]){0, 6}, .n = 2};
    static const char *const sentences[] = {"topk: weight is NULL", "topk: x is [2, 4] but weight is [6, 3]",
                                            "topk: bias is [5] but weight is [6, 3]: expected [6]",
                                            "topk: except.column[1] is 6, but weight is [6, 3]",
                                            "topk: n is 0, expected at least 1"};
    for (int i = 0; i < 5; i++) {
        att_tape_reset(t);
        att_var *x = input(t, p.x, ATT_DIMS(2, 3)), *y = i == 1 ? input(t, p.w, ATT_DIMS(2, 4)) : x;
        const att_status e = att_linear_topk(t, y, i == 0 ? NULL : w, i == 2 ? b : NULL, i == 3 ? &wrong : NULL,
                                             i == 4 ? 0 : 1, out, sum);
        assert_true(e == ATT_ERR_SHAPE || e == ATT_ERR_ARGUMENT);
        assert_string_equal(att_error(ctx), sentences[i]);
        att_tape_reset(t);
    }
    att_var *x = input(t, p.x, ATT_DIMS(2, 3));
    assert_int_equal(att_linear_argmax(t, x, w, NULL, &wrong, out), ATT_ERR_ARGUMENT);
    assert_string_equal(att_error(ctx), "argmax: except.column[1] is 6, but weight is [6, 3]");
    assert_int_equal(att_linear_argmax(t, NULL, w, NULL, NULL, out), ATT_ERR_ARGUMENT); /* the tape has failed */
    refuse_offsets(t, p.x, w, (const int64_t[]){0, 1, 4},
                   "topk: except.offsets of row 1 are 1 and 4, expected ascending ones from 0 to except.n, 3");
    refuse_offsets(t, p.x, w, (const int64_t[]){0, 1, 3},
                   "topk: except.column[2] is 2, below the one before it in row 1, 5");
    att_tape_reset(t);
    x = input(t, p.x, ATT_DIMS(2, 3));
    assert_int_equal(att_linear_argmax(t, x, w, NULL,
                                       ATT_OPTIONS(att_excluded_columns, .column = (const int32_t[]){1, 2}, .n = 2,
                                                   .offsets = (const int64_t[]){0, 1, 2}),
                                       out),
                     ATT_ERR_ARGUMENT);
    assert_string_equal(att_error(ctx), "argmax: except.offsets is for att_linear_topk, expected NULL");
    att_tape_reset(t);
    x = input(t, p.x, ATT_DIMS(2, 3));
    assert_int_equal(att_linear_topk(t, x, w, NULL, &(const att_excluded_columns){0}, 1, out, NULL), ATT_ERR_ARGUMENT);
    check_message(ctx, "att_excluded_columns: its field size is 0");
    att_tape_free(t);
    att_param_free(w);
    att_param_free(b);
    problem_free(&p);
    att_close(ctx);
}

static void without_memory_there_is_an_error_and_then_a_result(void **state)
{
    (void)state;
    problem p = problem_of(3, 900, 16, 2);
    const att_excluded_columns except = {.size = sizeof except, .column = (const int32_t[]){4}, .n = 1};
    for (int both = 0; both < 2; both++) {
        att_status e = ATT_ERR_MEMORY;
        for (long at = 1; e; at++) {
            fail_alloc f = {0};
            att_ctx *ctx = fail_open(&f);
            att_param *w = param(ctx, p.w, ATT_F32, ATT_DIMS(900, 16));
            att_tape *t = new_tape(ctx);
            att_var *x = input(t, p.x, ATT_DIMS(3, 16));
            att_top_column out[3];
            double sum[3];
            f.fail_at = f.calls + at;
            for (int again = 0; again < 2; again++) {
                const att_status s = both ? att_linear_topk(t, x, w, NULL, &except, 1, out, sum)
                                          : att_linear_argmax(t, x, w, NULL, &except, out);
                e = again ? e : s;
                assert_true(again || !s || (s == ATT_ERR_MEMORY && f.calls >= f.fail_at));
                assert_true(!again || !s);
                f.fail_at = 0;
                att_tape_reset(t);
                x = input(t, p.x, ATT_DIMS(3, 16));
            }
            att_tape_free(t);
            att_param_free(w);
            att_close(ctx);
            assert_int_equal(f.live, 0);
        }
    }
    problem_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_are_the_largest_of_all),
        cmocka_unit_test(rows_exclude_columns_of_their_own),
        cmocka_unit_test(results_are_the_same_with_any_number_of_threads_and_rows),
        cmocka_unit_test(bounds_that_say_little_do_no_harm),
        cmocka_unit_test(numbers_that_are_not_finite_are_told),
        cmocka_unit_test(bounds_hold_and_are_near),
        cmocka_unit_test(wrong_shapes_and_columns_are_refused),
        cmocka_unit_test(without_memory_there_is_an_error_and_then_a_result),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
