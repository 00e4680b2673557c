/* The output on a terminal: no control characters from a file, a name, an option or a model; lines that fit. */
#include "fixtures/captioner.h"
#include "fixtures/recommender_tool.h"
#include "fixtures/translator_tool.h"
#include "fixtures/vision_tool.h"

#include "cli/base/progress.h"
#include "cli/base/terminal.h"

#include <pty.h>
#include <unistd.h>

/* Sets a title, clears the screen, changes the direction, ends a line; also C1. In
 * names there is a byte that is not UTF-8, too. */
#define HOSTILE                                                                                                        \
    "\033]0;title\a\033[2J\r\b\x7f\xc2\x9b"                                                                            \
    "31m\xe2\x80\xae\xe2\x80\xa8\xe2\x81\xa6\xd8\x9c"
#define HOSTILE_JSON "\\u001b]0;title\\u0007\\u001b[2J\\r\\b\\u007f\\u009b31m\\u202e\\u2028\\u2066\\u061c"

static char screen[1 << 16]; /* what the terminal has shown, zero-terminated */
static size_t shown;

/* Reads all that the child writes to the terminal; returns its exit code. */
static int read_screen(int terminal, pid_t pid)
{
    int status;
    shown = 0;
    for (ssize_t n; (n = read(terminal, screen + shown, sizeof screen - 1 - shown)) > 0;)
        shown += (size_t)n;
    screen[shown] = '\0';
    assert_int_equal(waitpid(pid, &status, 0), pid);
    close(terminal);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Starts a child on a terminal that changes no byte and has this number of columns; returns 0 in the child, as fork. */
static pid_t fork_terminal(int *terminal, unsigned short columns)
{
    struct termios as_is = {0};
    const struct winsize size = {.ws_row = 24, .ws_col = columns};
    cfmakeraw(&as_is);
    const pid_t pid = forkpty(terminal, NULL, &as_is, &size);
    assert_true(pid >= 0);
    return pid;
}

/* Runs a command line, as tool() does, with standard output and error on a terminal. */
static int on_terminal(const char *line, unsigned short columns)
{
    int terminal;
    const pid_t pid = fork_terminal(&terminal, columns);
    if (pid == 0) {
        if (chdir(tool_model.path))
            _exit(126);
        execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(127);
    }
    return read_screen(terminal, pid);
}

/* Returns the first byte of a control character, or of none, in a text whose lines end in "\n"; NULL: there is none. */
static const char *first_control(const char *text, size_t bytes)
{
    static const char *const marks[] = {"\xc2\x80",     "\xc2\x9b",     "\xc2\x9f",     "\xe2\x80\x8e", "\xe2\x80\xa8",
                                        "\xe2\x80\xae", "\xe2\x81\xa6", "\xe2\x81\xa9", "\xd8\x9c",     "\xff"};
    for (size_t i = 0; i < bytes; i++)
        if ((unsigned char)text[i] < ' ' ? text[i] != '\n' && text[i] != '\t' : text[i] == 0x7F)
            return text + i;
    for (size_t k = 0; k < sizeof marks / sizeof *marks; k++)
        if (strstr(text, marks[k]))
            return strstr(text, marks[k]);
    return NULL;
}

/* Removes the colors of the tool. */
static void remove_colors(void)
{
    size_t to = 0;
    for (size_t i = 0; i < shown;) {
        const size_t digits = strspn(screen + i + (screen[i] == '\033'), "[0123456789;");
        if (screen[i] == '\033' && digits > 1 && screen[i + 1 + digits] == 'm')
            i += digits + 2;
        else
            screen[to++] = screen[i++];
    }
    screen[shown = to] = '\0';
}

static void assert_works(const char *line)
{
    if (tool(line))
        fail_msg("%s: %s", line, tool_err);
}

static int set_up(void **state)
{
    const int code = translator_setup(state) || open_context(state);
    char path[4096];
    vision_setup();
    shop_setup();
    const test_folder captioner = captioner_folder(CAPTIONER_GRU, false);
    setenv("C", captioner.path, 1);
    setenv("U", HOSTILE, 1);
    setenv("E", HOSTILE "\xff", 1);
    setenv("J", HOSTILE_JSON, 1);
    setenv("TERM", "xterm-256color", 1);
    unsetenv("NO_COLOR");
    unsetenv("ATTEND_LANGUAGE_MODEL");
    assert_non_null(realpath("tests/golden", path));
    setenv("GOLDEN", path, 1);
    return code ||
           tool("mv $C captioner; cp -r $GOLDEN/tiny_llama llama; cp -r llama chat; "
                "cp $GOLDEN/chat/mistral-nemo.jinja chat/chat_template.jinja; R=\"s/\\\"o\\\":/\\\"o$J\\\":/\"; "
                "J=$(printf %s \"$J\" | sed 's/\\\\/\\\\\\\\/g'); sed -i \"s/\\\"o\\\":/\\\"o$J\\\":/\" "
                "llama/tokenizer.json chat/tokenizer.json; "
                "sed -i \"s/\\\"apple\\\"/\\\"apple$J\\\"/\" shop/items.json; "
                "sed -i \"s/\\\"a\\\"/\\\"a$J\\\"/; s/\\\"red\\\"/\\\"red$J\\\"/; s/\\\"green\\\"/\\\"green$J\\\"/; "
                "s/\\\"square\\\"/\\\"square$J\\\"/\" captioner/words.json; "
                "sed -i \"s/\\\"id2label\\\": {\\\"0\\\": \\\"/&$J/\" vit/config.json; "
                "printf '%s\\na b\\n' \"$U\" >lines; cp dot.png \"$E.png\"; cp lines \"$E\"; "
                "printf 'a\\tb\\t1\\nc\\td\\t%s\\n' \"$U\" >pairs; printf 'pear\\tpear%s\\n' \"$U\" >texts; "
                "printf '{\"step\": 1, \"loss%s\": 2}\\n{\"step\": 2, \"loss%s\": 1}\\n' \"$J\" \"$J\" >log; "
                "printf 'x%s 1 2\\ny 3 4\\n' \"$U\" >vectors; echo '{\"step\": 1, \"loss\": 2}' >curve; "
                "mkdir letters resumed; echo '{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"\\u001b\": 1, "
                "\"\\u009b\": 2, \"\\u202e\": 3}, \"merges\": []}}' >letters/tokenizer.json; printf '{\"command\": "
                "\"embed\", \"options\": {\"warmup\": \"%s\"}}' \"$J\" "
                ">resumed/training.json");
}

/* Each shows text of a file, a name, an option or a model. */
static const char *const shows_others[] = {
    "$A \"$E\"",
    "$A -\"$E\"",
    "$A help \"$E\"",
    "$A info --\"$E\"",
    "$A info -m \"$E\"",
    "$A info \"$E\"",
    "$A fetch \"$E\"",
    "$A embed -m $D --format \"$E\"",
    "$A embed -m $D -t \"$E\"",
    "$A embed -m $D \"no$E\"",
    "ATTEND_THREADS=\"$E\" $A embed -m $D lines",
    "$A search -m $D -c lines a",
    "$A search -m $D -c lines \"$E\"",
    "$A similarity -m $D a \"$E\"",
    "$A similarity -m $D --pairs \"no$E\"",
    "$A attention -m $D --svg \"no/$E\" a",
    "$A tokenize -m llama lines",
    "$A tokenize -m letters lines",
    "$A generate -m llama -n 6 bdcab",
    "$A generate -m llama -n 6 --lines -f \"$E\"",
    "echo bdcab | $A chat -m chat -n 6",
    "printf '/%s\\n/save no/%s\\n/nope%s\\n' \"$E\" \"$E\" \"$E\" | $A chat -m chat -n 6",
    "$A convert \"$E\" -o new",
    "$A classify -m $V dot.png",
    "$A classify -m $V \"$E.png\"",
    "$A info -m $V",
    "$A attention -m $V \"no$E.png\"",
    "$A caption -m captioner dot.png",
    "$A caption -m captioner \"$E.png\"",
    "$A recommend -m shop --history pear",
    "$A recommend -m shop --history pear --item-texts texts",
    "$A recommend -m shop --history pear -o /dev/tty",
    "$A recommend -m shop --history pear -o /dev/tty -a /dev/stdout",
    "$A recommend -m shop --history \"$E\"",
    "$A recommend -m shop --similar \"$E\"",
    "$A evaluate recommend -m shop -d log.tsv --user-column \"$E\"",
    "$A evaluate language -m llama \"no$E\"",
    "$A translate -m $T --split lines",
    "$A translate -m $T --alignment - --text \"a$(printf '\\033[2J')\"",
    "$A bleu lines \"no$E\"",
    "$A vocab -s 30 -o v.spm lines; $A tokenize -m v.spm lines",
    "$A plot log",
    "$A plot log --y \"loss$U\"",

    "$A plot \"no$E\"",
    "$A explain \"$E\"",
    "$A explain softmax --input vectors",
    "$A bench gemm --\"$E\"",
    "$A bench attention --name \"$E\" --heads \"$E\"",
    "$A train embed -m $D --pairs pairs -o new",
    "$A train embed --resume -o resumed",
    "$A train embed -m $D --pairs \"no$E\" -o new",
    "$A train classify -d \"no$E\" -o new",
    "printf 'a\\n' >/dev/tty; $A tokenize -m letters lines >/dev/tty",
};

static void no_text_of_others_controls_a_terminal(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof shows_others / sizeof *shows_others; i++) {
        const int code = on_terminal(shows_others[i], 80);
        if (code > 2)
            fail_msg("%s: exit code %d: %s", shows_others[i], code, screen);
        remove_colors();
        const char *control = first_control(screen, shown);
        if (control)
            fail_msg("%s: byte %02x at %td of: %s", shows_others[i], (unsigned char)*control, control - screen, screen);
        if (!strstr(screen, "\xef\xbf\xbd") && !strstr(screen, "U+001B") && !strstr(screen, "\\u001b") &&
            !strstr(screen, "?"))
            fail_msg("%s: the hostile text is not shown: %s", shows_others[i], screen);
    }
}

