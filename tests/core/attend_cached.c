/* Attention to a cache on a tape: batched and ragged, in f32, f16 and bf16. */
#include "fixtures/tape.h"
#include "fixtures/fail_alloc.h"

enum { HEADS = 2, DIM = 16 };

/* Makes a plan of causal attention, and a cache of two sequences for it. */
static att_plan *open_cache(att_ctx *ctx, att_cache **cache)
{
    att_plan *plan;
    assert_int_equal(att_plan_new(ctx,
                                  ATT_OPTIONS(att_attention_spec, .heads = HEADS, .kv_heads = 1, .head_dim = DIM,
                                              ATT_STAGES({.mask = att_mask_causal}), .align = ATT_ALIGN_BOTTOM_RIGHT),
                                  &plan),
                     ATT_OK);
    assert_int_equal(att_cache_new(plan, 2, cache), ATT_OK);
    return plan;
}

static void a_cache_is_not_joined_by_what_does_not_fit(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    att_cache *cache;
    att_plan *plan = open_cache(ctx, &cache);
    att_tape *t = new_tape(ctx);
    float q[3 * DIM] = {0};
    att_tensor none;
    att_var *three = input(t, q, ATT_DIMS(3, 1, DIM));
    assert_null(att_attend_cached(t, plan, three, three, three, cache, NULL));
    assert_int_equal(att_var_value(t, NULL, &none), ATT_ERR_SHAPE);
    assert_non_null(strstr(att_error(ctx), "q has 3 tokens, which 2 sequences cannot share equally"));
    att_tape_reset(t);
    att_var *two = input(t, q, ATT_DIMS(2, 1, DIM));
    assert_null(att_attend_cached(t, plan, two, two, NULL, cache, NULL));
    assert_int_equal(att_var_value(t, NULL, &none), ATT_ERR_ARGUMENT);
    assert_non_null(strstr(att_error(ctx), "v is NULL, but not k"));
    assert_int_equal(att_cache_length(cache, 0), 0);
    att_tape_free(t);
    att_cache_free(cache);
    att_plan_free(plan);
    att_close(ctx);
}

/* Two sequences, some tokens of both at a time: the bits of the whole. */
static void tokens_that_join_a_cache_get_what_they_get_all_at_once(void **state)
{
    (void)state;
    enum { LENGTH = 40 };
    static const int steps[] = {1, 3, 1, 0, 30, 5};
    static const int64_t offsets[] = {0, LENGTH, 2 * LENGTH};
    att_ctx *ctx = check_open(NULL, 2);
    att_cache *cache;
    att_plan *plan = open_cache(ctx, &cache);
    float *q = check_numbers(2 * LENGTH * HEADS * DIM, 1), *k = check_numbers(2 * LENGTH * DIM, 2),
          *v = check_numbers(2 * LENGTH * DIM, 3);
    att_tape *t = new_tape(ctx);
    const att_attention_args args = {.size = sizeof args, .n_sequences = 2, .q_offsets = offsets};
    const float *all = read_floats(t, att_attend(t, plan, input(t, q, ATT_DIMS(2 * LENGTH, HEADS, DIM)),
                                                 input(t, k, ATT_DIMS(2 * LENGTH, 1, DIM)),
                                                 input(t, v, ATT_DIMS(2 * LENGTH, 1, DIM)), &args, NULL));
    for (int i = 0, done = 0; i < (int)(sizeof steps / sizeof *steps); done += steps[i++]) {
        float *part[3], *const whole[] = {q, k, v};
        const int64_t n = steps[i], row[] = {HEADS * DIM, DIM, DIM};
        for (int x = 0; x < 3; x++) {
            part[x] = check_numbers(2 * n * row[x], 0);
            for (int64_t b = 0; b < 2; b++)
                memcpy(part[x] + b * n * row[x], whole[x] + (b * LENGTH + done) * row[x],
                       (size_t)(n * row[x]) * sizeof *q);
        }
        const float *y = read_floats(t, att_attend_cached(t, plan, input(t, part[0], ATT_DIMS(2 * n, HEADS, DIM)),
                                                          input(t, part[1], ATT_DIMS(2 * n, 1, DIM)),
                                                          input(t, part[2], ATT_DIMS(2 * n, 1, DIM)), cache, NULL));
        for (int64_t b = 0; b < 2; b++)
            assert_memory_equal(y + b * n * row[0], all + (b * LENGTH + done) * row[0],
                                (size_t)(n * row[0]) * sizeof *y);
        for (int x = 0; x < 3; x++)
            free(part[x]);
    }
    assert_int_equal(att_cache_length(cache, 1), LENGTH);
    float last[2 * HEADS * DIM]; /* asks again, and nothing joins */
    for (int64_t b = 0; b < 2; b++)
        memcpy(last + b * HEADS * DIM, q + (b * LENGTH + LENGTH - 1) * HEADS * DIM, HEADS * DIM * sizeof *q);
    const float *again =
        read_floats(t, att_attend_cached(t, plan, input(t, last, ATT_DIMS(2, HEADS, DIM)), NULL, NULL, cache, NULL));
    for (int64_t b = 0; b < 2; b++)
        assert_memory_equal(again + b * HEADS * DIM, all + (b * LENGTH + LENGTH - 1) * HEADS * DIM,
                            HEADS * DIM * sizeof *q);
    assert_int_equal(att_cache_length(cache, 1), LENGTH);
    att_tape_free(t);
    att_cache_free(cache);
    att_plan_free(plan);
    free(q), free(k), free(v);
    att_close(ctx);
}

