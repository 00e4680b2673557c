/* A cache of sequences that get different numbers of tokens: the bits of a full pass over all of them, and of each
 * sequence alone, in any type; forks of a prefix share its pages until tokens are added. */
#include "fixtures/cache.h"
#include "attn/forward/forward.h"
#include "fixtures/fail_alloc.h"

#define COUNT(x) ((int)(sizeof(x) / sizeof(x)[0]))
enum { SEQUENCES = 5, TOKENS = 330 };
static const int64_t various[SEQUENCES] = {61, 0, TOKENS, 1, 278};

enum { MAX_HEADS = 10 };
typedef enum stages { PLAIN, ALIBI, WINDOW_DROPOUT, DOCUMENTS, STAGES } stages;

/* All tokens of all sequences, batched, in the cache's type and in f32, and the full pass over them. */
typedef struct whole {
    operands o, floats;
    att_attention_spec spec;
    att_plan *plan;
    stages stages;
    const int64_t *lengths; /* [SEQUENCES] */
    float slopes[MAX_HEADS];
    int32_t documents[SEQUENCES * TOKENS];
} whole;

static const uint32_t ids[SEQUENCES] = {9, 7, 0, UINT32_MAX, 4};

static void add_stages(whole *w, int64_t heads)
{
    att_attention_args *a = &w->o.args;
    add_mask(&w->spec, att_mask_causal);
    w->spec.align = ATT_ALIGN_BOTTOM_RIGHT;
    if (w->stages == ALIBI) {
        add_modifier(&w->spec, att_modifier_alibi, 0);
        for (int64_t h = 0; h < heads; h++)
            w->slopes[h] = 0.02f * (float)(h + 1);
        att_wrap(param_at(a, 0), w->slopes, ATT_F32, ATT_DIMS(heads), NULL);
    } else if (w->stages == WINDOW_DROPOUT) {
        add_window(&w->spec, 40, 0);
        w->spec.dropout = 0.3f;
        a->dropout_seed = 77;
        a->sequence_ids = ids;
    } else if (w->stages == DOCUMENTS) {
        add_mask(&w->spec, att_mask_document);
        for (int i = 0; i < SEQUENCES * TOKENS; i++)
            w->documents[i] = i % TOKENS / 23;
        att_wrap(param_at(a, 0), w->documents, ATT_I32, ATT_DIMS(SEQUENCES, TOKENS), NULL);
        add_param(a, a->param[0]);
    }
}

/* The first `prefix` tokens of all sequences are those of sequence 0. */
static void share_prefix(const operands *o, int64_t prefix)
{
    const struct {
        float *x;
        int64_t dim;
    } rows[] = {{o->k, o->n.head_dim}, {o->v, o->n.value_dim}};
    for (int i = 0; i < 2; i++)
        for (int64_t b = 1; b < SEQUENCES; b++)
            for (int64_t h = 0; h < o->n.kv_heads; h++)
                memcpy(rows[i].x + (b * o->n.kv_heads + h) * TOKENS * rows[i].dim, rows[i].x + h * TOKENS * rows[i].dim,
                       (size_t)(prefix * rows[i].dim) * sizeof(float));
}

typedef struct setting {
    att_dtype dtype;
    stages stages;
    int64_t heads, kv_heads;
    const int64_t *lengths;
    int64_t prefix;
} setting;

static whole *make_whole(att_ctx *ctx, setting t)
{
    const shape n = {SEQUENCES, t.heads, t.kv_heads, TOKENS, TOKENS, 24, 20};
    whole *w = calloc(1, sizeof *w);
    w->o = make(n);
    w->floats = make(n);
    share_prefix(&w->o, t.prefix), share_prefix(&w->floats, t.prefix);
    w->spec = spec_of(n);
    w->stages = t.stages;
    w->lengths = t.lengths;
    add_stages(w, t.heads);
    store_as(ctx, t.dtype, &w->o, &w->spec);
    w->o.args.q_lengths = w->o.args.k_lengths = t.lengths;
    w->plan = plan_of(ctx, &w->spec);
    check_ok(ctx, att_forward(w->plan, &w->o.args));
    return w;
}