static void pipes_and_files_get_the_bytes(void **state)
{
    (void)state;
    assert_works("$A search -m $D -c lines -k 2 a");
    assert_has(tool_out, HOSTILE);
    assert_works("$A tokenize -m letters lines");
    assert_has(tool_out, "\033 \033 \xc2\x9b \xe2\x80\xae\n");
    assert_works("$A classify -m $V dot.png");
    assert_has(tool_out, "\033]0;title\a");
}

/* Messages are lines of text for people wherever they go. */
static void a_message_is_one_line_without_control_characters(void **state)
{
    (void)state;
    assert_int_equal(tool("$A embed -m $D \"no\n$E\""), 1);
    assert_int_equal(count(tool_err, "\n"), 1);
    assert_null(strchr(tool_err, '\033'));
    assert_null(strchr(tool_err, '\r'));
    assert_null(strstr(tool_err, "\xc2\x9b"));
    assert_null(strstr(tool_err, "\xe2\x80\xae"));
    assert_has(tool_err, "no\xef\xbf\xbd\xef\xbf\xbd]0;title");
}

static void json_escapes_what_a_terminal_could_obey(void **state)
{
    (void)state;
    static const char *const commands[] = {
        "$A embed -m $D --json lines | head -n 1",
        "$A classify -m $V --json \"$E.png\"",
        "$A recommend -m shop --json --history \"$E\" --history pear",
        "$A info -m $V --json | tr '\\n' ' '",
        "$A tokenize -m letters --offsets lines",
        "$A bench gemm --m 8 --n 8 --k 8 --repeat 1 --json",
        "$A bench attention --name \"$(printf %s \"$E\" | tr -d '\\377')\" --repeat 1 --json",
    };
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (tool(commands[i]))
            fail_msg("%s: %s", commands[i], tool_err);
        const char *control = first_control(tool_out, strlen(tool_out));
        if (control)
            fail_msg("%s: byte %02x in: %s", commands[i], (unsigned char)*control, tool_out);
        json_decref(line_json(0));
    }
}

