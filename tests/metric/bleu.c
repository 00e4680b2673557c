/* BLEU and chrF are sacrebleu's: tests/golden/make_bleu.py. */
#include "fixtures/context.h"
#include "fixtures/fail_alloc.h"
#include "fixtures/text_lines.h"
#include "fixtures/check.h"
#include "attend_metric.h"

#include <jansson.h>

static const char *const word_names[] = {"13a", "char", "none"};
enum { N_WORDS = 3, N_COUNTS = sizeof(att_bleu_counts) / sizeof(int64_t) };

static att_bleu_tokenizer words_named(const char *name)
{
    for (int i = 0; i < N_WORDS; i++)
        if (strcmp(name, word_names[i]) == 0)
            return (att_bleu_tokenizer)i;
    fail_msg("no words \"%s\"", name);
    return 0;
}

/* ---- cases of bleu.jsonl */

/* Its `index`-th text, as bytes may be zero in it. */
static const char *text_of(const json_t *list, size_t index, size_t *bytes)
{
    const json_t *s = json_array_get(list, index);
    *bytes = json_string_length(s);
    return json_string_value(s);
}

/* Counts of sentence i of a case. */
static att_bleu_counts count_sentence(const json_t *row, size_t i, att_bleu_tokenizer words)
{
    const json_t *references = json_object_get(row, "references");
    const size_t n = json_array_size(references);
    const char *text[8], *translation;
    size_t bytes[8], translation_bytes;
    att_bleu_counts c;
    assert_true(n <= 8);
    for (size_t r = 0; r < n; r++)
        text[r] = text_of(json_array_get(references, r), i, &bytes[r]);
    translation = text_of(json_object_get(row, "translation"), i, &translation_bytes);
    assert_int_equal(att_bleu_count(ctx, words, translation, translation_bytes, text, bytes, (int64_t)n, &c), ATT_OK);
    return c;
}

/* The same few operations in double on the same whole numbers; exp and log of two libraries differ by 1 ulp each, and
 * the argument of exp, below 5, by some ulp of it. */
static void check_number(const json_t *golden, const char *key, double found, const char *name)
{
    const double expected = json_number_value(golden);
    if (!(fabs(found - expected) <= 32 * DBL_EPSILON * expected))
        fail_msg("%s: %s is %.17g, expected %.17g", name, key, found, expected);
}

static void check_score(const json_t *golden, const char *key, double found, const char *name)
{
    check_number(json_object_get(golden, key), key, found, name);
}

/* BLEU-1 to BLEU-4, and that the last one is BLEU. */
static void check_orders(const json_t *golden, const char *key, const att_bleu_info *info, const char *name)
{
    const json_t *list = json_object_get(golden, key);
    assert_int_equal(json_array_size(list), ATT_BLEU_ORDER);
    for (size_t i = 0; i < ATT_BLEU_ORDER; i++)
        check_number(json_array_get(list, i), key, info->bleu_of[i], name);
    assert_true(info->bleu_of[ATT_BLEU_ORDER - 1] == info->bleu);
}

static void check_result(const json_t *row, const json_t *golden)
{
    const char *name = json_string_value(json_object_get(row, "name"));
    const att_bleu_tokenizer words = words_named(json_string_value(json_object_get(golden, "words")));
    att_bleu_counts sum = {0};
    for (size_t i = 0; i < json_array_size(json_object_get(row, "translation")); i++) {
        const att_bleu_counts c = count_sentence(row, i, words);
        att_bleu_add(&sum, &c);
    }
    const json_t *counts = json_object_get(golden, "counts");
    int64_t found[N_COUNTS];
    memcpy(found, &sum, sizeof found);
    assert_int_equal(json_array_size(counts), N_COUNTS);
    for (size_t i = 0; i < N_COUNTS; i++)
        if (json_integer_value(json_array_get(counts, i)) != found[i])
            fail_msg("%s, %s: count %zu is %lld, expected %lld", name, word_names[words], i, (long long)found[i],
                     (long long)json_integer_value(json_array_get(counts, i)));
    att_bleu_info info = {.size = sizeof info};
    assert_int_equal(att_bleu_describe(&sum, NULL, &info), ATT_OK);
    check_score(golden, "bleu", info.bleu, name);
    check_score(golden, "chrf", info.chrf, name);
    check_score(golden, "brevity", info.brevity, name);
    for (size_t i = 0; i < ATT_BLEU_ORDER; i++)
        assert_true(fabs(info.precision[i] -
                         json_number_value(json_array_get(json_object_get(golden, "precision"), i))) <= 1e-13);
    check_orders(golden, "bleu_of", &info, name);
    assert_int_equal(att_bleu_describe(&sum, ATT_OPTIONS(att_bleu_options, .effective_order = true), &info), ATT_OK);
    check_score(golden, "bleu_effective", info.bleu, name);
    check_orders(golden, "bleu_of_effective", &info, name);
}

