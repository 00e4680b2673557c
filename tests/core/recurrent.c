/* Recurrent layers: PyTorch's numbers, and the same bits of a sequence however it is given. Gradients against
 * differences are in gradients.c. */
#include "fixtures/fail_alloc.h"
#include "fixtures/golden_text.h"
#include "fixtures/tape.h"

#define GOLDEN "tests/golden/recurrent.txt"

typedef att_var *(*operation)(att_tape *t, att_var *x, const int64_t *offsets, int64_t n, const att_recurrent *options,
                              att_recurrent_state *last);

/* ---- two layers in both directions, made of the parts */

enum { IN = 2, UNITS = 3, LAYERS = 2, SEQUENCES = 4, TOKENS = 12, PARAMS = 4 * 2 * LAYERS, MOST = 200 };
static const int64_t lengths_3_5_1_3[] = {0, 3, 8, 9, TOKENS};

typedef struct net {
    operation op;
    bool lstm;
    float *x[PARAMS], *in, *start[2];
    int64_t count[PARAMS];
    att_param *p[PARAMS];
    att_var *in_var, *start_var[2]; /* start: [LAYERS * 2, SEQUENCES, UNITS] */
} net;

static void net_open(att_ctx *ctx, net *n, bool lstm)
{
    const int64_t gates = (lstm ? 4 : 3) * UNITS;
    *n = (net){.op = lstm ? att_lstm : att_gru, .lstm = lstm, .in = check_numbers(TOKENS * IN, 1)};
    for (int i = 0; i < 2; i++)
        n->start[i] = check_numbers(2 * LAYERS * SEQUENCES * UNITS, (uint64_t)i + 2);
    for (int i = 0; i < PARAMS; i++) {
        const int64_t features = i % 4 == 1 ? UNITS : i < 8 ? IN : 2 * UNITS;
        const int64_t dim[] = {gates, features};
        n->count[i] = i % 4 < 2 ? gates * features : gates;
        n->x[i] = check_numbers(n->count[i], (uint64_t)i + 10);
        n->p[i] = param(ctx, n->x[i], ATT_F32, i % 4 < 2 ? 2 : 1, dim);
    }
}

static void net_close(net *n)
{
    for (int i = 0; i < PARAMS; i++)
        att_param_free(n->p[i]), free(n->x[i]);
    free(n->in), free(n->start[0]), free(n->start[1]);
}

/* [SEQUENCES, UNITS] of one layer and direction */
static att_var *start_of(att_tape *t, const net *n, int kind, int64_t i)
{
    att_var *all = att_slice(t, n->start_var[kind], 0, i * SEQUENCES, SEQUENCES);
    return kind == 0 || n->lstm ? all : NULL;
}

/* Computes the outputs, and in last the states that are left, from start. */
static att_var *net_apply(att_tape *t, net *n, att_var *last[2])
{
    att_recurrent_state states[2 * LAYERS];
    att_var *x = n->in_var = input(t, n->in, ATT_DIMS(TOKENS, IN));
    for (int i = 0; i < 2; i++)
        n->start_var[i] = input(t, n->start[i], ATT_DIMS(2 * LAYERS * SEQUENCES, UNITS));
    for (int layer = 0; layer < LAYERS; layer++) {
        att_var *y[2];
        for (int way = 0; way < 2; way++) {
            const int i = 2 * layer + way;
            att_param **p = n->p + 4 * i;
            y[way] =
                n->op(t, x, lengths_3_5_1_3, SEQUENCES,
                      ATT_OPTIONS(att_recurrent, .weight_ih = p[0], .weight_hh = p[1], .bias_ih = p[2], .bias_hh = p[3],
                                  .reverse = way, .initial = {start_of(t, n, 0, i), start_of(t, n, 1, i)}),
                      &states[i]);
        }
        x = att_concat(t, 2, y, 1);
    }
    for (int kind = 0; kind < 1 + n->lstm; kind++) {
        att_var *all[2 * LAYERS];
        for (int i = 0; i < 2 * LAYERS; i++)
            all[i] = kind ? states[i].cell : states[i].hidden;
        last[kind] = att_concat(t, 2 * LAYERS, all, 0);
    }
    return x;
}

