/* Keys and values in a cache: the same bits as in tensors, whatever was added, taken off or moved before. */
// labels: long
#include "fixtures/attention_trial.h"
#include "fixtures/cache.h"
#include "attn/reference.h"
#include "fixtures/fail_alloc.h"

/* Numbers in the shape of out and lse of o for n queries, and the arguments that write them. */
typedef struct results {
    char *out;
    float *lse;
    att_attention_args args;
} results;

static results results_of(const operands *o, int64_t first, int64_t n)
{
    const shape m = o->n;
    results r = {(char *)check_numbers(m.batch * m.heads * n * m.value_dim, 8), check_numbers(m.batch * m.heads * n, 9),
                 o->args};
    r.args.q = slice(o->args.q, 2, first, n);
    att_wrap(&r.args.out, r.out, o->args.out.dtype, ATT_DIMS(m.batch, m.heads, n, m.value_dim), NULL);
    att_wrap(&r.args.lse, r.lse, ATT_F32, ATT_DIMS(m.batch, m.heads, n), NULL);
    return r;
}

static void results_free(results *r) { free(r->out), free(r->lse); }

/* Row i of r is row `row` of the full pass, of sequences [b, last). */
static void assert_same_row(const operands *o, int64_t row, const results *r, int64_t i, int64_t b, int64_t last)
{
    const shape m = o->n;
    const int64_t n = r->args.q.dim[2], bytes = m.value_dim * (int64_t)att_dtype_size(o->args.out.dtype);
    for (int64_t h = b * m.heads; h < last * m.heads; h++) {
        if (memcmp((const char *)o->out + (h * m.tq + row) * bytes, r->out + (h * n + i) * bytes, (size_t)bytes))
            fail_msg("%s, %d heads, dim %d: query %d differs", att_dtype_name(o->args.out.dtype), (int)m.heads,
                     (int)m.head_dim, (int)row);
        assert_same_bits(o->lse + h * m.tq + row, r->lse + h * n + i, 1);
    }
}

/* ---- token by token */

static const struct {
    int64_t heads, kv_heads, head_dim, value_dim;
} heads[] = {{1, 1, 1, 1}, {2, 2, 64, 64}, {8, 1, 5, 3}, {4, 2, 80, 40}, {3, 1, 33, 130}, {2, 1, 128, 128}};
static const struct {
    int64_t left; /* of a window; -1: causal */
    const att_modifier *const *modifier;
} relations[] = {{-1, NULL}, {37, NULL}, {-1, &att_modifier_alibi}, {300, &att_modifier_softcap}};

static void relate(att_attention_spec *s, operands *o, int relation, float *slopes)
{
    const att_modifier *m = relations[relation].modifier ? *relations[relation].modifier : NULL;
    if (relations[relation].left < 0)
        add_mask(s, att_mask_causal);
    else
        add_window(s, relations[relation].left, 0);
    if (m)
        add_modifier(s, m, m == att_modifier_softcap ? 3 : 0);
    s->align = ATT_ALIGN_BOTTOM_RIGHT;
    for (int64_t h = 0; h < o->n.heads; h++)
        slopes[h] = 0.02f * (float)(h + 1);
    if (m == att_modifier_alibi)
        att_wrap(param_at(&o->args, 0), slopes, ATT_F32, ATT_DIMS(o->n.heads), NULL);
}

/* Chunks of `chunk` tokens are added and attended from, all but the first `start`, which are there before. */
static void decode_all(att_ctx *ctx, const operands *o, const att_attention_spec *s, int64_t start, int64_t chunk)
{
    att_plan *plan = plan_of(ctx, s);
    att_cache *c = cache_of(ctx, plan, o->n.batch);
    append(ctx, c, &o->args, 0, start);
    for (int64_t t = start; t < o->n.tk; t += chunk) {
        const int64_t n = o->n.tk - t < chunk ? o->n.tk - t : chunk;
        append(ctx, c, &o->args, t, n);
        assert_int_equal(att_cache_length(c, o->n.batch - 1), t + n);
        results r = results_of(o, t, n);
        r.args = with_cache(r.args, c);
        check_ok(ctx, att_forward(plan, &r.args));
        for (int64_t i = 0; i < n; i++)
            assert_same_row(o, t + i, &r, i, 0, o->n.batch);
        results_free(&r);
    }
    att_cache_free(c);
    att_plan_free(plan);
}