/* Reads the lines of bleu.jsonl, one after the other; NULL: no more. */
static json_t *next_case(FILE *f) { return json_loadf(f, JSON_DISABLE_EOF_CHECK | JSON_ALLOW_NUL, NULL); }

static FILE *open_cases(void)
{
    FILE *f = fopen("tests/golden/bleu.jsonl", "rb");
    assert_non_null(f);
    return f;
}

static void scores_of_odd_texts_equal_the_reference(void **state)
{
    (void)state;
    FILE *f = open_cases();
    int cases = 0;
    for (json_t *row; (row = next_case(f)); cases++) {
        const json_t *results = json_object_get(row, "results");
        assert_int_equal(json_array_size(results), N_WORDS);
        for (size_t i = 0; i < N_WORDS; i++)
            check_result(row, json_array_get(results, i));
        json_decref(row);
    }
    assert_int_equal(cases, 15);
    fclose(f);
}

/* ---- the lines of bleu_lines.txt */

static char *join(text_lines *t, unsigned first, unsigned second)
{
    text_line(t, first);
    char *both = malloc(2 * MAX_TEXT_LINE + 1);
    size_t n = t->bytes;
    memcpy(both, t->line, n);
    both[n++] = ' ';
    text_line(t, second);
    memcpy(both + n, t->line, t->bytes);
    t->bytes += n;
    return both;
}

static uint32_t hash_counts(uint32_t h, text_lines *t, unsigned i, att_bleu_tokenizer words)
{
    att_bleu_counts c;
    int64_t field[N_COUNTS];
    char *translation = join(t, i + 1, i);
    const size_t bytes = t->bytes;
    char *reference = join(t, i, i + 1);
    const size_t reference_bytes = t->bytes;
    text_line(t, i + 2);
    assert_int_equal(att_bleu_count(ctx, words, translation, bytes, (const char *const[]){reference, t->line},
                                    (const size_t[]){reference_bytes, t->bytes}, 2, &c),
                     ATT_OK);
    memcpy(field, &c, sizeof field);
    for (size_t k = 0; k < N_COUNTS; k++)
        h = hash_int(h, (uint32_t)field[k]);
    free(translation);
    free(reference);
    return h;
}

static void counts_of_ten_thousand_lines_equal_the_reference(void **state)
{
    (void)state;
    static text_lines t;
    char *text, *line[N_TEXT_LINES / 100];
    text_lines_init(&t);
    assert_int_equal(golden_lines("bleu_lines.txt", &text, line, N_TEXT_LINES / 100), N_TEXT_LINES / 100);
    for (unsigned block = 0; block < N_TEXT_LINES / 100; block += (unsigned)check_step(17)) {
        char *expected = line[block];
        for (int words = 0; words < N_WORDS; words++) {
            uint32_t h = HASH_START;
            for (unsigned i = 100 * block; i < 100 * block + 100; i++)
                h = hash_counts(h, &t, i, (att_bleu_tokenizer)words);
            if (h != strtoul(expected, &expected, 16))
                fail_msg("lines %u to %u, %s: not as in tests/golden/bleu_lines.txt", 100 * block, 100 * block + 99,
                         word_names[words]);
        }
    }
    free(text);
    free(t.text);
}

