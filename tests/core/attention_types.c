/* Attention on f16 and bf16: the same as on the floats that they encode, bit for bit, and then rounded. */
#include "fixtures/attention.h"
#include "attn/reference.h"

#include <math.h>

/* Everything of a call that is stored in the short type. */
enum { Q, K, V, OUT, DOUT, DQ, DK, DV, TENSORS };

typedef struct calls {
    operands o; /* the floats, which a short type encodes exactly */
    float *wide[TENSORS];
    uint16_t *narrow[TENSORS];
    int64_t count[TENSORS];
    att_attention_args a;     /* in the short type */
    att_attention_grads g, h; /* of floats, of the short type */
} calls;

static void code(const att_kernels *k, att_dtype type, int64_t n, const float *x, uint16_t *y)
{
    (type == ATT_F16 ? k->vector.to_f16 : k->vector.to_bf16)(n, x, y);
}

static void number(const att_kernels *k, att_dtype type, int64_t n, const uint16_t *x, float *y)
{
    (type == ATT_F16 ? k->vector.from_f16 : k->vector.from_bf16)(n, x, y);
}

static calls make_calls(const att_kernels *k, att_dtype type, shape n)
{
    calls c = {.o = make(n)};
    const int64_t q = n.batch * n.heads * n.tq, kv = n.batch * n.kv_heads * n.tk;
    const int64_t count[TENSORS] = {q * n.head_dim,  kv * n.head_dim, kv * n.value_dim, q * n.value_dim,
                                    q * n.value_dim, q * n.head_dim,  kv * n.head_dim,  kv * n.value_dim};
    c.g.size = c.h.size = sizeof c.g;
    const att_tensor like[TENSORS] = {c.o.args.q,   c.o.args.k, c.o.args.v, c.o.args.out,
                                      c.o.args.out, c.o.args.q, c.o.args.k, c.o.args.v};
    c.a = c.o.args;
    att_tensor *const wide[TENSORS] = {&c.o.args.q, &c.o.args.k, &c.o.args.v, &c.o.args.out,
                                       &c.g.dout,   &c.g.dq,     &c.g.dk,     &c.g.dv};
    att_tensor *const narrow[TENSORS] = {&c.a.q, &c.a.k, &c.a.v, &c.a.out, &c.h.dout, &c.h.dq, &c.h.dk, &c.h.dv};
    for (int i = 0; i < TENSORS; i++) {
        c.count[i] = count[i];
        c.wide[i] = check_numbers(count[i], (uint64_t)(20 + i));
        c.narrow[i] = malloc((size_t)count[i] * sizeof *c.narrow[i] + 1);
        code(k, type, count[i], c.wide[i], c.narrow[i]);
        number(k, type, count[i], c.narrow[i], c.wide[i]);
        *wide[i] = *narrow[i] = like[i];
        wide[i]->data = c.wide[i];
        narrow[i]->data = c.narrow[i];
        narrow[i]->dtype = type;
    }
    return c;
}

static void calls_free(calls *c)
{
    for (int i = 0; i < TENSORS; i++)
        free(c->wide[i]), free(c->narrow[i]);
    operands_free(&c->o);
}

/* Where bf16 is multiplied in pairs, weights are rounded to bf16: each by at most 2^-8 of itself, so the output by that
 * much of the largest value, 1, which dropout makes 2 at most; both outputs are then rounded as well. Scores differ by
 * rounding in f32 alone: products are exact, sums of up to 80 of them are of size 80 at most. */
static void near(att_ctx *ctx, const calls *c, const uint16_t *rounded, const float *lse, const float *short_lse)
{
    const att_kernels *k = att_kernels_of(ctx->isa);
    for (int64_t i = 0; i < c->count[OUT]; i++) {
        float want, got;
        k->vector.from_bf16(1, rounded + i, &want);
        k->vector.from_bf16(1, c->narrow[OUT] + i, &got);
        if (!(fabsf(got - want) <= 0x1p-8f * (2 * fmaxf(fabsf(want), fabsf(got)) + 2)))
            fail_msg("out[%d] is %g, expected %g", (int)i, (double)got, (double)want);
    }
    for (int64_t i = 0; i < c->o.n.batch * c->o.n.heads * c->o.n.tq; i++)
        assert_true(lse[i] == short_lse[i] || fabsf(lse[i] - short_lse[i]) <= 2 * 80 * 80 * 0x1p-24f);
}

/* Where S and dP are made of pairs of bf16 these are exact, and summed in another order: each of the two is near the
 * exact gradient. Both are then rounded, here one of them. */