/* ---- ragged batches, caches of any type */

enum { SEQUENCES = 3, STEPS = 6, TOKENS = 109 };
/* New tokens of each sequence, many of them at first. */
static const int64_t steps[STEPS][SEQUENCES] = {{20, 0, 9}, {0, 0, 11}, {30, 12, 0}, {1, 0, 1}, {1, 20, 2}, {1, 0, 1}};
static const int64_t lengths[SEQUENCES] = {53, 32, 24};
static const att_dtype types[] = {ATT_F32, ATT_F16, ATT_BF16};
typedef enum operand { Q, K, V, OPERANDS } operand;
static const int64_t row[OPERANDS] = {HEADS * DIM, DIM, DIM}; /* numbers of a token */

/* All tokens, sequence by sequence, and the result of the full pass in a type, as f32. */
typedef struct whole {
    int64_t offsets[SEQUENCES + 1];
    float *x[OPERANDS], *out;
} whole;

static att_plan *new_plan(att_ctx *ctx, att_dtype dtype)
{
    att_plan *plan;
    assert_int_equal(
        att_plan_new(ctx,
                     ATT_OPTIONS(att_attention_spec, .heads = HEADS, .kv_heads = 1, .head_dim = DIM, .dtype = dtype,
                                 ATT_STAGES({.mask = att_mask_causal}), .align = ATT_ALIGN_BOTTOM_RIGHT),
                     &plan),
        ATT_OK);
    return plan;
}

static void convert(att_ctx *ctx, att_tensor x, att_tensor y)
{
    assert_int_equal(att_tensor_convert(ctx, &x, &y), ATT_OK);
}

