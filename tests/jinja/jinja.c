/* The interpreter of chat templates: the texts of jinja2, where characters are from, hostile templates. */
#include "jinja/jinja.h"
#include "fixtures/check.h"
#include "fixtures/tokenizer.h"

#include <jansson.h>
#include <locale.h>

static json_t *golden; /* tests/golden/jinja.json */

static void set_context(att_jinja_state *s, void *user)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)user, key, value) att_jinja_set(s, key, att_jinja_json(s, value, true));
}

typedef struct result {
    att_bytes text, literal;
} result;

static void result_free(result *r)
{
    att_bytes_free(&r->text);
    att_bytes_free(&r->literal);
}

/* Runs a template with variables, or NULL. */
static att_status run(const char *template, json_t *context, result *out)
{
    att_jinja *t;
    char *exact = malloc(strlen(template) + !*template); /* reads beyond it are found by address sanitizer */
    memcpy(exact, template, strlen(template));
    *out = (result){{.ctx = ctx}, {.ctx = ctx}};
    att_status s = att_jinja_open(ctx, "template", exact, strlen(template), &t);
    free(exact);
    if (!s)
        s = att_jinja_run(t, set_context, context, &out->text, &out->literal);
    att_jinja_free(t);
    att_bytes_add(&out->text, "", 1);
    return s;
}

static bool is_literal(const result *r, int64_t at)
{
    const att_literal *range = (const att_literal *)(const void *)r->literal.data;
    for (size_t i = 0; i < r->literal.count / sizeof *range; i++)
        if (range[i].begin <= at && at < range[i].end)
            return true;
    return false;
}

static void texts_are_those_of_jinja(void **state)
{
    (void)state;
    json_t *item, *cases = json_object_get(golden, "cases");
    size_t i;
    assert_true(json_array_size(cases) > 80);
    json_array_foreach(cases, i, item)
    {
        result r;
        const char *template = json_string_value(json_object_get(item, "template"));
        const char *want = json_string_value(json_object_get(item, "text"));
        const att_status s = run(template, json_object_get(golden, "context"), &r);
        if (!s != (want != NULL) || (want && strcmp(r.text.data, want) != 0))
            fail_msg("%s\n  is  %s\n  not %s", template, s ? att_error(ctx) : r.text.data, want ? want : "an error");
        for (size_t at = 0; want && at + 1 < r.text.count; at++) { /* Greek letters are from messages, no others */
            const unsigned char c = (unsigned char)r.text.data[at];
            if ((c == 0xCE || c == 0xCF) && !is_literal(&r, (int64_t)at))
                fail_msg("%s: a letter of a message is taken for one of the template at %zu: %s", template, at, want);
        }
        result_free(&r);
    }
}

static void each_character_keeps_where_it_is_from(void **state)
{
    (void)state;
    static const struct {
        const char *template, *text, *literal; /* literal: 1 for characters of the message */
    } cases[] = {
        {"<{{ m }}>", "<ab|c>", "011110"},
        {"{{ m ~ 'x' ~ m }}", "ab|cxab|c", "111101111"},
        {"{{ m.split('|') | join('|') }}", "ab|c", "1101"},
        {"{{ (m + 'xy')[2:5] }}", "|cx", "110"},
        {"{{ (m + 'xy')[::-1] }}", "yxc|ba", "001111"},
        {"{{ m | upper }}", "AB|C", "1111"},
        {"{{ m | replace('|', '-') }}", "ab-c", "1101"},
        {"{{ ('-' + m + '-') | replace(m, 'x') }}", "-x-", "000"},
        {"{{ m | tojson }}", "\"ab|c\"", "011110"},
        {"{{ [m] }}", "['ab|c']", "00111100"},
        {"{% set x %}a{{ m }}{% endset %}{{ x | trim }}", "aab|c", "01111"},
        {"{% macro f(x) %}({{ x }}){% endmacro %}{{ f(m) | title }}", "(Ab|c)", "011110"},
        {"{% filter upper %}x{{ m }}{% endfilter %}", "XAB|C", "01111"},
        {"{% set ns = namespace(t='') %}{% for c in m %}{% set ns.t = c ~ ns.t %}{% endfor %}{{ ns.t }}", "c|ba",
         "1111"},
        {"{{ '\n'.join([m, 'q']) | indent(1) }}", "ab|c\n q", "1111000"},
        {"{{ m.partition('|')[1] * 2 }}{{ m | first }}", "||a", "111"},
        {"{{ '%s' | replace('%s', m) }}{{ m | e }}{{ m | string | length }}", "ab|cab|c4", "111111110"},
    };
    json_t *context = json_pack("{s:s}", "m", "ab|c");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        result r;
        if (run(cases[i].template, context, &r))
            fail_msg("%s: %s", cases[i].template, att_error(ctx));
        assert_string_equal(r.text.data, cases[i].text);
        for (size_t at = 0; at + 1 < r.text.count; at++)
            if (is_literal(&r, (int64_t)at) != (cases[i].literal[at] == '1'))
                fail_msg("%s: character %zu of %s is not from where %s states", cases[i].template, at, r.text.data,
                         cases[i].literal);
        result_free(&r);
    }
    json_decref(context);
}