static void near_gradients(const att_kernels *k, const calls *c, int i, double tolerance)
{
    for (int64_t j = 0; j < c->count[i]; j++) {
        float got;
        k->vector.from_bf16(1, c->narrow[i] + j, &got);
        check_near((double)c->wide[i][j], got, tolerance + 0x1p-8 * fabs((double)c->wide[i][j]), "gradient %d[%d]", i,
                   (int)j);
    }
}

/* The gradients start from the rounded output, so the floats' backward is given that. */
static void check_type(att_ctx *ctx, att_dtype type, shape n, unsigned stages, bool accumulate)
{
    const att_kernels *k = att_kernels_of(ctx->isa);
    calls c = make_calls(k, type, n);
    int64_t lengths[4];
    att_attention_spec s = spec_of(n);
    operands narrow = c.o;
    narrow.args = c.a;
    choose(stages, &c.o, &s, lengths);
    s = spec_of(n);
    choose(stages, &narrow, &s, lengths);
    c.a = narrow.args;
    c.g.accumulate = c.h.accumulate = accumulate;

    att_plan *plan, *short_plan;
    att_plan_info info = {.size = sizeof info};
    if (att_plan_new(ctx, &s, &plan) || att_forward(plan, &c.o.args))
        fail_msg("%s", att_error(ctx));
    s.dtype = type;
    if (att_plan_new(ctx, &s, &short_plan) || att_plan_describe(short_plan, NULL, &info))
        fail_msg("%s", att_error(ctx));
    uint16_t *rounded = malloc((size_t)c.count[OUT] * sizeof *rounded + 1);
    code(k, type, c.count[OUT], c.wide[OUT], rounded);
    number(k, type, c.count[OUT], rounded, c.wide[OUT]);
    float *lse = c.o.lse, *short_lse = check_numbers(n.batch * n.heads * n.tq, 1);
    c.a.lse.data = short_lse;
    run_both(ctx, &s, &c.a, &c.h);
    if (strstr(info.forward.why, "pairs")) {
        near(ctx, &c, rounded, lse, short_lse);
    } else {
        assert_memory_equal(rounded, c.narrow[OUT], (size_t)c.count[OUT] * sizeof *rounded);
        assert_same_bits(lse, short_lse, n.batch * n.heads * n.tq);
    }
    memcpy(lse, short_lse, (size_t)(n.batch * n.heads * n.tq) * sizeof *lse);
    number(k, type, c.count[OUT], c.narrow[OUT], c.wide[OUT]);
    if (att_backward(plan, &c.o.args, &c.g))
        fail_msg("%s", att_error(ctx));
    att_plan_free(plan);
    att_plan_free(short_plan);
    free(short_lse);
    const double queries = (double)(n.tq * n.heads / n.kv_heads);
    for (int i = DQ; i < TENSORS; i++) {
        if (strstr(info.backward.why, "pairs")) {
            near_gradients(k, &c, i, 2 * gradient_tolerance(n, (double)s.dropout, i == DQ ? 1 : sqrt(queries)));
            continue;
        }
        uint16_t *want = malloc((size_t)c.count[i] * sizeof *want + 1);
        code(k, type, c.count[i], c.wide[i], want);
        for (int64_t j = 0; j < c.count[i]; j++)
            if (want[j] != c.narrow[i][j])
                fail_msg("%s %s, stages %u: gradient %d[%d] is %#x, expected %#x", att_isa_name(ctx->isa),
                         att_dtype_name(type), stages, i, (int)j, c.narrow[i][j], want[j]);
        free(want);
    }
    free(rounded);
    calls_free(&c);
}

static const shape shapes[] = {
    {1, 1, 1, 1, 1, 1, 1},        {2, 4, 2, 33, 31, 17, 8},     {1, 2, 2, 130, 265, 45, 51},
    {2, 1, 1, 300, 1100, 33, 80}, {3, 16, 16, 200, 40, 64, 64}, {1, 2, 1, 70, 304, 64, 32},
};

static void short_types_equal_the_floats_that_they_encode(void **state)
{
    (void)state;
    int done = 0;
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);) {
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0] / (size_t)check_step(2); i++)
            for (unsigned stages = 0; stages <= ALL_STAGES; stages += 5, done += 2) {
                check_type(ctx, ATT_F16, shapes[i], stages, stages & 1);
                check_type(ctx, ATT_BF16, shapes[i], stages, !(stages & 1));
            }
    }
    print_message("%d combinations\n", done);
}