/* ---- the filter */

static void put(const char *text)
{
    fputs(text, stdout);
    fflush(stdout);
}

static void characters_that_come_in_parts_are_whole(void **state)
{
    (void)state;
    int terminal;
    const pid_t pid = fork_terminal(&terminal, 80);
    if (pid == 0) {
        cli_terminal_prepare();
        put("\xe2"), put("\x82"), put("\xac|");     /* a euro sign */
        put("\xf0\x9f"), put("\x98\x80"), put("|"); /* a smiley */
        put("\xe2\x82"), put("x|");                 /* no character; x is one */
        put("\xe2"), put("\xe2\x82"), put("\xac|"); /* no character, then one */
        put("\xc2"), put("\x9b|"), put("\xe2\x80"), put("\xae|");
        cli_terminal_control(stdout, "\033[1m");
        put("\xe2\x82");
        cli_terminal_control(stdout, "\033[0m");
        put("\xf0\x9f"); /* the end */
        _exit(cli_terminal_end());
    }
    assert_int_equal(read_screen(terminal, pid), 0);
    assert_string_equal(screen, "€|\xf0\x9f\x98\x80|\xef\xbf\xbdx|\xef\xbf\xbd€|\xef\xbf\xbd|\xef\xbf\xbd|"
                                "\033[1m\xef\xbf\xbd\033[0m\xef\xbf\xbd");
}

