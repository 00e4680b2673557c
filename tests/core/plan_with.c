/* A plan with more stages is the plan that is made of all of them. */
#include "fixtures/attention.h"

enum { BATCH = 2, HEADS = 4, KV_HEADS = 2, QUERIES = 9, KEYS = 13, DIM = 8, SCORE_DIM = 6, STAGES = 6 };

/* The stages, and their parameters after those of the score */
static void add_stages(att_attention_spec *s, operands *o, float *slopes, float *sinks)
{
    add_modifier(s, att_modifier_alibi, 0);
    att_wrap(param_at(&o->args, o->args.n_params), slopes, ATT_F32, ATT_DIMS(HEADS), NULL);
    add_mask(s, att_mask_causal);
    add_modifier(s, att_modifier_softcap, 1.5);
    add_mask(s, att_mask_boolean);
    att_wrap(param_at(&o->args, o->args.n_params), o->mask, ATT_BOOL, ATT_DIMS(BATCH, 1, QUERIES, KEYS), NULL);
    add_modifier(s, att_modifier_sink, 0);
    att_wrap(param_at(&o->args, o->args.n_params), sinks, ATT_F32, ATT_DIMS(HEADS), NULL);
    add_window(s, 5, -1);
    s->align = ATT_ALIGN_BOTTOM_RIGHT;
}

/* The results of a call: out, lse, weights and gradients. */
typedef struct results {
    float out[BATCH * HEADS * QUERIES * DIM], lse[BATCH * HEADS * QUERIES], weights[HEADS * QUERIES * KEYS];
    float dq[BATCH * HEADS * QUERIES * DIM], dslopes[HEADS];
} results;

static void results_of(const att_plan *plan, const operands *o, int slopes, results *r)
{
    memset(r, 0, sizeof *r);
    att_attention_grads g = {.size = sizeof g, .dout = o->args.q, .dq = o->args.q};
    g.dq.data = r->dq;
    att_wrap(dparam_at(&g, slopes), r->dslopes, ATT_F32, ATT_DIMS(HEADS), NULL);
    assert_int_equal(att_forward(plan, &o->args), ATT_OK);
    assert_int_equal(att_backward(plan, &o->args, &g), ATT_OK);
    memcpy(r->out, o->out, sizeof r->out);
    memcpy(r->lse, o->lse, sizeof r->lse);
    for (int h = 0; h < HEADS; h++)
        assert_int_equal(att_weights(plan, &o->args, 1, h, 0, QUERIES, r->weights + h * QUERIES * KEYS), ATT_OK);
}

static void a_plan_with_more_stages_has_the_bits_of_a_plan_of_all(void **state)
{
    (void)state;
    static results whole, parts;
    float *vector = check_numbers(HEADS * SCORE_DIM, 11), *matrix = check_numbers(HEADS * DIM * DIM, 12),
          *sinks = check_numbers(HEADS, 13), slopes[HEADS] = {0.5f, 0.25f, 0.125f, 0.0625f};
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);)
        for (int score = 0; att_score_name(score); score++) {
            operands o = make((shape){BATCH, HEADS, KV_HEADS, QUERIES, KEYS, DIM, DIM});
            att_attention_spec s = spec_of(o.n);
            assert_int_equal(att_score_find(att_score_name(score), &s.score), ATT_OK);
            if (s.score == att_score_general)
                att_wrap(param_at(&o.args, 0), matrix, ATT_F32, ATT_DIMS(HEADS, DIM, DIM), NULL);
            if (s.score == att_score_additive) {
                s.score_dim = SCORE_DIM;
                att_wrap(param_at(&o.args, 0), vector, ATT_F32, ATT_DIMS(HEADS, SCORE_DIM), NULL);
                att_wrap(param_at(&o.args, 1), matrix, ATT_F32, ATT_DIMS(HEADS, SCORE_DIM, DIM), NULL);
                att_wrap(param_at(&o.args, 2), matrix, ATT_F32, ATT_DIMS(1, SCORE_DIM, DIM), NULL);
            }
            const int own = o.args.n_params;
            add_stages(&s, &o, slopes, sinks);
            assert_int_equal(s.n_stages, STAGES);
            att_plan *all = plan_of(ctx, &s);
            results_of(all, &o, own, &whole);
            for (int n = 0; n <= STAGES; n++) {
                att_attention_spec first = s;
                att_plan *some, *more, *with;
                first.n_stages = n / 2;
                some = plan_of(ctx, &first);
                assert_int_equal(att_plan_with(some, s.stage + n / 2, n - n / 2, &more), ATT_OK);
                att_plan_free(some); /* it need not outlive what is made of it */
                assert_int_equal(att_plan_with(more, s.stage + n, STAGES - n, &with), ATT_OK);
                att_plan_free(more);
                results_of(with, &o, own, &parts);
                assert_memory_equal(&parts, &whole, sizeof whole);
                att_plan_free(with);
            }
            att_plan_free(all);
            operands_free(&o);
        }
    free(vector), free(matrix), free(sinks);
}

