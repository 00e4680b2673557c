/* Guarantees of a tape that records: nothing is written in part, gradients are summed over backward passes, and the
 * bits are the same for any number of threads and on any host. gradients.c tests the gradients themselves. */
#include "fixtures/fail_alloc.h"
#include "fixtures/fp_control.h"
#include "fixtures/tape.h"

/* ---- a small network of all operations: its table and weights are used twice, its variables too */

enum { ROWS = 331, FEATURES = 72, INNER = 150, WORDS = 50, HEADS = 4, PARAMS = 6 };
static const int64_t two[] = {0, 100, ROWS};
static const int64_t shape_of_param[PARAMS][2] = {{WORDS, FEATURES}, {INNER, FEATURES}, {FEATURES, INNER},
                                                  {INNER, 0},        {FEATURES, 0},     {HEADS, 0}};

typedef struct network {
    float *x[PARAMS];
    att_param *p[PARAMS];
    att_plan *plan;
} network;

static int64_t count_of(int i) { return shape_of_param[i][0] * (shape_of_param[i][1] ? shape_of_param[i][1] : 1); }

static void network_numbers(network *n)
{
    for (int i = 0; i < PARAMS; i++)
        n->x[i] = check_numbers(count_of(i), (uint64_t)i + 1);
}

static void network_forget(network *n)
{
    for (int i = 0; i < PARAMS; i++)
        free(n->x[i]);
}

static att_status network_open(att_ctx *ctx, network *n)
{
    memset(n->p, 0, sizeof n->p);
    n->plan = NULL;
    att_status s = att_plan_new(ctx,
                                ATT_OPTIONS(att_attention_spec, .heads = HEADS, .head_dim = FEATURES / HEADS,
                                            ATT_STAGES({.modifier = att_modifier_sink})),
                                &n->plan);
    for (int i = 0; !s && i < PARAMS; i++) {
        const att_tensor v = view(n->x[i], ATT_F32, shape_of_param[i][1] ? 2 : 1, shape_of_param[i]);
        s = att_param_new(ctx, &v, &n->p[i]);
    }
    return s;
}

static void network_close(network *n)
{
    for (int i = 0; i < PARAMS; i++)
        att_param_free(n->p[i]);
    att_plan_free(n->plan);
}

/* -> [2, FEATURES]. What it is given in arrays is gone when it returns. */
static att_var *network_apply(att_tape *t, const network *n)
{
    int32_t ids[ROWS];
    int64_t offsets[3];
    uint32_t sequence_ids[] = {3, 1};
    memcpy(offsets, two, sizeof offsets);
    for (int i = 0; i < ROWS; i++)
        ids[i] = i * 7 % WORDS;
    att_attention_args args = {.size = sizeof args, .n_sequences = 2, .q_offsets = offsets};
    att_scope s = att_scope_begin(t, "network");
    att_var *x = att_embedding(t, n->p[0], ids, ROWS);
    att_var *h = att_split_heads(t, x, HEADS);
    att_var *const sinks = att_parameter(t, n->p[5]);
    const att_attend_params params = {.size = sizeof params, .param = &sinks, .n_params = 1};
    x = att_add(t, x, att_merge_heads(t, att_attend(t, n->plan, h, h, h, &args, &params)));
    for (int i = 0; i < 2; i++) {
        att_scope inner = att_scope_begin(t, "feed_forward");
        h = att_linear(t, x, n->p[1], n->p[3], ATT_ACTIVATION_GELU_ERF, NULL);
        h = att_scope_end(t, inner, att_linear(t, h, n->p[2], n->p[4], ATT_ACTIVATION_IDENTITY, x));
        x = att_scope_reset(t, s, att_layer_norm(t, h, n->p[4], n->p[4], 1e-5f));
    }
    x = att_activate(t, att_rms_norm(t, x, n->p[4], 1e-5f), ATT_ACTIVATION_SILU);
    x = att_dropout(t, x, att_mul(t, x, x), 0.1f, 9, ATT_OPTIONS(att_positions, .offsets = offsets, .n = 2),
                    sequence_ids);
    x = att_scope_end(t, s, att_normalize(t, att_pool(t, x, offsets, 2, ATT_POOLING_MEAN, 0), 1e-12f));
    memset(ids, 0xff, sizeof ids);
    memset(offsets, 0xff, sizeof offsets);
    memset(sequence_ids, 0xff, sizeof sequence_ids);
    return x;
}

