/* Numbers that are huge or not finite, with every stage, type and instruction set, forward and backward. */
#include "fixtures/attention_trial.h"

static float number_at(const att_tensor *x, int64_t i)
{
    float y;
    if (x->dtype == ATT_F32)
        return ((const float *)x->data)[i];
    const att_kernels *k = att_kernels_of(0);
    (x->dtype == ATT_F16 ? k->vector.from_f16 : k->vector.from_bf16)(1, (const uint16_t *)x->data + i, &y);
    return y;
}

/* ---- huge scores */

static void all_finite(const trial *t, const char *what, const att_tensor *x, double most)
{
    for (int64_t i = 0; i < check_count(x); i++)
        if (!(fabs((double)number_at(x, i)) <= most))
            fail_msg("%s\n%s[%d] is %g", name_of(t->c), what, (int)i, (double)number_at(x, i));
}

/* Scores of thousands, up to some 1e4: outputs are still means of values, which are at most 1, but for rounding to
 * their type and of sums; gradients are what derivatives of that size make of slopes of at most 2 * value_dim. */
static void scores_of_1e4_leave_everything_finite(void **state)
{
    (void)state;
    static const float scale = 3e4f;
    static const int factors[] = {SCORE, MODIFIER_1, MASK_1, TYPE};
    att_ctx *ctx = NULL;
    double greatest = 0;
    for (int set = 0; check_next_context(&ctx, 2); set++)
        for (int f = 0; f < COUNT(factors); f++)
            for (int level = 0; level < levels(factors[f]); level++) {
                choice c = {.of = {[SET] = set, [SHAPE] = 2, [PLACE] = STARTS}};
                trial t;
                c.of[factors[f]] = level;
                if (types[c.of[TYPE]].dtype == ATT_F16)
                    continue; /* ends at 65,504 */
                make_trial(&t, &c, (uint64_t)level);
                t.spec.scale = scale;
                run_trial(ctx, &t);
                all_finite(&t, "out", &t.args.out, 1 + 0x1p-7);
                all_finite(&t, "dq", &t.grads.dq, 1e9);
                all_finite(&t, "dk", &t.grads.dk, 1e9);
                all_finite(&t, "dv", &t.grads.dv, 1e9);
                for (int i = 0; i < t.grads.n_dparams; i++)
                    all_finite(&t, "dparam", dparam_of(&t.grads, i), 1e9);
                for (int64_t i = 0; i < check_count(&t.args.lse); i++) {
                    const double lse = ((const float *)t.args.lse.data)[i];
                    if (isnan(lse) || lse == INFINITY)
                        fail_msg("%s\nlse[%d] is %g", name_of(&c), (int)i, lse);
                    greatest = fmax(greatest, lse);
                }
                trial_free(&t);
            }
    assert_true(greatest > 1e4);
}

/* ---- what is not finite */

/* Writes x into numbers of key k of all key heads of a sequence. */
static void poison(const att_call *call, const att_tensor *rows, int64_t sequence, int64_t k, int64_t dim, float x)
{
    for (int64_t h = 0; h < call->plan->spec.kv_heads; h++) {
        const att_rows r = att_call_rows(call, rows, sequence, h, true);
        for (int64_t d = 0; d < dim; d += 1 + (int64_t)isinf(x)) {
            const int64_t at = k * r.stride + d;
            if (r.dtype == ATT_F32)
                ((float *)r.at)[at] = x;
            else
                ((uint16_t *)r.at)[at] = isnan(x) ? 0x7fff : r.dtype == ATT_F16 ? 0x7c00 : 0x7f80;
        }
    }
}

static bool attends(const att_plan *plan, const att_head_view *at, int64_t q, int64_t k)
{
    for (int m = 0; m < plan->masks.n; m++) {
        const att_mask_block pair = att_mask_block_of(plan, m, at, (att_range){q, q + 1}, (att_range){k, k + 1});
        if (!plan->masks.list[m].stage.keep(&pair))
            return false;
    }
    return true;
}

static void clear_row(const att_rows *r, int64_t row, int64_t dim)
{
    memset((char *)r->at + row * r->stride * (int64_t)att_dtype_size(r->dtype), 0,
           (size_t)dim * att_dtype_size(r->dtype));
}

/* One row of out, or of dq, is what it was before. */
static void check_row(const trial *t, const char *what, const att_rows *r, const void *data, const void *before,
                      int64_t row, int64_t dim)
{
    const int64_t size = (int64_t)att_dtype_size(r->dtype);
    const char *now = (const char *)r->at + row * r->stride * size;
    if (memcmp(now, (const char *)before + (now - (const char *)data), (size_t)(dim * size)))
        fail_msg("%s\n%s of query %d, which does not attend to the key, has changed", name_of(t->c), what, (int)row);
}

static void *copy_of(trial *t, const att_tensor *x)
{
    const size_t bytes = (size_t)check_count(x) * att_dtype_size(x->dtype);
    void *copy = hold(t, malloc(bytes + 1));
    return memcpy(copy, x->data, bytes);
}

static void same_as(const trial *t, const char *what, const att_tensor *x, const void *before)
{
    if (memcmp(x->data, before, (size_t)check_count(x) * att_dtype_size(x->dtype)))
        fail_msg("%s\n%s has changed, though no query attends to the key", name_of(t->c), what);
}

/* Key k of a sequence becomes x, and its value too. Rows that do not attend to it stay as they are, and so do their
 * gradients; those of the others are not asked for. If no query attends, nothing at all changes. */
