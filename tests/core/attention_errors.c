/* Attention: each wrong argument, and running out of memory. */
// labels: portable
#include "fixtures/attention_trial.h"
#include "fixtures/fail_alloc.h"

#include <math.h>

/* One wrong argument: the call must name it and leave the output alone. */
typedef struct wrong {
    const char *sentence; /* must occur in it */
    void (*spoil)(operands *o, att_attention_spec *s);
} wrong;

static void head_dim_differs(operands *o, att_attention_spec *s)
{
    (void)s;
    o->args.k.dim[3] = 7;
}
static void time_of_v_differs(operands *o, att_attention_spec *s)
{
    (void)s;
    o->args.v.dim[2] = 8;
}
static void batch_differs(operands *o, att_attention_spec *s)
{
    (void)s;
    o->args.k.dim[0] = 1;
}
static void rank_is_wrong(operands *o, att_attention_spec *s)
{
    (void)s;
    o->args.q.rank = 3;
}
static void dtype_is_wrong(operands *o, att_attention_spec *s)
{
    (void)s;
    o->args.q.dtype = ATT_F16;
}
static void dim_is_not_contiguous(operands *o, att_attention_spec *s)
{
    (void)s;
    o->args.v.stride[3] = 2;
    o->args.v.dim[2] = 9;
}
static void heads_do_not_divide(operands *o, att_attention_spec *s)
{
    (void)o;
    s->kv_heads = 3;
}
static void no_heads(operands *o, att_attention_spec *s)
{
    (void)o;
    s->heads = 0;
}
static void no_alignment(operands *o, att_attention_spec *s)
{
    (void)o;
    add_mask(s, att_mask_causal);
}
static void no_starts(operands *o, att_attention_spec *s)
{
    (void)o;
    s->align = ATT_ALIGN_STARTS;
}
static void mask_missing(operands *o, att_attention_spec *s)
{
    (void)o;
    add_mask(s, att_mask_boolean);
}
static void no_bias(operands *o, att_attention_spec *s)
{
    (void)o;
    add_modifier(s, att_modifier_bias, 0);
}
static void output_is_input(operands *o, att_attention_spec *s)
{
    (void)s;
    o->args.out.data = o->q;
}
static void output_repeats(operands *o, att_attention_spec *s)
{
    (void)s;
    o->args.out.stride[1] = 0;
}
static void nothing_given(operands *o, att_attention_spec *s)
{
    (void)s;
    o->args.q.data = NULL;
}
static void size_missing(operands *o, att_attention_spec *s)
{
    (void)s;
    o->args.size = 0;
}
static void scale_is_nan(operands *o, att_attention_spec *s)
{
    (void)o;
    s->scale = NAN;
}
static void everything_is_dropped(operands *o, att_attention_spec *s)
{
    (void)o;
    s->dropout = 1;
}
static void dropout_is_nan(operands *o, att_attention_spec *s)
{
    (void)o;
    s->dropout = NAN;
}
static void no_ids(operands *o, att_attention_spec *s)
{
    (void)o;
    s->dropout = 0.5f;
}
static void too_long(operands *o, att_attention_spec *s)
{
    (void)s;
    static const int64_t lengths[2] = {9, 10};
    o->args.k_lengths = lengths;
}
static void mask_shape_is_wrong(operands *o, att_attention_spec *s)
{
    add_mask(s, att_mask_boolean);
    att_wrap(param_at(&o->args, 0), o->mask, ATT_BOOL, ATT_DIMS(2, 1, 5, 8), NULL);
}
static void mask_rank_is_wrong(operands *o, att_attention_spec *s)
{
    add_mask(s, att_mask_boolean);
    att_wrap(param_at(&o->args, 0), o->mask, ATT_BOOL, ATT_DIMS(5, 9), NULL);
}
static void mask_not_wanted(operands *o, att_attention_spec *s)
{
    (void)s;
    att_wrap(param_at(&o->args, 0), o->mask, ATT_BOOL, ATT_DIMS(1, 1, 5, 9), NULL);
}

