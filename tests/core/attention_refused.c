/* A call that uses everything there is, with one number or pointer that is wrong: it is named with what was expected,
 * and nothing is written; the same where memory runs out. */
// labels: portable
#include "fixtures/attention.h"
#include "fixtures/fail_alloc.h"

#include <stddef.h>

typedef struct call {
    att_attention_spec spec;
    att_attention_args args;
    att_stage stage[8];
    att_tensor param[9];
    att_attention_grads grads;
    att_tensor dparam[9];
} call;

enum { V, WQ, WK, OF_BIAS, TABLE, SINKS, Q_DOCUMENTS, K_DOCUMENTS, MASK }; /* parameters */

/* Lets the lists be those of this copy, all but those that are wrong. */
static void own_lists(call *c)
{
    c->spec.stage = c->spec.stage ? c->stage : NULL;
    c->args.param = c->args.param ? c->param : NULL;
    c->grads.dparam = c->grads.dparam ? c->dparam : NULL;
}

/* All tensors of a call lie here, one after the other. */
static float memory[1 << 13];
static size_t used;

static void set_tensor(att_tensor *t, att_dtype dtype, int rank, const int64_t *dim)
{
    size_t count = 1;
    for (int i = 0; i < rank; i++)
        count *= (size_t)dim[i];
    assert_int_equal(att_wrap(t, memory + used, dtype, rank, dim, NULL), ATT_OK);
    used += count + 3;
    assert_true(used <= sizeof memory / sizeof *memory);
}

static call everything(void)
{
    static const uint32_t ids[] = {3, 1};
    static const int rank[] = {2, 3, 3, 4, 2, 1};
    static const int64_t dim[][4] = {{2, 4}, {2, 4, 8}, {1, 4, 7}, {1, 2, 5, 9}, {2, 8}, {2}};
    call c = {.spec = {.size = sizeof c.spec,
                       .heads = 2,
                       .head_dim = 8,
                       .key_dim = 7,
                       .value_dim = 6,
                       .score = att_score_additive,
                       .score_dim = 4,
                       .n_stages = 8,
                       .align = ATT_ALIGN_BOTTOM_RIGHT,
                       .dropout = 0.25f},
              .args = {.size = sizeof c.args, .sequence_ids = ids, .n_params = 9},
              .stage = {{.modifier = att_modifier_bias},
                        {.modifier = att_modifier_softcap, .value = {5}},
                        {.modifier = att_modifier_relative, .value = {20}},
                        {.modifier = att_modifier_sink},
                        {.mask = att_mask_causal},
                        {.mask = att_mask_window, .value = {-1, -1}},
                        {.mask = att_mask_document},
                        {.mask = att_mask_boolean}},
              .grads = {.size = sizeof c.grads, .n_dparams = 9}};
    c.spec.stage = c.stage;
    c.args.param = c.param;
    c.grads.dparam = c.dparam;
    att_attention_args *a = &c.args;
    att_attention_grads *g = &c.grads;
    used = 0;
    set_tensor(&a->q, ATT_F32, ATT_DIMS(2, 2, 5, 8));
    set_tensor(&a->k, ATT_F32, ATT_DIMS(2, 2, 9, 7));
    set_tensor(&a->v, ATT_F32, ATT_DIMS(2, 2, 9, 6));
    set_tensor(&a->out, ATT_F32, ATT_DIMS(2, 2, 5, 6));
    set_tensor(&a->lse, ATT_F32, ATT_DIMS(2, 2, 5));
    set_tensor(&c.param[MASK], ATT_BOOL, ATT_DIMS(2, 1, 5, 9));
    set_tensor(&c.param[Q_DOCUMENTS], ATT_I32, ATT_DIMS(2, 5));
    set_tensor(&c.param[K_DOCUMENTS], ATT_I32, ATT_DIMS(2, 9));
    for (int i = V; i <= SINKS; i++)
        set_tensor(&c.param[i], ATT_F32, rank[i], dim[i]);
    set_tensor(&g->dout, ATT_F32, ATT_DIMS(2, 2, 5, 6));
    set_tensor(&g->dlse, ATT_F32, ATT_DIMS(2, 2, 5));
    set_tensor(&g->dq, ATT_F32, ATT_DIMS(2, 2, 5, 8));
    set_tensor(&g->dk, ATT_F32, ATT_DIMS(2, 2, 9, 7));
    for (int i = V; i <= SINKS; i++)
        set_tensor(&c.dparam[i], ATT_F32, rank[i], dim[i]);
    set_tensor(&g->dv, ATT_F32,
               ATT_DIMS(2, 2, 9, 6)); /* last, so that a stride that is too long reaches nothing else */
    for (size_t i = 0; i < used; i++)
        memory[i] = check_uniform(1, i);
    memset(c.param[MASK].data, 1, 2 * 5 * 9);
    memset(c.param[Q_DOCUMENTS].data, 0, 2 * 5 * sizeof(int32_t));
    memset(c.param[K_DOCUMENTS].data, 0, 2 * 9 * sizeof(int32_t));
    return c;
}

