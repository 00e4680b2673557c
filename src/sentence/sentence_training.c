/* Trains a sentence embedding model (Reimers, Gurevych 2019): makes batches of rows of texts, and computes the loss of
 * each. */
#include "io/check_texts.h"
#include "util/util.h"
#include "model/checksum.h"
#include "sentence/sentence.h"
#include "text/utf8.h"
#include "train/distinct_batches.h"
#include "train/shuffle.h"
#include "sentence/sentence_loss.h"
#include "train/training.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

enum { MAX_COLUMNS = 256, MAX_NUMBER = 1000000 };

typedef struct sentence_data {
    att_training_base base;
    att_sentence *model;
    att_sentence_training_options options;
    att_sentence_loss_config loss;
    att_nn_params *head;           /* of the classifier; or NULL */
    att_tokens *tokens;            /* [n, columns] */
    float *score;                  /* [n]; or NULL */
    int32_t *label;                /* [n]; or NULL */
    uint32_t *order;               /* [n]: rows, in the order of batches */
    uint32_t *first;               /* [n + 1]: of each batch, in order; NULL: all have options.batch rows */
    att_distinct_batches distinct; /* of the ranking loss */
    int64_t truncated;             /* rows with a truncated text */
    int64_t longest;               /* tokens of a text */
    uint64_t start, texts;         /* checksums of the initial weights and of the data */
    /* The current batch: its first texts, then its second ones, ... */
    int32_t *ids;
    int64_t *offsets;       /* [columns batch + 1] */
    int64_t *counting;      /* [columns batch + 1]: 0, 1, 2 ... */
    uint32_t *sequence_ids; /* [columns batch] */
    float *target;          /* [batch] -score */
    int32_t *class;         /* [batch] labels, or 0, 1, 2 ... */
} sentence_data;

/* ---- opening */

static size_t text_bytes(const att_sentence_training_options *o, int64_t i)
{
    return o->bytes ? o->bytes[i] : strlen(o->texts[i]);
}

static att_status read_texts(sentence_data *t)
{
    const att_sentence_training_options *o = &t->options;
    const att_status e = att_sentence_tokenize(t->model, o->pairs * o->columns, o->texts, o->bytes, "", t->tokens);
    for (int64_t i = 0; !e && i < o->pairs; i++) {
        bool truncated = false;
        for (int64_t k = i * o->columns; k < (i + 1) * o->columns; k++) {
            t->texts = att_fnv64_words(t->texts, t->tokens[k].ids, t->tokens[k].count);
            t->longest = att_max(t->longest, t->tokens[k].count);
            truncated |= t->tokens[k].truncated;
        }
        t->truncated += truncated;
    }
    return e;
}

static void read_targets(sentence_data *t)
{
    const att_sentence_training_options *o = &t->options;
    for (int64_t i = 0; t->score && i < o->pairs; i++)
        t->score[i] = (float)o->scores[i];
    for (int64_t i = 0; t->label && i < o->pairs; i++)
        t->label[i] = o->labels[i];
    t->texts = att_fnv64_words(t->texts, t->score, t->score ? o->pairs : 0);
    t->texts = att_fnv64_words(t->texts, t->label, t->label ? o->pairs : 0);
}

/* Returns an array [n] of elements of `size` bytes if the loss needs it. *ok becomes false if out of memory. */
static void *array(const sentence_data *t, bool needed, int64_t n, size_t size, bool *ok)
{
    void *x = needed && *ok ? att_calloc(t->base.ctx, (size_t)n, size) : NULL;
    *ok &= !needed || x;
    return x;
}

