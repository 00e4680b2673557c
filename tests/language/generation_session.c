/* att_generation: room, prefixes, callbacks, what is finished early, cancelling, errors. */
// labels: threads
#include "fixtures/fail_alloc.h"
#include "fixtures/generation.h"

#define LONG "bdcabtafhjkkqpprsabcdefgih"

static void check_finished(const setting *t, int64_t number, const char *text, att_generation_end end, int64_t cached)
{
    att_generated out = finish(t, number);
    assert_string_equal(out.text.text, text);
    assert_int_equal(out.end, end);
    assert_int_equal(out.cached, cached);
    att_generated_free(t->ctx, &out);
}

/* ---- room */

static void assert_busy(const setting *t, const char *prompt, const att_generate_options *o, const char *words)
{
    int64_t number;
    assert_int_equal(try_add(t, prompt, o, &number), ATT_ERR_BUSY);
    assert_int_equal(number, -1);
    check_message(t->ctx, words);
}

static void a_full_session_says_so_and_is_unchanged(void **state)
{
    (void)state;
    assert_string_equal(att_status_name(ATT_ERR_BUSY), "ERR_BUSY");
    setting t = open_setting(THREADS(2), SESSION(.max_sequences = 2, .max_tokens = 30));
    int64_t number;
    assert_int_equal(add(&t, "bdcab", OPTIONS(.max_tokens = 7)), 0);
    assert_busy(&t, "t", OPTIONS(.max_tokens = 18), "12 of at most 30 tokens, and this one needs 19");
    assert_int_equal(add(&t, "t", OPTIONS(.max_tokens = 8)), 1);
    assert_busy(&t, "t", OPTIONS(.max_tokens = 1), "the session has 2 of at most 2 sequences");
    assert_int_equal(try_add(&t, "t", OPTIONS(.max_tokens = 30), &number), ATT_ERR_ARGUMENT);
    check_message(t.ctx, "have up to 31 tokens, but the session's max_tokens is 30: set options.max_tokens");
    run(&t);
    assert_busy(&t, "t", OPTIONS(.max_tokens = 1), "2 of at most 2"); /* those that ended have their results */
    check_finished(&t, 0, "oeqegsl", ATT_GENERATION_LENGTH, 0);
    assert_busy(&t, "t", OPTIONS(.max_tokens = 21), "9 of at most 30 tokens, and this one needs 22");
    assert_int_equal(add(&t, "t", OPTIONS(.max_tokens = 20)), 2);
    check_finished(&t, 1, "ceqejeje", ATT_GENERATION_LENGTH, 0);
    run(&t);
    check_finished(&t, 2, "ceqejejehpcbpcblejej", ATT_GENERATION_LENGTH, 0);
    close_setting(&t);
}

static void memory_does_not_grow_with_the_number_of_sequences(void **state)
{
    (void)state;
    for (int kept = 0; kept <= 60; kept += 60) {
        fail_alloc a = {.fail_at = 0};
        setting t = open_setting(ATT_OPTIONS(att_config, .n_threads = 1, .allocator = fail_allocator(&a)),
                                 SESSION(.max_sequences = 3, .prompt_tokens = 10, .kept_tokens = kept));
        long blocks = 0, bytes = 0;
        for (int i = 0; i < 120; i++) {
            char prompt[POSITIONS] = {0};
            for (int k = 0; k < 5 + i % 30; k++)
                prompt[k] = (char)('a' + (7 * k * k + i) % 20);
            const int64_t number = add(&t, prompt, OPTIONS(.max_tokens = 6));
            for (int k = 0; k < 3; k++)
                step(&t);
            if (i % 3 == 0)
                assert_int_equal(att_generation_remove(t.s, number), ATT_OK);
            else {
                att_generated out = finish(&t, number);
                att_generated_free(t.ctx, &out);
            }
            if (i < 60) { /* every length, in a session that others have left */
                blocks = a.live > blocks ? a.live : blocks;
                bytes = a.bytes > bytes ? a.bytes : bytes;
            }
            assert_true(i < 60 || (a.live <= blocks && a.bytes <= bytes));
        }
        close_setting(&t);
        assert_int_equal(a.live, 0);
    }
}

/* ---- parts of prompts */

/* Checks how many tokens the steps so far have computed. */
static void check_computed(const setting *t, int64_t computed, int64_t active)
{
    att_generation_info info = {.size = sizeof info};
    assert_int_equal(att_generation_describe(t->s, &info), ATT_OK);
    assert_int_equal(info.computed, computed);
    assert_int_equal(info.active, active);
    assert_int_equal(info.sequences, 1);
    assert_true(info.bytes > 0);
}

