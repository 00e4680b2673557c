/* Times of logs: dates of ISO 8601 and numbers, in which units they are, and what is refused. */
#include "fixtures/check.h"
#include "fixtures/folder_context.h"

#include "attend_recommend.h"

#include <math.h>

static att_status open_text(const char *name, const char *text, att_interactions **log)
{
    folder_write(&folder, name, text);
    return att_interactions_open(ctx, path_of(name), NULL, log);
}

/* Opens a log of CSV with these times, one user and an item for each: "i0", "i1", ... */
static att_status open_times(const char *const *times, int n, att_interactions **log)
{
    char text[4096];
    int at = snprintf(text, sizeof text, "user,item,time\n");
    for (int i = 0; i < n; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "u,i%d,%s\n", i, times[i]);
    return open_text("log.csv", text, log);
}

static double time_of(const char *text)
{
    double x = NAN;
    if (att_interactions_time(text, 1, &x, NULL))
        fail_msg("%s: %s", text, att_error(NULL));
    return x;
}

/* Seconds by GNU date -u -d ... +%s.%N, years before 1 by Python's proleptic arithmetic */
static const struct {
    const char *text;
    double seconds;
} dates[] = {
    {"1970-01-01", 0},
    {"1969-12-31", -86400},
    {"1969-12-31T23:59:59.5", -0.5},
    {"2014-04-07T10:51:09.277Z", 1396867869.277},
    {"1997-09-20T03:05:10Z", 874724710},
    {"1997-09-20 03:05:10", 874724710},
    {"1997-09-20t03:05:10z", 874724710},
    {"1997-09-20 03:05", 874724700},
    {"1997-09-20T03:05Z", 874724700},
    {"1997-09-20T05:05:10+02:00", 874724710},
    {"1997-09-20T05:05:10+0200", 874724710},
    {"1997-09-20T05:05:10+02", 874724710},
    {"1997-09-19 22:35:10 -0430", 874724710},
    {"1997-09-20 03:05:10 UTC", 874724710},
    {"1997-09-20 03:05:10,25 GMT", 874724710.25},
    {"19970920T030510Z", 874724710},
    {"19970920T0305", 874724700},
    {" 1997-09-20 ", 874713600},
    {"1997/09/20", 874713600},
    {"1997/9/20 3:05", 874724700},
    {"1997.09.20 03:05:10", 874724710},
    {"1997-9-20 3:05:10.5", 874724710.5},
    {"1997-9-2", 873158400},
    {"1997/9/20T3:05Z", 874724700},
    {"19970920 03:05:10", 874724710},
    {"1997-09-20 03:05:10 +0000 UTC", 874724710},
    {"1997-09-20 03:05:10.25 +0000", 874724710.25},
    {"1997-09-20 03:05:10.123456789012345678901234+00:00", 874724710.123456789},
    {"2000-02-29", 951782400},
    {"2024-02-29 23:59:59", 1709251199},
    {"2016-12-31T23:59:60Z", 1483228800},
    {"2038-01-19T03:14:08Z", 2147483648},
    {"1900-03-01", -2203891200},
    {"0000-01-01", -62167219200},
    {"0001-01-01T00:00:00Z", -62135596800},
    {"9999-12-31T23:59:59Z", 253402300799},
    {"0000-01-01T00:00+23:59", -62167305540},
};

static void dates_are_seconds_since_1970(void **state)
{
    (void)state;
    setenv("TZ", "America/New_York", 1); /* is not asked */
    tzset();
    for (size_t i = 0; i < sizeof dates / sizeof *dates; i++)
        if (time_of(dates[i].text) != dates[i].seconds)
            fail_msg("%s is %.17g", dates[i].text, time_of(dates[i].text));
    unsetenv("TZ");
    tzset();
}

/* Every day of 800 years, counted without a formula */
static void each_day_is_one_after_the_day_before(void **state)
{
    (void)state;
    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    double expected = time_of("1600-01-01");
    char text[40];
    for (int year = 1600; year < 2400; year++)
        for (int month = 1; month <= 12; month++) {
            const bool leap = year % 400 == 0 || (year % 4 == 0 && year % 100 != 0);
            const int days = lengths[month - 1] + (month == 2 && leap);
            for (int day = 1; day <= days; day++, expected += 86400) {
                snprintf(text, sizeof text, "%04d-%02d-%02d", year, month, day);
                assert_true(time_of(text) == expected);
            }
            double x;
            snprintf(text, sizeof text, "%04d-%02d-%02d", year, month, days + 1);
            assert_int_equal(att_interactions_time(text, 1, &x, NULL), ATT_ERR_FORMAT);
        }
}

