/* attend train rerank: trains a text classifier on pairs with scores or labels, or on pairs alone. */
#include "cli/classifier/text_classifier.h"
#include "cli/model/checkpoints.h"
#include "cli/sentence/correlation.h"
#include "cli/sentence/pairs.h"
#include "cli/sentence/scored_pairs.h"
#include "cli/sentence/training_rows.h"
#include "cli/train/train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The losses in the order of --loss, and the rows that each needs */
enum { MNR, BCE, CE, MSE, BY_FILE = -1 };
static const int rows_of[] = {
    [MNR] = CLI_LOSS_MNR, [BCE] = CLI_LOSS_COSINE, [CE] = CLI_LOSS_SOFTMAX, [MSE] = CLI_LOSS_COSINE};

typedef struct rerank_training {
    cli_training common;
    cli_rows rows;
    att_text_classifier_loss loss;
    cli_scored scored;  /* --valid, without labels */
    cli_rows labeled;   /* --valid, with labels */
    int32_t *expected;  /* [labeled.n]: the model's number of each label, -1: it does not have it */
    float *scores;      /* [validated, labels] */
    const char **first; /* [validated], and their second texts */
    const char **second;
    size_t *bytes, *second_bytes;
    double *score; /* [validated] */
    int64_t validated, labels;
} rerank_training;

static const char *model_name, *pairs_path, *valid_path;
static int format = CLI_PAIRS_BY_NAME, loss = BY_FILE, activation;
static int64_t skip_bad_lines, negatives = 4, max_tokens;
static double highest = 1, scale = 10;
static rerank_training rerank = {.common.options = {.epochs = 1,
                                                    .batch = 16,
                                                    .beta2 = 0.999,
                                                    .rate = 2e-5,
                                                    .schedule = ATT_SCHEDULE_LINEAR,
                                                    .warmup = 0.1,
                                                    .decay = 0.01,
                                                    .clip = 1,
                                                    .validate_every = 100,
                                                    .save_every = 200,
                                                    CLI_TRAINING_DEFAULTS}};

static const cli_option options[] = {
    {"model", 'm', "MODEL", .text = &model_name,
     .help = "model to begin with: a text classifier, or a sentence model or encoder, which gets a classifier"},
    {"pairs", 'p', "FILE", .text = &pairs_path, .required = true,
     .help = "rows of a query and a document; the third column may be a score, a label or a hard negative; may end in "
             ".gz"},
    {"loss", 'l', "mnr|bce|ce|mse", .choice = &loss,
     .help = "multiple negatives ranking, binary cross entropy, cross entropy, mean squared error; default: bce if the "
             "third column is a number, ce if it has few different words, otherwise mnr"},
    {"scale", 0, "N", .number = &scale, .min = 1e-6, .max = 1e6, .help = "mnr: factor of scores, 1 / temperature"},
    {"negatives", 0, "N", .integer = &negatives, .min = 1, .max = 1 << 20,
     .help = "mnr: documents of other rows of the batch that a query is paired with"},
    {"activation", 0, "loss|identity|sigmoid", .choice = &activation, .quiet = true,
     .help = "mnr, mse: what is applied to logits before the loss; default: sigmoid for mnr, identity for mse"},
    {"valid", 'v', "FILE", .text = &valid_path,
     .help = "pairs with scores, with ce with labels, for validation, to select the best model"},
    {"format", 0, "tsv|csv", .choice = &format,
     .help = "format of both files: tab-separated, or comma-separated with quotes (RFC 4180); default: by the file's "
             "extension"},
    CLI_SKIP_OPTION(&skip_bad_lines, "each of both files"),
    {"highest", 0, "SCORE", .number = &highest, .min = 1e-9, .max = 1e9,
     .help = "highest score, that of a document that fits; the lowest is 0; not of mse"},
    CLI_MAX_TOKENS_OPTION(&max_tokens),
    CLI_TRAINING_FOLDER(rerank.common.options),
    CLI_TRAINING_EPOCHS(rerank.common.options, "pairs", ""),
    CLI_TRAINING_OPTIONS(rerank.common.options),
    {0},
};

/* ---- validation */

