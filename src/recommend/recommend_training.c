/* Trains a recommender from histories (Kang, McAuley 2018; Sun et al. 2019) by the mean loss per position. */
#include "util/util.h"
#include "model/checksum.h"
#include "recommend/counting.h"
#include "recommend/recommend_batches.h"
#include "recommend/recommend_loss.h"
#include "train/training.h"

#include <stddef.h>
#include <string.h>

enum { MAX_NEGATIVES = 1 << 16, MAX_BATCH = 1 << 20 };

typedef struct recommender_data {
    att_training_base base;
    att_recommender *model;
    att_recommender_training_options options;
    att_interactions_info log;
    att_item_loss_config loss;
    att_history_batches *batches;
    uint64_t start, histories; /* checksums of the initial model and of the data */
} recommender_data;

static const att_interactions *log_of(const recommender_data *t) { return att_holdout_log(t->options.data); }

/* ---- the model */

/* Returns the ids of the log's items from `first` on; NULL: out of memory. */
static const char **item_ids(const recommender_data *t, int64_t first)
{
    const char **ids = att_alloc(t->base.ctx, (size_t)(t->log.items - first), sizeof *ids);
    for (int64_t i = first; ids && i < t->log.items; i++)
        ids[i - first] = att_interactions_item(log_of(t), i);
    return ids;
}

/* Makes a model for the log's items. */
static att_status make_model(recommender_data *t)
{
    const char **ids = item_ids(t, 0);
    const att_status e = ids ? att_recommender_new(t->base.ctx, t->options.settings, t->log.items, ids,
                                                   t->options.content, t->base.common.seed, &t->model)
                             : ATT_ERR_MEMORY;
    att_free(t->base.ctx, ids);
    if (!e)
        t->model->model.options.compute = t->base.common.compute;
    return e;
}

/* Matches items. The model's items must be the first ones of the log. in_folder: the model gets the log's other
 * items. */
static att_status match_items(recommender_data *t, bool in_folder)
{
    const int64_t items = t->model->config.info.items;
    const char *const problem = t->log.items < items ? "less than the model's" : "more than the model's";
    if (t->log.items < items || (t->log.items > items && !in_folder))
        return att_fail(t->base.ctx, ATT_ERR_ARGUMENT, "options.data has %lld items, %s %lld: %s",
                        (long long)t->log.items, problem, (long long)items,
                        t->log.items < items ? "read the log with the model's items first "
                                               "(att_interactions_options.items)"
                                             : "add them to the model (att_recommender_add_items)");
    for (int64_t i = 0; i < items; i++)
        if (strcmp(att_interactions_item(log_of(t), i), att_recommender_item(t->model, i)) != 0)
            return att_fail(t->base.ctx, ATT_ERR_ARGUMENT,
                            "item %lld of options.data is \"%.80s\", but the model's is \"%.80s\": read the log with "
                            "the model's items first (att_interactions_options.items)",
                            (long long)i, att_interactions_item(log_of(t), i), att_recommender_item(t->model, i));
    return ATT_OK;
}

static att_status open_model(recommender_data *t)
{
    const att_trainable_options how = att_training_trainable(&t->base);
    att_status e = att_recommender_open_for_training(t->base.ctx, t->options.model, &how, &t->model);
    e = e ? e : match_items(t, true);
    if (e)
        return e;
    const int64_t items = t->model->config.info.items;
    const char **ids = item_ids(t, items);
    e = ids ? att_recommender_add_items(t->model, t->log.items - items, ids, t->options.content, t->base.common.seed)
            : ATT_ERR_MEMORY;
    att_free(t->base.ctx, ids);
    return e;
}

/* ---- opening */

/* Computes checksums of settings and weights, and of items and histories. */
static att_status sum_up(recommender_data *t)
{
    const att_status e = att_settings_checksum(t->base.ctx, att_recommender_config_json(&t->model->config), &t->start);
    t->start = att_model_checksum(t->start, &t->model->model);
    t->histories = att_history_batches_sum(t->batches);
    for (int64_t i = 0; i < t->log.items; i++)
        t->histories = att_fnv64_text(t->histories, att_interactions_item(log_of(t), i));
    return e;
}

static att_status make_batches(recommender_data *t)
{
    const att_recommender_training_options *o = &t->options;
    const att_history_source source = {.data = o->data,
                                       .users = t->log.users,
                                       .items = t->log.items,
                                       .max = t->model->config.info.max_positions,
                                       .negatives = t->loss.negatives,
                                       .drawn = t->loss.classes.items,
                                       .n_drawn = t->loss.classes.n,
                                       .batch = o->batch,
                                       .masked = t->model->architecture->mask,
                                       .mask_share = o->mask_share,
                                       .last_mask_share = o->last_mask_share,
                                       .with_replacement = o->with_replacement,
                                       .seed = t->base.common.seed};
    return att_history_batches_new(t->base.ctx, &source, &t->batches);
}

