/* Bad input and wrong usage give one sentence and the right exit code, and leave no half-written file. */
#include "fixtures/tool.h"

static void wrong_usage_names_the_nearest(void **state)
{
    (void)state;
    assert_refused("$A emebd", 2, "did you mean \"embed\"?");
    assert_refused("$A embed -m $D --fromat npy", 2, "did you mean \"--format\"?");
    assert_refused("$A embed -m $D --format nyp", 2, "did you mean \"npy\"?");
    assert_refused("$A bench gem", 2, "there is no command \"bench gem\"; did you mean \"bench gemm\"?");
    assert_refused("$A help embd", 2, "did you mean \"embed\"?");
    assert_refused("$A trian", 2, "attend: there is no command \"trian\"; did you mean \"train\"?\n");
    assert_refused("$A help train transalte", 2, "did you mean \"train translate\"?");
    assert_refused("$A help zzzzzz", 2, "there is no command \"zzzzzz\"; \"attend help\" lists them");
    assert_refused("$A bench zzzzzz", 2, "there is no command \"bench zzzzzz\"; \"attend help bench\" lists them");
    assert_refused("$A train translate --learning-rate 1", 2, "did you mean \"--rate\"?");
    assert_refused("$A train embed --batch-size 1", 2, "did you mean \"--batch\"?");
    assert_refused("$A train translate --xyz 1", 2, "no option \"--xyz\"; \"attend train translate --help\" lists");
    assert_refused("echo | $A vocab -o v -n xyz", 2, "attend: -n: \"xyz\" is not one of nfkc|identity\n");
    assert_refused("$A explain softmaxx", 2, "did you mean \"softmax\"?");
    assert_refused("$A fetch all-minilm-l6-v2", 2, "did you mean \"all-MiniLM-L6-v2\"?");
    assert_refused("$A embed -m all-minilm-l6-v2", 1, "did you mean \"all-MiniLM-L6-v2\"?");
    assert_refused("$A embed -m $D -z", 2, "no option \"-z\"");
    assert_refused("$A tokenize", 2, "--model MODEL is needed");
    assert_refused("$A embed -m", 2, "-m needs a value");
    assert_refused("$A embed -m $D --help=1", 2, "--help takes no value");
    assert_refused("$A attention -m $D", 2, "TEXT|IMAGE|ITEMS is needed");
    assert_refused("$A attention -m $D two words", 2, "\"words\" is one argument too many");
    assert_refused("$A attention -m $D --layer 2 a", 2, "the layers 0 to 1, not 2");
    assert_refused("$A similarity -m $D one", 2, "two sentences");
    assert_refused("$A --threads 2 embed", 2, "a command comes first");
    assert_int_equal(tool("$A"), 2);
}

static void numbers_are_read_strictly(void **state)
{
    (void)state;
    static const char *const wrong[] = {"0", "-1", "+", "1x", "1.5", "1e3", "' 1'", "''", "99999999999999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char line[128];
        snprintf(line, sizeof line, "$A search -m $D -c in -k %s x", wrong[i]);
        assert_refused(line, 2, "is not a whole number from 1 to 1000000");
    }
    assert_refused("ATTEND_THREADS=many $A info", 2, "$ATTEND_THREADS: \"many\" is not a whole number from 0 to 1024");
}

static void files_that_cannot_be_read_are_named(void **state)
{
    (void)state;
    assert_refused("$A embed -m $D .", 1, ".: is a folder");
    assert_refused("$A embed -m $D <.", 1, "-: is a folder");
    assert_refused("$A embed -m $D missing", 1, "missing: No such file");
    assert_refused("ln -s loop loop; $A embed -m $D loop", 1, "loop: ");
    assert_refused("$A similarity -m $D --pairs .", 1, ".: is a folder");
    assert_refused("$A search -m $D -c missing a", 1, "missing: No such file");
    assert_refused("$A search -m $D -c /dev/null a", 1, "no lines");
    assert_refused("mkdir empty; $A embed -m nix", 1, "\"nix\" is neither a folder nor a model in ");
    if (geteuid() != 0) /* who may read everything */
        assert_refused("echo a >secret; chmod 0 secret; $A embed -m $D secret", 1, "secret: Permission denied");
}

