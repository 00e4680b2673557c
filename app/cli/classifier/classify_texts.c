#include "classify_texts.h"

#include "cli/base/lines.h"
#include "cli/base/output.h"
#include "cli/base/progress.h"
#include "cli/base/shard.h"
#include "cli/draw/classes.h"
#include "cli/sentence/pairs.h"
#include "text_classifier.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 512 };

typedef struct work {
    const cli_texts_to_classify *o;
    cli_text_classifier m;
    cli_classes classes;
    cli_output out;
    bool bars;
    float *probability; /* [BLOCK, labels] */
    int64_t *best;      /* [classes.top] */
    bool shortened[BLOCK];
    int64_t done, truncated;
} work;

static const char *label_of(const void *model, int64_t i) { return att_text_classifier_label(model, i); }

static int work_open(work *w)
{
    const cli_texts_to_classify *o = w->o;
    int code = cli_model_open(&w->m.base, &cli_text_classifier_kind, o->model, o->types, o->threads);
    if (code)
        return code;
    const int64_t labels = w->m.info.labels;
    if (att_text_classifier_probe(w->m.model) && (o->pairs_path || o->pairs.n > 0))
        return cli_misuse("--%s: %s classifies the embeddings of single texts", o->pairs_path ? "pairs" : "pair",
                          w->m.base.name);
    if (w->m.info.probability == ATT_TEXT_ACTIVATION_IDENTITY)
        return cli_fail(
            "%s is of regression, whose numbers are not probabilities: \"attend rerank --pairs\" prints them",
            w->m.base.name);
    w->classes =
        (cli_classes){.model = w->m.model, .label = label_of, .n = labels, .top = o->top < labels ? o->top : labels};
    w->probability = malloc((size_t)(BLOCK * labels) * sizeof *w->probability);
    w->best = malloc((size_t)w->classes.top * sizeof *w->best);
    if (!w->probability || !w->best)
        return cli_fail_memory();
    code = cli_output_open(&w->out, o->output);
    w->bars = cli_output_is_terminal(&w->out);
    return code;
}

/* ---- What is printed ---------------------------------------------------------- */

/* A text, or a pair; second NULL: it is a text */
typedef struct item {
    const char *first, *second;
    size_t bytes, second_bytes;
} item;

static void print_json(const work *w, const item *t, const float *probability)
{
    cli_json j = cli_json_begin(w->out.file);
    cli_json_bytes(&j, "text", t->first, t->bytes);
    if (t->second)
        cli_json_bytes(&j, "pair", t->second, t->second_bytes);
    cli_classes_json(&w->classes, &j, probability, w->best);
    cli_json_close(&j);
}

static void print_line(const work *w, const item *t, const float *probability)
{
    FILE *f = w->out.file;
    cli_classes_field(f, t->first, t->bytes);
    if (t->second) {
        putc('\t', f);
        cli_classes_field(f, t->second, t->second_bytes);
    }
    cli_classes_line(&w->classes, f, probability, w->best);
}

static int print_bars(const work *w, const item *t, const float *probability)
{
    char *title = malloc(t->bytes + t->second_bytes + sizeof " | ");
    if (!title)
        return cli_fail_memory();
    memcpy(title, t->first, t->bytes);
    strcpy(title + t->bytes, t->second ? " | " : "");
    if (t->second) {
        memcpy(title + t->bytes + 3, t->second, t->second_bytes);
        title[t->bytes + 3 + t->second_bytes] = 0;
    }
    cli_classes_bars(&w->classes, title, probability, w->best);
    free(title);
    return CLI_DONE;
}

static int print(work *w, const item *t, const float *probability)
{
    cli_classes_choose(&w->classes, probability, w->best);
    if (!w->o->json && w->bars)
        return print_bars(w, t, probability);
    (w->o->json ? print_json : print_line)(w, t, probability);
    return CLI_DONE;
}

/* ---- The work ------------------------------------------------------------------ */

/* Classifies texts [n] of a block, n at most BLOCK, or pairs. second or NULL: texts. */
static int classify(work *w, int64_t n, const char *const *first, const size_t *bytes, const char *const *second,
                    const size_t *second_bytes)
{
    const att_text_classify_options o = {.size = sizeof o,
                                         .pairs = second,
                                         .pair_bytes = second_bytes,
                                         .activation = w->m.info.probability,
                                         .truncated = w->shortened};
    const att_status s = att_text_classify(w->m.model, n, first, bytes, &o, w->probability);
    int code = s == ATT_ERR_FORMAT ? cli_fail("%s: %s", w->m.base.name, att_error(w->m.base.ctx))
                                   : cli_status(w->m.base.ctx, s);
    cli_progress_clear();
    for (int64_t i = 0; !code && i < n; i++) {
        const item t = {first[i], second ? second[i] : NULL, bytes[i], second ? second_bytes[i] : 0};
        code = print(w, &t, w->probability + i * w->m.info.labels);
        w->truncated += w->shortened[i];
    }
    w->done += n;
    return code;
}

