/* att_generation: a text is the same whatever else is in its session, on each instruction set; long prompts stop no
 * others. */
// labels: threads sets
#include "fixtures/generation.h"

static void assert_same(const att_generated *a, const att_generated *b)
{
    assert_int_equal(a->tokens.count, b->tokens.count);
    assert_memory_equal(a->tokens.ids, b->tokens.ids, (size_t)a->tokens.count * sizeof(int32_t));
    assert_string_equal(a->text.text, b->text.text);
    assert_int_equal(a->end, b->end);
    assert_memory_equal(a->log_probabilities, b->log_probabilities, (size_t)a->tokens.count * sizeof(float));
}

/* ---- alone and in company */

static const char *const stop[] = {"ej", "qqq"};
#define LONG "bdcabtafhjkkqpprsabcdefgih"

/* Texts that differ in what they are and in how they are sampled; some begin with the same tokens. */
static const struct {
    const char *prompt;
    att_generate_options o;
    bool lookup; /* where the session is of f32 */
} chats[] = {
    {LONG "lmnopqrstaabbccddeeffgghhii", {.max_tokens = 14}, true},
    {"bdcab", {.max_tokens = 30, .sampling = SAMPLING(.temperature = 2), .seed = 7}, false},
    {LONG "tsrqponm", {.sampling = SAMPLING(.top_k = 5, .repetition_penalty = 1.2f), .seed = 9}, true},
    {"t", {.max_tokens = 40, .stop = stop, .n_stop = 2}, true},
    {LONG, {.max_tokens = 9, .sampling = SAMPLING(.temperature = 3), .seed = 7, .first_sequence = 3}, false},
    {"bdcabtaf", {.max_tokens = 25, .sampling = SAMPLING(.top_p = 0.9f), .seed = 1, .stop = stop, .n_stop = 1}, false},
};
enum { CHATS = sizeof chats / sizeof chats[0] };

static int64_t add_chat(const setting *t, int i, bool f32, pieces *p)
{
    att_generate_options o = chats[i].o;
    o.size = sizeof o;
    o.log_probabilities = true;
    o.lookup = f32 && chats[i].lookup ? 4 : 0;
    o.token = add_piece;
    o.user = p;
    *p = (pieces){.n = 0};
    return p->number = add(t, chats[i].prompt, &o);
}

static att_generated alone_in(att_ctx *ctx, const att_generation_options *o, int i)
{
    pieces p;
    setting t = open_in(ctx, o);
    const int64_t number = add_chat(&t, i, o->dtype == ATT_F32, &p);
    run(&t);
    att_generated out = finish(&t, number);
    close_models(&t);
    return out;
}

/* When chats join: i at step `every` i, in this order or the opposite one; others come and are removed meanwhile. */
typedef struct schedule {
    int every;
    bool backwards, strangers;
} schedule;

static void check_company(att_ctx *ctx, const att_generation_options *o, const att_generated *alone, const schedule *c)
{
    setting t = open_in(ctx, o);
    int64_t number[CHATS], stranger = -1, active = 0;
    pieces p[CHATS], unwanted;
    int next = 0;
    for (int at = 0; next < CHATS || active > 0; at++) {
        for (; next < CHATS && at >= c->every * next; next++) {
            const int i = c->backwards ? CHATS - 1 - next : next;
            number[i] = add_chat(&t, i, o->dtype == ATT_F32, &p[i]);
        }
        if (c->strangers && at % 3 == 2 && stranger >= 0) {
            assert_int_equal(att_generation_remove(t.s, stranger), ATT_OK);
            stranger = -1;
        } else if (c->strangers && at % 3 == 0 && stranger < 0 && at < 40)
            stranger = add_chat(&t, at % CHATS, false, &unwanted);
        active = step(&t);
    }
    for (int i = 0; i < CHATS; i++) {
        att_generated out = finish(&t, number[i]);
        assert_same(&alone[i], &out);
        assert_string_equal(p[i].text, out.text.text);
        assert_int_equal(p[i].n, out.tokens.count);
        assert_true(p[i].last);
        att_generated_free(ctx, &out);
    }
    close_models(&t);
}

