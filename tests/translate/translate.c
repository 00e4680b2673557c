/* Texts to translations: as transformers has them, in any company; settings, options and texts that are wrong. */
// labels: long threads
#include "fixtures/check.h"
#include "fixtures/fail_alloc.h"
#include "fixtures/fail_malloc.h"
#include "translate/text_segments.h"
#include "fixtures/translator.h"

#include <pthread.h>

static void assert_same(const att_translation *a, const att_translation *b)
{
    assert_true(!a->text.text == !b->text.text);
    if (!a->text.text)
        return;
    assert_string_equal(a->text.text, b->text.text);
    assert_int_equal(a->text.bytes, b->text.bytes);
    assert_int_equal(a->tokens.count, b->tokens.count);
    assert_memory_equal(a->tokens.ids, b->tokens.ids, (size_t)a->tokens.count * sizeof *a->tokens.ids);
    assert_true(a->score == b->score);
}

/* ---- what is found */

static void texts_are_translated_as_transformers_does(void **state)
{
    (void)state;
    FILE *golden = fopen("tests/golden/tiny_marian.jsonl", "r");
    assert_non_null(golden);
    json_t *line = NULL, *texts = NULL, *text;
    while (!texts) {
        json_decref(line);
        line = json_loadf(golden, JSON_DISABLE_EOF_CHECK, NULL);
        assert_non_null(line);
        texts = json_object_get(line, "texts");
    }
    fclose(golden);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(line, "config"), "vocab_size")), tokens);
    att_translator *m = open_translator(ctx);
    size_t i;
    json_array_foreach(texts, i, text)
    {
        const char *source = json_string_value(json_object_get(text, "source"));
        att_translation greedy, beam, text_alone;
        translate(m, 1, &source, ATT_OPTIONS(att_translate_options, .beam = 1), &greedy);
        translate(m, 1, &source, ATT_OPTIONS(att_translate_options, .beam = 1, .no_scores = true), &text_alone);
        translate(m, 1, &source, NULL, &beam); /* four, by generation_config.json */
        assert_string_equal(greedy.text.text, json_string_value(json_object_get(text, "greedy")));
        assert_string_equal(beam.text.text, json_string_value(json_object_get(text, "beam")));
        assert_string_equal(text_alone.text.text, greedy.text.text);
        assert_true(isfinite(greedy.score) && isnan(text_alone.score));
        free_all(ctx, &greedy, 1);
        free_all(ctx, &beam, 1);
        free_all(ctx, &text_alone, 1);
    }
    assert_int_equal(i, 4);
    json_decref(line);
    att_translator_free(m);
}

enum { LINES = 150 };

/* Lines of 1 to 6 words. */
static void make_lines(char text[LINES][64], const char *line[LINES])
{
    static const char *const words[] = {"a", "table", "the", "China", "running", "in", "snow", "Hund", "und"};
    for (unsigned i = 0; i < LINES; i++) {
        text[i][0] = 0;
        for (unsigned k = 0; k <= i * 7 % 6; k++) {
            strcat(text[i], k ? " " : "");
            strcat(text[i], words[(i * 5 + k * (i + 3)) % (sizeof words / sizeof words[0])]);
        }
        line[i] = text[i];
    }
}

static void any_threads_and_any_company_give_the_same_translations(void **state)
{
    (void)state;
    static char text[LINES][64];
    static att_translation expected[2 * LINES], found[2 * LINES];
    const char *line[LINES];
    const att_translate_options *o = ATT_OPTIONS(att_translate_options, .beam = 3, .n_best = 2, .max_tokens = 5);
    make_lines(text, line);
    att_translator *m = open_translator(ctx);
    translate(m, LINES, line, o, expected);
    for (int i = 0; i < LINES; i += check_step(25)) {
        translate(m, 1, &line[i], o, found);
        for (int k = 0; k < 2; k++)
            assert_same(&found[k], &expected[2 * i + k]);
        assert_true(found[0].score >= found[1].score && found[1].text.text);
        free_all(ctx, found, 2);
    }
    for (int threads = 1; threads <= 3; threads += 2) {
        att_ctx *c;
        assert_int_equal(att_open(&c, ATT_OPTIONS(att_config, .n_threads = threads)), ATT_OK);
        att_translator *other = open_translator(c);
        translate(other, LINES - 7, line + 7, o, found); /* another first, and with it other batches */
        for (int i = 0; i < 2 * (LINES - 7); i++)
            assert_same(&found[i], &expected[2 * 7 + i]);
        free_all(c, found, 2 * (LINES - 7));
        att_translator_free(other);
        att_close(c);
    }
    free_all(ctx, expected, 2 * LINES);
    att_translator_free(m);
}