/* Completes the options that depend on the model and its items. */
static att_status complete(recommender_data *t)
{
    att_recommender_training_options *o = &t->options;
    const int64_t others = t->loss.classes.n - 1;
    if (!t->model->architecture->mask && (o->mask_share > 0 || o->last_mask_share > 0))
        return att_fail(t->base.ctx, ATT_ERR_ARGUMENT, "options.%s is %g, but the model is %s, which masks no items",
                        o->mask_share > 0 ? "mask_share" : "last_mask_share",
                        o->mask_share > 0 ? o->mask_share : o->last_mask_share, t->model->config.info.type);
    o->mask_share = o->mask_share > 0 ? o->mask_share : 0.2;
    if (o->loss == ATT_ITEM_LOSS_SOFTMAX)
        return ATT_OK;
    const int64_t usual = o->loss == ATT_ITEM_LOSS_BINARY ? 1 : att_max(1, att_min(256, others));
    t->loss.negatives = o->negatives ? o->negatives : usual;
    if (o->loss != ATT_ITEM_LOSS_GBCE)
        return ATT_OK;
    if (t->loss.negatives > others)
        return att_fail(t->base.ctx, ATT_ERR_ARGUMENT,
                        "options.negatives is %lld, but of gBCE it can be at most the number of other items, %lld: set "
                        "it to that or less, or to 0 for the default",
                        (long long)t->loss.negatives, (long long)others);
    t->loss.beta = att_gbce_beta(o->calibration, t->loss.negatives, others + 1);
    return ATT_OK;
}

static att_status open_data(void *self, const char *folder, bool resume)
{
    recommender_data *t = self;
    const att_recommender_training_options *o = &t->options;
    (void)resume;
    att_status e = folder && o->model ? att_training_other_folder(t->base.ctx, folder, o->model) : ATT_OK;
    if (!e && folder)
        e = o->settings ? make_model(t) : open_model(t);
    e = e ? e : match_items(t, false);
    e = e ? e : att_item_softmax_classes_find(t->model, o->data->counts, &t->loss.classes);
    e = e ? e : complete(t);
    e = e ? e : make_batches(t);
    e = e ? e : att_recommender_set_counts(t->model, o->data->counts);
    e = e ? e : sum_up(t);
    t->options.settings = t->options.model = NULL; /* they belong to the caller and are not used any more */
    t->options.content = NULL;
    return e;
}

static void free_data(void *self)
{
    recommender_data *t = self;
    att_history_batches_free(t->batches);
    att_item_softmax_classes_free(t->base.ctx, &t->loss.classes);
    if (t->base.in_memory)
        t->model->trainings--;
    else
        att_recommender_free(t->model);
}

/* ---- training */

/* Returns trained parameter i. Content is not trained. */
static att_param *param(const void *self, int64_t i, const char **name)
{
    const att_recommender *m = ((const recommender_data *)self)->model;
    const att_param *p;
    for (int64_t k = 0; m->content && k <= i && (p = att_nn_params_at(att_recommender_params(m), k, name)); k++)
        i += p == m->content;
    return att_nn_params_at(att_recommender_params(m), i, name);
}

static att_status begin_epoch(void *self, int64_t number, int64_t *batches)
{
    recommender_data *t = self;
    *batches = att_history_batches_begin(t->batches, number);
    return ATT_OK;
}

static int64_t rows(const void *self, int64_t batch)
{
    return att_history_batches_size(((const recommender_data *)self)->batches, batch);
}

static att_var *loss(void *self, att_tape *tape, const att_training_rows *rows, att_training_part *sum)
{
    recommender_data *t = self;
    const att_history_batch *b;
    const att_status e = att_history_batches_get(t->batches, rows->batch, rows->first, rows->last, &b);
    if (e)
        return att_tape_fail(tape, e, "%s", att_error(t->base.ctx));
    const att_recommender_options o = {
        .size = sizeof o, .dropout = t->options.dropout, .seed = rows->seed, .sequence_ids = b->sequence_ids};
    const att_item_targets targets = {b->positions, b->targets, b->candidates};
    sum->targets += b->positions;
    sum->examples += b->n;
    sum->sources += b->offsets[b->n];
    att_var *x = att_recommender_apply(tape, t->model, b->items, b->offsets, b->n, &o);
    if (b->positions < b->offsets[b->n])
        x = att_gather(tape, x, b->rows, b->positions);
    return att_item_loss_apply(tape, t->model, &t->loss, x, &targets);
}

/* ---- saving */

