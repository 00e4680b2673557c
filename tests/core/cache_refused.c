/* Errors of a cache, whose messages have both values, and failed allocations: the cache is unchanged. */
// labels: portable
#include "fixtures/cache.h"
#include "fixtures/fail_alloc.h"

#include <stddef.h>

/* ---- refused */

typedef struct setting {
    att_ctx *ctx;
    att_plan *plan;
    att_cache *cache;
    operands o;
    att_attention_args args; /* with the cache */
} setting;

static setting open_setting(att_ctx *ctx)
{
    setting t = {.ctx = ctx, .o = make((shape){2, 4, 2, 1, 9, 8, 6})};
    const att_attention_spec s = spec_of(t.o.n);
    t.plan = plan_of(ctx, &s);
    t.cache = cache_of(ctx, t.plan, 2);
    append(ctx, t.cache, &t.o.args, 0, 7);
    t.args = with_cache(t.o.args, t.cache);
    return t;
}

static void close_setting(setting *t)
{
    att_cache_free(t->cache);
    att_plan_free(t->plan);
    operands_free(&t->o);
}

static void check_refused(const setting *t, att_status e, att_status expected, const char *sentence)
{
    check_message(t->ctx, sentence);
    assert_int_equal(e, expected);
    assert_int_equal(att_cache_length(t->cache, 0), 7);
    assert_int_equal(att_cache_length(t->cache, 1), 7);
}

static void what_cannot_be_added_is_named_and_nothing_is_added(void **state)
{
    (void)state;
    setting t = open_setting(check_open(NULL, 1));
    const struct {
        const char *sentence;
        int64_t sequence, value;
        size_t of, bytes; /* position of the wrong number in k or, after it, in v */
        att_status status;
    } wrong[] = {
        {"sequence is 2, but the cache has 2", 2, 2, offsetof(att_tensor, dim[0]), 8, ATT_ERR_ARGUMENT},
        {"sequence is -2, but the cache has 2", -2, 2, offsetof(att_tensor, dim[0]), 8, ATT_ERR_ARGUMENT},
        {"k [2, 2, 2] has 3 dimensions but must have 4", -1, 3, offsetof(att_tensor, rank), 4, ATT_ERR_SHAPE},
        {"k [2, 2, 2, 8] has 4 dimensions but must have 3", 1, 4, offsetof(att_tensor, rank), 4, ATT_ERR_SHAPE},
        {"k.dim[0] = 3 but the number of the cache's sequences = 2", -1, 3, offsetof(att_tensor, dim[0]), 8,
         ATT_ERR_SHAPE},
        {"k.dim[1] = 4 but spec.kv_heads = 2", -1, 4, offsetof(att_tensor, dim[1]), 8, ATT_ERR_SHAPE},
        {"k.dim[3] = 6 but spec.key_dim = 8", -1, 6, offsetof(att_tensor, dim[3]), 8, ATT_ERR_SHAPE},
        {"k is f16 but must be f32", -1, ATT_F16, offsetof(att_tensor, dtype), 4, ATT_ERR_DTYPE},
        {"k [2, 2, 2, 8] has no memory", -1, 0, offsetof(att_tensor, data), 8, ATT_ERR_ARGUMENT},
        {"k.stride[3] = 2, but the last dimension must be contiguous (1)", -1, 2, offsetof(att_tensor, stride[3]), 8,
         ATT_ERR_ARGUMENT},
        {"v.dim[2] = 1 but k.dim[2] = 2", -1, 1, sizeof(att_tensor) + offsetof(att_tensor, dim[2]), 8, ATT_ERR_SHAPE},
        {"v.dim[3] = 8 but spec.value_dim = 6", -1, 8, sizeof(att_tensor) + offsetof(att_tensor, dim[3]), 8,
         ATT_ERR_SHAPE},
        {"v.stride[3] = 3, but the last", -1, 3, sizeof(att_tensor) + offsetof(att_tensor, stride[3]), 8,
         ATT_ERR_ARGUMENT},
        {"v is i32 but must be f32", -1, ATT_I32, sizeof(att_tensor) + offsetof(att_tensor, dtype), 4, ATT_ERR_DTYPE},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        att_tensor x[2] = {slice(t.o.args.k, 2, 7, 2), slice(t.o.args.v, 2, 7, 2)};
        memcpy((char *)x + wrong[i].of, &wrong[i].value, wrong[i].bytes); /* little-endian */
        check_refused(&t, att_cache_append(t.cache, wrong[i].sequence, &x[0], &x[1]), wrong[i].status,
                      wrong[i].sentence);
    }
    const att_tensor *k = &t.o.args.k;
    check_refused(&t, att_cache_append(t.cache, -1, NULL, k), ATT_ERR_ARGUMENT, "k is NULL");
    check_refused(&t, att_cache_append(t.cache, -1, k, NULL), ATT_ERR_ARGUMENT, "v is NULL");
    check_refused(&t, att_cache_append(NULL, -1, k, k), ATT_ERR_ARGUMENT, "cache is NULL");
    att_ctx *ctx = t.ctx;
    close_setting(&t);
    att_close(ctx);
}