typedef struct caller {
    const att_translator *m;
    const char *const *line;
    const att_translation *expected; /* [LINES] */
    bool same;
} caller;

static void *call(void *arg)
{
    static const int first = 100;
    caller *c = arg;
    att_translation found[LINES];
    c->same = att_translate(c->m, LINES - first, c->line + first, NULL, ATT_OPTIONS(att_translate_options, .beam = 1),
                            found) == ATT_OK;
    for (int i = first; c->same && i < LINES; i++)
        c->same = !strcmp(found[i - first].text.text, c->expected[i].text.text);
    free_all(ctx, found, LINES - first);
    return NULL;
}

static void many_threads_may_translate_with_one_model(void **state)
{
    (void)state;
    enum { CALLERS = 4 };
    static char text[LINES][64];
    static att_translation expected[LINES];
    const char *line[LINES];
    make_lines(text, line);
    att_translator *m = open_translator(ctx);
    translate(m, LINES, line, ATT_OPTIONS(att_translate_options, .beam = 1), expected);
    pthread_t thread[CALLERS];
    caller c[CALLERS];
    for (int i = 0; i < CALLERS; i++) {
        c[i] = (caller){.m = m, .line = line, .expected = expected};
        assert_int_equal(pthread_create(&thread[i], NULL, call, &c[i]), 0);
    }
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(thread[i], NULL);
        assert_true(c[i].same);
    }
    free_all(ctx, expected, LINES);
    att_translator_free(m);
}

static void nothing_is_translated_to_nothing(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "table\0x", " \t\n ", "table"};
    static const size_t bytes[] = {0, 7, 4, 5};
    att_translator *m = open_translator(ctx);
    att_translation found[8], table[2];
    const att_translate_options *o = ATT_OPTIONS(att_translate_options, .beam = 2, .n_best = 2);
    assert_int_equal(att_translate(m, 4, texts, bytes, o, found), ATT_OK);
    translate(m, 1, &texts[3], o, table);
    for (int i = 0; i < 8; i += 4) { /* that have a single translation */
        assert_true(found[i].text.bytes == 0 && found[i].tokens.count == 0 && found[i].score == 0);
        assert_string_equal(found[i].text.text, "");
        assert_null(found[i + 1].text.text);
    }
    assert_string_not_equal(found[2].text.text, found[6].text.text); /* the bytes behind the zero are read */
    for (int k = 0; k < 2; k++)
        assert_same(&found[6 + k], &table[k]);
    free_all(ctx, found, 8);
    free_all(ctx, table, 2);
    assert_int_equal(att_translate(m, 0, NULL, NULL, NULL, NULL), ATT_OK);
    att_translator_free(m);
}

static void options_are_followed(void **state)
{
    (void)state;
    static const char *const line = "Ein Hund";
    att_translator *m = open_translator(ctx);
    att_translation a, b;
    translate(m, 1, &line, ATT_OPTIONS(att_translate_options, .max_tokens = 4), &a);
    assert_in_range(a.tokens.count, 1, 3); /* the end is one of them */
    translate(m, 1, &line, ATT_OPTIONS(att_translate_options, .max_tokens = 4, .length_penalty = &(float){0}), &b);
    check_near(b.score, (double)a.score * (double)(a.tokens.count + 1), 1e-5, "score"); /* this one ends nowhere else */
    free_all(ctx, &a, 1);
    free_all(ctx, &b, 1);
    translate(m, 1, &line, ATT_OPTIONS(att_translate_options, .beam = 1, .min_tokens = 11), &a);
    assert_in_range(a.tokens.count, 10, 11);
    free_all(ctx, &a, 1);
    att_translator_free(m);
}