static void settings(const void *self, att_fields *fields)
{
    static const char *const names[] = {"softmax", "sampled-softmax", "binary", "gbce"};
    const recommender_data *t = self;
    const att_recommender_training_options *o = &t->options;
    att_fields_text(fields, "loss", names[o->loss]);
    att_fields_int(fields, "negatives", t->loss.negatives);
    att_fields_double(fields, "calibration", o->calibration);
    att_fields_int(fields, "batch_histories", o->batch);
    att_fields_int(fields, "with_replacement", o->with_replacement);
    att_fields_double(fields, "mask_share", o->mask_share);
    att_fields_double(fields, "last_mask_share", o->last_mask_share);
    att_fields_int(fields, "histories", (int64_t)t->histories)->sum_of = "items or histories";
    att_fields_int(fields, "model", (int64_t)t->start)->sum_of = "settings, weights or content at the start";
    att_fields_double(fields, "dropout", (double)o->dropout);
}

static void describe(const void *self, att_training_info *info)
{
    const recommender_data *t = self;
    info->examples = att_history_batches_count(t->batches);
    info->vocabulary = t->log.items;
}

static att_status write_model(const void *self, const char *folder, att_dtype dtype)
{
    return att_recommender_write_files(((const recommender_data *)self)->model, folder, dtype);
}

/* ---- options */

static att_status check(const recommender_data *t)
{
    const att_recommender_training_options *o = &t->options;
    att_ctx *ctx = t->base.ctx;
    const att_training_option numbers[] = {
        {"batch", (double)o->batch, MAX_BATCH},     {"negatives", (double)o->negatives, MAX_NEGATIVES},
        {"calibration", o->calibration, 1},         {"mask_share", o->mask_share, 1},
        {"last_mask_share", o->last_mask_share, 1}, {"dropout", (double)o->dropout, ATT_BELOW_1}};
    const att_folder_option of_folders[] = {{"content", o->content != NULL}};
    if (!o->data)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "options.data is NULL");
    if ((unsigned)o->loss > ATT_ITEM_LOSS_GBCE)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "options.loss is %d, which is not an att_item_loss", (int)o->loss);
    att_status e = att_training_check_options(ctx, numbers, sizeof numbers / sizeof numbers[0]);
    if (!e && o->loss == ATT_ITEM_LOSS_SOFTMAX && o->negatives)
        e = att_fail(ctx, ATT_ERR_ARGUMENT,
                     "options.negatives is %lld, but the softmax over all items, options.loss, has none",
                     (long long)o->negatives);
    if (!e && o->loss != ATT_ITEM_LOSS_GBCE && o->calibration > 0)
        e = att_fail(ctx, ATT_ERR_ARGUMENT, "options.calibration is %g, but options.loss is not gBCE", o->calibration);
    e = !e && t->base.in_memory
            ? att_counting_refuse(t->model, "att_recommender_training_new", "weights that are trained")
            : e;
    e = e ? e : att_training_check_start(&t->base, o->settings, o->model);
    return e ? e : att_training_check_in_memory(&t->base, of_folders, 1);
}

static att_status configure(void *self)
{
    recommender_data *t = self;
    att_status e = check(t);
    t->log.size = sizeof t->log;
    e = e ? e : att_interactions_describe(log_of(t), &t->log);
    if (e)
        return e;
    t->options.batch = t->options.batch ? t->options.batch : 128;
    t->loss.loss = t->options.loss;
    if (t->base.in_memory)
        t->model->trainings++; /* until free_data */
    return ATT_OK;
}

static const att_training_kind kind = {.name = "recommenders",
                                       .bytes = sizeof(recommender_data),
                                       .options = "att_recommender_training_options",
                                       .options_bytes = sizeof(att_recommender_training_options),
                                       .options_at = offsetof(recommender_data, options),
                                       .configure = configure,
                                       .open = open_data,
                                       .param = param,
                                       .begin_epoch = begin_epoch,
                                       .rows = rows,
                                       .loss = loss,
                                       .settings = settings,
                                       .write = write_model,
                                       .describe = describe,
                                       .free = free_data};

/* ---- construction */

att_status att_recommender_training_new(att_recommender *m, const att_training_options *common,
                                        const att_recommender_training_options *options, att_training **out)
{
    return att_training_new(__func__, &kind, m ? &m->model : NULL, &(const recommender_data){.model = m}, common,
                            options, out);
}

att_status att_recommender_training_open(att_ctx *ctx, const char *folder, const att_training_options *common,
                                         const att_recommender_training_options *options, att_training **out)
{
    return att_training_open(__func__, &kind, ctx, folder, common, options, out);
}

const att_recommender *att_training_recommender(const att_training *t)
{
    const recommender_data *self = att_training_self(t, &kind);
    return self ? self->model : NULL;
}