static void tokens_one_by_one_and_in_chunks_give_the_bits_of_the_full_pass(void **state)
{
    (void)state;
    static const struct {
        int64_t tokens, start, chunk;
    } ways[] = {{70, 0, 1}, {265, 0, 1}, {265, 250, 1}, {1030, 1019, 2}, {2100, 2040, 20}, {300, 0, 130}, {77, 1, 33}};
    enum { WAYS = sizeof ways / sizeof *ways };
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);) {
        int done = 0;
        for (int w = 0; w < WAYS; w++)
            for (int h = w % check_step(COUNT(heads)); h < COUNT(heads); h += check_step(COUNT(heads)), done++) {
                const shape m = {2,
                                 heads[h].heads,
                                 heads[h].kv_heads,
                                 ways[w].tokens,
                                 ways[w].tokens,
                                 heads[h].head_dim,
                                 heads[h].value_dim};
                operands o = make(m);
                att_attention_spec s = spec_of(m);
                float slopes[8];
                relate(&s, &o, (w + h) % COUNT(relations), slopes);
                /* where pairs of bf16 are multiplied, the full pass rounds weights that decoding does not */
                const bool pairs = att_kernels_of(ctx->isa)->bf16.scores;
                const att_dtype dtypes[] = {ATT_F32, ATT_F16, pairs ? ATT_F32 : ATT_BF16};
                store_as(ctx, dtypes[(w + h + h / 3) % 3], &o, &s);
                run(ctx, &s, &o.args);
                decode_all(ctx, &o, &s, ways[w].start, ways[w].chunk);
                operands_free(&o);
            }
        print_message("%s: %d shapes\n", att_isa(ctx), done);
    }
}

/* ---- any stages, types and lengths: what tensors give */

static bool prepares_keys(const trial *t)
{
    return t->spec.score == att_score_cosine || (t->spec.score == att_score_additive && t->spec.score_dim);
}

/* Puts the trial's keys and values into a cache: each sequence as long as it is, in chunks. */
static att_cache *fill_cache(att_ctx *ctx, const trial *t, const att_plan *plan)
{
    const shape n = shapes[t->c->of[SHAPE]];
    att_cache *c = cache_of(ctx, plan, n.batch);
    for (int64_t b = 0; b < n.batch; b++) {
        const int64_t length = t->args.k_lengths ? t->args.k_lengths[b] : n.tk;
        for (int64_t first = 0, count; first < length; first += count) {
            count = 1 + (int64_t)(check_bits(t->seed, (uint64_t)first) % 40);
            count = length - first < count ? length - first : count;
            append_one(ctx, c, &t->args, b, first, count);
        }
        assert_int_equal(att_cache_length(c, b), length);
    }
    return c;
}

static void check_weights(att_ctx *ctx, const trial *t, const att_plan *plan, const att_attention_args *cached)
{
    const shape n = shapes[t->c->of[SHAPE]];
    const int64_t queries = t->args.q_lengths ? t->args.q_lengths[0] : n.tq;
    const int64_t keys = t->args.k_lengths ? t->args.k_lengths[0] : n.tk;
    float *expected = check_numbers(queries * keys, 1), *got = check_numbers(queries * keys, 2);
    check_ok(ctx, att_weights(plan, &t->args, 0, n.heads - 1, 0, queries, expected));
    check_ok(ctx, att_weights(plan, cached, 0, n.heads - 1, 0, queries, got));
    assert_same_bits(expected, got, queries * keys);
    free(expected), free(got);
}