/* ---- long texts */

/* The segments of a text of at most `most` tokens are these, each as it is cut alone. */
static void check_segments(const att_tokenizer *t, int64_t most, const char *text, const char *const *expected)
{
    att_text_segments p = {.ctx = ctx, .tokenizer = t, .max_tokens = most, .split = true};
    assert_int_equal(att_text_segments_add(&p, 7, text, strlen(text)), ATT_OK);
    int64_t n = 0;
    for (; expected[n]; n++) {
        att_tokens alone;
        assert_in_range(n, 0, p.count - 1);
        assert_int_equal(att_tokenize(t, expected[n], strlen(expected[n]), NULL, &alone), ATT_OK);
        assert_int_equal(p.segment[n].text, 7);
        if (p.segment[n].tokens.count != alone.count ||
            memcmp(p.segment[n].tokens.ids, alone.ids, (size_t)alone.count * sizeof *alone.ids) != 0)
            fail_msg("segment %d of \"%s\" is not \"%s\"", (int)n, text, expected[n]);
        att_tokens_free(ctx, &alone);
    }
    assert_int_equal(p.count, n);
    att_text_segments_free(&p);
}

static void long_texts_are_cut_behind_sentences_at_spaces_or_anywhere(void **state)
{
    (void)state;
    static const struct {
        int64_t most;
        const char *text, *segments[5];
    } cases[] = {
        {8, "One. Two.", {"One. Two."}},
        {10, "The table. And snow, too.", {"The table.", " And snow, too."}},
        {6, "The table is. A b c d e f", {"The table is.", " A b c", " d e f"}},
        {5, "snow in the table", {"snow", " in", " the table"}},
        {4, "1.25 3.50", {"1.", "25", " 3.50"}}, /* no sentence ends before a digit */
        {7, "東京。大阪と。", {"東京。", "大阪と。"}},
        {2, "                a     b   ", {"a", "b"}},
        {10, ">>de<< The table. And in the snow.", {">>de<< The table.", ">>de<< And in the snow."}},
        {3, ">>de<< a b c d", {">>de<< a", ">>de<< b", ">>de<< c", ">>de<< d"}},
        {2, "", {NULL}},
        {2, ">>de<<", {NULL}},
    };
    att_translator *m = open_translator(ctx);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_segments(att_translator_tokenizer(m), cases[i].most, cases[i].text, cases[i].segments);
    att_translator_free(m);
}

static void a_long_text_is_an_error_or_translated_in_segments(void **state)
{
    (void)state;
    static const char *const long_text = "The snow is in the table. A Hund is running in China.";
    static const char *const texts[] = {"The snow is in the table.", " A Hund is running in China."};
    att_translator *m = open_translator(ctx);
    att_translation whole[2] = {{.score = 1}, {.score = 1}}, segments[4];
    const att_translate_options *o =
        ATT_OPTIONS(att_translate_options, .beam = 2, .n_best = 2, .max_tokens = 6, .split = true);
    assert_int_equal(att_translate(m, 1, &long_text, NULL, NULL, whole), ATT_ERR_ARGUMENT);
    check_message(ctx, "text 0 has ");
    check_message(ctx, " tokens but the model has 16 positions");
    assert_null(whole[0].text.text);
    translate(m, 1, &long_text, o, whole);
    translate(m, 2, texts, o, segments);
    for (int k = 0; k < 2; k++) {
        const att_tokens *a = &segments[k].tokens, *b = &segments[2 + k].tokens;
        assert_int_equal(whole[k].tokens.count, a->count + b->count);
        assert_memory_equal(whole[k].tokens.ids, a->ids, (size_t)a->count * sizeof *a->ids);
        assert_memory_equal(whole[k].tokens.ids + a->count, b->ids, (size_t)b->count * sizeof *b->ids);
        const double sum =
            (double)segments[k].score * (double)(a->count + 1) + (double)segments[2 + k].score * (double)(b->count + 1);
        check_near(whole[k].score, sum / (double)(a->count + b->count + 2), 1e-5, "score"); /* of log probabilities */
    }
    free_all(ctx, whole, 2);
    free_all(ctx, segments, 4);
    att_translator_free(m);
}

