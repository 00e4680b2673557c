/* CIDEr-D is pycocoevalcap's: tests/golden/make_cider.py. */
#include "fixtures/context.h"
#include "fixtures/fail_alloc.h"
#include "fixtures/check.h"

#include <attend_metric.h>
#include <jansson.h>

enum { MAX_TEXTS = 40, MAX_REFERENCES = 5 * MAX_TEXTS };

typedef struct captions {
    int64_t n, offsets[MAX_TEXTS + 1];
    const char *texts[MAX_TEXTS], *references[MAX_REFERENCES];
} captions;

/* Returns the texts of a case, which belong to it. */
static captions captions_of(const json_t *row)
{
    const json_t *texts = json_object_get(row, "texts"), *references = json_object_get(row, "references");
    captions c = {.n = (int64_t)json_array_size(texts)};
    assert_in_range(c.n, 1, MAX_TEXTS);
    for (int64_t i = 0; i < c.n; i++) {
        const json_t *list = json_array_get(references, (size_t)i);
        c.texts[i] = json_string_value(json_array_get(texts, (size_t)i));
        c.offsets[i + 1] = c.offsets[i] + (int64_t)json_array_size(list);
        assert_in_range(c.offsets[i + 1], 1, MAX_REFERENCES);
        for (int64_t r = c.offsets[i]; r < c.offsets[i + 1]; r++)
            c.references[r] = json_string_value(json_array_get(list, (size_t)(r - c.offsets[i])));
    }
    return c;
}

/* Sums of some hundred products of numbers below 10, each off by some ulp. */
static void check_score(const json_t *golden, double found, const char *name, int64_t i)
{
    const double expected = json_number_value(golden);
    if (!(fabs(found - expected) <= 1e-12))
        fail_msg("%s: score %d is %.17g, expected %.17g", name, (int)i, found, expected);
}

static void scores_are_those_of_pycocoevalcap(void **state)
{
    (void)state;
    FILE *f = fopen("tests/golden/cider.jsonl", "rb");
    assert_non_null(f);
    int cases = 0;
    for (json_t *row; (row = json_loadf(f, JSON_DISABLE_EOF_CHECK, NULL)); cases++) {
        const char *name = json_string_value(json_object_get(row, "name"));
        const captions c = captions_of(row);
        double scores[MAX_TEXTS], mean = -1;
        assert_int_equal(att_cider(ctx, c.texts, c.n, c.references, c.offsets, scores, &mean), ATT_OK);
        for (int64_t i = 0; i < c.n; i++)
            check_score(json_array_get(json_object_get(row, "scores"), (size_t)i), scores[i], name, i);
        check_score(json_object_get(row, "mean"), mean, name, -1);
        json_decref(row);
    }
    assert_int_equal(cases, 13);
    fclose(f);
}

/* BLEU of captions: words as they are, five references, and each order by itself. */
static void bleu_of_captions_has_each_order(void **state)
{
    (void)state;
    const char *const references[] = {"a dog runs .", "the dog runs fast", "a dog", "dogs run", "a brown dog runs"};
    att_bleu_counts c;
    att_bleu_info info = {.size = sizeof info};
    assert_int_equal(att_bleu_count(ctx, ATT_BLEU_TOKENIZER_NONE, "a dog runs away", 15, references, NULL, 5, &c),
                     ATT_OK);
    assert_int_equal(att_bleu_describe(&c, NULL, &info), ATT_OK);
    assert_int_equal(c.reference_tokens, 4);
    assert_true(fabs(info.bleu_of[0] - 75) < 1e-12);                                     /* 3 of 4 words */
    assert_true(fabs(info.bleu_of[1] - 100 * sqrt(3. / 4 * 2 / 3)) < 1e-12);             /* 2 of 3 bigrams */
    assert_true(fabs(info.bleu_of[2] - 100 * cbrt(3. / 4 * 2 / 3 * 1 / 2)) < 1e-12);     /* 1 of 2 */
    assert_true(fabs(info.bleu_of[3] - 100 * pow(3. / 4 * 1 / 3 * 1 / 2, .25)) < 1e-12); /* none of 1: half a match */
}

/* ---- intervals */

/* Of numbers with a known deviation s the mean of n has s / sqrt(n), and 95 % are within 1.96 of that; an end, which
 * is a quantile of 1,000 resamples, has a deviation of 0.085 (tests/metric/bleu.c). */
static void the_interval_of_a_mean_is_as_wide_as_its_deviation(void **state)
{
    (void)state;
    enum { N = 400 };
    double x[N], zero[N] = {0}, mean = 0, variance = 0;
    att_interval found, nothing, again;
    for (int i = 0; i < N; i++) {
        x[i] = check_bits(3, (uint64_t)i) % 1000;
        mean += x[i] / N;
    }
    for (int i = 0; i < N; i++)
        variance += (x[i] - mean) * (x[i] - mean) / N;
    const double deviation = sqrt(variance / N);
    assert_int_equal(att_mean_interval(ctx, x, N, NULL, &found), ATT_OK);
    assert_true(fabs(found.mean - mean) < 5 * deviation / sqrt(1000));
    assert_true(fabs(found.low - mean + 1.96 * deviation) < 5 * 0.085 * deviation);
    assert_true(fabs(found.high - mean - 1.96 * deviation) < 5 * 0.085 * deviation);
    assert_int_equal(att_mean_interval(ctx, zero, N, NULL, &nothing), ATT_OK);
    assert_true(nothing.low == 0 && nothing.high == 0);

    att_ctx *alone = check_open(NULL, 1);
    assert_int_equal(att_mean_interval(alone, x, N, NULL, &again), ATT_OK);
    assert_memory_equal(&again, &found, sizeof found);
    att_close(alone);
    assert_int_equal(att_mean_interval(ctx, x, N, ATT_OPTIONS(att_bleu_resampling, .seed = 1), &again), ATT_OK);
    assert_true(again.mean != found.mean);
}

