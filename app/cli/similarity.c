/* attend similarity: computes the similarity of sentences or images from their embeddings. */
#include "cli/base/grow.h"
#include "cli/base/json.h"
#include "cli/base/output.h"
#include "cli/base/progress.h"
#include "cli/base/utf8.h"
#include "cli/sentence/correlation.h"
#include "cli/sentence/embedder.h"
#include "cli/sentence/pairs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 512, MAX_SENTENCES = 1000 };

static const char *model_name, *pairs_path, *file, *prompt, *background;
static int format = CLI_PAIRS_BY_NAME;
static bool json, gold;
static int64_t dims, threads, skip_bad_lines;
static cli_types types;

static const cli_option options[] = {
    CLI_SENTENCE_MODEL_OPTION(&model_name),
    CLI_FILE(&file),
    {"pairs", 'p', "FILE", .text = &pairs_path,
     .help = "pairs of sentences, one per line: print the similarity of each pair; a heading may name the columns, as "
             "sentence1, sentence2 and score; \"-\": standard input"},
    {"format", 0, "tsv|csv", .choice = &format,
     .help = "format of the pairs: tab-separated, or comma-separated with quotes (RFC 4180); default: by the file's "
             "extension"},
    {"gold", 'g', NULL, .flag = &gold,
     .help = "print Spearman and Pearson correlation, in percent, with the gold scores in the third column"},
    CLI_SKIP_OPTION(&skip_bad_lines, "--pairs"),
    CLI_PROMPT(&prompt, "prompt", "sentence", "the model's default prompt, if it has one"),
    CLI_DIMS(&dims),
    CLI_BACKGROUND(&background),
    CLI_TYPES(types),
    CLI_THREADS(&threads),
    CLI_JSON(&json),
    {0},
};

/* ---- Some sentences with each other ---------------------------------------- */

/* The items of the command, sentences or paths of images. */
typedef struct sentences {
    char **text;   /* [n], malloc'd each */
    size_t *bytes; /* [n] */
    int n;
    size_t room;
} sentences;

/* Returns the number of bytes of the folder that all paths have in common, including its "/". */
static int common_folder(char *const *paths, int n)
{
    int common = 0;
    for (int at = 0; paths[0][at]; at++) {
        for (int i = 1; i < n; i++)
            if (paths[i][at] != paths[0][at])
                return common;
        common = paths[0][at] == '/' ? at + 1 : common;
    }
    return common;
}

/* Returns the columns of the widest number with a space before it, at least those of a cosine. */
static int cell_width(const float *similarity, int n, int decimals)
{
    int widest = decimals + 3;
    for (int i = 0; i < n; i++) {
        const int width = snprintf(NULL, 0, "%.*f", decimals, (double)similarity[i]);
        widest = width > widest ? width : widest;
    }
    return widest + 1;
}

static void print_matrix(char *const *texts, int n, const float *similarity /* [n, n] */, int without /* first bytes */)
{
    const int columns = terminal_columns(stdout), digits = n > 9 ? 2 + (n > 99) : 1;
    const int decimals = n > 8 || columns < 10 + 8 * n ? 2 : 4, cell = cell_width(similarity, n * n, decimals);
    const int narrowest = columns < 60 ? columns / 4 : 20;
    int widest = 0, room = columns - digits - 1 - n * cell;
    for (int i = 0; i < n; i++)
        widest = utf8_width(texts[i] + without) > widest ? utf8_width(texts[i] + without) : widest;
    int label = room < narrowest ? narrowest : room;
    label = widest < label ? widest : label;
    printf("%*s", digits + 1 + label, "");
    for (int k = 0; k < n; k++)
        printf("%*d", cell, k + 1);
    putchar('\n');
    for (int i = 0; i < n; i++) {
        printf("%*d ", digits, i + 1);
        utf8_field(stdout, texts[i] + without, label, 0);
        for (int k = 0; k < n; k++)
            printf("%*.*f", cell, decimals, (double)similarity[i * n + k]);
        putchar('\n');
    }
}

static void print_json_matrix(const char *key, char *const *texts, int n, const float *similarity)
{
    char keys[16];
    cli_json j = cli_json_begin(stdout);
    snprintf(keys, sizeof keys, "%ss", key);
    cli_json_strings(&j, keys, (const char *const *)texts, n);
    cli_json_matrix(&j, "similarity", similarity, n, n);
    cli_json_end(&j);
}