/* ---- one number */

typedef struct wrong_number {
    const char *sentence; /* or the part of it that matters */
    size_t at, bytes;     /* of the number in the call */
    int64_t value;        /* of a float: its bits */
} wrong_number;

#define NUMBER(field) offsetof(call, field), sizeof(((call *)NULL)->field)
enum { ONE = 0x3f800000, INF = 0x7f800000 };
#define DOUBLE_ONE INT64_C(0x3ff0000000000000)
#define DOUBLE_INF INT64_C(0x7ff0000000000000)
#define DOUBLE_NAN INT64_C(0x7ff8000000000000)
#define DOUBLE_MINUS_TWO ((int64_t)UINT64_C(0xc000000000000000))
#define DOUBLE_HALF INT64_C(0x3fe0000000000000)

static const wrong_number wrong_numbers[] = {
    {"spec.heads is 0, expected 1..1048576", NUMBER(spec.heads), 0},
    {"spec.kv_heads is -1, expected 1..1048576", NUMBER(spec.kv_heads), -1},
    {"spec.kv_heads = 4 does not divide spec.heads = 2", NUMBER(spec.kv_heads), 4},
    {"spec.head_dim is 65537, expected 1..65536", NUMBER(spec.head_dim), 65537},
    {"spec.key_dim is -7, expected 1..65536", NUMBER(spec.key_dim), -7},
    {"spec.value_dim is -6, expected 1..65536", NUMBER(spec.value_dim), -6},
    {"spec.score_dim is -4, expected 1..65536", NUMBER(spec.score_dim), -4},
    {"spec.dtype is i32, expected f32, f16 or bf16", NUMBER(spec.dtype), ATT_I32},
    {"spec.dtype is unknown, expected f32, f16 or bf16", NUMBER(spec.dtype), 77},
    {"spec.scale is inf, expected a finite number", NUMBER(spec.scale), INF},
    {"spec.stage[1].value[0] is 0, but softcap needs one", NUMBER(stage[1].value[0]), 0},
    {"spec.stage[1].value[0] is nan, but softcap needs a finite number", NUMBER(stage[1].value[0]), DOUBLE_NAN},
    {"spec.stage[2].value[0] is inf, but relative needs a finite number", NUMBER(stage[2].value[0]), DOUBLE_INF},
    {"spec.stage[0].value[0] is 1, but bias has none", NUMBER(stage[0].value[0]), DOUBLE_ONE},
    {"spec.stage[4].value[1] is 1, but causal has none", NUMBER(stage[4].value[1]), DOUBLE_ONE},
    {"spec.stage[3] has neither a modifier nor a mask, expected one of the two", NUMBER(stage[3].modifier), 0},
    {"spec.stage[6] has neither a modifier nor a mask, expected one of the two", NUMBER(stage[6].mask), 0},
    {"spec.stage is NULL, but spec.n_stages is 8", NUMBER(spec.stage), 0},
    {"spec.n_stages is -1, expected 0..16", NUMBER(spec.n_stages), -1},
    {"spec.n_stages is 17, expected 0..16", NUMBER(spec.n_stages), 17},
    {"spec.align is not given, but \"relative\" depends on", NUMBER(spec.align), ATT_ALIGN_UNSET},
    {"spec.align is 4, expected an att_align", NUMBER(spec.align), 4},
    {"spec.align is ATT_ALIGN_STARTS but args.q_starts is NULL", NUMBER(spec.align), ATT_ALIGN_STARTS},
    {"spec.dropout is 1, expected at least 0 and less than 1", NUMBER(spec.dropout), ONE},
    {"value[0] of att_mask_window is -2, expected -1 (unbounded) or a count of keys", NUMBER(stage[5].value[0]),
     DOUBLE_MINUS_TWO},
    {"value[1] of att_mask_window is 0.5, expected -1 (unbounded) or a count of keys", NUMBER(stage[5].value[1]),
     DOUBLE_HALF},
    {"att_attention_spec", NUMBER(spec.size), 0},
    {"att_attention_args", NUMBER(args.size), 0},

    {"q [2, 2, 5] has 3 dimensions but must have 4, as args.n_sequences is 0 and args.q_offsets NULL",
     NUMBER(args.q.rank), 3},
    {"q.rank = 7 is not from 0 to 6", NUMBER(args.q.rank), 7},
    {"q is f16 but must be f32", NUMBER(args.q.dtype), ATT_F16},
    {"q.dtype = 99 is not an att_dtype", NUMBER(args.q.dtype), 99},
    {"q [2, 2, 5, 8] has no memory: its data is NULL", NUMBER(args.q.data), 0},
    {"q.dim[2] = -1 is negative", NUMBER(args.q.dim[2]), -1},
    {"q [2, 2, 9223372036854775807, 8] reaches further than any memory", NUMBER(args.q.dim[2]), INT64_MAX},
    {"q [2, 2, 5, 8] reaches further than any memory", NUMBER(args.q.stride[0]), INT64_MIN},
    {"q.dim[1] = 3 but spec.heads = 2", NUMBER(args.q.dim[1]), 3},
    {"q.dim[3] = 7 but spec.head_dim = 8", NUMBER(args.q.dim[3]), 7},
    {"q.stride[3] = 2, but the last dimension must be contiguous (1)", NUMBER(args.q.stride[3]), 2},
    {"k.dim[0] = 1 but q.dim[0] = 2", NUMBER(args.k.dim[0]), 1},
    {"k.dim[3] = 8 but spec.key_dim = 7", NUMBER(args.k.dim[3]), 8},
    {"v.dim[1] = 1 but spec.kv_heads = 2", NUMBER(args.v.dim[1]), 1},
    {"v.dim[2] = 8 but k.dim[2] = 9", NUMBER(args.v.dim[2]), 8},
    {"v.dim[3] = 7 but spec.value_dim = 6", NUMBER(args.v.dim[3]), 7},
    {"out.dim[2] = 4 but q.dim[2] = 5", NUMBER(args.out.dim[2]), 4},
    {"out is bf16 but must be f32", NUMBER(args.out.dtype), ATT_BF16},
    {"out is written, so out.stride[1] = 0 must not repeat 2 times", NUMBER(args.out.stride[1]), 0},
    {"lse.dim[2] = 4 but that of q = 5", NUMBER(args.lse.dim[2]), 4},
    {"lse [2, 2] has 2 dimensions but must have 3", NUMBER(args.lse.rank), 2},
    {"lse is f16 but must be f32", NUMBER(args.lse.dtype), ATT_F16},
    {"args.n_sequences is given without args.q_offsets", NUMBER(args.n_sequences), 2},
    {"args.sequence_ids is NULL", NUMBER(args.sequence_ids), 0},
    {"mask.dim[3] = 8, expected 1 or the longest key = 9", NUMBER(param[MASK].dim[3]), 8},
    {"mask.dim[1] = 3, expected 1 or spec.heads = 2", NUMBER(param[MASK].dim[1]), 3},
    {"mask is f32 but must be bool", NUMBER(param[MASK].dtype), ATT_F32},
    {"q_documents is i64 but must be i32", NUMBER(param[Q_DOCUMENTS].dtype), ATT_I64},
    {"q_documents.dim[1] = 4 but q.dim[2] = 5", NUMBER(param[Q_DOCUMENTS].dim[1]), 4},
    {"k_documents.dim[0] = 3, expected 1 or the number of sequences = 2", NUMBER(param[K_DOCUMENTS].dim[0]), 3},

    {"v [2, 4] has no memory: its data is NULL", NUMBER(param[V].data), 0},
    {"v.dim[1] = 5 but spec.score_dim = 4", NUMBER(param[V].dim[1]), 5},
    {"Wq.dim[0] = 3, expected 1 or spec.heads = 2", NUMBER(param[WQ].dim[0]), 3},
    {"Wq.dim[2] = 7 but spec.head_dim = 8", NUMBER(param[WQ].dim[2]), 7},
    {"Wq.stride[1] = 9, but one head of it must be dense (8)", NUMBER(param[WQ].stride[1]), 9},
    {"Wk.dim[2] = 8 but spec.key_dim = 7", NUMBER(param[WK].dim[2]), 8},
    {"Wk is bf16 but must be f32", NUMBER(param[WK].dtype), ATT_BF16},
    {"bias.dim[0] = 3, expected 1 or the number of sequences = 2", NUMBER(param[OF_BIAS].dim[0]), 3},
    {"bias.dim[2] = 4, expected 1 or the longest query = 5", NUMBER(param[OF_BIAS].dim[2]), 4},
    {"args.n_params is 10, but the plan has 9: v of \"additive\", Wq of \"additive\", Wk of \"additive\", bias of "
     "\"bias\", table of \"relative\", sinks of \"sink\", q_documents of \"document\", k_documents of \"document\", "
     "mask of \"boolean\"",
     NUMBER(args.n_params), 10},
    {"args.n_params is 8, but the plan has 9", NUMBER(args.n_params), 8},
    {"args.n_params is -1, but the plan has 9", NUMBER(args.n_params), -1},
    {"args.param is NULL, but args.n_params is 9", NUMBER(args.param), 0},
    {"table.dim[0] = 3, expected 1 or spec.heads = 2", NUMBER(param[TABLE].dim[0]), 3},
    {"sinks [2, 0] has 2 dimensions but must have 1", NUMBER(param[SINKS].rank), 2},

    {"att_attention_grads", NUMBER(grads.size), 0},
    {"dout [2, 2, 5, 6] has no memory: its data is NULL", NUMBER(grads.dout.data), 0},
    {"dout is [2, 2, 5, 5] but out is [2, 2, 5, 6]", NUMBER(grads.dout.dim[3]), 5},
    {"dout.stride[3] = 2, but the last dimension must be contiguous (1)", NUMBER(grads.dout.stride[3]), 2},
    {"dout is bf16 but must be f32", NUMBER(grads.dout.dtype), ATT_BF16},
    {"dlse is [2, 2, 4] but lse is [2, 2, 5]", NUMBER(grads.dlse.dim[2]), 4},
    {"dlse is i64 but must be f32", NUMBER(grads.dlse.dtype), ATT_I64},
    {"dlse [2, 2] has 2 dimensions but must have 3", NUMBER(grads.dlse.rank), 2},
    {"dq is [2, 2, 4, 8] but q is [2, 2, 5, 8]", NUMBER(grads.dq.dim[2]), 4},
    {"dq [2, 2, 5, 8] reaches further than any memory", NUMBER(grads.dq.stride[1]), INT64_MAX / 4},
    {"dq is f16 but must be f32", NUMBER(grads.dq.dtype), ATT_F16},
    {"dk is written, so dk.stride[0] = 0 must not repeat 2 times", NUMBER(grads.dk.stride[0]), 0},
    {"dv.stride[3] = 3, but the last dimension must be contiguous (1)", NUMBER(grads.dv.stride[3]), 3},
    {"dv is [1, 4] but v is [2, 4]", NUMBER(dparam[V].dim[0]), 1},
    {"dWq is written, so its elements must not overlap: dWq.stride[1] = 7", NUMBER(dparam[WQ].stride[1]), 7},
    {"dWk [1, 4, 7] has no memory: its data is NULL", NUMBER(dparam[WK].data), 0},
    {"dbias is [1, 1, 5, 9] but bias is [1, 2, 5, 9]", NUMBER(dparam[OF_BIAS].dim[1]), 1},
    {"grads.dparam[6] is given, but the q_documents of \"document\" has no gradient", NUMBER(dparam[Q_DOCUMENTS].rank),
     1},
    {"grads.dparam[8] is given, but the mask of \"boolean\" has no gradient", NUMBER(dparam[MASK].rank), 1},
    {"grads.dparam is NULL, but grads.n_dparams is 9", NUMBER(grads.dparam), 0},
    {"grads.n_dparams is 10, but the plan has 9 parameters", NUMBER(grads.n_dparams), 10},
    {"dtable is i32 but must be f32", NUMBER(dparam[TABLE].dtype), ATT_I32},
};

