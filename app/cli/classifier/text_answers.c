#include "text_answers.h"
#include "cli/base/progress.h"
#include "cli/sentence/training_rows.h"
#include "text_classifier.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK = 512 };

typedef struct work {
    const cli_texts_to_evaluate *o;
    cli_text_classifier m;
    cli_rows rows;
    cli_answers answers;
    int64_t *class; /* [rows.classes]: the model's number of each label of the table */
    const char *first[BLOCK], *second[BLOCK];
    size_t bytes[BLOCK], second_bytes[BLOCK];
    bool shortened[BLOCK];
    int64_t truncated;
    float *probability; /* [BLOCK, classes] */
} work;

/* Finds the model's numbers of the labels of the table. */
static int match_labels(work *w)
{
    const cli_rows *r = &w->rows;
    w->class = malloc((size_t)r->classes * sizeof *w->class);
    if (!w->class)
        return cli_fail_memory();
    for (int64_t k = 0; k < r->classes; k++) {
        int64_t *class = &w->class[k];
        *class = 0;
        while (*class < w->answers.classes && strcmp(r->word[k], w->answers.label[*class]) != 0)
            ++*class;
        if (*class == w->answers.classes)
            return cli_fail("%s: has the label \"%.40s\", which %s does not have", w->o->data, r->word[k],
                            w->m.base.name);
    }
    return CLI_DONE;
}

static int read_table(work *w)
{
    const cli_rows_options how = {
        .format = w->o->format, .loss = CLI_LOSS_SOFTMAX, .skip = w->o->skip, .of_labels = "ce", .single = true};
    const int code = cli_rows_read(&w->rows, w->o->data, &how);
    if (code)
        return code;
    cli_rows_describe_data(&w->rows);
    if (w->rows.columns > 1 && att_text_classifier_probe(w->m.model))
        return cli_fail("%s: has rows of two texts and a label, but %s classifies the embeddings of single texts: a "
                        "heading names the columns text and label",
                        w->o->data, w->m.base.name);
    w->answers.n = w->rows.n;
    return match_labels(w);
}

/* Classifies rows [at, at + n), and counts their answers. */
static int count_block(work *w, int64_t at, int64_t n)
{
    const cli_rows *r = &w->rows;
    const bool pairs = r->columns > 1;
    for (int64_t i = 0; i < n; i++) {
        const int64_t of = (at + i) * r->columns;
        w->first[i] = r->text[of];
        w->bytes[i] = r->bytes[of];
        w->second[i] = pairs ? r->text[of + 1] : NULL;
        w->second_bytes[i] = pairs ? r->bytes[of + 1] : 0;
    }
    const att_text_classify_options o = {.size = sizeof o,
                                         .pairs = pairs ? w->second : NULL,
                                         .pair_bytes = pairs ? w->second_bytes : NULL,
                                         .activation = w->m.info.probability,
                                         .truncated = w->shortened};
    const int code =
        cli_status(w->m.base.ctx, att_text_classify(w->m.model, n, w->first, w->bytes, &o, w->probability));
    for (int64_t i = 0; !code && i < n; i++) {
        cli_answers_add(&w->answers, at + i, w->class[r->label[at + i]], w -> probability + i * w -> answers.classes);
        w->truncated += w->shortened[i];
    }
    return code;
}

static int count_all(work *w)
{
    cli_progress line;
    int code = CLI_DONE;
    const double begin = cli_seconds();
    cli_progress_begin(&line);
    for (int64_t at = 0; !code && at < w->rows.n; at += BLOCK) {
        cli_progress_show(&line, at, "texts", (double)at / (double)w->rows.n);
        code = count_block(w, at, w->rows.n - at < BLOCK ? w->rows.n - at : BLOCK);
    }
    cli_progress_end(&line);
    w->answers.seconds = cli_seconds() - begin;
    if (!code)
        cli_text_classifier_note(&w->m, w->truncated, w->rows.n, "texts", 0);
    return code;
}

static const char *text_of(const void *rows, int64_t i)
{
    const cli_rows *r = rows;
    return r->text[i * r->columns];
}

static int evaluate(work *w)
{
    cli_answers *a = &w->answers;
    const cli_answers_options *o = w->o->answers;
    a->ctx = w->m.base.ctx;
    a->unit = "texts";
    a->compute = cli_model_compute(&w->m.base);
    a->classes = w->m.info.labels;
    if (w->m.info.probability != ATT_TEXT_ACTIVATION_SOFTMAX)
        return cli_fail("%s: its labels have scores of their own (\"problem_type\" of its config.json, or one label); "
                        "the accuracy of one label a text is not defined for it",
                        w->m.base.name);
    a->label = malloc((size_t)a->classes * sizeof *a->label);
    w->probability = malloc((size_t)(BLOCK * a->classes) * sizeof *w->probability);
    int code = a->label && w->probability ? cli_answers_check(a, o) : cli_fail_memory();
    for (int64_t i = 0; !code && i < a->classes; i++)
        a->label[i] = att_text_classifier_label(w->m.model, i);
    if (!code)
        code = read_table(w);
    if (!code)
        code = cli_answers_open(a, o);
    if (!code)
        code = count_all(w);
    return code ? code : cli_answers_finish(a, o, text_of, &w->rows);
}

int cli_evaluate_texts(const cli_texts_to_evaluate *o)
{
    work *w = calloc(1, sizeof *w);
    if (!w)
        return cli_fail_memory();
    w->o = o;
    int code = cli_model_open(&w->m.base, &cli_text_classifier_kind, o->model, o->types, o->threads);
    if (!code)
        code = evaluate(w);
    cli_answers_close(&w->answers);
    cli_rows_free(&w->rows);
    free(w->class);
    free(w->probability);
    cli_model_close(&w->m.base);
    free(w);
    return code;
}
