/* Which columns of a log are users, items and times: by their names, their numbers and what is in them. */
#include "fixtures/folder_context.h"
#include "fixtures/interactions.h"

#include <string.h>

static const char *write_log(const char *text)
{
    folder_write(&folder, "log", text);
    return path_of("log");
}

/* Returns the history of user a in a log, with its times. */
static const char *history_of(const char *text, const att_interactions_options *options)
{
    att_interactions *log = open_log(write_log(text), options);
    const char *history = history_text(log, "a");
    att_interactions_free(log);
    return history;
}

static void check_refused(const char *text, const att_interactions_options *options, const char *says)
{
    att_interactions *log;
    if (!att_interactions_open(ctx, write_log(text), options, &log))
        fail_msg("accepted: %s", text);
    check_message(ctx, says);
}

/* ---- names */

static const char *const headers[] = {
    "user,item,time",
    "userId,movieId,timestamp",
    "UserId,ItemId,EventTime",
    "USER_ID,ITEM_ID,DATE",
    "visitorid,itemid,ts",
    "Customer ID,Product ID,Order Date",
    "Customer Email,SKU,Ordered At",
    "customer_email, sku , created-at",
    "uid,iid,datetime",
    "reviewerID,asin,unixReviewTime",
    "\"Client Id\",\"Lineitem sku\",\"Created at\"",
    "session_id,article_id,Timestamp",
    "CustomerID,StockCode,InvoiceDate",
    "member,track,event_timestamp",
};

static void usual_names_are_found_in_any_spelling(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        char text[256];
        snprintf(text, sizeof text, "%s\na,x,1600000002\na,y,1600000001\n", headers[i]);
        if (strcmp(history_of(text, NULL), "y@1600000001,x@1600000002") != 0)
            fail_msg("%s: %s", headers[i], history_of(text, NULL));
        for (char *c = text; *c; c++) /* the same as .tsv; blanks after a separator are not part of the next field */
            *c = *c == ',' ? ';' : *c;
        assert_string_equal(history_of(text, NULL), "y@1600000001,x@1600000002");
    }
    assert_string_equal(history_of("time:float\tsku:token\tuid:token\n2\tx\ta\n1\ty\ta\n",
                                   ATT_OPTIONS(att_interactions_options, .format = ATT_INTERACTIONS_INTER)),
                        "y@1,x@2");
    /* names that other columns have as well count where there is no better one */
    assert_string_equal(history_of("email,user_id,product,sku,time,updated_at\nq,a,p,x,2,1\nq,a,p,y,1,2\n", NULL),
                        "y@1,x@2");
}

static void two_columns_with_usual_names_are_an_error(void **state)
{
    (void)state;
    check_refused("user_id,customer_id,item,time\na,b,x,1\n", NULL,
                  "log: line 1: the header has the columns \"user_id\" and \"customer_id\", and either may be that of "
                  "the user: name one");
    check_refused("user,SKU,product_id\na,x,p\n", NULL,
                  "the columns \"SKU\" and \"product_id\", and either may be that of the item");
    check_refused("user,item,created_at,Ordered At\na,x,1,2\n", NULL,
                  "the columns \"created_at\" and \"Ordered At\", and either may be that of the time");
    check_refused("user,item,User\na,x,b\n", NULL, "the columns \"user\" and \"User\", and either");
    check_refused("user,item,item\na,x,b\n", NULL, "the header has the column \"item\" twice");
    assert_string_equal(history_of("user,item,created_at,Ordered At\na,x,2,1\na,y,1,2\n",
                                   ATT_OPTIONS(att_interactions_options, .time = "Ordered At")),
                        "x@1,y@2");
}

static void typed_names_need_not_have_the_letters_of_the_header(void **state)
{
    (void)state;
    static const char text[] = "Who?, WHAT it is ,when_it_was\na,x,2\na,y,1\n";
    const char *const users[] = {"Who?", "who", " WHO? "}, *const items[] = {"WHAT it is", "what_it_is",
                                                                             " WHAT it is "};
    for (int i = 0; i < 3; i++)
        assert_string_equal(history_of(text, ATT_OPTIONS(att_interactions_options, .user = users[i], .item = items[i],
                                                         .time = "When It Was")),
                            "y@1,x@2");
    /* the one with the same letters comes first; without it two are too many */
    assert_string_equal(history_of("who,WHO,item\na,b,x\n", ATT_OPTIONS(att_interactions_options, .user = "who")), "x");
    check_refused("who,WHO,item\na,b,x\n", ATT_OPTIONS(att_interactions_options, .user = "Who"),
                  "the columns \"who\" and \"WHO\"");
    check_refused("who,item\na,x\n", ATT_OPTIONS(att_interactions_options, .user = "whose"),
                  "the header has no column \"whose\", of the user");
}

