/* Functions that a backward runs again: the same bits, in less memory. Their gradient is in gradients.c. */
#include "fixtures/fail_alloc.h"
#include "fixtures/tape.h"

enum { ROWS = 61, FEATURES = 24, HEADS = 4, LAYERS = 6, PARAMS = 4 };
static const int64_t shape_of_param[PARAMS][2] = {
    {FEATURES, FEATURES}, {FEATURES, FEATURES}, {FEATURES, 0}, {FEATURES, 0}};

/* A row of layers that share weights: attention with dropout, then a norm, of one variable that continues and one that
 * all see. */
typedef struct network {
    float *x[PARAMS], *in, *seen;
    att_param *p[PARAMS];
    att_plan *plan;
} network;

static int64_t count_of(int i) { return shape_of_param[i][0] * (shape_of_param[i][1] ? shape_of_param[i][1] : 1); }

static att_status network_open(att_ctx *ctx, network *n)
{
    *n = (network){.in = check_numbers(ROWS * FEATURES, 11), .seen = check_numbers(ROWS * FEATURES, 12)};
    const att_attention_spec spec = {
        .size = sizeof spec, .heads = HEADS, .head_dim = FEATURES / HEADS, .dropout = 0.2f};
    att_status s = att_plan_new(ctx, &spec, &n->plan);
    for (int i = 0; i < PARAMS; i++) {
        n->x[i] = check_numbers(count_of(i), (uint64_t)i + 1);
        const att_tensor v = view(n->x[i], ATT_F32, shape_of_param[i][1] ? 2 : 1, shape_of_param[i]);
        s = s ? s : att_param_new(ctx, &v, &n->p[i]);
    }
    return s;
}

static void network_close(network *n)
{
    for (int i = 0; i < PARAMS; i++)
        att_param_free(n->p[i]), free(n->x[i]);
    att_plan_free(n->plan);
    free(n->in), free(n->seen);
}

typedef struct layer {
    const network *n;
    uint64_t seed;
    bool twice; /* has one of its own that is recomputed */
} layer;

static att_var *attention(const void *user, att_tape *t, att_var *const *x)
{
    static const int64_t offsets[] = {0, 20, ROWS};
    static const uint32_t ids[] = {7, 3};
    const layer *l = user;
    const att_attention_args args = {
        .size = sizeof args, .n_sequences = 2, .q_offsets = offsets, .sequence_ids = ids, .dropout_seed = l->seed};
    att_scope s = att_scope_begin(t, "attention");
    att_var *q = att_split_heads(t, att_linear(t, x[0], l->n->p[0], l->n->p[2], ATT_ACTIVATION_TANH, NULL), HEADS);
    att_var *k = att_split_heads(t, att_linear(t, x[1], l->n->p[1], NULL, ATT_ACTIVATION_IDENTITY, NULL), HEADS);
    att_var *y = att_merge_heads(t, att_attend(t, l->n->plan, q, k, k, &args, NULL));
    return att_scope_end(t, s, att_add(t, y, x[0]));
}

static att_var *layer_apply(const void *user, att_tape *t, att_var *const *x)
{
    const layer *l = user;
    att_var *y = l->twice ? att_recompute(t, attention, l, sizeof *l, x, 2) : attention(l, t, x);
    return att_layer_norm(t, att_activate(t, y, ATT_ACTIVATION_GELU_TANH), l->n->p[2], l->n->p[3], 1e-5f);
}

enum { PLAIN, RECOMPUTED, TWICE };

static att_var *network_apply(att_tape *t, const network *n, int way, att_var **in)
{
    in[0] = input(t, n->in, ATT_DIMS(ROWS, FEATURES)), in[1] = input(t, n->seen, ATT_DIMS(ROWS, FEATURES));
    att_var *x[] = {in[0], in[1]};
    for (int i = 0; i < LAYERS; i++) {
        const layer l = {n, (uint64_t)i, way == TWICE};
        x[0] = way == PLAIN ? layer_apply(&l, t, x) : att_recompute(t, layer_apply, &l, sizeof l, x, 2);
    }
    return x[0];
}

/* Copies of the result and all gradients, to be freed. */
typedef struct results {
    float *x[PARAMS + 3];
    size_t bytes[PARAMS + 3];
    size_t memory; /* the largest memory of the tape */
} results;

static void take(results *r, int i, const att_tensor *x)
{
    r->bytes[i] = (size_t)check_count(x) * sizeof(float);
    r->x[i] = malloc(r->bytes[i]);
    assert_non_null(x->data);
    memcpy(r->x[i], x->data, r->bytes[i]);
}

static results run(att_ctx *ctx, const network *n, int way)
{
    att_tape *t = recording_tape(ctx);
    att_var *in[2], *y = network_apply(t, n, way, in);
    att_tensor x;
    results r = {.memory = 0};
    if (att_var_value(t, y, &x))
        fail_msg("%s", att_error(ctx));
    take(&r, PARAMS, &x);
    if (att_tape_backward(t, y, &x)) /* the loss is half the square of y */
        fail_msg("%s", att_error(ctx));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(att_var_grad(t, in[i], &x), ATT_OK);
        take(&r, PARAMS + 1 + i, &x);
    }
    for (int i = 0; i < PARAMS; i++) {
        take(&r, i, att_param_grad(n->p[i]));
        att_param_zero_grad(n->p[i]);
    }
    r.memory = t->arena.max_used;
    att_tape_free(t);
    return r;
}