static void a_text_is_the_same_alone_and_in_company(void **state)
{
    (void)state;
    static const schedule schedules[] = {{0, false, false}, {2, false, true}, {3, true, false}, {0, true, true}};
    static const att_dtype types[] = {ATT_F32, ATT_BF16, ATT_F16};
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);)
        for (int k = 0; k < 12; k += check_step(5)) {
            att_generation_options o = {.size = sizeof o, .dtype = types[k % 3]};
            o.prompt_tokens = k / 3 % 2 ? 10 : 0;
            o.kept_tokens = k / 6 ? 120 : 0;
            att_generated alone[CHATS];
            for (int i = 0; i < CHATS; i++)
                alone[i] = alone_in(ctx, &o, i);
            for (size_t i = 0; i < sizeof schedules / sizeof schedules[0]; i++)
                check_company(ctx, &o, alone, &schedules[i]);
            for (int i = 0; i < CHATS; i++)
                att_generated_free(ctx, &alone[i]);
        }
}

static void a_text_is_that_of_a_call(void **state)
{
    (void)state;
    static const att_dtype types[] = {ATT_F32, ATT_BF16, ATT_F16};
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);)
        for (int k = 0; k < 3; k++)
            for (int i = 0; i < CHATS; i++) {
                const att_generation_options options = {.size = sizeof options, .dtype = types[k]};
                att_generated call, alone = alone_in(ctx, &options, i);
                att_text_generator *g;
                att_language_state *s;
                att_generate_options o = chats[i].o;
                int32_t ids[POSITIONS];
                assert_int_equal(att_text_generator_open(ctx, folder.path, NULL, &g), ATT_OK);
                assert_int_equal(att_language_state_new(att_text_generator_model(g), 1, types[k], &s), ATT_OK);
                o.size = sizeof o;
                o.log_probabilities = true;
                o.state = k == 0 ? NULL : s;
                const int64_t offsets[] = {0, ids_of(chats[i].prompt, ids)};
                assert_int_equal(att_generate(g, 1, ids, offsets, &o, &call), ATT_OK);
                assert_same(&call, &alone);
                att_generated_free(ctx, &call);
                att_generated_free(ctx, &alone);
                att_language_state_free(s);
                att_text_generator_free(g);
            }
}

/* ---- prompts */

static void a_long_prompt_does_not_stop_others(void **state)
{
    (void)state;
    setting t = open_setting(THREADS(2), SESSION(.prompt_tokens = 10));
    pieces first = {.number = 0}, second = {.number = 1}, third = {.number = 2};
    add(&t, "ttttt", OPTIONS(.token = add_piece, .user = &first));
    step(&t);
    add(&t, LONG LONG, OPTIONS(.token = add_piece, .user = &second)); /* 52 tokens: 6 parts */
    add(&t, "t", OPTIONS(.token = add_piece, .user = &third));
    for (int i = 1; i <= 7; i++) {
        step(&t);
        assert_int_equal(first.n, i + 1);
        assert_int_equal(second.n, i < 7 ? 0 : 1);
        assert_int_equal(third.n, i < 2 ? 0 : i - 1);
    }
    close_setting(&t);
}

/* Parts of several prompts are computed together as long as they are whole; which does not fit is next. */
static void short_prompts_share_a_step(void **state)
{
    (void)state;
    setting t = open_setting(THREADS(1), SESSION(.prompt_tokens = 10));
    static const char *const prompts[] = {"abcdef", "bdcabbb", "aaa", "tttt"};
    static const int first_step[] = {1, 2, 1, 3};
    pieces p[4];
    for (int i = 0; i < 4; i++) {
        p[i] = (pieces){.number = i};
        add(&t, prompts[i], OPTIONS(.token = add_piece, .user = &p[i]));
    }
    for (int at = 1; at < 6; at++) {
        step(&t);
        for (int i = 0; i < 4; i++)
            assert_int_equal(p[i].n, at < first_step[i] ? 0 : at - first_step[i] + 1);
    }
    close_setting(&t);
}

static void short_prompts_do_not_hold_up_a_long_one(void **state)
{
    (void)state;
    setting t = open_setting(THREADS(1), SESSION(.prompt_tokens = 10));
    pieces p = {.number = 0};
    add(&t, LONG, OPTIONS(.token = add_piece, .user = &p)); /* 3 parts */
    for (int at = 0; at < 6; at++) {
        add(&t, "ttt", OPTIONS(.max_tokens = 2));
        add(&t, "ttt", OPTIONS(.max_tokens = 2));
        step(&t);
    }
    assert_true(p.n > 0);
    close_setting(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_is_the_same_alone_and_in_company), cmocka_unit_test(a_text_is_that_of_a_call),
        cmocka_unit_test(a_long_prompt_does_not_stop_others),      cmocka_unit_test(short_prompts_share_a_step),
        cmocka_unit_test(short_prompts_do_not_hold_up_a_long_one),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
