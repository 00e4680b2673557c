/* Few queries over many keys: the same bits as the full pass, with any stages, threads and instruction set. */
// labels: long
#include "fixtures/attention.h"
#include "attn/forward/forward.h"
#include "attn/reference.h"

enum { QUERIES = 67 }; /* of the full pass: more than decoding takes */
enum { SINK = ALL_STAGES + 1, SETS = 2 * SINK };

/* Queries [first, first + n) of o alone, into out and lse [batch, heads, n]. */
static void decode(att_ctx *ctx, att_attention_spec s, const operands *o, unsigned stages, int64_t first, int64_t n,
                   float *out, float *lse)
{
    att_attention_args a = o->args;
    int64_t starts[4];
    a.q = slice(a.q, 2, first, n);
    att_wrap(&a.out, out, s.dtype, ATT_DIMS(o->n.batch, o->n.heads, n, o->n.value_dim), NULL);
    att_wrap(&a.lse, lse, ATT_F32, ATT_DIMS(o->n.batch, o->n.heads, n), NULL);
    att_tensor *param = own_params(&a);
    for (int i = 0; i < a.n_params; i++)
        if (param[i].rank == 4)
            param[i] = slice(param[i], 2, first, n);
    if (stages & (CAUSAL | DROPOUT)) { /* both go by positions, which without causal are from 0 on */
        s.align = ATT_ALIGN_STARTS;
        a.q_starts = starts;
        for (int64_t b = 0; b < o->n.batch; b++)
            starts[b] = (stages & CAUSAL ? (a.k_lengths ? a.k_lengths[b] : o->n.tk) - o->n.tq : 0) + first;
    }
    run(ctx, &s, &a);
}

static void assert_same_rows(const operands *o, int64_t first, int64_t n, const float *out, const float *lse)
{
    const shape m = o->n;
    const int64_t row = m.value_dim * (int64_t)att_dtype_size(o->args.out.dtype); /* bytes */
    for (int64_t bh = 0; bh < m.batch * m.heads; bh++) {
        const char *full = (const char *)o->out + (bh * m.tq + first) * row, *few = (const char *)out + bh * n * row;
        for (int64_t i = 0; i < n; i++)
            if (memcmp(full + i * row, few + i * row, (size_t)row))
                fail_msg("%s, %d keys: query %d differs", att_dtype_name(o->args.out.dtype), (int)m.tk,
                         (int)(first + i));
        assert_same_bits(o->lse + bh * m.tq + first, lse + bh * n, n);
    }
}

static void check_shape(att_ctx *ctx, shape m, att_dtype dtype, unsigned stages)
{
    operands o = make(m);
    att_attention_spec s = spec_of(m);
    int64_t lengths[4];
    float sinks[] = {0.5f, -2, 3, -INFINITY, 1, 0, 7, 0.1f};
    choose(stages, &o, &s, lengths);
    if (stages & SINK) {
        add_modifier(&s, att_modifier_sink, 0);
        att_wrap(param_at(&o.args, o.args.n_params), sinks, ATT_F32, ATT_DIMS(m.heads), NULL);
    }
    store_as(ctx, dtype, &o, &s);
    run(ctx, &s, &o.args);
    const int64_t group = m.heads / m.kv_heads;
    for (int64_t n = 1; n * group <= ATT_DECODE_QUERIES; n += check_step(3)) {
        const int64_t first = (n * 13) % (m.tq - n + 1);
        float *out = check_numbers(m.batch * m.heads * n * m.value_dim, 8),
              *lse = check_numbers(m.batch * m.heads * n, 9);
        decode(ctx, s, &o, stages, first, n, out, lse);
        assert_same_rows(&o, first, n, out, lse);
        free(out), free(lse);
    }
    operands_free(&o);
}

static const int64_t lengths_of_keys[] = {1, 31, 33, 255, 256, 257, 1023, 1025, 2600, 4096};
static const struct {
    int64_t heads, kv_heads, head_dim, value_dim;
} heads[] = {{1, 1, 1, 1},    {2, 2, 64, 64},   {8, 1, 5, 3},  {4, 2, 80, 40},
             {3, 1, 33, 130}, {2, 1, 128, 128}, {4, 4, 17, 72}};
enum { N_LENGTHS = sizeof lengths_of_keys / sizeof *lengths_of_keys, N_HEADS = sizeof heads / sizeof *heads };