static void whole_free(whole *w)
{
    att_plan_free(w->plan);
    operands_free(&w->o), operands_free(&w->floats);
    free(w);
}

/* ---- some tokens of each sequence */

/* Tokens [first[b], first[b] + n[b]) of each sequence b, and where they are in a ragged batch. */
typedef struct step {
    int64_t first[SEQUENCES], n[SEQUENCES], offsets[SEQUENCES + 1];
} step;

static void set_offsets(step *s)
{
    for (int b = 0; b < SEQUENCES; b++)
        s->offsets[b + 1] = s->offsets[b] + s->n[b];
}

/* Returns x [sequences, heads, time, dim] as [tokens, heads, dim]; the caller frees y->data. */
static att_tensor gather(const att_tensor *x, const step *s)
{
    const int64_t heads = x->dim[1], dim = x->dim[3], tokens = s->offsets[SEQUENCES];
    const size_t row = (size_t)dim * att_dtype_size(x->dtype);
    att_tensor y;
    char *to = malloc((size_t)(tokens * heads) * row + 1);
    att_wrap(&y, to, x->dtype, ATT_DIMS(tokens, heads, dim), NULL);
    for (int b = 0; b < SEQUENCES; b++)
        for (int64_t i = 0; i < s->n[b]; i++)
            for (int64_t h = 0; h < heads; h++, to += row)
                memcpy(to, (const char *)x->data + (size_t)((b * heads + h) * x->dim[2] + s->first[b] + i) * row, row);
    return y;
}

static void append_step(att_ctx *ctx, att_cache *c, const att_attention_args *from, const step *s)
{
    const att_tensor k = gather(&from->k, s), v = gather(&from->v, s);
    check_ok(ctx, att_cache_append_ragged(c, s->offsets, &k, &v));
    free(k.data), free(v.data);
}

/* Returns the call for the queries of a step; the caller frees q, out, lse and the first parameter's memory. */
static att_attention_args call_of(const whole *w, const step *s, const att_cache *c)
{
    const int64_t tokens = s->offsets[SEQUENCES], heads = w->o.n.heads;
    att_attention_args a = w->o.args;
    a.q_lengths = a.k_lengths = NULL;
    a.k = a.v = (att_tensor){0};
    a.cache = c;
    a.n_sequences = SEQUENCES;
    a.q_offsets = s->offsets;
    a.q = gather(&w->o.args.q, s);
    const int64_t count = tokens * heads * w->o.n.value_dim;
    att_wrap(&a.out, check_numbers(count, 5), w->spec.dtype, ATT_DIMS(tokens, heads, w->o.n.value_dim), NULL);
    att_wrap(&a.lse, check_numbers(tokens * heads, 6), ATT_F32, ATT_DIMS(tokens, heads), NULL);
    if (w->stages == DOCUMENTS) { /* of queries [tokens]; of keys [sequences, longest] */
        static att_tensor param[2];
        att_tensor all = w->o.args.param[0];
        all.rank = 4, all.dim[3] = all.dim[1] = 1, all.dim[2] = TOKENS;
        param[0] = gather(&all, s);
        param[0].rank = 1;
        param[1] = w->o.args.param[1];
        param[1].dim[1] = 0;
        for (int b = 0; b < SEQUENCES; b++)
            param[1].dim[1] = att_max(param[1].dim[1], att_cache_length(c, b));
        a.param = param;
    }
    return a;
}

static void free_call(const whole *w, const att_attention_args *a)
{
    free(a->q.data), free(a->out.data), free(a->lse.data);
    if (w->stages == DOCUMENTS)
        free(a->param[0].data);
}