static void weights_on_demand_read_short_types(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    const shape n = {1, 2, 1, 9, 300, 20, 8};
    calls c = make_calls(att_kernels_of(ctx->isa), ATT_BF16, n);
    att_attention_spec s = spec_of(n);
    float *want = check_numbers(9 * 300, 1), *got = check_numbers(9 * 300, 2);
    att_plan *plan = plan_of(ctx, &s);
    assert_int_equal(att_weights(plan, &c.o.args, 0, 1, 0, 9, want), ATT_OK);
    att_plan_free(plan);
    s.dtype = ATT_BF16;
    plan = plan_of(ctx, &s);
    assert_int_equal(att_weights(plan, &c.a, 0, 1, 0, 9, got), ATT_OK);
    assert_same_bits(want, got, 9 * 300);
    assert_int_equal(att_forward(plan, &c.o.args), ATT_ERR_DTYPE);
    check_message(ctx, "q is f32");
    c.h.dk.dtype = ATT_F16;
    assert_int_equal(att_forward(plan, &c.a), ATT_OK);
    assert_int_equal(att_backward(plan, &c.a, &c.h), ATT_ERR_DTYPE);
    check_message(ctx, "dk is f16");
    att_plan_free(plan);
    free(want), free(got);
    calls_free(&c);
    att_close(ctx);
}

/* The rows of t at another address: some numbers after the start of y, with this stride. */
static void displace(att_tensor *t, uint16_t *y, int64_t behind, int64_t apart)
{
    const int64_t rows = t->dim[0] * t->dim[1] * t->dim[2], dim = t->dim[3];
    for (int64_t i = 0; i < rows; i++)
        memcpy(y + behind + i * apart, (const uint16_t *)t->data + i * dim, (size_t)dim * sizeof *y);
    t->data = y + behind;
    t->stride[2] = apart;
    t->stride[1] = t->dim[2] * apart;
    t->stride[0] = t->dim[1] * t->stride[1];
}

/* Some are read where they lie, some cannot be. */
static void rows_of_short_numbers_may_lie_anywhere(void **state)
{
    (void)state;
    const shape n = {1, 2, 2, 96, 304, 64, 32};
    const int64_t places[][2] = {{0, 64}, {1, 64}, {0, 65}, {2, 66}, {3, 69}, {32, 96}};
    uint16_t *room = malloc((size_t)(2 * n.tk * 96 + 64) * sizeof *room);
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);) {
        calls c = make_calls(att_kernels_of(ctx->isa), ATT_BF16, n);
        att_attention_spec s = spec_of(n);
        s.dtype = ATT_BF16;
        const size_t bytes = (size_t)c.count[OUT] * sizeof *room;
        uint16_t *want = malloc(bytes);
        att_plan *plan = plan_of(ctx, &s);
        assert_int_equal(att_forward(plan, &c.a), ATT_OK);
        memcpy(want, c.narrow[OUT], bytes);
        att_tensor *const tensors[] = {&c.a.q, &c.a.k};
        for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
            for (int t = 0; t < 2; t++) {
                const att_tensor before = *tensors[t];
                displace(tensors[t], room, places[i][0], places[i][1]);
                memset(c.narrow[OUT], 0, bytes);
                assert_int_equal(att_forward(plan, &c.a), ATT_OK);
                assert_memory_equal(want, c.narrow[OUT], bytes);
                *tensors[t] = before;
            }
        att_plan_free(plan);
        free(want);
        calls_free(&c);
    }
    free(room);
}

/* ---- batches of sequences of few queries and of many */

enum { SEQUENCES = 5, TOKENS = 346, LONGEST = 300 };
static const int64_t mixed[SEQUENCES] = {1, LONGEST, 3, 0, 42}, few[SEQUENCES] = {1, 0, 3, 2, 4};
static const int64_t offsets[SEQUENCES + 1] = {0, 1, 301, 304, 304, TOKENS};

/* Returns the tensors of sequence b, as a call of its own. */
static att_attention_args alone_of(const att_attention_args *all, int b)
{
    static int64_t own_offsets[2];
    att_attention_args a = *all;
    att_tensor *const tensors[] = {&a.q, &a.out, &a.lse, &a.k, &a.v};
    for (int i = 0; i < 5 && all->q_offsets; i++)
        *tensors[i] = slice(*tensors[i], 0, offsets[b], mixed[b]);
    for (int i = 0; i < 5 && !all->q_offsets; i++) {
        *tensors[i] = slice(*tensors[i], 0, b, 1);
        if (i < 3)
            *tensors[i] = slice(*tensors[i], 2, 0, all->q_lengths[b]);
    }
    own_offsets[1] = mixed[b];
    a.q_offsets = all->q_offsets ? own_offsets : NULL;
    a.n_sequences = all->q_offsets ? 1 : 0;
    a.q_lengths = NULL;
    return a;
}

