/* Tables as spreadsheets and programs write them: separators, quotes, blank lines, what is damaged. */
#include "fixtures/check.h"
#include "fixtures/folder_context.h"

#include "attend_text.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Writes the fields of all records, each in <>, records with "N:" before, the line. */
static const char *text_of(att_table *t)
{
    static char text[1 << 12];
    size_t n = 0;
    att_table_record r = {.size = sizeof r};
    text[0] = 0;
    while (!att_table_next(t, &r) && r.n > 0) {
        n += (size_t)snprintf(text + n, sizeof text - n, "%d:", (int)r.line);
        for (int64_t i = 0; i < r.n; i++)
            n += (size_t)snprintf(text + n, sizeof text - n, "<%.*s>", (int)r.fields[i].bytes, r.fields[i].data);
    }
    return text;
}

static att_table *open_table(const char *content, const att_table_options *o)
{
    att_table *t;
    folder_write(&folder, "table", content);
    if (att_table_open(ctx, path_of("table"), o, &t))
        fail_msg("%s", att_error(ctx));
    return t;
}

typedef struct table_case {
    const char *text, *records;
    char separator;
} table_case;

static const table_case cases[] = {
    {"a,b\nc,d", "1:<a><b>2:<c><d>", ','},
    {"a;b\nc;d,e\n", "1:<a><b>2:<c><d,e>", ';'},
    {"a\tb\n\"c\td\"\te\n", "1:<a><b>2:<c\td><e>", '\t'},
    {"\"a;b\",c\n\"d\",\"e;\"\n", "1:<a;b><c>2:<d><e;>", ','},
    {"x;y\n1,5;2,5\n2,5;3,5\n", "1:<x><y>2:<1,5><2,5>3:<2,5><3,5>", ';'},
    {"1,5;2,5\n3,5;4,5\n", "1:<1,5><2,5>2:<3,5><4,5>", ';'},
    {"one; two,three\nfour; five,six\n", "1:<one; two><three>2:<four; five><six>", ','},
    {"a,b,c\nd\n", "1:<a><b><c>2:<d>", ','},
    {"sep=;\na,b;c\n", "2:<a,b><c>", ';'},
    {"sep=,\r\na;b,c\r\n", "2:<a;b><c>", ','},
    {"\n \r\na,b\n\n,\n\" \",\nc,d\n\n", "3:<a><b>7:<c><d>", ','},
    {"\"a\r\nb\n\",\"\"\"c\"\"\"\r\n\"\"\"\",\"\"\nd,e", "1:<a\r\nb\n><\"c\">4:<\"><>5:<d><e>", ','},
    {"a, b\nc,  \"d, e\"\n", "1:<a><b>2:<c><d, e>", ','},
    {"a, b\nc,d\n", "1:<a><b>2:<c><d>", ','},
    {"a,b c,d\n", "1:<a><b c><d>", ','},
    {"a\"b\"\"c,d\n\"e\" ,f\n", "1:<a\"b\"\"c><d>2:<e><f>", ','},
    {"alone\n", "1:<alone>", ','},
    {"\xEF\xBB\xBF\"a\",b\r", "1:<a><b>", ','},
    {"a,b\rc,d\r\re,f\r", "1:<a><b>2:<c><d>4:<e><f>", ','},
    {"", "", ','},
};

static void tables_of_many_programs_are_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        att_table_info info = {.size = sizeof info};
        att_table *t = open_table(cases[i].text, NULL);
        assert_int_equal(att_table_describe(t, &info), ATT_OK);
        if (info.separator != cases[i].separator)
            fail_msg("case %zu: separated by \"%c\"", i, info.separator);
        const char *found = text_of(t);
        if (strcmp(found, cases[i].records))
            fail_msg("case %zu: %s, expected %s", i, found, cases[i].records);
        att_table_free(t);
    }
}

static void between_tabs_quotes_are_text(void **state)
{
    (void)state;
    att_table *t = open_table("\"a\t, b\n\"\"c\"\t\n\t\nd\n", ATT_OPTIONS(att_table_options, .format = ATT_TABLE_TSV));
    assert_string_equal(text_of(t), "1:<\"a><, b>2:<\"\"c\"><>4:<d>");
    att_table_free(t);
}

/* Also one that is written byte by byte. */
static void a_pipe_is_read_as_a_file_is(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int ends[2];
        att_table *t;
        assert_int_equal(pipe(ends), 0);
        assert_int_equal(write(ends[1], cases[i].text, strlen(cases[i].text)), strlen(cases[i].text));
        close(ends[1]);
        if (att_table_open_stream(ctx, ends[0], "a pipe", NULL, &t))
            fail_msg("%s", att_error(ctx));
        const char *found = text_of(t);
        if (strcmp(found, cases[i].records))
            fail_msg("case %zu: %s, expected %s", i, found, cases[i].records);
        att_table_free(t);
        close(ends[0]);
    }
}

/* Fields within quotes may go over the end of what is read at a time. */
static void records_of_many_lines_are_whole(void **state)
{
    (void)state;
    enum { ROWS = 40, LINES = 4000 };
    FILE *f = folder_open(&folder, "long.csv");
    for (int r = 0; r < ROWS; r++) {
        fprintf(f, "%d,\"", r);
        for (int i = 0; i < LINES; i++)
            fprintf(f, "line \"\"%d\"\"\n", i);
        fputs("\"\n", f);
    }
    assert_int_equal(fclose(f), 0);
    att_table *t;
    att_table_record r = {.size = sizeof r};
    assert_int_equal(att_table_open(ctx, path_of("long.csv"), NULL, &t), ATT_OK);
    for (int i = 0; i < ROWS; i++) {
        assert_int_equal(att_table_next(t, &r), ATT_OK);
        assert_int_equal(r.line, 1 + i * (LINES + 1));
        assert_int_equal(r.n, 2);
        assert_memory_equal(r.fields[1].data, "line \"0\"\nline \"1\"\n", 18);
        assert_memory_equal(r.fields[1].data + r.fields[1].bytes - 12, "line \"3999\"\n", 12);
    }
    assert_int_equal(att_table_next(t, &r), ATT_OK);
    assert_int_equal(r.n, 0);
    att_table_free(t);
}

