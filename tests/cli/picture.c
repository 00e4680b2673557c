/* Drawings as PNG: by rsvg-convert, which stands in $PATH, or by a program of the test's own in its place. */
#include "fixtures/translator_tool.h"

/* As rsvg-convert is called: the arguments are in `asked`, the SVG in `read`. What it does then, $DO says. */
static const char stand_in[] = "#!/bin/sh\necho \"$*\" >asked; cat >read; eval \"$DO\"\n";

static int picture_setup(void **state)
{
    const int code = translator_setup(state);
    folder_write(&tool_model, "bin/rsvg-convert", stand_in);
    folder_write(&tool_model, "log", "{\"step\": 1, \"loss\": 2}\n{\"step\": 2, \"loss\": 1}\n");
    return code || tool("chmod +x bin/rsvg-convert; mkdir none; ln -s /dev/full full.png");
}

/* Each option that writes a drawing; %s: its file. */
static const char *const drawings[] = {
    "$A attention -m $D --svg %s 'a b'", "echo 'Ein Hund' | $A translate -m $T -a %s",  "$A plot log -o %s",
    "$A explain positions --svg %s",     "$A explain fixed-context --svg %s --lang ja",
};
enum { DRAWINGS = sizeof drawings / sizeof *drawings };

static const char *drawing(int i, const char *before, const char *file)
{
    static char line[512];
    int n = snprintf(line, sizeof line, "%s ", before);
    n += snprintf(line + n, sizeof line - (size_t)n, drawings[i], file);
    snprintf(line + n, sizeof line - (size_t)n, " >out");
    return line;
}

/* Returns the big-endian number at p, as in the header of a PNG. */
static int number_at(const char *p)
{
    const unsigned char *b = (const unsigned char *)p;
    return b[0] << 24 | b[1] << 16 | b[2] << 8 | b[3];
}

static void each_drawing_may_be_a_png_of_twice_the_size(void **state)
{
    (void)state;
    if (tool("command -v rsvg-convert")) {
        puts("rsvg-convert is not installed");
        skip();
    }
    for (int i = 0; i < DRAWINGS; i++) {
        double width, height;
        assert_int_equal(tool(drawing(i, "", "d.svg")) || tool("cat d.svg"), 0);
        assert_int_equal(sscanf(strstr(tool_out, "viewBox"), "viewBox=\"0 0 %lf %lf\"", &width, &height), 2);
        if (tool(drawing(i, "", "d.PNG")) || tool("cat d.PNG"))
            fail_msg("%s: %s", drawings[i], tool_err);
        assert_memory_equal(tool_out, "\x89PNG\r\n\x1a\n", 8);
        assert_int_equal(number_at(tool_out + 16), 2 * (int)width);
        assert_int_equal(number_at(tool_out + 20), 2 * (int)height);
        assert_int_equal(tool("ls -A | grep unfinished"), 1);
    }
}

static void the_drawing_is_the_svg(void **state)
{
    (void)state;
    for (int i = 0; i < DRAWINGS; i++) {
        assert_int_equal(tool(drawing(i, "", "d.svg")), 0);
        if (tool(drawing(i, "export PATH=$D/bin:$PATH DO='echo drawn';", "d.png")))
            fail_msg("%s: %s", drawings[i], tool_err);
        assert_string_equal(tool_err, "");
        assert_int_equal(tool("cmp d.svg read && cat d.png asked"), 0);
        assert_string_equal(tool_out, "drawn\n--format png --zoom 2 --unlimited\n");
    }
}

/* The file that was there remains. */
static void a_png_that_cannot_be_drawn_is_an_error(void **state)
{
    (void)state;
    static const struct {
        const char *before, *says;
    } cases[] = {
        {"export PATH=none;", "attend: old.png: a PNG needs rsvg-convert; install the Debian package librsvg2-bin, or "
                              "write .svg"},
        {"export PATH=bin:$PATH DO='echo some; echo too large >&2; echo more >&2; exit 3';",
         "attend: old.png: rsvg-convert could not draw it: too large (exit code 3); write .svg instead"},
        {"export PATH=bin:$PATH DO='exit 1';",
         "attend: old.png: rsvg-convert could not draw it: it gives no reason (exit code 1); write .svg instead"},
        {"export PATH=bin:$PATH DO='exit 1'; A=\"env --ignore-signal=CHLD $A\";",
         "attend: old.png: rsvg-convert could not draw it: it gives no reason (exit code 1); write .svg instead"},
        {"export PATH=bin:$PATH DO='echo some; kill -9 $$';",
         "attend: old.png: rsvg-convert was ended by signal 9 (Killed)"},
        {"chmod -x bin/*; export PATH=bin;", "attend: rsvg-convert: Permission denied"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        for (int i = 0; i < DRAWINGS; i++) {
            char line[768];
            snprintf(line, sizeof line, "echo old >old.png; chmod +x bin/*; D=$PWD; %s", cases[k].before);
            assert_refused(drawing(i, line, "old.png"), 1, cases[k].says);
            assert_int_equal(tool("chmod +x bin/*; cat old.png; ls -A | grep unfinished"), 1);
            assert_string_equal(tool_out, "old\n");
        }
    assert_int_equal(tool("rm old.png"), 0);
}

static void a_full_disk_is_an_error(void **state)
{
    (void)state;
    if (tool("command -v rsvg-convert")) {
        puts("rsvg-convert is not installed");
        skip();
    }
    assert_refused("$A plot log -o full.png", 1, "attend: full.png: rsvg-convert could not draw it: ");
}

/* The program that draws ends with the tool; nothing of the file is left. */
static void a_signal_ends_the_drawing_too(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int code;
    } signals[] = {{"TERM", 143}, {"INT", 130}, {"HUP", 129}};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        char line[512];
        snprintf(line, sizeof line,
                 "rm -f pid; PATH=$D/bin:$PATH DO='echo $$ >pid; exec sleep 60' env --default-signal=%s "
                 "$A plot log -o signal.png & await 'test -s pid'; kill -%s $!; wait $!; code=$?; "
                 "await '! kill -0 $(cat pid)' || exit 1; ls -A | grep -e signal.png -e unfinished; exit $code",
                 signals[i].name, signals[i].name);
        assert_int_equal(tool(line), signals[i].code);
        assert_string_equal(tool_out, "");
        assert_null(strstr(tool_err, "attend: "));
    }
}

/* The reader of the text goes away: the picture is drawn all the same, by a program that gets SIGPIPE as usual. */
static void the_text_may_be_cut_off(void **state)
{
    (void)state;
    assert_int_equal(tool("export PATH=$D/bin:$PATH DO='grep SigBlk /proc/self/status'; "
                          "{ $A explain positions --svg cut.png; } | sleep 0; cat cut.png"),
                     0);
    assert_string_equal(tool_out, "SigBlk:\t0000000000000000\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_drawing_may_be_a_png_of_twice_the_size),
        cmocka_unit_test(the_drawing_is_the_svg),
        cmocka_unit_test(a_png_that_cannot_be_drawn_is_an_error),
        cmocka_unit_test(a_full_disk_is_an_error),
        cmocka_unit_test(a_signal_ends_the_drawing_too),
        cmocka_unit_test(the_text_may_be_cut_off),
    };
    return cmocka_run_group_tests(tests, picture_setup, tool_teardown);
}