static void a_column_is_one_thing(void **state)
{
    (void)state;
    static const char header[] = "user,item,time\n1,2,3\n", lines[] = "1 2 3\n4 5 6\n";
    check_refused(header, ATT_OPTIONS(att_interactions_options, .user = "item"),
                  "log: line 1: column 2 would be both that of the user and of the item: name both");
    check_refused(header, ATT_OPTIONS(att_interactions_options, .time = "1"), "both that of the user and of the time");
    check_refused(header, ATT_OPTIONS(att_interactions_options, .item = "3"), "both that of the item and of the time");
    check_refused(lines, ATT_OPTIONS(att_interactions_options, .user = "2"), "both that of the user and of the item");
    check_refused(lines, ATT_OPTIONS(att_interactions_options, .user = "1", .item = "3", .time = "3"),
                  "column 3 would be both that of the item and of the time");
}

static void columns_have_numbers(void **state)
{
    (void)state;
    const att_interactions_options *o = ATT_OPTIONS(att_interactions_options, .user = "4", .item = "2", .time = "5");
    assert_string_equal(history_of("7,x,p q,a,2,z\n7,y,p q,a,1,z\n", o), "y@1,x@2");
    assert_string_equal(history_of("7 x p a 2 z\n7 y p a 1 z\n", o), "y@1,x@2");
    assert_string_equal(history_of("no;item;title;user;time;shop\n7;x;p q;a;2;z\n7;y;p q;a;1;z\n", o), "y@1,x@2");
    /* in a file with a header, where it has no such name */
    assert_string_equal(
        history_of("time,item,user,3\n2,x,b,a\n1,y,b,a\n", ATT_OPTIONS(att_interactions_options, .user = "3")),
        "y@1,x@2");
    assert_string_equal(
        history_of("rating,item,when,user\n5,x,2,a\n5,y,1,a\n", ATT_OPTIONS(att_interactions_options, .time = "3")),
        "y@1,x@2");
    static const char check_ins[] =
        "a\t2010-10-19T23:55:27Z\t30.2\t-97.7\tx\na\t2010-10-18T23:55:27Z\t30.2\t-97.7\ty\n";
    check_refused(check_ins, NULL, "5 fields in the format lines"); /* and no history */
    assert_string_equal(
        history_of(check_ins, ATT_OPTIONS(att_interactions_options, .user = "1", .item = "5", .time = "2")),
        "y@1287446127,x@1287532527");
    check_refused("a\t2014-04-07T10:51:09.277Z\tx\t0\n", NULL,
                  "log: line 1: item is \"2014-04-07T10:51:09.277Z\", a date");
    check_refused("a x 1\n", ATT_OPTIONS(att_interactions_options, .time = "4"),
                  "there is no column 4, of the time: there are 3");
    check_refused("a x 1\n", ATT_OPTIONS(att_interactions_options, .time = "0"), "\"0\" was given as one");
    check_refused("a x y z w v\n",
                  ATT_OPTIONS(att_interactions_options, .format = ATT_INTERACTIONS_HISTORIES, .user = "1"),
                  "the format is histories, whose columns have no names");
}

static void times_that_are_not_read_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *text, *time, *unused;
    } cases[] = {
        {"user,item,when\na,x,1600000000\n", NULL, "when"},
        {"user,item,Zeit\na,x,1600000000000\n", NULL, "Zeit"},
        {"user,item,price,wann\na,x,12,2020-01-31 10:00\n", NULL, "wann"},
        {"user,item,wann\na,x,2020-01-31T10:00:00Z\n", NULL, "wann"},
        {"user_id:token\titem_id:token\tt:float\na\tx\t1600000000.5\n", NULL, "t"},
        {"user,item,when\na,x,12/1/2010 8:26\n", NULL, "when"}, /* in forms that are not read */
        {"user,item,when\na,x,20.09.97\n", NULL, "when"},
        {"user,item,when\na,x,1600000000\n", "", NULL}, /* as was said */
        {"user,item,code\na,x,978-3-16-148410-0\n", NULL, NULL},
        {"user,item,when,time\na,x,1600000000,1600000000\n", NULL, NULL},
        {"user,item,price\na,x,160\n", NULL, NULL},
        {"user,item\n1600000000,1600000001\n", NULL, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        att_interactions *log =
            open_log(write_log(cases[i].text), ATT_OPTIONS(att_interactions_options, .time = cases[i].time));
        const char *unused = describe_log(log).unused_times;
        if (!unused != !cases[i].unused || (unused && strcmp(unused, cases[i].unused) != 0))
            fail_msg("%zu: %s", i, unused ? unused : "none");
        att_interactions_free(log);
    }
}

