/* Help and manual page: lines that fit a terminal, summaries that say what a command does, the words of the field. */
#include "fixtures/tool.h"

#include <stdlib.h>

enum { COLUMNS = 78, MAX_COMMANDS = 64, PATH_BYTES = 64 };

typedef struct commands {
    int n;
    char path[MAX_COMMANDS][PATH_BYTES];    /* "bench gemm" */
    char summary[MAX_COMMANDS][PATH_BYTES]; /* as much of it as fits */
} commands;

/* The commands that the help of `path` ("": the overview) lists, with those below them. */
static void list_commands(commands *c, const char *path)
{
    char line[128];
    snprintf(line, sizeof line, "$A help %s", path);
    assert_int_equal(tool(line), 0);
    char *text = strdup(tool_out);
    assert_non_null(text);
    char *start = *path ? strstr(text, "\ncommands:\n") : text;
    char *end = start ? strstr(start, "\noptions:\n") : NULL;
    if (end)
        *end = '\0';
    for (char *p = start; p && (p = strstr(p, "\n  ")); p += 3) {
        char name[32], summary[PATH_BYTES];
        if (p[3] == ' ' || sscanf(p + 3, "%31s %63[^\n]", name, summary) != 2)
            continue;
        assert_true(c->n < MAX_COMMANDS);
        snprintf(c->path[c->n], PATH_BYTES, "%.20s%s%s", path, *path ? " " : "", name);
        snprintf(c->summary[c->n], PATH_BYTES, "%s", summary);
        list_commands(c, c->path[c->n++]);
    }
    free(text);
}

static void need_commands(commands *c)
{
    static commands all; /* asked for once: each has its own help */
    if (all.n == 0)
        list_commands(&all, "");
    *c = all;
    assert_true(c->n >= 20);
}

/* The columns of each line of the text: code points, as none of them is wide or combining. */
static void assert_fits(const char *of, const char *text)
{
    for (const char *p = text; *p;) {
        const size_t bytes = strcspn(p, "\n");
        int columns = 0;
        for (size_t i = 0; i < bytes; i++)
            columns += ((unsigned char)p[i] & 0xC0) != 0x80;
        if (columns > COLUMNS)
            fail_msg("%s: a line of %d columns: %.*s", of, columns, (int)bytes, p);
        p += bytes + (p[bytes] == '\n');
    }
}

static void every_line_of_help_fits_a_terminal(void **state)
{
    (void)state;
    commands c;
    need_commands(&c);
    assert_int_equal(tool("$A help"), 0);
    assert_fits("help", tool_out);
    for (int i = 0; i < c.n; i++) {
        char line[256];
        snprintf(line, sizeof line, "$A help %s >1 && $A %s --help >2 && cmp 1 2 && cat 1", c.path[i], c.path[i]);
        assert_int_equal(tool(line), 0);
        assert_fits(c.path[i], tool_out);
        assert_has(tool_out, "\nusage: attend ");
    }
}

/* Writes the manual pages into the folder "man". */
static void need_pages(const commands *c)
{
    assert_int_equal(tool("rm -rf man; mkdir man; $A help --man-folder man && ls man | wc -l"), 0);
    assert_int_equal(atoi(tool_out), c->n + 1);
}

static void each_command_has_a_manual_page(void **state)
{
    (void)state;
    commands c;
    need_commands(&c);
    need_pages(&c);
    for (int i = 0; i < c.n; i++) {
        char line[512], page[PATH_BYTES];
        snprintf(page, sizeof page, "%s", c.path[i]);
        for (char *p = page; *p; p++)
            *p = *p == ' ' ? '-' : *p;
        snprintf(line, sizeof line, "$A help --man %s | cmp - man/attend-%s.1 && cat man/attend-%s.1", c.path[i], page,
                 page);
        assert_int_equal(tool(line), 0);
        snprintf(line, sizeof line, "\n.SH SYNOPSIS\n\\fBattend %s\\fR", c.path[i]);
        assert_has(tool_out, line);
    }
    /* Every page that is referred to exists. */
    assert_int_equal(tool("cat man/* | sed -n 's/^\\.BR \\([^ ]*\\) (1),*$/\\1/p' | tr -d '\\\\' | sort -u >names; "
                          "for i in $(cat names); do test -e man/$i.1 || echo $i; done; test $(wc -l <names) -gt 20"),
                     0);
    assert_string_equal(tool_out, "");
    assert_refused("$A help --man-folder missing", 1, "missing/attend.1: No such file");
}