/* Computes the scores of all pairs of --valid -> t->scores. */
static int score_all(const rerank_training *t)
{
    const att_text_classifier *m = att_training_text_classifier(t->common.training);
    const bool single = t->labeled.n && t->labeled.columns == 1;
    const att_text_classify_options o = {.size = sizeof o,
                                         .pairs = single ? NULL : t->second,
                                         .pair_bytes = single ? NULL : t->second_bytes,
                                         .activation = ATT_TEXT_ACTIVATION_IDENTITY,
                                         .max_tokens = max_tokens};
    return cli_status(t->common.ctx, att_text_classify(m, t->validated, t->first, t->bytes, &o, t->scores));
}

static int64_t largest(const float *x, int64_t n)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        best = x[i] > x[best] ? i : best;
    return best;
}

static int validate_labels(const rerank_training *t, cli_validation *v)
{
    int64_t right = 0;
    for (int64_t i = 0; i < t->validated; i++)
        right += largest(t->scores + i * t->labels, t->labels) == t->expected[i];
    v->score = 100 * (double)right / (double)t->validated;
    snprintf(v->log, sizeof v->log, ", \"accuracy\": %.4f", v->score);
    snprintf(v->shown, sizeof v->shown, ", on validation accuracy %.2f %%", v->score);
    return CLI_DONE;
}

static int validate(void *training, cli_validation *v)
{
    rerank_training *t = training;
    int code = score_all(t);
    if (code)
        return code;
    if (t->labeled.n)
        return validate_labels(t, v);
    for (int64_t i = 0; i < t->validated; i++)
        t->score[i] = (double)t->scores[i];
    code = cli_spearman(t->score, t->scored.score, t->validated, &v->score);
    v->score *= 100;
    if (!code && isfinite(v->score))
        snprintf(v->log, sizeof v->log, ", \"spearman\": %.4f", v->score);
    snprintf(v->shown, sizeof v->shown, ", on validation Spearman %.2f", v->score);
    return code;
}

static int fail_unscored(const void *training)
{
    (void)training;
    return cli_fail("%s: no validation has a correlation: the model's scores or those of the file are all the same",
                    valid_path);
}

/* ---- the run */

static void report(const void *training, const att_training_info *i)
{
    static const char *const names[] = {"binary cross entropy", "cross entropy", "multiple negatives ranking",
                                        "squared error"};
    const rerank_training *t = training;
    const cli_rows *r = &t->rows;
    cli_rows_describe_data(r);
    cli_note("loss: %s, of %lld %s", names[t->loss], (long long)r->n, r->columns == 1 ? "texts" : "pairs");
    cli_rows_describe_labels(r);
    if (i->truncated > 0)
        fprintf(stderr, "%lld of %lld rows have a pair that is longer than the model takes, and is truncated\n",
                (long long)i->truncated, (long long)i->examples);
}

/* Refuses options for another loss, and a batch without negatives. */
static int check_rows(const rerank_training *t)
{
    const bool ranking = t->loss == ATT_TEXT_CLASSIFIER_LOSS_MULTIPLE_NEGATIVES_RANKING;
    if (scale != 10 && !ranking)
        return cli_misuse("--scale %g is for --loss mnr, but here the loss is another", scale);
    if (negatives != 4 && !ranking)
        return cli_misuse("--negatives %lld is for --loss mnr, but here the loss is another", (long long)negatives);
    if (activation && !ranking && t->loss != ATT_TEXT_CLASSIFIER_LOSS_MEAN_SQUARED_ERROR)
        return cli_misuse("--activation is for --loss mnr and mse, but here the loss is another");
    if (ranking && t->rows.columns == 2 && rerank.common.options.batch == 1)
        return cli_misuse("--batch 1 with --loss mnr: the negatives of a pair are the other pairs of its batch, which "
                          "must have 2 or more");
    return CLI_DONE;
}

static cli_rows_options rows_options(int chosen)
{
    return (cli_rows_options){.format = format,
                              .loss = chosen,
                              .highest = highest,
                              .skip = skip_bad_lines,
                              .of_scores = "bce",
                              .of_labels = "ce",
                              .any_scores = loss == MSE,
                              .single = true};
}

static int read_valid(rerank_training *t)
{
    if (t->loss == ATT_TEXT_CLASSIFIER_LOSS_CROSS_ENTROPY) {
        const cli_rows_options o = rows_options(CLI_LOSS_SOFTMAX);
        const int code = cli_rows_read(&t->labeled, valid_path, &o);
        t->validated = t->labeled.n;
        return code || t->labeled.columns == t->rows.columns
                   ? code
                   : cli_fail("%s: has rows of %lld texts, but %s of %lld", valid_path, (long long)t->labeled.columns,
                              pairs_path, (long long)t->rows.columns);
    }
    const cli_pairs_options o = {
        .format = format, .gold = true, .highest = loss == MSE ? 0 : highest, .skip = skip_bad_lines};
    const int code = cli_scored_read(&t->scored, valid_path, &o);
    t->validated = t->scored.n;
    return code;
}