static bool check_key(att_ctx *ctx, trial *t, int64_t sequence, int64_t k, float x)
{
    const att_attention_spec *s = &t->spec;
    bool anybody = false;
    att_plan *plan;
    att_call call;
    assert_int_equal(att_plan_new(ctx, s, &plan), ATT_OK);
    assert_int_equal(att_call_check(plan, &t->args, true, &call), ATT_OK);
    for (int64_t h = 0; h < s->heads; h++) {
        att_head_view at;
        att_call_head(&call, sequence, h, &at);
        const att_rows dout = att_call_rows(&call, &t->grads.dout, sequence, h, false);
        const att_rows dlse = att_call_rows(&call, &t->grads.dlse, sequence, h, false);
        for (int64_t q = 0; q < at.head.tq; q++)
            if (attends(plan, &at, q, k)) {
                clear_row(&dout, q, s->value_dim);
                ((float *)dlse.at)[q * dlse.stride] = 0;
                anybody = true;
            }
    }
    run_trial(ctx, t);
    const void *out = copy_of(t, &t->args.out), *lse = copy_of(t, &t->args.lse), *dq = copy_of(t, &t->grads.dq);
    const void *dk = copy_of(t, &t->grads.dk), *dv = copy_of(t, &t->grads.dv);
    poison(&call, &t->args.k, sequence, k, s->key_dim ? s->key_dim : s->head_dim, x);
    poison(&call, &t->args.v, sequence, k, s->value_dim, x);
    run_trial(ctx, t);
    for (int64_t h = 0; h < s->heads; h++) {
        att_head_view at;
        att_call_head(&call, sequence, h, &at);
        const att_rows dq_rows = att_call_rows(&call, &t->grads.dq, sequence, h, false);
        const att_rows lse_rows = att_call_rows(&call, &t->args.lse, sequence, h, false);
        for (int64_t q = 0; q < at.head.tq; q++) {
            if (attends(plan, &at, q, k))
                continue;
            check_row(t, "out", &at.out, t->args.out.data, out, q, s->value_dim);
            check_row(t, "lse", &lse_rows, t->args.lse.data, lse, q, 1);
            check_row(t, "dq", &dq_rows, t->grads.dq.data, dq, q, s->head_dim);
        }
    }
    if (!anybody) {
        same_as(t, "out", &t->args.out, out);
        same_as(t, "dq", &t->grads.dq, dq);
        same_as(t, "dk", &t->grads.dk, dk);
        same_as(t, "dv", &t->grads.dv, dv);
    }
    att_plan_free(plan);
    return anybody;
}

static void what_is_not_finite_reaches_only_those_who_attend_to_it_whatever_the_stages(void **state)
{
    (void)state;
    enum { TRIALS = 400 };
    static const float strange[] = {NAN, INFINITY};
    att_ctx *ctx[MOST_LEVELS];
    int met = 0, unmet = 0, dot = 0;
    while (*scores[dot] != att_score_dot)
        dot++;
    for (int i = 0; i < levels(SET); i++)
        ctx[i] = check_open(att_isa_name(nth_set(i)), 2);
    for (uint64_t n = 0; n < TRIALS; n += (uint64_t)check_step(8)) {
        choice c;
        for (int f = 0; f < FACTORS; f++)
            c.of[f] = (int)(check_bits(n, (uint64_t)f) % (uint64_t)levels(f));
        if (n % 4 < 2) /* dot and nothing else, which has ways of its own */
            c.of[SCORE] = dot, c.of[MODIFIER_1] = c.of[MODIFIER_2] = c.of[MODIFIER_3] = 0;
        if (!possible(&c))
            continue;
        trial t;
        make_trial(&t, &c, 1000 * n);
        const int64_t batch = shapes[c.of[SHAPE]].batch, b = (int64_t)(n % (uint64_t)batch);
        const int64_t tk =
            c.of[PLACE] == LENGTHS_BOTTOM_RIGHT || c.of[PLACE] == RAGGED ? t.k_lengths[b] : shapes[c.of[SHAPE]].tk;
        if (tk > 0)
            *(check_key(ctx[c.of[SET]], &t, b, (int64_t)(check_bits(n, 99) % (uint64_t)tk), strange[n % 2]) ? &met
                                                                                                            : &unmet) +=
                1;
        trial_free(&t);
    }
    assert_true(check_step(8) > 1 || (met > 100 && unmet > 30));
    for (int i = 0; i < levels(SET); i++)
        att_close(ctx[i]);
}

/* A dropped weight is a weight of 0 and not a mask: 0 times NaN is NaN. */
static void a_value_that_is_not_finite_reaches_all_who_attend_to_it_dropped_or_not(void **state)
{
    (void)state;
    enum { T = 300, D = 8, KEY = 130 };
    static const uint32_t id = 1;
    const shape n = {1, 1, 1, T, T, D, D};
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 1);) {
        operands clean = make(n), o = make(n);
        att_attention_spec s = spec_of(n);
        add_mask(&s, att_mask_causal);
        s.align = ATT_ALIGN_TOP_LEFT;
        s.dropout = 0.5f;
        clean.args.sequence_ids = o.args.sequence_ids = &id;
        for (int d = 0; d < D; d++)
            o.v[KEY * D + d] = d % 2 ? NAN : INFINITY;
        run(ctx, &s, &clean.args);
        run(ctx, &s, &o.args);
        assert_same_bits(clean.out, o.out, KEY * D);
        assert_same_bits(clean.lse, o.lse, T);
        for (int i = KEY * D; i < T * D; i++)
            assert_false(isfinite(o.out[i]));
        operands_free(&clean), operands_free(&o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_of_1e4_leave_everything_finite),
        cmocka_unit_test(what_is_not_finite_reaches_only_those_who_attend_to_it_whatever_the_stages),
        cmocka_unit_test(a_value_that_is_not_finite_reaches_all_who_attend_to_it_dropped_or_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
