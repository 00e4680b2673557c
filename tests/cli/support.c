/* The foundations of the subcommands: arrays, lines, numbers as text, tables, correlation. */
#include "cli/base/grow.h"
#include "cli/base/command.h"
#include "cli/sentence/correlation.h"
#include "cli/base/lines.h"
#include "cli/base/json.h"
#include "cli/base/output.h"
#include "cli/sentence/pairs.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void a_float_as_text_reads_back_the_same(void **state)
{
    (void)state;
    uint64_t seed = 1;
    for (int i = 0; i < 1000000; i++) {
        char text[CLI_FLOAT_BYTES + 1];
        float x;
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        if (i % 2) { /* any bits */
            uint32_t bits = (uint32_t)(seed >> 32);
            memcpy(&x, &bits, sizeof x);
        } else { /* what embeddings have */
            x = (float)((double)(seed >> 40) / (1 << 23) - 1);
        }
        if (!isfinite(x))
            continue;
        text[cli_put_float(text, x)] = '\0';
        if (strtof(text, NULL) != x || strlen(text) > 15)
            fail_msg("%.9g became %s", (double)x, text);
    }
    static const struct {
        float x;
        const char *text;
    } known[] = {
        {0, "0"}, {1, "1"}, {-0.5f, "-0.5"}, {0.1f, "0.100000001"}, {99999992, "99999992"}, {1e-4f, "9.99999975e-05"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        char text[CLI_FLOAT_BYTES + 1];
        text[cli_put_float(text, known[i].x)] = '\0';
        assert_string_equal(text, known[i].text);
    }
}

/* Makes a temporary file with this content; remove it. */
static char *file_with(const char *content, size_t bytes)
{
    static char path[64];
    strcpy(path, "/tmp/attend_test.XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, content, bytes) == (ssize_t)bytes);
    close(fd);
    return path;
}

static void lines_are_the_same_in_blocks_of_any_size(void **state)
{
    (void)state;
    static const char content[] = "one\r\n\nt\0o\n\r\nlast";
    static const char *const want[] = {"one", "", "t\0o", "", "last"};
    static const size_t bytes[] = {3, 0, 3, 0, 4};
    char *path = file_with(content, sizeof content - 1);
    char *const paths[] = {path, path};
    for (int64_t most = 1; most < 12; most++) {
        cli_lines l;
        int n = 0;
        assert_int_equal(cli_lines_open(&l, 2, paths), CLI_DONE);
        while (cli_lines_next(&l, most) == CLI_DONE && l.count) {
            assert_true(l.count <= most);
            for (int64_t i = 0; i < l.count; i++, n++) {
                assert_int_equal(l.bytes[i], bytes[n % 5]);
                assert_memory_equal(l.text[i], want[n % 5], bytes[n % 5] + 1);
            }
        }
        assert_int_equal(n, 10);
        assert_true(l.done == l.total);
        cli_lines_close(&l);
    }
    unlink(path);
}

static void long_lines_cross_reads(void **state)
{
    (void)state;
    enum { LENGTH = 300000, LINES = 40 };
    char *content = malloc((size_t)LINES * (LENGTH + 1));
    for (int i = 0; i < LINES; i++) {
        memset(content + i * (LENGTH + 1), 'a' + i % 26, LENGTH);
        content[i * (LENGTH + 1) + LENGTH] = '\n';
    }
    char *path = file_with(content, (size_t)LINES * (LENGTH + 1));
    cli_lines l;
    int n = 0, blocks = 0;
    assert_int_equal(cli_lines_open(&l, 1, &path), CLI_DONE);
    while (cli_lines_next(&l, 1000) == CLI_DONE && l.count) {
        blocks++;
        for (int64_t i = 0; i < l.count; i++, n++) {
            assert_int_equal(l.bytes[i], LENGTH);
            assert_memory_equal(l.text[i], content + n * (LENGTH + 1), LENGTH);
        }
    }
    assert_int_equal(n, LINES);
    assert_true(blocks > 1); /* a block is limited in bytes, too */
    cli_lines_close(&l);
    unlink(path);
    free(content);
}

static void quotes_are_read_as_rfc_4180_says(void **state)
{
    (void)state;
    static const char content[] = "a,b\r\n\"x,\"\"y\"\"\",\"1\n2\",more,\"and more\"\n,\"\"\nun\"quoted,end";
    static const char *const want[][2] = {{"a", "b"}, {"x,\"y\"", "1\n2"}, {"un\"quoted", "end"}};
    char *path = file_with(content, sizeof content - 1);
    cli_pairs p;
    int n = 0;
    assert_int_equal(cli_pairs_open(&p, path, &(cli_pairs_options){.format = CLI_PAIRS_CSV, .max_count = 3}), CLI_DONE);
    while (cli_pairs_next(&p) == CLI_DONE && p.count)
        for (int64_t i = 0; i < p.count; i++, n++)
            for (int k = 0; k < 2; k++) {
                assert_string_equal(p.text[2 * i + k], want[n][k]);
                assert_int_equal(p.bytes[2 * i + k], strlen(want[n][k]));
            }
    assert_int_equal(n, 3); /* a row of empty fields is none */
    cli_pairs_close(&p);
    unlink(path);
}

static void correlations_are_those_of_the_textbook(void **state)
{
    (void)state;
    /* scipy.stats: pearsonr 0.8944271909999159, spearmanr with a tie 0.9486832980505138 */
    static const double a[] = {1, 2, 3, 4}, b[] = {2, 2, 4, 4}, c[] = {1, 5, 5, 100}, flat[] = {3, 3, 3, 3};
    assert_true(fabs(cli_pearson(a, b, 4) - 0.8944271909999159) < 1e-15);
    double spearman;
    assert_int_equal(cli_spearman(a, c, 4, &spearman), CLI_DONE);
    assert_true(fabs(spearman - 0.9486832980505138) < 1e-15);
    assert_int_equal(cli_spearman(a, flat, 4, &spearman), CLI_DONE);
    assert_true(isnan(spearman));
    assert_true(isnan(cli_pearson(a, b, 0)));
}

static void the_nearest_word_is_near(void **state)
{
    (void)state;
    static const char *const words[] = {"embed", "search", "similarity", "help", "rate", "batch-tokens", "kv-heads"};
    static const struct {
        const char *given, *nearest; /* NULL: none is near */
    } known[] = {
        {"emebd", "embed"},
        {"ebmde", "embed"},
        {"ebmdX", NULL}, /* three edits */
        {"sim", "similarity"},
        {"similrtyi", "similarity"},
        {"serach", "search"},
        {"hlp", "help"},
        {"hxx", NULL}, /* two of three letters are wrong */
        {"learning-rate", "rate"},
        {"tokens", "batch-tokens"},
        {"kv_heads", "kv-heads"},
        {"xyzzy", NULL},
        {"", NULL},
        {"a-word-of-more-than-thirty-two-letters", NULL},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        cli_hint hint;
        char text[64] = "none";
        if (known[i].nearest)
            snprintf(text, sizeof text, "; did you mean \"--%s\"?", known[i].nearest);
        assert_string_equal(cli_did_you_mean(&hint, "--", known[i].given, words, 7, "none"), text);
    }
}

static void json_text_is_unicode(void **state)
{
    (void)state;
    static const struct {
        const char *bytes, *json;
    } known[] = {
        {"\"\\/\t\x7f", "\"\\\"\\\\/\\u0009\\u007f\""},
        {"\xE7\x8C\xAB", "\"\xE7\x8C\xAB\""},
        {"a\xFF\xE7\x8Cz", "\"a\\ufffd\\ufffdz\""},                          /* a cut character is one U+FFFD */
        {"\xC0\xAF\xED\xA0\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\""}, /* overlong, surrogate */
        {"\xF0\x9F\x98\x80\xF4\x90\x80\x80", "\"\xF0\x9F\x98\x80\\ufffd\\ufffd\\ufffd\\ufffd\""},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        char *text = NULL;
        size_t n;
        FILE *f = open_memstream(&text, &n);
        cli_json_string(&(cli_json){.file = f}, NULL, known[i].bytes);
        fclose(f);
        assert_string_equal(text, known[i].json);
        free(text);
    }
}

static void json_is_written_value_after_value(void **state)
{
    (void)state;
    static const float x[] = {0.5f, NAN, -1, INFINITY};
    char *text = NULL;
    size_t n;
    cli_json j = {.file = open_memstream(&text, &n), .first = "<", .between = "|", .last = ">"};
    cli_json_object(&j, NULL);
    cli_json_string(&j, "a\"b", NULL);
    cli_json_array(&j, "empty");
    cli_json_end(&j);
    cli_json_array(&j, "objects");
    for (int i = 0; i < 2; i++) {
        cli_json_object(&j, NULL);
        cli_json_integer(&j, "n", i ? INT64_MIN : 7);
        cli_json_bool(&j, "last", i);
        cli_json_end(&j);
    }
    cli_json_end(&j);
    cli_json_number(&j, "third", 1.0 / 3, 4);
    cli_json_fixed(&j, "half", 0.5, 3);
    cli_json_fixed(&j, "none", NAN, 3);
    cli_json_numbers(&j, "two", (const double[]){1e20, -INFINITY}, 2, 6);
    cli_json_matrix(&j, "x", x, 2, 2);
    cli_json_strings(&j, "words", (const char *const[]){"a", "b"}, 2);
    cli_json_end(&j);
    cli_json_bytes(&j, NULL, "a", 1);
    fclose(j.file);
    assert_string_equal(text, "{<\"a\\\"b\": null|\"empty\": []|\"objects\": [{\"n\": 7, \"last\": false}, "
                              "{\"n\": -9223372036854775808, \"last\": true}]|\"third\": 0.3333|\"half\": 0.500|"
                              "\"none\": null|\"two\": [1e+20, null]|\"x\": [[0.5,null], [-1,null]]|"
                              "\"words\": [\"a\", \"b\"]>}\n\"a\"");
    free(text);
}

static void arrays_grow_together_and_keep_what_they_have(void **state)
{
    (void)state;
    size_t room = 0;
    double *a = NULL;
    char *b = NULL;
    const cli_array arrays[] = {{&a, sizeof *a}, {&b, 3 * sizeof *b}};
    for (size_t i = 0; i < 5000; i++) {
        assert_true(cli_reserve(&room, i + 1, arrays, 2) && room > i);
        a[i] = (double)i;
        memset(b + 3 * i, (int)(i % 100), 3);
    }
    const size_t before = room;
    assert_false(cli_reserve(&room, SIZE_MAX / sizeof *a + 2, arrays, 2)); /* 8 bytes, if that overflowed */
    assert_false(cli_reserve(&room, SIZE_MAX / 2, arrays + 1, 1));
    assert_int_equal(room, before);
    for (size_t i = 0; i < 5000; i++)
        assert_true(a[i] == (double)i && b[3 * i] == (char)(i % 100) && b[3 * i + 2] == b[3 * i]);
    free(a);
    free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_float_as_text_reads_back_the_same),
        cmocka_unit_test(lines_are_the_same_in_blocks_of_any_size),
        cmocka_unit_test(long_lines_cross_reads),
        cmocka_unit_test(quotes_are_read_as_rfc_4180_says),
        cmocka_unit_test(correlations_are_those_of_the_textbook),
        cmocka_unit_test(the_nearest_word_is_near),
        cmocka_unit_test(json_text_is_unicode),
        cmocka_unit_test(json_is_written_value_after_value),
        cmocka_unit_test(arrays_grow_together_and_keep_what_they_have),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
