/* Frozen parameters: weights of any type give what f32 copies of them give, and no copy is made; a tape keeps nothing
 * for what does not learn; patterns of names. That other gradients stay the same is in fixtures/gradients.h. */
#include "attend_nn.h"
#include "fixtures/fail_alloc.h"
#include "fixtures/tape.h"

enum { N_TYPES = 6 };
static const att_dtype types[N_TYPES] = {ATT_F16, ATT_BF16, ATT_Q8_0, ATT_Q4_0, ATT_Q4_1, ATT_I8};

/* The same numbers twice: in a type, and as f32. Numbers of a convolution or a vector are of f16 instead of a quantized
 * type. */
typedef struct twin {
    void *memory;
    float *floats;
    att_param *in_type, *in_f32;
} twin;

static twin make_twin(att_ctx *ctx, att_dtype type, int rank, const int64_t *dim, uint64_t seed)
{
    twin w;
    att_tensor x, y;
    type = rank == 2 ? type : ATT_F16;
    assert_int_equal(att_wrap(&x, NULL, ATT_F32, rank, dim, NULL), ATT_OK);
    const int64_t n = att_count(&x);
    w.floats = check_numbers(n, seed);
    w.memory = malloc((size_t)att_dtype_bytes(type, n));
    x.data = w.floats;
    assert_int_equal(att_wrap(&y, w.memory, type, rank, dim, NULL), ATT_OK);
    for (int64_t i = 0; type == ATT_I8 && i < n; i++)
        ((int8_t *)w.memory)[i] = (int8_t)(2 * w.floats[i]); /* nothing is converted into it */
    assert_int_equal(type == ATT_I8 ? ATT_OK : att_tensor_convert(ctx, &x, &y), ATT_OK);
    assert_int_equal(att_tensor_convert(ctx, &y, &x), ATT_OK);
    assert_int_equal(att_param_new(ctx, &x, &w.in_f32), ATT_OK);
    assert_int_equal(att_param_new(ctx, &y, &w.in_type), ATT_OK);
    return w;
}

static void twin_free(twin *w)
{
    att_param_free(w->in_type);
    att_param_free(w->in_f32);
    free(w->memory);
    free(w->floats);
}

/* ---- each operation that reads weights in another type */

/* Weights of 96 rows of 8192 are more than a block of them. */
enum { ROWS = 96, WIDTH = 8192, CLASSES = 600, FEATURES = 64, COUNT = 3, MANY = 520 };

typedef struct operation {
    const char *name;
    int rank;
    int64_t weight[4], x[4];
    int x_rank;
    att_var *(*apply)(att_tape *t, att_var *x, att_param *weight);
} operation;

static att_var *linear(att_tape *t, att_var *x, att_param *weight)
{
    return att_linear(t, x, weight, NULL, ATT_ACTIVATION_TANH, NULL);
}

static att_var *identity(att_tape *t, att_var *x, att_param *weight)
{
    return att_linear(t, x, weight, NULL, ATT_ACTIVATION_IDENTITY, x->value.dim[1] == ROWS ? x : NULL);
}

static att_var *cross_entropy(att_tape *t, att_var *x, att_param *weight)
{
    return att_linear_cross_entropy(t, x, weight, NULL, (const int32_t[]){599, 0, -1, 5, 511, 512, 300}, NULL);
}

static att_var *dots(att_tape *t, att_var *x, att_param *weight)
{
    int32_t ids[MANY * COUNT];
    for (int i = 0; i < MANY * COUNT; i++)
        ids[i] = i * 7 % CLASSES;
    return att_embedding_dot(t, x, weight, ids, COUNT);
}

static att_var *rows(att_tape *t, att_var *x, att_param *weight)
{
    return att_add(t, x, att_embedding(t, weight, (const int32_t[]){599, 3, 3}, 3));
}

static att_var *convolution(att_tape *t, att_var *x, att_param *weight) { return att_conv2d(t, x, weight, NULL, NULL); }

static const int64_t two[] = {0, 2, 7};

static att_var *gru(att_tape *t, att_var *x, att_param *weight)
{
    return att_gru(t, x, two, 2, ATT_OPTIONS(att_recurrent, .weight_ih = weight, .weight_hh = weight), NULL);
}

static att_var *norm(att_tape *t, att_var *x, att_param *weight) { return att_layer_norm(t, x, weight, weight, 1e-5f); }