static att_status allocate(sentence_data *t)
{
    const att_sentence_training_options *o = &t->options;
    const int64_t n = o->pairs, batch = o->batch, texts = o->columns * batch;
    const bool scored = o->loss == ATT_SENTENCE_LOSS_COSINE_SIMILARITY,
               ranking = o->loss == ATT_SENTENCE_LOSS_MULTIPLE_NEGATIVES_RANKING,
               labeled = o->loss == ATT_SENTENCE_LOSS_SOFTMAX;
    bool ok = true;
    t->tokens = array(t, true, o->columns * n, sizeof *t->tokens, &ok);
    t->score = array(t, scored, n, sizeof *t->score, &ok);
    t->label = array(t, labeled, n, sizeof *t->label, &ok);
    t->order = array(t, true, n, sizeof *t->order, &ok);
    t->first = array(t, ranking, n + 1, sizeof *t->first, &ok);
    t->offsets = array(t, true, texts + 1, sizeof *t->offsets, &ok);
    t->counting = array(t, true, texts + 1, sizeof *t->counting, &ok);
    t->sequence_ids = array(t, true, texts, sizeof *t->sequence_ids, &ok);
    t->target = array(t, scored, batch, sizeof *t->target, &ok);
    t->class = array(t, ranking || labeled, batch, sizeof *t->class, &ok);
    for (int64_t i = 0; ok && i <= texts; i++)
        t->counting[i] = i;
    return ok ? ATT_OK : ATT_ERR_MEMORY;
}

static att_status begin_epoch(void *self, int64_t number, int64_t *batches)
{
    sentence_data *t = self;
    const int64_t n = t->options.pairs;
    att_permutation(t->base.common.seed, 0, number, n, t->order);
    *batches = t->first ? att_distinct_batches_split(&t->distinct, t->options.batch, t->order, t->first)
                        : att_ceil_div(n, t->options.batch);
    return ATT_OK;
}

/* Prepares the ranking loss: numbers the texts, and checks that the first batch can be filled. */
static att_status prepare_ranking(sentence_data *t)
{
    const att_sentence_training_options *o = &t->options;
    int64_t batches;
    att_status e = att_distinct_batches_make(t->base.ctx, o->texts, o->bytes, o->pairs, o->columns, &t->distinct);
    e = e ? e : begin_epoch(t, 0, &batches);
    for (int64_t i = 0; i < o->batch; i++)
        t->class[i] = (int32_t)i;
    return e || t->first[1] == o->batch ? e : att_distinct_batches_refuse(t->base.ctx, o->batch, t->first[1]);
}

/* Makes the classifier of the softmax loss. */
static att_status make_classifier(sentence_data *t)
{
    const att_nn_params_config c = {.size = sizeof c, .seed = t->base.common.seed};
    att_status e = att_nn_params_new(t->base.ctx, &c, &t->head);
    if (e)
        return e;
    t->loss.classifier = att_nn_linear_new(t->head, "classifier", 3 * t->model->modules.dim, t->options.classes, NULL);
    return att_nn_params_status(t->head);
}

static att_status prepare(sentence_data *t)
{
    att_status e = allocate(t);
    t->start = att_model_checksum(t->start, t->model->backbone.model);
    e = e ? e : read_texts(t);
    if (!e) {
        bool ok = true;
        read_targets(t);
        t->ids = array(t, true, t->options.columns * t->options.batch * att_max(t->longest, 1), sizeof *t->ids, &ok);
        e = ok ? ATT_OK : ATT_ERR_MEMORY;
    }
    if (!e && t->options.loss == ATT_SENTENCE_LOSS_MULTIPLE_NEGATIVES_RANKING)
        e = prepare_ranking(t);
    if (!e && t->options.loss == ATT_SENTENCE_LOSS_SOFTMAX)
        e = make_classifier(t);
    return e;
}

static att_status open_data(void *self, const char *folder, bool resume)
{
    sentence_data *t = self;
    (void)resume;
    const att_trainable_options how = att_training_trainable(&t->base);
    att_status e = folder ? att_training_other_folder(t->base.ctx, folder, t->options.model) : ATT_OK;
    if (!e && folder)
        e = att_sentence_open_for_training(t->base.ctx, t->options.model, &how, &t->model);
    e = e ? e : prepare(t);
    t->options.texts = NULL; /* they belong to the caller and are not used any more */
    t->options.bytes = NULL;
    t->options.scores = NULL;
    t->options.labels = NULL;
    return e;
}

