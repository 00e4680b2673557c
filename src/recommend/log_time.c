#include "recommend/log_time.h"
#include "recommend/log_date.h"

#include "attend_recommend.h"

#include <math.h>
#include <string.h>

/* ---- numbers */

typedef struct number {
    uint64_t digits; /* the first 19 that count */
    int64_t exponent;
    bool integer; /* it has neither "." nor "e" */
} number;

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Reads digits before or after the point. The first 19 count. Returns the number of digits. */
static int64_t read_digits(const char **at, const char *end, number *x, bool after_point)
{
    const char *start = *at;
    for (; *at < end && is_digit(**at); (*at)++) {
        const bool fits = x->digits < UINT64_C(1000000000000000000);
        x->digits = fits ? x->digits * 10 + (uint64_t)(**at - '0') : x->digits;
        x->exponent += !fits;
        x->exponent -= after_point;
    }
    return *at - start;
}

/* Reads "e-5". Returns false if it is damaged. */
static bool read_exponent(const char **at, const char *end, number *x)
{
    int64_t e = 0;
    if (*at == end || (**at != 'e' && **at != 'E'))
        return true;
    const bool negative = ++*at < end && **at == '-';
    *at += *at < end && (**at == '-' || **at == '+');
    const char *start = *at;
    for (; *at < end && is_digit(**at); (*at)++)
        e = e < 10000 ? e * 10 + (**at - '0') : e;
    x->exponent += negative ? -e : e;
    x->integer = false;
    return *at > start;
}

/* Reads digits, with a point among them, and an exponent. Returns false for anything else. */
static bool read_number(const char *at, const char *end, number *x)
{
    int64_t n = read_digits(&at, end, x, false);
    if (at < end && *at == '.') {
        at++;
        x->integer = false;
        n += read_digits(&at, end, x, true);
    }
    return n > 0 && read_exponent(&at, end, x) && at == end;
}

/* Computes the value. It is correctly rounded if the digits are at most 2^53 and the power of ten at most 22; otherwise
 * within some units in the last digit of a double. */
static double value_of(const number *x)
{
    enum { EXACT = 22, LARGEST = 400 }; /* 10^22 is a double */
    double value = (double)x->digits, power = 1;
    int64_t n = x->exponent < 0 ? -x->exponent : x->exponent;
    if (x->digits == 0 || n > LARGEST)
        return x->digits == 0 || x->exponent < 0 ? 0 : INFINITY;
    for (; n > 0; n -= EXACT, power = 1) {
        for (int64_t i = 0; i < n && i < EXACT; i++)
            power *= 10;
        value = x->exponent < 0 ? value / power : value * power;
    }
    return value;
}

/* Reads "-5", "2.5e3" or " 7 " into *x and its sign. Returns false for anything else. */
static bool read_signed(att_byte_view field, number *x, bool *negative)
{
    const char *at = field.data, *end = at + field.bytes;
    *x = (number){.integer = true};
    *negative = at < end && *at == '-';
    at += at < end && (*at == '-' || *at == '+');
    return read_number(at, end, x);
}

enum { SECONDS = 1, NANOSECONDS = 1000000000 };

double att_time_per_second(double last)
{
    for (double per_second = SECONDS; per_second <= NANOSECONDS; per_second *= 1000)
        if (att_time_is_usual(last, per_second))
            return per_second;
    return 0;
}

/* Returns whether x is an integer that is not equal to a double, and not a time in nanoseconds, for which the nearest
 * double is good enough. */
static bool is_inexact(const number *x, double value)
{
    const bool all = x->exponent == 0, fits = all && (x->digits <= UINT64_C(1) << 53 || (uint64_t)value == x->digits);
    return x->integer && !fits && !(all && att_time_is_usual(value, NANOSECONDS));
}