static void what_is_damaged_is_refused_with_its_line(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } damaged[] = {
        {"a,b\nc,\"d\ne,f\n", "table: line 2: a field begins with a quote but does not end with one"},
        {"a,b\n\"c\"d,e\n", "table: line 2: a field begins with a quote, and text follows its end"},
        {"a,b\nc,d\xFC"
         "e\n",
         "table: line 2: is not UTF-8, but seems to be in WINDOWS-1252; convert it: iconv -f WIN"},
        {"a,b\n\x83\x65\x83\x58\x83\x67,d\n",
         "table: line 2: is not UTF-8, but seems to be in SHIFT_JIS; convert it: "},
        {"a,b\n\xA4\xB3\xA4\xF3,d\n",
         "table: line 2: is not UTF-8, but seems to be in EUC-JP; convert it: iconv -f EUC"},
        {"a,\xC3\xA4\xC3\xB6\xC3\n",
         "line 1: is not UTF-8: after byte 4 a character is damaged; without such ones: iconv"},
        {"a,\xED\xF0\xE8\xE2\xE5\xF2\n", "is not UTF-8; convert it from what it is in: iconv -f ENCODING -t UTF-8"},
    };
    for (size_t i = 0; i < sizeof damaged / sizeof damaged[0]; i++) {
        att_table *t = open_table(damaged[i].text, NULL);
        att_table_record r = {.size = sizeof r};
        att_status e = ATT_OK;
        for (r.n = 1; !e && r.n > 0;)
            e = att_table_next(t, &r);
        assert_int_equal(e, ATT_ERR_FORMAT);
        check_message(ctx, damaged[i].says);
        att_table_free(t);
    }
    att_table *t;
    folder_write(&folder, "table",
                 "\xFF\xFE"
                 "a");
    assert_int_equal(att_table_open(ctx, path_of("table"), NULL, &t), ATT_ERR_FORMAT);
    assert_null(t);
    check_message(ctx, "table is UTF-16, not UTF-8; convert it: iconv -f UTF-16 -t UTF-8 ");
}

/* A damaged line is left out alone, also if its quote takes in all that follows. */
static void damaged_records_are_left_out_as_far_as_they_may(void **state)
{
    (void)state;
    static const char text[] = "a,b\nc,\"d\n\"e\"f,g\nh,\xFC\ni,j\nk,l\n";
    att_table_info info = {.size = sizeof info};
    att_table_record r = {.size = sizeof r};
    att_table *t = open_table(text, ATT_OPTIONS(att_table_options, .skip_bad_lines = 3));
    assert_string_equal(text_of(t), "1:<a><b>5:<i><j>6:<k><l>");
    assert_int_equal(att_table_describe(t, &info), ATT_OK);
    assert_int_equal(info.skipped, 3);
    assert_non_null(strstr(info.bad, "table: line 2: a field begins with a quote"));
    att_table_free(t);
    t = open_table(text, ATT_OPTIONS(att_table_options, .skip_bad_lines = 2));
    assert_string_equal(text_of(t), "1:<a><b>");
    check_message(ctx, "table: line 4: is not UTF-8");
    att_table_free(t);
    t = open_table("a,b\nc,d\n", ATT_OPTIONS(att_table_options, .skip_bad_lines = 1));
    assert_int_equal(att_table_next(t, &r), ATT_OK);
    assert_int_equal(att_table_refuse(t, "of no use"), ATT_OK);
    assert_int_equal(att_table_next(t, &r), ATT_OK);
    assert_int_equal(att_table_refuse(t, "of no use, too"), ATT_ERR_FORMAT);
    check_message(ctx, "table: line 2: of no use, too");
    assert_int_equal(att_table_describe(t, &info), ATT_OK);
    assert_non_null(strstr(info.bad, "table: line 1: of no use"));
    att_table_free(t);
}

static void options_that_are_none_are_refused(void **state)
{
    (void)state;
    att_table *t;
    folder_write(&folder, "table", "a,b\n");
    assert_int_equal(att_table_open(ctx, path_of("table"), ATT_OPTIONS(att_table_options, .skip_bad_lines = -1), &t),
                     ATT_ERR_ARGUMENT);
    assert_int_equal(
        att_table_open(ctx, path_of("table"), ATT_OPTIONS(att_table_options, .format = (att_table_format)2), &t),
        ATT_ERR_ARGUMENT);
    assert_int_equal(att_table_open(ctx, path_of("nothing"), NULL, &t), ATT_ERR_IO);
    assert_int_equal(att_table_open(ctx, folder.path, NULL, &t), ATT_ERR_IO);
    assert_null(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_of_many_programs_are_read),
        cmocka_unit_test(between_tabs_quotes_are_text),
        cmocka_unit_test(a_pipe_is_read_as_a_file_is),
        cmocka_unit_test(records_of_many_lines_are_whole),
        cmocka_unit_test(what_is_damaged_is_refused_with_its_line),
        cmocka_unit_test(damaged_records_are_left_out_as_far_as_they_may),
        cmocka_unit_test(options_that_are_none_are_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