static void check_described(att_ctx *ctx, const trial *t, const att_plan *plan, const att_attention_args *cached)
{
    att_plan_info tensors = {.size = sizeof tensors}, cache = {.size = sizeof cache};
    check_ok(ctx, att_plan_describe(plan, &t->args, &tensors));
    check_ok(ctx, att_plan_describe(plan, cached, &cache));
    assert_string_equal(tensors.forward.kernel, cache.forward.kernel);
    assert_non_null(strstr(cache.forward.why, "cache"));
    assert_true(tensors.forward.flops == cache.forward.flops && tensors.skipped == cache.skipped &&
                tensors.bytes == cache.bytes);
    assert_int_equal(cache.backward.workspace, 0);
    assert_null(cache.backward.kernel);
}

static void check_trial(att_ctx *ctx, trial *t)
{
    att_plan *plan = plan_of(ctx, &t->spec);
    att_cache *c = fill_cache(ctx, t, plan);
    const int64_t n = check_count(&t->args.out), rows = check_count(&t->args.lse);
    const size_t bytes = (size_t)n * att_dtype_size(t->spec.dtype);
    char *expected = (char *)check_numbers(n, 3);
    float *lse = check_numbers(rows, 4);
    check_ok(ctx, att_forward(plan, &t->args));
    memcpy(expected, t->args.out.data, bytes);
    memcpy(lse, t->args.lse.data, (size_t)rows * sizeof *lse);
    memset(t->args.out.data, 0x55, bytes);
    const att_attention_args cached = with_cache(t->args, c);
    check_ok(ctx, att_forward(plan, &cached));
    if (memcmp(expected, t->args.out.data, bytes))
        fail_msg("%s: another result with a cache", name_of(t->c));
    assert_same_bits(lse, t->args.lse.data, rows);
    check_weights(ctx, t, plan, &cached);
    check_described(ctx, t, plan, &cached);
    free(expected), free(lse);
    att_cache_free(c);
    att_plan_free(plan);
}

static void any_stages_give_the_bits_that_tensors_give(void **state)
{
    (void)state;
    enum { TRIALS = 1500 };
    att_ctx *ctx[MOST_LEVELS];
    int done = 0, refused = 0;
    for (int i = 0; i < levels(SET); i++)
        ctx[i] = check_open(att_isa_name(nth_set(i)), 2);
    for (int i = 0; i < TRIALS; i += check_step(10)) {
        choice c;
        trial t;
        for (int f = 0; f < FACTORS; f++)
            c.of[f] = (int)(check_bits(5, (uint64_t)(i * FACTORS + f)) % (uint64_t)(f == PLACE ? RAGGED : levels(f)));
        if (!possible(&c))
            continue;
        make_trial(&t, &c, (uint64_t)i * 1000);
        if (prepares_keys(&t)) {
            att_plan *plan = plan_of(ctx[c.of[SET]], &t.spec);
            att_cache *cache;
            assert_int_equal(att_cache_new(plan, 1, &cache), ATT_ERR_UNSUPPORTED);
            assert_null(cache);
            check_message(ctx[c.of[SET]], "prepares keys");
            att_plan_free(plan);
            refused++;
        } else {
            check_trial(ctx[c.of[SET]], &t);
            done++;
        }
        trial_free(&t);
    }
    print_message("%d combinations, and %d that prepare keys\n", done, refused);
    for (int i = 0; i < levels(SET); i++)
        att_close(ctx[i]);
}