/* att_forward on tensors of the plan's type */
static whole make_whole(att_ctx *ctx, const att_plan *plan, att_dtype type)
{
    whole w = {.out = check_numbers(TOKENS * HEADS * DIM, 9)};
    float *memory[4];
    att_tensor t[4];
    for (int b = 0; b < SEQUENCES; b++)
        w.offsets[b + 1] = w.offsets[b] + lengths[b];
    for (int i = 0; i < 4; i++) {
        const int64_t heads = i == K || i == V ? 1 : HEADS;
        memory[i] = check_numbers(TOKENS * HEADS * DIM, 8);
        t[i] = view(memory[i], type, ATT_DIMS(TOKENS, heads, DIM));
        if (i < OPERANDS) {
            w.x[i] = check_numbers(TOKENS * row[i], (uint64_t)i);
            convert(ctx, view(w.x[i], ATT_F32, ATT_DIMS(TOKENS, heads, DIM)), t[i]);
        }
    }
    const att_attention_args args = {.size = sizeof args,
                                     .q = t[Q],
                                     .k = t[K],
                                     .v = t[V],
                                     .out = t[OPERANDS],
                                     .n_sequences = SEQUENCES,
                                     .q_offsets = w.offsets};
    assert_int_equal(att_forward(plan, &args), ATT_OK);
    convert(ctx, t[OPERANDS], view(w.out, ATT_F32, ATT_DIMS(TOKENS, HEADS, DIM)));
    for (int i = 0; i < 4; i++)
        free(memory[i]);
    return w;
}

static void whole_free(whole *w)
{
    for (int i = 0; i < OPERANDS; i++)
        free(w->x[i]);
    free(w->out);
}

/* Tokens [first[b], first[b] + n[b]) of each sequence, one sequence after the other; the caller frees them. */
static float *gather(const whole *w, const float *x, int64_t numbers, const int64_t *first, const int64_t *n)
{
    float *y = check_numbers((TOKENS + 1) * numbers, 0), *to = y;
    for (int b = 0; b < SEQUENCES; b++, to += n[b - 1] * numbers)
        memcpy(to, x + (w->offsets[b] + first[b]) * numbers, (size_t)(n[b] * numbers) * sizeof *to);
    return y;
}

static void set_offsets(const int64_t *n, int64_t *offsets)
{
    offsets[0] = 0;
    for (int b = 0; b < SEQUENCES; b++)
        offsets[b + 1] = offsets[b] + n[b];
}

/* Appends `n` tokens of each sequence that has `first` already; the last `asking` of them attend. NULL: failed. */
static att_var *append(att_tape *t, const att_plan *plan, att_cache *cache, const whole *w, const int64_t *first,
                       const int64_t *n, const int64_t *asking)
{
    int64_t k_offsets[SEQUENCES + 1], q_offsets[SEQUENCES + 1], q_first[SEQUENCES];
    set_offsets(n, k_offsets);
    set_offsets(asking, q_offsets);
    for (int b = 0; b < SEQUENCES; b++)
        q_first[b] = first[b] + n[b] - asking[b];
    att_attention_args args = {.size = sizeof args, .n_sequences = SEQUENCES, .q_offsets = q_offsets};
    args.k_offsets = asking == n ? NULL : k_offsets;
    float *x[OPERANDS];
    att_var *in[OPERANDS];
    for (int i = 0; i < OPERANDS; i++) {
        x[i] = gather(w, w->x[i], row[i], i == Q ? q_first : first, i == Q ? asking : n);
        in[i] = input(t, x[i], ATT_DIMS((i == Q ? q_offsets : k_offsets)[SEQUENCES], i == Q ? HEADS : 1, DIM));
    }
    att_var *out = att_attend_cached(t, plan, in[Q], in[K], in[V], cache, &args);
    for (int i = 0; i < OPERANDS; i++)
        free(x[i]);
    return out;
}

static void check_rows(att_tape *t, const whole *w, att_var *out, const int64_t *first, const int64_t *n)
{
    float *expected = gather(w, w->out, HEADS * DIM, first, n);
    const float *got = read_floats(t, out);
    for (int64_t i = 0; i < (n[0] + n[1] + n[2]) * HEADS * DIM; i++)
        if (check_float_bits(expected[i]) != check_float_bits(got[i]))
            fail_msg("number %d differs", (int)i);
    free(expected);
}