static att_status use_number(const att_where *where, att_byte_view shown, const number *x, bool negative, double *out)
{
    const double value = value_of(x);
    if (!isfinite(value))
        return att_fail_at(where, ATT_ERR_FORMAT, "time is %.*s, more than a double holds", (int)shown.bytes,
                           shown.data);
    if (is_inexact(x, value))
        return att_fail_at(where, ATT_ERR_UNSUPPORTED,
                           "time is %.*s, an integer that a double cannot hold; write seconds or milliseconds",
                           (int)shown.bytes, shown.data);
    *out = negative ? -value : value;
    return ATT_OK;
}

/* ---- times */

static att_byte_view trim(att_byte_view x)
{
    for (; x.bytes > 0 && *x.data == ' '; x.bytes--)
        x.data++;
    while (x.bytes > 0 && x.data[x.bytes - 1] == ' ')
        x.bytes--;
    return x;
}

static att_status refuse_mixture(const att_where *where, att_byte_view shown, att_time_kind kind)
{
    return att_fail_at(where, ATT_ERR_FORMAT, "time is %.*s, a %s, but those before it are %s", (int)shown.bytes,
                       shown.data, kind == ATT_TIME_DATE ? "number" : "date",
                       kind == ATT_TIME_DATE ? "dates" : "numbers");
}

att_status att_time_read(const att_where *where, att_byte_view field, att_time_kind *kind, double *out)
{
    number x;
    bool negative;
    att_date date;
    field = trim(field);
    const att_byte_view shown = {field.data, field.bytes < 40 ? field.bytes : 40};
    const bool is_number = read_signed(field, &x, &negative), is_date = !is_number && att_date_parse(field, &date);
    const att_time_kind found = is_number ? ATT_TIME_NUMBER : ATT_TIME_DATE;
    if (field.bytes == 0)
        return att_fail_at(where, ATT_ERR_FORMAT, "time is empty");
    if (!is_number && !is_date)
        return att_fail_at(where, ATT_ERR_FORMAT,
                           "time is \"%.*s\", not a number, as of seconds since 1970, nor a date of the forms "
                           "1997-09-20, 1997-09-20 03:05 or 1997-09-20T03:05:10.5+01:00",
                           (int)shown.bytes, shown.data);
    if (*kind != ATT_TIME_ANY && *kind != found)
        return refuse_mixture(where, shown, *kind);
    const att_status e =
        is_number ? use_number(where, shown, &x, negative, out) : att_date_seconds(where, shown, &date, out);
    *kind = e ? *kind : found;
    return e;
}

bool att_log_number(att_byte_view field, double *out)
{
    number x;
    bool negative;
    const bool is = read_signed(trim(field), &x, &negative);
    *out = is ? (negative ? -value_of(&x) : value_of(&x)) : 0;
    return is;
}

att_status att_interactions_time(const char *text, double per_second, double *time, bool *is_date)
{
    if (att_require(__func__, ATT_NAMED({"text", text}, {"time", time})))
        return ATT_ERR_ARGUMENT;
    const att_where where = {0};
    att_time_kind kind = ATT_TIME_ANY;
    double value;
    const att_status e = att_time_read(&where, (att_byte_view){text, strlen(text)}, &kind, &value);
    if (e)
        return e;
    const bool date = kind == ATT_TIME_DATE;
    if (date && !(per_second > 0))
        return att_fail(NULL, ATT_ERR_ARGUMENT,
                        "time is \"%.40s\", a date, but those of the log are not seconds since 1970, nor parts of them",
                        text);
    *time = date ? value * per_second : value;
    if (is_date)
        *is_date = date;
    return ATT_OK;
}

bool att_time_is_likely(att_byte_view field)
{
    number x;
    bool negative;
    field = trim(field);
    if (!read_signed(field, &x, &negative))
        return att_date_is_day(field);
    const double value = value_of(&x), per_second = negative ? 0 : att_time_per_second(value);
    return per_second > 0 && value >= 1e9 * per_second; /* shorter numbers are likely something else */
}
