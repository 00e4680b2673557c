/* Tests: what stands after "is". */
#include "jinja/filters.h"
#include "jinja/string.h"

#include <string.h>

#define TEST(name) static bool name(att_jinja_state *s, att_jinja_value v, const att_jinja_value *other)

TEST(is_defined) { return (void)s, (void)other, v.type != ATT_JINJA_UNDEFINED; }
TEST(is_undefined) { return (void)s, (void)other, v.type == ATT_JINJA_UNDEFINED; }
TEST(is_none) { return (void)s, (void)other, v.type == ATT_JINJA_NONE; }
TEST(is_string) { return (void)s, (void)other, v.type == ATT_JINJA_STRING; }
TEST(is_mapping) { return (void)s, (void)other, v.type == ATT_JINJA_DICT; }
TEST(is_number) { return (void)s, (void)other, att_jinja_is_number(v); }
TEST(is_integer) { return (void)s, (void)other, v.type == ATT_JINJA_INT; }
TEST(is_float) { return (void)s, (void)other, v.type == ATT_JINJA_FLOAT; }
TEST(is_boolean) { return (void)s, (void)other, v.type == ATT_JINJA_BOOL; }
TEST(is_true) { return (void)s, (void)other, v.type == ATT_JINJA_BOOL && v.truth; }
TEST(is_false) { return (void)s, (void)other, v.type == ATT_JINJA_BOOL && !v.truth; }
TEST(is_callable) { return (void)s, (void)other, v.type == ATT_JINJA_CALLABLE; }
TEST(is_iterable)
{
    return (void)s, (void)other,
           v.type == ATT_JINJA_UNDEFINED || v.type == ATT_JINJA_STRING || v.type == ATT_JINJA_DICT ||
               att_jinja_is_list(v);
}
TEST(is_sequence) { return is_iterable(s, v, other); }
TEST(is_equal) { return att_jinja_equal(s, v, *other); }
TEST(is_not_equal) { return !att_jinja_equal(s, v, *other); }
TEST(is_less) { return att_jinja_compare(s, v, *other) < 0; }
TEST(is_at_most) { return att_jinja_compare(s, v, *other) <= 0; }
TEST(is_greater) { return att_jinja_compare(s, v, *other) > 0; }
TEST(is_at_least) { return att_jinja_compare(s, v, *other) >= 0; }
TEST(is_in) { return att_jinja_contains(s, *other, v); }
TEST(is_same) { return v.type == other->type && att_jinja_equal(s, v, *other); }
TEST(is_odd) { return (void)other, att_jinja_integer(s, v, "what is tested as odd") % 2 != 0; }
TEST(is_even) { return (void)other, att_jinja_integer(s, v, "what is tested as even") % 2 == 0; }
TEST(is_divisible)
{
    const int64_t by = att_jinja_integer(s, *other, "the divisor");
    if (by == 0)
        att_jinja_fail(s, "division by zero");
    return by == -1 || att_jinja_integer(s, v, "the dividend") % by == 0;
}

/* Returns whether a text has cased characters, and all are of this case. */
static bool is_case(att_jinja_state *s, att_jinja_value v, att_jinja_case to, att_jinja_case other)
{
    const att_jinja_string *x = att_jinja_str(s, v);
    const att_jinja_value same = att_jinja_string_value(att_jinja_change_case(s, x, to));
    const att_jinja_value changed = att_jinja_string_value(att_jinja_change_case(s, x, other));
    return att_jinja_equal(s, att_jinja_string_value(x), same) && !att_jinja_equal(s, same, changed);
}
TEST(is_lower) { return (void)other, is_case(s, v, ATT_JINJA_LOWER, ATT_JINJA_UPPER); }
TEST(is_upper) { return (void)other, is_case(s, v, ATT_JINJA_UPPER, ATT_JINJA_LOWER); }

static const struct {
    const char *name;
    bool (*test)(att_jinja_state *s, att_jinja_value v, const att_jinja_value *other);
    bool argument;
} tests[] = {{"defined", is_defined, false},   {"undefined", is_undefined, false},
             {"none", is_none, false},         {"string", is_string, false},
             {"mapping", is_mapping, false},   {"number", is_number, false},
             {"integer", is_integer, false},   {"float", is_float, false},
             {"boolean", is_boolean, false},   {"true", is_true, false},
             {"false", is_false, false},       {"callable", is_callable, false},
             {"iterable", is_iterable, false}, {"sequence", is_sequence, false},
             {"odd", is_odd, false},           {"even", is_even, false},
             {"lower", is_lower, false},       {"upper", is_upper, false},
             {"equalto", is_equal, true},      {"eq", is_equal, true},
             {"==", is_equal, true},           {"ne", is_not_equal, true},
             {"!=", is_not_equal, true},       {"lt", is_less, true},
             {"lessthan", is_less, true},      {"<", is_less, true},
             {"le", is_at_most, true},         {"<=", is_at_most, true},
             {"gt", is_greater, true},         {"greaterthan", is_greater, true},
             {">", is_greater, true},          {"ge", is_at_least, true},
             {">=", is_at_least, true},        {"in", is_in, true},
             {"sameas", is_same, true},        {"divisibleby", is_divisible, true}};

bool att_jinja_test(att_jinja_state *s, const att_jinja_string *name, att_jinja_value v, const att_jinja_arguments *a)
{
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        if (!att_jinja_same(name, tests[i].name))
            continue;
        if (a->n + a->named != tests[i].argument)
            att_jinja_fail(s, "the test \"%s\" takes %s", tests[i].name,
                           tests[i].argument ? "an argument" : "no argument");
        return tests[i].test(s, v, a->value);
    }
    att_jinja_fail(s, "there is no test \"%.60s\"", name->data);
}
