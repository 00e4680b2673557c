/* att_generate: the tokens of transformers, the same whatever is computed together, ends, states, errors. */
// labels: threads
#include "attend_language.h"
#include "fixtures/check.h"
#include "fixtures/fail_alloc.h"
#include "fixtures/folder.h"

#include <math.h>

/* The tiny model's tokens are the letters a to t; it has 32 positions. */
static const char *const model = "tests/golden/tiny_llama";
enum { POSITIONS = 32 };

static att_ctx *ctx;
static int cancel;
static att_text_generator *g;

static int set_up(void **state)
{
    (void)state;
    return att_open(&ctx, ATT_OPTIONS(att_config, .n_threads = 2, .cancel = &cancel)) ||
           att_text_generator_open(ctx, model, NULL, &g);
}

static int tear_down(void **state)
{
    (void)state;
    att_text_generator_free(g);
    att_close(ctx);
    return 0;
}

/* ---- calls */

/* Prompts of letters, as ids */
typedef struct prompts {
    int64_t n, offsets[100];
    int32_t ids[1000];
} prompts;

static prompts prompts_of(int n, const char *const *text)
{
    prompts p = {.n = n};
    for (int i = 0; i < n; i++) {
        p.offsets[i + 1] = p.offsets[i] + (int64_t)strlen(text[i]);
        for (size_t k = 0; text[i][k]; k++)
            p.ids[p.offsets[i] + (int64_t)k] = text[i][k] - 'a';
    }
    return p;
}

#define PROMPTS(...)                                                                                                   \
    prompts_of((int)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)), (const char *const[]){__VA_ARGS__})

static void generate_with(const att_text_generator *with, const prompts *p, const att_generate_options *o,
                          att_generated *out)
{
    if (att_generate(with, p->n, p->ids, p->offsets, o, out))
        fail_msg("%s", att_error(ctx));
}

/* Text, tokens and end of one prompt */
static void check_text(const att_text_generator *with, const char *prompt, const att_generate_options *o,
                       const char *text, att_generation_end end)
{
    const prompts p = PROMPTS(prompt);
    att_generated out;
    generate_with(with, &p, o, &out);
    assert_string_equal(out.text.text, text);
    assert_int_equal(out.end, end);
    att_generated_free(ctx, &out);
}
#define OPTIONS(...) ATT_OPTIONS(att_generate_options, __VA_ARGS__)
#define SAMPLING(...) ATT_OPTIONS(att_sampling, .sample = true, __VA_ARGS__)

static void assert_same(const att_generated *a, const att_generated *b)
{
    assert_int_equal(a->tokens.count, b->tokens.count);
    assert_memory_equal(a->tokens.ids, b->tokens.ids, (size_t)a->tokens.count * sizeof(int32_t));
    assert_string_equal(a->text.text, b->text.text);
    assert_int_equal(a->end, b->end);
    assert_int_equal(!a->log_probabilities, !b->log_probabilities);
    if (a->log_probabilities)
        assert_memory_equal(a->log_probabilities, b->log_probabilities, (size_t)a->tokens.count * sizeof(float));
}

/* Makes a folder of the tiny model with these generation settings. */
static test_folder folder_with(const char *settings)
{
    const test_folder folder = folder_new();
    char command[256];
    snprintf(command, sizeof command, "cp %s/* %s", model, folder.path);
    assert_int_equal(system(command), 0);
    folder_write(&folder, "generation_config.json", settings);
    return folder;
}

static att_text_generator *open_with(const test_folder *folder)
{
    att_text_generator *with;
    if (att_text_generator_open(ctx, folder->path, NULL, &with))
        fail_msg("%s", att_error(ctx));
    return with;
}

/* ---- tokens and ends */

