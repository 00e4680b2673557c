/* Translation of several batches: how far the call is, and that it can be stopped. */
#include "fixtures/progress.h"
#include "fixtures/translator.h"

static att_status translate_in_batches(void *m, att_progress_fn progress, void *user)
{
    static const char *const texts[] = {"Ein Hund", "", "a", "The snow is in the table.", "A Hund"};
    att_translation out[5];
    const att_status s = att_translate(
        m, 5, texts, NULL, ATT_OPTIONS(att_translate_options, .beam = 64, .progress = progress, .user = user), out);
    assert_true(!s == (out[0].text.text != NULL));
    progress_result(s, out[0].text.text, out[0].text.bytes);
    free_all(ctx, out, 5);
    return s;
}

static void progress_may_stop_a_translation(void **state)
{
    (void)state;
    att_translator *m = open_translator(ctx);
    assert_progress(ctx, translate_in_batches, m);
    att_translator_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(progress_may_stop_a_translation)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