static void assert_same_row(const whole *w, const att_attention_args *a, int64_t token, int b, int64_t time)
{
    const int64_t heads = w->o.n.heads;
    const size_t row = (size_t)w->o.n.value_dim * att_dtype_size(w->spec.dtype);
    for (int64_t h = 0; h < heads; h++) {
        const int64_t from = (b * heads + h) * TOKENS + time, to = token * heads + h;
        if (memcmp((const char *)w->o.out + (size_t)from * row, (const char *)a->out.data + (size_t)to * row, row))
            fail_msg("%s, stages %d: query %d of sequence %d differs", att_dtype_name(w->spec.dtype), (int)w->stages,
                     (int)time, b);
        assert_same_bits(w->o.lse + from, (const float *)a->lse.data + to, 1);
    }
}

/* Queries of one sequence from which on decoding is not used */
static int64_t many(const whole *w) { return ATT_DECODE_QUERIES / (w->o.n.heads / w->o.n.kv_heads) + 1; }

/* Queries of a step have the bits of the full pass; where that rounds weights of bf16, those of sequences with many. */
static void check_step_bits(att_ctx *ctx, const whole *w, const step *s, const att_cache *c)
{
    const bool rounds = w->spec.dtype == ATT_BF16 && att_kernels_of(ctx->isa)->bf16.scores;
    const att_attention_args a = call_of(w, s, c);
    check_ok(ctx, att_forward(w->plan, &a));
    for (int b = 0; b < SEQUENCES; b++)
        for (int64_t i = 0; i < s->n[b]; i++)
            if (!rounds || s->n[b] >= many(w))
                assert_same_row(w, &a, s->offsets[b] + i, b, s->first[b] + i);
    free_call(w, &a);
}

/* Returns a random step: some sequences get none, some one, some many. */
static step next_step(const whole *w, const att_cache *c, uint64_t seed)
{
    static const int64_t counts[] = {0, 1, 1, 3, 9, 40, 200};
    step s = {.offsets = {0}};
    for (int b = 0; b < SEQUENCES; b++) {
        s.first[b] = att_cache_length(c, b);
        s.n[b] = att_min(counts[check_bits(seed, (uint64_t)b) % COUNT(counts)], w->lengths[b] - s.first[b]);
    }
    set_offsets(&s);
    return s;
}

static bool is_complete(const whole *w, const att_cache *c)
{
    for (int b = 0; b < SEQUENCES; b++)
        if (att_cache_length(c, b) < w->lengths[b])
            return false;
    return true;
}

static const struct {
    int64_t heads, kv_heads;
} heads[] = {{2, 2}, {4, 1}, {10, 1}};
static const att_dtype types[] = {ATT_F32, ATT_F16, ATT_BF16};

/* Returns all kinds of calls, one after the other. */
static setting setting_of(int i)
{
    const int h = (i + i / STAGES) % COUNT(heads);
    return (setting){.dtype = types[(i + i / 3) % 3],
                     .stages = (stages)(i % STAGES),
                     .heads = heads[h].heads,
                     .kv_heads = heads[h].kv_heads,
                     .lengths = various};
}
enum { SETTINGS = 3 * STAGES };

/* Tokens come into the cache, step by step, until all are there. */
static void complete(att_ctx *ctx, const whole *w, att_cache *c, uint64_t seed)
{
    for (; !is_complete(w, c); seed += 100) {
        const step s = next_step(w, c, seed);
        append_step(ctx, c, seed % 2 ? &w->o.args : &w->floats.args, &s); /* of its type, or f32 */
        check_step_bits(ctx, w, &s, c);
    }
}

static void ragged_prompts_and_tokens_give_the_bits_of_the_full_pass(void **state)
{
    (void)state;
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);)
        for (int i = 0; i < SETTINGS; i += check_step(3)) {
            whole *w = make_whole(ctx, setting_of(i));
            att_cache *c = cache_of(ctx, w->plan, SEQUENCES);
            complete(ctx, w, c, (uint64_t)i);
            att_cache_free(c);
            whole_free(w);
        }
}