/* What model.generate of transformers 5.23.0 returns for this folder, in float64 */
static void greedy_text_is_that_of_transformers(void **state)
{
    (void)state;
    static const char *const all = "oeqegslaegslaegslaegslae";
    check_text(g, "bdcab", OPTIONS(.max_tokens = 24), all, ATT_GENERATION_LENGTH);
    check_text(g, "t", OPTIONS(.max_tokens = 24), "ceqejejehpcbpcblejejejej", ATT_GENERATION_LENGTH);
    check_text(g, "bdcab", OPTIONS(.max_tokens = 24, .sampling = ATT_OPTIONS(att_sampling, .repetition_penalty = 1.3f)),
               "oeqslaegslaegslaejegslae", ATT_GENERATION_LENGTH);
    check_text(g, "t", OPTIONS(.max_tokens = 24, .sampling = ATT_OPTIONS(att_sampling, .repetition_penalty = 2)),
               "ceqifboslarhpgmejekboeje", ATT_GENERATION_LENGTH);
    check_text(g, "bdcab", NULL, "oeqegslaegslaegslaegslaegsl", ATT_GENERATION_CONTEXT);
    check_text(g, "bdcab", OPTIONS(.sampling = SAMPLING(.top_k = 1), .max_tokens = 24), all, ATT_GENERATION_LENGTH);
    const prompts p = PROMPTS("bdcab");
    att_generated out;
    generate_with(g, &p, OPTIONS(.max_tokens = 1, .log_probabilities = true), &out);
    assert_true(fabs((double)out.log_probabilities[0] + 1.237894491173207) < 1e-5);
    att_generated_free(ctx, &out);
}

static void an_end_token_ends_a_text(void **state)
{
    (void)state;
    const test_folder folder = folder_with("{\"eos_token_id\": [6, 11]}");
    att_text_generator *with = open_with(&folder);
    check_text(with, "bdcab", OPTIONS(.max_tokens = 24), "oeqe", ATT_GENERATION_EOS);
    check_text(with, "bdcab", OPTIONS(.max_tokens = 5), "oeqe", ATT_GENERATION_EOS);
    check_text(with, "bdcab", OPTIONS(.max_tokens = 8, .ignore_eos = true), "oeqegsla", ATT_GENERATION_LENGTH);
    const prompts p = PROMPTS("bdcab");
    att_generated out;
    generate_with(with, &p, NULL, &out);
    assert_int_equal(out.tokens.count, 5);
    assert_int_equal(out.tokens.ids[4], 6);
    att_generated_free(ctx, &out);
    att_text_generator_free(with);
    folder_remove(&folder);
}

static void a_stop_string_ends_a_text(void **state)
{
    (void)state;
    static const char *const stop[] = {"slx", "gsl"};
    check_text(g, "bdcab", OPTIONS(.max_tokens = 24, .stop = stop, .n_stop = 2), "oeqe", ATT_GENERATION_STOP);
    check_text(g, "bdcab", OPTIONS(.max_tokens = 7, .stop = stop, .n_stop = 2), "oeqe", ATT_GENERATION_STOP);
    check_text(g, "bdcab", OPTIONS(.max_tokens = 6, .stop = stop, .n_stop = 2), "oeqegs", ATT_GENERATION_LENGTH);
    check_text(g, "bdcab", OPTIONS(.max_tokens = 7, .stop = stop, .n_stop = 1), "oeqegsl", ATT_GENERATION_LENGTH);
}

static void a_special_token_is_a_stop_string_by_its_name(void **state)
{
    (void)state;
    const test_folder folder = folder_with("{}");
    folder_write(&folder, "tokenizer.json",
                 "{\"added_tokens\": [{\"id\": 6, \"content\": \"<g>\", \"special\": true, \"normalized\": false, "
                 "\"single_word\": false, \"lstrip\": false, \"rstrip\": false}], \"decoder\": {\"type\": \"Fuse\"}, "
                 "\"model\": {\"type\": \"BPE\", \"vocab\": {\"o\": 14, \"e\": 4, \"q\": 16, \"a\": 0, \"b\": 1, "
                 "\"c\": 2, \"d\": 3, \"f\": 5, \"s\": 18}, \"merges\": []}}");
    att_text_generator *with = open_with(&folder);
    static const char *const stop[] = {"<g>"};
    check_text(with, "bdcab", OPTIONS(.max_tokens = 6, .stop = stop, .n_stop = 1), "oeqe", ATT_GENERATION_STOP);
    check_text(with, "bdcab", OPTIONS(.max_tokens = 6), "oeqes", ATT_GENERATION_LENGTH); /* it has no text */
    att_text_generator_free(with);
    folder_remove(&folder);
}