/* Its sum has these numbers, as x, as its gradient by x. */
static att_var *weighted(att_tape *t, att_var *x, float *numbers)
{
    att_tensor weights = x->value;
    weights.data = numbers;
    return att_mul(t, x, att_constant(t, &weights));
}

static void check_golden(const char *kind, const char *what, int i, const float *x, int64_t n, double tolerance)
{
    char name[32];
    double expected[MOST];
    snprintf(name, sizeof name, i < 0 ? "%s_%s" : "%s_%s_%d", kind, what, i);
    assert_int_equal(golden_line(GOLDEN, name, expected, MOST), n);
    for (int64_t j = 0; j < n; j++)
        check_near(expected[j], x[j], tolerance, "%s [%d]", name, (int)j);
}

/* 5 steps of sums of at most 6 + 3 numbers below 1, rounded one by one, and gates off by some 8 roundings, twice; their
 * gradients are sums of at most 12 such numbers, also below 12. */
static void check_torch(att_ctx *ctx, bool lstm)
{
    const double tolerance = 2 * 5 * (9 + 8) * FLT_EPSILON / 2, grad_tolerance = 12 * tolerance;
    const char *kind = lstm ? "lstm" : "gru";
    net n;
    net_open(ctx, &n, lstm);
    att_tape *t = recording_tape(ctx);
    att_var *last[2], *y = net_apply(t, &n, last);
    check_golden(kind, "y", -1, read_floats(t, y), TOKENS * 2 * UNITS, tolerance);
    float *dy = check_numbers(TOKENS * 2 * UNITS, 4), *dlast[2] = {NULL};
    y = weighted(t, y, dy);
    att_var *loss[] = {att_slice(t, y, 1, 0, UNITS), att_slice(t, y, 1, UNITS, UNITS), NULL, NULL};
    for (int i = 0; i < 1 + lstm; i++) {
        const int64_t count = att_count(&last[i]->value);
        check_golden(kind, "last", i, read_floats(t, last[i]), count, tolerance);
        dlast[i] = check_numbers(count, (uint64_t)i + 5);
        loss[2 + i] = weighted(t, last[i], dlast[i]);
    }
    assert_int_equal(att_tape_backward(t, att_concat(t, 3 + lstm, loss, 0), NULL), ATT_OK);
    att_tensor g;
    assert_int_equal(att_var_grad(t, n.in_var, &g), ATT_OK);
    check_golden(kind, "dx", -1, g.data, TOKENS * IN, grad_tolerance);
    for (int i = 0; i < 1 + lstm; i++) {
        assert_int_equal(att_var_grad(t, n.start_var[i], &g), ATT_OK);
        check_golden(kind, "dstart", i, g.data, att_count(&g), grad_tolerance);
    }
    for (int i = 0; i < PARAMS; i++)
        check_golden(kind, "dparam", i, att_param_grad(n.p[i])->data, n.count[i], grad_tolerance);
    free(dy), free(dlast[0]), free(dlast[1]);
    att_tape_free(t);
    net_close(&n);
}

static void two_layers_in_both_directions_are_those_of_pytorch(void **state)
{
    (void)state;
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);)
        for (int lstm = 0; lstm < 2; lstm++)
            check_torch(ctx, lstm);
}

/* ---- one layer: the same bits */

enum { N = 7, WIDE = 40, FEATURES = 24, ROWS = 151 };
static const int64_t offsets[] = {0, 31, 32, 32, 70, 101, 110, ROWS};

typedef struct layer {
    operation op;
    bool lstm;
    float *numbers[4], *x, *start[2]; /* x [ROWS, FEATURES], start [N, WIDE] */
    att_param *p[4];
} layer;

