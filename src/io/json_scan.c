#include "io/json_scan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void att_json_skip_space(att_json_scan *c)
{
    while (*c->at == ' ' || *c->at == '\n' || *c->at == '\t' || *c->at == '\r')
        c->at++;
}

bool att_json_accept(att_json_scan *c, char what)
{
    att_json_skip_space(c);
    bool there = *c->at == what;
    c->at += there;
    return there;
}

/* Skips the rest of a string after its opening quote. */
static bool skip_string(att_json_scan *c)
{
    for (; c->at < c->end; c->at++) {
        if (*c->at == '"') {
            c->at++;
            return true;
        }
        if (*c->at == '\\' && c->at + 1 < c->end)
            c->at++;
    }
    return false;
}

bool att_json_skip_value(att_json_scan *c)
{
    for (int64_t depth = 0; c->at < c->end;) {
        char x = *c->at;
        if (depth == 0 && (x == ',' || x == '}' || x == ']'))
            return true;
        c->at++;
        if (x == '"' && !skip_string(c))
            return false;
        depth += (x == '{' || x == '[') - (x == '}' || x == ']');
    }
    return false;
}

/* ---- numbers */

/* Returns 10^n, correctly rounded. */
static double power_of_ten(int64_t n)
{
    static const double exact[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                   1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    char text[8];
    if (n < (int64_t)(sizeof exact / sizeof exact[0]))
        return exact[n];
    snprintf(text, sizeof text, "1e%d", (int)n);
    return strtod(text, NULL);
}

/* Returns significand * 10^exponent; infinite or 0 if that is out of range. */
static double scaled(uint64_t significand, int64_t exponent)
{
    enum { MAX_POWER = 308 };
    double x = (double)significand;
    for (; exponent < -MAX_POWER && x != 0; exponent += MAX_POWER)
        x /= power_of_ten(MAX_POWER);
    if (exponent > MAX_POWER)
        return x != 0 ? INFINITY : 0;
    return x == 0 ? x : exponent >= 0 ? x * power_of_ten(exponent) : x / power_of_ten(-exponent);
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Reads digits into *significand while it has room, and skips the others. Returns how many were skipped, or after the
 * point, minus how many were read. *any becomes false if there are no digits. */
static int64_t read_digits(att_json_scan *c, uint64_t *significand, bool fraction, bool *full, bool *any)
{
    int64_t exponent = 0;
    *any = is_digit(*c->at);
    for (; is_digit(*c->at); c->at++) {
        const uint64_t digit = (uint64_t)(*c->at - '0');
        *full |= *significand > (UINT64_MAX - digit) / 10;
        if (!*full)
            *significand = 10 * *significand + digit;
        exponent += fraction ? -!*full : *full;
    }
    return exponent;
}

/* Reads the number after "e", at most MAX_EXPONENT. */
static bool read_exponent(att_json_scan *c, int64_t *exponent)
{
    enum { MAX_EXPONENT = INT32_MAX };
    const bool negative = *c->at == '-';
    int64_t x = 0;
    c->at += negative || *c->at == '+';
    if (!is_digit(*c->at))
        return false;
    for (; is_digit(*c->at); c->at++)
        x = x < MAX_EXPONENT / 10 ? 10 * x + (*c->at - '0') : MAX_EXPONENT;
    *exponent += negative ? -x : x;
    return true;
}

bool att_json_number(att_json_scan *c, double *x)
{
    uint64_t significand = 0;
    bool full = false, any;
    att_json_skip_space(c);
    const bool negative = *c->at == '-';
    c->at += negative;
    int64_t exponent = read_digits(c, &significand, false, &full, &any);
    if (!any)
        return false;
    if (*c->at == '.') {
        c->at++;
        full = false; /* each part has digits until one does not fit */
        exponent += read_digits(c, &significand, true, &full, &any);
    }
    if (any && (*c->at == 'e' || *c->at == 'E')) {
        c->at++;
        any = read_exponent(c, &exponent);
    }
    *x = scaled(significand, exponent);
    *x = negative ? -*x : *x;
    return any && isfinite(*x);
}

bool att_json_find_key(att_json_scan *c, const char *key)
{
    size_t bytes = strlen(key);
    do {
        if (!att_json_accept(c, '"'))
            return false;
        const char *name = c->at;
        if (!skip_string(c) || !att_json_accept(c, ':'))
            return false;
        if (strncmp(name, key, bytes) == 0 && name[bytes] == '"') {
            att_json_skip_space(c);
            return true;
        }
        if (!att_json_skip_value(c))
            return false;
    } while (att_json_accept(c, ','));
    return false;
}