static const float slopes[2 * FEATURES] = {1, -2, 0.5f, [FEATURES] = -1, 3, 0.25f};

static att_status network_backward(att_tape *t, const network *n)
{
    att_var *y = network_apply(t, n);
    att_tensor v;
    const att_status s = att_var_value(t, y, &v);
    if (s)
        return s;
    v.data = (void *)(uintptr_t)slopes;
    return att_tape_backward(t, y, &v);
}

static void no_gradients(const network *n)
{
    for (int i = 0; i < PARAMS; i++)
        assert_null(att_param_grad(n->p[i])->data);
}

/* Copies of all parameters' gradients, to be freed. */
typedef struct gradients {
    float *x[PARAMS];
} gradients;

static gradients gradients_of(const network *n)
{
    gradients g;
    for (int i = 0; i < PARAMS; i++) {
        g.x[i] = check_numbers(count_of(i), 1);
        assert_non_null(att_param_grad(n->p[i])->data);
        memcpy(g.x[i], att_param_grad(n->p[i])->data, (size_t)count_of(i) * sizeof(float));
    }
    return g;
}

static void same_gradients(const network *n, const gradients *expected)
{
    for (int i = 0; i < PARAMS; i++)
        assert_memory_equal(att_param_grad(n->p[i])->data, expected->x[i], (size_t)count_of(i) * sizeof(float));
}

static void gradients_free(gradients *g)
{
    for (int i = 0; i < PARAMS; i++)
        free(g->x[i]);
}

static void any_number_of_threads_gives_the_same_bits(void **state)
{
    (void)state;
    static const int threads[] = {1, 2, 3, 7};
    network n;
    gradients expected = {{0}};
    network_numbers(&n);
    for (int i = 0; i < 4; i++) {
        att_ctx *ctx = check_open(NULL, threads[i]);
        assert_int_equal(network_open(ctx, &n), ATT_OK);
        att_tape *t = recording_tape(ctx);
        assert_int_equal(network_backward(t, &n), ATT_OK);
        if (i)
            same_gradients(&n, &expected);
        else
            expected = gradients_of(&n);
        att_tape_free(t);
        network_close(&n);
        att_close(ctx);
    }
    gradients_free(&expected);
    network_forget(&n);
}

static void a_host_that_flushes_denormals_and_rounds_up_gets_the_same_bits(void **state)
{
    (void)state;
    if (!fp_control_works())
        skip();
    network n;
    network_numbers(&n);
    att_ctx *ctx = check_open(NULL, 2);
    assert_int_equal(network_open(ctx, &n), ATT_OK);
    att_tape *t = recording_tape(ctx);
    assert_int_equal(network_backward(t, &n), ATT_OK);
    gradients expected = gradients_of(&n);
    for (int i = 0; i < PARAMS; i++)
        att_param_zero_grad(n.p[i]);
    att_tape_reset(t);
    const uint64_t host = fp_control();
    set_fp_control(FLUSH_UP);
    const att_status s = network_backward(t, &n);
    set_fp_control(host);
    assert_int_equal(s, ATT_OK);
    same_gradients(&n, &expected);
    gradients_free(&expected);
    att_tape_free(t);
    network_close(&n);
    att_close(ctx);
    network_forget(&n);
}