static int run_matrix(const cli_embedder *m, const sentences *s)
{
    const int n = s->n;
    const int64_t dim = m->dim;
    float *vectors = malloc((size_t)n * (size_t)dim * sizeof *vectors);
    float *similarity = malloc((size_t)n * (size_t)n * sizeof *similarity);
    int64_t truncated = 0;
    int code = vectors && similarity ? CLI_DONE : cli_fail_memory();
    if (!code)
        code = cli_embedder_encode(m, n, (const char *const *)s->text, s->bytes, vectors, &truncated, NULL, 0);
    if (!code)
        code = cli_embedder_compare(m, vectors, n, vectors, n, similarity);
    cli_embedder_note(m, truncated, n, "sentences");
    if (!code && json)
        print_json_matrix(m->key, s->text, n, similarity);
    else if (!code)
        print_matrix(s->text, n, similarity, m->images ? common_folder(s->text, n) : 0);
    free(vectors);
    free(similarity);
    return code;
}

static int add_sentence(sentences *s, const cli_lines *in, int64_t i)
{
    const cli_array arrays[] = {{&s->text, sizeof *s->text}, {&s->bytes, sizeof *s->bytes}};
    if (strlen(in->text[i]) < in->bytes[i])
        return cli_fail("%s: line %d has a zero byte", file, s->n + 1);
    if (s->n == MAX_SENTENCES)
        return cli_fail("%s: has more than %d lines; \"attend search\" finds the most similar of any number",
                        file ? file : "the arguments", MAX_SENTENCES);
    if (!cli_reserve(&s->room, (size_t)s->n + 1, arrays, 2) || !(s->text[s->n] = strdup(in->text[i])))
        return cli_fail_memory();
    s->bytes[s->n++] = in->bytes[i];
    return CLI_DONE;
}

/* Compares all items: arguments [n], or lines of the file. */
static int run_all(const cli_embedder *m, int n, char **arguments)
{
    cli_lines in;
    sentences s = {0};
    int code = n ? cli_embedder_arguments(m, &in, n, arguments) : cli_lines_open(&in, 1, (char *const[]){(char *)file});
    do {
        code = code ? code : cli_lines_next(&in, BLOCK);
        for (int64_t i = 0; !code && i < in.count; i++)
            code = add_sentence(&s, &in, i);
    } while (!code && in.count > 0);
    if (!code && s.n < 2)
        code = cli_fail("%s: %s %s, but two %s are needed", n ? arguments[0] : file, s.n ? "one" : "no",
                        m->images ? "image" : "line", m->images ? "images" : "sentences");
    if (!code)
        code = run_matrix(m, &s);
    for (int i = 0; i < s.n; i++)
        free(s.text[i]);
    free(s.text);
    free(s.bytes);
    cli_lines_close(&in);
    return code;
}

/* ---- Pairs ----------------------------------------------------------------- */

/* All scores until now, and the gold scores, for the correlation. */
typedef struct history {
    double *score, *gold; /* [room] */
    int64_t count, pairs; /* scores that are remembered; of all pairs */
    size_t room;
} history;

static int remember(history *h, double score, double gold_score)
{
    const cli_array arrays[] = {{&h->score, sizeof *h->score}, {&h->gold, sizeof *h->gold}};
    if (!cli_reserve(&h->room, (size_t)h->count + 1, arrays, 2))
        return cli_fail_memory();
    h->score[h->count] = score;
    h->gold[h->count++] = gold_score;
    return CLI_DONE;
}

static int print_pair(const cli_pairs *p, int64_t i, double score, history *h)
{
    if (json) {
        cli_json j = cli_json_begin(stdout);
        cli_json_bytes(&j, "a", p->text[2 * i], p->bytes[2 * i]);
        cli_json_bytes(&j, "b", p->text[2 * i + 1], p->bytes[2 * i + 1]);
        cli_json_fixed(&j, "score", score, 6);
        if (gold)
            cli_json_number(&j, "gold", p->gold[i], 9);
        cli_json_end(&j);
    } else {
        printf("%.6f\n", score);
    }
    return gold ? remember(h, score, p->gold[i]) : CLI_DONE;
}

static int stream(const cli_embedder *m, cli_pairs *p, history *h)
{
    const int64_t dim = m->dim;
    float *vectors = malloc(2 * (size_t)(m->block * dim) * sizeof *vectors);
    int64_t truncated = 0, done = 0;
    int code = vectors ? CLI_DONE : cli_fail_memory();
    cli_output out;
    cli_output_open(&out, NULL);
    cli_progress progress;
    cli_progress_begin(&progress);
    while (!code) {
        code = cli_pairs_next(p);
        if (code || p->count == 0)
            break;
        code = cli_embedder_encode(m, 2 * p->count, p->text, p->bytes, vectors, &truncated, NULL, -1);
        for (int64_t i = 0; !code && i < p->count; i++)
            code = print_pair(p, i, cli_similar(m->similarity, vectors + 2 * i * dim, vectors + (2 * i + 1) * dim, dim),
                              h);
        done += p->count;
        if (!code)
            code = cli_output_flush(&out);
        cli_progress_show(&progress, done, "pairs", p->total > 0 ? p->read / p->total : 0);
    }
    cli_progress_end(&progress);
    h->pairs = done;
    cli_embedder_note(m, truncated, 2 * done, "sentences");
    free(vectors);
    return code;
}

