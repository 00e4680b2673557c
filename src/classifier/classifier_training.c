/* Trains a text classifier: makes batches of rows of texts, and computes the loss of each. */
#include "classifier/classifier_loss.h"
#include "classifier/training_pairs.h"
#include "io/check_texts.h"
#include "model/checksum.h"
#include "model/class_names.h"
#include "text/utf8.h"
#include "train/distinct_batches.h"
#include "train/shuffle.h"
#include "train/training.h"
#include "util/util.h"

#include <stddef.h>
#include <string.h>

enum { MAX_COLUMNS = 256, MAX_NUMBER = 1000000, MAX_LABELS = 4096 };

typedef struct classifier_data {
    att_training_base base;
    att_text_classifier *model;
    att_text_classifier_training_options options;
    att_training_pairs pairs;
    float *score;                  /* [rows]; or NULL */
    int32_t *label;                /* [rows]: the model's; or NULL */
    uint32_t *order;               /* [rows], in the order of batches */
    uint32_t *first;               /* [rows + 1]: of each batch, in order; NULL: all have options.batch rows */
    att_distinct_batches distinct; /* for the ranking loss */
    uint64_t start, sum;           /* checksums of the initial weights and of the data */
    float *scores;                 /* [batch]: of the current one */
    int32_t *labels;               /* [batch]; for the ranking loss 0 */
} classifier_data;

static bool is_ranking(const classifier_data *t)
{
    return t->options.loss == ATT_TEXT_CLASSIFIER_LOSS_MULTIPLE_NEGATIVES_RANKING;
}

static bool is_labeled(const classifier_data *t) { return t->options.loss == ATT_TEXT_CLASSIFIER_LOSS_CROSS_ENTROPY; }

static bool is_scored(const classifier_data *t) { return !is_ranking(t) && !is_labeled(t); }

/* ---- the model */

/* Finds the number that the model has for each class -> own [classes]; false: it has others. */
static bool find_classes(const att_text_classifier_config *c, const att_text_classifier_training_options *o,
                         int32_t *own)
{
    for (int64_t i = 0; i < o->classes; i++) {
        const int64_t found = o->names ? att_class_names_find(o->names[i], c->name, c->head.labels, i) : i;
        if (found >= c->head.labels)
            return false;
        own[i] = (int32_t)found;
    }
    return c->head.labels == o->classes;
}

/* Opens the folder with the labels of the training. If it has these labels, it keeps its classifier. */
static att_status open_model(classifier_data *t)
{
    const att_text_classifier_training_options *o = &t->options;
    att_ctx *ctx = t->base.ctx;
    const att_trainable_options how = att_training_trainable(&t->base);
    att_text_labels labels = {.size = sizeof labels, .n = 1, .seed = t->base.common.seed};
    att_text_classifier_config c;
    if (is_labeled(t)) {
        att_status e = att_text_classifier_config_read(ctx, o->model, &c);
        int32_t *own = e ? NULL : att_alloc(ctx, (size_t)o->classes, sizeof *own);
        labels.n = o->classes;
        if (own && !(att_is_sequence_classification(c.class) && find_classes(&c, o, own)))
            labels.names = o->names;
        att_free(ctx, own);
        if (!e)
            att_text_classifier_config_free(ctx, &c);
        if (e || !own)
            return e ? e : ATT_ERR_MEMORY;
    }
    const att_status e = att_text_classifier_new(ctx, o->model, &labels, &how, &t->model);
    if (!e && t->model->config.relabeled && o->loss == ATT_TEXT_CLASSIFIER_LOSS_MEAN_SQUARED_ERROR)
        t->model->config.activation = o->activation;
    return e;
}