static void window_is_negative(operands *o, att_attention_spec *s)
{
    (void)o;
    add_window(s, -2, 0);
    s->align = ATT_ALIGN_TOP_LEFT;
}
static void value_not_wanted(operands *o, att_attention_spec *s)
{
    (void)o;
    add_stage(s, (att_stage){.mask = att_mask_causal, .value = {0, 3}});
}
static void modifier_and_mask(operands *o, att_attention_spec *s)
{
    (void)o;
    add_stage(s, (att_stage){.mask = att_mask_causal, .modifier = att_modifier_sink});
}
static void neither(operands *o, att_attention_spec *s)
{
    (void)o;
    add_stage(s, (att_stage){.value = {1}});
}
static const att_mask mask_of_no_size = {.name = "no size", .keep = scattered, .user = &one_of};
static void stage_without_size(operands *o, att_attention_spec *s)
{
    (void)o;
    add_mask(s, &mask_of_no_size);
}
static void window_without_alignment(operands *o, att_attention_spec *s)
{
    (void)o;
    add_window(s, 0, 0);
}
static int32_t ids[2 * 9];
static void no_documents(operands *o, att_attention_spec *s)
{
    (void)o;
    add_mask(s, att_mask_document);
}
static void no_documents_of_keys(operands *o, att_attention_spec *s)
{
    add_mask(s, att_mask_document);
    att_wrap(param_at(&o->args, 0), ids, ATT_I32, ATT_DIMS(2, 5), NULL);
}
static void documents_not_wanted(operands *o, att_attention_spec *s)
{
    (void)s;
    att_wrap(param_at(&o->args, 1), ids, ATT_I32, ATT_DIMS(2, 9), NULL);
}
static void documents_are_too_few(operands *o, att_attention_spec *s)
{
    add_mask(s, att_mask_document);
    att_wrap(param_at(&o->args, 0), ids, ATT_I32, ATT_DIMS(2, 4), NULL);
}
static void documents_of_other_sequences(operands *o, att_attention_spec *s)
{
    add_mask(s, att_mask_document);
    att_wrap(param_at(&o->args, 0), ids, ATT_I32, ATT_DIMS(3, 5), NULL);
}
static void documents_have_no_rank(operands *o, att_attention_spec *s)
{
    add_mask(s, att_mask_document);
    att_wrap(param_at(&o->args, 0), ids, ATT_I32, ATT_DIMS(5), NULL);
}
static void documents_are_floats(operands *o, att_attention_spec *s)
{
    add_mask(s, att_mask_document);
    att_wrap(param_at(&o->args, 0), ids, ATT_F32, ATT_DIMS(2, 5), NULL);
}
static void cap_is_missing(operands *o, att_attention_spec *s)
{
    (void)o;
    add_modifier(s, att_modifier_softcap, 0);
}
static void slopes_of_other_heads(operands *o, att_attention_spec *s)
{
    add_modifier(s, att_modifier_alibi, 0);
    s->align = ATT_ALIGN_TOP_LEFT;
    att_wrap(param_at(&o->args, 0), o->bias, ATT_F32, ATT_DIMS(3), NULL);
}
static void relative(operands *o, att_attention_spec *s, int64_t buckets, float greatest)
{
    add_modifier(s, att_modifier_relative, (double)greatest);
    s->align = ATT_ALIGN_TOP_LEFT;
    att_wrap(param_at(&o->args, 0), o->bias, ATT_F32, ATT_DIMS(1, buckets), NULL);
}
static void too_few_buckets(operands *o, att_attention_spec *s) { relative(o, s, 3, 20); }
static void buckets_reach_too_far(operands *o, att_attention_spec *s) { relative(o, s, 32, 8); }
static void two_sinks(operands *o, att_attention_spec *s)
{
    (void)o;
    add_modifier(s, att_modifier_sink, 0);
    add_modifier(s, att_modifier_sink, 0);
}