/* ---- alone */

/* Queries of a sequence of the step get the same from a cache that has nothing else; out and lse of the batch are a's.
 */
static void check_alone(att_ctx *ctx, const whole *w, const step *s, int b, att_cache *alone,
                        const att_attention_args *a)
{
    const int64_t n = s->n[b], first = s->first[b], heads = w->o.n.heads, dim = w->o.n.value_dim;
    const size_t row = (size_t)dim * att_dtype_size(w->spec.dtype);
    att_attention_args one = w->o.args;
    const att_tensor k = slice(slice(one.k, 0, b, 1), 2, first, n), v = slice(slice(one.v, 0, b, 1), 2, first, n);
    check_ok(ctx, att_cache_append(alone, ATT_ALL_SEQUENCES, &k, &v));
    one = with_cache(one, alone);
    one.q_lengths = NULL;
    one.q = slice(slice(one.q, 0, b, 1), 2, first, n);
    one.sequence_ids = ids + b;
    att_wrap(&one.out, check_numbers(n * heads * dim, 5), w->spec.dtype, ATT_DIMS(1, heads, n, dim), NULL);
    att_wrap(&one.lse, check_numbers(n * heads, 6), ATT_F32, ATT_DIMS(1, heads, n), NULL);
    check_ok(ctx, att_forward(w->plan, &one));
    for (int64_t i = 0; i < n; i++)
        for (int64_t h = 0; h < heads; h++) {
            const int64_t in_batch = (s->offsets[b] + i) * heads + h;
            assert_memory_equal((char *)one.out.data + (size_t)(h * n + i) * row,
                                (char *)a->out.data + (size_t)in_batch * row, row);
            assert_same_bits((float *)one.lse.data + h * n + i, (float *)a->lse.data + in_batch, 1);
        }
    free(one.out.data), free(one.lse.data);
}

static void a_sequence_of_a_ragged_batch_gets_what_it_gets_alone(void **state)
{
    (void)state;
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);)
        for (int i = 0; i < SETTINGS; i++) {
            setting t = setting_of(i);
            t.stages = t.stages == DOCUMENTS ? PLAIN : t.stages;
            whole *w = make_whole(ctx, t);
            att_cache *c = cache_of(ctx, w->plan, SEQUENCES), *alone[SEQUENCES];
            for (int b = 0; b < SEQUENCES; b++)
                alone[b] = cache_of(ctx, w->plan, 1);
            for (uint64_t seed = 50; seed < 55; seed++) {
                const step s = next_step(w, c, seed);
                append_step(ctx, c, &w->o.args, &s);
                const att_attention_args a = call_of(w, &s, c);
                check_ok(ctx, att_forward(w->plan, &a));
                for (int b = 0; b < SEQUENCES; b++)
                    check_alone(ctx, w, &s, b, alone[b], &a);
                free_call(w, &a);
            }
            for (int b = 0; b < SEQUENCES; b++)
                att_cache_free(alone[b]);
            att_cache_free(c);
            whole_free(w);
        }
}

static void any_number_of_threads_gives_the_same_bits(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 16; threads += check_step(5)) {
        att_ctx *ctx = check_open(NULL, threads);
        whole *w = make_whole(ctx, setting_of(1));
        att_cache *c = cache_of(ctx, w->plan, SEQUENCES);
        complete(ctx, w, c, 3);
        att_cache_free(c);
        whole_free(w);
        att_close(ctx);
    }
}

/* ---- weights, and what a plan says beforehand */