static att_status check_model(classifier_data *t)
{
    const att_text_classifier_config *c = &t->model->config;
    const int64_t labels = is_labeled(t) ? t->options.classes : 1;
    att_text_classifier_training_options *o = &t->options;
    if (c->head.labels != labels)
        return att_fail(t->base.ctx, ATT_ERR_ARGUMENT, "the model has %lld labels, but this loss needs %lld",
                        (long long)c->head.labels, (long long)labels);
    if (o->max_tokens > c->max_tokens)
        return att_fail(t->base.ctx, ATT_ERR_ARGUMENT, "options.max_tokens is %lld, but the model has %lld",
                        (long long)o->max_tokens, (long long)c->max_tokens);
    o->max_tokens = o->max_tokens ? o->max_tokens : c->max_tokens;
    return ATT_OK;
}

/* ---- opening */

static att_status allocate(classifier_data *t)
{
    const int64_t rows = t->options.rows, batch = t->options.batch;
    att_ctx *ctx = t->base.ctx;
    t->order = att_calloc(ctx, (size_t)rows, sizeof *t->order);
    t->score = is_scored(t) ? att_calloc(ctx, (size_t)rows, sizeof *t->score) : NULL;
    t->label = is_labeled(t) ? att_calloc(ctx, (size_t)rows, sizeof *t->label) : NULL;
    t->first = is_ranking(t) ? att_calloc(ctx, (size_t)rows + 1, sizeof *t->first) : NULL;
    t->scores = att_calloc(ctx, (size_t)batch, sizeof *t->scores);
    t->labels = att_calloc(ctx, (size_t)batch, sizeof *t->labels);
    return t->order && t->scores && t->labels && (t->score || !is_scored(t)) && (t->label || !is_labeled(t)) &&
                   (t->first || !is_ranking(t))
               ? ATT_OK
               : ATT_ERR_MEMORY;
}

static att_status read_labels(classifier_data *t)
{
    const att_text_classifier_training_options *o = &t->options;
    int32_t *own = att_alloc(t->base.ctx, (size_t)o->classes, sizeof *own);
    if (!own)
        return ATT_ERR_MEMORY;
    const bool found = find_classes(&t->model->config, o, own);
    for (int64_t i = 0; found && i < o->rows; i++)
        t->label[i] = own[o->labels[i]];
    att_free(t->base.ctx, own);
    return found ? ATT_OK
                 : att_fail(t->base.ctx, ATT_ERR_ARGUMENT,
                            "options.names are not the labels of the model, as \"%.40s\"", t->model->config.name[0]);
}

static att_status read_targets(classifier_data *t)
{
    const att_text_classifier_training_options *o = &t->options;
    for (int64_t i = 0; t->score && i < o->rows; i++)
        t->score[i] = (float)o->scores[i];
    const att_status e = t->label ? read_labels(t) : ATT_OK;
    t->sum = att_fnv64_words(t->pairs.sum, t->score, t->score ? o->rows : 0);
    t->sum = att_fnv64_words(t->sum, t->label, t->label ? o->rows : 0);
    return e;
}

static att_status begin_epoch(void *self, int64_t number, int64_t *batches)
{
    classifier_data *t = self;
    const int64_t n = t->options.rows;
    att_permutation(t->base.common.seed, 0, number, n, t->order);
    *batches = t->first ? att_distinct_batches_split(&t->distinct, t->options.batch, t->order, t->first)
                        : att_ceil_div(n, t->options.batch);
    return ATT_OK;
}

/* Prepares the ranking loss: numbers the texts, and checks that the first batch can be filled. */
static att_status prepare_ranking(classifier_data *t)
{
    const att_text_classifier_training_options *o = &t->options;
    int64_t batches;
    att_status e = att_distinct_batches_make(t->base.ctx, o->texts, o->bytes, o->rows, o->columns, &t->distinct);
    e = e ? e : begin_epoch(t, 0, &batches);
    return e || t->first[1] == o->batch ? e : att_distinct_batches_refuse(t->base.ctx, o->batch, t->first[1]);
}