/* Five tokens one after the other, two sequences. */
static void ragged(operands *o, const int64_t *offsets)
{
    att_tensor *const t[] = {&o->args.q, &o->args.k, &o->args.v, &o->args.out};
    for (int i = 0; i < 4; i++)
        att_wrap(t[i], t[i]->data, ATT_F32, ATT_DIMS(5, 2, 8), NULL);
    o->args.lse = (att_tensor){0};
    o->args.q_offsets = offsets;
    o->args.n_sequences = 2;
}
static void offsets_descend(operands *o, att_attention_spec *s)
{
    static const int64_t offsets[3] = {0, 6, 5};
    (void)s;
    ragged(o, offsets);
}
static void offsets_begin_late(operands *o, att_attention_spec *s)
{
    static const int64_t offsets[3] = {1, 2, 5};
    (void)s;
    ragged(o, offsets);
}
static void offsets_end_early(operands *o, att_attention_spec *s)
{
    static const int64_t offsets[3] = {0, 2, 4};
    (void)s;
    ragged(o, offsets);
}
static void lengths_beside_offsets(operands *o, att_attention_spec *s)
{
    static const int64_t offsets[3] = {0, 2, 5};
    (void)s;
    ragged(o, offsets);
    o->args.k_lengths = offsets;
}
static void fewer_sequences_than_none(operands *o, att_attention_spec *s)
{
    static const int64_t offsets[3] = {0, 2, 5};
    (void)s;
    ragged(o, offsets);
    o->args.n_sequences = -1;
}
static void sequences_are_not_counted(operands *o, att_attention_spec *s)
{
    static const int64_t offsets[3] = {0, 2, 5};
    (void)s;
    ragged(o, offsets);
    o->args.n_sequences = 0;
}
static void nothing_is_set(operands *o, att_attention_spec *s)
{
    (void)s;
    o->args = (att_attention_args){.size = sizeof o->args};
}
static void start_is_no_position(operands *o, att_attention_spec *s)
{
    static const int64_t starts[2] = {3, INT64_MAX};
    s->align = ATT_ALIGN_STARTS;
    o->args.q_starts = starts;
}
static const att_score empty_score = {.size = sizeof(att_score), .name = "nothing"};
static void score_without_formula(operands *o, att_attention_spec *s)
{
    (void)o;
    s->score = &empty_score;
}
static const att_modifier empty_modifier = {.size = sizeof(att_modifier), .name = "nothing"};
static void modifier_without_formula(operands *o, att_attention_spec *s)
{
    (void)o;
    add_modifier(s, att_modifier_sink, 0);
    add_modifier(s, &empty_modifier, 0);
}
static const att_mask empty_mask = {.size = sizeof(att_mask), .name = "nothing"};
static void mask_without_keep(operands *o, att_attention_spec *s)
{
    (void)o;
    add_mask(s, &empty_mask);
}