static void free_data(void *self)
{
    sentence_data *t = self;
    for (int64_t i = 0; t->tokens && i < t->options.columns * t->options.pairs; i++)
        att_tokens_free(t->base.ctx, &t->tokens[i]);
    void *const all[] = {t->tokens,  t->score,        t->label,  t->order, t->first,   t->ids,
                         t->offsets, t->sequence_ids, t->target, t->class, t->counting};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        att_free(t->base.ctx, all[i]);
    att_distinct_batches_free(&t->distinct);
    att_nn_params_free(t->head);
    if (!t->base.in_memory)
        att_sentence_free(t->model);
}

/* ---- training */

/* Returns parameter i: those of the model come first, then those of the classifier, "classifier.weight" and
 * "classifier.bias". */
static att_param *param(const void *self, int64_t i, const char **name)
{
    const sentence_data *t = self;
    const att_nn_params *p = att_sentence_params(t->model);
    const int64_t n = att_nn_params_count(p);
    return i < n || !t->head ? att_nn_params_at(p, i, name) : att_nn_params_at(t->head, i - n, name);
}

/* Appends text `which` of each of n rows to the batch, from index i. */
static void gather_column(sentence_data *t, const uint32_t *rows, int64_t n, int64_t which, int64_t i)
{
    for (int64_t k = 0; k < n; k++, i++) {
        const int64_t text = t->options.columns * (int64_t)rows[k] + which;
        const att_tokens *x = &t->tokens[text];
        memcpy(t->ids + t->offsets[i], x->ids, (size_t)x->count * sizeof *x->ids);
        t->offsets[i + 1] = t->offsets[i] + x->count;
        t->sequence_ids[i] = (uint32_t)text;
    }
}

/* Gathers n rows: their texts, scores and labels. */
static void gather(sentence_data *t, const uint32_t *rows, int64_t n)
{
    t->offsets[0] = 0;
    for (int64_t i = 0; i < t->options.columns; i++)
        gather_column(t, rows, n, i, i * n);
    for (int64_t k = 0; t->score && k < n; k++)
        t->target[k] = -t->score[rows[k]];
    for (int64_t k = 0; t->label && k < n; k++)
        t->class[k] = t->label[rows[k]];
}

static int64_t first_row(const sentence_data *t, int64_t batch)
{
    return t->first ? t->first[batch] : att_min(batch * t->options.batch, t->options.pairs);
}

static int64_t rows(const void *self, int64_t batch) { return first_row(self, batch + 1) - first_row(self, batch); }

static att_var *loss(void *self, att_tape *tape, const att_training_rows *rows, att_training_part *sum)
{
    sentence_data *t = self;
    const int64_t n = rows->last - rows->first, texts = t->options.columns * n;
    gather(t, t->order + first_row(t, rows->batch) + rows->first, n);
    sum->targets += n;
    sum->examples += n;
    sum->sources += t->offsets[texts];

    const att_texts_dropout dropout = {.seed = rows->seed, .sequence_ids = t->sequence_ids, .rows = t->counting};
    const att_texts batch = {.ids = t->ids, .offsets = t->offsets, .n = texts, .dropout = &dropout};
    att_var *x = att_sentence_apply(tape, t->model, &batch);
    if (!t->model->modules.normalized && att_sentence_loss_is_cosine(&t->loss))
        x = att_normalize(tape, x, 1e-12f);
    const att_sentence_batch b = {.x = x,
                                  .n = n,
                                  .columns = t->options.columns,
                                  .negative_score = t->target,
                                  .labels = t->class,
                                  .counting = t->class};
    return att_sentence_loss_apply(tape, &t->loss, &b);
}

static const att_training_coupling *coupling(const void *self)
{
    static const att_training_coupling ranking = {
        .what = "the multiple negatives ranking loss compares each text with those of the whole batch",
        .instead = "take the loss cosine, triplet or softmax"};
    const bool couples = ((const sentence_data *)self)->options.loss == ATT_SENTENCE_LOSS_MULTIPLE_NEGATIVES_RANKING;
    return couples ? &ranking : NULL;
}

/* ---- saving */