static void check_refused(att_ctx *ctx, call *c, const char *sentence, bool of_grads)
{
    static float before[sizeof memory / sizeof *memory];
    att_plan *plan;
    own_lists(c);
    memcpy(before, memory, sizeof memory);
    att_status e = att_plan_new(ctx, &c->spec, &plan);
    if (!e && !of_grads)
        e = att_forward(plan, &c->args);
    if (plan && (of_grads || e))
        e = att_backward(plan, &c->args, &c->grads);
    att_plan_free(plan);
    if (!e)
        fail_msg("accepted: %s", sentence);
    check_message(ctx, sentence);
    assert_memory_equal(before, memory, sizeof memory);
}

static void a_wrong_number_is_named_with_what_was_expected_and_nothing_is_written(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    for (size_t i = 0; i < sizeof wrong_numbers / sizeof *wrong_numbers; i++) {
        const wrong_number *w = &wrong_numbers[i];
        call c = everything();
        memcpy((char *)&c + w->at, &w->value, w->bytes); /* little-endian, as all that this runs on */
        check_refused(ctx, &c, w->sentence, w->at >= offsetof(call, grads));
    }
    att_close(ctx);
}

/* ---- memory that is used twice */

typedef struct alias {
    const char *sentence;
    size_t of, is; /* tensors in the call: this one gets that one's memory */
} alias;