static void every_line_of_a_manual_page_fits_a_terminal(void **state)
{
    (void)state;
    if (tool("command -v groff"))
        skip();
    commands c;
    need_commands(&c);
    need_pages(&c);
    assert_int_equal(tool("for i in man/*; do groff -ww -k -man -Tutf8 -P-cbou -rLL=78n $i || exit 1; done"), 0);
    assert_string_equal(tool_err, ""); /* warnings */
    assert_fits("manual pages", tool_out);
    if (tool("command -v mandoc") == 0) { /* pages have no date, so that the same ones have the same bytes */
        assert_int_equal(tool("mandoc -Tlint -Wwarning man/* | grep -v 'missing date, using \"\"'"), 1);
        assert_string_equal(tool_out, "");
    }
}

static void completion_knows_subcommands_and_models_before_files(void **state)
{
    (void)state;
    assert_int_equal(
        tool("mkdir -p here hub/models--ann--a-model hub/models--old && cd here && mkdir folder folder/mine; >aa; "
             ">p.spm; $A help --completion bash >c && cat "
             ">complete <<'END'\n"
             ". ./c; COMP_WORDS=(attend \"$@\"); COMP_CWORD=$#; _attend; echo \"${COMPREPLY[*]}\"\n"
             "END\n"
             "export ATTEND_MODELS=folder HF_HUB_CACHE=../hub; bash complete help tr; bash complete help train ''; "
             "bash complete help bench ba; bash complete help embed ''; bash complete embed -m ''; "
             "bash complete tokenize -m ''; bash complete tokenize -m p; bash complete embed -m a; "
             "bash complete train embed -p ''; "
             "bash complete train translate -o fol"),
        0);
    assert_string_equal(
        tool_out, "train translate\ncaption classify embed recommend rerank translate\nbandwidth\n\ntatoeba-de-en "
                  "fashion-mnist flickr8k-captions mine ann/a-model folder\n"
                  "tatoeba-de-en fashion-mnist flickr8k-captions mine ann/a-model folder p.spm\np.spm\nann/a-model\n"
                  "aa c complete folder p.spm\nfolder\n");
}

static void summaries_begin_with_a_verb(void **state)
{
    (void)state;
    static const char *const verbs[] = {"classify", "compute",   "continue",  "convert", "describe", "download",
                                        "explain",  "fine-tune", "hold",      "learn",   "list",     "measure",
                                        "plot",     "rank",      "recommend", "score",   "search",   "serve",
                                        "show",     "split",     "tokenize",  "train",   "translate"};
    commands c;
    need_commands(&c);
    for (int i = 0; i < c.n; i++) {
        bool is_verb = false;
        for (size_t k = 0; k < sizeof verbs / sizeof *verbs; k++)
            is_verb = is_verb ||
                      (strncmp(c.summary[i], verbs[k], strlen(verbs[k])) == 0 && c.summary[i][strlen(verbs[k])] == ' ');
        if (!is_verb)
            fail_msg("%s: \"%s\" begins with no verb of this test", c.path[i], c.summary[i]);
    }
}

/* Asserts that the help of a command has the text, however its lines are broken. */
static void assert_help(const char *command, const char *text)
{
    char line[128], flat[1 << 15];
    size_t n = 0;
    snprintf(line, sizeof line, "$A help %s", command);
    assert_int_equal(tool(line), 0);
    for (const char *p = tool_out; *p && n + 1 < sizeof flat; p++) {
        const bool space = *p == ' ' || *p == '\n';
        if (!space || (n > 0 && flat[n - 1] != ' '))
            flat[n++] = space ? ' ' : *p;
    }
    flat[n] = '\0';
    if (!strstr(flat, text))
        fail_msg("help %s does not have \"%s\": %s", command, text, flat);
}