/* ---- the callback */

typedef struct pieces {
    char text[200];
    int n, last, end_after;
    int64_t position;
    float log_probability[100];
} pieces;

static bool add_piece(void *user, const att_generated_token *token)
{
    pieces *p = user;
    assert_int_equal(p->last, 0);
    p->position = p->n == 0 ? token->position : p->position + 1;
    assert_int_equal(token->position, p->position);
    p->log_probability[p->n++] = token->log_probability;
    p->last = token->last;
    assert_non_null(token->text);
    strncat(p->text, token->text, token->bytes);
    strcat(p->text, "|");
    return p->n != p->end_after;
}

static void the_callback_has_each_token_and_all_text(void **state)
{
    (void)state;
    static const char *const stop[] = {"gslz"};
    pieces p = {.end_after = 0};
    check_text(g, "bdcab", OPTIONS(.max_tokens = 7, .token = add_piece, .user = &p), "oeqegsl", ATT_GENERATION_LENGTH);
    assert_string_equal(p.text, "o|e|q|e|g|s|l|");
    assert_true(p.last && isnan(p.log_probability[0]));
    p = (pieces){.end_after = 0};
    check_text(g, "bdcab", OPTIONS(.max_tokens = 9, .token = add_piece, .user = &p, .stop = stop, .n_stop = 1),
               "oeqegslae", ATT_GENERATION_LENGTH);
    assert_string_equal(p.text, "o|e|q|e||||gsla|e|");
    p = (pieces){.end_after = 0};
    check_text(g, "bdcab", OPTIONS(.max_tokens = 6, .token = add_piece, .user = &p, .stop = stop, .n_stop = 1),
               "oeqegs", ATT_GENERATION_LENGTH);
    assert_string_equal(p.text, "o|e|q|e||gs|");
    p = (pieces){.end_after = 3};
    check_text(g, "bdcab", OPTIONS(.max_tokens = 6, .token = add_piece, .user = &p), "oeq", ATT_GENERATION_CALLBACK);
    const test_folder folder = folder_with("{\"eos_token_id\": 14}"); /* "o": no token has text */
    att_text_generator *with = open_with(&folder);
    p = (pieces){.end_after = 0};
    check_text(with, "bdcab", OPTIONS(.max_tokens = 6, .token = add_piece, .user = &p), "", ATT_GENERATION_EOS);
    assert_string_equal(p.text, "|");
    att_text_generator_free(with);
    folder_remove(&folder);
}

/* ---- together and alone */

static void a_text_is_the_same_in_any_call(void **state)
{
    (void)state;
    const prompts all = PROMPTS("bdcab", "t", "abcdefghijklmnopqrst", "eqe", "aaaa");
    const att_sampling *samplings[] = {NULL, SAMPLING(.top_k = 5), SAMPLING(.temperature = 3),
                                       SAMPLING(.top_p = 0.9f, .repetition_penalty = 1.2f)};
    for (int k = 0; k < 4; k++) {
        att_generated together[5], alone;
        const att_generate_options o = {
            .size = sizeof o, .sampling = samplings[k], .seed = 5, .log_probabilities = k % 2 == 0};
        generate_with(g, &all, &o, together);
        for (int i = 0; i < 5; i++) {
            att_ctx *other; /* another number of threads */
            att_text_generator *with;
            assert_int_equal(att_open(&other, ATT_OPTIONS(att_config, .n_threads = 1 + i)), ATT_OK);
            assert_int_equal(att_text_generator_open(other, model, NULL, &with), ATT_OK);
            att_generate_options one = o;
            one.first_sequence = i;
            const int64_t offsets[] = {0, all.offsets[i + 1] - all.offsets[i]};
            assert_int_equal(att_generate(with, 1, all.ids + all.offsets[i], offsets, &one, &alone), ATT_OK);
            assert_same(&together[i], &alone);
            att_generated_free(other, &alone);
            att_text_generator_free(with);
            att_close(other);
        }
        for (int i = 0; i < 5; i++)
            att_generated_free(ctx, &together[i]);
    }
}