static void results_free(results *r)
{
    for (int i = 0; i < PARAMS + 3; i++)
        free(r->x[i]);
}

static void same(const results *a, const results *b)
{
    for (int i = 0; i < PARAMS + 3; i++)
        assert_memory_equal(a->x[i], b->x[i], a->bytes[i]);
}

static void bits_are_those_without_it_and_memory_is_less(void **state)
{
    (void)state;
    for (int threads = 1; threads < 4; threads++) {
        att_ctx *ctx = check_open(NULL, threads);
        network n;
        assert_int_equal(network_open(ctx, &n), ATT_OK);
        results plain = run(ctx, &n, PLAIN), recomputed = run(ctx, &n, RECOMPUTED), twice = run(ctx, &n, TWICE);
        same(&plain, &recomputed);
        same(&plain, &twice);
        /* Only one of 13 variables of a layer is kept, and all of one layer at a time. */
        assert_true(recomputed.memory < plain.memory / 2);
        results_free(&plain), results_free(&recomputed), results_free(&twice);
        network_close(&n);
        att_close(ctx);
    }
}

static void a_tape_that_does_not_record_applies_the_function_and_frees_its_own(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 2);
    network n;
    assert_int_equal(network_open(ctx, &n), ATT_OK);
    att_var *in[2];
    att_tape *plain = new_tape(ctx), *t = new_tape(ctx);
    const float *expected = read_floats(plain, network_apply(plain, &n, PLAIN, in));
    const float *found = read_floats(t, network_apply(t, &n, TWICE, in));
    assert_memory_equal(found, expected, ROWS * FEATURES * sizeof *found);
    assert_true(t->arena.used < plain->arena.used / 2);
    att_tape_free(plain);
    att_tape_free(t);
    network_close(&n);
    att_close(ctx);
}

/* Each allocation of a second backward fails once: gradients stay, and after it the same call has the sum. */
static void a_failing_allocation_changes_no_gradient_and_leaks_nothing(void **state)
{
    (void)state;
    att_status s = ATT_ERR_MEMORY;
    long failed = 0;
    for (long at = 1; s; at += check_step(5), failed++) {
        fail_alloc f = {0};
        att_ctx *ctx = fail_open(&f);
        network n;
        assert_int_equal(network_open(ctx, &n), ATT_OK);
        att_tape *t = recording_tape(ctx);
        att_var *in[2];
        assert_int_equal(att_tape_backward(t, network_apply(t, &n, TWICE, in), NULL), ATT_OK);
        results once = {.memory = 0};
        for (int i = 0; i < PARAMS; i++)
            take(&once, i, att_param_grad(n.p[i]));
        att_tape_free(t);
        t = recording_tape(ctx);
        att_var *y = network_apply(t, &n, TWICE, in);
        f.fail_at = f.calls + at;
        s = att_tape_backward(t, y, NULL);
        for (int i = 0; s && i < PARAMS; i++)
            assert_memory_equal(att_param_grad(n.p[i])->data, once.x[i], once.bytes[i]);
        if (s) {
            assert_int_equal(s, ATT_ERR_MEMORY);
            f.fail_at = 0;
            assert_int_equal(att_tape_backward(t, y, NULL), ATT_OK);
        }
        for (int i = 0; i < PARAMS; i++)
            for (size_t k = 0; k < once.bytes[i] / sizeof(float); k++) /* g + g is exact */
                assert_true(((const float *)att_param_grad(n.p[i])->data)[k] == 2 * once.x[i][k]);
        results_free(&once);
        att_tape_free(t);
        network_close(&n);
        att_close(ctx);
        assert_int_equal(f.live, 0);
        assert_true(at < 1000);
    }
    assert_true(failed > 5 / check_step(5)); /* second buffers of gradients, the arena's blocks, attention's memory */
}

static void cancelling_changes_no_gradient(void **state)
{
    (void)state;
    volatile int cancel = 0;
    att_ctx *ctx;
    assert_int_equal(att_open(&ctx, ATT_OPTIONS(att_config, .cancel = &cancel)), ATT_OK);
    network n;
    assert_int_equal(network_open(ctx, &n), ATT_OK);
    att_tape *t = recording_tape(ctx);
    att_var *in[2], *y = network_apply(t, &n, RECOMPUTED, in);
    cancel = 1;
    assert_int_equal(att_tape_backward(t, y, NULL), ATT_ERR_CANCELLED);
    assert_null(att_param_grad(n.p[0])->data);
    cancel = 0;
    assert_int_equal(att_tape_backward(t, y, NULL), ATT_OK);
    assert_non_null(att_param_grad(n.p[0])->data);
    att_tape_free(t);
    network_close(&n);
    att_close(ctx);
}

/* ---- functions of all kinds */