static void a_vocabulary_that_cannot_be_is_refused_and_leaves_no_file(void **state)
{
    (void)state;
    assert_refused("echo ab | $A vocab -s 3 -o v.spm", 2, "is not a whole number from 4 to 4194304");
    assert_refused("echo ab | $A vocab -s 100", 2, "--output FILE is needed");
    assert_refused("echo ab | $A vocab --symbols a,,b -o v.spm", 2, "--symbols: \"a,,b\" has an empty text");
    assert_refused("echo ab | $A vocab -n nfkd -o v.spm", 2, "is not one of nfkc|identity");
    assert_refused("echo ab | $A vocab -n identity -c 1 -s 5 -o v.spm", 1,
                   "3 special pieces and 3 characters are more than a vocabulary of 5");
    assert_refused("$A vocab -n identity -o v.spm </dev/null", 1, "there is no text to learn a vocabulary from");
    assert_refused("echo a | $A vocab -n identity --control '<s>' -o v.spm", 1, "are both \"<s>\"");
    assert_refused("$A tokenize -m in.spm </dev/null", 1, "\"in.spm\" is neither a folder nor a model");
    assert_refused("echo text >x.spm; $A tokenize -m x.spm </dev/null", 1,
                   "x.spm is not a SentencePiece model but a text");
    assert_int_equal(tool("ls v.spm*"), 2);
}

/* Text that is not UTF-8 is refused, in files and pipes; the message has the line, the encoding and a command. */
static void texts_in_other_encodings_are_refused_with_what_converts_them(void **state)
{
    (void)state;
    static const char *const commands[] = {"embed -m $D", "search -m $D -k 1 -c - a", "similarity -m $D --file -",
                                           "vocab -o v.spm", "bleu - in"};
    assert_int_equal(tool("printf 'a\\nb \\374 c\\n' >latin1; printf '\\377\\376a\\0\\n\\0' >utf16; echo a >in"), 0);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        char line[256];
        snprintf(line, sizeof line, "$A %s <latin1", commands[i]);
        assert_refused(line, 1,
                       "standard input: line 2: is not UTF-8, but seems to be in WINDOWS-1252; convert it: "
                       "iconv -f WINDOWS-1252 -t UTF-8\n");
        snprintf(line, sizeof line, "cat utf16 | $A %s", commands[i]);
        assert_refused(line, 1, "standard input is UTF-16, not UTF-8; convert it: iconv -f UTF-16 -t UTF-8\n");
    }
    assert_refused("$A embed -m $D latin1", 1,
                   "latin1: line 2: is not UTF-8, but seems to be in WINDOWS-1252; convert "
                   "it: iconv -f WINDOWS-1252 -t UTF-8 latin1 > NEW\n");
    assert_refused("$A embed -m $D utf16", 1,
                   "utf16 is UTF-16, not UTF-8; convert it: iconv -f UTF-16 -t UTF-8 utf16 > ");
    assert_refused("gzip -c in | $A embed -m $D", 1, "standard input is packed by gzip; unpack it: gzip -dk\n");
}

/* Of files and pipes. */
static void byte_order_marks_and_ends_of_old_macs_are_no_text(void **state)
{
    (void)state;
    static const char *const inputs[] = {"in", "- <in", "<(cat in)"};
    for (int i = 0; i < 3; i++) {
        char line[256];
        snprintf(line, sizeof line, "printf '\\357\\273\\277a b\\rc\\r' >in; bash -c '$A embed -m $D %s'", inputs[i]);
        assert_int_equal(tool(line), 0);
        assert_int_equal(count(tool_out, "\n"), 2);
        assert_has(tool_out, "{\"text\": \"a b\", ");
        assert_has(tool_out, "{\"text\": \"c\", ");
    }
    assert_int_equal(tool("printf 'a\\rb\\nc\\r\\n' | $A embed -m $D"), 0); /* a CR among others is text */
    assert_int_equal(count(tool_out, "\n"), 2);
    assert_has(tool_out, "{\"text\": \"a\\u000db\", ");
}

static void damaged_tables_and_indexes_are_refused(void **state)
{
    (void)state;
    assert_refused("echo one >p; $A similarity -m $D --pairs p", 1, "p: line 1: one column");
    assert_refused("printf 'a\\tb\\t1\\nc\\td\\tx\\n' >p; $A similarity -m $D --pairs p --gold >/dev/null", 1,
                   "p: line 2: the third column is \"x\"");
    assert_refused("printf '\"a,b\\n' >p.csv; $A similarity -m $D --pairs p.csv", 1, "does not end");
    assert_refused("printf '\"a\"b,c\\n' >p.csv; $A similarity -m $D --pairs p.csv", 1, "and text follows its end");

    assert_int_equal(tool("printf 'a\\nb\\n' >in; $A embed -m $D --format npy -o v.npy in"), 0);
    assert_refused("$A search -m $D -c in -i in a", 1, "in: is not a .npy file");
    assert_refused("$A search -m $D -c in -i /dev/null a", 1, "is not a .npy file");
    assert_refused("echo c >>in; $A search -m $D -c in -i v.npy a", 1, "v.npy: has 2 rows, but in has 3 lines");
    assert_refused("head -c 200 v.npy >w.npy; $A search -m $D -c in -i w.npy a", 1, "the file has 72 bytes");
    assert_refused("head -c 20 v.npy >w.npy; $A search -m $D -c in -i w.npy a", 1, "but the file only 20");
    assert_refused("sed 's/<f4/<f8/' v.npy >w.npy; $A search -m $D -c in -i w.npy a", 1, "'<f8'");
    assert_refused("sed 's/False/True /' v.npy >w.npy; $A search -m $D -c in -i w.npy a", 1, "Fortran order");
    assert_refused("sed 's/(2, 12)/(3, 8) /' v.npy >w.npy; $A search -m $D -c in -i w.npy a", 1, "of 8 numbers");
}