static void a_megabyte_is_translated_in_segments(void **state)
{
    (void)state;
    enum { BYTES = 1 << 20 };
    char *text = malloc(BYTES + 1);
    for (int i = 0; i < BYTES; i++)
        text[i] = "ab c.d\xff"[(i * 7 + i / 11) % 7];
    text[BYTES] = 0;
    att_translator *m = open_translator(ctx);
    att_text_segments p = {.ctx = ctx, .tokenizer = att_translator_tokenizer(m), .max_tokens = 16, .split = true};
    assert_int_equal(att_text_segments_add(&p, 0, text, BYTES), ATT_OK);
    assert_in_range(p.count, BYTES / 100, BYTES);
    for (int64_t i = 0; i < p.count; i++)
        assert_in_range(p.segment[i].tokens.count, 2, 16);
    att_text_segments_free(&p);
    att_translator_free(m);
    free(text);
}

/* ---- settings */

/* A folder with other settings for its search is opened and gives, for a line, this many tokens. */
static void check_setting(const char *key, const char *value, const att_translate_options *o, int64_t least,
                          int64_t most)
{
    static const char *const line = "Hello world, this is a test.";
    att_translation found;
    marian_write_generation(&folder, tokens, key, value);
    att_translator *m = open_translator(ctx);
    translate(m, 1, &line, o, &found);
    assert_in_range(found.tokens.count, least, most);
    free_all(ctx, &found, 1);
    att_translator_free(m);
}

static void settings_are_those_of_the_folder(void **state)
{
    (void)state;
    const att_translate_options *greedy = ATT_OPTIONS(att_translate_options, .beam = 1);
    check_setting(NULL, NULL, greedy, 1, 11);
    check_setting("max_length", "4", greedy, 2, 2); /* start and end count */
    check_setting("max_new_tokens", "4", greedy, 3, 3);
    check_setting("max_length", "1000", greedy, 1, 15); /* as many as positions */
    check_setting("forced_eos_token_id", NULL, ATT_OPTIONS(att_translate_options, .beam = 1, .max_tokens = 3), 3, 3);
    check_setting("bad_words_ids", NULL, greedy, 1, 11);
    check_setting("bad_words_ids", "[[0], [5]]", greedy, 1, 11); /* as in transformers the end cannot be banned */
    check_setting("suppress_tokens", "null", greedy, 1, 11);
    check_setting("repetition_penalty", "1.0", greedy, 1, 11);
    check_setting("min_length", "10", greedy, 9, 11); /* the start counts */
    check_setting("min_new_tokens", "10", greedy, 10, 11);
    marian_write_generation(&folder, tokens, NULL, NULL);
}

static void what_is_banned_is_not_in_a_translation(void **state)
{
    (void)state;
    static const char *const line = "Hello world, this is a test.";
    char banned[32];
    att_translation found;
    att_translator *m = open_translator(ctx);
    translate(m, 1, &line, NULL, &found);
    const int32_t first = found.tokens.ids[0];
    free_all(ctx, &found, 1);
    att_translator_free(m);
    snprintf(banned, sizeof banned, "[[%d]]", first);
    marian_write_generation(&folder, tokens, "bad_words_ids", banned);
    m = open_translator(ctx);
    translate(m, 1, &line, NULL, &found);
    assert_true(found.tokens.count > 0);
    for (int64_t i = 0; i < found.tokens.count; i++)
        assert_int_not_equal(found.tokens.ids[i], first);
    free_all(ctx, &found, 1);
    att_translator_free(m);
    marian_write_generation(&folder, tokens, NULL, NULL);
}

