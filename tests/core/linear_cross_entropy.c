/* The loss of a linear layer without its logits: the same as att_linear and att_cross_entropy but for rounding, in
 * blocks whose results do not depend on the threads. Gradients against differences are in gradients.c, the memory that
 * it takes in linear_cross_entropy_memory.c. */
// labels: threads
#include "fixtures/tape.h"

enum { ROWS = 1040, CLASSES = 1100 }; /* a few more than one block of rows, and two of classes */

/* Numbers of a layer [rows, features] -> [rows, classes] */
typedef struct layer {
    int64_t rows, features, classes;
    float *x, *weight, *bias; /* bias or NULL */
    int32_t *targets;
    att_dtype weight_dtype;
    int times; /* the loss is computed and added this number of times */
    const att_cross_entropy_options *options;
} layer;

static layer new_layer(int64_t rows, int64_t features, int64_t classes, bool bias)
{
    layer l = {.rows = rows, .features = features, .classes = classes, .weight_dtype = ATT_F32, .times = 1};
    l.x = check_numbers(rows * features, 1);
    l.weight = check_numbers(classes * features, 2);
    l.bias = bias ? check_numbers(classes, 3) : NULL;
    l.targets = malloc((size_t)(rows + 1) * sizeof *l.targets);
    for (int64_t i = 0; i < rows; i++) /* of every fourth row none; never the last class, unless it is the only one */
        l.targets[i] = i % 4 == 3 ? -1 : (int32_t)(i * 37 % att_max(classes - 1, 1));
    return l;
}

static void free_layer(layer *l) { free(l->x), free(l->weight), free(l->bias), free(l->targets); }

/* A loss and its gradients, which the tape and the parameters hold */
typedef struct result {
    att_tape *t;
    att_param *weight, *bias;
    float loss;
    const float *dx, *dw, *db;
    const float *dz; /* of the logits of the first loss, where they are stored */
} result;

static const float *grad_of(att_tape *t, att_var *v)
{
    att_tensor grad;
    if (att_var_grad(t, v, &grad))
        fail_msg("%s", att_error(t->ctx));
    return grad.data;
}

static result run(att_ctx *ctx, const layer *l, bool fused)
{
    result r = {.t = recording_tape(ctx)};
    r.weight = param(ctx, l->weight, l->weight_dtype, ATT_DIMS(l->classes, l->features));
    r.bias = l->bias ? param(ctx, l->bias, ATT_F32, ATT_DIMS(l->classes)) : NULL;
    att_var *x = input(r.t, l->x, ATT_DIMS(l->rows, l->features)), *loss = NULL, *logits = NULL;
    for (int i = 0; i < l->times; i++) {
        att_var *z =
            fused ? NULL : att_retain_grad(r.t, att_linear(r.t, x, r.weight, r.bias, ATT_ACTIVATION_IDENTITY, NULL));
        att_var *y = fused ? att_linear_cross_entropy(r.t, x, r.weight, r.bias, l->targets, l->options)
                           : att_cross_entropy(r.t, z, l->targets, l->options);
        logits = logits ? logits : z;
        loss = loss ? att_add(r.t, loss, y) : y;
    }
    r.loss = *read_floats(r.t, loss);
    if (att_tape_backward(r.t, loss, NULL))
        fail_msg("%s", att_error(ctx));
    r.dx = grad_of(r.t, x);
    r.dz = logits ? grad_of(r.t, logits) : NULL;
    r.dw = att_param_grad(r.weight)->data;
    r.db = r.bias ? att_param_grad(r.bias)->data : NULL;
    return r;
}

static void free_result(result *r)
{
    att_param_free(r->weight), att_param_free(r->bias);
    att_tape_free(r->t);
}

/* ---- equality
 *
 * Both compute the same logits z, to the last bit. They differ in the log-sum-exp: a sum of exponentials of n classes,
 * off by a relative n / 2 units where two chains have them all, and some roundings of numbers below 16. So a weight p
 * is off by delta = (n / 2 + 32) units of it, dz by that of |dz| + factor (share + 1 at the target), which is not less
 * than factor p. A sum over dz in any order adds a unit of each term for each of its terms. */

static double loss_delta(const layer *l) { return ((double)l->classes / 2 + 32) * FLT_EPSILON; }

/* Returns a bound of dz [rows, classes] that is not less than factor p; `all` classes, `used` that take part. */
static double bound_of_dz(const layer *l, const result *r, double factor, int64_t i, int64_t c)
{
    const double smoothing = (double)l->options->label_smoothing;
    const double share = smoothing / (double)l->classes * 2; /* at least half of the classes take part */
    const double at_target = l->targets[i] == c ? 1 : 0;
    return l->targets[i] < 0 ? 0 : fabs((double)r->dz[i * l->classes + c]) + factor * (share + at_target);
}

typedef struct bounds {
    double *x, *w, *b; /* sums of |dz| times |w|, |x| and 1 */
} bounds;