/* bf16 is multiplied in pairs where all stages allow it, and a scale is part of the softmax where there is no modifier:
 * of the new stages, too. */
static void in_bf16_the_stages_that_are_added_count_as_well(void **state)
{
    (void)state;
    static const att_stage stages[] = {{.value = {2}}, {.value = {-1, 3}}};
    att_stage list[2];
    memcpy(list, stages, sizeof list);
    list[0].modifier = att_modifier_scale;
    list[1].mask = att_mask_window;
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 1);) {
        operands o = make((shape){BATCH, HEADS, KV_HEADS, QUERIES, KEYS, DIM, DIM});
        uint16_t x[3][BATCH * HEADS * KEYS * DIM], out[2][BATCH * HEADS * QUERIES * DIM];
        att_tensor *t[] = {&o.args.q, &o.args.k, &o.args.v};
        for (int i = 0; i < 3; i++) {
            att_tensor y = *t[i];
            y.data = x[i], y.dtype = ATT_BF16;
            assert_int_equal(att_tensor_convert(ctx, t[i], &y), ATT_OK);
            *t[i] = y;
        }
        o.args.out.dtype = ATT_BF16;
        att_attention_spec s = spec_of(o.n);
        s.dtype = ATT_BF16;
        s.align = ATT_ALIGN_TOP_LEFT;
        att_plan *plan[2], *none = plan_of(ctx, &s);
        assert_int_equal(att_plan_with(none, list, 2, &plan[0]), ATT_OK);
        s.stage = list, s.n_stages = 2;
        plan[1] = plan_of(ctx, &s);
        for (int i = 0; i < 2; i++) {
            o.args.out.data = out[i];
            assert_int_equal(att_forward(plan[i], &o.args), ATT_OK);
            att_plan_free(plan[i]);
        }
        assert_memory_equal(out[0], out[1], sizeof out[0]);
        att_plan_free(none);
        operands_free(&o);
    }
}

static void refuse(const att_plan *plan, const att_stage *stages, int n, const char *sentence)
{
    att_plan *out = (att_plan *)(uintptr_t)plan;
    assert_int_equal(att_plan_with(plan, stages, n, &out), ATT_ERR_ARGUMENT);
    assert_null(out);
    assert_string_equal(att_error(NULL), sentence);
}

static void errors_name_the_stage_as_it_was_given(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    const att_stage sink = {.modifier = att_modifier_sink}, causal = {.mask = att_mask_causal},
                    cap = {.modifier = att_modifier_softcap}, nothing = {0};
    att_stage many[17], window = {.mask = att_mask_window, .value = {1, 1}};
    for (int i = 0; i < 17; i++)
        many[i] = window;
    att_plan *plan = plan_of(
                 ctx, ATT_OPTIONS(att_attention_spec, .heads = 1, .head_dim = DIM, .stage = &sink, .n_stages = 1)),
             *full;
    refuse(plan, many, 16, "n is 16, but the plan has 1 stages, and may have 16");
    refuse(plan, many, -1, "n is -1, but the plan has 1 stages, and may have 16");
    refuse(plan, NULL, 1, "stages is NULL, but n is 1");
    refuse(plan, (const att_stage[]){window, nothing}, 2,
           "stages[1] has neither a modifier nor a mask, expected one of the two");
    refuse(plan, &cap, 1, "stages[0].value[0] is 0, but softcap needs one");
    refuse(plan, &sink, 1, "stages has two sinks, and [0] is the second");
    refuse(plan, &causal, 1,
           "spec.align is not given, but \"causal\" depends on where the queries stand among the keys: "
           "ATT_ALIGN_TOP_LEFT, ATT_ALIGN_BOTTOM_RIGHT or ATT_ALIGN_STARTS");
    att_plan_free(plan);
    plan = plan_of(ctx, ATT_OPTIONS(att_attention_spec, .heads = 1, .head_dim = DIM, .align = ATT_ALIGN_TOP_LEFT));
    assert_int_equal(att_plan_with(plan, many, 16, &full), ATT_OK);
    refuse(full, many, 1, "n is 1, but the plan has 16 stages, and may have 16");
    att_plan_free(full);
    assert_int_equal(att_plan_with(plan, NULL, 0, &full), ATT_OK); /* a copy */
    att_plan_free(full);
    att_plan_free(plan);
    att_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_with_more_stages_has_the_bits_of_a_plan_of_all),
        cmocka_unit_test(in_bf16_the_stages_that_are_added_count_as_well),
        cmocka_unit_test(errors_name_the_stage_as_it_was_given),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
