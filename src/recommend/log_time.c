/* Numbers of times, whatever the locale. */
#include "recommend/log_format.h"

#include <math.h>

typedef struct number {
    uint64_t digits; /* the first 19 that count */
    int64_t exponent;
    bool integer; /* neither "." nor "e" */
} number;

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Reads digits, the first 19 that count, after the point or before it. Returns how many there were. */
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

/* Reads "e-5"; false: it is damaged. */
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

/* Reads digits, with a point among them, and an exponent; false: something else. */
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

/* Correctly rounded up to 2^53 and a power of 22, else to within some units in the last digit of a double. */
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

att_status att_log_format_time(const att_where *where, att_byte_view field, double *out)
{
    number x = {.integer = true};
    const char *at = field.data, *end = at + field.bytes;
    const int shown = (int)(field.bytes < 40 ? field.bytes : 40);
    const bool negative = at < end && *at == '-';
    at += at < end && (*at == '-' || *at == '+');
    if (field.bytes == 0)
        return att_fail_at(where, ATT_ERR_FORMAT, "time is empty");
    if (!read_number(at, end, &x))
        return att_fail_at(where, ATT_ERR_FORMAT, "time is \"%.*s\", not a number%s", shown, field.data,
                           where->number == 1 ? "; a header of names is read in the format CSV" : "");
    const double value = value_of(&x);
    if (!isfinite(value))
        return att_fail_at(where, ATT_ERR_FORMAT, "time is %.*s, more than a double holds", shown, field.data);
    if (x.integer && (x.exponent > 0 || (x.digits > (UINT64_C(1) << 53) && (uint64_t)value != x.digits)))
        return att_fail_at(where, ATT_ERR_UNSUPPORTED,
                           "time is %.*s, an integer that a double cannot hold; write seconds or milliseconds", shown,
                           field.data);
    *out = negative ? -value : value;
    return ATT_OK;
}