static void any_number_of_threads_gives_the_same_bits(void **state)
{
    (void)state;
    const shape m = {2, 4, 2, 2, 4500, 48, 40};
    operands o = make(m);
    att_attention_spec s = spec_of(m);
    int64_t lengths[4];
    choose(CAUSAL | BOOLEAN | BIAS, &o, &s, lengths);
    float *first = malloc((size_t)out_count(m) * sizeof *first);
    att_ctx *alone = check_open(NULL, 1);
    run(alone, &s, &o.args);
    att_close(alone);
    memcpy(first, o.out, (size_t)out_count(m) * sizeof *first);
    for (int threads = 1; threads <= 16; threads += check_step(5)) {
        att_ctx *ctx = check_open(NULL, threads);
        att_plan *plan = plan_of(ctx, &s);
        att_cache *c = cache_of(ctx, plan, m.batch);
        append(ctx, c, &o.args, 0, 4097);
        append(ctx, c, &o.args, 4097, m.tk - 4097);
        const att_attention_args a = with_cache(o.args, c);
        memset(o.out, 0, (size_t)out_count(m) * sizeof *o.out);
        check_ok(ctx, att_forward(plan, &a));
        assert_same_bits(first, o.out, out_count(m));
        att_cache_free(c);
        att_plan_free(plan);
        att_close(ctx);
    }
    free(first);
    operands_free(&o);
}

/* ---- taken off, and moved */

/* An expected sequence: token i is from this sequence and time of the operands. */
enum { LONGEST = 600, MOST = 5 };
typedef struct model {
    int length[MOST];
    struct {
        int sequence, time;
    } token[MOST][LONGEST];
} model;

/* The cache's result for each sequence is that of tensors with these tokens. */
static void check_against(att_ctx *ctx, const att_plan *plan, const operands *o, const att_cache *c, const model *m)
{
    const shape n = o->n;
    operands like = make(n);
    int64_t lengths[MOST], dims[] = {n.head_dim, n.value_dim};
    const float *from[] = {o->k, o->v};
    float *to[] = {like.k, like.v};
    for (int64_t b = 0; b < n.batch; b++) {
        lengths[b] = m->length[b];
        assert_int_equal(att_cache_length(c, b), lengths[b]);
        for (int i = 0; i < 2; i++)
            for (int64_t h = 0; h < n.kv_heads; h++)
                for (int t = 0; t < m->length[b]; t++)
                    memcpy(to[i] + ((b * n.kv_heads + h) * n.tk + t) * dims[i],
                           from[i] +
                               ((m->token[b][t].sequence * n.kv_heads + h) * n.tk + m->token[b][t].time) * dims[i],
                           (size_t)dims[i] * sizeof(float));
    }
    like.args.k_lengths = lengths;
    like.args.q = o->args.q;
    check_ok(ctx, att_forward(plan, &like.args));
    const att_attention_args cached = with_cache(o->args, c);
    check_ok(ctx, att_forward(plan, &cached));
    assert_same_bits(like.out, o->out, out_count(n));
    assert_same_bits(like.lse, o->lse, n.batch * n.heads * n.tq);
    operands_free(&like);
}

/* A random change of both; n is how many of the operands' tokens have been taken. */
static void change(att_ctx *ctx, att_cache *c, const operands *o, model *m, uint64_t seed)
{
    const int sequences = (int)o->n.batch, kind = (int)(check_bits(seed, 0) % 8), b = (int)(check_bits(seed, 1) % 5);
    const int count = (int)(check_bits(seed, 2) % (kind == 0 ? 290 : 9)), time = (int)(check_bits(seed, 3) % 300);
    if (kind < 4 && m->length[b] + count <= LONGEST) {
        append_one(ctx, c, &o->args, b, 0, 0);
        const att_tensor k = sequence_of(slice(o->args.k, 2, time, count), b),
                         v = sequence_of(slice(o->args.v, 2, time, count), b);
        check_ok(ctx, att_cache_append(c, b, &k, &v));
        for (int i = 0; i < count; i++) {
            m->token[b][m->length[b]].sequence = b;
            m->token[b][m->length[b]++].time = time + i;
        }
    } else if (kind < 6) {
        const int length = (int)(check_bits(seed, 4) % (uint64_t)(m->length[b] + 1));
        check_ok(ctx, att_cache_truncate(c, b, length));
        m->length[b] = length;
    } else { /* to fewer or more, and back */
        enum { MANY = 2 * MOST };
        int64_t some[MANY], from[MOST];
        const int n = 1 + (int)(check_bits(seed, 4) % MANY);
        const model before = *m;
        for (int i = 0; i < n; i++)
            some[i] = (int64_t)(check_bits(seed, 100 + (uint64_t)i) % (uint64_t)sequences);
        for (int i = 0; i < sequences; i++) {
            from[i] = (int64_t)(check_bits(seed, 5 + (uint64_t)i) % (uint64_t)n);
            m->length[i] = before.length[some[from[i]]];
            memcpy(m->token[i], before.token[some[from[i]]], sizeof m->token[i]);
        }
        check_ok(ctx, att_cache_select(c, n, some));
        assert_int_equal(att_cache_length(c, n), -1);
        check_ok(ctx, att_cache_select(c, sequences, from));
    }
}