static void colors_are_for_terminals_that_have_them(void **state)
{
    (void)state;
    if (on_terminal("$A plot curve && $A explain softmax && $A translate -m $T --text a --alignment -", 80))
        fail_msg("%s", screen + (shown > 200 ? shown - 200 : 0));
    assert_has(screen, "\033[38;5;");
    assert_has(screen, "\033[48;5;");
    assert_has(screen, "\033[1m");
    static const char *const without[] = {"TERM=dumb", "unset TERM;", "TERM=", "NO_COLOR=1"};
    for (size_t i = 0; i < sizeof without / sizeof *without; i++) {
        char line[256];
        snprintf(line, sizeof line,
                 "export TERM; %s sh -c '$A plot curve; $A explain softmax; $A translate -m $T --text a -a -'",
                 without[i]);
        if (on_terminal(line, 80))
            fail_msg("%s: %s", line, screen + (shown > 200 ? shown - 200 : 0));
        assert_null(strchr(screen, '\033'));
    }
}

/* ---- narrow and simple terminals */

static int widest_line(void)
{
    int widest = 0, width = 0;
    for (const char *p = screen; *p; p++) {
        width = *p == '\n' ? 0 : width + (((unsigned char)*p & 0xC0) != 0x80);
        widest = width > widest ? width : widest;
    }
    return widest;
}

static void what_is_drawn_fits_a_narrow_terminal(void **state)
{
    (void)state;
    static const char *const commands[] = {
        "$A plot curve",
        "$A similarity -m $D a 'b c d e f g h i j k'",
        "$A attention -m $V dot.png | head -n 0; $A classify -m $V --top 3 dot.png",
    };
    setenv("NO_COLOR", "1", 1);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        for (int columns = 0; columns <= 20; columns += columns ? 19 : 1) {
            if (on_terminal(commands[i], (unsigned short)columns))
                fail_msg("%s: %s", commands[i], screen);
            if (columns == 20 && widest_line() > 20)
                fail_msg("%s: a line of %d columns: %s", commands[i], widest_line(), screen);
        }
    assert_int_equal(on_terminal("$A help vocab | wc -l; $A help vocab", 40), 0);
    assert_int_equal(widest_line(), 39);
    unsetenv("NO_COLOR");
}

/* Returns what a command shows of its progress, on a terminal. */
static int show_progress(unsigned short columns, const char *term)
{
    int terminal;
    const pid_t pid = fork_terminal(&terminal, columns);
    if (pid == 0) {
        cli_progress p;
        setenv("TERM", term, 1);
        cli_terminal_prepare();
        cli_progress_begin(&p);
        p.begin -= 10;
        for (int i = 1; i <= 3; i++) {
            p.shown -= i < 3 ? 1000 : 0; /* the third is too early */
            cli_progress_show(&p, 10 * i, "lines", i / 4.0);
        }
        fputs("a note\n", stderr);
        cli_progress_end(&p);
        _exit(0);
    }
    return read_screen(terminal, pid);
}

static void progress_is_for_the_terminal_that_there_is(void **state)
{
    (void)state;
    assert_int_equal(show_progress(80, "xterm"), 0);
    assert_string_equal(screen, "\r\033[K10 lines, 1/s  [#####               ]  25 %, 0:00:30 left\r\033[K"
                                "20 lines, 2/s  [##########          ]  50 %, 0:00:10 left\r\033[Ka note\n");
    assert_int_equal(show_progress(20, "xterm"), 0);
    assert_string_equal(screen, "\r\033[K10 lines, 1/s  [###\r\033[K20 lines, 2/s  [###\r\033[Ka note\n");
    assert_int_equal(show_progress(1, "xterm"), 0);
    assert_string_equal(screen, "a note\n");
    assert_int_equal(show_progress(0, "xterm"), 0);
    assert_has(screen, "25 %, 0:00:30 left\r");
    static const char *const simple[] = {"dumb", ""};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(show_progress(80, simple[i]), 0);
        assert_string_equal(screen, "10 lines, 1/s  [#####               ]  25 %, 0:00:30 left\n"
                                    "20 lines, 2/s  [##########          ]  50 %, 0:00:10 left\na note\n");
        assert_int_equal(show_progress(20, simple[i]), 0);
        assert_string_equal(screen, "10 lines, 1/s  [###\n20 lines, 2/s  [###\na note\n");
    }
}