static void a_ragged_addition_that_does_not_fit_is_named_and_nothing_is_added(void **state)
{
    (void)state;
    static const int64_t good[] = {0, 3, 4}, late[] = {1, 3, 4}, down[] = {0, 5, 4}, few[] = {0, 1, 3};
    setting t = open_setting(check_open(NULL, 1));
    att_tensor k = sequence_of(t.o.args.k, 0), v = sequence_of(t.o.args.v, 0), batched = t.o.args.k;
    att_wrap(&k, t.o.k, ATT_F32, ATT_DIMS(4, 2, 8), NULL);
    att_wrap(&v, t.o.v, ATT_F32, ATT_DIMS(4, 2, 6), NULL);
    att_tensor heads = k, tokens = v, type = k;
    heads.dim[1] = 1;
    tokens.dim[0] = 3;
    type.dtype = ATT_BF16;
    const struct {
        const int64_t *offsets;
        const att_tensor *k, *v;
        att_status status;
        const char *sentence;
    } wrong[] = {
        {NULL, &k, &v, ATT_ERR_ARGUMENT, "offsets is NULL"},
        {good, NULL, &v, ATT_ERR_ARGUMENT, "k is NULL"},
        {good, &k, NULL, ATT_ERR_ARGUMENT, "v is NULL"},
        {late, &k, &v, ATT_ERR_ARGUMENT, "offsets[0] = 1, expected 0"},
        {down, &k, &v, ATT_ERR_ARGUMENT, "offsets[2] = 4 is less than offsets[1] = 5"},
        {few, &k, &v, ATT_ERR_SHAPE, "offsets[2] = 3 but k.dim[0] = 4"},
        {good, &batched, &v, ATT_ERR_SHAPE, "k [2, 2, 9, 8] has 4 dimensions but must have 3"},
        {good, &heads, &v, ATT_ERR_SHAPE, "k.dim[1] = 1 but spec.kv_heads = 2"},
        {good, &v, &v, ATT_ERR_SHAPE, "k.dim[2] = 6 but spec.key_dim = 8"},
        {good, &k, &tokens, ATT_ERR_SHAPE, "v.dim[0] = 3 but k.dim[0] = 4"},
        {good, &type, &v, ATT_ERR_DTYPE, "k is bf16 but must be f32"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        check_refused(&t, att_cache_append_ragged(t.cache, wrong[i].offsets, wrong[i].k, wrong[i].v), wrong[i].status,
                      wrong[i].sentence);
    check_refused(&t, att_cache_append_ragged(NULL, good, &k, &v), ATT_ERR_ARGUMENT, "cache is NULL");
    att_ctx *ctx = t.ctx;
    close_setting(&t);
    att_close(ctx);
}

static void ragged_queries_that_do_not_fit_a_cache_are_named(void **state)
{
    (void)state;
    static const int64_t offsets[] = {0, 1, 2, 2};
    setting t = open_setting(check_open(NULL, 1));
    att_attention_args a = {.size = sizeof a, .cache = t.cache, .q_offsets = offsets, .n_sequences = 3};
    att_wrap(&a.q, t.o.q, ATT_F32, ATT_DIMS(2, 4, 8), NULL);
    att_wrap(&a.out, t.o.out, ATT_F32, ATT_DIMS(2, 4, 6), NULL);
    check_refused(&t, att_forward(t.plan, &a), ATT_ERR_SHAPE, "args.n_sequences is 3, but args.cache has 2 sequences");
    a.n_sequences = 2;
    check_ok(t.ctx, att_forward(t.plan, &a));
    a.q_lengths = offsets;
    check_refused(&t, att_forward(t.plan, &a), ATT_ERR_ARGUMENT,
                  "args.q_lengths is given together with args.q_offsets");
    a.q_lengths = NULL;
    a.q = t.o.args.q;
    check_refused(&t, att_forward(t.plan, &a), ATT_ERR_SHAPE, "q [2, 4, 1, 8] has 4 dimensions but must have 3");
    att_ctx *ctx = t.ctx;
    close_setting(&t);
    att_close(ctx);
}

/* f16 and bf16 caches take f32 as well, but not each other's type. */
static void another_type_than_the_caches_or_f32_is_named(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    operands o = make((shape){1, 1, 1, 1, 4, 8, 8});
    att_attention_spec s = spec_of(o.n);
    s.dtype = ATT_F16;
    att_plan *plan = plan_of(ctx, &s);
    att_cache *c = cache_of(ctx, plan, 1);
    append(ctx, c, &o.args, 0, 4);
    att_tensor k = o.args.k;
    k.dtype = ATT_BF16;
    assert_int_equal(att_cache_append(c, ATT_ALL_SEQUENCES, &k, &o.args.v), ATT_ERR_DTYPE);
    check_message(ctx, "k is bf16 but must be f16");
    assert_int_equal(att_cache_append(c, ATT_ALL_SEQUENCES, &o.args.k, &k), ATT_ERR_DTYPE);
    check_message(ctx, "v is bf16 but must be f16");
    assert_int_equal(att_cache_length(c, 0), 4);
    att_cache_free(c);
    att_plan_free(plan);
    operands_free(&o);
    att_close(ctx);
}

static void what_cannot_be_done_to_a_cache_is_named(void **state)
{
    (void)state;
    setting t = open_setting(check_open(NULL, 1));
    att_cache *none;
    check_ok(t.ctx, att_cache_truncate(t.cache, 1, 7));
    check_refused(&t, att_cache_truncate(t.cache, 1, 8), ATT_ERR_ARGUMENT, "length is 8, but sequence 1 has 7");
    check_refused(&t, att_cache_truncate(t.cache, -1, -1), ATT_ERR_ARGUMENT, "length is -1, but sequence 0 has 7");
    check_refused(&t, att_cache_truncate(t.cache, 2, 0), ATT_ERR_ARGUMENT, "sequence is 2, but the cache has 2");
    check_refused(&t, att_cache_truncate(NULL, 0, 0), ATT_ERR_ARGUMENT, "cache is NULL");
    check_refused(&t, att_cache_select(t.cache, 2, NULL), ATT_ERR_ARGUMENT, "from is NULL");
    check_refused(&t, att_cache_select(NULL, 2, NULL), ATT_ERR_ARGUMENT, "cache is NULL");
    check_refused(&t, att_cache_select(t.cache, 2, (const int64_t[]){1, 2}), ATT_ERR_ARGUMENT,
                  "from[1] is 2, but the cache has 2 sequences");
    check_refused(&t, att_cache_select(t.cache, 0, (const int64_t[]){0}), ATT_ERR_ARGUMENT,
                  "n is 0, expected at least 1");
    check_refused(&t, att_cache_new(NULL, 1, &none), ATT_ERR_ARGUMENT, "plan is NULL");
    check_refused(&t, att_cache_new(t.plan, 0, &none), ATT_ERR_ARGUMENT, "sequences is 0, expected at least 1");
    check_refused(&t, att_cache_new(t.plan, INT64_MAX, &none), ATT_ERR_MEMORY, "out of memory");
    assert_null(none);
    assert_int_equal(att_cache_length(t.cache, 2), -1);
    assert_int_equal(att_cache_length(t.cache, -1), -1);
    assert_int_equal(att_cache_length(NULL, 0), -1);
    att_cache_free(NULL);
    att_ctx *ctx = t.ctx;
    close_setting(&t);
    att_close(ctx);
}

static void what_a_cache_cannot_stand_beside_is_named(void **state)
{
    (void)state;
    setting t = open_setting(check_open(NULL, 1));
    static const int64_t numbers[] = {0, 1, 2};
    att_attention_args a[4] = {t.args, t.args, t.args, t.args};
    a[0].k = t.o.args.k;
    a[1].v = t.o.args.v;
    a[2].k_offsets = numbers;
    a[3].k_lengths = numbers;
    static const char *const names[] = {"k", "v", "k_offsets", "k_lengths"};
    for (int i = 0; i < 4; i++) {
        char sentence[64];
        snprintf(sentence, sizeof sentence, "args.%s is given together with args.cache", names[i]);
        check_refused(&t, att_forward(t.plan, &a[i]), ATT_ERR_ARGUMENT, sentence);
    }
    att_attention_args fewer = t.args;
    fewer.q.dim[0] = fewer.out.dim[0] = fewer.lse.dim[0] = 1;
    check_refused(&t, att_forward(t.plan, &fewer), ATT_ERR_SHAPE,
                  "q.dim[0] = 1 but the number of the cache's sequences = 2");
    const att_attention_grads g = {.size = sizeof g, .dout = t.args.out};
    check_refused(&t, att_backward(t.plan, &t.args, &g), ATT_ERR_UNSUPPORTED,
                  "there is no backward through args.cache");
    att_ctx *ctx = t.ctx;
    close_setting(&t);
    att_close(ctx);
}

static void a_cache_of_another_shape_is_named_with_both(void **state)
{
    (void)state;
    setting t = open_setting(check_open(NULL, 1));
    const att_attention_spec same = spec_of(t.o.n);
    att_attention_spec s[5] = {same, same, same, same, same};
    s[0].kv_heads = 4;
    s[1].head_dim = 12;
    s[2].value_dim = 5;
    s[3].dtype = ATT_BF16;
    s[4].score = att_score_cosine;
    static const struct {
        const char *sentence;
        att_status status;
    } says[] = {{"args.cache has kv_heads = 2 but spec.kv_heads = 4", ATT_ERR_SHAPE},
                {"args.cache has key_dim = 8 but spec.key_dim = 12", ATT_ERR_SHAPE},
                {"args.cache has value_dim = 6 but spec.value_dim = 5", ATT_ERR_SHAPE},
                {"args.cache is f32 but spec.dtype is bf16", ATT_ERR_DTYPE},
                {"\"cosine\" prepares keys", ATT_ERR_UNSUPPORTED}};
    for (int i = 0; i < 5; i++) {
        att_plan *plan = plan_of(t.ctx, &s[i]);
        check_refused(&t, att_forward(plan, &t.args), says[i].status, says[i].sentence);
        att_plan_free(plan);
    }
    att_ctx *other = check_open(NULL, 1);
    att_plan *plan = plan_of(other, &same);
    assert_int_equal(att_forward(plan, &t.args), ATT_ERR_ARGUMENT);
    check_message(other, "args.cache was made in another context than the plan");
    att_plan_free(plan);
    att_close(other);
    att_ctx *ctx = t.ctx;
    close_setting(&t);
    att_close(ctx);
}

/* ---- out of memory */

/* Calls everything that allocates memory, until one call fails, and returns how far it came. */
static att_status grow(att_ctx *ctx, const operands *o, const att_plan *plan, att_cache **c, int64_t length[2])
{
    att_tensor k = slice(o->args.k, 2, 0, 300), v = slice(o->args.v, 2, 0, 300);
    att_status e = att_cache_new(plan, 2, c);
    e = e ? e : att_cache_append(*c, ATT_ALL_SEQUENCES, &k, &v);
    if (e)
        return e;
    length[0] = length[1] = 300;
    k = sequence_of(k, 1), v = sequence_of(v, 1);
    e = att_cache_append(*c, 1, &k, &v);
    if (e)
        return e;
    length[1] = 600;
    e = att_cache_select(*c, 2, (const int64_t[]){1, 1});
    if (e)
        return e;
    length[0] = 600;
    e = att_cache_append(*c, 0, &k, &v);
    length[0] = e ? 600 : 900;
    (void)ctx;
    return e;
}

static void running_out_of_memory_leaves_a_cache_as_it_was(void **state)
{
    (void)state;
    const shape n = {2, 2, 1, 1, 900, 16, 16};
    operands o = make(n), like = make(n);
    const att_attention_spec s = spec_of(n);
    bool worked = false;
    int failures = 0;
    for (int b = 0; b < 2; b++) /* what the cache must then have: the same 300 tokens again and again, of sequence 1 */
        for (int t = 0; t < 900; t++) {
            memcpy(like.k + (b * 900 + t) * 16, o.k + (900 + t % 300) * 16, 16 * sizeof(float));
            memcpy(like.v + (b * 900 + t) * 16, o.v + (900 + t % 300) * 16, 16 * sizeof(float));
        }
    for (long at = 1; !worked && at < 100; at++) {
        fail_alloc f = {0};
        att_ctx *ctx = fail_open(&f);
        att_plan *plan = plan_of(ctx, &s);
        att_cache *c = NULL;
        int64_t length[2] = {0, 0};
        f.fail_at = f.calls + at;
        const att_status e = grow(ctx, &o, plan, &c, length);
        f.fail_at = 0;
        worked = e == ATT_OK;
        failures += !worked;
        assert_true(worked || e == ATT_ERR_MEMORY);
        for (int b = 0; c && b < 2; b++)
            assert_int_equal(att_cache_length(c, b), length[b]);
        if (length[0] >= 600) {
            const att_attention_args a = with_cache(o.args, c);
            like.args.q = o.args.q;
            like.args.k_lengths = length;
            check_ok(ctx, att_forward(plan, &a));
            check_ok(ctx, att_forward(plan, &like.args));
            assert_same_bits(like.out, o.out, out_count(n));
        }
        if (c && !worked && length[0]) { /* and works again */
            const att_tensor k = sequence_of(slice(o.args.k, 2, 0, 300), 0),
                             v = sequence_of(slice(o.args.v, 2, 0, 300), 0);
            check_ok(ctx, att_cache_append(c, 0, &k, &v));
            assert_int_equal(att_cache_length(c, 0), length[0] + 300);
        }
        att_cache_free(c);
        att_plan_free(plan);
        att_close(ctx);
        assert_int_equal(f.live, 0);
    }
    assert_true(worked);
    assert_true(failures > 8);
    operands_free(&o), operands_free(&like);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_be_added_is_named_and_nothing_is_added),
        cmocka_unit_test(a_ragged_addition_that_does_not_fit_is_named_and_nothing_is_added),
        cmocka_unit_test(ragged_queries_that_do_not_fit_a_cache_are_named),
        cmocka_unit_test(another_type_than_the_caches_or_f32_is_named),
        cmocka_unit_test(what_cannot_be_done_to_a_cache_is_named),
        cmocka_unit_test(what_a_cache_cannot_stand_beside_is_named),
        cmocka_unit_test(a_cache_of_another_shape_is_named_with_both),
        cmocka_unit_test(running_out_of_memory_leaves_a_cache_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
