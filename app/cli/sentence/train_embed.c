/* attend train embed: trains a sentence model on pairs, triplets, or pairs with scores or labels. */
#include "cli/sentence/sentence.h"
#include "cli/train/train.h"
#include "correlation.h"
#include "scored_pairs.h"
#include "training_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct embed_training {
    cli_training common;
    cli_rows pairs;
    cli_scored valid;
    double *similarity; /* [valid.n], by the model's measure */
    att_similarity measure;
    float *vectors; /* [2 valid.n, dim] */
    int64_t dim;
} embed_training;

static const char *model_name, *pairs_path, *valid_path;
static int format = CLI_PAIRS_BY_NAME, loss = CLI_LOSS_BY_FILE, distance;
static int64_t skip_bad_lines;
static double highest = 5, scale = 20, margin;
static embed_training embed = {.common.options = {.epochs = 2,
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
    CLI_SENTENCE_MODEL_OPTION(&model_name),
    {"pairs", 'p', "FILE", .text = &pairs_path, .required = true,
     .help = "rows of two or more texts; the third column may be a score, a label or a hard negative; may end in .gz"},
    {"loss", 'l', CLI_LOSSES, .choice = &loss,
     .help = "mnr is multiple-negatives-ranking; default: cosine if the third column is a number, softmax if it has "
             "few different words, otherwise mnr"},
    {"scale", 0, "N", .number = &scale, .min = 1e-6, .max = 1e6, .help = "mnr: factor of cosines, 1 / temperature"},
    {"margin", 0, "N", .number = &margin, .max = 1e6, .quiet = true,
     .help = "triplet: margin; 0, the default: 5, or 0.5 with --distance cosine"},
    {"distance", 0, "euclidean|cosine", .choice = &distance, .help = "triplet: distance of embeddings"},
    {"valid", 'v', "FILE", .text = &valid_path, .help = "pairs with scores for validation, to select the best model"},
    {"format", 0, "tsv|csv", .choice = &format,
     .help = "format of both files: tab-separated, or comma-separated with quotes (RFC 4180); default: by the file's "
             "extension"},
    CLI_SKIP_OPTION(&skip_bad_lines, "each of both files"),
    {"highest", 0, "SCORE", .number = &highest, .min = 1e-9, .max = 1e9,
     .help = "highest similarity score, that of sentences with equal meaning; the lowest is 0"},
    CLI_TRAINING_FOLDER(embed.common.options),
    CLI_TRAINING_EPOCHS(embed.common.options, "pairs", ""),
    CLI_TRAINING_OPTIONS(embed.common.options),
    {0},
};

/* ---- validation */

static int validate(void *training, cli_validation *v)
{
    embed_training *t = training;
    const cli_scored *s = &t->valid;
    int code = cli_status(t->common.ctx, att_sentence_embed(att_training_sentence(t->common.training), 2 * s->n,
                                                            s->text, s->bytes, NULL, t->vectors));
    if (code)
        return code;
    for (int64_t i = 0; i < s->n; i++)
        t->similarity[i] =
            cli_similar(t->measure, t->vectors + 2 * i * t->dim, t->vectors + (2 * i + 1) * t->dim, t->dim);
    code = cli_spearman(t->similarity, s->score, s->n, &v->score);
    if (code)
        return code;
    v->score *= 100;
    const double pearson = 100 * cli_pearson(t->similarity, s->score, s->n);
    if (isfinite(v->score + pearson))
        snprintf(v->log, sizeof v->log, ", \"spearman\": %.4f, \"pearson\": %.4f", v->score, pearson);
    snprintf(v->shown, sizeof v->shown, ", on validation Spearman %.2f, Pearson %.2f", v->score, pearson);
    return CLI_DONE;
}

static int fail_unscored(const void *training)
{
    (void)training;
    return cli_fail("%s: no validation has a correlation: similarities or scores are all the same", valid_path);
}

/* ---- the run */

static void report(const void *training, const att_training_info *i)
{
    const embed_training *t = training;
    cli_rows_describe(&t->pairs);
    if (i->truncated > 0)
        fprintf(stderr, "%lld of %lld rows have a sentence that is longer than the model takes, and is truncated\n",
                (long long)i->truncated, (long long)i->examples);
}

/* Refuses options for another loss, and batches that are too small. */
static int check_rows(const cli_rows *r)
{
    const bool ranking = r->loss == ATT_SENTENCE_LOSS_MULTIPLE_NEGATIVES_RANKING,
               triplet = r->loss == ATT_SENTENCE_LOSS_TRIPLET;
    if (scale != 20 && !ranking)
        return cli_misuse("--scale %g is for --loss mnr, but here the loss is another", scale);
    if (margin > 0 && !triplet)
        return cli_misuse("--margin %g is for --loss triplet, but here the loss is another", margin);
    if (distance && !triplet)
        return cli_misuse("--distance cosine is for --loss triplet, but here the loss is another");
    if (ranking && r->columns == 2 && embed.common.options.batch == 1)
        return cli_misuse("--batch 1 with --loss mnr: the negatives of a pair are the other pairs of its batch, which "
                          "must have 2 or more");
    return CLI_DONE;
}

static int read_pairs(void *training)
{
    embed_training *t = training;
    const cli_rows_options o = {.format = format, .loss = loss, .highest = highest, .skip = skip_bad_lines};
    int code = cli_rows_read(&t->pairs, pairs_path, &o);
    if (!code)
        code = check_rows(&t->pairs);
    if (!code && valid_path)
        code =
            cli_scored_read(&t->valid, valid_path,
                            &(const cli_pairs_options){.format = format, .highest = highest, .skip = skip_bad_lines});
    t->common.evaluation_id = cli_scored_checksum(&t->valid);
    t->common.validates = t->common.has_base = valid_path != NULL;
    t->common.batches = (t->pairs.n + t->common.options.batch - 1) / t->common.options.batch;
    return code;
}

static int allocate_validation(embed_training *t)
{
    att_sentence_info info = {.size = sizeof info};
    int code = cli_status(t->common.ctx, att_sentence_describe(att_training_sentence(t->common.training), &info));
    t->dim = info.dim;
    t->measure = info.similarity;
    t->similarity = malloc((size_t)t->valid.n * sizeof *t->similarity);
    t->vectors = malloc(2 * (size_t)(t->valid.n * t->dim) * sizeof *t->vectors);
    if (!code && (!t->similarity || !t->vectors))
        code = cli_fail_memory();
    return code;
}

static int open_training(void *training, const att_training_options *common)
{
    embed_training *t = training;
    const cli_training_options *o = &t->common.options;
    int code = cli_training_find_model(&t->common, ATT_SUBJECT_SENTENCE, &model_name);
    if (code)
        return code;
    const att_sentence_training_options *all =
        ATT_OPTIONS(att_sentence_training_options, .model = model_name, .pairs = t->pairs.n, .texts = t->pairs.text,
                    .bytes = t->pairs.bytes, .scores = t->pairs.score, .loss = t->pairs.loss,
                    .columns = t->pairs.columns, .labels = t->pairs.label, .classes = t->pairs.classes, .scale = scale,
                    .margin = margin, .distance = (att_sentence_distance)distance, .batch = o->batch);
    code = cli_training_status(t->common.ctx,
                               att_sentence_training_open(t->common.ctx, o->folder, common, all, &t->common.training));
    return code || !valid_path ? code : allocate_validation(t);
}

static void close_training(void *training)
{
    embed_training *t = training;
    cli_rows_free(&t->pairs);
    cli_scored_free(&t->valid);
    free(t->similarity);
    free(t->vectors);
}

static const char *const may_change[] = {"format", NULL};
static const char *const same_files[] = {"model", "pairs", "valid", NULL};
static const cli_trainer trainer = {
    .command = "embed",
    .validation = "--valid FILE",
    .score = "spearman",
    .measure = "Spearman",
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

static int complete(bool *given) { return cli_training_complete(&embed.common, &trainer, given); }

static int run(int n, char **arguments)
{
    (void)n, (void)arguments;
    return cli_training_run(&embed.common);
}

const cli_command cli_train_embed = {
    .name = "embed",
    .summary = "fine-tune a sentence model on pairs, triplets, scores or labels",
    .details = "Fine-tunes a model with AdamW (Sentence-BERT; Reimers, Gurevych 2019). The loss\n"
               "follows from the columns of --pairs, or is chosen by --loss:\n\n"
               "  text, text         mnr: multiple negatives ranking; the others of a\n"
               "                     batch are the negatives\n"
               "  text, text, text   mnr with hard negatives (third and more), or\n"
               "                     with --loss triplet anchor, positive, negative\n"
               "  text, text, score  cosine: cosine similarity approaches the score\n"
               "  text, text, label  softmax: a classifier of (u, v, |u - v|), which is\n"
               "                     in the checkpoints and not in the model\n\n"
               "They equal the losses of sentence-transformers. With mnr no text occurs twice in\n"
               "a batch. The result is a sentence-transformers folder: with --valid the model\n"
               "with the highest Spearman correlation, otherwise that of the last step.\n\n" CLI_TRAINING_DETAILS,
    .examples = "attend train embed -m all-MiniLM-L6-v2 --pairs stsb-en-train.csv "
                "--valid stsb-en-dev.csv -o stsb\n"
                "attend train embed -m all-MiniLM-L6-v2 --pairs question-answer.tsv.gz "
                "--loss mnr --batch 64 -o questions\n"
                "attend similarity -m stsb --pairs stsb-en-dev.csv --gold > scores.txt",
    .options = options,
    .see = "embed|similarity|plot",
    .complete = complete,
    .run = run,
};