static void options_are_found_by_the_words_of_the_field(void **state)
{
    (void)state;
    static const struct {
        const char *command, *text;
    } has[] = {
        {"train translate", "--dropout P dropout probability (0.1)"},
        {"train translate", "--smoothing X label smoothing (0.1)"},
        {"train embed", "--decay X weight decay (0.01)"},
        {"train embed", "batch size"},
        {"train recommend", "--dropout P dropout probability (0.2)"},
        {"train recommend", "cross entropy of the softmax over all items"},
        {"evaluate recommend", "(HR@k, the recall of one item)"},
        {"recommend", "--similar ITEM print the items nearest to this one"},
        {"translate", "attend translate: translate text, line by line"},
        {"vocab", "attend vocab: learn a subword vocabulary (BPE) from text"},
        {"bleu", "attend bleu: score translations: BLEU and chrF, as sacreBLEU"},
        {"bleu", "± is half the width of the 95 % bootstrap interval"},
        {"classify", "the attention of the token [CLS]"},
        {"attention", "Rows: the token that attends; columns: the tokens attended to."},
        {"bench attention", "(grouped-query attention)"},
    };
    for (size_t i = 0; i < sizeof has / sizeof *has; i++)
        assert_help(has[i].command, has[i].text);
}

/* These mean the same in each. */
static void trainings_have_the_same_options(void **state)
{
    (void)state;
    static const char *const trainings[] = {"train caption",   "train classify", "train embed",
                                            "train recommend", "train rerank",   "train translate"};
    static const char *const has[] = {
        "-o, --output FOLDER output folder: checkpoints and log, in the end the model --resume resume from the newest",
        "from the newest checkpoint; the result has the same bits as without interruption",
        "--steps N stop after N steps; 0, the default: no such limit --minutes N stop after N minutes",
        "--patience N stop after N validations in a row without improvement (early stopping); 0: off",
        "--rate RATE learning rate: the maximum",
        "--schedule constant|inverse-sqrt|cosine|linear learning rate schedule",
        "--warmup N warm up the learning rate over N steps; less than 1: over this share of all steps",
        "--beta2 X beta2 of AdamW",
        "--decay X weight decay",
        "--clip NORM clip gradients to this norm; 0: off",
        "--accumulate N accumulate gradients over N batches (1)",
        "--shards N split each batch into N shards and add their gradients by a fixed tree",
        "--validate-every N validate every N steps; 0: after each epoch",
        "--save-every N save a checkpoint every N steps; 0: after each epoch",
        "--average N average the last N checkpoints; 0: off",
        "--keep N checkpoints to keep when the training has finished",
        "--dtype f32|f16 type of the weights in the model (f32) --compute f32|bf16|auto type of the numbers that "
        "products "
        "multiply, forward and backward; bf16 (mixed precision) is faster",
        "--seed N random seed (1) --json print a line of JSON",
    };
    for (size_t i = 0; i < sizeof trainings / sizeof *trainings; i++)
        for (size_t k = 0; k < sizeof has / sizeof *has; k++)
            assert_help(trainings[i], has[k]);
}

static void standard_input_has_one_name(void **state)
{
    (void)state;
    assert_int_equal(tool("mkdir -p man; $A help --man-folder man && cat man/*"), 0);
    assert_null(strstr(tool_out, "stdin"));
    assert_null(strstr(tool_out, "stdout"));
    static const char *const readers[] = {"bleu",     "classify",  "embed", "explain",        "generate",
                                          "tokenize", "translate", "vocab", "bench attention"};
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
        assert_help(readers[i], "\"-\": standard input");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_line_of_help_fits_a_terminal),
        cmocka_unit_test(each_command_has_a_manual_page),
        cmocka_unit_test(every_line_of_a_manual_page_fits_a_terminal),
        cmocka_unit_test(completion_knows_subcommands_and_models_before_files),
        cmocka_unit_test(summaries_begin_with_a_verb),
        cmocka_unit_test(options_are_found_by_the_words_of_the_field),
        cmocka_unit_test(trainings_have_the_same_options),
        cmocka_unit_test(standard_input_has_one_name),
    };
    return cmocka_run_group_tests(tests, tool_setup, tool_teardown);
}