static void gradients_add_up_until_they_are_cleared(void **state)
{
    (void)state;
    network n;
    att_ctx *ctx = check_open(NULL, 2);
    network_numbers(&n);
    assert_int_equal(network_open(ctx, &n), ATT_OK);
    no_gradients(&n);
    att_tape *t = recording_tape(ctx);
    assert_int_equal(network_backward(t, &n), ATT_OK);
    gradients once = gradients_of(&n);
    att_tape_reset(t);
    assert_int_equal(network_backward(t, &n), ATT_OK);
    for (int i = 0; i < PARAMS; i++)
        for (int64_t j = 0; j < count_of(i); j++) /* g + g is exact */
            assert_true(((const float *)att_param_grad(n.p[i])->data)[j] == 2 * once.x[i][j]);
    for (int i = 0; i < PARAMS; i++)
        att_param_zero_grad(n.p[i]);
    no_gradients(&n);
    att_tape_reset(t);
    assert_int_equal(network_backward(t, &n), ATT_OK);
    same_gradients(&n, &once);
    gradients_free(&once);
    att_tape_free(t);
    network_close(&n);
    network_forget(&n);
    att_close(ctx);
}

/* Each allocation of a second backward fails once: gradients stay as the first has left them, and after it, with memory
 * again, the same call has the sum. */
static void a_failing_allocation_changes_no_gradient_and_leaks_nothing(void **state)
{
    (void)state;
    network n;
    network_numbers(&n);
    att_status s = ATT_ERR_MEMORY;
    long failed = 0;
    for (long at = 1; s; at += check_step(5), failed++) {
        fail_alloc f = {0};
        att_ctx *ctx = fail_open(&f);
        assert_int_equal(network_open(ctx, &n), ATT_OK);
        att_tape *t = recording_tape(ctx);
        assert_int_equal(network_backward(t, &n), ATT_OK);
        gradients once = gradients_of(&n);
        att_tape_free(t);
        t = recording_tape(ctx);
        att_var *y = network_apply(t, &n);
        f.fail_at = f.calls + at;
        s = att_tape_backward(t, y, NULL);
        if (s) {
            att_tensor g;
            assert_int_equal(s, ATT_ERR_MEMORY);
            same_gradients(&n, &once);
            assert_int_equal(att_var_grad(t, y, &g), ATT_ERR_ARGUMENT);
            check_message(ctx, "att_tape_backward has not run since the last reset");
            f.fail_at = 0;
            assert_int_equal(att_tape_backward(t, y, NULL), ATT_OK);
        }
        gradients_free(&once);
        att_tape_free(t);
        network_close(&n);
        att_close(ctx);
        assert_int_equal(f.live, 0);
    }
    assert_true(failed > 5 / check_step(5)); /* gradients' second buffers, the arena's blocks, attention's memory */
    network_forget(&n);
}

static void a_failing_allocation_while_recording_is_an_error(void **state)
{
    (void)state;
    network n;
    network_numbers(&n);
    att_status s = ATT_ERR_MEMORY;
    for (long at = 1; s; at += check_step(5)) {
        fail_alloc f = {0};
        att_ctx *ctx = fail_open(&f);
        assert_int_equal(network_open(ctx, &n), ATT_OK);
        att_tape *t = recording_tape(ctx);
        f.fail_at = f.calls + at;
        s = network_backward(t, &n);
        if (s) {
            assert_int_equal(s, ATT_ERR_MEMORY);
            no_gradients(&n);
        }
        att_tape_free(t);
        network_close(&n);
        att_close(ctx);
        assert_int_equal(f.live, 0);
    }
    network_forget(&n);
}

static void cancelling_changes_no_gradient(void **state)
{
    (void)state;
    volatile int cancel = 0;
    network n;
    att_ctx *ctx;
    network_numbers(&n);
    assert_int_equal(att_open(&ctx, ATT_OPTIONS(att_config, .cancel = &cancel)), ATT_OK);
    assert_int_equal(network_open(ctx, &n), ATT_OK);
    att_tape *t = recording_tape(ctx);
    att_var *y = network_apply(t, &n);
    cancel = 1;
    assert_int_equal(att_tape_backward(t, y, NULL), ATT_ERR_CANCELLED);
    no_gradients(&n);
    cancel = 0;
    assert_int_equal(att_tape_backward(t, y, NULL), ATT_OK);
    assert_non_null(att_param_grad(n.p[0])->data);
    att_tape_free(t);
    network_close(&n);
    network_forget(&n);
    att_close(ctx);
}

/* ---- a line of numbers */