/* Those for which str.isspace is true in Python. */
static void white_space_is_that_of_python(void **state)
{
    (void)state;
    static const uint32_t ranges[][2] = {{0x09, 0x0D},     {0x1C, 0x20},     {0x85, 0x85},     {0xA0, 0xA0},
                                         {0x1680, 0x1680}, {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F},
                                         {0x205F, 0x205F}, {0x3000, 0x3000}};
    for (uint32_t c = 0; c < 0x110000; c += c < 0x3100 ? 1 : 17) {
        bool space = false;
        for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
            space = space || (c >= ranges[i][0] && c <= ranges[i][1]);
        char text[6] = "a";
        if (c >= 0xD800 && c < 0xE000)
            continue;
        const size_t n = 1 + att_utf8_encode(c, text + 1);
        text[n] = 'b';
        att_bleu_counts counts;
        assert_int_equal(att_bleu_count(ctx, ATT_BLEU_TOKENIZER_NONE, text, n + 1, NULL, NULL, 0, &counts), ATT_OK);
        if (counts.tokens != 1 + space)
            fail_msg("U+%04X: %d words", c, (int)counts.tokens);
    }
}

/* ---- intervals */

/* A mean of 1,000 scores with deviation s is off by s / sqrt(1000); sacrebleu's, from other random numbers, as well.
 * The width that it calls confidence is 1.96 s. The ends of [low, high] are quantiles at 0.025, each of deviation
 * sqrt(0.025 * 0.975 / 1000) / 0.0584 s = 0.085 s (the normal density there: 0.0584 / s), half their difference 0.06 s.
 * Of both, five deviations of the difference of two. */
static void check_interval(const json_t *row, const char *key, att_interval i)
{
    const json_t *golden = json_object_get(row, key);
    const double mean = json_number_value(json_array_get(golden, 0)),
                 half = json_number_value(json_array_get(golden, 1));
    const double s = half / 1.96;
    check_near(mean, (float)i.mean, 5 * sqrt(2) * s / sqrt(1000) + 1e-5 /* float */, "%s: mean", key);
    check_near(half, (float)((i.high - i.low) / 2), 5 * sqrt(2) * 0.06 * s, "%s: half of the interval", key);
    assert_true(i.low < i.mean && i.mean < i.high);
}

enum { SENTENCES = 80 };

static json_t *generated_counts(att_bleu_counts *c /* [SENTENCES] */)
{
    FILE *f = open_cases();
    json_t *row;
    while ((row = next_case(f)) && strcmp(json_string_value(json_object_get(row, "name")), "generated"))
        json_decref(row);
    fclose(f);
    assert_int_equal(json_array_size(json_object_get(row, "translation")), SENTENCES);
    for (size_t i = 0; i < SENTENCES; i++)
        c[i] = count_sentence(row, i, ATT_BLEU_TOKENIZER_13A);
    return row;
}

static void intervals_are_as_wide_as_the_reference(void **state)
{
    (void)state;
    att_bleu_counts c[SENTENCES];
    att_interval bleu, chrf, again[2], other[2];
    json_t *row = generated_counts(c);
    assert_int_equal(att_bleu_intervals(ctx, c, SENTENCES, NULL, &bleu, &chrf), ATT_OK);
    check_interval(row, "interval_bleu", bleu);
    check_interval(row, "interval_chrf", chrf);
    json_decref(row);

    att_ctx *alone = check_open(NULL, 1);
    assert_int_equal(att_bleu_intervals(alone, c, SENTENCES, NULL, &again[0], &again[1]), ATT_OK);
    assert_memory_equal(&again[0], &bleu, sizeof bleu); /* the same bits with one thread */
    assert_memory_equal(&again[1], &chrf, sizeof chrf);
    att_close(alone);
    assert_int_equal(
        att_bleu_intervals(ctx, c, SENTENCES, ATT_OPTIONS(att_bleu_resampling, .seed = 1), &other[0], &other[1]),
        ATT_OK);
    assert_true(other[0].mean != bleu.mean && other[1].mean != chrf.mean);
}