static void the_size_of_parts_changes_between_steps_and_the_text_does_not(void **state)
{
    (void)state;
    setting t = open_setting(THREADS(2), SESSION(.prompt_tokens = 10)), whole = open_setting(THREADS(2), NULL);
    const int64_t other = add(&whole, LONG, OPTIONS(.max_tokens = 8)), number = add(&t, LONG, OPTIONS(.max_tokens = 8));
    step(&t);
    check_computed(&t, 10, 1);
    assert_int_equal(att_generation_set_prompt_tokens(t.s, 3), ATT_OK);
    step(&t);
    check_computed(&t, 12, 1); /* a part ends at a multiple of 3 */
    assert_int_equal(att_generation_set_prompt_tokens(t.s, 64), ATT_OK);
    run(&t);
    check_computed(&t, 26 + 7, 0); /* the last of 8 tokens is not computed */
    run(&whole);
    att_generated a = finish(&t, number), b = finish(&whole, other);
    assert_string_equal(a.text.text, b.text.text);
    att_generated_free(t.ctx, &a);
    att_generated_free(whole.ctx, &b);
    assert_int_equal(att_generation_set_prompt_tokens(t.s, 0), ATT_ERR_ARGUMENT);
    check_message(t.ctx, "tokens is 0, not in [1, 2147483647]");
    close_setting(&whole);
    close_setting(&t);
    t = open_setting(THREADS(1), SESSION(.dtype = ATT_BF16));
    assert_int_equal(att_generation_set_prompt_tokens(t.s, 16), ATT_ERR_UNSUPPORTED);
    close_setting(&t);
}

/* ---- prefixes */

/* The text of one prompt, and how many of its tokens were shared */
static void check_shared(const setting *t, const char *prompt, int64_t tokens, int64_t cached)
{
    const int64_t number = add(t, prompt, OPTIONS(.max_tokens = tokens));
    run(t);
    att_generated out = finish(t, number);
    assert_int_equal(out.cached, cached);
    att_generated_free(t->ctx, &out);
}

static void a_prompt_shares_what_it_has_in_common_with_others(void **state)
{
    (void)state;
    setting t = open_setting(THREADS(2), SESSION(.kept_tokens = 60, .prompt_tokens = 10));
    check_shared(&t, LONG, 1, 0);                    /* kept: 26 */
    check_shared(&t, LONG, 1, 25);                   /* all but the last one */
    check_shared(&t, "bdcabtttttttttttttt", 12, 6);  /* kept: 19 and 11 that were generated */
    check_shared(&t, LONG "tttt", 1, 26);            /* kept, instead of its beginning: 30 */
    check_shared(&t, "qqqqqqqqqqqqqqqqqqqq", 11, 0); /* 30, so that the oldest, "bdcabttt", is not kept any more */
    check_shared(&t, "bdcabttttt", 1, 6);
    check_shared(&t, LONG "ttttaa", 1, 26 + 4);
    const int64_t running = add(&t, "rrrrrrrr", OPTIONS(.max_tokens = 20));
    for (int i = 0; i < 5; i++)
        step(&t);
    const int64_t other = add(&t, "rrrrrrrr", OPTIONS(.max_tokens = 20));
    run(&t);
    check_finished(&t, other, "affhoejejejejejegsle", ATT_GENERATION_LENGTH, 7);
    check_finished(&t, running, "affhoejejejejejegsle", ATT_GENERATION_LENGTH, 0);
    close_setting(&t);
    t = open_setting(THREADS(2), SESSION(.kept_tokens = 60, .prompt_tokens = 10, .dtype = ATT_BF16));
    check_shared(&t, LONG, 4, 0);
    check_shared(&t, LONG, 1, 20);
    check_shared(&t, "bdcabtafhj", 1, 0);
    check_shared(&t, "bdcabtafhjk", 1, 10);
    close_setting(&t);
    t = open_setting(THREADS(2), NULL);
    check_shared(&t, LONG, 4, 0);
    check_shared(&t, LONG, 4, 0);
    close_setting(&t);
}

/* ---- callbacks, removing, cancelling */

typedef struct caller {
    const setting *t;
    int64_t calls, end_after;
} caller;

static bool use_session(void *user, const att_generated_token *token)
{
    caller *c = user;
    int64_t number;
    att_generated out;
    assert_int_equal(try_add(c->t, "t", NULL, &number), ATT_ERR_ARGUMENT);
    check_message(c->t->ctx, "att_generation_add: it was called by the callback of a token, not between steps");
    assert_int_equal(att_generation_step(c->t->s, &number), ATT_ERR_ARGUMENT);
    assert_int_equal(att_generation_remove(c->t->s, token->sequence), ATT_ERR_ARGUMENT);
    assert_int_equal(att_generation_finish(c->t->s, token->sequence, &out), ATT_ERR_ARGUMENT);
    return ++c->calls != c->end_after;
}