static const operation operations[] = {
    {"linear", 2, {ROWS, WIDTH}, {7, WIDTH}, 2, linear},
    {"linear of many rows", 2, {ROWS, ROWS}, {MANY, ROWS}, 2, identity},
    {"linear_cross_entropy", 2, {CLASSES, FEATURES}, {7, FEATURES}, 2, cross_entropy},
    {"embedding_dot", 2, {CLASSES, FEATURES}, {MANY, FEATURES}, 2, dots},
    {"embedding", 2, {CLASSES, FEATURES}, {3, FEATURES}, 2, rows},
    {"conv2d", 4, {5, 3, 2, 3}, {2, 4, 5, 3}, 4, convolution},
    {"gru", 2, {FEATURES * 3, FEATURES}, {7, FEATURES}, 2, gru},
    {"layer_norm", 1, {FEATURES}, {3, FEATURES}, 2, norm},
};

/* y and dx of sum(slope y), one after the other, and dW of a weight that learns; free() them */
static float *apply_once(att_ctx *ctx, const operation *o, att_param *weight, bool frozen, int64_t *count)
{
    att_tape *t = recording_tape(ctx);
    att_tensor shape, y, dx;
    assert_int_equal(att_wrap(&shape, NULL, ATT_F32, o->x_rank, o->x, NULL), ATT_OK);
    float *x = check_numbers(att_count(&shape), 5);
    att_param_set_frozen(weight, frozen);
    att_var *in = input(t, x, o->x_rank, o->x), *out = o->apply(t, in, weight);
    if (att_var_value(t, out, &y))
        fail_msg("%s: %s", o->name, att_error(ctx));
    att_tensor dy = y;
    dy.data = check_numbers(att_count(&y), 6);
    if (att_tape_backward(t, out, &dy) || att_var_grad(t, in, &dx))
        fail_msg("%s: %s", o->name, att_error(ctx));
    const int64_t n = att_count(&y), m = att_count(&dx);
    assert_true(!att_param_grad(weight)->data == frozen);
    const int64_t w = frozen ? 0 : att_count(att_param_value(weight));
    float *all = malloc((size_t)(n + m + w) * sizeof *all);
    memcpy(all, y.data, (size_t)n * sizeof *all);
    memcpy(all + n, dx.data, (size_t)m * sizeof *all);
    if (w)
        memcpy(all + n + m, att_param_grad(weight)->data, (size_t)w * sizeof *all);
    att_param_zero_grad(weight);
    att_tape_free(t);
    free(x), free(dy.data);
    *count = n + m;
    return all;
}

static void weights_of_any_type_give_the_bits_of_f32_copies(void **state)
{
    (void)state;
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);)
        for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++)
            for (int type = 0; type < N_TYPES; type += check_step(2)) {
                const operation *o = &operations[i];
                const bool quantized = type >= 2;
                if (quantized && (o->rank != 2 || o->apply == gru))
                    continue;
                twin w = make_twin(ctx, types[type], o->rank, o->weight, i + 1);
                int64_t n, m;
                float *expected = apply_once(ctx, o, w.in_f32, false, &n);
                float *frozen = apply_once(ctx, o, w.in_type, true, &m),
                      *of_f32 = apply_once(ctx, o, w.in_f32, true, &m);
                float *learns = apply_once(ctx, o, w.in_type, false, &m);
                assert_memory_equal(frozen, expected, (size_t)n * sizeof(float));
                assert_memory_equal(of_f32, expected, (size_t)n * sizeof(float));
                const size_t all = (size_t)(n + att_count(att_param_value(w.in_type))) * sizeof(float);
                assert_memory_equal(learns, expected, all);
                free(expected), free(frozen), free(of_f32), free(learns);
                twin_free(&w);
            }
}

/* The blocks of a step are a 256th or so of these weights, 8 MB as f32; an arena may have twice what it is asked for.
 */
static void a_step_makes_no_f32_copy_of_frozen_weights(void **state)
{
    (void)state;
    static const operation large[] = {{"linear", 2, {2048, 1024}, {4, 1024}, 2, linear},
                                      {"linear_cross_entropy", 2, {32768, 64}, {7, 64}, 2, cross_entropy},
                                      {"embedding_dot", 2, {32768, 64}, {MANY, 64}, 2, dots}};
    const long numbers = 2048L * 1024;
    for (int i = 0; i < 3; i++)
        for (int type = 0; type < N_TYPES; type++) {
            fail_alloc f = {0};
            att_ctx *ctx = fail_open(&f);
            twin w = make_twin(ctx, types[type], 2, large[i].weight, 3);
            const long before = f.bytes;
            int64_t n;
            f.peak = before;
            free(apply_once(ctx, &large[i], w.in_type, true, &n));
            const bool codes = type < 2 && i == 0; /* products read 16-bit weights in another order */
            const long peak = f.peak - before - (codes ? 2 * numbers : 0);
            assert_int_equal(att_param_copies(w.in_type), codes ? 2 * numbers : 0);
            if (peak > numbers * 4 * 7 / 8)
                fail_msg("%s of %s: %ld bytes beside the weights", large[i].name, att_dtype_name(types[type]), peak);
            twin_free(&w);
            att_close(ctx);
            assert_int_equal(f.live, 0);
        }
}

