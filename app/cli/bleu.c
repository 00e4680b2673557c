/* attend bleu: how near translations are to references. */
#include "cli/base/command.h"
#include "cli/base/grow.h"
#include "cli/base/lines.h"
#include "cli/base/json.h"
#include "cli/base/output.h"

#include <attend_metric.h>

#include <attend_text.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 1024 };

static const char *source_path;
static int words = ATT_BLEU_TOKENIZER_13A;
static bool by_length, confidence, effective_order, json;

static const cli_option options[] = {
    {"tokenize", 0, "13a|char|none", .choice = &words,
     .help = "tokenizer: mteval-v13a, characters (for Japanese and Chinese), or none: words between spaces"},
    {"by-length", 0, NULL, .flag = &by_length, .help = "print a table by the length of the (first) reference in words"},
    {"source", 0, "FILE", .text = &source_path,
     .help = "print a table by the length of the lines of this file instead"},
    {"confidence", 0, NULL, .flag = &confidence,
     .help = "print 95 % confidence intervals by bootstrap resampling (1,000 samples)"},
    {"effective-order", 0, NULL, .flag = &effective_order,
     .help = "ignore n-gram orders for which all sentences are too short, instead of BLEU 0"},
    CLI_JSON(&json),
    {0},
};

/* ---- Files, line by line beside each other --------------------------------- */

typedef struct corpus {
    att_ctx *ctx;
    char *const *paths; /* [n]: the translation, its references, and the source if there is one */
    int n, references;
    cli_reader *reader;     /* [n] */
    att_bleu_counts *count; /* [lines] */
    int64_t *length;        /* [lines], by which --by-length groups them */
    int64_t lines;
    size_t room; /* of count and length */
} corpus;

/* Counts the words of a line. */
static int count_own(const corpus *c, const char *text, size_t bytes, int64_t *length)
{
    att_bleu_counts own;
    const int code =
        cli_status(c->ctx, att_bleu_count(c->ctx, (att_bleu_tokenizer)words, text, bytes, NULL, NULL, 0, &own));
    *length = code ? 0 : own.tokens;
    return code;
}

static int score_lines(corpus *c, const char **text /* [n] */, size_t *bytes)
{
    const cli_array arrays[] = {{&c->count, sizeof *c->count}, {&c->length, sizeof *c->length}};
    if (!cli_reserve(&c->room, (size_t)c->lines + 1, arrays, 2))
        return cli_fail_memory();
    for (int i = 0; i < c->n; i++) {
        const cli_reader *r = &c->reader[i];
        text[i] = r->in.text[r->at];
        bytes[i] = r->in.bytes[r->at];
    }
    att_bleu_counts *count = &c->count[c->lines];
    int code = cli_status(c->ctx, att_bleu_count(c->ctx, (att_bleu_tokenizer)words, text[0], bytes[0], text + 1,
                                                 bytes + 1, c->references, count));
    const int longs = source_path ? c->n - 1 : 1;
    if (!code && by_length)
        code = count_own(c, text[longs], bytes[longs], &c->length[c->lines]);
    c->lines++;
    return code;
}

/* Reports that files have different numbers of lines. File `ended` has ended before file `more`, which is read to its
 * end to count its lines. */
static int unequal(corpus *c, int ended, int more)
{
    bool there = true;
    int code = CLI_DONE;
    while (!code && there)
        code = cli_reader_next(&c->reader[more], &there);
    return code ? code
                : cli_fail("%s has %lld lines, but %s has %lld", c->paths[ended], (long long)c->reader[ended].lines,
                           c->paths[more], (long long)c->reader[more].lines);
}

static int read_all(corpus *c)
{
    const char **text = malloc((size_t)c->n * sizeof *text);
    size_t *bytes = malloc((size_t)c->n * sizeof *bytes);
    int code = text && bytes ? CLI_DONE : cli_fail_memory();
    for (bool more = true; !code && more;) {
        int ended = -1, goes_on = -1;
        for (int i = 0; !code && i < c->n; i++) {
            bool there;
            code = cli_reader_next(&c->reader[i], &there);
            *(there ? &goes_on : &ended) = i;
        }
        more = goes_on >= 0;
        if (!code && more)
            code = ended >= 0 ? unequal(c, ended, goes_on) : score_lines(c, text, bytes);
    }
    if (!code && c->lines == 0)
        code = cli_fail("%s: no lines", c->paths[0]);
    free(text);
    free(bytes);
    return code;
}