/* The note on characters that are too rare names the options that made them so, and no other. */
static void characters_are_too_rare_by_options_that_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *options, *says;
    } cases[] = {
        {"", "1 character is too rare for the vocabulary; --character-coverage 1 takes all: z\n"},
        {"--min-count 2", "vocabulary; --character-coverage 1 --min-count 1 takes all: z\n"},
        {"-c 1 --min-count 2", "vocabulary; --min-count 1 takes all: z\n"},
        {"-c 1", NULL},
        {"-c 1 --min-count 1", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[256];
        snprintf(line, sizeof line, "{ yes abab | head -n 999; echo z; } | $A vocab -s 8 -n identity %s -o rare.spm",
                 cases[i].options);
        assert_int_equal(tool(line), 0);
        if (cases[i].says)
            assert_has(tool_err, cases[i].says);
        else
            assert_null(strstr(tool_err, "too rare"));
    }
}

static void a_full_disk_is_said_and_leaves_no_file(void **state)
{
    (void)state;
    assert_int_equal(tool("i=0; while [ $i -lt 500 ]; do echo a b c; i=$((i+1)); done >many"), 0);
    assert_refused("$A embed -m $D many >/dev/full", 1, "standard output: No space left");
    assert_refused("echo a | $A tokenize -m $D >/dev/full", 1, "standard output: No space left");
    assert_refused("$A help >/dev/full", 1, "standard output: No space left");
    assert_refused("$A embed -m $D -o /dev/full many", 1, "/dev/full: No space left");
    assert_refused("echo old >there; trap '' XFSZ; ulimit -f 8; $A embed -m $D -o there many", 1, "there: ");
    assert_int_equal(tool("cat there; ls -A | grep -c .unfinished-"), 1);
    assert_string_equal(tool_out, "old\n0\n");
    assert_refused("$A embed -m $D -o none/there many", 1, "none/there: No such file");
    assert_refused("$A embed -m $D -o . many", 1, ".: is a folder");
    assert_refused("$A embed -m $D --format npy many | cat", 0, "give -o FILE"); /* cat's code */
}

static void a_failed_run_keeps_the_old_output(void **state)
{
    (void)state;
    assert_int_equal(tool("echo old >there; chmod 640 there; ln -s there link; $A embed -m $D -o link missing"), 1);
    assert_int_equal(tool("cat there; echo a | $A embed -m $D -o link; stat -c %a there; ls -A | grep -c .unfinished-"),
                     1);
    assert_string_equal(tool_out, "old\n640\n0\n");
    assert_int_equal(tool("test -L link && grep -q embedding there"), 0);
}

static void an_interrupted_run_leaves_no_file(void **state)
{
    (void)state;
    assert_int_equal(tool("mkfifo lines; exec 3<>lines; env --default-signal=INT $A embed -m $D -o there2 <lines & "
                          "await 'ls there2.unfinished-*'; kill -INT $!; wait $!"),
                     130);
    assert_string_equal(tool_err, "");
    assert_int_equal(tool("exec 3<>lines; $A embed -m $D -o there2 <lines & await 'ls there2.unfinished-*'; "
                          "kill -TERM $!; wait $!"),
                     143);
    assert_int_equal(tool("ls -A | grep -c -e there2 -e .unfinished-"), 1);
    assert_string_equal(tool_out, "0\n");
}

static void a_closed_pipe_ends_quietly(void **state)
{
    (void)state;
    assert_int_equal(tool("i=0; while [ $i -lt 3000 ]; do echo a b c; i=$((i+1)); done >many"), 0);
    assert_int_equal(tool("{ $A embed -m $D many; echo $? >code; } | head -1; cat code"), 0);
    assert_int_equal(count(tool_out, "\n"), 2);
    assert_has(tool_out, "}\n" /* the line */);
    assert_has(tool_out, "\n141\n"); /* SIGPIPE, as of other tools */
    assert_string_equal(tool_err, "");
}