/* More prompts than are computed together */
static void many_prompts_have_the_texts_of_each(void **state)
{
    (void)state;
    enum { MANY = 90 };
    prompts all = {.n = MANY};
    static att_generated together[MANY];
    for (int i = 0; i < MANY; i++) {
        all.offsets[i + 1] = all.offsets[i] + 1 + i % 9;
        for (int64_t k = all.offsets[i]; k < all.offsets[i + 1]; k++)
            all.ids[k] = (int32_t)(7 * k + i) % 20;
    }
    const att_sampling *sampling = SAMPLING(.temperature = 2);
    generate_with(g, &all, OPTIONS(.sampling = sampling, .max_tokens = 9), together);
    for (int i = 0; i < MANY; i++) {
        att_generated alone;
        const int64_t offsets[] = {0, 1 + i % 9};
        assert_int_equal(att_generate(g, 1, all.ids + all.offsets[i], offsets,
                                      OPTIONS(.sampling = sampling, .max_tokens = 9, .first_sequence = i), &alone),
                         ATT_OK);
        assert_same(&together[i], &alone);
        att_generated_free(ctx, &alone);
        att_generated_free(ctx, &together[i]);
    }
}

/* Also where a proposal goes beyond the end, by each kind of end */
static void lookup_has_the_bits_of_decoding_without(void **state)
{
    (void)state;
    static const char *const stop[] = {"slae"};
    const test_folder folder = folder_with("{\"eos_token_id\": 18}");
    att_text_generator *with = open_with(&folder);
    const prompts all = PROMPTS("bdcab", "t", "gslaegslaegsla", "eqe", "aaaa");
    const att_generate_options options[] = {
        {.sampling = NULL},
        {.sampling = SAMPLING(.top_k = 2)},
        {.sampling = SAMPLING(.temperature = 0.5f, .repetition_penalty = 1.1f)},
        {.sampling = NULL, .stop = stop, .n_stop = 1},
        {.sampling = NULL, .max_tokens = 11},
        {.sampling = NULL, .ignore_eos = true},
        {.sampling = ATT_OPTIONS(att_sampling, .presence_penalty = 0.1f, .frequency_penalty = 0.03f)},
    };
    for (size_t k = 0; k < sizeof options / sizeof options[0]; k++)
        for (int64_t lookup = 1; lookup <= 10; lookup += 3) {
            const att_text_generator *used = k < 4 ? g : with;
            att_generated plain[5], looked[5];
            att_generate_options o = options[k];
            o.size = sizeof o;
            o.log_probabilities = true;
            generate_with(used, &all, &o, plain);
            o.lookup = lookup;
            generate_with(used, &all, &o, looked);
            for (int i = 0; i < 5; i++) {
                assert_same(&plain[i], &looked[i]);
                att_generated_free(ctx, &plain[i]);
                att_generated_free(ctx, &looked[i]);
            }
        }
    att_text_generator_free(with);
    folder_remove(&folder);
}

/* ---- states */