static void a_callback_ends_its_sequence_and_uses_no_session(void **state)
{
    (void)state;
    setting t = open_setting(THREADS(2), NULL);
    caller c = {&t, 0, 3};
    add(&t, "bdcab", OPTIONS(.token = use_session, .user = &c));
    add(&t, "t", OPTIONS(.max_tokens = 8));
    run(&t);
    assert_int_equal(c.calls, 3);
    check_finished(&t, 0, "oeq", ATT_GENERATION_CALLBACK, 0);
    check_finished(&t, 1, "ceqejeje", ATT_GENERATION_LENGTH, 0);
    close_setting(&t);
}

static void what_is_finished_before_its_end_has_what_there_is(void **state)
{
    (void)state;
    setting t = open_setting(THREADS(2), NULL);
    att_generated out;
    add(&t, "bdcab", NULL);
    add(&t, "t", OPTIONS(.max_tokens = 8));
    for (int i = 0; i < 4; i++)
        assert_int_equal(step(&t), 2);
    check_finished(&t, 0, "oeqe", ATT_GENERATION_CANCELLED, 0);
    run(&t);
    check_finished(&t, 1, "ceqejeje", ATT_GENERATION_LENGTH, 0);
    assert_int_equal(att_generation_finish(t.s, 1, &out), ATT_ERR_ARGUMENT);
    check_message(t.ctx, "att_generation_finish: the session has no sequence 1");
    assert_int_equal(att_generation_remove(t.s, 7), ATT_ERR_ARGUMENT);
    check_message(t.ctx, "att_generation_remove: the session has no sequence 7");
    assert_int_equal(step(&t), 0);
    close_setting(&t);
}

/* Memory whose allocation number `cancels` sets the flag */
static int cancel;
static long calls, cancels;

static void *alloc(void *user, size_t bytes, size_t alignment)
{
    void *p;
    (void)user;
    if (++calls == cancels)
        cancel = 1;
    return posix_memalign(&p, alignment, bytes) ? NULL : p;
}

static void release(void *user, void *p)
{
    (void)user;
    free(p);
}

/* Before a step and anywhere in it */
static void a_cancelled_step_is_continued_by_the_next(void **state)
{
    (void)state;
    setting t = open_setting(
        ATT_OPTIONS(att_config, .n_threads = 1, .allocator = {alloc, release, NULL}, .cancel = &cancel), NULL);
    int64_t active, within = 0;
    for (cancels = 1, calls = 1; calls >= cancels; cancels += check_step(7)) {
        att_generation_free(t.s);
        assert_int_equal(att_generation_new(t.g, SESSION(.prompt_tokens = 3), &t.s), ATT_OK);
        add(&t, "bdcab", OPTIONS(.max_tokens = 7));
        cancel = 1;
        assert_int_equal(att_generation_step(t.s, &active), ATT_ERR_CANCELLED);
        assert_int_equal(active, 1);
        cancel = calls = 0;
        do {
            const bool before = cancel;
            const att_status e = att_generation_step(t.s, &active);
            assert_int_equal(e, e && cancel ? ATT_ERR_CANCELLED : ATT_OK);
            within += e && !before;
            cancel = e ? 0 : cancel;
        } while (active > 0);
        cancel = 0;
        check_finished(&t, 0, "oeqegsl", ATT_GENERATION_LENGTH, 0);
        cancel = 0;
    }
    assert_true(within >= 10);
    close_setting(&t);
}

/* ---- errors */