/* Of a system and itself all are 0; of two, the mean is near the difference of the means, and the interval is narrower
 * than that of a difference of independent resamples, which has the sum of both variances. */
static void differences_are_of_the_same_sentences(void **state)
{
    (void)state;
    att_bleu_counts c[SENTENCES], worse[SENTENCES];
    att_interval bleu, chrf, a[2], b[2];
    json_decref(generated_counts(c));
    memcpy(worse, c, sizeof c);
    for (int i = 0; i < SENTENCES; i += 4)
        worse[i].token_matches[0] /= 2;
    assert_int_equal(att_bleu_differences(ctx, c, c, SENTENCES, NULL, &bleu, &chrf), ATT_OK);
    assert_true(bleu.low == 0 && bleu.high == 0 && chrf.mean == 0);
    assert_int_equal(att_bleu_differences(ctx, c, worse, SENTENCES, NULL, &bleu, &chrf), ATT_OK);
    assert_int_equal(att_bleu_intervals(ctx, c, SENTENCES, NULL, &a[0], &a[1]), ATT_OK);
    assert_int_equal(att_bleu_intervals(ctx, worse, SENTENCES, NULL, &b[0], &b[1]), ATT_OK);
    assert_true(fabs(bleu.mean - (a[0].mean - b[0].mean)) < 1e-9);
    assert_true(0 < bleu.low && bleu.low < bleu.mean && bleu.high - bleu.low < (a[0].high - a[0].low) / 2);
    assert_true(chrf.low == 0 && chrf.high == 0);
    assert_int_equal(att_bleu_differences(ctx, c, worse, 0, NULL, &bleu, &chrf), ATT_ERR_ARGUMENT);
    check_message(ctx, "att_bleu_differences: n is 0");
}

static void a_single_sentence_has_no_interval(void **state)
{
    (void)state;
    att_bleu_counts c;
    att_bleu_info info = {.size = sizeof info};
    att_interval bleu, chrf;
    assert_int_equal(
        att_bleu_count(ctx, ATT_BLEU_TOKENIZER_13A, "a b c d e", 9, (const char *const[]){"a b c d f"}, NULL, 1, &c),
        ATT_OK);
    assert_int_equal(att_bleu_describe(&c, NULL, &info), ATT_OK);
    assert_int_equal(att_bleu_intervals(ctx, &c, 1, ATT_OPTIONS(att_bleu_resampling, .resamples = 1), &bleu, &chrf),
                     ATT_OK);
    assert_true(bleu.low == info.bleu && bleu.mean == info.bleu && bleu.high == info.bleu);
    assert_true(chrf.low == info.chrf && chrf.mean == info.chrf && chrf.high == info.chrf);
}

/* ---- errors and limits */

static void wrong_arguments_are_named(void **state)
{
    (void)state;
    att_bleu_counts c = {.tokens = 7};
    att_interval i;
    assert_int_equal(att_bleu_count(ctx, (att_bleu_tokenizer)3, "", 0, NULL, NULL, 0, &c), ATT_ERR_ARGUMENT);
    check_message(ctx, "tokenizer is 3, but must be 0 to 2");
    assert_int_equal(att_bleu_count(ctx, ATT_BLEU_TOKENIZER_13A, "", 0, NULL, NULL, -1, &c), ATT_ERR_ARGUMENT);
    check_message(ctx, "n is -1");
    assert_int_equal(att_bleu_count(ctx, ATT_BLEU_TOKENIZER_13A, NULL, 1, NULL, NULL, 0, &c), ATT_ERR_ARGUMENT);
    check_message(ctx, "text is NULL, but bytes is 1");
    assert_int_equal(att_bleu_count(ctx, ATT_BLEU_TOKENIZER_13A, "", (size_t)INT32_MAX + 1, NULL, NULL, 0, &c),
                     ATT_ERR_UNSUPPORTED);
    check_message(ctx, "2147483648 bytes, the maximum is 2147483647");
    assert_true(c.tokens == 7);
    assert_int_equal(att_bleu_intervals(ctx, &c, 0, NULL, &i, &i), ATT_ERR_ARGUMENT);
    check_message(ctx, "n is 0");
    assert_int_equal(att_bleu_intervals(ctx, &c, 1, ATT_OPTIONS(att_bleu_resampling, .resamples = -1), &i, &i),
                     ATT_ERR_ARGUMENT);
    check_message(ctx, "resamples is -1");
}

