/* Scores of a caller's own on the matrix product: with all else that there is, they agree with their formulas, and what
 * does not agree, or fit together, is named. */
#include "fixtures/attention.h"
#include "fixtures/cache.h"
#include "fixtures/product_scores.h"

#define COUNT(x) ((int)(sizeof(x) / sizeof(x)[0]))

static const att_score *const scores[] = {&gaussian_score, &polynomial_score, &cosine_score};

static void they_are_verified_at_any_size(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    static const int64_t dims[] = {1, 2, 15, 16, 32, 67, 128};
    for (int i = 0; i < COUNT(scores); i++)
        for (int d = 0; d < COUNT(dims); d++)
            check_ok(ctx,
                     att_verify(ctx, ATT_OPTIONS(att_attention_spec, .heads = 4, .kv_heads = 1 + d % 2,
                                                 .head_dim = dims[d], .scale = d % 2 ? 0.3f : 0, .score = scores[i])));
    att_close(ctx);
}

/* ---- against the formula alone */

typedef struct grads {
    float *dout, *dlse, *dq, *dk, *dv, *dwidth;
    att_attention_grads g;
} grads;

static grads make_grads(const operands *o)
{
    const shape n = o->n;
    grads x = {.g = {.size = sizeof x.g}};
    x.dout = check_numbers(out_count(n), 20);
    x.dlse = check_numbers(n.batch * n.heads * n.tq, 21);
    x.dq = check_numbers(check_count(&o->args.q), 22);
    x.dk = check_numbers(check_count(&o->args.k), 23);
    x.dv = check_numbers(check_count(&o->args.v), 24);
    x.dwidth = check_numbers(n.heads, 25);
    x.g.dout = o->args.out, x.g.dout.data = x.dout;
    x.g.dlse = o->args.lse, x.g.dlse.data = x.dlse;
    x.g.dq = o->args.q, x.g.dq.data = x.dq;
    x.g.dk = o->args.k, x.g.dk.data = x.dk;
    x.g.dv = o->args.v, x.g.dv.data = x.dv;
    return x;
}

static void grads_free(grads *x)
{
    free(x->dout), free(x->dlse), free(x->dq), free(x->dk), free(x->dv), free(x->dwidth);
}

/* As far as roundings of numbers of this size, near 1, lead through some hundred operations. */
static void near(const char *what, const att_tensor *x, const float *expected)
{
    const float *got = x->data;
    double largest = 1;
    for (int64_t i = 0; i < check_count(x); i++)
        largest = fmax(largest, fabs((double)expected[i]));
    for (int64_t i = 0; i < check_count(x); i++)
        if (!(fabs((double)got[i] - (double)expected[i]) <= 2e-5 * largest))
            fail_msg("%s[%d]: %.9g, but pair by pair %.9g", what, (int)i, (double)got[i], (double)expected[i]);
}

/* [1, heads, T, dim] as [T, heads, dim], two sequences */
static void make_ragged(operands *o, grads *x, int64_t *offsets, int64_t *k_offsets)
{
    const shape n = o->n;
    att_tensor *const all[] = {&o->args.q, &o->args.k, &o->args.v, &o->args.out,
                               &x->g.dout, &x->g.dq,   &x->g.dk,   &x->g.dv};
    for (int i = 0; i < COUNT(all); i++)
        att_wrap(all[i], all[i]->data, ATT_F32, ATT_DIMS(all[i]->dim[2], all[i]->dim[1], all[i]->dim[3]), NULL);
    att_wrap(&o->args.lse, o->lse, ATT_F32, ATT_DIMS(n.tq, n.heads), NULL);
    att_wrap(&x->g.dlse, x->dlse, ATT_F32, ATT_DIMS(n.tq, n.heads), NULL);
    offsets[1] = n.tq / 3, offsets[2] = n.tq;
    k_offsets[1] = n.tk / 2, k_offsets[2] = n.tk;
    o->args.n_sequences = 2;
    o->args.q_offsets = offsets;
    o->args.k_offsets = k_offsets;
}