static const wrong wrongs[] = {
    {"q_offsets[0] = 1, expected 0", offsets_begin_late},
    {"q_offsets[2] = 4 but q.dim[0] = 5", offsets_end_early},
    {"args.k_lengths is given together with args.q_offsets", lengths_beside_offsets},
    {"args.n_sequences is -1", fewer_sequences_than_none},
    {"args.n_sequences is 0, but args.q_offsets is given and q is [5, ", sequences_are_not_counted},
    {"q is not set: it has no data and no dimensions", nothing_is_set},
    {"q_starts[1] = 9223372036854775807 is not a position", start_is_no_position},
    {"spec.score has no formula", score_without_formula},
    {"spec.stage[1].modifier has no formula", modifier_without_formula},
    {"spec.stage[0].mask has no keep", mask_without_keep},
    {"value[0] of att_mask_window is -2, expected -1 (unbounded) or a count of keys", window_is_negative},
    {"spec.stage[0].value[1] is 3, but causal has none", value_not_wanted},
    {"spec.stage[0] has both a modifier and a mask, expected one of the two", modifier_and_mask},
    {"spec.stage[0] has neither a modifier nor a mask, expected one of the two", neither},
    {"att_mask", stage_without_size},
    {"spec.align is not given, but \"window\"", window_without_alignment},
    {"args.n_params is 0, but the plan has 2: q_documents of \"document\", k_documents of \"document\"", no_documents},
    {"the k_documents of \"document\" are not given, but the number of keys (9) is not that of queries (5)",
     no_documents_of_keys},
    {"args.n_params is 2, but the plan has 0", documents_not_wanted},
    {"q_documents.dim[1] = 4 but q.dim[2] = 5", documents_are_too_few},
    {"q_documents.dim[0] = 3, expected 1 or the number of sequences = 2", documents_of_other_sequences},
    {"q_documents", documents_have_no_rank},
    {"q_documents", documents_are_floats},
    {"spec.stage[0].value[0] is 0, but softcap needs one", cap_is_missing},
    {"slopes.dim[0] = 3, expected 1 or spec.heads = 2", slopes_of_other_heads},
    {"3 buckets, expected 4 or more", too_few_buckets},
    {"value[0], is 8, but 32 buckets have distances up to 8", buckets_reach_too_far},
    {"spec.stage has two sinks, and [1] is the second", two_sinks},
    {"k.dim[3] = 7 but spec.head_dim = 8", head_dim_differs},
    {"v.dim[2] = 8 but k.dim[2] = 9", time_of_v_differs},
    {"k.dim[0] = 1 but q.dim[0] = 2", batch_differs},
    {"q", rank_is_wrong},
    {"f16", dtype_is_wrong},
    {"v.stride[3] = 2", dim_is_not_contiguous},
    {"spec.kv_heads = 3 does not divide spec.heads = 2", heads_do_not_divide},
    {"spec.heads is 0", no_heads},
    {"spec.align is not given", no_alignment},
    {"args.q_starts is NULL", no_starts},
    {"args.n_params is 0, but the plan has 1: mask of \"boolean\"", mask_missing},
    {"args.n_params is 0, but the plan has 1: bias of \"bias\"", no_bias},
    {"out", output_is_input},
    {"out", output_repeats},
    {"q", nothing_given},
    {"att_attention_args", size_missing},
    {"spec.scale is nan", scale_is_nan},
    {"spec.dropout is 1", everything_is_dropped},
    {"spec.dropout is nan", dropout_is_nan},
    {"args.sequence_ids is NULL", no_ids},
    {"k_lengths[1] = 10, expected 0..9", too_long},
    {"q_offsets[2] = 5 is less than q_offsets[1] = 6", offsets_descend},
    {"mask.dim[3] = 8, expected 1 or the longest key = 9", mask_shape_is_wrong},
    {"mask", mask_rank_is_wrong},
    {"args.n_params is 1, but the plan has 0", mask_not_wanted},
};

static void each_wrong_argument_is_named_and_nothing_is_written(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    const shape n = {2, 2, 2, 5, 9, 8, 8};
    for (size_t i = 0; i < sizeof wrongs / sizeof wrongs[0]; i++) {
        operands o = make(n), untouched = make(n);
        att_attention_spec s = spec_of(n);
        wrongs[i].spoil(&o, &s);
        if (!att_attention(ctx, &s, &o.args))
            fail_msg("accepted: %s", wrongs[i].sentence);
        check_message(ctx, wrongs[i].sentence);
        assert_same_bits(untouched.out, o.out, out_count(n));
        operands_free(&o), operands_free(&untouched);
    }
    att_close(ctx);
}

static void running_out_of_memory_at_any_point_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    const shape n = {2, 2, 2, 5, 9, 8, 8};
    operands o = make(n);
    const att_attention_spec s = spec_of(n);
    bool worked = false;
    for (long at = 1; !worked && at < 100; at++) {
        fail_alloc f = {.fail_at = at};
        att_ctx *ctx;
        att_status e = att_open(&ctx, ATT_OPTIONS(att_config, .n_threads = 2, .allocator = fail_allocator(&f)));
        if (!e) {
            e = att_attention(ctx, &s, &o.args);
            worked = !e;
            att_close(ctx);
        }
        assert_true(e == ATT_OK || e == ATT_ERR_MEMORY);
        assert_int_equal(f.live, 0);
    }
    assert_true(worked);
    operands_free(&o);
}