/* Two texts one after the other with a state, against a call for all of it. */
static void a_state_continues(void **state)
{
    (void)state;
    for (int64_t lookup = 0; lookup <= 4; lookup += 4) {
        att_language_state *s;
        att_generated first[2], second[2], whole[2];
        prompts p = PROMPTS("bdcab", "t");
        assert_int_equal(att_language_state_new(att_text_generator_model(g), 2, 0, &s), ATT_OK);
        generate_with(g, &p, OPTIONS(.max_tokens = 6, .state = s, .lookup = lookup), first);
        assert_int_equal(att_language_state_length(s, 0), 10);
        assert_int_equal(att_language_state_length(s, 1), 6);
        prompts longer = {.n = 2};
        for (int i = 0; i < 2; i++) {
            const int64_t begin = longer.offsets[i], n = p.offsets[i + 1] - p.offsets[i];
            memcpy(longer.ids + begin, p.ids + p.offsets[i], (size_t)n * sizeof(int32_t));
            memcpy(longer.ids + begin + n, first[i].tokens.ids, 6 * sizeof(int32_t));
            longer.ids[begin + n + 6] = 3;
            longer.offsets[i + 1] = begin + n + 7;
        }
        generate_with(g, &longer, OPTIONS(.max_tokens = 6, .state = s, .lookup = lookup), second);
        generate_with(g, &longer, OPTIONS(.max_tokens = 6), whole);
        for (int i = 0; i < 2; i++) {
            assert_same(&second[i], &whole[i]);
            att_generated_free(ctx, &first[i]);
            att_generated_free(ctx, &second[i]);
            att_generated_free(ctx, &whole[i]);
        }
        att_language_state_free(s);
    }
}

/* ---- cancelling */

static bool cancel_third(void *user, const att_generated_token *token)
{
    cancel |= token->position == 7;
    (void)user;
    return true;
}

static void a_cancelled_call_has_what_was_generated(void **state)
{
    (void)state;
    const prompts p = PROMPTS("bdcab", "t");
    att_generated out[2];
    att_language_state *s;
    assert_int_equal(att_language_state_new(att_text_generator_model(g), 2, 0, &s), ATT_OK);
    assert_int_equal(att_generate(g, 2, p.ids, p.offsets, OPTIONS(.token = cancel_third, .state = s), out),
                     ATT_ERR_CANCELLED);
    cancel = 0;
    assert_string_equal(out[0].text.text, "oeq");
    assert_int_equal(out[0].end, ATT_GENERATION_CANCELLED);
    assert_int_equal(out[1].tokens.count, 3);
    assert_int_equal(att_language_state_length(s, 0), 7);
    for (int i = 0; i < 2; i++)
        att_generated_free(ctx, &out[i]);
    att_language_state_free(s);
}

/* ---- settings */

static void settings_of_the_folder_are_read(void **state)
{
    (void)state;
    att_sampling s = {.size = sizeof s};
    assert_int_equal(att_text_generator_sampling(g, &s), ATT_OK);
    assert_true(!s.sample && s.temperature == 1 && s.top_k == 50 && s.top_p == 1 && s.min_p == 0 &&
                s.repetition_penalty == 1);
    const test_folder folder = folder_with("{\"do_sample\": true, \"temperature\": 0.5, \"top_k\": 7, \"top_p\": 0.75, "
                                           "\"min_p\": 0.25, \"repetition_penalty\": 1.5, \"eos_token_id\": null}");
    att_text_generator *with = open_with(&folder);
    assert_int_equal(att_text_generator_sampling(with, &s), ATT_OK);
    assert_true(s.sample && s.temperature == 0.5f && s.top_k == 7 && s.top_p == 0.75f && s.min_p == 0.25f &&
                s.repetition_penalty == 1.5f);
    att_text_generator_free(with);
    folder_remove(&folder);
}