typedef struct fixture {
    att_ctx *ctx;
    att_tape *t;
    float x[6];
    att_var *in, *y; /* [2, 3] */
} fixture;

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    f->ctx = check_open(NULL, 1);
    f->t = recording_tape(f->ctx);
    for (int i = 0; i < 6; i++)
        f->x[i] = (float)(i + 1);
    f->in = input(f->t, f->x, ATT_DIMS(2, 3));
    f->y = att_add(f->t, f->in, f->in);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    att_tape_free(f->t);
    att_close(f->ctx);
    free(f);
    return 0;
}

static void wrong_calls_are_named(void **state)
{
    fixture *f = *state;
    att_tensor g, dv = view(f->x, ATT_F32, ATT_DIMS(3, 2));
    att_tape *plain = new_tape(f->ctx), *other = recording_tape(f->ctx);
    att_var *theirs = input(other, f->x, ATT_DIMS(2, 3));
#define REFUSED(call, status, sentence)                                                                                \
    (assert_int_equal(call, status), assert_string_equal(att_error(f->ctx), sentence))
    REFUSED(att_tape_backward(plain, input(plain, f->x, ATT_DIMS(6)), NULL), ATT_ERR_ARGUMENT,
            "backward: the tape does not record: att_tape_config.record is false");
    REFUSED(att_tape_backward(f->t, NULL, NULL), ATT_ERR_ARGUMENT, "backward: v is NULL, but no operation has failed");
    REFUSED(att_tape_backward(f->t, theirs, NULL), ATT_ERR_ARGUMENT,
            "backward: the variable does not belong to this tape, or was made before its last reset");
    REFUSED(att_tape_backward(f->t, f->y, &dv), ATT_ERR_SHAPE, "backward: dv is [3, 2] but the variable is [2, 3]");
    dv = view(f->x, ATT_BF16, ATT_DIMS(2, 3));
    assert_int_equal(att_tape_backward(f->t, f->y, &dv), ATT_ERR_DTYPE);
    check_message(f->ctx, "backward: dv");
    REFUSED(att_var_grad(f->t, f->in, &g), ATT_ERR_ARGUMENT,
            "grad: att_tape_backward has not run since the last reset");
    att_var *aside = att_retain_grad(f->t, att_add(f->t, f->y, f->y)); /* y does not depend on it */
    assert_int_equal(att_tape_backward(f->t, f->y, NULL), ATT_OK);
    REFUSED(att_var_grad(f->t, aside, &g), ATT_ERR_ARGUMENT,
            "grad: the variable that att_tape_backward was given does not depend on this one");
    REFUSED(att_var_grad(f->t, f->y, &g), ATT_ERR_ARGUMENT,
            "grad: that of the variable was not kept: call att_retain_grad before the backward");
    REFUSED(att_tape_backward(f->t, f->y, NULL), ATT_ERR_ARGUMENT,
            "backward: it has already run on this tape: call att_tape_reset first");
    assert_int_equal(att_var_grad(f->t, f->in, &g), ATT_OK);
    assert_true(((const float *)g.data)[5] == 2);
    att_add(f->t, f->y, input(f->t, f->x, ATT_DIMS(6)));
    REFUSED(att_tape_backward(f->t, f->y, NULL), ATT_ERR_SHAPE, "add: a is [2, 3] but b is [6]");
    att_tape_reset(f->t);
    REFUSED(att_tape_backward(f->t, f->y, NULL), ATT_ERR_ARGUMENT,
            "backward: the variable does not belong to this tape, or was made before its last reset");
#undef REFUSED
    att_tape_free(other);
    att_tape_free(plain);
}