/* Returns the checksum of the texts, scores and labels of --valid. */
static int64_t checksum(const rerank_training *t)
{
    const cli_rows *r = &t->labeled;
    uint64_t sum = (uint64_t)cli_scored_checksum(&t->scored);
    for (int64_t i = 0; i < r->n; i++) {
        for (int64_t k = i * r->columns; k < (i + 1) * r->columns; k++)
            sum = cli_training_checksum(sum, r->text[k], r->bytes[k] + 1);
        sum = cli_training_checksum(sum, r->word[r->label[i]], strlen(r->word[r->label[i]]) + 1);
    }
    return (int64_t)sum;
}

static int read_pairs(void *training)
{
    static const att_text_classifier_loss losses[] = {
        [ATT_SENTENCE_LOSS_COSINE_SIMILARITY] = ATT_TEXT_CLASSIFIER_LOSS_BINARY_CROSS_ENTROPY,
        [ATT_SENTENCE_LOSS_SOFTMAX] = ATT_TEXT_CLASSIFIER_LOSS_CROSS_ENTROPY,
        [ATT_SENTENCE_LOSS_MULTIPLE_NEGATIVES_RANKING] = ATT_TEXT_CLASSIFIER_LOSS_MULTIPLE_NEGATIVES_RANKING};
    rerank_training *t = training;
    const cli_rows_options o = rows_options(loss == BY_FILE ? CLI_LOSS_BY_FILE : rows_of[loss]);
    int code = cli_rows_read(&t->rows, pairs_path, &o);
    t->loss = loss == MSE ? ATT_TEXT_CLASSIFIER_LOSS_MEAN_SQUARED_ERROR : losses[t->rows.loss];
    if (!code)
        code = check_rows(t);
    if (!code && valid_path)
        code = read_valid(t);
    if (!code)
        t->common.evaluation_id = checksum(t);
    t->common.validates = valid_path != NULL;
    t->common.used_by = t->loss == ATT_TEXT_CLASSIFIER_LOSS_CROSS_ENTROPY ? "classify" : NULL;
    t->common.has_base = valid_path && !cli_model_is(ATT_SUBJECT_SENTENCE, model_name); /* else it has no classifier */
    t->common.batches = (t->rows.n + t->common.options.batch - 1) / t->common.options.batch;
    return code;
}

/* Makes arrays of both texts of all pairs of --valid. */
static int allocate_validation(rerank_training *t)
{
    const size_t n = (size_t)t->validated + 1;
    t->labels = t->labeled.n ? t->rows.classes : 1;
    t->first = malloc(n * sizeof *t->first);
    t->second = malloc(n * sizeof *t->second);
    t->bytes = malloc(n * sizeof *t->bytes);
    t->second_bytes = malloc(n * sizeof *t->second_bytes);
    t->score = malloc(n * sizeof *t->score);
    t->scores = malloc(n * (size_t)t->labels * sizeof *t->scores);
    t->expected = malloc(n * sizeof *t->expected);
    if (!t->first || !t->second || !t->bytes || !t->second_bytes || !t->score || !t->scores || !t->expected)
        return cli_fail_memory();
    const int64_t columns = t->labeled.n ? t->labeled.columns : 2;
    for (int64_t i = 0; i < t->validated; i++) {
        const char *const *text = t->labeled.n ? t->labeled.text : t->scored.text;
        const size_t *bytes = t->labeled.n ? t->labeled.bytes : t->scored.bytes;
        t->first[i] = text[i * columns];
        t->bytes[i] = bytes[i * columns];
        t->second[i] = text[i * columns + columns - 1];
        t->second_bytes[i] = bytes[i * columns + columns - 1];
    }
    return CLI_DONE;
}

/* Finds the model's number of each label of --valid. */
static int find_labels(rerank_training *t)
{
    const att_text_classifier *m = att_training_text_classifier(t->common.training);
    for (int64_t i = 0; i < t->labeled.n; i++) {
        const char *word = t->labeled.word[t->labeled.label[i]];
        int64_t k = 0;
        while (k < t->labels && strcmp(att_text_classifier_label(m, k), word) != 0)
            k++;
        if (k == t->labels)
            return cli_fail("%s: the label \"%.40s\" is not one of those of %s", valid_path, word, pairs_path);
        t->expected[i] = (int32_t)k;
    }
    return CLI_DONE;
}