/* ---- errors and limits */

static void wrong_arguments_are_named(void **state)
{
    (void)state;
    const char *const text[] = {"a", "b"}, *const missing[] = {"a", NULL};
    double score = 7;
    att_interval i;
    assert_int_equal(att_cider(ctx, text, 0, text, (const int64_t[]){0}, &score, NULL), ATT_ERR_ARGUMENT);
    check_message(ctx, "att_cider: n is 0, but must be 1 to 2147483647");
    assert_int_equal(att_cider(ctx, text, 1, text, (const int64_t[]){1, 2}, &score, NULL), ATT_ERR_ARGUMENT);
    check_message(ctx, "offsets[0] is 1");
    assert_int_equal(att_cider(ctx, text, 2, text, (const int64_t[]){0, 2, 2}, &score, NULL), ATT_ERR_ARGUMENT);
    check_message(ctx, "offsets[1] is 2 and offsets[2] is 2, but each text needs a reference");
    assert_int_equal(att_cider(ctx, missing, 2, text, (const int64_t[]){0, 1, 2}, &score, NULL), ATT_ERR_ARGUMENT);
    check_message(ctx, "att_cider: texts[1] is NULL");
    assert_int_equal(att_cider(ctx, text, 1, missing, (const int64_t[]){0, 2}, &score, NULL), ATT_ERR_ARGUMENT);
    check_message(ctx, "att_cider: references[1] is NULL");
    assert_true(score == 7);
    assert_int_equal(att_mean_interval(ctx, &score, 0, NULL, &i), ATT_ERR_ARGUMENT);
    check_message(ctx, "att_mean_interval: n is 0");
}

static void it_is_cancelled(void **state)
{
    (void)state;
    const char *const text[] = {"a b"};
    const int64_t offsets[] = {0, 1};
    volatile int flag = 1;
    double mean = 7;
    att_cancel_by(&flag);
    assert_int_equal(att_cider(ctx, text, 1, text, offsets, NULL, &mean), ATT_ERR_CANCELLED);
    att_cancel_by(NULL);
    assert_string_equal(att_error(ctx), "att_cider: cancelled");
    assert_true(mean == 7);
    assert_int_equal(att_cider(ctx, text, 1, text, offsets, NULL, &mean), ATT_OK);
}

static void a_failed_allocation_leaves_nothing(void **state)
{
    (void)state;
    att_status e = ATT_ERR_MEMORY;
    for (long n = 1; e; n++) {
        fail_alloc f = {0};
        att_ctx *failing = fail_open(&f);
        const long before = f.calls;
        double mean = 7;
        f.fail_at = before + n;
        e = att_cider(failing, (const char *const[]){"a b c d e f g h i j k"}, 1,
                      (const char *const[]){"a b c", "b c d e f g h"}, (const int64_t[]){0, 2}, NULL, &mean);
        assert_int_equal(e, f.calls >= f.fail_at ? ATT_ERR_MEMORY : ATT_OK);
        assert_true(mean == (e ? 7 : 0)); /* of one image: each n-gram is in all */
        att_close(failing);
        assert_int_equal(f.live, 0);
        assert_true(n < 100);
    }
}

/* 5,000 captions with five references each: a fraction of a second, as time is linear; hours if each were compared with
 * each. */
static void five_thousand_captions_are_scored(void **state)
{
    (void)state;
    enum { LINE = 128, REFERENCES = 5 };
    const int64_t n = 5000 / check_step(50), all = n * (1 + REFERENCES);
    char *text = malloc((size_t)all * LINE);
    const char **line = malloc((size_t)all * sizeof *line);
    int64_t *offsets = malloc((size_t)(n + 1) * sizeof *offsets);
    double mean;
    for (int64_t i = 0; i < all; i++) {
        char *at = text + i * LINE;
        line[i] = at;
        for (int w = 0; w < 11; w++) {
            const uint64_t r = check_bits(5, (uint64_t)(11 * i + w)) % 3000;
            at += sprintf(at, "w%d ", (int)(r * r / 3000));
        }
    }
    for (int64_t i = 0; i <= n; i++)
        offsets[i] = REFERENCES * i;
    assert_int_equal(att_cider(ctx, line, n, line + n, offsets, NULL, &mean), ATT_OK);
    assert_true(mean > 0 && mean < 1);
    assert_int_equal(att_cider(ctx, line + n, n, line + n, offsets, NULL, &mean), ATT_OK);
    free(text);
    free(line);
    free(offsets);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_are_those_of_pycocoevalcap),
        cmocka_unit_test(bleu_of_captions_has_each_order),
        cmocka_unit_test(the_interval_of_a_mean_is_as_wide_as_its_deviation),
        cmocka_unit_test(wrong_arguments_are_named),
        cmocka_unit_test(it_is_cancelled),
        cmocka_unit_test(a_failed_allocation_leaves_nothing),
        cmocka_unit_test(five_thousand_captions_are_scored),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