static int open_all(corpus *c)
{
    int standard = 0, code = cli_open(&c->ctx, 0);
    c->reader = calloc((size_t)c->n, sizeof *c->reader);
    if (!code && !c->reader)
        code = cli_fail_memory();
    for (int i = 0; c->reader && i < c->n; i++)
        c->reader[i].in.fd = -1;
    for (int i = 0; !code && i < c->n; i++) {
        standard += strcmp(c->paths[i], "-") == 0;
        code = standard > 1 ? cli_misuse("standard input can be one file only") : CLI_DONE;
        if (!code)
            code = cli_lines_open(&c->reader[i].in, 1, &c->paths[i]);
    }
    return code;
}

static void close_all(corpus *c)
{
    for (int i = 0; c->reader && i < c->n; i++)
        cli_lines_close(&c->reader[i].in);
    free(c->reader);
    free(c->count);
    free(c->length);
    att_close(c->ctx);
}

/* ---- Results --------------------------------------------------------------- */

typedef struct result {
    int64_t lines;
    double length; /* the mean */
    att_bleu_counts sum;
    att_bleu_info score;
    bool sampled; /* samples of a single line are all the same */
    att_interval bleu, chrf;
} result;

static int score(const corpus *c, const att_bleu_counts *count, int64_t n, result *r)
{
    *r = (result){.lines = n, .score = {.size = sizeof r->score}, .sampled = confidence && n > 1};
    for (int64_t i = 0; i < n; i++)
        att_bleu_add(&r->sum, &count[i]);
    int code =
        cli_status(c->ctx, att_bleu_describe(&r->sum, ATT_OPTIONS(att_bleu_options, .effective_order = effective_order),
                                             &r->score));
    if (!code && r->sampled)
        code =
            cli_status(c->ctx, att_bleu_intervals(c->ctx, count, n,
                                                  ATT_OPTIONS(att_bleu_resampling, .effective_order = effective_order),
                                                  &r->bleu, &r->chrf));
    return code;
}

static void print_score(const char *name, double value, const att_interval *i)
{
    printf("%-5s %6.2f", name, value);
    if (i)
        printf("  (%.2f ± %.2f)", i->mean, (i->high - i->low) / 2);
}

static void print_all(const corpus *c, const result *r)
{
    static const char *const names[] = {"13a", "characters", "spaces"};
    print_score("BLEU", r->score.bleu, r->sampled ? &r->bleu : NULL);
    const double *p = r->score.precision;
    printf("  %.1f/%.1f/%.1f/%.1f, brevity %.3f: %lld words, references %lld\n", p[0], p[1], p[2], p[3],
           r->score.brevity, (long long)r->sum.tokens, (long long)r->sum.reference_tokens);
    print_score("chrF2", r->score.chrf, r->sampled ? &r->chrf : NULL);
    printf("\n%lld lines, %d reference%s, words by %s\n", (long long)c->lines, c->references,
           c->references > 1 ? "s" : "", names[words]);
}

static void json_score(cli_json *j, const char *name, double value, const att_interval *i)
{
    const double of_samples[] = {i ? i->mean : 0, i ? i->low : 0, i ? i->high : 0};
    static const char *const parts[] = {"mean", "low", "high"};
    cli_json_number(j, name, value, 10);
    for (int k = 0; i && k < 3; k++) {
        char key[32];
        snprintf(key, sizeof key, "%s_%s", name, parts[k]);
        cli_json_number(j, key, of_samples[k], 10);
    }
}

static void json_scores(cli_json *j, const result *r)
{
    json_score(j, "bleu", r->score.bleu, r->sampled ? &r->bleu : NULL);
    json_score(j, "chrf", r->score.chrf, r->sampled ? &r->chrf : NULL);
}

static void print_json_all(const corpus *c, const result *r)
{
    static const char *const names[] = {"13a", "char", "none"};
    cli_json j = cli_json_begin(stdout);
    cli_json_integer(&j, "lines", c->lines);
    cli_json_integer(&j, "references", c->references);
    cli_json_string(&j, "tokenize", names[words]);
    json_scores(&j, r);
    cli_json_numbers(&j, "precisions", r->score.precision, 4, 10);
    cli_json_number(&j, "brevity", r->score.brevity, 10);
    cli_json_integer(&j, "words", r->sum.tokens);
    cli_json_integer(&j, "reference_words", r->sum.reference_tokens);
    cli_json_end(&j);
}