static void settings(const void *self, att_fields *fields)
{
    static const char *const names[] = {"cosine", "multiple-negatives-ranking", "triplet", "softmax"};
    const sentence_data *t = self;
    const int64_t n = fields->n;
    att_fields_text(fields, "loss", names[t->options.loss]);
    att_fields_int(fields, "columns", t->options.columns);
    att_fields_int(fields, "classes", t->options.classes);
    att_fields_int(fields, "distance", t->options.distance);
    att_fields_double(fields, "scale", (double)t->loss.scale);
    att_fields_double(fields, "margin", (double)t->loss.margin);
    for (int64_t i = n; i < fields->n; i++)
        fields->field[i].optional = true; /* version 0.2.0 did not write these; "texts" distinguishes losses */
    att_fields_int(fields, "pairs", t->options.pairs);
    att_fields_int(fields, "batch_pairs", t->options.batch);
    att_fields_int(fields, "texts", (int64_t)t->texts)->sum_of = "texts or scores";
    att_fields_int(fields, "model", (int64_t)t->start)->sum_of = "weights of the pre-trained model";
}

static void describe(const void *self, att_training_info *info)
{
    const sentence_data *t = self;
    info->examples = t->options.pairs;
    info->truncated = t->truncated;
    info->vocabulary = att_tokenizer_size(t->model->backbone.tokenizer);
}

static att_status write_model(const void *self, const char *folder, att_dtype dtype)
{
    return att_sentence_write(((const sentence_data *)self)->model, folder, dtype);
}

/* ---- options */

/* Checks the data that each loss needs. */
static att_status check_loss(att_ctx *ctx, const att_sentence_training_options *o)
{
    const bool ranking = o->loss == ATT_SENTENCE_LOSS_MULTIPLE_NEGATIVES_RANKING;
    if ((unsigned)o->loss > ATT_SENTENCE_LOSS_SOFTMAX)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "options.loss is %d, which is not an att_sentence_loss", (int)o->loss);
    if ((unsigned)o->distance > ATT_SENTENCE_DISTANCE_COSINE)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "options.distance is %d, which is not an att_sentence_distance",
                        (int)o->distance);
    const int64_t columns = o->loss == ATT_SENTENCE_LOSS_TRIPLET ? 3 : 2;
    if (ranking ? o->columns < 2 || o->columns > MAX_COLUMNS : o->columns != columns)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "options.columns is %lld, but this loss has rows of %lld texts%s",
                        (long long)o->columns, (long long)columns, ranking ? " or more, up to 256" : "");
    if (o->loss == ATT_SENTENCE_LOSS_COSINE_SIMILARITY && !o->scores)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "options.scores is NULL");
    if (o->loss == ATT_SENTENCE_LOSS_SOFTMAX && !o->labels)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "options.labels is NULL");
    if (o->loss == ATT_SENTENCE_LOSS_SOFTMAX && (o->classes < 2 || o->classes > INT32_MAX))
        return att_fail(ctx, ATT_ERR_ARGUMENT, "options.classes is %lld, expected 2 or more", (long long)o->classes);
    if (!(o->scale >= 0 && o->scale <= MAX_NUMBER) || !(o->margin >= 0 && o->margin <= MAX_NUMBER))
        return att_fail(ctx, ATT_ERR_ARGUMENT, "options.scale is %g and options.margin %g, expected 0 to 1e6", o->scale,
                        o->margin);
    if (ranking && o->columns == 2 && att_min(o->batch, o->pairs) < 2)
        return att_fail(ctx, ATT_ERR_ARGUMENT,
                        "a batch of one pair has no negatives, which are the texts of other pairs: it needs 2 or more");
    return ATT_OK;
}