static void what_is_no_time_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } wrong[] = {
        {"20.09.1997", "time is \"20.09.1997\", not a number, as of seconds since 1970, nor a date of the forms 1997-"},
        {"09/20/1997", "nor a date of the forms"},
        {"Sat, 20 Sep 1997 03:05:10 GMT", "nor a date of the forms"},
        {"Sep 20 1997", "nor a date of the forms"},
        {"97-09-20", "nor a date of the forms"},
        {"97/09/20", "nor a date of the forms"},
        {"1997/09-20", "nor a date of the forms"},
        {"1997-09/20", "nor a date of the forms"},
        {"1997/9/", "nor a date of the forms"},
        {"1997/123/1", "nor a date of the forms"},
        {"1997/1/123", "nor a date of the forms"},
        {"19970920 030510", "nor a date of the forms"},
        {"1997-09-20 03:5", "nor a date of the forms"},
        {"1997-09-20 03:05 +0100 UTC", "nor a date of the forms"},
        {"1997-09-20 03:05 +0000 CET", "nor a date of the forms"},
        {"1997/2/29", "whose day is 29, expected 1 to 28"},
        {"1997-09", "nor a date of the forms"},
        {"1997-W38-6", "nor a date of the forms"},
        {"1997-263", "nor a date of the forms"},
        {"1997-09-20T", "nor a date of the forms"},
        {"1997-09-20T03:05:", "nor a date of the forms"},
        {"1997-09-20T03:05:10.", "nor a date of the forms"},
        {"1997-09-20T03:05:10+", "nor a date of the forms"},
        {"1997-09-20T03:05:10+1:00", "nor a date of the forms"},
        {"1997-09-20T03:05:10+01:0", "nor a date of the forms"},
        {"1997-09-20T03:05:10Z+01", "nor a date of the forms"},
        {"1997-09-20T03:05:10 Europe/Berlin", "nor a date of the forms"},
        {"1997-09-20 03:05 PM", "nor a date of the forms"},
        {"1997-09-20Z", "nor a date of the forms"},
        {"-1997-09-20", "nor a date of the forms"},
        {"1997-09-20T030510", "nor a date of the forms"},
        {"now", "time is \"now\", not a number"},
        {"0000-00-00", "whose month is 0, expected 1 to 12"},
        {"1997-13-01", "whose month is 13, expected 1 to 12"},
        {"1997-04-31", "time is \"1997-04-31\", whose day is 31, expected 1 to 30"},
        {"1900-02-29", "whose day is 29, expected 1 to 28"},
        {"2023-02-29", "whose day is 29, expected 1 to 28"},
        {"2024-02-30", "whose day is 30, expected 1 to 29"},
        {"1997-09-00", "whose day is 0"},
        {"1997-09-20T24:00:00", "whose hour is 24, expected 0 to 23"},
        {"1997-09-20T03:60", "whose minute is 60, expected 0 to 59"},
        {"1997-09-20T03:05:61", "whose second is 61, expected 0 to 60"},
        {"1997-09-20T03:05+24:00", "whose zone's hour is 24"},
        {"1997-09-20T03:05+01:60", "whose zone's minute is 60"},
        {"", "time is empty"},
        {"  ", "time is empty"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        double x;
        const att_status e = att_interactions_time(wrong[i].text, 1, &x, NULL);
        if (e != ATT_ERR_FORMAT || !strstr(att_error(NULL), wrong[i].says))
            fail_msg("\"%s\": status %d: %s", wrong[i].text, e, e ? att_error(NULL) : "");
    }
}

/* ---- in logs */