static void layer_open(att_ctx *ctx, layer *l, bool lstm)
{
    const int64_t gates = (lstm ? 4 : 3) * WIDE, dim[4][2] = {{gates, FEATURES}, {gates, WIDE}, {gates}, {gates}};
    *l = (layer){.op = lstm ? att_lstm : att_gru, .lstm = lstm, .x = check_numbers(ROWS * FEATURES, 1)};
    for (int i = 0; i < 4; i++) {
        l->numbers[i] = check_numbers(dim[i][0] * (i < 2 ? dim[i][1] : 1), (uint64_t)i + 10);
        l->p[i] = param(ctx, l->numbers[i], ATT_F32, i < 2 ? 2 : 1, dim[i]);
    }
    for (int i = 0; i < 2; i++)
        l->start[i] = check_numbers(N * WIDE, (uint64_t)i + 2);
}

static void layer_close(layer *l)
{
    for (int i = 0; i < 4; i++)
        att_param_free(l->p[i]), free(l->numbers[i]);
    free(l->x), free(l->start[0]), free(l->start[1]);
}

/* Computes the rows of x from `first` on as n sequences, at [n + 1]; start: hidden state and cell [n, WIDE]. */
static att_var *layer_apply(att_tape *t, const layer *l, int64_t first, const int64_t *at, int64_t n, bool reverse,
                            float *const start[2], att_recurrent_state *last)
{
    att_recurrent o = {.size = sizeof o,
                       .weight_ih = l->p[0],
                       .weight_hh = l->p[1],
                       .bias_ih = l->p[2],
                       .bias_hh = l->p[3],
                       .reverse = reverse};
    o.initial.hidden = input(t, start[0], ATT_DIMS(n, WIDE));
    o.initial.cell = l->lstm ? input(t, start[1], ATT_DIMS(n, WIDE)) : NULL;
    return l->op(t, input(t, l->x + first * FEATURES, ATT_DIMS(at[n], FEATURES)), at, n, &o, last);
}

static void same_rows(att_tape *t, att_var *x, const float *expected, int64_t rows)
{
    assert_memory_equal(read_floats(t, x), expected, (size_t)(rows * WIDE) * sizeof *expected);
}

typedef struct whole {
    att_tape *t;
    const float *y, *last[2];
} whole;

static whole all_at_once(att_ctx *ctx, const layer *l, bool reverse)
{
    att_recurrent_state last;
    whole w = {.t = new_tape(ctx)};
    w.y = read_floats(w.t, layer_apply(w.t, l, 0, offsets, N, reverse, l->start, &last));
    w.last[0] = read_floats(w.t, last.hidden);
    w.last[1] = l->lstm ? read_floats(w.t, last.cell) : NULL;
    return w;
}

/* check on a layer of each kind, in each direction, on each set */
static void on_each(void (*check)(att_ctx *ctx, const layer *l, bool reverse, const whole *w))
{
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);)
        for (int i = 0; i < 4; i++) {
            layer l;
            layer_open(ctx, &l, i & 1);
            whole w = all_at_once(ctx, &l, i & 2);
            check(ctx, &l, i & 2, &w);
            att_tape_free(w.t);
            layer_close(&l);
        }
}

static void check_alone(att_ctx *ctx, const layer *l, bool reverse, const whole *w)
{
    for (int64_t s = 0; s < N; s++) {
        att_tape *t = new_tape(ctx);
        att_recurrent_state last;
        const int64_t rows = offsets[s + 1] - offsets[s], one[] = {0, rows};
        float *start[] = {l->start[0] + s * WIDE, l->start[1] + s * WIDE};
        same_rows(t, layer_apply(t, l, offsets[s], one, 1, reverse, start, &last), w->y + offsets[s] * WIDE, rows);
        same_rows(t, last.hidden, w->last[0] + s * WIDE, 1);
        if (l->lstm)
            same_rows(t, last.cell, w->last[1] + s * WIDE, 1);
        att_tape_free(t);
    }
}