static void an_older_folder_has_all_settings_in_one_file(void **state)
{
    (void)state;
    static const char *const line = "Hello world, this is a test.";
    att_translation newer, older;
    att_translator *m = open_translator(ctx);
    translate(m, 1, &line, NULL, &newer);
    att_translator_free(m);
    tiny_delete(&folder, "generation_config.json");
    char all[96];
    snprintf(all, sizeof all, "13, \"num_beams\": 4, \"forced_eos_token_id\": 0, \"bad_words_ids\": [[%d]]",
             (int)tokens - 1);
    marian_write_config(&folder, tokens, "max_length", all);
    m = open_translator(ctx);
    translate(m, 1, &line, NULL, &older);
    assert_same(&older, &newer);
    free_all(ctx, &newer, 1);
    free_all(ctx, &older, 1);
    att_translator_free(m);
    marian_write_config(&folder, tokens, NULL, NULL);
    marian_write_generation(&folder, tokens, NULL, NULL);
}

/* ---- what is wrong is named */

static void assert_refused(att_status status, const char *words)
{
    att_translator *m = (att_translator *)&m;
    const att_status s = att_translator_open(ctx, folder.path, NULL, &m);
    assert_null(m);
    check_file_refused(ctx, s, status, folder.path, words);
}

static void wrong_settings_are_named_with_their_values(void **state)
{
    (void)state;
    static const struct {
        const char *key, *value;
        att_status status;
        const char *words;
    } wrong[] = {
        {"num_beams", "0", ATT_ERR_FORMAT, "generation_config.json: \"num_beams\" is 0, not in [1, 1024]"},
        {"num_beams", "2.5", ATT_ERR_FORMAT, "\"num_beams\" is 2.5, not a whole number"},
        {"max_length", "1", ATT_ERR_FORMAT, "\"max_length\" is 1, not in [2, 1048576]"},
        {"max_new_tokens", "0", ATT_ERR_FORMAT, "\"max_new_tokens\" is 0, not in [1, 1048576]"},
        {"min_length", "-1", ATT_ERR_FORMAT, "\"min_length\" is -1, not in [0, 1048576]"},
        {"length_penalty", "1e9", ATT_ERR_FORMAT, "\"length_penalty\" is 1000000000, not in [-100, 100]"},
        {"early_stopping", "\"never\"", ATT_ERR_FORMAT, "\"early_stopping\" is \"never\", not true or false"},
        {"do_sample", "true", ATT_ERR_UNSUPPORTED, "\"do_sample\" is true, which is not supported"},
        {"eos_token_id", "[0]", ATT_ERR_FORMAT, "\"eos_token_id\" is [0.0], not a whole number"},
        {"eos_token_id", "-1", ATT_ERR_FORMAT, "\"eos_token_id\" is -1, not in [0, "},
        {"decoder_start_token_id", "99999", ATT_ERR_FORMAT, "\"decoder_start_token_id\" is 99999, not in [0, "},
        {"forced_eos_token_id", "5", ATT_ERR_UNSUPPORTED, "\"forced_eos_token_id\" is 5, which is not supported"},
        {"forced_bos_token_id", "5", ATT_ERR_UNSUPPORTED, "\"forced_bos_token_id\" is 5, which is not supported"},
        {"bad_words_ids", "[5]", ATT_ERR_UNSUPPORTED, "\"bad_words_ids\" is [5.0], which is not supported"},
        {"bad_words_ids", "[[5, 6]]", ATT_ERR_UNSUPPORTED, "\"bad_words_ids\" is [[5.0,6.0]], which is not supported"},
        {"bad_words_ids", "[[\"a\"]]", ATT_ERR_UNSUPPORTED, "\"bad_words_ids\""},
        {"bad_words_ids", "7", ATT_ERR_FORMAT, "\"bad_words_ids\" is 7, not a list"},
        {"bad_words_ids", "[[4294967296]]", ATT_ERR_FORMAT,
         "\"bad_words_ids\" has 4.29497e+09, but the model's tokens"},
        {"bad_words_ids", "[[-1]]", ATT_ERR_FORMAT, "\"bad_words_ids\" has -1, but the model's tokens are 0 to "},
        {"bad_words_ids", "[[0.5]]", ATT_ERR_FORMAT, "\"bad_words_ids\" has 0.5"},
        {"repetition_penalty", "1.3", ATT_ERR_UNSUPPORTED,
         "\"repetition_penalty\" is 1.3, which is not supported; 1 is"},
        {"no_repeat_ngram_size", "3", ATT_ERR_UNSUPPORTED, "\"no_repeat_ngram_size\" is 3, which is not supported; 0"},
        {"suppress_tokens", "[3]", ATT_ERR_UNSUPPORTED, "\"suppress_tokens\" is [3.0], which is not supported"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        marian_write_generation(&folder, tokens, wrong[i].key, wrong[i].value);
        assert_refused(wrong[i].status, wrong[i].words);
    }
    folder_write(&folder, "generation_config.json", "{");
    assert_refused(ATT_ERR_FORMAT, "generation_config.json: line 1");
    marian_write_generation(&folder, tokens, NULL, NULL);
    att_translator *m;
    assert_int_equal(att_translator_open(ctx, NULL, NULL, &m), ATT_ERR_ARGUMENT);
    assert_string_equal(att_error(ctx), "att_translator_open: folder is NULL");
}

static void a_vocabulary_that_is_not_the_models_is_refused(void **state)
{
    (void)state;
    char words[128];
    for (int64_t size = tokens - 1; size <= tokens + 1; size += 2) {
        marian_write_config(&folder, size, NULL, NULL);
        marian_write_weights(&folder, NULL, &(const tiny_tables){.tokens = size});
        snprintf(words, sizeof words, "vocab.json has %d tokens but the model %d of sources and %d of translations",
                 (int)tokens, (int)size, (int)size);
        assert_refused(ATT_ERR_FORMAT, words);
    }
    write_translator(ctx, &folder);
    tiny_delete(&folder, "target.spm");
    assert_refused(ATT_ERR_IO, "target.spm");
    write_translator(ctx, &folder);
}

static void wrong_calls_are_named_with_their_values(void **state)
{
    (void)state;
    static const float not_a_number = NAN;
    static const struct {
        att_translate_options options;
        const char *words;
    } wrong[] = {
        {{.beam = -1}, "att_translate: options.beam is -1, not in [0, 1024]"},
        {{.beam = 1025}, "att_translate: options.beam is 1025, not in [0, 1024]"},
        {{.max_tokens = 17}, "att_translate: options.max_tokens is 17, not in [0, 16]"},
        {{.min_tokens = 17}, "att_translate: options.min_tokens is 17, not in [0, 16]"},
        {{.beam = 2, .n_best = 3}, "att_translate: options.n_best is 3, not in [0, 2]"},
        {{.n_best = 5}, "att_translate: options.n_best is 5, not in [0, 4]"},
        {{.length_penalty = &not_a_number}, "att_translate: options.length_penalty is nan, not a number"},
    };
    static const char *const texts[] = {"a", NULL};
    att_translator *m = open_translator(ctx);
    att_translation out[2];
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        att_translate_options o = wrong[i].options;
        o.size = sizeof o;
        assert_int_equal(att_translate(m, 1, texts, NULL, &o, out), ATT_ERR_ARGUMENT);
        assert_string_equal(att_error(ctx), wrong[i].words);
    }
    assert_int_equal(att_translate(m, 2, texts, NULL, NULL, out), ATT_ERR_ARGUMENT);
    assert_string_equal(att_error(ctx), "att_translate: texts[1] is NULL");
    assert_int_equal(att_translate(m, -1, texts, NULL, NULL, out), ATT_ERR_ARGUMENT);
    assert_string_equal(att_error(ctx), "att_translate: n is -1, not in [0, 2^31]");
    assert_int_equal(att_translate(m, 1, texts, NULL, &(att_translate_options){0}, out), ATT_ERR_ARGUMENT);
    check_message(ctx, "att_translate_options");
    att_translator_free(m);
}