#define TENSORS(a, b) offsetof(call, a), offsetof(call, b)

static const alias aliases[] = {
    {"out (at", TENSORS(args.out, args.q)},
    {"out (at", TENSORS(args.out, args.v)},
    {"out (at", TENSORS(args.out, args.lse)},
    {"lse (at", TENSORS(args.lse, args.k)},
    {"out (at", TENSORS(args.out, param[MASK])},
    {"out (at", TENSORS(args.out, param[K_DOCUMENTS])},
    {"out (at", TENSORS(args.out, param[WQ])},
    {"lse (at", TENSORS(args.lse, param[OF_BIAS])},
    {"dq (at", TENSORS(grads.dq, args.q)},
    {"dq (at", TENSORS(grads.dq, args.out)},
    {"dq (at", TENSORS(grads.dq, grads.dout)},
    {"dq (at", TENSORS(grads.dq, grads.dk)},
    {"dk (at", TENSORS(grads.dk, param[MASK])},
    {"dk (at", TENSORS(grads.dk, dparam[OF_BIAS])},
    {"dv (at", TENSORS(grads.dv, grads.dlse)},
    {"dv (at", TENSORS(grads.dv, args.lse)},
    {"dWq (at", TENSORS(dparam[WQ], param[WQ])},
    {"dWk (at", TENSORS(dparam[WK], param[Q_DOCUMENTS])},
    {"dtable (at", TENSORS(dparam[TABLE], param[TABLE])},
    {"dsinks (at", TENSORS(dparam[SINKS], args.k)},
};