/* Reports, after all pairs, correlations with --gold, and lines that were left out. */
static int print_summary(const cli_embedder *m, const history *h, const cli_skipped *skipped)
{
    double spearman = NAN;
    const int code = gold ? cli_spearman(h->score, h->gold, h->count, &spearman) : CLI_DONE;
    if (code)
        return code;
    const double pearson = gold ? 100 * cli_pearson(h->score, h->gold, h->count) : NAN;
    spearman *= 100;
    if (json && (gold || skipped->n)) {
        cli_json j = cli_json_begin(stdout);
        cli_json_integer(&j, "pairs", h->pairs);
        if (gold) {
            cli_json_fixed(&j, "spearman", spearman, 4);
            cli_json_fixed(&j, "pearson", pearson, 4);
            cli_json_string(&j, "compute", cli_model_compute(m->images ? &m->vision.base : &m->text.base));
        }
        cli_skipped_json(&j, skipped->n, skipped->first);
        cli_json_end(&j);
    } else if (gold)
        fprintf(stderr, "%lld pairs: Spearman %.2f, Pearson %.2f\n", (long long)h->pairs, spearman, pearson);
    cli_skipped_report(skipped->n, skipped->first);
    return CLI_DONE;
}

static int run_pairs(const cli_embedder *m)
{
    cli_pairs p;
    cli_skipped skipped;
    history h = {0};
    const cli_pairs_options o = {.format = format, .gold = gold, .skip = skip_bad_lines, .max_count = m->block};
    int code = cli_pairs_open(&p, pairs_path, &o);
    if (code)
        return code;
    code = stream(m, &p, &h);
    cli_records_skipped(&p.in, &skipped);
    if (!code)
        code = print_summary(m, &h, &skipped);
    free(h.score);
    free(h.gold);
    cli_pairs_close(&p);
    return code;
}

static int run(int n, char **arguments)
{
    if ((pairs_path != NULL) + (file != NULL) + (n > 0) > 1)
        return cli_misuse("--%s does not go with %s", pairs_path ? "pairs" : "file",
                          pairs_path && file ? "--file" : "sentences as arguments");
    const bool images = cli_model_is(ATT_SUBJECT_VISION, model_name);
    if (n == 1 && !images && strcmp(arguments[0], "-"))
        return cli_misuse("two sentences are needed, or --file FILE, or --pairs FILE");
    if (n == 1 && !images)
        n = 0;
    if (n == 0 && !file)
        file = "-";
    if (gold && !pairs_path)
        return cli_misuse("--gold needs --pairs FILE");
    cli_embedder m;
    int code = cli_embedder_open(&m, model_name, types, threads);
    if (code)
        return code;
    code = cli_embedder_prompt(&m, "prompt", prompt, NULL);
    if (!code)
        code = cli_embedder_truncate(&m, dims);
    if (!code)
        code = cli_embedder_background(&m, background);
    if (!code)
        cli_embedder_note_measure(&m);
    if (!code)
        code = pairs_path ? run_pairs(&m) : run_all(&m, n, arguments);
    cli_embedder_close(&m);
    return code;
}

const cli_command cli_similarity = {
    .name = "similarity",
    .summary = "compute the similarity of sentences or images",
    .arguments = "[SENTENCE...]",
    .max_arguments = MAX_SENTENCES,
    .details =
        "Prints a matrix of the similarities of all pairs of the sentences, which\n"
        "are arguments, or lines of --file or of standard input; or with --pairs a score\n"
        "per line of a file. With --gold, correlations are printed to standard error\n"
        "after the scores; with --json they are the last object.\n\n"
        "The similarity is the cosine, or the measure that the model's folder names\n"
        "(similarity_fn_name): the dot product, or minus a distance.\n\n"
        "With a vision model, arguments and lines, and both of a pair, are paths of images; an argument may also "
        "be a folder with images in it or in its folders, or \"-\", an image from standard input.",
    .examples = "attend similarity -m all-MiniLM-L6-v2 \"A cat sleeps.\" \"A kitten naps.\" \"Stocks fell.\"\n"
                "attend similarity -m all-MiniLM-L6-v2 --json --file sentences.txt\n"
                "attend similarity -m all-MiniLM-L6-v2 --pairs stsb-en-dev.csv --gold > scores.txt\n"
                "attend similarity -m dinov2-small cat.jpg dog.jpg",
    .options = options,
    .see = "embed|search|train embed|fetch",
    .run = run,
};