static void a_cache_of_any_type_gives_the_bits_of_tensors_of_that_type(void **state)
{
    (void)state;
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);)
        for (int i = 0; i < 3; i++) {
            /* where weights of bf16 are rounded in the full pass, they are not for few tokens: the last steps */
            const bool rounds = types[i] == ATT_BF16 && att_kernels_of(ctx->isa)->bf16.scores;
            att_cache *cache;
            att_plan *plan = new_plan(ctx, types[i]);
            assert_int_equal(att_cache_new(plan, SEQUENCES, &cache), ATT_OK);
            whole w = make_whole(ctx, plan, types[i]);
            att_tape *t = new_tape(ctx);
            int64_t first[SEQUENCES] = {0};
            for (int s = 0; s < (rounds ? 3 : STEPS); s++) {
                check_rows(t, &w, append(t, plan, cache, &w, first, steps[s], steps[s]), first, steps[s]);
                for (int b = 0; b < SEQUENCES; b++)
                    first[b] += steps[s][b];
            }
            for (int b = 0; !rounds && b < SEQUENCES; b++)
                assert_int_equal(att_cache_length(cache, b), lengths[b]);
            att_tape_free(t);
            att_cache_free(cache);
            att_plan_free(plan);
            whole_free(&w);
        }
}

/* Only the last of the new tokens of a sequence attends, as after a prompt. */
static void some_of_the_new_tokens_attend(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 2);
    att_cache *cache;
    att_plan *plan = new_plan(ctx, ATT_F16);
    assert_int_equal(att_cache_new(plan, SEQUENCES, &cache), ATT_OK);
    whole w = make_whole(ctx, plan, ATT_F16);
    att_tape *t = new_tape(ctx);
    static const int64_t none[SEQUENCES] = {0}, prompt[] = {52, 0, 24}, one[] = {1, 0, 1}, last[] = {51, 0, 23};
    check_rows(t, &w, append(t, plan, cache, &w, none, prompt, one), last, one);
    for (int b = 0; b < SEQUENCES; b++)
        assert_int_equal(att_cache_length(cache, b), prompt[b]);
    att_tape_free(t);
    att_cache_free(cache);
    att_plan_free(plan);
    whole_free(&w);
    att_close(ctx);
}

/* ---- refused, and out of memory */