/* ---- ratings */

/* 8 actions each of 20 users with items 0, 1, ...; between: the separator; numbers [n] are those of the third column in
 * turn. */
static att_interactions *open_rated(const char *between, const char *const *numbers, int n,
                                    const att_interactions_options *options)
{
    enum { USERS = 20, LENGTH = 8 };
    char text[USERS * LENGTH * 24];
    int at = 0;
    for (int i = 0; i < USERS * LENGTH; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "u%d%si%d%s%s\n", i % USERS, between, i / USERS, between,
                       numbers[(i * 7 + i / USERS) % n]);
    return open_log(write_log(text), options);
}

static const struct {
    const char *between, *numbers[6];
    double low, high;
} rated[] = {
    {" ", {"1", "5", "3", "4", "2", "3"}, 1, 5},
    {"\t", {"1", "5", "3", "4", "2", "3"}, 1, 5},
    {"::", {"1", "5", "3", "4", "2", "3"}, 1, 5},
    {",", {"1", "5", "3", "4", "2", "3"}, 1, 5},
    {" ", {"0.5", "5.0", "3", "4.5", "2", "1.5"}, 0.5, 5},
    {" ", {"0", "10", "7", "8", "2", "9"}, 0, 10},
    {" ", {"-1", "1", "1", "-1", "1", "0"}, -1, 1},
    {" ", {"1", "1", "1", "1", "1", "1"}, 1, 1},
    {" ", {"20", "100", "60", "80", "40", "40"}, 20, 100},
    {" ", {"0.25", "0.9", "0.3", "0.8", "0.7", "0.1"}, 0.1, 0.9},
    {" ", {"-7.82", "8.79", "-9.66", "1.55", "7.52", "2"}, -9.66, 8.79},
};

static void small_numbers_again_and_again_are_no_times(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rated / sizeof *rated; i++) {
        att_interactions *log = open_rated(rated[i].between, rated[i].numbers, 6, NULL);
        const att_interactions_info info = describe_log(log);
        if (!info.ratings || info.timed || info.lowest_rating != rated[i].low || info.highest_rating != rated[i].high)
            fail_msg("%zu: timed: %d, %g to %g", i, info.timed, info.lowest_rating, info.highest_rating);
        assert_int_equal(info.guessed_times, 3);
        assert_string_equal(history_text(log, "u3"), "i0,i1,i2,i3,i4,i5,i6,i7");
        att_interactions_free(log);
    }
    att_interactions *log =
        open_rated(" ", rated[0].numbers, 6, ATT_OPTIONS(att_interactions_options, .time = "3")); /* as was said */
    assert_true(describe_log(log).timed && !describe_log(log).ratings);
    att_interactions_free(log);
}

static void other_numbers_are_times(void **state)
{
    (void)state;
    static const char *const logs[] = {
        "a x 3\na y 1\na z 2\nb x 2\nb y 1\n",                    /* positions: no user has one twice */
        "a x 1\na y 2\na z 2\na w 5\n",                           /* they rise */
        "a x 20\nb y 5\na z 10\na w 20\n",                        /* few actions say nothing about larger ones */
        "a x 12.25\na y 12.75\na z 12.5\n",                       /* no ratings */
        "a x 1600000005\na y 1600000001\na z 1600000005\n",       /* seconds */
        "a x 5 1600000005\na y 3 1600000001\na z 1 1600000003\n", /* beside ratings */
        "a x 1600000005 5\na y 1600000001 3\na z 1600000003 1\n",
        "user,item,time\na,x,5\na,y,1\na,z,5\n", /* by its name */
    };
    static const char *const expected[] = {"y@1,z@2,x@3",
                                           "x@1,y@2,z@2,w@5",
                                           "z@10,x@20,w@20",
                                           "x@12.25,z@12.5,y@12.75",
                                           "y@1600000001,x@1600000005,z@1600000005",
                                           "y@1600000001,z@1600000003,x@1600000005",
                                           "y@1600000001,z@1600000003,x@1600000005",
                                           "y@1,x@5,z@5"};
    for (size_t i = 0; i < sizeof logs / sizeof *logs; i++)
        assert_string_equal(history_of(logs[i], NULL), expected[i]);
}

/* ---- dates and histories without a header */

static void spaces_may_divide_a_date(void **state)
{
    (void)state;
    static const char *const logs[] = {
        "a x 2020-01-01 10:00:02\na y 2020-01-01 10:00:01\n",
        "a x 5 2020-01-01 10:00:02\na y 3 2020-01-01 10:00:01\n",
        "a x 2020-01-01 19:00:02 +0900\na y 2020-01-01 10:00:01 UTC\n",
        "a x 4 2020-01-01 05:00:02 -05:00\na y 2 2020-01-01 10:00:01 Z\n",
        "a\tx\t2020-01-01 10:00:02\na\ty\t2020-01-01T10:00:01Z\n",
    };
    for (size_t i = 0; i < sizeof logs / sizeof *logs; i++)
        assert_string_equal(history_of(logs[i], NULL), "y@1577872801,x@1577872802");
    check_refused("a x 2020-01-01 10:00:02\na y 2020-01-01\n", NULL, "log: line 2: 2 fields, but the first line has 3");
}

