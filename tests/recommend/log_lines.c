/* Logs as people have them: with a first line that is a heading or none, without users, with malformed lines. */
#include "fixtures/folder_context.h"
#include "fixtures/interactions.h"

#include <string.h>

/* The first record is what it is with no doubt, or the log is refused with what helps. */
typedef struct first_case {
    const char *text, *format;
    const char *heading; /* NULL: none */
    const char *a;
} first_case;

static const first_case firsts[] = {
    {"uid iid\na x\n", "CSV", NULL, "x"}, /* with a header */
    {"User\tItem\na\tx\n", "CSV", NULL, "x"},
    {"visitorid::itemid\na::x\n", "MovieLens", "visitorid::itemid", "x"},
    {"uid iid ts\na x 20\na y 10\n", "CSV", NULL, "y@10,x@20"},
    {"item rating\na x\n", "lines", "item rating", "x"},
    {"wer was wann\na x 20\na y 10\n", "lines", "wer was wann", "y@10,x@20"},
    {"a user\na item\n", "lines", NULL, "user,item"},
    {"a,x,1609459202\na,y,1609459201\n", "CSV without a header", NULL, "y@1609459201,x@1609459202"},
    {"\"a\";\"x;y\";4,5;1609459202\na;y;3;1609459201\n", "CSV without a header", NULL, "y@1609459201,x;y@1609459202"},
    {"a1,x1\nb22,x1\na1,x345\n", "CSV without a header", NULL, NULL},
    {"a1,x1,5\nb22,x1,3.5\na1,x345,4\n", "CSV without a header", NULL, NULL},
    {"196,242\n186,302\n196,51\n", "CSV without a header", NULL, NULL},
};

static void a_first_line_is_a_heading_or_an_action(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof firsts / sizeof firsts[0]; i++) {
        const first_case *c = &firsts[i];
        folder_write(&folder, "log", c->text);
        att_interactions *log = open_log(path_of("log"), NULL);
        const att_interactions_info info = describe_log(log);
        if (strcmp(info.format, c->format))
            fail_msg("case %zu: read as %s, not %s", i, info.format, c->format);
        if (!info.heading != !c->heading || (c->heading && strcmp(info.heading, c->heading)))
            fail_msg("case %zu: the heading is \"%s\"", i, info.heading ? info.heading : "none");
        if (c->a)
            assert_string_equal(history_text(log, "a"), c->a);
        att_interactions_free(log);
    }
}

static void a_heading_that_comes_again_is_no_action(void **state)
{
    (void)state;
    static const char *const logs[] = {
        "user,item\na,x\nuser,item\na,y\n",
        "\"user\";item;date\na;x;2024-01-02\n\nuser;\"item\";date\na;y;2024-01-03\n",
        "user_id:token\titem_id:token\na\tx\nuser_id:token\titem_id:token\na\ty\n",
        "\xef\xbb\xbfuser,item\r\na,x\r\n\xef\xbb\xbfuser,item\r\na,y\r\n",
        "\xef\xbb\xbf\"user\",item\n\xef\xbb\xbf\"a\",x\na,y\n",
        "wer was wann\na x 20\nwer was wann\na y 30\n",
    };
    for (size_t i = 0; i < sizeof logs / sizeof *logs; i++) {
        folder_write(&folder, "log", logs[i]);
        att_interactions *log = open_log(path_of("log"), NULL);
        assert_int_equal(describe_log(log).users, 1);
        assert_int_equal(describe_log(log).actions, 2);
        att_interactions_free(log);
    }
    folder_write(&folder, "log", "user item\nuser other\nuser item\n");
    att_interactions *log = open_log(path_of("log"), NULL);
    assert_int_equal(describe_log(log).actions, 1); /* only the whole heading is one */
    att_interactions_free(log);
}

static void quotes_of_two_texts_hold_no_lines_together(void **state)
{
    (void)state;
    static const char text[] =
        "user\titem\ttime\na\t\"Heroes\t10\na\tsix\"\t20\na\t\"two\nlines\"\t30\na\t\"a\tb\"\t40\n";
    att_interactions *log;
    folder_write(&folder, "log", text);
    assert_int_equal(att_interactions_open(ctx, path_of("log"), NULL, &log), ATT_ERR_FORMAT);
    check_message(ctx, "log: line 2: a field begins with a quote but does not end with one");
    log = open_log(path_of("log"), ATT_OPTIONS(att_interactions_options, .skip_bad_lines = 1));
    assert_int_equal(describe_log(log).actions, 3);
    assert_string_equal(history_text(log, "a"), "six\"@20,two\nlines@30,a\tb@40");
    att_interactions_free(log);
}