static void dates_of_different_zones_are_in_order(void **state)
{
    (void)state;
    static const char *const times[] = {"2023-01-01T12:00:00+09:00", "2023-01-01T02:00:00Z",
                                        "2022-12-31 23:00:00 -0500", "\"2023-01-01 02:00:00,5\""};
    static const int order[] = {1, 3, 0, 2}; /* 02:00, 02:00:00.5, 03:00 and 04:00 */
    att_interactions *log;
    if (open_times(times, 4, &log))
        fail_msg("%s", att_error(ctx));
    att_interactions_info info = {.size = sizeof info};
    assert_int_equal(att_interactions_describe(log, &info), ATT_OK);
    assert_true(info.time_per_second == 1 && info.unusual_times == 0);
    const att_history h = att_interactions_history(log, 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(h.items[i], order[i]);
    att_interactions_free(log);
}

static void the_unit_of_numbers_is_told_by_their_size(void **state)
{
    (void)state;
    static const struct {
        const char *times[3];
        double per_second;
        int64_t unusual;
    } cases[] = {
        {{"1396867869", "874724710", "100000000"}, 1, 0},
        {{"1396867869.5", "874724710", "1e9"}, 1, 0},
        {{"1396867869277", "874724710000", "1e12"}, 1e3, 0},
        {{"1396867869277123", "874724710000000", "1396867869277124"}, 1e6, 0},
        {{"1396867869277123456", "874724710000000000", "1396867869277124456"}, 1e9, 0},
        {{"1396867869277", "1396867869", "1396867869"}, 1e3, 2}, /* two units */
        {{"1396867869", "0", "-1"}, 1, 2},                       /* no times */
        {{"20140407", "20140408", "20140409"}, 0, 0},
        {{"1", "2", "3"}, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        att_interactions *log;
        if (open_times(cases[i].times, 3, &log))
            fail_msg("%zu: %s", i, att_error(ctx));
        att_interactions_info info = {.size = sizeof info};
        assert_int_equal(att_interactions_describe(log, &info), ATT_OK);
        if (info.time_per_second != cases[i].per_second || info.unusual_times != cases[i].unusual)
            fail_msg("%zu: %g, %lld", i, info.time_per_second, (long long)info.unusual_times);
        att_interactions_free(log);
    }
}

static void nanoseconds_keep_their_order(void **state)
{
    (void)state;
    static const char *const times[] = {"1700000000123457000", "1700000000123456001", "1700000000123456000"};
    att_interactions *log;
    assert_int_equal(open_times(times, 3, &log), ATT_OK);
    const att_history h = att_interactions_history(log, 0);
    assert_int_equal(h.items[2], 0); /* a microsecond later; the others are one time, in the order of the file */
    assert_int_equal(h.items[0], 1);
    att_interactions_free(log);
}

static void a_column_has_dates_or_numbers(void **state)
{
    (void)state;
    static const char *const first_date[] = {"2023-01-01", "1672531200"}, *const first_number[] = {"5", "2023-01-01"};
    att_interactions *log;
    assert_int_equal(open_times(first_date, 2, &log), ATT_ERR_FORMAT);
    check_message(ctx, "log.csv: line 3: time is 1672531200, a number, but those before it are dates");
    assert_int_equal(open_times(first_number, 2, &log), ATT_ERR_FORMAT);
    check_message(ctx, "log.csv: line 3: time is 2023-01-01, a date, but those before it are numbers");
}

static void a_typed_time_has_the_unit_of_the_log(void **state)
{
    (void)state;
    double x;
    bool date;
    assert_int_equal(att_interactions_time("1998-04-01", 1e3, &x, &date), ATT_OK);
    assert_true(date && x == 891388800e3);
    assert_int_equal(att_interactions_time("891388800", 1e3, &x, &date), ATT_OK);
    assert_true(!date && x == 891388800);
    assert_int_equal(att_interactions_time("891388800", 0, &x, NULL), ATT_OK);
    assert_int_equal(att_interactions_time("1998-04-01", 0, &x, NULL), ATT_ERR_ARGUMENT);
    check_message(NULL, "time is \"1998-04-01\", a date, but those of the log are not seconds since 1970");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dates_are_seconds_since_1970),
        cmocka_unit_test(each_day_is_one_after_the_day_before),
        cmocka_unit_test(what_is_no_time_is_refused),
        cmocka_unit_test(dates_of_different_zones_are_in_order),
        cmocka_unit_test(the_unit_of_numbers_is_told_by_their_size),
        cmocka_unit_test(nanoseconds_keep_their_order),
        cmocka_unit_test(a_column_has_dates_or_numbers),
        cmocka_unit_test(a_typed_time_has_the_unit_of_the_log),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