static void what_is_ragged_and_does_not_fit_leaves_the_cache_unchanged(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    att_cache *cache;
    att_plan *plan = new_plan(ctx, ATT_BF16), *other = new_plan(ctx, ATT_F16);
    assert_int_equal(att_cache_new(plan, 2, &cache), ATT_OK);
    att_tape *t = new_tape(ctx);
    static const int64_t good[] = {0, 3, 4, 4}, down[] = {0, 5, 4}, few[] = {0, 1, 3};
    float x[4 * HEADS * DIM] = {0};
    const struct {
        const att_plan *plan;
        int64_t n_sequences, heads;
        const int64_t *q_offsets, *k_offsets;
        bool appends;
        att_status status;
        const char *sentence;
    } wrong[] = {
        {plan, 3, HEADS, good, NULL, true, ATT_ERR_SHAPE, "args.n_sequences is 3, but the cache has 2 sequences"},
        {plan, 0, HEADS, NULL, good, true, ATT_ERR_ARGUMENT, "args.k_offsets is given without args.q_offsets"},
        {plan, 2, HEADS, good, good, false, ATT_ERR_ARGUMENT, "args.k_offsets is given without k"},
        {plan, 2, HEADS, down, NULL, true, ATT_ERR_ARGUMENT, "offsets[2] = 4 is less than offsets[1] = 5"},
        {plan, 2, HEADS, down, NULL, false, ATT_ERR_ARGUMENT, "q_offsets[2] = 4 is less than q_offsets[1] = 5"},
        {plan, 2, HEADS, few, NULL, true, ATT_ERR_SHAPE, "offsets[2] = 3 but k.dim[0] = 4"},
        {plan, 2, HEADS, few, good, true, ATT_ERR_SHAPE, "q_offsets[2] = 3 but q.dim[0] = 4"}, /* after appending */
        {plan, 2, 1, good, NULL, true, ATT_ERR_SHAPE, "q.dim[1] = 1 but spec.heads = 2"},      /* the same */
        {other, 2, HEADS, good, NULL, true, ATT_ERR_DTYPE, "args.cache is bf16 but spec.dtype is f16"},
        {plan, 2, HEADS, NULL, NULL, true, ATT_ERR_ARGUMENT, "args.n_sequences is given without args.q_offsets"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const att_attention_args args = {.size = sizeof args,
                                         .n_sequences = wrong[i].n_sequences,
                                         .q_offsets = wrong[i].q_offsets,
                                         .k_offsets = wrong[i].k_offsets};
        att_var *k = wrong[i].appends ? input(t, x, ATT_DIMS(4, 1, DIM)) : NULL;
        att_tensor none;
        assert_null(
            att_attend_cached(t, wrong[i].plan, input(t, x, ATT_DIMS(4, wrong[i].heads, DIM)), k, k, cache, &args));
        assert_int_equal(att_var_value(t, NULL, &none), wrong[i].status);
        check_message(ctx, wrong[i].sentence);
        for (int b = 0; b < 2; b++)
            assert_int_equal(att_cache_length(cache, b), 0);
        att_tape_reset(t);
    }
    att_tape_free(t);
    att_cache_free(cache);
    att_plan_free(plan), att_plan_free(other);
    att_close(ctx);
}

static void running_out_of_memory_leaves_the_cache_unchanged(void **state)
{
    (void)state;
    bool worked = false;
    int failures = 0;
    for (long at = 1; !worked && at < 100; at++) {
        fail_alloc f = {0};
        att_ctx *ctx = fail_open(&f);
        att_cache *cache;
        att_plan *plan = new_plan(ctx, ATT_F16);
        assert_int_equal(att_cache_new(plan, SEQUENCES, &cache), ATT_OK);
        whole w = make_whole(ctx, plan, ATT_F16);
        att_plan_trim(plan);
        att_tape *t = new_tape(ctx);
        static const int64_t first[2][SEQUENCES] = {{0, 0, 0}, {20, 0, 9}};
        att_tensor out;
        f.fail_at = f.calls + at;
        att_var *y = append(t, plan, cache, &w, first[0], steps[0], steps[0]);
        f.fail_at = 0;
        worked = att_var_value(t, y, &out) == ATT_OK;
        failures += !worked;
        for (int b = 0; b < SEQUENCES; b++)
            assert_int_equal(att_cache_length(cache, b), worked ? steps[0][b] : 0);
        if (!worked) {
            assert_int_equal(att_var_value(t, NULL, &out), ATT_ERR_MEMORY);
            att_tape_reset(t);
            y = append(t, plan, cache, &w, first[0], steps[0], steps[0]);
        }
        check_rows(t, &w, y, first[0], steps[0]);
        check_rows(t, &w, append(t, plan, cache, &w, first[1], steps[1], steps[1]), first[1], steps[1]);
        att_tape_free(t);
        att_cache_free(cache);
        att_plan_free(plan);
        whole_free(&w);
        att_close(ctx);
        assert_int_equal(f.live, 0);
    }
    assert_true(worked);
    assert_true(failures > 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_that_join_a_cache_get_what_they_get_all_at_once),
        cmocka_unit_test(a_cache_is_not_joined_by_what_does_not_fit),
        cmocka_unit_test(a_cache_of_any_type_gives_the_bits_of_tensors_of_that_type),
        cmocka_unit_test(some_of_the_new_tokens_attend),
        cmocka_unit_test(what_is_ragged_and_does_not_fit_leaves_the_cache_unchanged),
        cmocka_unit_test(running_out_of_memory_leaves_the_cache_unchanged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