static void a_sequence_alone_has_the_same_bits(void **state)
{
    (void)state;
    on_each(check_alone);
}

/* Sequence by sequence, each token a call of its own, as a decoder does it. */
static void check_steps(att_ctx *ctx, const layer *l, bool reverse, const whole *w)
{
    static const int64_t one[] = {0, 1};
    for (int64_t s = 0; s < N; s++) {
        float hidden[WIDE], cell[WIDE], *const state[] = {hidden, cell};
        for (int i = 0; i < 2; i++)
            memcpy(state[i], l->start[i] + s * WIDE, sizeof hidden);
        for (int64_t i = 0; i < offsets[s + 1] - offsets[s]; i++) {
            att_tape *t = new_tape(ctx);
            att_recurrent_state last;
            const int64_t row = reverse ? offsets[s + 1] - 1 - i : offsets[s] + i;
            same_rows(t, layer_apply(t, l, row, one, 1, reverse, state, &last), w->y + row * WIDE, 1);
            memcpy(state[0], read_floats(t, last.hidden), sizeof hidden);
            if (l->lstm)
                memcpy(state[1], read_floats(t, last.cell), sizeof cell);
            att_tape_free(t);
        }
        assert_memory_equal(state[0], w->last[0] + s * WIDE, sizeof hidden); /* of the empty one: its start */
        if (l->lstm)
            assert_memory_equal(state[1], w->last[1] + s * WIDE, sizeof cell);
    }
}

static void one_token_at_a_time_has_the_same_bits(void **state)
{
    (void)state;
    on_each(check_steps);
}

/* Backwards is forwards through the rows of each sequence in reverse. */
static void check_turned(att_ctx *ctx, const layer *l, bool reverse, const whole *w)
{
    layer turned = *l;
    turned.x = check_numbers(ROWS * FEATURES, 1);
    for (int64_t s = 0; s < N; s++)
        for (int64_t i = offsets[s]; i < offsets[s + 1]; i++)
            memcpy(turned.x + (offsets[s] + offsets[s + 1] - 1 - i) * FEATURES, l->x + i * FEATURES,
                   FEATURES * sizeof(float));
    whole v = all_at_once(ctx, &turned, !reverse);
    for (int64_t s = 0; s < N; s++)
        for (int64_t i = offsets[s]; i < offsets[s + 1]; i++)
            assert_memory_equal(v.y + (offsets[s] + offsets[s + 1] - 1 - i) * WIDE, w->y + i * WIDE,
                                WIDE * sizeof(float));
    assert_memory_equal(v.last[0], w->last[0], N * WIDE * sizeof(float));
    att_tape_free(v.t);
    free(turned.x);
}

static void reverse_is_through_reversed_sequences(void **state)
{
    (void)state;
    on_each(check_turned);
}

/* Gradients of a whole recording: dx, then those of parameters, of the states before */
static float *gradients_of(att_ctx *ctx, const layer *l, int64_t *count)
{
    att_tape *t = recording_tape(ctx);
    att_recurrent_state last;
    att_tensor g;
    att_var *y = layer_apply(t, l, 0, offsets, N, true, l->start, &last);
    att_var *x = y->step->in[0], *h = y->step->in[1];
    float *dy = check_numbers((ROWS + N) * WIDE, 77);
    y = att_concat(t, 2, (att_var *[]){y, last.hidden}, 0);
    g = y->value;
    g.data = dy;
    assert_int_equal(att_tape_backward(t, y, &g), ATT_OK);
    att_tensor all[6];
    assert_int_equal(att_var_grad(t, x, &all[0]), ATT_OK);
    assert_int_equal(att_var_grad(t, h, &all[1]), ATT_OK);
    *count = 0;
    for (int i = 0; i < 4; i++)
        all[2 + i] = *att_param_grad(l->p[i]);
    for (int i = 0; i < 6; i++)
        *count += att_count(&all[i]);
    float *copy = check_numbers(*count, 1), *to = copy;
    for (int i = 0; i < 6; to += att_count(&all[i]), i++)
        memcpy(to, all[i].data, (size_t)att_count(&all[i]) * sizeof *to);
    free(dy);
    att_tape_free(t);
    return copy;
}