static void settings_that_are_not_supported_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *settings, *says;
    } wrong[] = {
        {"{\"num_beams\": 4}", "\"num_beams\" is 4, which is not supported"},
        {"{\"no_repeat_ngram_size\": 3}", "\"no_repeat_ngram_size\" is 3"},
        {"{\"typical_p\": 0.9}", "\"typical_p\" is 0.9"},
        {"{\"min_new_tokens\": 5}", "\"min_new_tokens\" is 5"},
        {"{\"suppress_tokens\": [1]}", "\"suppress_tokens\" is [1.0]"},
        {"{\"temperature\": -1}", "\"temperature\" is -1"},
        {"{\"top_p\": 1.5}", "\"top_p\" is 1.5"},
        {"{\"eos_token_id\": 20}", "\"eos_token_id\" has 20, but the model's tokens are 0 to 19"},
        {"{\"eos_token_id\": [1, \"x\"]}", "\"eos_token_id\" is [1.0,\"x\"]"},
        {"{\"do_sample\": 3}", "\"do_sample\" is 3"},
        {"[]", "generation_config.json"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const test_folder folder = folder_with(wrong[i].settings);
        att_text_generator *with;
        assert_int_not_equal(att_text_generator_open(ctx, folder.path, NULL, &with), ATT_OK);
        check_message(ctx, wrong[i].says);
        check_message(ctx, "generation_config.json");
        assert_null(with);
        folder_remove(&folder);
    }
    const test_folder folder = folder_with("{}");
    folder_write(&folder, "tokenizer.json",
                 "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 20}, \"merges\": []}}");
    att_text_generator *with;
    assert_int_equal(att_text_generator_open(ctx, folder.path, NULL, &with), ATT_ERR_FORMAT);
    check_message(ctx, "the tokenizer has 21 tokens but the model 20");
    folder_remove(&folder);
}

/* ---- errors */

static void assert_refused(const prompts *p, const att_generate_options *o, const char *says)
{
    att_generated out[4];
    assert_int_equal(att_generate(g, p->n, p->ids, p->offsets, o, out), ATT_ERR_ARGUMENT);
    check_message(ctx, says);
    if (p->n > 0 && p->n < 4)
        assert_null(out[0].tokens.ids);
}

static void prompts_are_checked(void **state)
{
    (void)state;
    prompts p = PROMPTS("abcdefghijklmnopabcdefghijklmnop");
    assert_refused(&p, NULL,
                   "att_generate: prompt 0 has 32 tokens, but the model has 32 positions for prompt and text");
    p = PROMPTS("ab", "");
    assert_refused(&p, NULL, "prompt 1 has no tokens");
    p.offsets[2] = 1;
    assert_refused(&p, NULL, "offsets descend after prompt 1");
    p.offsets[0] = 1;
    assert_refused(&p, NULL, "offsets[0] is 1, not 0");
    p = PROMPTS("ab");
    p.ids[1] = 20;
    assert_refused(&p, NULL, "ids[1] is 20, but the model's are 0 to 19");
    p.ids[1] = -1;
    assert_refused(&p, NULL, "ids[1] is -1");
    p = PROMPTS("ab");
    p.n = -1;
    assert_refused(&p, NULL, "n is -1, not in [0, ");
    p.n = 0;
    assert_int_equal(att_generate(g, 0, p.ids, p.offsets, NULL, &(att_generated){.end = 0}), ATT_OK);
}

static void options_are_checked(void **state)
{
    (void)state;
    const prompts p = PROMPTS("ab");
    assert_refused(&p, OPTIONS(.max_tokens = -1), "options.max_tokens is -1, not in [0, ");
    assert_refused(&p, OPTIONS(.lookup = 65), "options.lookup is 65, not in [0, 64]");
    assert_refused(&p, OPTIONS(.first_sequence = -2), "options.first_sequence is -2");
    assert_refused(&p, OPTIONS(.n_stop = 1), "options.stop is NULL");
    assert_refused(&p, OPTIONS(.n_stop = 1, .stop = (const char *const[]){""}), "options.stop[0] is empty");
    assert_refused(&p, OPTIONS(.n_stop = 1, .stop = (const char *const[]){NULL}), "options.stop[0] is NULL");
    assert_refused(&p, OPTIONS(.sampling = SAMPLING(.top_p = 2)), "att_generate: options.sampling: top_p is 2, not in");
    att_language_state *s;
    att_language_model *other;
    assert_int_equal(att_language_model_open(ctx, model, NULL, &other), ATT_OK);
    assert_int_equal(att_language_state_new(other, 1, 0, &s), ATT_OK);
    assert_refused(&p, OPTIONS(.state = s), "options.state belongs to another model");
    att_language_state_free(s);
    att_language_model_free(other);
    assert_int_equal(att_language_state_new(att_text_generator_model(g), 2, 0, &s), ATT_OK);
    assert_refused(&p, OPTIONS(.state = s), "n is 1, but options.state has 2 sequences");
    att_language_state_free(s);
    att_generated out;
    assert_int_equal(att_language_state_new(att_text_generator_model(g), 1, 0, &s), ATT_OK);
    generate_with(g, &p, OPTIONS(.max_tokens = 2, .state = s), &out);
    att_generated_free(ctx, &out);
    assert_refused(&p, OPTIONS(.state = s),
                   "options.state has 3 tokens of prompt 0, which has 2: at least one has to be new");
    att_language_state_free(s);
    assert_int_equal(att_language_state_new(att_text_generator_model(g), 1, ATT_BF16, &s), ATT_OK);
    generate_with(g, &p, OPTIONS(.max_tokens = 2, .state = s), &out);
    att_generated_free(ctx, &out);
    att_language_state_truncate(s, 0, 0);
    assert_int_equal(att_generate(g, 1, p.ids, p.offsets, OPTIONS(.lookup = 2, .state = s), &out), ATT_ERR_UNSUPPORTED);
    check_message(ctx, "options.lookup is 2, but options.state is not of f32");
    att_language_state_free(s);
}