static void bad_lines_are_left_out_up_to_the_number_that_is_allowed(void **state)
{
    (void)state;
    static const char text[] = "user,item,note\na,x,1\nb\nb,\"y\"z,2\nc,,3\n,y,4\na,y,5\nd,\"x,6\na,z,7\n";
    att_interactions *log;
    folder_write(&folder, "log", text);
    for (int allowed = 0; allowed < 4; allowed++) {
        const att_interactions_options *o = ATT_OPTIONS(att_interactions_options, .skip_bad_lines = allowed);
        assert_int_equal(att_interactions_open(ctx, path_of("log"), o, &log), ATT_ERR_FORMAT);
        assert_null(log);
    }
    check_message(ctx, "log: line 8: a field begins with a quote but does not end with one");
    log = open_log(path_of("log"), ATT_OPTIONS(att_interactions_options, .skip_bad_lines = 4));
    const att_interactions_info info = describe_log(log);
    assert_string_equal(history_text(log, "a"), "x,y,z");
    assert_int_equal(info.users, 1); /* none of lines that were left out */
    assert_int_equal(info.items, 3);
    assert_int_equal(info.skipped, 4);
    assert_int_equal(info.guests, 1);
    assert_non_null(strstr(info.bad, "log: line 3: 1 field, but the first line has 3: item is missing"));
    att_interactions_free(log);
    folder_write(&folder, "log", "a x y z w v\nb\nc x\n");
    log = open_log(path_of("log"), ATT_OPTIONS(att_interactions_options, .skip_bad_lines = 1));
    assert_string_equal(history_text(log, "c"), "x");
    assert_int_equal(describe_log(log).users, 2);
    att_interactions_free(log);
    assert_int_equal(
        att_interactions_open(ctx, path_of("log"), ATT_OPTIONS(att_interactions_options, .skip_bad_lines = -1), &log),
        ATT_ERR_ARGUMENT);
}

static void line_ends_may_have_a_return_more(void **state)
{
    (void)state;
    folder_write(&folder, "log", "user,item\r\r\na,x\r\r\na,y\r\n\r\r\na,\"z\"\r\r\na,x\n");
    att_interactions *log = open_log(path_of("log"), NULL);
    assert_string_equal(history_text(log, "a"), "x,y,z,x");
    att_interactions_free(log);
}

static void what_is_missing_is_no_user(void **state)
{
    (void)state;
    static const char *const missing[] = {"NULL", "null", "NA", "n/a", "NaN", "None", "\\N", "<NA>"};
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++) {
        char text[128];
        snprintf(text, sizeof text, "user,item\n%s,x\na,x\n,y\n\"%s\",z\nNuLL,y\n", missing[i], missing[i]);
        folder_write(&folder, "log", text);
        att_interactions *log = open_log(path_of("log"), NULL);
        const att_interactions_info info = describe_log(log);
        assert_int_equal(info.guests, 3);
        assert_string_equal(info.missing_user, missing[i]);
        assert_int_equal(info.users, 2); /* one has a name that is like it */
        att_interactions_free(log);
    }
    att_interactions *log;
    folder_write(&folder, "log", "user,item\nNA,x\n,y\n");
    assert_int_equal(att_interactions_open(ctx, path_of("log"), NULL, &log), ATT_ERR_FORMAT);
    check_message(ctx, "log: none of the 2 actions has a user; one is NA");
    folder_write(&folder, "log", "user,item\na,x\na,  \n");
    assert_int_equal(att_interactions_open(ctx, path_of("log"), NULL, &log), ATT_ERR_FORMAT);
    check_message(ctx, "log: line 3: item is empty");
}

static void text_that_is_no_log_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } others[] = {
        {"{\"user\": \"a\", \"item\": \"x\"}\n{\"user\": \"a\", \"item\": \"y\"}\n",
         "log is JSON; write its actions as CSV"},
        {"\xef\xbb\xbf { 'user': 'a', 'item': 'x'}\n{ 'user': 'a', 'item': 'y'}\n", "log is JSON"},
        {"[\n  [\"a\", \"x\"],\n  [\"a\", \"y\"]\n]\n", "log is JSON"},
        {"[{\"user\": 1, \"item\": 2}, {\"user\": 1, \"item\": 3}]", "log is JSON"},
        {"[[\"a\", \"x\"], [\"a\", \"y\"]]", "log is JSON"},
        {"{}\n", "log is JSON"},
        {"%%MatrixMarket matrix coordinate integer general\n3 3 4\n1 1 5\n", "log is a matrix of Matrix Market"},
        {"<?xml version=\"1.0\"?>\n<orders><order id=\"1\"/></orders>\n", "log is not a log: it is an XML page"},
        {"<!DOCTYPE html><html>\n", "log is not a log: it is a web page (HTML)"},
    };
    att_interactions *log;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        folder_write(&folder, "log", others[i].text);
        if (!att_interactions_open(ctx, path_of("log"), NULL, &log))
            fail_msg("read: %s", others[i].text);
        check_message(ctx, others[i].says);
    }
    static const char *const logs[] = {"{a} x\n{a} y\n", "[a] x\n[b] y\n", "[deleted] x\n[deleted] y\n"};
    for (size_t i = 0; i < sizeof logs / sizeof *logs; i++) {
        folder_write(&folder, "log", logs[i]);
        att_interactions_free(open_log(path_of("log"), NULL));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_first_line_is_a_heading_or_an_action),
        cmocka_unit_test(a_heading_that_comes_again_is_no_action),
        cmocka_unit_test(quotes_of_two_texts_hold_no_lines_together),
        cmocka_unit_test(bad_lines_are_left_out_up_to_the_number_that_is_allowed),
        cmocka_unit_test(line_ends_may_have_a_return_more),
        cmocka_unit_test(what_is_missing_is_no_user),
        cmocka_unit_test(text_that_is_no_log_is_named),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
