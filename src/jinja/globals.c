/* The functions that templates call by name. */
#include "jinja/filters.h"
#include "jinja/string.h"

#include <string.h>
#include <time.h>

#define GLOBAL(name)                                                                                                   \
    static att_jinja_value name(att_jinja_state *s, const att_jinja_value *self, const att_jinja_arguments *a)

enum { MAX_RANGE = 100000 }; /* as Jinja's sandbox */

GLOBAL(range)
{
    int64_t begin = 0, step = 1, end;
    (void)self;
    if (a->n < 1 || a->n > 3)
        att_jinja_fail(s, "range takes one to three numbers");
    end = att_jinja_argument_int(s, a, a->n > 1, NULL, 0);
    if (a->n > 1)
        begin = att_jinja_argument_int(s, a, 0, NULL, 0);
    if (a->n > 2)
        step = att_jinja_argument_int(s, a, 2, NULL, 1);
    if (step == 0)
        att_jinja_fail(s, "the step of range is 0");
    const double n = ((double)end - (double)begin) / (double)step;
    if (n > MAX_RANGE)
        att_jinja_fail(s, "a range has more than %d numbers", MAX_RANGE);
    const att_jinja_value list = att_jinja_list_new(s, ATT_JINJA_LIST);
    for (int64_t i = 0; (double)i < n; i++)
        att_jinja_push(s, list, att_jinja_int((int64_t)((uint64_t)begin + (uint64_t)i * (uint64_t)step)));
    return list;
}

/* Puts the arguments: one dict, then names. */
static att_jinja_value make_dict(att_jinja_state *s, const att_jinja_arguments *a, att_jinja_type type)
{
    const att_jinja_value out = att_jinja_dict_new(s, type);
    if (a->n > 1 || (a->n == 1 && a->value[0].type != ATT_JINJA_DICT))
        att_jinja_fail(s, "a dict is made of a dict and of arguments with names");
    for (size_t i = 0; a->n && i < a->value[0].dict->n; i++)
        att_jinja_put(s, out, a->value[0].dict->key[i], a->value[0].dict->value[i]);
    for (size_t i = 0; i < a->named; i++)
        att_jinja_put(s, out, att_jinja_string_value(a->names[i]), a->value[a->n + i]);
    return out;
}
GLOBAL(dict) { return (void)self, make_dict(s, a, ATT_JINJA_DICT); }
GLOBAL(namespace) { return (void)self, make_dict(s, a, ATT_JINJA_NAMESPACE); }

GLOBAL(raise_exception)
{
    const att_jinja_string *x = att_jinja_str(s, a->n ? a->value[0] : att_jinja_undefined());
    (void)self;
    att_jinja_refuse(s, x->data, x->bytes);
}

GLOBAL(strftime_now)
{
    const att_jinja_string *x = att_jinja_argument_text(s, a, 0, "format", NULL);
    static const char *const month[] = {"January", "February", "March",     "April",   "May",      "June",
                                        "July",    "August",   "September", "October", "November", "December"};
    static const char *const day[] = {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};
    att_jinja_builder b = {.s = s};
    struct tm now;
    const time_t clock = time(NULL);
    (void)self;
    if (!localtime_r(&clock, &now))
        att_jinja_fail(s, "the machine has no time");
    for (size_t at = 0; at < x->bytes; at++) {
        char format[] = {'%', at + 1 < x->bytes ? x->data[at + 1] : 0, 0}, text[64];
        if (x->data[at] != '%' || !format[1]) {
            att_jinja_add_part(&b, x, at, at + 1);
            continue;
        }
        const bool plain = format[1] == '-' && at + 2 < x->bytes; /* "%-d": without a zero before it */
        at += 1 + plain;
        format[1] = x->data[at];
        if (format[1] == 'B' || format[1] == 'b') { /* English, whatever the locale is */
            att_jinja_add(&b, month[now.tm_mon], format[1] == 'b' ? 3 : strlen(month[now.tm_mon]), false);
        } else if (format[1] == 'A' || format[1] == 'a') {
            att_jinja_add(&b, day[now.tm_wday], format[1] == 'a' ? 3 : strlen(day[now.tm_wday]), false);
        } else if (format[1] && strchr("dmyYHIMSjpFTDeUWwu%Z", format[1])) {
            const size_t n = strftime(text, sizeof text, format, &now), skip = plain && n > 1 && text[0] == '0';
            att_jinja_add(&b, text + skip, n - skip, false);
        } else {
            att_jinja_fail(s, "strftime_now: %s is not supported", format);
        }
    }
    return att_jinja_built_value(&b);
}

const att_jinja_filter att_jinja_globals[] = {{"range", range},
                                              {"dict", dict},
                                              {"namespace", namespace},
                                              {"raise_exception", raise_exception},
                                              {"strftime_now", strftime_now},
                                              {0}};