static void what_is_written_overlaps_nothing(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++) {
        const alias *w = &aliases[i];
        call c = everything();
        ((att_tensor *)((char *)&c + w->of))->data = ((att_tensor *)((char *)&c + w->is))->data;
        check_refused(ctx, &c, w->sentence, w->of >= offsetof(call, grads));
        check_refused(ctx, &c, "overlap in memory", w->of >= offsetof(call, grads));
    }
    att_close(ctx);
}

static void without_arguments_gradients_or_the_log_sum_exp_there_is_no_backward(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    call c = everything();
    att_plan *plan;
    assert_int_equal(att_plan_new(ctx, NULL, &plan), ATT_ERR_ARGUMENT);
    assert_string_equal(att_error(ctx), "att_plan_new: spec is NULL");
    assert_null(plan);
    own_lists(&c);
    plan = plan_of(ctx, &c.spec);
    assert_int_equal(att_backward(plan, NULL, &c.grads), ATT_ERR_ARGUMENT);
    assert_string_equal(att_error(ctx), "args is NULL");
    assert_int_equal(att_backward(plan, &c.args, NULL), ATT_ERR_ARGUMENT);
    assert_string_equal(att_error(ctx), "grads is NULL");
    att_plan_free(plan);
    c.args.lse = (att_tensor){0};
    check_refused(ctx, &c, "args.lse is not given: the backward needs that of the forward", true);
    c = everything();
    c.param[TABLE] = (att_tensor){0};
    check_refused(ctx, &c, "args.param[4] is not given: the table of \"relative\"", false);
    c = everything();
    c.param[WQ] = (att_tensor){0};
    check_refused(ctx, &c, "args.param[1] is not given: the Wq of \"additive\"", false);
    att_close(ctx);
}