/* ---- quantized weights in a function of att_recompute */

typedef struct recomputed {
    const operation *o;
    att_param *weight;
} recomputed;

static att_var *apply_to(const void *user, att_tape *t, att_var *const *x)
{
    const recomputed *r = user;
    return r->o->apply(t, x[0], r->weight);
}

/* The value and the gradient are those of one function: that without rounded activations. */
static void what_is_computed_again_has_the_bits_of_what_is_kept(void **state)
{
    (void)state;
    static const operation kept[] = {{"linear", 2, {ROWS, FEATURES}, {7, FEATURES}, 2, linear},
                                     {"linear_cross_entropy", 2, {CLASSES, FEATURES}, {7, FEATURES}, 2, cross_entropy}};
    att_ctx *ctx = check_open(NULL, 1);
    for (int i = 0; i < 2; i++)
        for (int type = 0; type < N_TYPES; type++) {
            twin w = make_twin(ctx, types[type], 2, kept[i].weight, 4);
            float *x = check_numbers(7 * FEATURES, 5), first[2][7 * ROWS];
            att_param_set_frozen(w.in_type, true);
            for (int again = 0; again < 2; again++) {
                att_tensor y;
                att_tape *t = recording_tape(ctx);
                att_var *in = input(t, x, ATT_DIMS(7, FEATURES));
                const recomputed r = {&kept[i], w.in_type};
                att_var *out = again ? att_recompute(t, apply_to, &r, sizeof r, &in, 1) : apply_to(&r, t, &in);
                assert_int_equal(att_var_value(t, out, &y), ATT_OK);
                memcpy(first[again], y.data, (size_t)att_count(&y) * sizeof(float));
                if (again)
                    assert_memory_equal(first[1], first[0], (size_t)att_count(&y) * sizeof(float));
                att_tape_free(t);
            }
            free(x);
            twin_free(&w);
        }
    att_close(ctx);
}

/* ---- what a tape keeps */

enum { BATCH = 64, SIDE = 64 };

typedef struct stack {
    att_param *weight, *norm, *head;
    int layers;
    int *calls; /* of layer */
} stack;

static att_var *layer(const void *user, att_tape *t, att_var *const *x)
{
    const stack *s = user;
    ++*s->calls;
    att_scope scope = att_scope_begin(t, "layer");
    att_var *h = att_layer_norm(t, x[0], s->norm, s->norm, 1e-5f);
    h = att_merge_heads(t, att_split_heads(t, att_linear(t, h, s->weight, NULL, ATT_ACTIVATION_GELU_ERF, NULL), 4));
    return att_scope_end(t, scope, att_linear(t, h, s->weight, NULL, ATT_ACTIVATION_IDENTITY, x[0]));
}

static size_t bytes_of(att_ctx *ctx, const stack *s, bool again, float *dhead)
{
    att_tape *t = recording_tape(ctx);
    float *x = check_numbers(BATCH * SIDE, 1);
    const att_tensor v = view(x, ATT_F32, ATT_DIMS(BATCH, SIDE));
    att_var *y = att_constant(t, &v);
    att_scope scope = att_scope_begin(t, "stack");
    for (int i = 0; i < s->layers; i++) {
        y = again ? att_recompute(t, layer, s, sizeof *s, &y, 1) : layer(s, t, &y);
        y = att_scope_reset(t, scope, y);
    }
    y = att_scope_end(t, scope, y);
    y = att_linear(t, y, s->head, NULL, ATT_ACTIVATION_IDENTITY, NULL);
    if (att_tape_backward(t, y, NULL))
        fail_msg("%s", att_error(ctx));
    const size_t bytes = att_tape_bytes(t);
    memcpy(dhead, att_param_grad(s->head)->data, SIDE * SIDE * sizeof *dhead);
    att_param_zero_grad(s->head), att_param_zero_grad(s->weight), att_param_zero_grad(s->norm);
    att_tape_free(t);
    free(x);
    return bytes;
}

/* A layer has some ten variables; four and sixteen frozen ones need as much but for the variables' structs. A function
 * of att_recompute that does not learn is not called again. */