static void sequences_are_what_was_added_taken_off_and_moved_to_them(void **state)
{
    (void)state;
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);) {
        const shape n = {MOST, 2, 1, 1, LONGEST, 24, 7};
        operands o = make(n);
        const att_attention_spec s = spec_of(n);
        att_plan *plan = plan_of(ctx, &s);
        att_cache *c = cache_of(ctx, plan, n.batch);
        static model m;
        memset(&m, 0, sizeof m);
        for (uint64_t i = 0; i < 400; i += (uint64_t)check_step(10)) {
            change(ctx, c, &o, &m, i);
            check_against(ctx, plan, &o, c, &m);
        }
        check_ok(ctx, att_cache_truncate(c, ATT_ALL_SEQUENCES, 0));
        memset(m.length, 0, sizeof m.length);
        check_against(ctx, plan, &o, c, &m); /* nothing to attend to: 0 and -inf */
        att_cache_free(c);
        att_plan_free(plan);
        operands_free(&o);
    }
}

/* Beams of one long sequence take the memory of one. */
static void what_sequences_have_in_common_is_kept_once(void **state)
{
    (void)state;
    enum { TOKENS = 2000, BEAMS = 64 };
    fail_alloc f = {0};
    att_ctx *ctx = fail_open(&f);
    const shape n = {1, 4, 4, 1, TOKENS, 32, 32};
    operands o = make(n);
    const att_attention_spec s = spec_of(n);
    att_plan *plan = plan_of(ctx, &s);
    att_cache *c = cache_of(ctx, plan, BEAMS);
    append_one(ctx, c, &o.args, 0, 0, TOKENS);
    int64_t from[BEAMS] = {0};
    const long blocks = f.live;
    check_ok(ctx, att_cache_select(c, BEAMS, from));
    assert_true(f.live <= blocks + BEAMS); /* lists of pages, but no page: those would need new blocks */
    for (int64_t b = 0; b < BEAMS; b++)
        assert_int_equal(att_cache_length(c, b), TOKENS);
    att_cache_free(c);
    att_plan_free(plan);
    att_close(ctx);
    assert_int_equal(f.live, 0);
    operands_free(&o);
}

/* They are many where beams are: each takes the memory of some tokens, not of a page of 256. */
static void short_sequences_take_little_memory(void **state)
{
    (void)state;
    enum { SEQUENCES = 64, TOKENS = 20, ROOM = 32 /* tokens, of the smallest page */ };
    fail_alloc f = {0};
    att_ctx *ctx = fail_open(&f);
    const shape n = {SEQUENCES, 4, 4, 1, TOKENS, 32, 32};
    operands o = make(n);
    const att_attention_spec s = spec_of(n);
    att_plan *plan = plan_of(ctx, &s);
    const long before = f.bytes, pages = SEQUENCES * ROOM * 4 * (32 + 32) * (long)sizeof(float);
    att_cache *c = cache_of(ctx, plan, SEQUENCES);
    assert_int_equal(att_cache_bytes(c), f.bytes - before);
    append(ctx, c, &o.args, 0, TOKENS);
    assert_true(f.bytes - before <= 2 * pages + (1 << 18)); /* arenas double; lists and the smallest blocks */
    assert_int_equal(att_cache_bytes(c), f.bytes - before); /* all that it has from the allocator */
    const int64_t from[SEQUENCES + 5] = {1};
    check_ok(ctx, att_cache_select(c, SEQUENCES + 5, from));
    assert_int_equal(att_cache_bytes(c), f.bytes - before);
    att_cache_free(c);
    assert_int_equal(att_cache_bytes(NULL), 0);
    att_plan_free(plan);
    att_close(ctx);
    operands_free(&o);
}

