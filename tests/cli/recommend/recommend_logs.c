/* attend recommend, train recommend and evaluate recommend: how logs are read, with which columns and times. */
// labels: trains
#include "fixtures/check.h"
#include "fixtures/tool.h"

#define TRAIN "$A train recommend --data ring.txt --hidden 8 --layers 1 --epochs 0.1 "

/* Items in a ring: after each comes the next one; 120 users with 12 actions each. */
static int set_up(void **state)
{
    assert_int_equal(tool_setup(state), 0);
    return tool("awk 'BEGIN { for (u = 0; u < 120; u++) for (i = 0; i < 12; i++) "
                "printf \"user%d item%d %d\\n\", u, (u * 7 + i) % 20, i }' >ring.txt");
}

static void times_are_shown_as_dates(void **state)
{
    (void)state;
    static const struct {
        const char *times[2], *says;
    } cases[] = {{{"874724710", "893286638"}, "; times 1997-09-20 to 1998-04-22"},
                 {{"874724710000", "893286638000"}, "; times 1997-09-20 to 1998-04-22 in milliseconds"},
                 {{"1", "5"}, "; times 1 to 5"},
                 {{"19970920", "19980422"}, "; times 19970920 to 19980422"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[256];
        snprintf(line, sizeof line, "printf 'u a %s\\nu b %s\\nu b %s\\n' >dates; $A evaluate recommend -d dates",
                 cases[i].times[0], cases[i].times[0], cases[i].times[1]);
        assert_int_equal(tool(line), 0);
        assert_has(tool_err, cases[i].says);
    }
}

static void the_log_is_read_as_in_the_training(void **state)
{
    (void)state;
    assert_int_equal(tool("{ echo who,what,at,rating; sed 's/ /,/g; s/$/,5/' ring.txt; echo user0,item0,0,5; echo "
                          "user0,item0,0,5; } >ring.csv"),
                     0);
    assert_int_equal(
        tool("$A train recommend --data ring.csv --user-column who --item-column what --time-column at "
             "--drop-duplicates --hidden 8 --layers 1 --epochs 0.1 -o read && $A evaluate recommend -m read "
             "-d ring.csv"),
        0);
    assert_null(strstr(tool_err, "without times"));
    assert_null(strstr(tool_err, "was trained with"));
    assert_int_equal(tool("$A evaluate recommend -m read -d ring.csv --time-column ''"), 0);
    assert_has(tool_err, "attend: read was trained with --time-column at\n");
    assert_int_equal(tool("$A evaluate recommend -m read -d ring.txt >/dev/null"), 0);
    assert_has(tool_err,
               "attend: ring.txt is not the log of the training of read, which may have been trained on actions");
}

/* Newest first, as shops export them, with dates and names of their own */
static void a_log_is_read_as_in_the_training_when_recommending(void **state)
{
    (void)state;
    static char lists[sizeof tool_out];
    assert_int_equal(tool("tac ring.txt | awk 'BEGIN { print \"Customer Email,SKU,Ordered At\" } "
                          "{ printf \"%s,%s,2023-02-%02d 10:00:00 -0500\\n\", $1, $2, $3 + 1 }' >export.csv; "
                          "gzip -k export.csv"),
                     0);
    assert_int_equal(tool("$A train recommend --data export.csv --user-column 'Customer Email' --item-column SKU "
                          "--time-column 'Ordered At' --hidden 8 --layers 1 --epochs 0.1 -o exported"),
                     0);
    assert_has(tool_err, "; times 2023-02-01 to 2023-02-12; 1320 not sorted by time\n");
    assert_int_equal(tool("$A recommend -m exported --data export.csv --all-users -k 3 --time-column 'Ordered At' "
                          "--user-column 'Customer Email' --item-column SKU"),
                     0);
    strcpy(lists, tool_out);
    assert_int_equal(tool("$A recommend -m exported --data export.csv --all-users -k 3"), 0);
    assert_string_equal(tool_out, lists);
    assert_string_equal(tool_err, "");
    assert_int_equal(tool("$A recommend -m exported --data export.csv.gz --all-users -k 3"), 0);
    assert_string_equal(tool_out, lists);
    assert_int_equal(tool("gzip -c export.csv | $A recommend -m exported --data - --all-users -k 3"), 0);
    assert_string_equal(tool_out, lists);
    assert_int_equal(tool("cat export.csv | $A evaluate recommend -m exported --data - >piped && "
                          "$A evaluate recommend -m exported --data export.csv | diff piped -"),
                     0);
    assert_refused("cat export.csv | $A train recommend --data - -o piped", 1, "--data -: is not a file");
    assert_int_equal(tool("$A recommend -m exported --data export.csv --all-users -k 3 --time-column ''"), 0);
    assert_int_not_equal(strcmp(tool_out, lists), 0);
    assert_has(tool_err, "attend: exported was trained with --time-column Ordered At\n");
    assert_has(tool_err, "attend: export.csv: without times: the order is that of the file\n");
    /* another kind of file has its own columns */
    assert_int_equal(tool("$A recommend -m exported --data ring.txt --user user3 -k 3"), 0);
    assert_has(tool_err, "attend: exported was trained with --item-column SKU, but on a file with another ending than "
                         "ring.txt, which is read without\n");
}

static void points_in_time_are_typed_as_they_are_printed(void **state)
{
    (void)state;
    static char first[sizeof tool_out];
    const char *const points[] = {"--valid-from 2023-02-05 --test-from 2023-02-09T12:30:00Z",
                                  "--valid-from 1675555200 --test-from 1675945800",
                                  "--valid-from 2023-02-05 --test-from 1675945800",
                                  "--valid-from '2023-02-04 19:00 -0500' --test-from 20230209T123000Z"};
    assert_int_equal(tool("awk '{ printf \"%s %s %d\\n\", $1, $2, 1675227600 + 86400 * $3 }' ring.txt >seconds.txt; "
                          "sed 's/$/000/' seconds.txt >milliseconds.txt"),
                     0);
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        char line[256];
        snprintf(line, sizeof line, "$A evaluate recommend -d seconds.txt --split time %s", points[i]);
        assert_int_equal(tool(line), 0);
        assert_has(tool_out, " from 2023-02-09T12:30:00Z on, predicted");
        if (i == 0)
            strcpy(first, tool_out);
        assert_string_equal(tool_out, first);
    }
    assert_int_equal(tool("$A evaluate recommend -d milliseconds.txt --split time --valid-from 2023-02-05 --test-from "
                          "2023-02-09T12:30:00Z"),
                     0);
    assert_string_equal(tool_out, first);
    /* a model knows the points of its training, whichever form they have */
    assert_int_equal(
        tool("$A train recommend --data seconds.txt --split time --valid-from 2023-02-05 --test-from "
             "2023-02-09 --hidden 8 --layers 1 --epochs 0.1 -o dated && "
             "$A evaluate recommend -m dated -d seconds.txt --valid-from 1675555200 --test-from 2023-02-09"),
        0);
    assert_has(tool_out, " from 2023-02-09 on, predicted");
    assert_null(strstr(tool_err, "not as here"));
    assert_int_equal(tool("$A evaluate recommend -m dated -d seconds.txt --valid-from 2023-02-04 --test-from "
                          "2023-02-09"),
                     0);
    assert_has(tool_err, "dated was trained with --valid-from 2023-02-05, not as here");
}