static void scopes_free_nothing_that_a_backward_needs(void **state)
{
    fixture *f = *state;
    att_tensor g;
    att_scope s = att_scope_begin(f->t, "scope");
    att_var *inner = att_retain_grad(f->t, att_activate(f->t, f->y, ATT_ACTIVATION_TANH));
    att_var *z = att_scope_end(f->t, s, att_activate(f->t, inner, ATT_ACTIVATION_TANH));
    att_add(f->t, f->in, f->in); /* would take the memory of the scope's variables */
    assert_int_equal(att_tape_backward(f->t, z, NULL), ATT_OK);
    assert_int_equal(att_var_grad(f->t, f->in, &g), ATT_OK);
    for (int i = 0; i < 6; i++) {
        const double first = tanh(2 * (double)f->x[i]), second = tanh(first);
        check_near(2 * (1 - first * first) * (1 - second * second), ((const float *)g.data)[i], 8 * FLT_EPSILON, "[%d]",
                   i);
    }
    assert_int_equal(att_var_grad(f->t, inner, &g), ATT_OK); /* the gradient of an inner variable is kept, too */
}

/* x + split and merged x, whose parts share memory, and operations on a constant. */
static void constants_have_no_gradient_and_views_share_theirs(void **state)
{
    fixture *f = *state;
    att_tensor x = view(f->x, ATT_F32, ATT_DIMS(2, 3)), g;
    att_param *w = param(f->ctx, f->x, ATT_F32, ATT_DIMS(3));
    att_var *constant = att_constant(f->t, &x), *aside = att_add(f->t, constant, constant);
    att_var *heads = att_retain_grad(f->t, att_split_heads(f->t, f->in, 3));
    att_var *z = att_add(f->t, att_add(f->t, f->in, att_merge_heads(f->t, heads)), aside);
    assert_null(aside->step); /* nothing is kept for it */
    assert_int_equal(att_tape_backward(f->t, z, NULL), ATT_OK);
    assert_int_equal(att_var_grad(f->t, constant, &g), ATT_ERR_ARGUMENT);
    assert_int_equal(att_var_grad(f->t, heads, &g), ATT_OK);
    assert_true(g.rank == 3 && g.dim[1] == 3);
    for (int i = 0; i < 6; i++)
        assert_true(((const float *)g.data)[i] == 2);
    att_tape_reset(f->t);
    float expected[3]; /* of a parameter the same, whether its input learns or not */
    assert_int_equal(att_tape_backward(f->t, att_rms_norm(f->t, att_input(f->t, &x), w, 0.1f), NULL), ATT_OK);
    memcpy(expected, att_param_grad(w)->data, sizeof expected);
    att_param_zero_grad(w);
    att_tape_reset(f->t);
    assert_int_equal(att_tape_backward(f->t, att_rms_norm(f->t, att_constant(f->t, &x), w, 0.1f), NULL), ATT_OK);
    assert_memory_equal(att_param_grad(w)->data, expected, sizeof expected);
    att_param_free(w);
    att_tape_reset(f->t);
    assert_int_equal(att_tape_backward(f->t, att_constant(f->t, &x), NULL), ATT_OK); /* nothing to do */
}

/* Computes x / 2 / 2, then tanh, DEEP times, and x's gradient g; in scopes or not. Returns the numbers in memory. */
static size_t halve_and_bend(att_ctx *ctx, float *x, int64_t wide, bool scopes, float *g)
{
    enum { DEEP = 20 };
    att_tape *t = recording_tape(ctx);
    att_tensor grad;
    att_var *in = input(t, x, ATT_DIMS(1, wide)), *y = in;
    for (int i = 0; i < DEEP; i++) {
        att_scope s = att_scope_begin(t, "layer");
        y = att_activate(t, att_scale(t, att_scale(t, y, 0.5f), 0.5f), ATT_ACTIVATION_TANH);
        y = scopes ? att_scope_end(t, s, y) : y;
    }
    const size_t used = t->arena.used / sizeof(float) / (size_t)wide;
    assert_int_equal(att_tape_backward(t, y, NULL), ATT_OK);
    assert_int_equal(att_var_grad(t, in, &grad), ATT_OK);
    memcpy(g, grad.data, (size_t)wide * sizeof *g);
    att_tape_free(t);
    return used;
}