static int run_lines(work *w, cli_lines *in)
{
    cli_progress progress;
    int code = CLI_DONE;
    cli_progress_begin(&progress);
    while (!code) {
        code = cli_lines_next(in, BLOCK);
        if (code || in->count == 0)
            break;
        code = classify(w, in->count, in->text, in->bytes, NULL, NULL);
        if (!code)
            code = cli_output_flush(&w->out);
        cli_progress_show(&progress, w->done, "lines", in->total > 0 ? in->done / in->total : 0);
    }
    cli_progress_end(&progress);
    cli_text_classifier_note(&w->m, w->truncated, w->done, "texts", 0);
    return code;
}

/* Classifies those of --text and --pair. */
static int run_given_pairs(work *w)
{
    const cli_texts_to_classify *o = w->o;
    size_t bytes[CLI_TEXTS], second_bytes[CLI_TEXTS];
    for (int i = 0; i < o->texts.n; i++) {
        bytes[i] = strlen(o->texts.text[i]);
        second_bytes[i] = strlen(o->pairs.text[i]);
    }
    const cli_range r = cli_shard_of(o->texts.n);
    const int code = classify(w, r.end - r.first, o->texts.text + r.first, bytes + r.first, o->pairs.text + r.first,
                              second_bytes + r.first);
    cli_text_classifier_note(&w->m, w->truncated, w->done, "pairs", 0);
    return code;
}

/* Classifies pairs first .. end - 1 of a block of a table, in which first and second texts alternate. */
static int classify_pairs(work *w, const cli_pairs *p, int64_t first, int64_t end)
{
    const char *text[2][BLOCK];
    size_t bytes[2][BLOCK];
    for (int64_t i = 0; i < 2 * p->count; i++) {
        text[i % 2][i / 2] = p->text[i];
        bytes[i % 2][i / 2] = p->bytes[i];
    }
    return classify(w, end - first, text[0] + first, bytes[0] + first, text[1] + first, bytes[1] + first);
}

/* Finds which pairs of a table are of the shard. */
static int choose_pairs(const work *w, const cli_pairs_options *options, cli_range *shard)
{
    cli_pairs p;
    int64_t n = INT64_MAX;
    *shard = (cli_range){0, n};
    if (!cli_shard_given())
        return CLI_DONE;
    double bytes = -1;
    int code = strcmp(w->o->pairs_path, "-") ? cli_file_check(w->o->pairs_path, &bytes) : CLI_DONE;
    if (!code && bytes < 0)
        code = cli_fail("%s is not a file: --shard reads --pairs twice, to count them", w->o->pairs_path);
    if (!code)
        code = cli_pairs_open(&p, w->o->pairs_path, options);
    if (code)
        return code;
    for (n = 0; !code; n += p.count) {
        code = cli_pairs_next(&p);
        if (code || p.count == 0)
            break;
    }
    cli_pairs_close(&p);
    *shard = cli_shard_of(n);
    return code;
}

static int run_table(work *w)
{
    cli_pairs p;
    cli_skipped skipped;
    cli_range shard;
    const cli_pairs_options options = {.format = w->o->format, .skip = w->o->skip, .max_count = BLOCK};
    int code = choose_pairs(w, &options, &shard);
    if (!code)
        code = cli_pairs_open(&p, w->o->pairs_path, &options);
    if (code)
        return code;
    for (int64_t before = 0; !code && before < shard.end; before += p.count) {
        code = cli_pairs_next(&p);
        if (code || p.count == 0)
            break;
        const int64_t first = shard.first > before ? shard.first - before : 0, end = shard.end - before;
        if (first < p.count)
            code = classify_pairs(w, &p, first, end < p.count ? end : p.count);
        if (!code)
            code = cli_output_flush(&w->out);
    }
    cli_records_skipped(&p.in, &skipped);
    cli_pairs_close(&p);
    cli_text_classifier_note(&w->m, w->truncated, w->done, "pairs", 0);
    if (!code)
        cli_skipped_report(skipped.n, skipped.first);
    return code;
}

static int check(const cli_texts_to_classify *o, int n)
{
    if (o->pairs_path && (o->texts.n || o->pairs.n || o->file || n))
        return cli_misuse("--pairs does not go with %s", o->texts.n   ? "--text"
                                                         : o->pairs.n ? "--pair"
                                                         : o->file    ? "--file"
                                                                      : "files as arguments");
    if (o->pairs.n && o->pairs.n != o->texts.n)
        return cli_misuse("--pair is given %d times, but --text %d times: each pair needs both", o->pairs.n,
                          o->texts.n);
    return CLI_DONE;
}

int cli_classify_texts(const cli_texts_to_classify *o, int n, char **arguments)
{
    work w = {.o = o};
    cli_lines in = {.fd = -1};
    const bool lines = !o->pairs_path && !o->pairs.n;
    int code = check(o, n);
    if (!code && lines)
        code = cli_lines_choose(&in, false, &o->texts, &o->file, n, arguments);
    if (!code && lines)
        code = cli_paths_refuse_images(n, arguments);
    if (!code)
        code = work_open(&w);
    if (!code)
        code = lines ? run_lines(&w, &in) : o->pairs_path ? run_table(&w) : run_given_pairs(&w);
    code = w.out.file ? cli_output_close(&w.out, code) : code;
    free(w.probability);
    free(w.best);
    cli_lines_close(&in);
    cli_model_close(&w.m.base);
    return code;
}