static bounds bounds_of(const layer *l, const result *r, double factor)
{
    bounds s = {calloc((size_t)(l->rows * l->features + 1), sizeof(double)),
                calloc((size_t)(l->classes * l->features + 1), sizeof(double)),
                calloc((size_t)(l->classes + 1), sizeof(double))};
    for (int64_t i = 0; i < l->rows; i++)
        for (int64_t c = 0; c < l->classes; c++) {
            const double dz = bound_of_dz(l, r, factor, i, c);
            s.b[c] += dz;
            for (int64_t d = 0; d < l->features; d++) { /* weights are below 1 */
                s.x[i * l->features + d] += dz;
                s.w[c * l->features + d] += dz * fabs((double)l->x[i * l->features + d]);
            }
        }
    return s;
}

static void check_all(const char *what, int64_t n, const float *expected, const float *got, const double *bound,
                      double units)
{
    for (int64_t i = 0; i < n; i++)
        check_near((double)expected[i], got[i], units * bound[i], "%s[%d]", what, (int)i);
}

static void check_equal(att_ctx *ctx, const layer *l)
{
    result two = run(ctx, l, false), one = run(ctx, l, true);
    int64_t count = 0;
    for (int64_t i = 0; i < l->rows; i++)
        count += l->targets[i] >= 0;
    const double divisor = l->options->sum ? 1 : (double)count, times = l->times, delta = loss_delta(l);
    bounds s = bounds_of(l, &two, 1 / divisor);
    check_near((double)two.loss, one.loss, times * (double)count / divisor * delta, "%s: loss", att_isa(ctx));
    check_all("dx", l->rows * l->features, two.dx, one.dx, s.x,
              times * (delta + times * (double)l->classes * FLT_EPSILON));
    check_all("dw", l->classes * l->features, two.dw, one.dw, s.w,
              times * (delta + times * (double)l->rows * FLT_EPSILON));
    if (l->bias)
        check_all("db", l->classes, two.db, one.db, s.b, times * (delta + times * (double)l->rows * FLT_EPSILON));
    free(s.x), free(s.w), free(s.b);
    free_result(&one), free_result(&two);
}

static void equals_the_two_operations(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {{1, 1, 1},    {3, 5, 513},        {ROWS, 2, 70},
                                        {40, 0, 530}, {ROWS, 7, CLASSES}, {1024, 3, 512}};
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);)
        for (int s = 0; s < (int)(sizeof shapes / sizeof *shapes); s++)
            for (int i = s % check_step(5); i < 8; i += check_step(5)) {
                const int64_t classes = shapes[s][2];
                layer l = new_layer(shapes[s][0], shapes[s][1], classes, i & 1);
                l.options = ATT_OPTIONS(att_cross_entropy_options, .label_smoothing = i & 2 ? 0.2f : 0,
                                        .classes = i & 4 && classes > 1 ? classes - 1 : 0, .sum = i & 1);
                l.times = i & 4 ? 2 : 1; /* gradients are added to those that there are */
                check_equal(ctx, &l);
                free_layer(&l);
            }
}

static void weights_may_be_bf16(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    layer l = new_layer(30, 5, 600, true);
    uint16_t *bf16 = (uint16_t *)l.weight; /* from the first on, each over what was read */
    for (int64_t i = 0; i < 600 * 5; i++) {
        uint32_t bits;
        memcpy(&bits, &l.weight[i], sizeof bits);
        const uint16_t high = (uint16_t)(bits >> 16);
        memcpy(&bf16[i], &high, sizeof high);
    }
    l.weight_dtype = ATT_BF16;
    l.options = ATT_OPTIONS(att_cross_entropy_options, .label_smoothing = 0);
    check_equal(ctx, &l);
    free_layer(&l);
    att_close(ctx);
}

/* ---- values that are not numbers */

/* More classes than a block may be impossible, the first ones too: -inf less -inf is never taken. */
static void classes_may_be_impossible(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    for (int at_end = 0; at_end < 2; at_end++) {
        layer l = new_layer(20, 3, CLASSES, true);
        for (int64_t c = 0; c < 700; c++)
            l.bias[at_end ? CLASSES - 1 - c : c] = -INFINITY;
        for (int64_t i = 0; i < l.rows; i++)
            l.targets[i] = (int32_t)(at_end ? i : CLASSES - 1 - i);
        l.options = ATT_OPTIONS(att_cross_entropy_options, .label_smoothing = 0);
        check_equal(ctx, &l);
        free_layer(&l);
    }
    att_close(ctx);
}