static att_var *identity(const void *user, att_tape *t, att_var *const *x)
{
    (void)user, (void)t;
    return x[0];
}
static att_var *turned(const void *user, att_tape *t, att_var *const *x)
{
    (void)user;
    return att_split_heads(t, x[0], 3);
}
static att_var *nothing(const void *user, att_tape *t, att_var *const *x)
{
    (void)user, (void)t, (void)x;
    return NULL;
}
static att_var *sum_with(const void *user, att_tape *t, att_var *const *x)
{
    return att_add(t, x[0], *(att_var *const *)user);
}
static att_var *theirs(const void *user, att_tape *t, att_var *const *x)
{
    (void)t, (void)x;
    return *(att_var *const *)user;
}
static att_var *linear(const void *user, att_tape *t, att_var *const *x)
{
    return att_linear(t, x[0], *(att_param *const *)user, NULL, ATT_ACTIVATION_IDENTITY, NULL);
}
/* Another shape each time. */
static att_var *fickle(const void *user, att_tape *t, att_var *const *x)
{
    int *calls = *(int *const *)user;
    return (*calls)++ ? att_split_heads(t, x[0], 3) : att_activate(t, x[0], ATT_ACTIVATION_TANH);
}

static void what_a_function_gives_may_be_what_it_was_given(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    att_tape *t = recording_tape(ctx);
    float x[6] = {1, 2, 3, 4, 5, 6};
    att_tensor g;
    att_var *in = input(t, x, ATT_DIMS(2, 3)), *y = att_recompute(t, identity, NULL, 0, &in, 1);
    y = att_recompute(t, turned, NULL, 0, (att_var *[]){att_add(t, y, in)}, 1);
    assert_int_equal(att_tape_backward(t, att_add(t, y, y), NULL), ATT_OK);
    assert_int_equal(att_var_grad(t, in, &g), ATT_OK);
    for (int i = 0; i < 6; i++)
        assert_true(((const float *)g.data)[i] == 4);
    att_tape_free(t);
    att_close(ctx);
}

/* No variable leads to its parameters. */
static void parameters_learn_from_constants(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    att_tape *t = recording_tape(ctx);
    float x[2] = {1, 2}, w[2] = {3, 4};
    const att_tensor numbers = view(x, ATT_F32, ATT_DIMS(1, 2));
    att_param *p = param(ctx, w, ATT_F32, ATT_DIMS(1, 2));
    att_var *in = att_constant(t, &numbers), *y = att_recompute(t, linear, &p, sizeof p, &in, 1);
    assert_true(*read_floats(t, y) == 11);
    assert_int_equal(att_tape_backward(t, y, NULL), ATT_OK);
    assert_memory_equal(att_param_grad(p)->data, x, sizeof x);
    att_param_free(p);
    att_tape_free(t);
    att_close(ctx);
}

static void wrong_functions_are_named(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    float x[6] = {0};
    for (int record = 0; record < 2; record++) {
        att_tape *t = record ? recording_tape(ctx) : new_tape(ctx);
#define REFUSED(in, function, user, bytes, n, sentence)                                                                \
    (assert_error(t, att_recompute(t, function, user, bytes, &in, n), ATT_ERR_ARGUMENT, sentence), att_tape_reset(t))
        att_var *in = input(t, x, ATT_DIMS(2, 3));
        REFUSED(in, NULL, NULL, 0, 1, "recompute: apply is NULL");
        in = input(t, x, ATT_DIMS(2, 3));
        REFUSED(in, identity, NULL, 0, 0, "recompute: n is 0, less than 1");
        in = input(t, x, ATT_DIMS(2, 3));
        REFUSED(in, nothing, NULL, 0, 1, "recompute: the function gave NULL");
        in = input(t, x, ATT_DIMS(2, 3));
        REFUSED(in, sum_with, &in, sizeof in, 1, "add: recompute's function uses a variable that it was not given");
        in = input(t, x, ATT_DIMS(2, 3));
        REFUSED(in, theirs, &in, sizeof in, 1, "recompute: the function gave a variable that is not its own");
#undef REFUSED
        assert_null(att_recompute(t, identity, NULL, 0, (att_var *[]){NULL}, 1));
        att_tape_free(t);
    }
    att_tape *t = recording_tape(ctx);
    int calls = 0, *user = &calls;
    att_var *in = input(t, x, ATT_DIMS(2, 3)), *y = att_recompute(t, fickle, &user, sizeof user, &in, 1);
    assert_int_equal(att_tape_backward(t, y, NULL), ATT_ERR_SHAPE);
    assert_string_equal(att_error(ctx), "recompute: the function's second result is [2, 3, 1] but its first is [2, 3]");
    att_tape_free(t);
    att_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_are_those_without_it_and_memory_is_less),
        cmocka_unit_test(a_tape_that_does_not_record_applies_the_function_and_frees_its_own),
        cmocka_unit_test(a_failing_allocation_changes_no_gradient_and_leaks_nothing),
        cmocka_unit_test(cancelling_changes_no_gradient),
        cmocka_unit_test(what_a_function_gives_may_be_what_it_was_given),
        cmocka_unit_test(parameters_learn_from_constants),
        cmocka_unit_test(wrong_functions_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