static void options_are_checked(void **state)
{
    (void)state;
    setting t = open_setting(THREADS(1), NULL);
    const struct {
        const att_generation_options *o;
        const char *says;
    } sessions[] = {
        {SESSION(.max_sequences = -1), "att_generation_new: options.max_sequences is -1, not in [0, 65536]"},
        {SESSION(.max_sequences = 65537), "options.max_sequences is 65537"},
        {SESSION(.max_tokens = -2), "options.max_tokens is -2"},
        {SESSION(.prompt_tokens = -3), "options.prompt_tokens is -3"},
        {SESSION(.kept_tokens = -4), "options.kept_tokens is -4"},
        {SESSION(.dtype = ATT_I32), "dtype is i32, not f32, f16 or bf16"},
    };
    for (size_t i = 0; i < sizeof sessions / sizeof sessions[0]; i++) {
        att_generation *s;
        assert_int_not_equal(att_generation_new(t.g, sessions[i].o, &s), ATT_OK);
        check_message(t.ctx, sessions[i].says);
        assert_null(s);
    }
    att_language_state *own;
    assert_int_equal(att_language_state_new(att_text_generator_model(t.g), 1, ATT_F32, &own), ATT_OK);
    const struct {
        const char *prompt;
        const att_generate_options *o;
        const char *says;
    } wrong[] = {
        {"", NULL, "att_generation_add: the prompt has no tokens"},
        {"z", NULL, "att_generation_add: the prompt: ids[0] is 25, but the model's are 0 to 19"},
        {"t", OPTIONS(.max_tokens = -1), "att_generation_add: options.max_tokens is -1"},
        {"t", OPTIONS(.lookup = 65), "options.lookup is 65, not in [0, 64]"},
        {"t", OPTIONS(.n_stop = 1), "att_generation_add: options.stop is NULL"},
        {"t", OPTIONS(.n_stop = 1, .stop = (const char *const[]){""}), "options.stop[0] is empty"},
        {"t", OPTIONS(.sampling = SAMPLING(.top_p = 2)), "att_generation_add: options.sampling: top_p is 2"},
        {"t", OPTIONS(.state = own), "options.state is given, but a session has a state of its own"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        int64_t number;
        assert_int_equal(try_add(&t, wrong[i].prompt, wrong[i].o, &number), ATT_ERR_ARGUMENT);
        check_message(t.ctx, wrong[i].says);
        assert_int_equal(number, -1);
    }
    att_language_state_free(own);
    setting half = open_in(t.ctx, SESSION(.dtype = ATT_BF16));
    int64_t number;
    assert_int_equal(try_add(&half, "t", OPTIONS(.lookup = 2), &number), ATT_ERR_UNSUPPORTED);
    check_message(t.ctx, "options.lookup is 2, but the session is not of f32: the text could differ");
    close_models(&half);
    assert_int_equal(add(&t, "t", OPTIONS(.max_tokens = 2)), 0); /* the session is unchanged */
    close_setting(&t);
}

/* Opens a session, in which sequences with all options join, leave and share. A session that failed still has the
 * generated tokens. */
static att_status everything(const att_config *config)
{
    static const char *const stop[] = {"ej", "qqq"};
    setting t = {.ctx = NULL};
    int64_t number[3] = {-1, -1, -1}, active = 0;
    const att_generate_options *o =
        OPTIONS(.max_tokens = 5, .sampling = SAMPLING(.top_k = 3, .repetition_penalty = 1.1f), .stop = stop,
                .n_stop = 2, .lookup = 2, .log_probabilities = true);
    att_status e = att_open(&t.ctx, config);
    if (e)
        return e;
    e = att_text_generator_open(t.ctx, folder.path, NULL, &t.g);
    e = e ? e : att_generation_new(t.g, SESSION(.max_sequences = 2, .prompt_tokens = 10, .kept_tokens = 40), &t.s);
    e = e ? e : try_add(&t, LONG, o, &number[0]);
    e = e ? e : att_generation_step(t.s, &active);
    e = e ? e : try_add(&t, LONG "t", o, &number[1]);
    for (int i = 0; !e && i < 3; i++)
        e = att_generation_step(t.s, &active);
    e = e ? e : att_generation_remove(t.s, number[0]);
    e = e ? e : try_add(&t, LONG, o, &number[2]);
    do
        e = e ? e : att_generation_step(t.s, &active);
    while (!e && active > 0);
    att_status again = ATT_OK;
    if (e && active > 0 && number[2] >= 0) /* a step failed */
        assert_int_equal(att_generation_step(t.s, &active), e);
    for (int i = 1; i < 3; i++) {
        att_generated out = {.end = 0};
        if (number[i] >= 0 && (again = att_generation_finish(t.s, number[i], &out)))
            e = e ? e : again;
        att_generated_free(t.ctx, &out);
    }
    close_setting(&t);
    return e;
}

static void without_memory_a_session_fails_and_frees_all(void **state)
{
    (void)state;
    att_status s = ATT_ERR_MEMORY;
    for (long at = 1; s || at < 100; at += check_step(7)) {
        fail_alloc a = {.fail_at = at};
        s = everything(ATT_OPTIONS(att_config, .n_threads = 1, .allocator = fail_allocator(&a)));
        if (a.live)
            fail_msg("failing at %ld leaves %ld blocks", at, (long)a.live);
        if (s && s != ATT_ERR_MEMORY)
            fail_msg("failing at %ld gives %s: %s", at, att_status_name(s), att_error(NULL));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_session_says_so_and_is_unchanged),
        cmocka_unit_test(memory_does_not_grow_with_the_number_of_sequences),
        cmocka_unit_test(the_size_of_parts_changes_between_steps_and_the_text_does_not),
        cmocka_unit_test(a_prompt_shares_what_it_has_in_common_with_others),
        cmocka_unit_test(a_callback_ends_its_sequence_and_uses_no_session),
        cmocka_unit_test(what_is_finished_before_its_end_has_what_there_is),
        cmocka_unit_test(a_cancelled_step_is_continued_by_the_next),
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(without_memory_a_session_fails_and_frees_all),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