static void any_number_of_threads_gives_the_same_bits(void **state)
{
    (void)state;
    static const int threads[] = {1, 2, 3, 7};
    for (int lstm = 0; lstm < 2; lstm++) {
        float *expected = NULL;
        for (int i = 0; i < 4; i++) {
            att_ctx *ctx = check_open(NULL, threads[i]);
            layer l;
            int64_t count;
            layer_open(ctx, &l, lstm);
            float *got = gradients_of(ctx, &l, &count);
            if (expected)
                assert_memory_equal(got, expected, (size_t)count * sizeof *got);
            free(expected);
            expected = got;
            layer_close(&l);
            att_close(ctx);
        }
        free(expected);
    }
}

/* ---- memory */

static void what_does_not_record_keeps_outputs_only(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    layer l;
    layer_open(ctx, &l, true);
    whole w = all_at_once(ctx, &l, false);
    /* y, last.hidden, last.cell; and a page for what variables are */
    assert_true(att_arena_mark(&w.t->arena) < (ROWS + 2 * N) * WIDE * sizeof(float) + 4096);
    att_tape_free(w.t);
    layer_close(&l);
    att_close(ctx);
}

/* Forwards and back; what fails has changed no gradient. */
static void a_failing_allocation_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    att_status s = ATT_ERR_MEMORY;
    for (long at = 1; s; at++) {
        fail_alloc f = {0};
        att_ctx *ctx = fail_open(&f);
        layer l;
        layer_open(ctx, &l, true);
        att_tape *t = recording_tape(ctx);
        att_recurrent_state last;
        att_tensor y;
        f.fail_at = f.calls + at;
        att_var *v = layer_apply(t, &l, 0, offsets, N, false, l.start, &last);
        s = att_var_value(t, v, &y);
        if (s)
            assert_true(!last.hidden && !last.cell);
        s = s ? s : att_tape_backward(t, last.cell, NULL);
        assert_true(s == ATT_OK || s == ATT_ERR_MEMORY);
        assert_int_equal(att_param_grad(l.p[1])->data != NULL, s == ATT_OK);
        att_tape_free(t);
        layer_close(&l);
        att_close(ctx);
        assert_int_equal(f.live, 0);
        assert_true(at < 100);
    }
}

/* ---- borders and errors */

static void no_tokens_leave_states_as_they_were(void **state)
{
    (void)state;
    static const int64_t nothing[] = {0, 0, 0};
    att_ctx *ctx = check_open(NULL, 1);
    layer l;
    layer_open(ctx, &l, true);
    for (int64_t n = 0; n <= 2; n++) {
        att_tape *t = recording_tape(ctx);
        att_recurrent_state last;
        att_tensor y, g;
        att_var *y_var = layer_apply(t, &l, 0, nothing, n, false, l.start, &last);
        assert_int_equal(att_var_value(t, y_var, &y), ATT_OK);
        assert_true(y.dim[0] == 0 && y.dim[1] == WIDE);
        same_rows(t, last.cell, l.start[1], n);
        assert_int_equal(att_tape_backward(t, last.cell, NULL), ATT_OK);
        assert_int_equal(att_var_grad(t, y_var->step->in[2], &g), ATT_OK);
        for (int64_t i = 0; i < n * WIDE; i++)
            assert_true(((const float *)g.data)[i] == 1);
        att_tape_free(t);
    }
    layer_close(&l);
    att_close(ctx);
}