/* Whoever is cancelled translates nothing, and leaves nothing. */
static void a_translation_can_be_cancelled(void **state)
{
    (void)state;
    static const char *const text = "Ein Hund";
    volatile int cancel = 0;
    att_ctx *c;
    att_translation out;
    assert_int_equal(att_open(&c, ATT_OPTIONS(att_config, .n_threads = 1, .cancel = &cancel)), ATT_OK);
    att_translator *m = open_translator(c);
    cancel = 1;
    assert_int_equal(att_translate(m, 1, &text, NULL, NULL, &out), ATT_ERR_CANCELLED);
    assert_null(out.text.text);
    att_translator_free(m);
    att_close(c);
}

/* ---- failing allocations */

/* Opens, translates, aligns, closes; out: the first text's. */
static att_status everything(const att_config *cfg, char out[256])
{
    static const char *const texts[] = {">>de<< The snow is in the table. A Hund is running in China.", "", "a"};
    att_ctx *c = NULL;
    att_translator *m = NULL;
    att_translation found[6];
    att_trace *trace = NULL;
    float weights[64];
    att_status s = att_open(&c, cfg);
    s = s ? s : att_translator_open(c, folder.path, NULL, &m);
    s = s ? s
          : att_translate(m, 3, texts, NULL,
                          ATT_OPTIONS(att_translate_options, .beam = 2, .n_best = 2, .max_tokens = 3, .split = true),
                          found);
    if (!s) {
        snprintf(out, 256, "%s", found[0].text.text);
        s = att_translator_trace(m, "a", 1, found[0].tokens.ids, 2, NULL, &trace);
        s = s ? s : att_trace_weights(trace, att_trace_find(trace, ATT_TRACE_SIDE_CROSS, 1), -1, 0, 1, weights);
        free_all(c, found, 6);
    }
    att_trace_free(trace);
    att_translator_free(m);
    att_close(c);
    return s;
}