/* A file gets a line every ten minutes: here after 599 seconds none, after 600 the first, then none. */
static void progress_in_a_file_is_a_line_now_and_then(void **state)
{
    (void)state;
    FILE *f = tmpfile();
    assert_non_null(f);
    const pid_t pid = fork();
    if (pid == 0) {
        cli_progress p;
        dup2(fileno(f), STDERR_FILENO);
        cli_progress_begin(&p);
        cli_progress_step(&p, 0, NAN, 0, 0);
        p.begin -= 600;
        p.shown -= 599;
        cli_progress_step(&p, 10, 1, 600, 0.25);
        p.shown -= 1;
        cli_progress_step(&p, 20, 1, 1200, 0.5);
        cli_progress_step(&p, 30, 1, 1800, 0.75);
        cli_progress_end(&p);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    char text[256] = "";
    assert_true(pread(fileno(f), text, sizeof text - 1, 0) > 0);
    assert_string_equal(text, "step 20, loss 1.0000, 2 tokens/s  [#####     ]  50 %, 0:10:00 left\n");
    fclose(f);
}

/* Two calls of 20 lines, and one whose share of the work is not known */
static void calls_show_their_share_of_the_work(void **state)
{
    (void)state;
    int terminal;
    const pid_t pid = fork_terminal(&terminal, 80);
    if (pid == 0) {
        static const double to[] = {0.5, 1, 0};
        cli_share s;
        setenv("TERM", "xterm", 1);
        cli_terminal_prepare();
        cli_share_begin(&s, "lines");
        s.line.begin -= 10;
        for (int i = 0; i < 6; i++) {
            if (i % 2 == 0)
                cli_share_next(&s, 20, to[i / 2]);
            s.line.shown -= 1000;
            if (!cli_share_report(&s, i % 2 ? 1 : 0.5))
                _exit(1);
        }
        cli_share_end(&s);
        _exit(0);
    }
    assert_int_equal(read_screen(terminal, pid), 0);
    assert_string_equal(screen, "\r\033[K10 lines, 1/s  [#####               ]  25 %, 0:00:30 left"
                                "\r\033[K20 lines, 2/s  [##########          ]  50 %, 0:00:10 left"
                                "\r\033[K30 lines, 3/s  [###############     ]  75 %, 0:00:03 left"
                                "\r\033[K40 lines, 4/s  [####################] 100 %, 0:00:00 left"
                                "\r\033[K50 lines, 5/s\r\033[K60 lines, 6/s\r\033[K");
}

static void a_training_on_a_simple_terminal_writes_lines(void **state)
{
    (void)state;
    if (on_terminal(
            "printf 'a\tb\nc\td\ne\tf\n' >few; TERM=dumb $A train embed -m $D --pairs few --epochs 1 -o trained", 80))
        fail_msg("%s", screen);
    assert_has(screen, "step ");
    assert_null(strchr(screen, '\r'));
    assert_null(strchr(screen, '\033'));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_text_of_others_controls_a_terminal),
        cmocka_unit_test(pipes_and_files_get_the_bytes),
        cmocka_unit_test(a_message_is_one_line_without_control_characters),
        cmocka_unit_test(json_escapes_what_a_terminal_could_obey),
        cmocka_unit_test(characters_that_come_in_parts_are_whole),
        cmocka_unit_test(colors_are_for_terminals_that_have_them),
        cmocka_unit_test(what_is_drawn_fits_a_narrow_terminal),
        cmocka_unit_test(progress_is_for_the_terminal_that_there_is),
        cmocka_unit_test(progress_in_a_file_is_a_line_now_and_then),
        cmocka_unit_test(calls_show_their_share_of_the_work),
        cmocka_unit_test(a_training_on_a_simple_terminal_writes_lines),
    };
    return cmocka_run_group_tests(tests, set_up, tool_teardown);
}