/* Copies the outputs of a call's last head, and returns their number. */
static int64_t copy_outputs(const att_attention_args *a, uint16_t *out, float *lse)
{
    const int time = a->q_offsets ? 0 : 2, head = 1;
    const int64_t dim = a->out.dim[a->out.rank - 1], last = a->out.dim[head] - 1, n = a->out.dim[time];
    for (int64_t i = 0; i < n; i++) {
        const uint16_t *row = (uint16_t *)a->out.data + last * a->out.stride[head] + i * a->out.stride[time];
        memcpy(out + i * dim, row, (size_t)dim * sizeof *row);
        lse[i] = ((float *)a->lse.data)[last * a->lse.stride[head] + i * a->lse.stride[time]];
    }
    return n;
}

/* Rows after those of queries are 0, log-sum-exp -inf. */
static void check_rest(const att_attention_args *a, int64_t dim)
{
    const att_tensor *out = &a->out, *lse = &a->lse;
    for (int64_t row = 0; row < SEQUENCES * out->dim[1] * out->dim[2]; row++) {
        if (row % out->dim[2] < a->q_lengths[row / (out->dim[1] * out->dim[2])])
            continue;
        assert_true(((float *)lse->data)[row] == -INFINITY);
        for (int64_t d = 0; d < dim; d++)
            assert_int_equal(((uint16_t *)out->data)[row * dim + d], 0);
    }
}

static void check_each_alone(att_ctx *ctx, const att_attention_spec *s, const att_attention_args *all)
{
    enum { MAX_DIM = 64 };
    static uint16_t among[LONGEST * MAX_DIM], alone[LONGEST * MAX_DIM];
    static float lse_among[LONGEST], lse_alone[LONGEST];
    for (int b = 0; b < SEQUENCES; b++) {
        const att_attention_args a = alone_of(all, b);
        run(ctx, s, all);
        if (all->q_lengths)
            check_rest(all, s->value_dim);
        const int64_t n = copy_outputs(&a, among, lse_among);
        run(ctx, s, &a);
        copy_outputs(&a, alone, lse_alone);
        assert_memory_equal(among, alone, (size_t)(n * s->value_dim) * sizeof *among);
        assert_same_bits(lse_among, lse_alone, n);
    }
}

static void few_queries_among_many_have_the_bits_that_they_have_alone(void **state)
{
    (void)state;
    const shape n = {SEQUENCES, 4, 2, LONGEST, LONGEST, 32, 48}; /* up to 4 queries are few */
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);)
        for (int i = 0; i < 4; i++) {
            operands o = make(n);
            att_attention_spec s = spec_of(n);
            store_as(ctx, i & 1 ? ATT_F16 : ATT_BF16, &o, &s);
            choose(i & 2 ? CAUSAL : 0, &o, &s, NULL);
            att_attention_args ragged = o.args;
            o.args.q_lengths = mixed;
            check_each_alone(ctx, &s, &o.args);
            o.args.q_lengths = few;
            check_each_alone(ctx, &s, &o.args);
            ragged.q_offsets = offsets;
            ragged.n_sequences = SEQUENCES;
            att_wrap(&ragged.q, o.q, s.dtype, ATT_DIMS(TOKENS, n.heads, n.head_dim), NULL);
            att_wrap(&ragged.k, o.k, s.dtype, ATT_DIMS(TOKENS, n.kv_heads, n.head_dim), NULL);
            att_wrap(&ragged.v, o.v, s.dtype, ATT_DIMS(TOKENS, n.kv_heads, n.value_dim), NULL);
            att_wrap(&ragged.out, o.out, s.dtype, ATT_DIMS(TOKENS, n.heads, n.value_dim), NULL);
            att_wrap(&ragged.lse, o.lse, ATT_F32, ATT_DIMS(TOKENS, n.heads), NULL);
            check_each_alone(ctx, &s, &ragged);
            operands_free(&o);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_types_equal_the_floats_that_they_encode),
        cmocka_unit_test(weights_on_demand_read_short_types),
        cmocka_unit_test(rows_of_short_numbers_may_lie_anywhere),
        cmocka_unit_test(few_queries_among_many_have_the_bits_that_they_have_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