static void a_tape_keeps_nothing_below_what_learns(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    int calls;
    float *x[3] = {check_numbers(SIDE * SIDE, 2), check_numbers(SIDE, 3), check_numbers(SIDE * SIDE, 4)};
    stack s = {param(ctx, x[0], ATT_F32, ATT_DIMS(SIDE, SIDE)), param(ctx, x[1], ATT_F32, ATT_DIMS(SIDE)),
               param(ctx, x[2], ATT_F32, ATT_DIMS(SIDE, SIDE)), 0, &calls};
    float learned[SIDE * SIDE], frozen[SIDE * SIDE];
    for (int again = 0; again < 2; again++) {
        size_t bytes[2][2];
        for (int still = 0; still < 2; still++)
            for (int deep = 0; deep < 2; deep++) {
                s.layers = deep ? 16 : 4;
                att_param_set_frozen(s.weight, still), att_param_set_frozen(s.norm, still);
                calls = 0;
                bytes[still][deep] = bytes_of(ctx, &s, again, still ? frozen : learned);
                assert_int_equal(calls, again && !still ? 2 * s.layers : s.layers);
            }
        assert_memory_equal(frozen, learned, sizeof frozen);
        const size_t one = BATCH * SIDE * sizeof(float);
        assert_true(again || bytes[0][1] > bytes[0][0] + 12 * 4 * one);
        assert_in_range(bytes[1][1], 0, again ? bytes[0][1] : bytes[1][0] + 4 * one);
    }
    att_param_free(s.weight), att_param_free(s.norm), att_param_free(s.head);
    for (int i = 0; i < 3; i++)
        free(x[i]);
    att_close(ctx);
}

/* ---- batch normalization */

static void a_frozen_batch_norm_stays_as_for_inference(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    att_nn_params *p;
    assert_int_equal(att_nn_params_new(ctx, NULL, &p), ATT_OK);
    const att_nn_batch_norm *l = att_nn_batch_norm_new(p, "norm", 2, 0);
    assert_non_null(l);
    assert_true(att_param_frozen(l->running_mean) && att_param_frozen(l->running_var));
    float x[6] = {1, 2, 3, 4, 5, 9}, y[6];
    for (int frozen = 0; frozen < 3; frozen++) {
        att_tape *t = recording_tape(ctx);
        att_param_set_frozen(l->weight, frozen > 0), att_param_set_frozen(l->bias, frozen > 1);
        att_var *in = input(t, x, ATT_DIMS(3, 2));
        const float *training =
            read_floats(t, att_nn_batch_norm_apply(t, l, in, ATT_OPTIONS(att_batch_norm_options, .training = true)));
        memcpy(y, training, sizeof y);
        float *mean = att_param_value(l->running_mean)->data;
        assert_true((mean[0] != 0) == (frozen < 2)); /* one of weight and bias still learns */
        assert_memory_equal(read_floats(t, att_nn_batch_norm_apply(t, l, in, NULL)), y, frozen < 2 ? 0 : sizeof y);
        mean[0] = 0;
        att_tape_free(t);
    }
    att_nn_params_free(p);
    att_close(ctx);
}

/* ---- patterns */

typedef struct file {
    att_ctx *ctx;
    uint16_t numbers[64]; /* f16 */
} file;

static att_status load(void *user, const char *name, int rank, const int64_t *dim, att_tensor *value)
{
    (void)name;
    return att_wrap(value, ((file *)user)->numbers, ATT_F16, rank, dim, NULL);
}

static att_nn_params *three_layers(file *f, const char *const *freeze, int64_t n)
{
    att_nn_params *p;
    const att_nn_params_config c = {
        .size = sizeof c, .load = load, .user = f, .trainable = true, .freeze = freeze, .n_freeze = n};
    if (att_nn_params_new(f->ctx, &c, &p))
        return NULL;
    for (int i = 0; i < 12; i += 1 + 9 * (i == 1)) /* layers 0, 1 and 11 */
        att_nn_linear_new(p, att_nn_number("layer", i).text, 2, 3, NULL);
    att_nn_norm_new(p, "norm", ATT_NN_NORM_LAYER, 3, 0);
    att_nn_batch_norm_new(p, "batch", 3, 0);
    assert_int_equal(att_nn_params_status(p), ATT_OK);
    return p;
}