static void a_failing_allocation_of_the_context_anywhere_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    char text[256];
    att_status s = ATT_ERR_MEMORY;
    for (long at = 1; s; at += check_step(7)) {
        fail_alloc a = {.fail_at = at};
        s = everything(ATT_OPTIONS(att_config, .n_threads = 1, .allocator = fail_allocator(&a)), text);
        assert_true(s == ATT_ERR_MEMORY || (s == ATT_OK && a.calls < at));
        assert_int_equal(a.live, 0);
    }
}

static void a_failing_malloc_anywhere_is_an_error_or_changes_nothing_and_leaks_nothing(void **state)
{
    (void)state;
    if (!FAIL_MALLOC_WORKS)
        skip();
    const att_config *cfg = ATT_OPTIONS(att_config, .n_threads = 1);
    char expected[256], text[256];
    assert_int_equal(everything(cfg, expected), ATT_OK);
    long at = 0;
    do {
        at += check_step(10);
        malloc_fails_at(at);
        const att_status s = everything(cfg, text);
        malloc_fails_never();
        if (malloc_live != 0)
            fail_msg("failing at %ld leaves %ld blocks", at, (long)malloc_live);
        if (s && s != ATT_ERR_MEMORY && s != ATT_ERR_IO)
            fail_msg("failing at %ld gives %s: %s", at, att_status_name(s), att_error(NULL));
        else if (!s)
            assert_string_equal(text, expected);
    } while (malloc_calls >= at);
    assert_true(at > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_translated_as_transformers_does),
        cmocka_unit_test(any_threads_and_any_company_give_the_same_translations),
        cmocka_unit_test(many_threads_may_translate_with_one_model),
        cmocka_unit_test(nothing_is_translated_to_nothing),
        cmocka_unit_test(options_are_followed),
        cmocka_unit_test(long_texts_are_cut_behind_sentences_at_spaces_or_anywhere),
        cmocka_unit_test(a_long_text_is_an_error_or_translated_in_segments),
        cmocka_unit_test(a_megabyte_is_translated_in_segments),
        cmocka_unit_test(settings_are_those_of_the_folder),
        cmocka_unit_test(what_is_banned_is_not_in_a_translation),
        cmocka_unit_test(an_older_folder_has_all_settings_in_one_file),
        cmocka_unit_test(wrong_settings_are_named_with_their_values),
        cmocka_unit_test(a_vocabulary_that_is_not_the_models_is_refused),
        cmocka_unit_test(wrong_calls_are_named_with_their_values),
        cmocka_unit_test(a_translation_can_be_cancelled),
        cmocka_unit_test(a_failing_allocation_of_the_context_anywhere_is_an_error_and_leaks_nothing),
        cmocka_unit_test(a_failing_malloc_anywhere_is_an_error_or_changes_nothing_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