static void weights_of_what_is_not_there_are_refused(void **state)
{
    (void)state;
    const struct {
        const char *sentence;
        int64_t sequence, head, first, count;
        bool null;
    } wrong[] = {{"sequence is 2, but there are 2", 2, 0, 0, 1, false},
                 {"sequence is -1, but there are 2", -1, 0, 0, 1, false},
                 {"head is 2, but there are 2", 0, 2, 0, 1, false},
                 {"queries from 4, 2 of them, but the sequence has 5", 0, 0, 4, 2, false},
                 {"queries from -1, 2 of them, but the sequence has 5", 0, 0, -1, 2, false},
                 {"queries from 9223372036854775807, 1 of them, but the sequence has 5", 0, 0, INT64_MAX, 1, false},
                 {"queries from 0, -1 of them, but the sequence has 5", 0, 0, 0, -1, false},
                 {"weights is NULL", 0, 0, 0, 1, true}};
    att_ctx *ctx = check_open(NULL, 1);
    operands o = make((shape){2, 2, 2, 5, 9, 8, 8});
    const att_attention_spec s = spec_of(o.n);
    att_plan *plan;
    assert_int_equal(att_plan_new(ctx, &s, &plan), ATT_OK);
    for (int i = 0; i < COUNT(wrong); i++) {
        float weights[9] = {7};
        assert_int_equal(att_weights(plan, &o.args, wrong[i].sequence, wrong[i].head, wrong[i].first, wrong[i].count,
                                     wrong[i].null ? NULL : weights),
                         ATT_ERR_ARGUMENT);
        check_message(ctx, wrong[i].sentence);
        assert_true(weights[0] == 7);
    }
    assert_int_equal(att_weights(plan, &o.args, 0, 0, 5, 0, NULL), ATT_OK);
    att_plan_free(plan);
    operands_free(&o);
    att_close(ctx);
}

static void pieces_that_do_not_fit_are_not_merged(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    operands a = make((shape){2, 2, 2, 5, 9, 8, 8}), b = make(a.n), untouched = make(a.n);
    const struct {
        const char *sentence;
        att_tensor out, lse, out2, lse2;
    } wrong[] = {{"lse.rank = 0, expected 1..5", a.args.out, {0}, b.args.out, b.args.lse},
                 {"lse2.rank = 0, expected 1..5", a.args.out, a.args.lse, b.args.out, {0}},
                 {"out [2, 2, 5] has 3 dimensions but must have 4", a.args.lse, a.args.lse, b.args.out, b.args.lse},
                 {"out (at", a.args.out, a.args.lse, a.args.out, b.args.lse},
                 {"lse (at", a.args.out, a.args.lse, b.args.out, a.args.lse}};
    for (int i = 0; i < COUNT(wrong); i++) {
        assert_true(att_merge(ctx, &wrong[i].out, &wrong[i].lse, &wrong[i].out2, &wrong[i].lse2) != ATT_OK);
        check_message(ctx, wrong[i].sentence);
    }
    assert_int_equal(att_merge(ctx, &a.args.out, NULL, &b.args.out, &b.args.lse), ATT_ERR_ARGUMENT);
    check_message(ctx, "lse is NULL");
    assert_same_bits(untouched.out, a.out, out_count(a.n));
    operands_free(&a), operands_free(&b), operands_free(&untouched);
    att_close(ctx);
}

/* A formula alone has no backward. */
static void what_has_no_derivative_has_no_backward(void **state)
{
    (void)state;
    const att_score score = {
        .size = sizeof(att_score), .name = "bell alone", .param = own_score->param, .n_params = 1, .formula = bell};
    const att_modifier modifier = {.size = sizeof(att_modifier),
                                   .name = "wave alone",
                                   .param = own_modifier->param,
                                   .n_params = 1,
                                   .formula = wave};
    att_ctx *ctx = check_open(NULL, 1);
    for (int i = 0; i < 2; i++) {
        operands o = make((shape){1, 1, 1, 5, 9, 8, 8});
        att_attention_spec s = spec_of(o.n);
        att_attention_grads g = {.size = sizeof g, .dout = o.args.out};
        att_plan *plan;
        s.score = i ? NULL : &score;
        if (i)
            add_modifier(&s, &modifier, 0);
        if (i)
            att_wrap(param_at(&o.args, 0), o.bias, ATT_F32, ATT_DIMS(1), NULL);
        else
            att_wrap(param_at(&o.args, 0), o.bias, ATT_F32, ATT_DIMS(1, 8), NULL);
        assert_int_equal(att_plan_new(ctx, &s, &plan), ATT_OK);
        assert_int_equal(att_forward(plan, &o.args), ATT_OK);
        assert_int_equal(att_backward(plan, &o.args, &g), ATT_ERR_UNSUPPORTED);
        check_message(ctx, i ? "\"wave alone\" has no derivative" : "\"bell alone\" has no derivative");
        att_plan_free(plan);
        operands_free(&o);
    }
    att_close(ctx);
}