static void patterns_freeze_views_of_what_is_loaded(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *frozen; /* one letter for each parameter of three_layers: f is frozen */
    } cases[] = {{"layer.1", "..ff......ff"},     {"layer.1*", "..ffff....ff"}, {"layer", "ffffff....ff"},
                 {"*.bias", ".f.f.f.f.fff"},      {"*", "ffffffffffff"},        {"layer.*.weight", "f.f.f.....ff"},
                 {"norm.weight", "......f...ff"}, {"batch", "........ffff"},    {"b*h.running_*", "..........ff"},
                 {"*r.11.w*t", "....f.....ff"}};
    file f = {.ctx = check_open(NULL, 1)};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        att_nn_params *p = three_layers(&f, &cases[i].pattern, 1);
        att_optimizer *o;
        assert_int_equal(att_nn_params_count(p), 12);
        assert_int_equal(att_optimizer_new(f.ctx, NULL, &o), ATT_OK);
        if (att_nn_params_optimize(p, o))
            fail_msg("%s", att_error(f.ctx));
        for (int k = 0; k < 12; k++) {
            const char *name;
            const att_param *w = att_nn_params_at(p, k, &name);
            const bool frozen = cases[i].frozen[k] == 'f', buffer = k >= 10;
            const att_tensor *x = att_param_value(w);
            if (att_param_frozen(w) != frozen || (x->data == f.numbers) != (frozen && !buffer) ||
                (x->dtype == ATT_F16) != (frozen && !buffer) || !att_optimizer_moment(o, k, 0) != frozen)
                fail_msg("\"%s\": %s is %s", cases[i].pattern, name, att_dtype_name(x->dtype));
        }
        att_optimizer_free(o);
        att_nn_params_free(p);
    }
    att_close(f.ctx);
}

static void a_pattern_that_matches_nothing_is_named_with_what_is_near(void **state)
{
    (void)state;
    file f = {.ctx = check_open(NULL, 1)};
    const char *freeze[] = {"norm", "layr.1"};
    att_nn_params *p = three_layers(&f, freeze, 2);
    att_optimizer *o;
    assert_int_equal(att_optimizer_new(f.ctx, NULL, &o), ATT_OK);
    assert_int_equal(att_nn_params_optimize(p, o), ATT_ERR_ARGUMENT);
    assert_string_equal(att_error(f.ctx), "freeze: \"layr.1\" matches no parameter; nearest are layer.1, layer.0, "
                                          "layer.11; the parts are layer, norm, batch");
    att_optimizer_free(o);
    att_nn_params_free(p);
    freeze[0] = NULL;
    assert_null(three_layers(&f, freeze, 1));
    assert_string_equal(att_error(f.ctx), "freeze[0] is NULL");
    freeze[0] = "";
    assert_null(three_layers(&f, freeze, 1));
    assert_null(three_layers(&f, NULL, 1));
    assert_string_equal(att_error(f.ctx), "n_freeze is 1 with no freeze");
    att_close(f.ctx);
}

/* A step updates parameters that learn, and does not change frozen ones, whenever they were frozen. */
static void an_optimizer_leaves_what_is_frozen_later(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    float x[2] = {1, 1}, one = 1;
    att_param *p[2] = {param(ctx, &x[0], ATT_F32, ATT_DIMS(1)), param(ctx, &x[1], ATT_F32, ATT_DIMS(1))};
    att_optimizer *o;
    assert_int_equal(att_optimizer_new(ctx, NULL, &o), ATT_OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(att_optimizer_add(o, p[i], NULL), ATT_OK);
    for (int step = 0; step < 3; step++) {
        const float before = x[0];
        att_param_set_frozen(p[0], step == 1);
        att_tape *t = recording_tape(ctx);
        att_var *in = input(t, &one, ATT_DIMS(1));
        att_var *y = att_mul(t, in, att_add(t, att_parameter(t, p[0]), att_parameter(t, p[1])));
        assert_int_equal(att_tape_backward(t, y, NULL), ATT_OK);
        assert_int_equal(att_optimizer_step(o, ATT_OPTIONS(att_update, .rate = 0.1), NULL), ATT_OK);
        assert_true((x[0] < before) == (step != 1));
        att_tape_free(t);
    }
    att_optimizer_free(o);
    att_param_free(p[0]), att_param_free(p[1]);
    att_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_of_any_type_give_the_bits_of_f32_copies),
        cmocka_unit_test(a_step_makes_no_f32_copy_of_frozen_weights),
        cmocka_unit_test(what_is_computed_again_has_the_bits_of_what_is_kept),
        cmocka_unit_test(a_tape_keeps_nothing_below_what_learns),
        cmocka_unit_test(a_frozen_batch_norm_stays_as_for_inference),
        cmocka_unit_test(patterns_freeze_views_of_what_is_loaded),
        cmocka_unit_test(a_pattern_that_matches_nothing_is_named_with_what_is_near),
        cmocka_unit_test(an_optimizer_leaves_what_is_frozen_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