static void wrong_arguments_are_named(void **state)
{
    (void)state;
    static const int64_t three[] = {0, 2, 2, 4}, down[] = {0, 3, 2, 4};
    att_ctx *ctx = check_open(NULL, 1);
    float x[256] = {0};
    att_tape *t = new_tape(ctx);
    att_param *w_ih = param(ctx, x, ATT_F32, ATT_DIMS(6, 3)), *w_hh = param(ctx, x, ATT_F32, ATT_DIMS(6, 2));
    att_param *b = param(ctx, x, ATT_F32, ATT_DIMS(6)), *row = param(ctx, x, ATT_F32, ATT_DIMS(8));
#define REFUSED(op, rows, offsets, status, sentence, ...)                                                              \
    (att_tape_reset(t),                                                                                                \
     assert_error(t, op(t, input(t, x, ATT_DIMS(rows, 3)), offsets, 3, ATT_OPTIONS(att_recurrent, __VA_ARGS__), NULL), \
                  status, sentence))
#define BOTH .weight_ih = w_ih, .weight_hh = w_hh
    REFUSED(att_gru, 4, three, ATT_ERR_ARGUMENT, "gru: weight_hh is NULL", .weight_ih = w_ih);
    REFUSED(att_lstm, 4, three, ATT_ERR_ARGUMENT, "lstm: weight_ih is NULL", .weight_hh = w_hh);
    REFUSED(att_gru, 4, three, ATT_ERR_SHAPE, "gru: weight_hh is [8], not a matrix", .weight_ih = w_ih,
            .weight_hh = row);
    REFUSED(att_lstm, 4, three, ATT_ERR_SHAPE, "lstm: weight_hh is [6, 2], not [8, 2]", BOTH);
    REFUSED(att_gru, 4, three, ATT_ERR_SHAPE, "gru: weight_ih is [6, 2], not [6, 3]", .weight_ih = w_hh,
            .weight_hh = w_hh);
    REFUSED(att_gru, 4, three, ATT_ERR_SHAPE, "gru: bias_ih is [8], not [6]", BOTH, .bias_ih = row, .bias_hh = b);
    REFUSED(att_gru, 4, three, ATT_ERR_SHAPE, "gru: bias_hh is [8], not [6]", BOTH, .bias_ih = b, .bias_hh = row);
    REFUSED(att_gru, 4, three, ATT_ERR_SHAPE, "gru: initial.hidden is [2, 2], not [3, 2]", BOTH,
            .initial.hidden = input(t, x, ATT_DIMS(2, 2)));
    REFUSED(att_gru, 4, three, ATT_ERR_ARGUMENT, "gru: initial.cell is given, but there are no cells", BOTH,
            .initial.cell = input(t, x, ATT_DIMS(3, 2)));
    REFUSED(att_gru, 5, three, ATT_ERR_SHAPE, "gru: offsets go from 0 to 4 but x is [5, 3]", BOTH);
    REFUSED(att_gru, 4, down, ATT_ERR_ARGUMENT, "gru: offsets[1] = 3 is above offsets[2] = 2", BOTH);
#undef BOTH
#undef REFUSED
    att_tape_reset(t);
    assert_error(t,
                 att_gru(t, input(t, x, ATT_DIMS(4)), three, 3,
                         ATT_OPTIONS(att_recurrent, .weight_ih = w_ih, .weight_hh = w_hh), NULL),
                 ATT_ERR_SHAPE, "gru: x is [4], not [tokens, features]");
    att_param_free(w_ih), att_param_free(w_hh), att_param_free(b), att_param_free(row);
    att_tape_free(t);
    att_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_layers_in_both_directions_are_those_of_pytorch),
        cmocka_unit_test(a_sequence_alone_has_the_same_bits),
        cmocka_unit_test(one_token_at_a_time_has_the_same_bits),
        cmocka_unit_test(reverse_is_through_reversed_sequences),
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
        cmocka_unit_test(what_does_not_record_keeps_outputs_only),
        cmocka_unit_test(a_failing_allocation_is_an_error_and_leaks_nothing),
        cmocka_unit_test(no_tokens_leave_states_as_they_were),
        cmocka_unit_test(wrong_arguments_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