static void counting_is_cancelled(void **state)
{
    (void)state;
    volatile int flag = 1;
    att_bleu_counts c = {.tokens = 7};
    att_cancel_by(&flag);
    assert_int_equal(att_bleu_count(ctx, ATT_BLEU_TOKENIZER_NONE, "a b", 3, NULL, NULL, 0, &c), ATT_ERR_CANCELLED);
    att_cancel_by(NULL);
    assert_string_equal(att_error(ctx), "att_bleu_count: cancelled");
    assert_int_equal(c.tokens, 7);
    assert_int_equal(att_bleu_count(ctx, ATT_BLEU_TOKENIZER_NONE, "a b", 3, NULL, NULL, 0, &c), ATT_OK);
    assert_int_equal(c.tokens, 2);
}

static void a_failed_allocation_leaves_nothing(void **state)
{
    (void)state;
    att_status e = ATT_ERR_MEMORY;
    for (long n = 1; e; n++) {
        fail_alloc f = {0};
        att_ctx *failing = fail_open(&f);
        const long before = f.calls;
        att_bleu_counts c = {.tokens = 7};
        f.fail_at = before + n;
        e = att_bleu_count(failing, ATT_BLEU_TOKENIZER_13A, "a b.", 4, (const char *const[]){"a b", "b c"}, NULL, 2,
                           &c);
        assert_int_equal(e, f.calls >= f.fail_at ? ATT_ERR_MEMORY : ATT_OK);
        assert_int_equal(c.tokens, e ? 7 : 3);
        f.fail_at = f.calls + 1;
        att_interval bleu = {.mean = -1}, chrf;
        assert_int_equal(att_bleu_intervals(failing, &c, 1, NULL, &bleu, &chrf), ATT_ERR_MEMORY);
        assert_true(bleu.mean == -1);
        att_close(failing);
        assert_int_equal(f.live, 0);
        assert_true(n < 100);
    }
}

/* Sorting takes n log n: a second here, hours if each word were compared with each. */
static void a_line_of_a_megabyte_is_counted(void **state)
{
    (void)state;
    const size_t bytes = (size_t)(1 << 20) / (size_t)check_step(16);
    char *text = malloc(bytes), *reference = malloc(bytes);
    for (size_t i = 0; i < bytes; i++) {
        text[i] = i % 2 ? ' ' : (char)('a' + check_bits(1, i) % 26);
        reference[i] = 'a';
    }
    att_bleu_counts c;
    assert_int_equal(att_bleu_count(ctx, ATT_BLEU_TOKENIZER_13A, text, bytes, (const char *const[]){reference},
                                    (const size_t[]){bytes}, 1, &c),
                     ATT_OK);
    assert_int_equal(c.tokens, bytes / 2);
    assert_int_equal(c.reference_tokens, 1);
    assert_int_equal(c.reference_character_ngrams[5], bytes - 5);
    free(text);
    free(reference);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_of_odd_texts_equal_the_reference),
        cmocka_unit_test(counts_of_ten_thousand_lines_equal_the_reference),
        cmocka_unit_test(white_space_is_that_of_python),
        cmocka_unit_test(intervals_are_as_wide_as_the_reference),
        cmocka_unit_test(differences_are_of_the_same_sentences),
        cmocka_unit_test(a_single_sentence_has_no_interval),
        cmocka_unit_test(wrong_arguments_are_named),
        cmocka_unit_test(counting_is_cancelled),
        cmocka_unit_test(a_failed_allocation_leaves_nothing),
        cmocka_unit_test(a_line_of_a_megabyte_is_counted),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