static void decoding_gives_the_bits_of_the_full_pass(void **state)
{
    (void)state;
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);) {
        int done = 0;
        for (int i = 0; i < N_LENGTHS; i++)
            for (int h = i % check_step(5); h < N_HEADS; h += check_step(5), done++) {
                const shape m = {2,
                                 heads[h].heads,
                                 heads[h].kv_heads,
                                 QUERIES,
                                 lengths_of_keys[i],
                                 heads[h].head_dim,
                                 heads[h].value_dim};
                const unsigned stages = (unsigned)(i * N_HEADS + h * 5) % SETS;
                check_shape(ctx, m, ATT_F32, stages);
                const bool pairs = att_kernels_of(ctx->isa)->bf16.scores; /* its full pass rounds the weights of bf16 */
                check_shape(ctx, m, i % 2 || pairs ? ATT_F16 : ATT_BF16, stages);
            }
        print_message("%s: %d shapes\n", att_isa(ctx), 2 * done);
    }
}

static void any_number_of_threads_gives_the_same_bits(void **state)
{
    (void)state;
    const shape m = {1, 2, 1, 3, 4500, 48, 40};
    operands o = make(m);
    att_attention_spec s = spec_of(m);
    int64_t lengths[4];
    choose(CAUSAL | BOOLEAN | BIAS, &o, &s, lengths);
    check_threads(check_step(15), &s, &o.args, NULL);
    operands_free(&o);
}

/* A pool of the caller's that counts what it is given at once. */
static void count_tasks(void *user, int n, void (*body)(void *arg, int i), void *arg)
{
    int *most = user;
    *most = n > *most ? n : *most;
    for (int i = 0; i < n; i++)
        body(arg, i);
}

static void the_keys_of_one_head_are_shared_out_to_all_threads(void **state)
{
    (void)state;
    const shape m = {1, 1, 1, 1, 1 << 16, 64, 64};
    operands o = make(m);
    const att_attention_spec s = spec_of(m);
    for (int threads = 1; threads <= 4; threads += 3) {
        int most = 0;
        att_ctx *ctx;
        assert_int_equal(att_open(&ctx, ATT_OPTIONS(att_config, .n_threads = threads, .parallel_for = count_tasks,
                                                    .parallel_user = &most)),
                         ATT_OK);
        run(ctx, &s, &o.args);
        assert_true(threads == 1 || most >= threads);
        att_close(ctx);
    }
    operands_free(&o);
}

static void a_sequence_without_queries_gets_zeros(void **state)
{
    (void)state;
    static const int64_t lengths[] = {0};
    const shape m = {1, 1, 1, 2, 300, 8, 8};
    operands o = make(m);
    att_attention_spec s = spec_of(m);
    att_ctx *ctx = check_open(NULL, 1);
    int32_t *ids = calloc(2 + 300, sizeof *ids); /* a look at the last query's would be one before the first */
    add_mask(&s, att_mask_document);
    att_wrap(param_at(&o.args, 0), ids, ATT_I32, ATT_DIMS(1, 2), NULL);
    att_wrap(param_at(&o.args, 1), ids + 2, ATT_I32, ATT_DIMS(1, 300), NULL);
    o.args.q_lengths = lengths;
    run(ctx, &s, &o.args);
    for (int64_t i = 0; i < out_count(m); i++)
        assert_true(o.out[i] == 0);
    assert_true(isinf(o.lse[0]) && isinf(o.lse[1]));
    free(ids);
    operands_free(&o);
    att_close(ctx);
}

/* More heads share keys than decoding has columns for; without queries that must not matter. */
static void no_queries_of_many_heads_write_nothing(void **state)
{
    (void)state;
    const shape m = {2, 4 * ATT_DECODE_QUERIES, 1, 0, 300, 8, 8};
    operands o = make(m);
    const att_attention_spec s = spec_of(m);
    att_ctx *ctx = check_open(NULL, 2);
    att_plan_info info = {.size = sizeof info};
    att_plan *plan = plan_of(ctx, &s);
    assert_int_equal(att_forward(plan, &o.args), ATT_OK);
    assert_int_equal(att_plan_describe(plan, &o.args, &info), ATT_OK);
    assert_string_equal(info.forward.kernel, "flash-forward");
    att_plan_free(plan);
    operands_free(&o);
    att_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decoding_gives_the_bits_of_the_full_pass),
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
        cmocka_unit_test(the_keys_of_one_head_are_shared_out_to_all_threads),
        cmocka_unit_test(a_sequence_without_queries_gets_zeros),
        cmocka_unit_test(no_queries_of_many_heads_write_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