static att_status prepare(classifier_data *t)
{
    const att_text_classifier_training_options *o = &t->options;
    att_status e = check_model(t);
    e = e ? e : allocate(t);
    t->start = att_model_checksum(t->start, &t->model->encoder->model);
    t->pairs = (att_training_pairs){.model = t->model,
                                    .rows = o->rows,
                                    .columns = o->columns,
                                    .batch = o->batch,
                                    .negatives = o->negatives,
                                    .max_tokens = o->max_tokens,
                                    .ranking = is_ranking(t)};
    e = e ? e : att_training_pairs_open(&t->pairs, o->texts, o->bytes);
    e = e ? e : read_targets(t);
    return e || !is_ranking(t) ? e : prepare_ranking(t);
}

static att_status open_data(void *self, const char *folder, bool resume)
{
    classifier_data *t = self;
    (void)resume;
    att_status e = folder ? att_training_other_folder(t->base.ctx, folder, t->options.model) : ATT_OK;
    if (!e && folder)
        e = open_model(t);
    e = e ? e : prepare(t);
    t->options.texts = NULL; /* they belong to the caller and are not used any more */
    t->options.bytes = NULL;
    t->options.scores = NULL;
    t->options.labels = NULL;
    t->options.names = NULL;
    return e;
}

static void free_data(void *self)
{
    classifier_data *t = self;
    void *const all[] = {t->score, t->label, t->order, t->first, t->scores, t->labels};
    att_training_pairs_free(&t->pairs);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        att_free(t->base.ctx, all[i]);
    att_distinct_batches_free(&t->distinct);
    if (!t->base.in_memory)
        att_text_classifier_free(t->model);
}

/* ---- training */

static att_param *param(const void *self, int64_t i, const char **name)
{
    return att_nn_params_at(att_text_classifier_params(((const classifier_data *)self)->model), i, name);
}

static int64_t first_row(const classifier_data *t, int64_t batch)
{
    return t->first ? t->first[batch] : att_min(batch * t->options.batch, t->options.rows);
}

static int64_t rows(const void *self, int64_t batch) { return first_row(self, batch + 1) - first_row(self, batch); }

static att_var *loss(void *self, att_tape *tape, const att_training_rows *rows, att_training_part *sum)
{
    classifier_data *t = self;
    att_training_pairs *p = &t->pairs;
    const int64_t n = rows->last - rows->first;
    const uint32_t *order = t->order + first_row(t, rows->batch) + rows->first;
    const att_status e = att_training_pairs_gather(p, order, n, rows->seed);
    if (e)
        return att_tape_fail(tape, e, "%s", att_error(t->base.ctx));
    for (int64_t k = 0; k < n; k++) {
        t->scores[k] = t->score ? t->score[order[k]] : 0;
        t->labels[k] = t->label ? t->label[order[k]] : 0;
    }
    sum->targets += n;
    sum->examples += n;
    sum->sources += p->offsets[n * p->candidates];
    const att_text_classifier_input in = {.ids = p->ids,
                                          .type_ids = att_text_classifier_has_types(t->model) ? p->type_ids : NULL,
                                          .head = {.offsets = p->offsets,
                                                   .n = n * p->candidates,
                                                   .dropout = true,
                                                   .seed = rows->seed,
                                                   .sequence_ids = p->sequence_ids,
                                                   .rows = p->counting}};
    const att_text_classifier_target target = {.loss = t->options.loss,
                                               .activation = t->options.activation,
                                               .scale = (float)t->options.scale,
                                               .n = n,
                                               .candidates = p->candidates,
                                               .scores = t->scores,
                                               .labels = t->labels};
    return att_text_classifier_loss_apply(tape, att_text_classifier_logits(tape, t->model, &in), &target);
}

static const att_training_coupling *coupling(const void *self)
{
    static const att_training_coupling ranking = {
        .what = "the multiple negatives ranking loss pairs each text with those of the whole batch",
        .instead = "take binary cross entropy, cross entropy or the squared error"};
    return is_ranking(self) ? &ranking : NULL;
}

/* ---- saving */