static void a_call_can_be_cancelled(void **state)
{
    (void)state;
    volatile int cancel = 0;
    att_ctx *ctx;
    att_plan *plan;
    operands o = make((shape){1, 2, 2, 70, 300, 8, 8});
    const att_attention_spec s = spec_of(o.n);
    float *dout = check_numbers(out_count(o.n), 1), *dq = check_numbers(2 * 70 * 8, 2);
    att_attention_grads g = {.size = sizeof g, .dout = o.args.out, .dq = o.args.q};
    g.dout.data = dout;
    g.dq.data = dq;
    assert_int_equal(att_open(&ctx, ATT_OPTIONS(att_config, .n_threads = 2, .cancel = &cancel)), ATT_OK);
    assert_int_equal(att_plan_new(ctx, &s, &plan), ATT_OK);
    for (int i = 0; i < 2; i++) {
        cancel = 1;
        assert_int_equal(i ? att_backward(plan, &o.args, &g) : att_forward(plan, &o.args), ATT_ERR_CANCELLED);
        cancel = 0;
        assert_int_equal(i ? att_backward(plan, &o.args, &g) : att_forward(plan, &o.args), ATT_OK);
    }
    att_plan_free(plan);
    att_close(ctx);
    free(dout), free(dq), operands_free(&o);
}

/* Everything there is, on random stages, types and shapes. */
static att_status run_all(att_ctx *ctx, const trial *t, const void *before, float *weights)
{
    const size_t bytes = (size_t)check_count(&t->args.out) * att_dtype_size(t->args.out.dtype);
    att_plan *plan = NULL;
    att_plan_info info = {.size = sizeof info};
    att_status e = att_plan_new(ctx, &t->spec, &plan);
    e = e ? e : att_plan_describe(plan, &t->args, &info);
    e = e ? e : att_weights(plan, &t->args, 0, 0, 0, t->q_offsets[1] < 2 ? t->q_offsets[1] : 2, weights);
    e = e ? e : att_forward(plan, &t->args);
    if (e)
        assert_memory_equal(t->args.out.data, before, bytes);
    e = e ? e : att_backward(plan, &t->args, &t->grads);
    att_plan_free(plan);
    return e;
}

static void running_out_of_memory_anywhere_with_any_stages_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    enum { TRIALS = 60, MOST_KEYS = 1100 };
    float weights[2 * MOST_KEYS];
    for (uint64_t n = 0; n < TRIALS; n += (uint64_t)check_step(6)) {
        choice c;
        for (int f = 0; f < FACTORS; f++)
            c.of[f] = (int)(check_bits(n, (uint64_t)f) % (uint64_t)levels(f));
        if (!possible(&c))
            continue;
        trial t;
        make_trial(&t, &c, 1000 * n);
        t.grads.accumulate = n % 2;
        void *before = hold(&t, malloc((size_t)check_count(&t.args.out) * sizeof(float) + 1));
        memcpy(before, t.args.out.data, (size_t)check_count(&t.args.out) * att_dtype_size(t.args.out.dtype));
        bool done = false;
        for (long at = 1; !done; at++) {
            fail_alloc f = {0};
            att_ctx *ctx = fail_open(&f);
            f.fail_at = f.calls + at;
            const att_status e = run_all(ctx, &t, before, weights);
            done = f.calls < f.fail_at;
            if (e != (done ? ATT_OK : ATT_ERR_MEMORY))
                fail_msg("%s\nallocation %ld fails: %s", name_of(&c), at, att_error(ctx));
            att_close(ctx);
            assert_int_equal(f.live, 0);
        }
        trial_free(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_wrong_argument_is_named_and_nothing_is_written),
        cmocka_unit_test(weights_of_what_is_not_there_are_refused),
        cmocka_unit_test(pieces_that_do_not_fit_are_not_merged),
        cmocka_unit_test(what_has_no_derivative_has_no_backward),
        cmocka_unit_test(a_call_can_be_cancelled),
        cmocka_unit_test(running_out_of_memory_at_any_point_is_an_error_and_leaks_nothing),
        cmocka_unit_test(running_out_of_memory_anywhere_with_any_stages_is_an_error_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