static void odd_lines_have_vectors(void **state)
{
    (void)state;
    assert_int_equal(tool("printf '\\n\\n\\n' | $A embed -m $D --format tsv"), 0);
    assert_int_equal(count(tool_out, "\n"), 3);
    assert_int_equal(tool("$A embed -m $D </dev/null"), 0);
    assert_int_equal(tool_bytes, 0);
    /* 10 MiB without a line end, then a line */
    assert_int_equal(
        tool("{ head -c 10485760 /dev/zero | tr '\\0' a; printf '\\nb\\n'; } | $A embed -m $D --format tsv"), 0);
    assert_int_equal(count(tool_out, "\n"), 2);
    assert_int_equal(
        tool("{ yes 'a b' | head -c 10485760 | tr '\\n' ' '; printf '\\nb\\n'; } | $A embed -m $D --format tsv"), 0);
    assert_int_equal(count(tool_out, "\n"), 2);
    assert_string_equal(tool_err, "attend: 1 of 2 lines are longer than 12 tokens and were truncated\n");
    assert_int_equal(tool("printf 'a b\\nc d e f g h i j k l m\\n' | $A embed -m $D --tokens"), 0);
    assert_has(tool_out, "{\"text\": \"a b\", \"tokens\": 4, \"truncated\": false, \"embedding\": [");
    assert_has(tool_out, "\"tokens\": 12, \"truncated\": true, \"embedding\": [");
    assert_refused("echo a | $A embed -m $D --tokens --format tsv", 2, "--tokens does not go with --format tsv");
}

/* The next command that writes the file removes what is left of one that was killed, not what another one is writing.
 */
static void what_a_killed_command_left_is_removed_by_the_next(void **state)
{
    (void)state;
#define BEGIN                                                                                                          \
    "mkfifo in$1; $A embed -m $D -o killed <in$1 & exec 3>in$1; while ! test -e killed.unfinished-0; do :; done; "
    assert_int_equal(tool("echo old >killed; set -- 1; " BEGIN
                          "kill -KILL $!; wait $!; exec 3>&-; ls killed*; cat killed; "
                          "echo a | $A embed -m $D -o killed >/dev/null && ls killed*"),
                     0);
    assert_string_equal(tool_out, "killed\nkilled.unfinished-0\nold\nkilled\n");
    assert_int_equal(tool("set -- 2; " BEGIN "echo a | $A embed -m $D -o killed && ls killed* && rm killed && "
                          "echo b >&3 && exec 3>&- && wait $! && ls killed* && cat killed"),
                     0);
    assert_has(tool_out, "killed\nkilled.unfinished-0\nkilled\n{\"text\": \"b\"");
#undef BEGIN
}

static void a_link_to_nothing_is_refused_and_a_folder_that_cannot_be_read_is_written(void **state)
{
    (void)state;
    assert_refused("ln -s nothing dangling; $A embed -m $D -o dangling many", 1, "dangling: No such file");
    assert_int_equal(tool("test -e nothing; echo $?; readlink dangling"), 0);
    assert_string_equal(tool_out, "1\nnothing\n");
    assert_int_equal(
        tool("mkdir -m 333 blind; echo a | $A embed -m $D -o blind/there && chmod 755 blind && ls -A blind"), 0);
    assert_string_equal(tool_out, "there\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_usage_names_the_nearest),
        cmocka_unit_test(numbers_are_read_strictly),
        cmocka_unit_test(files_that_cannot_be_read_are_named),
        cmocka_unit_test(a_vocabulary_that_cannot_be_is_refused_and_leaves_no_file),
        cmocka_unit_test(damaged_tables_and_indexes_are_refused),
        cmocka_unit_test(texts_in_other_encodings_are_refused_with_what_converts_them),
        cmocka_unit_test(byte_order_marks_and_ends_of_old_macs_are_no_text),
        cmocka_unit_test(characters_are_too_rare_by_options_that_are_named),
        cmocka_unit_test(a_full_disk_is_said_and_leaves_no_file),
        cmocka_unit_test(a_failed_run_keeps_the_old_output),
        cmocka_unit_test(an_interrupted_run_leaves_no_file),
        cmocka_unit_test(a_closed_pipe_ends_quietly),
        cmocka_unit_test(odd_lines_have_vectors),
        cmocka_unit_test(what_a_killed_command_left_is_removed_by_the_next),
        cmocka_unit_test(a_link_to_nothing_is_refused_and_a_folder_that_cannot_be_read_is_written),
    };
    return cmocka_run_group_tests(tests, tool_setup, tool_teardown);
}