static void weights_and_the_description_are_those_of_the_call(void **state)
{
    (void)state;
    fail_alloc f = {0};
    att_ctx *ctx = fail_open(&f);
    whole *w = make_whole(ctx, setting_of(0));
    att_cache *c = cache_of(ctx, w->plan, SEQUENCES);
    const step all = {.n = {60, 0, 329, 0, 269}, .offsets = {0, 60, 60, 389, 389, 658}},
               last = {.first = {60, 0, 329, 0, 269}, .n = {1, 0, 1, 1, 9}, .offsets = {0, 1, 1, 2, 3, 12}};
    static float expected[9 * TOKENS], got[9 * TOKENS];
    append_step(ctx, c, &w->o.args, &all);
    append_step(ctx, c, &w->o.args, &last);
    const att_attention_args a = call_of(w, &last, c);
    check_ok(ctx, att_weights(w->plan, &w->o.args, 4, 1, 269, 9, expected));
    check_ok(ctx, att_weights(w->plan, &a, 4, 1, 0, 9, got));
    assert_same_bits(expected, got, 9 * 278);
    att_plan_info info = {.size = sizeof info};
    check_ok(ctx, att_plan_describe(w->plan, &a, &info));
    assert_string_equal(info.forward.kernel, "flash-forward");
    /* each query has its keys: 61, 330, 1 and 270 to 278 pairs of 2 heads, 2 (24 + 20) operations each */
    assert_true(info.forward.flops >= 2.0 * 2 * (24 + 20) * (61 + 330 + 1 + 9 * 274));
    att_plan_trim(w->plan);
    const long before = f.bytes;
    f.peak = before;
    check_ok(ctx, att_forward(w->plan, &a));
    assert_true(f.peak - before >= (long)info.forward.workspace &&
                f.peak - before <= (long)info.forward.workspace + 4096);
    free_call(w, &a);
    att_cache_free(c);
    whole_free(w);
    att_close(ctx);
}

/* ---- forks of a prefix */

/* One sequence of `prefix` tokens becomes all of them, which continue raggedly, and from where they are cut off again.
 */
static void forks_of_a_prefix_give_the_bits_of_the_full_pass(void **state)
{
    (void)state;
    static const int64_t prefixes[] = {5, 150, 256, 290}, longer[SEQUENCES] = {300, 290, TOKENS, 291, 329};
    static const int64_t from[SEQUENCES] = {0};
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);)
        for (int i = 0; i < SETTINGS; i += check_step(3)) {
            setting t = setting_of(i);
            t.lengths = longer;
            t.prefix = prefixes[i % 4];
            whole *w = make_whole(ctx, t);
            att_cache *c = cache_of(ctx, w->plan, 1);
            append_one(ctx, c, &w->o.args, 0, 0, t.prefix);
            check_ok(ctx, att_cache_select(c, SEQUENCES, from));
            complete(ctx, w, c, (uint64_t)i);
            for (int b = 0; b < SEQUENCES; b += 2)
                check_ok(ctx, att_cache_truncate(c, b, t.prefix - b * t.prefix / 5));
            complete(ctx, w, c, (uint64_t)i + 7);
            att_cache_free(c);
            whole_free(w);
        }
}

/* One token for each sequence of [first, last), none for the others. */
static void append_to(att_ctx *ctx, att_cache *c, const att_attention_args *from, int64_t first, int64_t last)
{
    int64_t offsets[65] = {0};
    const att_tensor *const x[] = {&from->k, &from->v};
    att_tensor y[2];
    for (int64_t b = 0; b < att_cache_sequences(c); b++)
        offsets[b + 1] = offsets[b] + (first <= b && b < last);
    for (int i = 0; i < 2; i++) { /* the same token again and again */
        att_wrap(&y[i], x[i]->data, ATT_F32, ATT_DIMS(last - first, x[i]->dim[1], x[i]->dim[3]), NULL);
        y[i].stride[0] = 0;
    }
    check_ok(ctx, att_cache_append_ragged(c, offsets, &y[0], &y[1]));
}