/* ---- any strides */

static void rows_may_lie_as_they_like(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 2);
    const shape n = {2, 3, 3, 1, 300, 20, 12};
    operands o = make(n);
    const att_attention_spec s = spec_of(n);
    att_plan *plan = plan_of(ctx, &s);
    float *tokens = check_numbers(n.batch * n.tk * n.kv_heads * n.head_dim, 77), *result = malloc(sizeof(float) * 72);
    /* [batch, time, heads, dim], times backwards; all heads have the same values */
    const int64_t time = n.kv_heads * n.head_dim, k_stride[] = {n.tk * time, n.head_dim, -time, 1};
    const int64_t v_stride[] = {n.tk * n.value_dim, 0, n.value_dim, 1};
    att_wrap(&o.args.k, tokens + (n.tk - 1) * time, ATT_F32, ATT_DIMS(n.batch, n.kv_heads, n.tk, n.head_dim), k_stride);
    att_wrap(&o.args.v, o.v, ATT_F32, ATT_DIMS(n.batch, n.kv_heads, n.tk, n.value_dim), v_stride);
    check_ok(ctx, att_forward(plan, &o.args));
    assert_int_equal(out_count(n), 72);
    memcpy(result, o.out, 72 * sizeof *result);
    att_cache *c = cache_of(ctx, plan, n.batch);
    append(ctx, c, &o.args, 0, 299);
    append_one(ctx, c, &o.args, 1, 299, 1);
    append_one(ctx, c, &o.args, 0, 299, 1);
    const att_attention_args a = with_cache(o.args, c);
    check_ok(ctx, att_forward(plan, &a));
    assert_same_bits(result, o.out, 72);
    att_cache_free(c);
    att_plan_free(plan);
    free(tokens), free(result);
    operands_free(&o);
    att_close(ctx);
}

/* ---- what is not finite */

static void what_is_not_finite_behind_the_length_or_masked_reaches_nothing(void **state)
{
    (void)state;
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 1);) {
        const shape n = {1, 2, 2, 1, 40, 16, 16};
        operands o = make(n);
        att_attention_spec s = spec_of(n);
        add_mask(&s, att_mask_boolean);
        o.mask[7] = 0;
        for (int i = 0; i < 16; i++)
            o.k[7 * 16 + i] = o.v[7 * 16 + i] = o.k[39 * 16 + i] = o.v[39 * 16 + i] = NAN;
        att_plan *plan = plan_of(ctx, &s);
        att_cache *c = cache_of(ctx, plan, 1);
        append(ctx, c, &o.args, 0, 40);
        check_ok(ctx, att_cache_truncate(c, 0, 39));
        att_wrap(param_at(&o.args, 0), o.mask, ATT_BOOL, ATT_DIMS(1, 1, 1, 39), NULL);
        const att_attention_args a = with_cache(o.args, c);
        check_ok(ctx, att_forward(plan, &a));
        for (int64_t i = 0; i < out_count(n); i++)
            assert_true(isfinite(o.out[i]));
        att_cache_free(c);
        att_plan_free(plan);
        operands_free(&o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_one_by_one_and_in_chunks_give_the_bits_of_the_full_pass),
        cmocka_unit_test(any_stages_give_the_bits_that_tensors_give),
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
        cmocka_unit_test(sequences_are_what_was_added_taken_off_and_moved_to_them),
        cmocka_unit_test(what_sequences_have_in_common_is_kept_once),
        cmocka_unit_test(short_sequences_take_little_memory),
        cmocka_unit_test(rows_may_lie_as_they_like),
        cmocka_unit_test(what_is_not_finite_behind_the_length_or_masked_reaches_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