static void points_in_time_that_a_log_cannot_have_are_refused(void **state)
{
    (void)state;
    assert_refused(
        TRAIN "--split time --valid-from 1998-04-01 --test-from 1.4.1999 -o x", 2,
        "--test-from: time is \"1.4.1999\", not a number, as of seconds since 1970, nor a date of the forms");
    assert_refused(TRAIN "--split time --valid-from 1998-04-01 --test-from 1998-03-31 -o x", 2,
                   "--valid-from 1998-04-01 is not before --test-from 1998-03-31");
    assert_refused(TRAIN "--split time --valid-from 1998-04-01 --test-from 1998-05-01 -o x", 1,
                   "--valid-from: time is \"1998-04-01\", a date, but those of the log are not seconds since 1970");
}

/* ---- What is unusual is said ------------------------------------------------------ */

static void what_a_log_may_mean_otherwise_is_said(void **state)
{
    (void)state;
    static const struct {
        const char *log, *says;
    } cases[] = {
        {"awk '{ print $1, $2, $3 * 7 % 5 + 1 }' ring.txt",
         "; without times: the order is that of the file\n"
         "attend: column 3, from 1 to 5, is read as ratings, not as times: --time-column 3 reads it as times\n"},
        {"awk '{ print $1, $2, $3 * 7 % 5 * 100 + 1 }' ring.txt",
         "attend: column 3 is read as times, but these are not dates: if it has ratings or counts, --time-column \"\" "
         "reads none\n"},
        {"awk 'BEGIN { print \"uid,sku,Wann\" } { print $1 \",\" $2 \",\" 1600000000 + $3 }' ring.txt",
         "attend: the column \"Wann\" seems to have times, but is not read: --time-column Wann reads it\n"},
        {"awk '{ print $1, $2, 1600000000 + $3 ($3 % 3 ? \"000\" : \"\") }' ring.txt",
         "attend: 480 of 1440 times are not in the years 1973 to 2096 in milliseconds: are all of them times, and in "
         "one "
         "unit?\n"},
        {"awk '{ print $2, $2, $2, $2, $2, $2 }' ring.txt | sort -u; echo item3 item5 item6 item7 item8",
         "attend: 1 line belongs to a user of an earlier line, as its first id states; where lines have no users, put "
         "one "
         "before each\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[512];
        snprintf(line, sizeof line, "{ %s; } >odd; $A evaluate recommend -d odd", cases[i].log);
        assert_int_equal(tool(line), 0);
        assert_has(tool_err, cases[i].says);
        snprintf(line, sizeof line, "%s -m said", "$A recommend -d odd --all-users");
        assert_int_equal(i > 0 || !tool(TRAIN "-o said"), 1);
        assert_int_equal(tool(line), 0);
        assert_has(tool_err, strstr(cases[i].says, "attend: "));
    }
}

static void a_wrong_column_is_refused_with_the_option_that_helps(void **state)
{
    (void)state;
    assert_refused("printf 'user_id,customer_id,item\\na,b,x\\n' >two; $A evaluate recommend -d two", 1,
                   "and either may be that of the user: name one: --user-column\n");
    assert_refused(
        "printf 'user,item,date\\na,x,20.09.1997\\n' >day; $A evaluate recommend -d day", 1,
        "day: line 2: time is \"20.09.1997\", not a number, as of seconds since 1970, nor a date of the forms "
        "1997-09-20, 1997-09-20 03:05 or 1997-09-20T03:05:10.5+01:00; --time-column names another column, "
        "or \"\": no times\n");
    assert_int_equal(
        tool("printf 'user,item,wann\\na,x,2020-01-01\\n' >wann; $A evaluate recommend -d wann --split time"), 1);
    assert_string_equal(tool_err,
                        "attend: the column \"wann\" seems to have times, but is not read: --time-column wann "
                        "reads it\nattend: a split by time of a log without times (of the format CSV)\n");
    assert_refused("$A evaluate recommend -d day --time-column date", 1, "or 1997-09-20T03:05:10.5+01:00\n");
}

static void how_a_log_was_read_is_said_before_it_has_nothing_to_measure(void **state)
{
    (void)state;
    assert_int_equal(tool("printf 'user,item,time\nNA,x,1\na,x,1\na,y,2020-01-02\na,z,2020-01-03\n' >kinds; "
                          "$A evaluate recommend -d kinds --skip-bad-lines 2"),
                     1);
    assert_string_equal(tool_err,
                        "1 action of 1 user with 1 item (CSV); times 1 to 1; 1 without a user left out\n"
                        "attend: NA is read as no user, but as a value that is missing: those actions are left out\n"
                        "attend: 2 malformed lines were left out (--skip-bad-lines), first: kinds: line 4: time is "
                        "2020-01-02, a date, but those before it are numbers\n"
                        "attend: kinds: no action is held out, as no user has 3 actions or more\n");
}

static void histories_that_may_be_columns_are_said(void **state)
{
    (void)state;
    assert_int_equal(tool("printf 'a x y z w\nb y z w x\n' >equal; $A evaluate recommend -d equal"), 0);
    assert_has(tool_err,
               "attend: each line is read as a user and items, but all have 5 fields: where these are columns, "
               "number them, as by --user-column 1 --item-column 2\n");
    assert_int_equal(tool("$A evaluate recommend -d equal --format histories"), 0);
    assert_null(strstr(tool_err, "attend: "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_are_shown_as_dates),
        cmocka_unit_test(the_log_is_read_as_in_the_training),
        cmocka_unit_test(a_log_is_read_as_in_the_training_when_recommending),
        cmocka_unit_test(points_in_time_are_typed_as_they_are_printed),
        cmocka_unit_test(points_in_time_that_a_log_cannot_have_are_refused),
        cmocka_unit_test(what_a_log_may_mean_otherwise_is_said),
        cmocka_unit_test(a_wrong_column_is_refused_with_the_option_that_helps),
        cmocka_unit_test(how_a_log_was_read_is_said_before_it_has_nothing_to_measure),
        cmocka_unit_test(histories_that_may_be_columns_are_said),
    };
    return cmocka_run_group_tests(tests, set_up, tool_teardown);
}