static att_status check_targets(att_ctx *ctx, const att_sentence_training_options *o)
{
    for (int64_t i = 0; o->loss == ATT_SENTENCE_LOSS_COSINE_SIMILARITY && i < o->pairs; i++)
        if (!(o->scores[i] >= -1 && o->scores[i] <= 1))
            return att_fail(ctx, ATT_ERR_ARGUMENT, "options.scores[%lld] is %g, which is not a cosine, from -1 to 1",
                            (long long)i, o->scores[i]);
    for (int64_t i = 0; o->loss == ATT_SENTENCE_LOSS_SOFTMAX && i < o->pairs; i++)
        if (o->labels[i] < 0 || o->labels[i] >= o->classes)
            return att_fail(ctx, ATT_ERR_ARGUMENT, "options.labels[%lld] is %d, not one of %lld classes, from 0",
                            (long long)i, (int)o->labels[i], (long long)o->classes);
    return ATT_OK;
}

static att_status check(const att_training_base *b, const att_sentence_training_options *o)
{
    att_ctx *ctx = b->ctx;
    const att_folder_option of_folders[] = {{"model", o->model != NULL}};
    if (!b->in_memory && !o->model)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "options.model is NULL");
    if (att_training_check_in_memory(b, of_folders, 1))
        return ATT_ERR_ARGUMENT;
    if (o->batch < 0)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "options.batch is %lld", (long long)o->batch);
    if (o->pairs < 1)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "options.pairs is %lld, expected 1 or more", (long long)o->pairs);
    if (check_loss(ctx, o))
        return ATT_ERR_ARGUMENT;
    if (o->pairs > INT32_MAX / o->columns)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "options.pairs is %lld, more than 2^31 texts", (long long)o->pairs);
    if (att_check_texts(ctx, "options.texts", o->texts, o->columns * o->pairs) || check_targets(ctx, o))
        return ATT_ERR_ARGUMENT;
    for (int64_t i = 0; i < o->columns * o->pairs; i++)
        if (!att_utf8_valid(o->texts[i], text_bytes(o, i)))
            return att_fail(ctx, ATT_ERR_ARGUMENT, "options.texts[%lld] is not UTF-8", (long long)i);
    return ATT_OK;
}

/* Replaces options that are 0 by their defaults. */
static void complete(att_sentence_training_options *o)
{
    const bool cosine = o->distance == ATT_SENTENCE_DISTANCE_COSINE;
    o->batch = att_min(o->batch ? o->batch : 16, att_max(o->pairs, 1));
    o->columns = o->columns ? o->columns : o->loss == ATT_SENTENCE_LOSS_TRIPLET ? 3 : 2;
    o->scale = o->scale != 0 ? o->scale : 20;
    o->margin = o->margin != 0 ? o->margin : cosine ? 0.5 : 5;
}

static att_status configure(void *self)
{
    sentence_data *t = self;
    const att_sentence_training_options *o = &t->options;
    complete(&t->options);
    t->loss = (att_sentence_loss_config){
        .loss = o->loss, .distance = o->distance, .scale = (float)o->scale, .margin = (float)o->margin};
    return check(&t->base, o);
}

static const att_training_kind kind = {.name = "sentence models",
                                       .bytes = sizeof(sentence_data),
                                       .options = "att_sentence_training_options",
                                       .options_bytes = sizeof(att_sentence_training_options),
                                       .options_at = offsetof(sentence_data, options),
                                       .configure = configure,
                                       .open = open_data,
                                       .param = param,
                                       .own = "classifier.",
                                       .begin_epoch = begin_epoch,
                                       .coupling = coupling,
                                       .rows = rows,
                                       .loss = loss,
                                       .settings = settings,
                                       .write = write_model,
                                       .describe = describe,
                                       .free = free_data};

/* ---- construction */

att_status att_sentence_training_new(att_sentence *m, const att_training_options *common,
                                     const att_sentence_training_options *options, att_training **out)
{
    return att_training_new(__func__, &kind, m ? &m->model : NULL, &(const sentence_data){.model = m}, common, options,
                            out);
}

att_status att_sentence_training_open(att_ctx *ctx, const char *folder, const att_training_options *common,
                                      const att_sentence_training_options *options, att_training **out)
{
    return att_training_open(__func__, &kind, ctx, folder, common, options, out);
}

const att_sentence *att_training_sentence(const att_training *t)
{
    const sentence_data *self = att_training_self(t, &kind);
    return self ? self->model : NULL;
}