/* The backward of scale reads no numbers, that of tanh both: of three in a layer one is used again. */
static void numbers_that_no_backward_needs_are_used_again(void **state)
{
    (void)state;
    enum { WIDE = 10000 };
    att_ctx *ctx = check_open(NULL, 1);
    float *x = check_numbers(WIDE, 1), *expected = check_numbers(WIDE, 2), *got = check_numbers(WIDE, 3);
    assert_int_equal(halve_and_bend(ctx, x, WIDE, false, expected), 60);
    assert_int_equal(halve_and_bend(ctx, x, WIDE, true, got), 41);
    assert_memory_equal(got, expected, WIDE * sizeof *got);
    free(x), free(expected), free(got);
    att_close(ctx);
}

/* Gradients of what lies between are in few places, which are used again. */
static void memory_of_gradients_is_used_again(void **state)
{
    (void)state;
    enum { DEEP = 50, WIDE = 10000 };
    fail_alloc f = {0};
    att_ctx *ctx = fail_open(&f);
    att_tape *t = recording_tape(ctx);
    float *x = check_numbers(WIDE, 1);
    att_var *y = input(t, x, ATT_DIMS(1, WIDE));
    for (int i = 0; i < DEEP; i++)
        y = att_activate(t, y, ATT_ACTIVATION_TANH);
    const size_t before = t->arena.used;
    assert_int_equal(att_tape_backward(t, y, NULL), ATT_OK);
    assert_in_range((t->arena.used - before) / sizeof(float), 2 * WIDE, 3 * WIDE - 1); /* two in turn; one stays x's */
    att_tape_free(t);
    att_close(ctx);
    free(x);
}

/* A gradient that overwrites the logits, and no second backward after that. */
static void logits_give_way_to_their_gradient(void **state)
{
    (void)state;
    enum { ROWS = 5, CLASSES = 300, TRIES = 50 };
    static const int32_t targets[ROWS] = {1, 299, -1, 0, 7};
    float *x = check_numbers(ROWS * CLASSES, 1);
    bool gone = false;
    att_status s = ATT_ERR_MEMORY;
    for (long n = 1; s && n < TRIES; n++) {
        fail_alloc f = {0};
        att_ctx *ctx = fail_open(&f);
        att_tape *t = recording_tape(ctx);
        att_param *w = param(ctx, x, ATT_F32, ATT_DIMS(CLASSES, 5));
        att_var *logits = att_linear(t, input(t, x, ATT_DIMS(ROWS, 5)), w, NULL, ATT_ACTIVATION_IDENTITY, NULL);
        const float *numbers = read_floats(t, logits), first = numbers[0];
        att_var *loss = att_cross_entropy(t, logits, targets, NULL);
        f.fail_at = f.calls + n;
        s = att_tape_backward(t, loss, NULL);
        gone |= numbers[0] != first;
        if (s && numbers[0] != first) {
            assert_int_equal(att_tape_backward(t, loss, NULL), ATT_ERR_ARGUMENT);
            check_message(ctx, "has written over the logits");
            assert_null(att_param_grad(w)->data);
        }
        att_param_free(w);
        att_tape_free(t);
        att_close(ctx);
    }
    assert_true(!s && gone);
    free(x);
}

/* ReLU is known backwards by what it gave: as logits that does not give way. */
static void numbers_that_a_backward_needs_do_not_give_way(void **state)
{
    fixture *f = *state;
    static const int32_t targets[] = {0, 2};
    const att_tensor x = view(f->x, ATT_F32, ATT_DIMS(2, 3));
    float *numbers = check_numbers(9, 3), expected[9];
    att_param *w = param(f->ctx, numbers, ATT_F32, ATT_DIMS(3, 3));
    for (int between = 1; between >= 0; between--) {
        att_tape_reset(f->t);
        att_param_zero_grad(w);
        att_var *y = att_linear(f->t, att_constant(f->t, &x), w, NULL, ATT_ACTIVATION_RELU, NULL);
        y = between ? att_scale(f->t, y, 1) : y;
        assert_int_equal(att_tape_backward(f->t, att_cross_entropy(f->t, y, targets, NULL), NULL), ATT_OK);
        if (between)
            memcpy(expected, att_param_grad(w)->data, sizeof expected);
    }
    assert_memory_equal(att_param_grad(w)->data, expected, sizeof expected);
    att_param_free(w);
    free(numbers);
}