static void settings(const void *self, att_fields *fields)
{
    static const char *const names[] = {"binary-cross-entropy", "cross-entropy", "multiple-negatives-ranking",
                                        "mean-squared-error"};
    const classifier_data *t = self;
    const att_text_classifier_training_options *o = &t->options;
    att_fields_text(fields, "loss", names[o->loss]);
    att_fields_int(fields, "columns", o->columns);
    att_fields_int(fields, "classes", o->classes);
    att_fields_int(fields, "negatives", o->negatives);
    att_fields_double(fields, "scale", o->scale);
    att_fields_int(fields, "activation", o->activation);
    att_fields_int(fields, "max_tokens", o->max_tokens);
    att_fields_int(fields, "rows", o->rows);
    att_fields_int(fields, "batch_rows", o->batch);
    att_fields_int(fields, "texts", (int64_t)t->sum)->sum_of = "texts, scores or labels";
    att_fields_int(fields, "model", (int64_t)t->start)->sum_of = "weights of the pre-trained model";
}

static void describe(const void *self, att_training_info *info)
{
    const classifier_data *t = self;
    info->examples = t->options.rows;
    info->truncated = t->pairs.truncated;
    info->vocabulary = att_tokenizer_size(t->model->tokenizer);
}

static att_status write_model(const void *self, const char *folder, att_dtype dtype)
{
    return att_text_classifier_write(((const classifier_data *)self)->model, folder, dtype);
}

/* ---- options */

static att_status check_loss(const classifier_data *t)
{
    const att_text_classifier_training_options *o = &t->options;
    att_ctx *ctx = t->base.ctx;
    const int64_t min = is_ranking(t) ? 2 : 1, max = is_ranking(t) ? MAX_COLUMNS : 2;
    if (o->columns < min || o->columns > max)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "options.columns is %lld, but this loss has rows of %lld to %lld texts",
                        (long long)o->columns, (long long)min, (long long)max);
    if (is_scored(t) && !o->scores)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "options.scores is NULL");
    if (is_labeled(t) && !o->labels)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "options.labels is NULL");
    if (is_labeled(t) && (o->classes < 2 || o->classes > MAX_LABELS))
        return att_fail(ctx, ATT_ERR_ARGUMENT, "options.classes is %lld, expected 2 to %d", (long long)o->classes,
                        MAX_LABELS);
    if (!(o->scale >= 0 && o->scale <= MAX_NUMBER))
        return att_fail(ctx, ATT_ERR_ARGUMENT, "options.scale is %g, expected 0 to 1e6", o->scale);
    if (o->activation != ATT_TEXT_ACTIVATION_IDENTITY && o->activation != ATT_TEXT_ACTIVATION_SIGMOID)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "options.activation is %d, neither the identity nor the sigmoid",
                        (int)o->activation);
    if (is_ranking(t) && o->columns == 2 && att_min(o->batch, o->rows) < 2)
        return att_fail(ctx, ATT_ERR_ARGUMENT,
                        "a batch of one pair has no negatives, which are the texts of other pairs: it needs 2 or more");
    return is_labeled(t) && o->names ? att_class_names_check(ctx, "options.names", o->names, o->classes) : ATT_OK;
}

static att_status check_targets(const classifier_data *t)
{
    const att_text_classifier_training_options *o = &t->options;
    const bool binary = o->loss == ATT_TEXT_CLASSIFIER_LOSS_BINARY_CROSS_ENTROPY;
    const double limit = binary ? 1 : MAX_NUMBER;
    for (int64_t i = 0; is_scored(t) && i < o->rows; i++)
        if (!(o->scores[i] >= (binary ? 0 : -limit) && o->scores[i] <= limit))
            return att_fail(t->base.ctx, ATT_ERR_ARGUMENT, "options.scores[%lld] is %g, which is not from %g to %g",
                            (long long)i, o->scores[i], binary ? 0 : -limit, limit);
    for (int64_t i = 0; is_labeled(t) && i < o->rows; i++)
        if (o->labels[i] < 0 || o->labels[i] >= o->classes)
            return att_fail(t->base.ctx, ATT_ERR_ARGUMENT,
                            "options.labels[%lld] is %d, not one of %lld classes, from 0", (long long)i,
                            (int)o->labels[i], (long long)o->classes);
    return ATT_OK;
}