/* Opens and generates, with all options. */
static att_status everything(const att_config *config)
{
    static const char *const stop[] = {"zz", "q"};
    const prompts p = PROMPTS("bdcab", "gslaegslaegsla");
    att_ctx *c;
    att_text_generator *with = NULL;
    att_language_state *s = NULL;
    att_generated out[2] = {{.end = 0}};
    att_status e = att_open(&c, config);
    if (e)
        return e;
    e = att_text_generator_open(c, model, NULL, &with);
    e = e ? e : att_language_state_new(att_text_generator_model(with), 2, 0, &s);
    for (int own = 0; !e && own < 2; own++) {
        e = att_generate(with, 2, p.ids, p.offsets,
                         OPTIONS(.max_tokens = 4, .sampling = SAMPLING(.top_k = 3, .repetition_penalty = 1.1f),
                                 .stop = stop, .n_stop = 2, .lookup = 2, .log_probabilities = true,
                                 .state = own ? NULL : s),
                         out);
        for (int i = 0; i < 2; i++) {
            assert_true(!e || !out[i].tokens.ids);
            att_generated_free(c, &out[i]);
        }
    }
    att_language_state_free(s);
    att_text_generator_free(with);
    att_close(c);
    return e;
}

static void without_memory_a_call_fails_and_frees_all(void **state)
{
    (void)state;
    att_status s = ATT_ERR_MEMORY;
    for (long at = 1; s; at += check_step(7)) {
        fail_alloc a = {.fail_at = at};
        s = everything(ATT_OPTIONS(att_config, .n_threads = 1, .allocator = fail_allocator(&a)));
        if (a.live)
            fail_msg("failing at %ld leaves %ld blocks", at, (long)a.live);
        if (s && s != ATT_ERR_MEMORY)
            fail_msg("failing at %ld gives %s: %s", at, att_status_name(s), att_error(NULL));
        assert_true(at > 100 || s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(greedy_text_is_that_of_transformers),
        cmocka_unit_test(an_end_token_ends_a_text),
        cmocka_unit_test(a_stop_string_ends_a_text),
        cmocka_unit_test(a_special_token_is_a_stop_string_by_its_name),
        cmocka_unit_test(the_callback_has_each_token_and_all_text),
        cmocka_unit_test(a_text_is_the_same_in_any_call),
        cmocka_unit_test(many_prompts_have_the_texts_of_each),
        cmocka_unit_test(lookup_has_the_bits_of_decoding_without),
        cmocka_unit_test(a_state_continues),
        cmocka_unit_test(a_cancelled_call_has_what_was_generated),
        cmocka_unit_test(settings_of_the_folder_are_read),
        cmocka_unit_test(settings_that_are_not_supported_are_named),
        cmocka_unit_test(prompts_are_checked),
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(without_memory_a_call_fails_and_frees_all),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