static void a_backward_from_a_variable_in_the_middle_leaves_out_what_came_later(void **state)
{
    fixture *f = *state;
    att_tensor g, dv = view(f->x, ATT_F32, ATT_DIMS(2, 3));
    att_add(f->t, f->y, f->in);
    assert_int_equal(att_tape_backward(f->t, f->y, &dv), ATT_OK);
    assert_int_equal(att_var_grad(f->t, f->in, &g), ATT_OK);
    for (int i = 0; i < 6; i++)
        assert_true(((const float *)g.data)[i] == 2 * f->x[i]);
}

static void gradients_of_short_parameters_are_f32(void **state)
{
    fixture *f = *state;
    uint16_t ones[6]; /* bf16, [3, 2] turned */
    for (int i = 0; i < 6; i++)
        ones[i] = 0x3f80;
    att_tensor turned;
    att_param *w;
    assert_int_equal(att_wrap(&turned, ones, ATT_BF16, 2, (const int64_t[]){2, 3}, (const int64_t[]){1, 2}), ATT_OK);
    assert_int_equal(att_param_new(f->ctx, &turned, &w), ATT_OK);
    att_var *z = att_linear(f->t, f->in, w, NULL, ATT_ACTIVATION_IDENTITY, NULL);
    assert_int_equal(att_tape_backward(f->t, z, NULL), ATT_OK);
    const att_tensor *g = att_param_grad(w);
    assert_int_equal(g->dtype, ATT_F32);
    assert_true(g->rank == 2 && g->dim[0] == 2 && g->dim[1] == 3 && g->stride[0] == 3 && g->stride[1] == 1);
    for (int i = 0; i < 6; i++) /* the sum of the two rows of x */
        assert_true(((const float *)g->data)[i] == f->x[i % 3] + f->x[3 + i % 3]);
    att_param_free(w);
}

static void nothing_of_no_rows_gives_gradients_of_zero(void **state)
{
    fixture *f = *state;
    att_tensor g;
    att_param *w = param(f->ctx, f->x, ATT_F32, ATT_DIMS(2, 3)), *b = param(f->ctx, f->x, ATT_F32, ATT_DIMS(2));
    att_var *x = input(f->t, f->x, ATT_DIMS(0, 3));
    att_var *y = att_layer_norm(f->t, att_linear(f->t, x, w, b, ATT_ACTIVATION_RELU, NULL), b, b, 1e-5f);
    assert_int_equal(att_tape_backward(f->t, y, NULL), ATT_OK);
    assert_int_equal(att_var_grad(f->t, x, &g), ATT_OK);
    assert_int_equal(g.dim[0], 0);
    for (int i = 0; i < 6; i++)
        assert_true(((const float *)att_param_grad(w)->data)[i] == 0);
    assert_true(((const float *)att_param_grad(b)->data)[1] == 0);
    att_param_free(w);
    att_param_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
        cmocka_unit_test(a_host_that_flushes_denormals_and_rounds_up_gets_the_same_bits),
        cmocka_unit_test(gradients_add_up_until_they_are_cleared),
        cmocka_unit_test(a_failing_allocation_changes_no_gradient_and_leaks_nothing),
        cmocka_unit_test(a_failing_allocation_while_recording_is_an_error),
        cmocka_unit_test(cancelling_changes_no_gradient),
        cmocka_unit_test_setup_teardown(wrong_calls_are_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(scopes_free_nothing_that_a_backward_needs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(constants_have_no_gradient_and_views_share_theirs, set_up, tear_down),
        cmocka_unit_test(numbers_that_no_backward_needs_are_used_again),
        cmocka_unit_test(memory_of_gradients_is_used_again),
        cmocka_unit_test(logits_give_way_to_their_gradient),
        cmocka_unit_test_setup_teardown(numbers_that_a_backward_needs_do_not_give_way, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_backward_from_a_variable_in_the_middle_leaves_out_what_came_later, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(gradients_of_short_parameters_are_f32, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_of_no_rows_gives_gradients_of_zero, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