static void columns_are_no_histories(void **state)
{
    (void)state;
    static const char *const tables[] = {
        "1\t268\t77\tpv\t1511544070\n1\t346\t71\tbuy\t1511561733\n2\t268\t77\tpv\t1511561734\n", /* numbers, words,
                                                                                                    times */
        "1 268 77 1 1511544070\n1 346 71 4 1511561733\n",
        "7\tThe Game 2\tbuy\t1.0\t0\n7\tThe Game 2\tplay\t27.5\t0\n8\tOther\tplay\t2.0\t0\n", /* decimals */
        "1\tU13\t11/11/2019 9:05:58 AM\tN5 N4\tN5-1\n2\tU91\t11/12/2019 6:11:30 PM\tN3 N6\tN2-0\n",
        "47\tv49\tc4\tShop\t-40.71\t74.5\n47\tv4a\tc5\tBridge\t40.6\t-74.0\n",
        "a x 4 good 12\na y 5 bad 3\n",
    };
    static const char *const histories[] = {
        "a i1 i2 i3 i4\nb i2 i3 i4 i5\n", /* all of a length */
        "a 11 12 13 14\nb 12 13 14 15\n",
        "a 11.0 12.0 13.0 14.0\nb 12.0 13.0 14.0 15.0\n",
        "a\t1984\tDune\tEmma\tUlysses\nb\tDune\t1984\tEmma\tIt\n",
        "a 1600000001 1600000002 1600000003 1600000004\nb 1600000002 1600000003 1600000001 1600000005\n",
        "a x 4 good 12\na y 5 bad 3 v\n", /* not of a length */
        "a x 4 good 12\n",
    };
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        check_refused(tables[i], NULL, "fields in the format lines, expected");
    for (size_t i = 0; i < sizeof histories / sizeof *histories; i++) {
        att_interactions *log = open_log(write_log(histories[i]), NULL);
        assert_string_equal(describe_log(log).format, "histories");
        assert_int_equal(describe_log(log).fields, i < 5 ? 5 : 0); /* which is said */
        att_interactions_free(log);
    }
    att_interactions *log =
        open_log(write_log(tables[5]), ATT_OPTIONS(att_interactions_options, .format = ATT_INTERACTIONS_HISTORIES));
    assert_int_equal(describe_log(log).fields, 0); /* it was said that they are */
    att_interactions_free(log);
}

static void a_date_in_parts_is_not_read_by_its_day(void **state)
{
    (void)state;
    check_refused("user,item,day,month,year\na,x,2,1,2009\n", NULL,
                  "the columns \"day\" and \"month\", and either may be that of the time");
    assert_string_equal(history_of("user,item,day,month,year\na,x,2,1,2009\na,y,1,2,2009\n",
                                   ATT_OPTIONS(att_interactions_options, .time = "")),
                        "x,y");
    assert_string_equal(history_of("user,item,day,month,ts\na,x,1,1,2\na,y,2,1,1\n", NULL), "y@1,x@2");
    assert_string_equal(history_of("user,item,DAY\na,x,372\na,y,12\n", NULL), "y@12,x@372");
}

static void lines_of_one_user_are_counted(void **state)
{
    (void)state;
    att_interactions *log = open_log(write_log("a x y z w\nb x y z w\na y z x w\nx y z w v\nb x x x x\n"), NULL);
    assert_int_equal(describe_log(log).repeated_users, 2);
    assert_int_equal(describe_log(log).users, 3);
    att_interactions_free(log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(usual_names_are_found_in_any_spelling),
        cmocka_unit_test(two_columns_with_usual_names_are_an_error),
        cmocka_unit_test(typed_names_need_not_have_the_letters_of_the_header),
        cmocka_unit_test(a_column_is_one_thing),
        cmocka_unit_test(columns_have_numbers),
        cmocka_unit_test(times_that_are_not_read_are_named),
        cmocka_unit_test(small_numbers_again_and_again_are_no_times),
        cmocka_unit_test(other_numbers_are_times),
        cmocka_unit_test(spaces_may_divide_a_date),
        cmocka_unit_test(columns_are_no_histories),
        cmocka_unit_test(a_date_in_parts_is_not_read_by_its_day),
        cmocka_unit_test(lines_of_one_user_are_counted),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