static void forks_share_memory_until_tokens_are_added_to_them(void **state)
{
    (void)state;
    enum { PREFIX = 2000, FORKS = 64, PAGES = 8, PAGE = 256 * 4 * (32 + 32) * sizeof(float) };
    fail_alloc f = {0};
    att_ctx *ctx = fail_open(&f);
    operands o = make((shape){1, 4, 4, 1, PREFIX, 32, 32});
    const att_attention_spec s = spec_of(o.n);
    const int64_t from[FORKS] = {0};
    att_plan *plan = plan_of(ctx, &s);
    const long before = f.bytes;
    att_cache *c = cache_of(ctx, plan, 1);
    append(ctx, c, &o.args, 0, PREFIX);
    const long prefix = f.bytes - before;
    assert_true(prefix >= PAGES * (long)PAGE);
    check_ok(ctx, att_cache_select(c, FORKS, from));
    assert_true(f.bytes - before < prefix + PAGE); /* lists alone */
    append_to(ctx, c, &o.args, 3, 4);              /* the others share on; arenas double */
    assert_true(f.bytes - before <= 2 * (PAGES + 4) * (long)PAGE);
    append_to(ctx, c, &o.args, 30, 62);
    assert_true(f.bytes - before <= 2 * (PAGES + 33 + 4) * (long)PAGE); /* a page each, the other seven are shared */
    const long forked = f.bytes;
    check_ok(ctx, att_cache_truncate(c, ATT_ALL_SEQUENCES, PREFIX - 100));
    append_to(ctx, c, &o.args, 30, 62); /* to what is theirs already */
    assert_int_equal(f.bytes, forked);
    att_cache_free(c);
    att_plan_free(plan);
    att_close(ctx);
    assert_int_equal(f.live, 0);
    operands_free(&o);
}

/* ---- out of memory */

static void running_out_of_memory_leaves_all_sequences_unchanged(void **state)
{
    (void)state;
    static const int64_t longer[SEQUENCES] = {300, 290, TOKENS, 291, 329}, from[SEQUENCES] = {0};
    const step s = {.first = {150, 150, 150, 150, 150}, .n = {1, 0, 150, 106, 2}, .offsets = {0, 1, 1, 151, 257, 259}};
    bool worked = false;
    int failures = 0;
    for (long at = 1; !worked && at < 100; at++) {
        fail_alloc f = {0};
        att_ctx *ctx = fail_open(&f);
        whole *w = make_whole(ctx, (setting){ATT_F16, ALIBI, 2, 2, longer, 150});
        att_cache *c = cache_of(ctx, w->plan, 1);
        append_one(ctx, c, &w->o.args, 0, 0, 150);
        check_ok(ctx, att_cache_select(c, SEQUENCES, from));
        const att_tensor k = gather(&w->floats.args.k, &s), v = gather(&w->floats.args.v, &s);
        f.fail_at = f.calls + at;
        const att_status e = att_cache_append_ragged(c, s.offsets, &k, &v);
        f.fail_at = 0;
        worked = !e;
        failures += !worked;
        assert_true(worked || e == ATT_ERR_MEMORY);
        for (int b = 0; b < SEQUENCES; b++)
            assert_int_equal(att_cache_length(c, b), worked ? 150 + s.n[b] : 150);
        complete(ctx, w, c, 5);
        free(k.data), free(v.data);
        att_cache_free(c);
        whole_free(w);
        att_close(ctx);
        assert_int_equal(f.live, 0);
    }
    assert_true(worked);
    assert_true(failures > 1); /* one of them after some pages have been made their own */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ragged_prompts_and_tokens_give_the_bits_of_the_full_pass),
        cmocka_unit_test(a_sequence_of_a_ragged_batch_gets_what_it_gets_alone),
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
        cmocka_unit_test(weights_and_the_description_are_those_of_the_call),
        cmocka_unit_test(forks_of_a_prefix_give_the_bits_of_the_full_pass),
        cmocka_unit_test(forks_share_memory_until_tokens_are_added_to_them),
        cmocka_unit_test(running_out_of_memory_leaves_all_sequences_unchanged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