/* Compares the results of the calls of one score, which are added to earlier values. */
static void compare_calls(att_ctx *ctx, att_attention_spec *s, const att_attention_args *a,
                          const att_attention_grads *g)
{
    static const char *const names[] = {"out", "lse", "dq", "dk", "dv", "dwidth"};
    const att_score *score = s->score;
    att_score pairs = *score;
    pairs.flags = 0;
    pairs.tile = pairs.tile_back = NULL;
    pairs.term = NULL;
    pairs.term_back = NULL;
    float *expected[WRITTEN] = {NULL}, *before[WRITTEN] = {NULL};
    for (int i = 0; i < WRITTEN; i++) {
        const att_tensor *t = written(a, g, i);
        if (t->data)
            before[i] = memcpy(check_numbers(check_count(t), 0), t->data, bytes_of(t));
    }
    s->score = &pairs;
    run_both(ctx, s, a, g);
    for (int i = 0; i < WRITTEN; i++) {
        const att_tensor *t = written(a, g, i);
        if (before[i]) {
            expected[i] = memcpy(check_numbers(check_count(t), 0), t->data, bytes_of(t));
            memcpy(t->data, before[i], bytes_of(t));
        }
    }
    s->score = score;
    run_both(ctx, s, a, g);
    for (int i = 0; i < WRITTEN; i++) {
        if (before[i])
            near(names[i < WRITTEN_DPARAM ? i : WRITTEN_DPARAM], written(a, g, i), expected[i]);
        free(before[i]), free(expected[i]);
    }
}

/* A call on the product and pair by pair; the keys that lengths leave out are NaN. */
static void check_call(shape n, const att_score *score, unsigned stages, bool ragged, bool accumulate)
{
    att_ctx *ctx = check_open(NULL, 2);
    operands o = make(n);
    att_attention_spec s = spec_of(n);
    grads x = make_grads(&o);
    int64_t lengths[4], offsets[3] = {0}, k_offsets[3] = {0};
    float widths[8] = {0.7f, 1, -0.4f, 0.2f, 1.3f, 0.1f, 0.5f, 0.9f};
    s.score = score;
    choose(stages, &o, &s, lengths);
    if (score->n_params) {
        att_wrap(param_at(&o.args, 0), widths, ATT_F32, ATT_DIMS(n.heads), NULL);
        att_wrap(dparam_at(&x.g, 0), x.dwidth, ATT_F32, ATT_DIMS(n.heads), NULL);
    }
    for (int64_t b = 0; o.args.k_lengths && b < n.batch; b++)
        for (int64_t h = 0; h < n.kv_heads; h++)
            for (int64_t i = lengths[b] * n.head_dim; i < n.tk * n.head_dim; i++)
                o.k[(b * n.kv_heads + h) * n.tk * n.head_dim + i] = NAN;
    if (ragged)
        make_ragged(&o, &x, offsets, k_offsets);
    x.g.accumulate = accumulate;
    compare_calls(ctx, &s, &o.args, &x.g);
    if (!accumulate)
        check_threads(5 * check_step(3), &s, &o.args, &x.g);
    grads_free(&x);
    operands_free(&o);
    att_close(ctx);
}

static void they_agree_with_the_formula_pair_by_pair(void **state)
{
    (void)state;
    static const shape shapes[] = {{2, 4, 2, 70, 300, 16, 8}, {1, 2, 1, 133, 261, 9, 33}, {2, 2, 2, 3, 40, 32, 16}};
    for (int i = 0; i < COUNT(scores); i++)
        for (int n = i % check_step(COUNT(shapes)); n < COUNT(shapes); n += check_step(COUNT(shapes))) {
            check_call(shapes[n], scores[i], 0, false, n == 0);
            check_call(shapes[n], scores[i], CAUSAL | LENGTHS, false, n == 1);
            check_call(shapes[n], scores[i], CAUSAL | LENGTHS | DROPOUT, false, false);
        }
    for (int i = 0; i < COUNT(scores); i++)
        check_call(shapes[1], scores[i], CAUSAL, true, false);
}

/* ---- decoding */

