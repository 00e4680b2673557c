#include "recommend/log_date.h"

#include <string.h>

/* ---- as it is written */

typedef struct cursor {
    const char *at, *end;
} cursor;

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Reads min to max digits. */
static bool read_some(cursor *c, int min, int max, int64_t *out)
{
    int n = 0;
    for (*out = 0; n < max && c->at < c->end && is_digit(*c->at); n++, c->at++)
        *out = *out * 10 + (*c->at - '0');
    return n >= min;
}

static bool read_digits(cursor *c, int n, int64_t *out) { return read_some(c, n, n, out); }

/* Reads one of the characters of `any`, if it is next. */
static bool skip(cursor *c, const char *any)
{
    const bool found = c->at < c->end && *c->at && strchr(any, *c->at);
    c->at += found;
    return found;
}

static bool skip_word(cursor *c, const char *word)
{
    const size_t n = strlen(word);
    const bool found = (size_t)(c->end - c->at) >= n && !memcmp(c->at, word, n);
    c->at += found ? n : 0;
    return found;
}

/* Reads the digits after the point of a fraction. The first 18 count. */
static bool read_fraction(cursor *c, double *out)
{
    int64_t digits = 0, power = 1;
    const char *start = c->at;
    for (; c->at < c->end && is_digit(*c->at); c->at++)
        if (c->at - start < 18) {
            digits = digits * 10 + (*c->at - '0');
            power *= 10;
        }
    *out = (double)digits / (double)power; /* powers up to 10^22 are doubles */
    return c->at > start;
}

/* Reads "03:05", "3:05:10" or "03:05:10.5". plain: without colons. */
static bool read_clock(cursor *c, bool plain, att_date *d)
{
    if (!read_some(c, plain ? 2 : 1, 2, &d->hour) || !(plain || skip(c, ":")) || !read_digits(c, 2, &d->minute))
        return false;
    if (plain ? c->at == c->end || !is_digit(*c->at) : !skip(c, ":"))
        return true;
    return read_digits(c, 2, &d->second) && (!skip(c, ".,") || read_fraction(c, &d->fraction));
}

/* Reads "", "Z", " UTC", "+01", "+0100", " -01:00" or " +0000 UTC". */
static bool read_zone(cursor *c, att_date *d)
{
    const bool blank = skip(c, " ");
    if (c->at == c->end)
        return !blank;
    if (skip(c, "Zz") || skip_word(c, "UTC") || skip_word(c, "GMT"))
        return true;
    d->zone_sign = skip(c, "-") ? -1 : skip(c, "+") ? 1 : 0;
    if (!d->zone_sign || !read_digits(c, 2, &d->zone_hour))
        return false;
    if (c->at == c->end)
        return true;
    skip(c, ":");
    if (!read_digits(c, 2, &d->zone_minute))
        return false;
    if (d->zone_hour == 0 && d->zone_minute == 0)
        skip_word(c, " UTC");
    return true;
}

/* Reads "1997-09-20", "1997/9/20", "1997.09.20" or "19970920", which is plain. */
static bool read_day(cursor *c, att_date *d, bool *plain)
{
    if (!read_digits(c, 4, &d->year))
        return false;
    const char separator[] = {c->at < c->end ? *c->at : '\0', '\0'};
    *plain = !skip(c, "-/.");
    const int min = *plain ? 2 : 1;
    return read_some(c, min, 2, &d->month) && (*plain || skip(c, separator)) && read_some(c, min, 2, &d->day);
}

bool att_date_parse(att_byte_view text, att_date *out)
{
    cursor c = {text.data, text.data + text.bytes};
    *out = (att_date){.zone_sign = 1};
    bool plain;
    if (!read_day(&c, out, &plain))
        return false;
    if (c.at == c.end)
        return !plain; /* eight digits are a number */
    plain = plain && *c.at != ' ';
    if (!skip(&c, "Tt "))
        return false;
    return read_clock(&c, plain, out) && read_zone(&c, out) && c.at == c.end;
}

/* ---- the calendar */

static bool is_leap(int64_t year) { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }

static int64_t days_of(int64_t year, int64_t month)
{
    static const char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return days[month - 1] + (month == 2 && is_leap(year));
}

/* Returns the days from the beginning of the year 0 to the beginning of `year`. */
static int64_t days_before(int64_t year)
{
    const int64_t past = year - 1; /* the year 0 is a leap year */
    return year == 0 ? 0 : 366 + past * 365 + past / 4 - past / 100 + past / 400;
}

bool att_date_is_day(att_byte_view text)
{
    att_date d;
    return att_date_parse(text, &d) && d.month >= 1 && d.month <= 12 && d.day >= 1 && d.day <= days_of(d.year, d.month);
}

static att_status check(const att_where *where, att_byte_view text, const att_date *d)
{
    const int64_t days = d->month >= 1 && d->month <= 12 ? days_of(d->year, d->month) : 31;
    const struct {
        const char *name;
        int64_t is, min, max;
    } parts[] = {{"month", d->month, 1, 12},
                 {"day", d->day, 1, days},
                 {"hour", d->hour, 0, 23},
                 {"minute", d->minute, 0, 59},
                 {"second", d->second, 0, 60},
                 {"zone's hour", d->zone_hour, 0, 23},
                 {"zone's minute", d->zone_minute, 0, 59}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].is < parts[i].min || parts[i].is > parts[i].max)
            return att_fail_at(where, ATT_ERR_FORMAT, "time is \"%.*s\", whose %s is %lld, expected %lld to %lld",
                               (int)text.bytes, text.data, parts[i].name, (long long)parts[i].is,
                               (long long)parts[i].min, (long long)parts[i].max);
    return ATT_OK;
}

att_status att_date_seconds(const att_where *where, att_byte_view text, const att_date *d, double *out)
{
    const att_status e = check(where, text, d);
    if (e)
        return e;
    int64_t days = days_before(d->year) - days_before(1970) + d->day - 1;
    for (int64_t month = 1; month < d->month; month++)
        days += days_of(d->year, month);
    const int64_t minutes = d->hour * 60 + d->minute - d->zone_sign * (d->zone_hour * 60 + d->zone_minute);
    *out = (double)(days * 86400 + minutes * 60 + d->second) + d->fraction;
    return ATT_OK;
}
