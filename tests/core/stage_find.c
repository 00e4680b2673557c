/* Built-in scores, modifiers and masks by their names. */
#include "fixtures/attention.h"

#include "att_lists.h"

/* Each name exists once, and finds its score or stage. */
static void every_score_and_every_stage_is_found_by_its_name(void **state)
{
    (void)state;
    int scores = 0, modifiers = 0, masks = 0;
    for (const char *name; (name = att_score_name(scores)); scores++) {
        const att_score *s;
        assert_int_equal(att_score_find(name, &s), ATT_OK);
        assert_string_equal(s->name, name);
    }
    for (int i = 0; att_stage_name(i); i++) {
        att_stage s;
        memset(&s, 0xff, sizeof s);
        assert_int_equal(att_stage_find(att_stage_name(i), &s), ATT_OK);
        assert_true(!s.modifier != !s.mask && s.value[0] == 0 && s.value[1] == 0);
        assert_string_equal(s.modifier ? s.modifier->name : s.mask->name, att_stage_name(i));
        modifiers += s.modifier != NULL;
        masks += s.mask != NULL;
        for (int k = 0; k < i; k++)
            assert_string_not_equal(att_stage_name(k), att_stage_name(i));
    }
    /* as many as the build has found files of */
#define ONE(kind, name) +1
    assert_int_equal(scores, 0 ATT_score_LIST(ONE));
    assert_int_equal(modifiers, 0 ATT_modifier_LIST(ONE));
    assert_int_equal(masks, 0 ATT_mask_LIST(ONE));
#undef ONE
    assert_null(att_score_name(-1));
    assert_null(att_stage_name(-1));
}

static void what_is_found_are_the_pointers_of_the_header(void **state)
{
    (void)state;
    const att_score *score;
    att_stage s;
    assert_int_equal(att_score_find("additive", &score), ATT_OK);
    assert_ptr_equal(score, att_score_additive);
    assert_int_equal(att_stage_find("relative_causal", &s), ATT_OK);
    assert_ptr_equal(s.modifier, att_modifier_relative_causal);
    assert_int_equal(att_stage_find("window", &s), ATT_OK);
    assert_ptr_equal(s.mask, att_mask_window);
}

static void an_unknown_name_is_refused_with_those_that_there_are(void **state)
{
    (void)state;
    const att_score *score = att_score_dot;
    att_stage s = {.mask = att_mask_causal};
    assert_int_equal(att_score_find("dots", &score), ATT_ERR_ARGUMENT);
    assert_string_equal(att_error(NULL), "there is no score \"dots\", but there are: additive cosine dot general");
    assert_null(score);
    assert_int_equal(att_stage_find("dot", &s), ATT_ERR_ARGUMENT);
    check_message(NULL, "there is no modifier or mask \"dot\", but there are: alibi bias");
    check_message(NULL, " causal ");
    assert_true(!s.modifier && !s.mask);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_score_and_every_stage_is_found_by_its_name),
        cmocka_unit_test(what_is_found_are_the_pointers_of_the_header),
        cmocka_unit_test(an_unknown_name_is_refused_with_those_that_there_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