static void hostile_templates_end_with_a_sentence(void **state)
{
    (void)state;
    static const struct {
        const char *template, *sentence;
    } cases[] = {
        {"{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}", "memory"},
        {"{% set l = range(99999) %}{% for i in range(9999) %}{% if -1 in l %}{% endif %}{% endfor %}", "more steps"},
        {"{% macro f() %}{{ f() }}{% endmacro %}\n{{ f() }}",
         "line 1: the template nests or recurs more than 400 deep"},
        {"{% set ns = namespace(t='xxxxxxxx') %}{% for i in range(99) %}{% set ns.t = ns.t ~ ns.t %}{% endfor %}",
         "memory"},
        {"{{ 'x' * 1000000000000 }}", "more steps"},
        {"{{ range(100001) }}", "a range has more than 100000 numbers"},
        {"{% set ns = namespace(l=[]) %}{% for i in range(1000) %}{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l }}",
         "400 deep"},
        {"{{ 9223372036854775807 }}", "too large"},
        {"{{ 999999999999999999 * 999999999999999999 }}", "an integer is too large"},
        {"{{ 2 ** 64 }}", "an integer is too large"},
        {"{{ '99999999999999999999' | int }}", "the integer 99999999999999999999 is too large"},
        {"{{ [1] | tojson(indent=999999999999999999) }}", "an indent of 999999999999999999 is too large"},
        {"{{ range(-900000000000000000 * 10, 900000000000000000 * 10, 1000000000000000) | sum }}",
         "a sum is too large"},
        {"{{ 1 % 0 }}", "division by zero"},
        {"{% include 'x' %}", "line 1: the tag \"include\" is not supported"},
        {"a\nb\n{{ c.d }}", "template: chat template, line 3: c is undefined, so it has no \"d\""},
        {"{{ self }}{{ self.x }}", "is undefined"},
        {"{{ ''.format.__globals__ }}", "is undefined"},
        {"{{ raise_exception('%s %n') }}", "%s %n"},
        {"{% for a in [1] %}{% set b %}{% break %}{% endset %}{% endfor %}",
         "line 1: break and continue stand in a loop"},
        {"{{ messages[0]", "line 1: a tag has no end"},
        {"{{ strftime_now('%G') }}", "%G is not supported"},
        {"\xFF", "not UTF-8 at byte 0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        result r;
        if (run(cases[i].template, NULL, &r) == ATT_OK)
            fail_msg("%s has no error", cases[i].template);
        check_message(ctx, cases[i].sentence);
        result_free(&r);
    }
}

static void deep_templates_end_with_a_sentence(void **state)
{
    (void)state;
    static const struct {
        const char *begin, *piece, *middle, *close, *end;
    } deep[] = {{"{{ ", "(", "1", ")", " }}"},          {"{{ ", "[", "", "]", " }}"},
                {"{{ ", "- ", "1", "", " }}"},          {"{{ ", "not ", "1", "", " }}"},
                {"{{ a", ".a", "", "", " }}"},          {"{{ 1", "+1", "", "", " }}"},
                {"{{ ", "a if b else ", "a", "", "}}"}, {"", "{% if a %}", "", "{% endif %}", ""}};
    for (size_t i = 0; i < sizeof deep / sizeof *deep; i++) {
        char *text = calloc(1, 30000), *end = text + sprintf(text, "%s", deep[i].begin);
        for (int n = 0; n < 1000; n++)
            end += sprintf(end, "%s", deep[i].piece);
        end += sprintf(end, "%s", deep[i].middle);
        for (int n = 0; n < 1000; n++)
            end += sprintf(end, "%s", deep[i].close);
        strcpy(end, deep[i].end);
        result r;
        assert_int_equal(run(text, NULL, &r), ATT_ERR_FORMAT);
        check_message(ctx, deep[i].piece[0] == '.' || deep[i].piece[0] == '+' ? "too many parts" : "400 deep");
        result_free(&r);
        free(text);
    }
}

static void numbers_have_a_dot_in_each_locale(void **state)
{
    (void)state;
    static const char *const locales[] = {"C", "de_DE.UTF-8", "fr_FR.UTF-8"};
    for (int i = 0; i < 3; i++) {
        result r;
        if (!setlocale(LC_NUMERIC, locales[i])) /* is not installed */
            continue;
        assert_int_equal(run("{{ 1.5 }} {{ 1.5e20 }} {{ '2.5' | float }} {{ 0.1 | tojson }}", NULL, &r), ATT_OK);
        assert_string_equal(r.text.data, "1.5 1.5e+20 2.5 0.1");
        result_free(&r);
    }
    setlocale(LC_NUMERIC, "C");
}

static int set_up_golden(void **state)
{
    golden = json_load_file("tests/golden/jinja.json", 0, NULL);
    return golden ? set_up(state) : -1;
}

static int tear_down_golden(void **state)
{
    json_decref(golden);
    return tear_down(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_those_of_jinja),           cmocka_unit_test(each_character_keeps_where_it_is_from),
        cmocka_unit_test(numbers_have_a_dot_in_each_locale),  cmocka_unit_test(hostile_templates_end_with_a_sentence),
        cmocka_unit_test(deep_templates_end_with_a_sentence),
    };
    return cmocka_run_group_tests(tests, set_up_golden, tear_down_golden);
}