/* ---- out of memory */

static void running_out_of_memory_anywhere_leaks_nothing_and_leaves_outputs_alone(void **state)
{
    (void)state;
    static float before[sizeof memory / sizeof *memory];
    bool worked = false;
    call c = everything();
    own_lists(&c);
    for (long at = 1; !worked && at < 100; at++) {
        fail_alloc f = {.fail_at = at};
        att_ctx *ctx = NULL;
        att_plan *plan = NULL;
        memcpy(before, memory, sizeof memory);
        att_status e = att_open(&ctx, ATT_OPTIONS(att_config, .n_threads = 2, .allocator = fail_allocator(&f)));
        e = e ? e : att_plan_new(ctx, &c.spec, &plan);
        e = e ? e : att_forward(plan, &c.args);
        if (e)
            assert_memory_equal(before, memory, sizeof memory);
        memcpy(before, memory, sizeof memory);
        e = e ? e : att_backward(plan, &c.args, &c.grads);
        if (e)
            assert_memory_equal(before, memory, sizeof memory);
        worked = !e;
        assert_true(e == ATT_OK || e == ATT_ERR_MEMORY);
        att_plan_free(plan);
        att_close(ctx);
        assert_int_equal(f.live, 0);
    }
    assert_true(worked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wrong_number_is_named_with_what_was_expected_and_nothing_is_written),
        cmocka_unit_test(what_is_written_overlaps_nothing),
        cmocka_unit_test(without_arguments_gradients_or_the_log_sum_exp_there_is_no_backward),
        cmocka_unit_test(running_out_of_memory_anywhere_leaks_nothing_and_leaves_outputs_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