static void without_targets_all_is_zero(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    for (int64_t rows = 0; rows < 40; rows += 39) {
        layer l = new_layer(rows, 3, 600, true);
        for (int64_t i = 0; i < rows; i++)
            l.targets[i] = -7;
        int64_t count = 9;
        l.options = ATT_OPTIONS(att_cross_entropy_options, .count = &count);
        result r = run(ctx, &l, true);
        assert_int_equal(count, 0);
        assert_true(r.loss == 0);
        for (int64_t i = 0; i < 600 * 3; i++)
            assert_true(r.db[i / 3] == 0 && r.dw[i] == 0);
        for (int64_t i = 0; i < rows * 3; i++)
            assert_true(r.dx[i] == 0);
        free_result(&r);
        free_layer(&l);
    }
    att_close(ctx);
}

/* No classes, whose weights are nowhere, and a row that has none of them as its target */
static void there_may_be_no_classes(void **state)
{
    (void)state;
    static const int32_t none[] = {-1};
    float x[] = {1, 2};
    att_ctx *ctx = check_open(NULL, 1);
    att_tape *t = recording_tape(ctx);
    att_param *w = param(ctx, NULL, ATT_F32, ATT_DIMS(0, 2)), *b = param(ctx, NULL, ATT_F32, ATT_DIMS(0));
    att_var *in = input(t, x, ATT_DIMS(1, 2)), *loss = att_linear_cross_entropy(t, in, w, b, none, NULL);
    assert_true(*read_floats(t, loss) == 0);
    assert_int_equal(att_tape_backward(t, loss, NULL), ATT_OK);
    assert_true(grad_of(t, in)[0] == 0 && grad_of(t, in)[1] == 0);
    att_param_free(w), att_param_free(b);
    att_tape_free(t);
    att_close(ctx);
}

static void a_logit_that_is_no_number_gives_none(void **state)
{
    (void)state;
    static const float bad[] = {NAN, INFINITY};
    att_ctx *ctx = check_open(NULL, 1);
    for (int i = 0; i < 2; i++) {
        layer l = new_layer(5, 3, 1200, true);
        l.bias[i ? 3 : 700] = bad[i];
        l.options = ATT_OPTIONS(att_cross_entropy_options, .sum = true);
        result r = run(ctx, &l, true);
        assert_true(isnan(r.loss) && isnan(r.dx[0]));
        free_result(&r);
        free_layer(&l);
    }
    att_close(ctx);
}

/* ---- threads */

static void has_the_same_bits_for_any_number_of_threads(void **state)
{
    (void)state;
    static const int threads[] = {1, 2, 5, 16};
    layer l = new_layer(ROWS, 9, CLASSES, true);
    l.options = ATT_OPTIONS(att_cross_entropy_options, .label_smoothing = 0.1f);
    result r[4];
    att_ctx *ctx[4];
    for (int i = 0; i < 4; i++) {
        ctx[i] = check_open(NULL, threads[i]);
        r[i] = run(ctx[i], &l, true);
        assert_true(r[i].loss == r[0].loss);
        assert_memory_equal(r[i].dx, r[0].dx, (size_t)(l.rows * l.features) * sizeof(float));
        assert_memory_equal(r[i].dw, r[0].dw, (size_t)(l.classes * l.features) * sizeof(float));
        assert_memory_equal(r[i].db, r[0].db, (size_t)l.classes * sizeof(float));
    }
    for (int i = 0; i < 4; i++) {
        free_result(&r[i]);
        att_close(ctx[i]);
    }
    free_layer(&l);
}

/* A constant x costs no gradient and changes none of the others. */
static void a_constant_has_no_gradient(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    layer l = new_layer(30, 4, 600, true);
    const att_tensor x = view(l.x, ATT_F32, ATT_DIMS(30, 4));
    l.options = ATT_OPTIONS(att_cross_entropy_options, .label_smoothing = 0);
    result r = run(ctx, &l, true);
    att_tape *t = recording_tape(ctx);
    att_param *w = param(ctx, l.weight, ATT_F32, ATT_DIMS(600, 4)), *b = param(ctx, l.bias, ATT_F32, ATT_DIMS(600));
    att_var *loss = att_linear_cross_entropy(t, att_constant(t, &x), w, b, l.targets, l.options);
    assert_int_equal(att_tape_backward(t, loss, NULL), ATT_OK);
    assert_memory_equal(att_param_grad(w)->data, r.dw, 600 * 4 * sizeof(float));
    assert_memory_equal(att_param_grad(b)->data, r.db, 600 * sizeof(float));
    att_param_free(w), att_param_free(b);
    att_tape_free(t);
    free_result(&r);
    free_layer(&l);
    att_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_the_two_operations),
        cmocka_unit_test(weights_may_be_bf16),
        cmocka_unit_test(classes_may_be_impossible),
        cmocka_unit_test(without_targets_all_is_zero),
        cmocka_unit_test(there_may_be_no_classes),
        cmocka_unit_test(a_logit_that_is_no_number_gives_none),
        cmocka_unit_test(has_the_same_bits_for_any_number_of_threads),
        cmocka_unit_test(a_constant_has_no_gradient),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