/* The last queries of a full pass, with its keys in a cache. */
static void a_cache_gives_the_bits_of_the_full_pass(void **state)
{
    (void)state;
    static const att_dtype types[] = {ATT_F32, ATT_F16};
    const shape n = {2, 4, 2, 300, 300, 16, 8};
    for (int i = 0; i < COUNT(scores); i++)
        for (int d = 0; d < COUNT(types); d++) {
            att_ctx *ctx = check_open(NULL, 2);
            operands o = make(n);
            att_attention_spec s = spec_of(n);
            float widths[] = {0.7f, 1, -0.4f, 0.2f};
            s.score = scores[i];
            add_mask(&s, att_mask_causal);
            s.align = ATT_ALIGN_BOTTOM_RIGHT;
            if (s.score->n_params)
                att_wrap(param_at(&o.args, 0), widths, ATT_F32, ATT_DIMS(n.heads), NULL);
            store_as(ctx, types[d], &o, &s);
            run(ctx, &s, &o.args);
            att_plan *plan = plan_of(ctx, &s);
            att_cache *cache = cache_of(ctx, plan, n.batch);
            append(ctx, cache, &o.args, 0, n.tk);
            for (int64_t queries = 1; queries <= 80; queries = queries == 1 ? 3 : queries + 77) { /* few and many */
                att_attention_args a = with_cache(o.args, cache);
                float *out = check_numbers(n.batch * n.heads * queries * n.value_dim, 8);
                a.q = slice(a.q, 2, n.tq - queries, queries);
                a.lse = (att_tensor){0};
                att_wrap(&a.out, out, s.dtype, ATT_DIMS(n.batch, n.heads, queries, n.value_dim), NULL);
                check_ok(ctx, att_forward(plan, &a));
                const int64_t row = n.value_dim * (int64_t)att_dtype_size(s.dtype);
                for (int64_t bh = 0; bh < n.batch * n.heads; bh++)
                    assert_memory_equal((char *)out + bh * queries * row,
                                        (char *)o.out + ((bh + 1) * n.tq - queries) * row, (size_t)(queries * row));
                free(out);
            }
            att_cache_free(cache);
            att_plan_free(plan);
            operands_free(&o);
            att_close(ctx);
        }
}

/* ---- what is wrong */

static void half_of_tile(const att_score_tile *t)
{
    cosine_tile(t);
    t->s[0] *= 0.5f;
}
static void no_change(const att_score_tile *t)
{
    cosine_tile_back(&(att_score_tile){.size = sizeof *t}); /* of no keys */
    memset(t->dquery_term, 0, (size_t)t->queries * sizeof *t->dquery_term);
}
static void nothing_of_keys(const att_score_tile *t)
{
    att_score_tile other = *t;
    float nothing[256];
    other.dkey_term = nothing;
    cosine_tile_back(&other);
}
static void over_queries(const att_score_tile *t)
{
    memset(t->dquery_term, 0, (size_t)t->queries * sizeof *t->dquery_term);
    cosine_tile_back(t);
}
static void over_keys(const att_score_tile *t)
{
    memset(t->dkey_term, 0, (size_t)t->keys * sizeof *t->dkey_term);
    cosine_tile_back(t);
}
static void spreads_nan(const att_score_tile *t)
{
    cosine_tile_back(t);
    for (int j = 0; j < t->keys; j++)
        t->dquery_term[0] += 0 * t->key[j * t->key_stride];
}
static float twice_the_length(const att_score_row *r) { return 2 * inverse_length(r); }
static void half_of_slope(const att_score_row *r, float dterm, float *dx) { inverse_length_back(r, dterm / 2, dx); }
static void over_row(const att_score_row *r, float dterm, float *dx)
{
    memset(dx, 0, (size_t)r->dim * sizeof *dx);
    inverse_length_back(r, dterm, dx);
}