static att_status check(const classifier_data *t)
{
    const att_text_classifier_training_options *o = &t->options;
    att_ctx *ctx = t->base.ctx;
    const att_folder_option of_folders[] = {{"model", o->model != NULL}};
    const att_training_option numbers[] = {{"batch", (double)o->batch, INT32_MAX},
                                           {"negatives", (double)o->negatives, INT32_MAX},
                                           {"max_tokens", (double)o->max_tokens, INT32_MAX}};
    if (!t->base.in_memory && !o->model)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "options.model is NULL");
    if (att_training_check_in_memory(&t->base, of_folders, 1) || att_training_check_options(ctx, numbers, 3))
        return ATT_ERR_ARGUMENT;
    if (o->rows < 1)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "options.rows is %lld, expected 1 or more", (long long)o->rows);
    if (check_loss(t))
        return ATT_ERR_ARGUMENT;
    if (o->rows > INT32_MAX / o->columns)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "options.rows is %lld, more than 2^31 texts", (long long)o->rows);
    if (att_check_texts(ctx, "options.texts", o->texts, o->columns * o->rows) || check_targets(t))
        return ATT_ERR_ARGUMENT;
    for (int64_t i = 0; i < o->columns * o->rows; i++)
        if (!att_utf8_valid(o->texts[i], o->bytes ? o->bytes[i] : strlen(o->texts[i])))
            return att_fail(ctx, ATT_ERR_ARGUMENT, "options.texts[%lld] is not UTF-8", (long long)i);
    return ATT_OK;
}

static att_status configure(void *self)
{
    classifier_data *t = self;
    att_text_classifier_training_options *o = &t->options;
    if ((unsigned)o->loss > ATT_TEXT_CLASSIFIER_LOSS_MEAN_SQUARED_ERROR)
        return att_fail(t->base.ctx, ATT_ERR_ARGUMENT, "options.loss is %d, which is not an att_text_classifier_loss",
                        (int)o->loss);
    o->batch = att_min(o->batch ? o->batch : 16, att_max(o->rows, 1));
    o->columns = o->columns ? o->columns : 2;
    o->negatives = o->negatives ? o->negatives : 4;
    o->scale = o->scale != 0 ? o->scale : 10;
    if (!o->activation)
        o->activation = is_ranking(t) ? ATT_TEXT_ACTIVATION_SIGMOID : ATT_TEXT_ACTIVATION_IDENTITY;
    return check(t);
}

static const att_training_kind kind = {.name = "text classifiers",
                                       .bytes = sizeof(classifier_data),
                                       .options = "att_text_classifier_training_options",
                                       .options_bytes = sizeof(att_text_classifier_training_options),
                                       .options_at = offsetof(classifier_data, options),
                                       .configure = configure,
                                       .open = open_data,
                                       .param = param,
                                       .begin_epoch = begin_epoch,
                                       .coupling = coupling,
                                       .rows = rows,
                                       .loss = loss,
                                       .settings = settings,
                                       .write = write_model,
                                       .describe = describe,
                                       .free = free_data};

/* ---- construction */

att_status att_text_classifier_training_new(att_text_classifier *m, const att_training_options *common,
                                            const att_text_classifier_training_options *options, att_training **out)
{
    return att_training_new(__func__, &kind, m ? &m->model : NULL, &(const classifier_data){.model = m}, common,
                            options, out);
}

att_status att_text_classifier_training_open(att_ctx *ctx, const char *folder, const att_training_options *common,
                                             const att_text_classifier_training_options *options, att_training **out)
{
    return att_training_open(__func__, &kind, ctx, folder, common, options, out);
}

const att_text_classifier *att_training_text_classifier(const att_training *t)
{
    const classifier_data *self = att_training_self(t, &kind);
    return self ? self->model : NULL;
}