/* Finds the model of --model, a text classifier or a sentence model. Without --model it is the only text classifier. */
static int find_model(rerank_training *t)
{
    const bool sentence = cli_model_is(ATT_SUBJECT_SENTENCE, model_name);
    return cli_training_find_model(&t->common, sentence ? ATT_SUBJECT_SENTENCE : ATT_SUBJECT_CLASSIFIER, &model_name);
}

static int open_training(void *training, const att_training_options *common)
{
    rerank_training *t = training;
    const cli_training_options *o = &t->common.options;
    int code = find_model(t);
    if (code)
        return code;
    const att_text_classifier_training_options *all = ATT_OPTIONS(
        att_text_classifier_training_options, .model = model_name, .rows = t->rows.n, .texts = t->rows.text,
        .bytes = t->rows.bytes, .columns = t->rows.columns, .scores = t->rows.score, .labels = t->rows.label,
        .classes = t->rows.classes, .names = t->rows.word, .batch = o->batch, .max_tokens = max_tokens, .loss = t->loss,
        .negatives = negatives, .scale = scale, .activation = (att_text_activation)activation);
    code = cli_training_status(
        t->common.ctx, att_text_classifier_training_open(t->common.ctx, o->folder, common, all, &t->common.training));
    if (!code && valid_path)
        code = allocate_validation(t);
    return code ? code : find_labels(t);
}

static void close_training(void *training)
{
    rerank_training *t = training;
    void *const all[] = {t->expected, t->scores,       (void *)t->first, (void *)t->second,
                         t->bytes,    t->second_bytes, t->score};
    cli_rows_free(&t->rows);
    cli_rows_free(&t->labeled);
    cli_scored_free(&t->scored);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
}

static const char *const may_change[] = {"format", NULL};
static const char *const same_files[] = {"model", "pairs", "valid", NULL};
static const cli_trainer trainer = {
    .command = "rerank",
    .validation = "--valid FILE",
    .score = "score",
    .measure = "validation score",
    .digits = 2,
    .keeps_best = true,
    .sources = true,
    .options = options,
    .may_change = may_change,
    .same_files = same_files,
    .read = read_pairs,
    .open = open_training,
    .report = report,
    .validate = validate,
    .fail_unscored = fail_unscored,
    .close = close_training,
};

static int complete(bool *given) { return cli_training_complete(&rerank.common, &trainer, given); }

static int run(int n, char **arguments)
{
    (void)n, (void)arguments;
    return cli_training_run(&rerank.common);
}

const cli_command cli_train_rerank = {
    .name = "rerank",
    .summary = "train a cross-encoder or text classifier on pairs, scores or labels",
    .details = "Trains with AdamW, from a text classifier or from an encoder, which gets a new\n"
               "classifier. The loss follows from the columns of --pairs, or is chosen by --loss:\n\n"
               "  text, text, score  bce: binary cross entropy, 0 to --highest\n"
               "                     mse: squared error, of scores of a teacher\n"
               "  text, text, label  ce: cross entropy; with --loss ce text, label\n"
               "  text, text         mnr: multiple negatives ranking; documents of\n"
               "                     other rows of the batch are the negatives\n"
               "  text, text, text   mnr with hard negatives (third and more)\n\n"
               "They equal the losses of sentence-transformers' CrossEncoder. The result is a\n"
               "folder that transformers and CrossEncoder open: with --valid the model with the\n"
               "highest Spearman correlation, with ce the highest accuracy, otherwise that of\n"
               "the last step.\n\n" CLI_TRAINING_DETAILS,
    .examples = "attend train rerank -m all-MiniLM-L6-v2 --pairs query-passage.tsv --loss mnr -o reranker\n"
                "attend train rerank -m reranker --pairs scored.tsv --valid dev.tsv -o better\n"
                "attend train rerank -m all-MiniLM-L6-v2 --loss ce --pairs text-label.tsv -o emotions\n"
                "attend rerank -m reranker -c passages.txt \"How many people live in Berlin?\"",
    .options = options,
    .see = "rerank|classify|train embed|plot",
    .complete = complete,
    .run = run,
};