/* Lines of at most `words` words, and more than in the row before. */
static const int64_t longest[] = {5, 10, 15, 20, 25, 30, 40, 50, 60, 80, 100, 150, INT64_MAX};
enum { ROWS = sizeof longest / sizeof *longest };

static void print_json_row(const result *r, int64_t from, int64_t to)
{
    cli_json j = cli_json_begin(stdout);
    cli_json_number(&j, "length", r->length, 10);
    cli_json_integer(&j, "from", from);
    if (to < INT64_MAX)
        cli_json_integer(&j, "to", to);
    cli_json_integer(&j, "lines", r->lines);
    cli_json_integer(&j, "words", r->sum.tokens);
    cli_json_integer(&j, "reference_words", r->sum.reference_tokens);
    json_scores(&j, r);
    cli_json_end(&j);
}

static void print_row(const result *r, int64_t from, int64_t to)
{
    const double value[] = {r->score.bleu, r->score.chrf};
    const att_interval interval[] = {r->bleu, r->chrf};
    char range[48];
    int n = snprintf(range, sizeof range, "%lld-", (long long)from);
    if (to < INT64_MAX)
        snprintf(range + n, sizeof range - (size_t)n, "%lld", (long long)to);
    printf("%9s %7lld", range, (long long)r->lines);
    for (int i = 0; i < 2; i++) {
        printf("  %6.2f", value[i]);
        if (r->sampled)
            printf(" ± %5.2f", (interval[i].high - interval[i].low) / 2);
        else
            printf("%*s", confidence && i == 0 ? 8 : 0, "");
    }
    putchar('\n');
}

/* Copies the lines of one row of the table, copied side by side. */
static int print_lengths(const corpus *c)
{
    att_bleu_counts *some = malloc((size_t)c->lines * sizeof *some);
    int code = some ? CLI_DONE : cli_fail_memory();
    if (!code && !json)
        printf("\n%9s %7s  %6s%*s  %6s\n", source_path ? "source" : "reference", "lines", "BLEU", confidence ? 8 : 0,
               "", "chrF2");
    for (int k = 0; !code && k < ROWS; k++) {
        const int64_t from = k ? longest[k - 1] + 1 : 0;
        int64_t n = 0, total = 0;
        for (int64_t i = 0; i < c->lines; i++)
            if (c->length[i] >= from && c->length[i] <= longest[k]) {
                some[n++] = c->count[i];
                total += c->length[i];
            }
        if (n == 0)
            continue;
        result r;
        code = score(c, some, n, &r);
        r.length = (double)total / (double)n;
        if (!code)
            (json ? print_json_row : print_row)(&r, from, longest[k]);
    }
    free(some);
    return code;
}

static int run(int n, char **arguments)
{
    char **paths = malloc((size_t)(n + 1) * sizeof *paths);
    corpus c = {.paths = paths, .n = n, .references = n - 1};
    cli_output out;
    result all;
    if (!paths)
        return cli_fail_memory();
    memcpy(paths, arguments, (size_t)n * sizeof *paths);
    if (source_path)
        paths[c.n++] = (char *)source_path;
    by_length = by_length || source_path;
    int code = open_all(&c);
    if (!code)
        code = read_all(&c);
    if (!code)
        code = score(&c, c.count, c.lines, &all);
    if (!code)
        code = cli_output_open(&out, NULL);
    if (!code) {
        (json ? print_json_all : print_all)(&c, &all);
        code = cli_output_close(&out, by_length ? print_lengths(&c) : CLI_DONE);
    }
    close_all(&c);
    free(paths);
    return code;
}

const cli_command cli_bleu = {
    .name = "bleu",
    .summary = "score translations: BLEU and chrF, as sacreBLEU",
    .arguments = "TRANSLATION REFERENCE...",
    .min_arguments = 2,
    .max_arguments = -1,
    .details = "Line i of each file corresponds to line i of the others; \"-\": standard input.\n\n"
               "With --confidence, ± is half the width of the 95 % bootstrap interval, after the\n"
               "mean of the 1,000 samples; samples are deterministic.\n\n"
               "With --json, the rows of the table are JSON objects, one per line, which\n"
               "\"attend plot -x length -y bleu\" plots.",
    .examples = "attend bleu translated.en test.en\n"
                "attend bleu --confidence --source test.de translated.en test.en\n"
                "attend bleu --tokenize char translated.ja test.ja",
    .options = options,
    .see = "translate|plot",
    .run = run,
};
