/* The translator that comes with attend: numbers, names and end marks of sentences that it was never trained on. */
// labels: long slow
#include "fixtures/check.h"
#include "fixtures/tool.h"

#include <ctype.h>

enum { SENTENCES = 50, LINE = 512 };

static int set_up(void **state)
{
    static const char *const paths[][2] = {{"SHIPPED", "models/tatoeba-de-en"},
                                           {"GOLDEN", "tests/golden/numbers_and_names.tsv"}};
    for (int i = 0; i < 2; i++) {
        char *path = realpath(paths[i][1], NULL);
        assert_non_null(path);
        setenv(paths[i][0], path, 1);
        free(path);
    }
    return tool_setup(state);
}

/* Finds the next run of digits from *s on, and moves *s after it; returns its length, 0: none. */
static size_t next_number(const char **s, const char **number)
{
    while (**s && !isdigit((unsigned char)**s))
        ++*s;
    for (*number = *s; isdigit((unsigned char)**s);)
        ++*s;
    return (size_t)(*s - *number);
}

/* Returns whether both have the same digits in the same numbers, in any order, because in one language months come
 * first in dates. */
static bool same_numbers(const char *source, const char *translation)
{
    const char *s = source, *number, *other;
    int n = 0, m = 0;
    for (size_t digits; (digits = next_number(&s, &number)) > 0; n++) {
        const char *t = translation;
        size_t found;
        while ((found = next_number(&t, &other)) > 0 && (found != digits || strncmp(number, other, digits) != 0))
            ;
        if (found == 0)
            return false;
    }
    for (const char *t = translation; next_number(&t, &other) > 0;)
        m++;
    return n == m;
}

/* names: of the translation, a space between them. */
static bool has_names(const char *translation, const char *names)
{
    char copy[LINE], *rest = copy;
    snprintf(copy, sizeof copy, "%s", names);
    for (char *name; (name = strsep(&rest, " "));)
        if (!strstr(translation, name))
            return false;
    return true;
}

static void numbers_names_and_end_marks_come_out_right(void **state)
{
    (void)state;
    int numbers = 0, names = 0, marks = 0, n = 0;
    assert_int_equal(tool("cut -f 1 $GOLDEN | $A translate -m $SHIPPED >en && paste $GOLDEN en"), 0);
    assert_string_equal(tool_err, "");
    for (char *line, *rest = tool_out; (line = strsep(&rest, "\n")) && *line; n++) {
        const char *source = strsep(&line, "\t"), *wanted = strsep(&line, "\t"), *translation = line;
        assert_non_null(translation);
        const bool number = same_numbers(source, translation), name = has_names(translation, wanted),
                   mark = *translation && source[strlen(source) - 1] == translation[strlen(translation) - 1];
        if (!number || !name || !mark)
            print_message("%s%s%s: %s | %s\n", number ? "" : "number ", name ? "" : "name ", mark ? "" : "mark ",
                          source, translation);
        numbers += number;
        names += name;
        marks += mark;
    }
    assert_int_equal(n, SENTENCES);
    assert_in_range(numbers, 47, SENTENCES);
    assert_in_range(names, 45, SENTENCES);
    assert_int_equal(marks, SENTENCES);
}

static void what_users_tried_first_is_translated(void **state)
{
    (void)state;
    static const struct {
        const char *source, *expected;
    } of[] = {
        {"Ich bin 45 Jahre alt.", "I'm 45 years old."},
        {"Es kostet 69 Euro!", "It costs 69 euros!"},
        {"Um 7:48 Uhr?", "At 7:48?"},
        {"Ich heiße Anna und komme aus Berlin.", "My name's Anna and I'm from Berlin."},
    };
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
        setenv("TEXT", of[i].source, 1);
        assert_int_equal(tool("printf '%s\\n' \"$TEXT\" | $A translate -m $SHIPPED | tr -d '\\n'"), 0);
        assert_string_equal(tool_out, of[i].expected);
    }
}

/* Of int8 weights: the same alone as in company; and all but a few as of f16 */
static void in_fewer_bytes_hardly_a_translation_changes(void **state)
{
    (void)state;
    assert_int_equal(tool("cut -f 1 $GOLDEN >de && $A translate -m $SHIPPED <de >f16"), 0);
    assert_int_equal(tool("$A translate -m $SHIPPED --dtype int8 <de >int8"), 0);
    setenv("STEP", check_step(5) > 1 ? "5" : "1", 1);
    assert_int_equal(tool("sed -n \"1~${STEP}p\" de | while read -r line; do printf '%s\n' \"$line\" | "
                          "$A translate -m $SHIPPED --dtype int8; done >alone; "
                          "sed -n \"1~${STEP}p\" int8 | cmp - alone"),
                     0);
    assert_int_equal(tool("diff f16 int8 | grep -c '^>'"), 0);
    assert_in_range(strtol(tool_out, NULL, 10), 1, SENTENCES / 5);
    assert_int_equal(tool("$A info -m $SHIPPED --dtype int8 | tail -3"), 0);
    assert_string_equal(tool_out, "weights stored      f16 14.1 MB\n"
                                  "weights in use      f16 0.1 MB, Q8_0 7.5 MB\n"
                                  "products            int8 in blocks of 32, summed in f32\n");
    assert_int_equal(tool("$A info -m $SHIPPED --dtype int8 --memory | tail -1"), 0); /* vectors are packed */
    assert_string_equal(tool_out, "in memory           of its own 7.5 MB, packed 0.1 MB, in mapped files 0.0 MB\n");
    assert_int_equal(tool("$A info -m $SHIPPED --memory --json | grep -o '\"own\": 0, \"packed\": [1-9]'"), 0);
    assert_int_equal(tool("$A info --memory"), 2);
    assert_string_equal(tool_err, "attend: --memory needs --model\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_names_and_end_marks_come_out_right),
        cmocka_unit_test(what_users_tried_first_is_translated),
        cmocka_unit_test(in_fewer_bytes_hardly_a_translation_changes),
    };
    return cmocka_run_group_tests(tests, set_up, tool_teardown);
}