static void each_function_that_disagrees_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *sentence;
        void (*tile)(const att_score_tile *), (*tile_back)(const att_score_tile *);
        float (*term)(const att_score_row *);
        void (*term_back)(const att_score_row *, float, float *);
    } wrongs[] = {
        {.sentence = "tile gives|query 3 and key 41, but formula", .tile = half_of_tile},
        {.sentence = "tile gives|query 3 and key 41, but formula", .term = twice_the_length},
        {.sentence = "tile_back gives|dquery[0], but derivatives", .tile_back = no_change},
        {.sentence = "tile_back gives|dkey[0], but derivatives", .tile_back = nothing_of_keys},
        {.sentence = "tile_back, which overwrites, but should add|dquery_term[0]", .tile_back = over_queries},
        {.sentence = "tile_back, which overwrites, but should add|dkey_term[0]", .tile_back = over_keys},
        {.sentence = "tile_back gives|nan for dquery[0]", .tile_back = spreads_nan},
        {.sentence = "term_back gives|by x[0], but differences of term", .term_back = half_of_slope},
        {.sentence = "term_back, which overwrites, but should add|by x[0]", .term_back = over_row},
    };
    att_ctx *ctx = check_open(NULL, 1);
    for (int i = 0; i < COUNT(wrongs); i++) {
        att_score score = cosine_score;
        score.tile = wrongs[i].tile ? wrongs[i].tile : score.tile;
        score.tile_back = wrongs[i].tile_back ? wrongs[i].tile_back : score.tile_back;
        score.term = wrongs[i].term ? wrongs[i].term : score.term;
        score.term_back = wrongs[i].term_back ? wrongs[i].term_back : score.term_back;
        assert_int_equal(att_verify(ctx, ATT_OPTIONS(att_attention_spec, .heads = 2, .head_dim = 19, .score = &score)),
                         ATT_ERR_ARGUMENT);
        char sentence[256];
        snprintf(sentence, sizeof sentence, "%s", wrongs[i].sentence);
        for (char *part = strtok(sentence, "|"); part; part = strtok(NULL, "|"))
            check_message(ctx, part);
    }
    att_close(ctx);
}

static void refuses(att_ctx *ctx, const att_score *score, int64_t key_dim, const char *words)
{
    att_plan *plan;
    const att_attention_spec *s =
        ATT_OPTIONS(att_attention_spec, .heads = 2, .head_dim = 8, .key_dim = key_dim, .score = score);
    assert_true(att_plan_new(ctx, s, &plan));
    check_message(ctx, words);
}

static void functions_that_do_not_fit_together_are_refused(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    refuses(ctx, &polynomial_score, 9, "spec.key_dim = 9 but spec.head_dim = 8: polynomial needs them equal");
    att_score score = polynomial_score;
    score.tile = NULL;
    refuses(ctx, &score, 8, "\"polynomial\" has ATT_STAGE_PRODUCT, but no tile");
    score = polynomial_score;
    score.tile_back = NULL;
    refuses(ctx, &score, 8, "\"polynomial\" has ATT_STAGE_PRODUCT and a derivative, but no tile_back");
    score = gaussian_score;
    score.term_back = NULL;
    refuses(ctx, &score, 8, "\"gaussian\" has a term of each row and a derivative, but no term_back");
    score = gaussian_score;
    score.flags = 0;
    refuses(ctx, &score, 8, "\"gaussian\" has a term of each row, but not ATT_STAGE_PRODUCT");
    att_close(ctx);
}

static void a_plan_says_that_the_score_runs_on_the_product(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    att_plan *plan =
        plan_of(ctx, ATT_OPTIONS(att_attention_spec, .heads = 2, .head_dim = 8, .score = &polynomial_score));
    att_plan_info info = {.size = sizeof info};
    check_ok(ctx, att_plan_describe(plan, NULL, &info));
    const char *expected = "polynomial in tiles, on the matrix product; 0 modifiers, 0 masks; f32 in place";
    assert_string_equal(info.forward.why, expected);
    assert_string_equal(info.backward.why, expected);
    att_plan_free(plan);
    att_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_are_verified_at_any_size),
        cmocka_unit_test(they_agree_with_the_formula_pair_by_pair),
        cmocka_unit_test(a_cache_gives_the_bits_of_the_full_pass),
        cmocka_unit_test(each_function_that_disagrees_is_named),
        cmocka_unit_test(functions_that_do_not_fit_together_are_refused),
        cmocka_unit_test(a_plan_says_that_the_score_runs_on_the_product),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
