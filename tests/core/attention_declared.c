/* What stages may declare of their parameters; what they may not is an error of att_plan_new that names the stage. */
// labels: portable
#include "fixtures/attention_trial.h"

static void refuses(att_ctx *ctx, att_attention_spec *s, const char *sentence)
{
    att_plan *plan;
    assert_int_equal(att_plan_new(ctx, s, &plan), ATT_ERR_ARGUMENT);
    assert_null(plan);
    check_message(ctx, sentence);
}

static att_attention_spec plain(void)
{
    return (att_attention_spec){.size = sizeof(att_attention_spec), .heads = 1, .head_dim = 8};
}

static void masks_declare_tensors_of_any_kind_but_not_of_any_type(void **state)
{
    (void)state;
    static const att_param_shape wrong[] = {
        {.name = "x", .kind = ATT_PARAM_PER_KEY, .dtype = ATT_I64},
        {.name = "x", .kind = ATT_PARAM_PER_KEY, .dtype = ATT_I32, .as_queries = true},
        {.name = "x", .kind = (att_param_kind)9},
        {.kind = ATT_PARAM_PER_KEY},
    };
    static const att_param_shape right[] = {
        {.name = "a"},
        {.name = "b", .rows = ATT_EXTENT_ANY, .columns = ATT_EXTENT_HEAD_DIM, .dtype = ATT_BOOL},
        {.name = "c", .kind = ATT_PARAM_PER_PAIR, .dtype = ATT_I32},
        {.name = "d", .kind = ATT_PARAM_PER_QUERY, .dtype = ATT_BOOL},
        {.name = "e", .kind = ATT_PARAM_PER_KEY, .dtype = ATT_BOOL, .as_queries = true},
    };
    att_ctx *ctx = check_open(NULL, 1);
    att_mask mask = scattered_mask;
    mask.n_params = 1;
    for (int i = 0; i < COUNT(wrong); i++) {
        att_attention_spec s = plain();
        mask.param = &wrong[i];
        add_mask(&s, &mask);
        refuses(ctx, &s, "parameter 0 of \"scattered\" has a declaration that a mask cannot have");
    }
    mask.param = right;
    mask.n_params = COUNT(right);
    att_attention_spec s = plain();
    add_mask(&s, &mask);
    if (att_verify(ctx, &s))
        fail_msg("%s", att_error(ctx));
    att_close(ctx);
}

static void scores_and_modifiers_declare_floats(void **state)
{
    (void)state;
    static const att_param_shape per_key = {.name = "x", .kind = ATT_PARAM_PER_KEY},
                                 per_pair = {.name = "x", .kind = ATT_PARAM_PER_PAIR},
                                 numbers = {.name = "x", .dtype = ATT_I32};
    att_ctx *ctx = check_open(NULL, 1);
    const att_param_shape *const of_modifier[] = {&per_key, &numbers}, *const of_score[] = {&per_key, &per_pair,
                                                                                            &numbers};
    for (int i = 0; i < COUNT(of_modifier); i++) {
        att_attention_spec s = plain();
        att_modifier modifier = wave_modifier;
        modifier.param = of_modifier[i];
        add_modifier(&s, &modifier, 0);
        refuses(ctx, &s, "parameter 0 of \"wave\" has a declaration that a modifier cannot have");
    }
    for (int i = 0; i < COUNT(of_score); i++) {
        att_attention_spec s = plain();
        att_score score = bell_score;
        score.param = of_score[i];
        s.score = &score;
        refuses(ctx, &s, "parameter 0 of \"bell\" has a declaration that a score cannot have");
    }
    att_attention_spec s = plain();
    att_modifier modifier = wave_modifier; /* its derivative would need memory for all pairs */
    modifier.param = &per_pair;
    add_modifier(&s, &modifier, 0);
    refuses(ctx, &s, "\"wave\" has a parameter per pair and a derivative, but no tile_back");
    att_close(ctx);
}

static void a_plan_has_sixteen_parameters_at_most(void **state)
{
    (void)state;
    static const att_param_shape many[17];
    att_ctx *ctx = check_open(NULL, 1);
    att_mask mask = scattered_mask;
    att_attention_spec s = plain();
    mask.param = many;
    mask.n_params = 17;
    add_mask(&s, &mask);
    refuses(ctx, &s, "\"scattered\" has 17 parameters, but a plan has at most 16 in all");
    s = plain();
    mask.param = NULL;
    mask.n_params = 1;
    add_mask(&s, &mask);
    refuses(ctx, &s, "\"scattered\" has 1 parameters and no list of them");
    att_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masks_declare_tensors_of_any_kind_but_not_of_any_type),
        cmocka_unit_test(scores_and_modifiers_declare_floats),
        cmocka_unit_test(a_plan_has_sixteen_parameters_at_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
