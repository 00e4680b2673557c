/* Attention: each wrong argument, and running out of memory. */
#include "attention_trial.h"
#include "fail_alloc.h"

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
    s->mask[0] = &att_mask_causal;
}
static void no_starts(operands *o, att_attention_spec *s)
{
    (void)o;
    s->align = ATT_ALIGN_STARTS;
}
static void no_mask(operands *o, att_attention_spec *s)
{
    (void)o;
    s->mask[0] = &att_mask_boolean;
}
static void no_bias(operands *o, att_attention_spec *s)
{
    (void)o;
    s->modifier[0] = &att_modifier_bias;
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
static void offsets_descend(operands *o, att_attention_spec *s)
{
    (void)s;
    static const int64_t offsets[3] = {0, 6, 5};
    o->args.q_offsets = offsets;
    o->args.n_sequences = 2;
    att_wrap(&o->args.q, o->q, ATT_F32, ATT_DIMS(5, 2, 8), NULL);
    att_wrap(&o->args.k, o->k, ATT_F32, ATT_DIMS(5, 2, 8), NULL);
    att_wrap(&o->args.v, o->v, ATT_F32, ATT_DIMS(5, 2, 8), NULL);
    att_wrap(&o->args.out, o->out, ATT_F32, ATT_DIMS(5, 2, 8), NULL);
    o->args.lse = (att_tensor){0};
}
static void mask_shape_is_wrong(operands *o, att_attention_spec *s)
{
    s->mask[0] = &att_mask_boolean;
    att_wrap(&o->args.mask, o->mask, ATT_BOOL, ATT_DIMS(2, 1, 5, 8), NULL);
}
static void mask_rank_is_wrong(operands *o, att_attention_spec *s)
{
    s->mask[0] = &att_mask_boolean;
    att_wrap(&o->args.mask, o->mask, ATT_BOOL, ATT_DIMS(5, 9), NULL);
}
static void mask_not_wanted(operands *o, att_attention_spec *s)
{
    (void)s;
    att_wrap(&o->args.mask, o->mask, ATT_BOOL, ATT_DIMS(1, 1, 5, 9), NULL);
}

static void window_is_negative(operands *o, att_attention_spec *s)
{
    (void)o;
    s->mask[0] = &att_mask_window;
    s->align = ATT_ALIGN_TOP_LEFT;
    s->window_left = -2;
}
static void window_not_wanted(operands *o, att_attention_spec *s)
{
    (void)o;
    s->window_right = 3;
}
static void window_without_alignment(operands *o, att_attention_spec *s)
{
    (void)o;
    s->mask[0] = &att_mask_window;
}
static int32_t ids[2 * 9];
static void no_documents(operands *o, att_attention_spec *s)
{
    (void)o;
    s->mask[0] = &att_mask_document;
}
static void no_documents_of_keys(operands *o, att_attention_spec *s)
{
    s->mask[0] = &att_mask_document;
    att_wrap(&o->args.q_documents, ids, ATT_I32, ATT_DIMS(2, 5), NULL);
}
static void documents_not_wanted(operands *o, att_attention_spec *s)
{
    (void)s;
    att_wrap(&o->args.k_documents, ids, ATT_I32, ATT_DIMS(2, 9), NULL);
}
static void documents_are_too_few(operands *o, att_attention_spec *s)
{
    s->mask[0] = &att_mask_document;
    att_wrap(&o->args.q_documents, ids, ATT_I32, ATT_DIMS(2, 4), NULL);
}
static void documents_of_other_sequences(operands *o, att_attention_spec *s)
{
    s->mask[0] = &att_mask_document;
    att_wrap(&o->args.q_documents, ids, ATT_I32, ATT_DIMS(3, 5), NULL);
}
static void documents_have_no_rank(operands *o, att_attention_spec *s)
{
    s->mask[0] = &att_mask_document;
    att_wrap(&o->args.q_documents, ids, ATT_I32, ATT_DIMS(5), NULL);
}
static void documents_are_floats(operands *o, att_attention_spec *s)
{
    s->mask[0] = &att_mask_document;
    att_wrap(&o->args.q_documents, ids, ATT_F32, ATT_DIMS(2, 5), NULL);
}
static void cap_is_missing(operands *o, att_attention_spec *s)
{
    (void)o;
    s->modifier[0] = &att_modifier_softcap;
}
static void slopes_of_other_heads(operands *o, att_attention_spec *s)
{
    s->modifier[0] = &att_modifier_alibi;
    s->align = ATT_ALIGN_TOP_LEFT;
    att_wrap(&o->args.modifier_param[0], o->bias, ATT_F32, ATT_DIMS(3), NULL);
}
static void relative(operands *o, att_attention_spec *s, int64_t buckets, float greatest)
{
    s->modifier[0] = &att_modifier_relative;
    s->modifier_value[0] = greatest;
    s->align = ATT_ALIGN_TOP_LEFT;
    att_wrap(&o->args.modifier_param[0], o->bias, ATT_F32, ATT_DIMS(1, buckets), NULL);
}
static void too_few_buckets(operands *o, att_attention_spec *s) { relative(o, s, 3, 20); }
static void buckets_reach_too_far(operands *o, att_attention_spec *s) { relative(o, s, 32, 8); }
static void two_sinks(operands *o, att_attention_spec *s)
{
    (void)o;
    s->modifier[0] = s->modifier[1] = &att_modifier_sink;
}

static const wrong wrongs[] = {
    {"spec.window_left is -2, expected -1 (unbounded) or a count of keys", window_is_negative},
    {"spec.window_right is 3, but the spec has no att_mask_window", window_not_wanted},
    {"spec.align is not given, but \"window\"", window_without_alignment},
    {"args.q_documents is not given", no_documents},
    {"args.k_documents is not given, but the keys (9) are others than the queries (5)", no_documents_of_keys},
    {"args.k_documents is given but the spec has no att_mask_document", documents_not_wanted},
    {"q_documents.dim[1] = 4 but q.dim[2] = 5", documents_are_too_few},
    {"q_documents.dim[0] = 3, expected 1 or the number of sequences = 2", documents_of_other_sequences},
    {"q_documents", documents_have_no_rank},
    {"q_documents", documents_are_floats},
    {"spec.modifier_value[0] is 0, but softcap needs one", cap_is_missing},
    {"modifier_param[0].dim[0] = 3, expected 1 or spec.heads = 2", slopes_of_other_heads},
    {"3 buckets, expected 4 or more", too_few_buckets},
    {"spec.modifier_value, is 8, but 32 buckets have distances up to 8", buckets_reach_too_far},
    {"spec.modifier[0] and [1] are both a sink", two_sinks},
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
    {"args.mask is not given", no_mask},
    {"args.modifier_param[0] is not given", no_bias},
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
    {"args.mask is given but the spec has no att_mask_boolean", mask_not_wanted},
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
        check_says(ctx, wrongs[i].sentence);
        assert_same_bits(untouched.out, o.out, out_count(n));
        drop(&o), drop(&untouched);
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
    drop(&o);
}

/* Everything there is, on stages, types and shapes by chance. */
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
        drop_trial(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_wrong_argument_is_named_and_nothing_is_written),
        cmocka_unit_test(running_out_of_memory_at_any_point_is_an_error_and_leaks_nothing),
        cmocka_unit_test(running_out_of_memory_anywhere_with_any_stages_is_an_error_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
