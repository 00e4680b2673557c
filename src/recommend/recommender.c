/* Opens, makes and writes recommenders and their items. */
#include "recommend/counting.h"
#include "io/atomic_write.h"
#include "io/file_source.h"
#include "io/install.h"
#include "util/shape.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* ---- parts of every model */

static void configure(att_model *base, att_settings *s)
{
    att_recommender *m = (att_recommender *)base;
    att_recommender_config_read(s, &m->config, &m->architecture);
}

/* Reads the counts of a file, which need not have any. */
static att_status read_counts(att_recommender *m)
{
    const att_checkpoint *c = m->model.checkpoint;
    const int64_t items = m->config.info.items;
    att_tensor v;
    if (!c || !att_checkpoint_has(c, "counts"))
        return ATT_OK;
    const att_status e = att_safetensors_get(c->file[0].data, "counts", &v);
    if (e)
        return e;
    if (v.dtype != ATT_I64 || v.rank != 1 || v.dim[0] != items)
        return att_fail(m->model.ctx, ATT_ERR_FORMAT, "%s: tensor \"counts\" is not an i64 [%lld]", c->path,
                        (long long)items);
    const int64_t *counts = v.data;
    for (int64_t i = 0; i < items; i++)
        if (counts[i] < 0)
            return att_fail(m->model.ctx, ATT_ERR_FORMAT, "%s: the count of item %lld is %lld", c->path, (long long)i,
                            (long long)counts[i]);
    m->counts = att_alloc(m->model.ctx, (size_t)items, sizeof *m->counts);
    if (m->counts)
        memcpy(m->counts, counts, (size_t)items * sizeof *counts);
    return m->counts ? ATT_OK : ATT_ERR_MEMORY;
}

/* Reads the content as f32. */
static att_status read_content(att_recommender *m)
{
    if (!m->content)
        return ATT_OK;
    m->content_value = *att_param_value(m->content);
    if (m->content_value.dtype == ATT_F32)
        return ATT_OK;
    const int64_t *dim = m->content_value.dim;
    att_tensor floats;
    m->content_data = att_alloc(m->model.ctx, (size_t)(dim[0] * dim[1]), sizeof *m->content_data);
    if (!m->content_data)
        return ATT_ERR_MEMORY;
    att_wrap(&floats, m->content_data, ATT_F32, 2, dim, NULL);
    const att_status e = att_tensor_convert(m->model.ctx, &m->content_value, &floats);
    m->content_value = floats;
    return e;
}

/* Reads what a model that counts has besides parameters. */
static att_status read_counting(att_recommender *m)
{
    const att_counting_kind *k = m->architecture->counting;
    if (!m->counts)
        return att_fail(m->model.ctx, ATT_ERR_FORMAT, "%s: has no tensor \"counts\"", m->model.checkpoint->path);
    return k->read ? k->read(m) : ATT_OK;
}

static att_status build(att_model *base)
{
    att_recommender *m = (att_recommender *)base;
    att_ids_init(&m->ids, base->ctx);
    att_status e = att_dropout_plans_new(base->ctx, &m->plans);
    if (e)
        return e;
    if (m->architecture->build)
        m->architecture->build(m);
    e = att_nn_params_status(base->params);
    e = e ? e : read_content(m);
    e = e ? e : read_counts(m);
    return e || !base->checkpoint || !m->architecture->counting ? e : read_counting(m);
}

static void free_members(att_model *base)
{
    att_recommender *m = (att_recommender *)base;
    att_dropout_plans_free(m->plans);
    att_ids_free(&m->ids);
    att_param_free(m->table);
    att_free(base->ctx, m->table_data);
    att_free(base->ctx, m->without.items);
    att_free(base->ctx, m->content_data);
    att_free(base->ctx, m->counts);
    att_free(base->ctx, m->neighbors.first);
    att_free(base->ctx, m->neighbors.item);
    att_free(base->ctx, m->neighbors.similarity);
}

static const char *const unused[] = {"counts", "neighbors.", NULL};
const att_model_kind att_recommender_kind = {.bytes = sizeof(att_recommender),
                                             .types = &att_recommender_types,
                                             .configure = configure,
                                             .build = build,
                                             .prefix = "",
                                             .unused = unused,
                                             .free = free_members};

/* ---- open, make, free */

/* The way in which a model is opened. */
typedef struct opening {
    att_ctx *ctx;
    const char *caller;
    const att_model_options *options;          /* or NULL */
    const att_trainable_options *for_training; /* or NULL */
    bool trainable;
} opening;

static att_status open_once(const opening *o, const char *folder, att_recommender **out)
{
    att_status e = o->trainable ? att_model_open_for_training(o->ctx, o->caller, &att_recommender_kind, folder,
                                                              o->for_training, out)
                                : att_model_open(o->ctx, o->caller, &att_recommender_kind, folder, o->options, out);
    if (e)
        return e;
    att_recommender *m = *out;
    e = o->trainable ? att_counting_refuse(m, o->caller, "weights that are trained") : ATT_OK;
    e = e ? e : att_item_ids_read(&m->ids, folder, m->config.info.items);
    e = e || o->trainable ? e : att_recommender_make_table(m);
    e = e ? e : att_recommender_prepare(m);
    if (e) {
        att_recommender_free(m);
        *out = NULL;
    }
    return e;
}

/* Returns the identity of FOLDER/SUB/model.safetensors on the disk; zeros: it does not exist. */
static struct stat weights_of(const char *folder, const char *sub)
{
    char path[ATT_MAX_PATH];
    struct stat is, none = {0};
    const bool fits = snprintf(path, sizeof path, "%s%s/model.safetensors", folder, sub) < (int)sizeof path;
    return fits && !att_file_source_given() && stat(path, &is) == 0 ? is : none;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Opens a recommender. Other files of a model change only while it has no weights (see io/install.h); then the initial
 * model of the training is opened, if there is one. If the weights were replaced in the meantime, everything is opened
 * again. */
static att_status open_recommender(const opening *o, const char *folder, att_recommender **out)
{
    enum { TRIALS = 5 };
    static const struct stat none = {0};
    if (!folder || !out)
        return open_once(o, folder, out);
    att_status e = ATT_OK;
    for (int i = 0; i < TRIALS; i++) {
        char base[ATT_MAX_PATH];
        const struct stat before = weights_of(folder, ""), of_base = weights_of(folder, "/base");
        const bool uses_base = same_file(&before, &none) && !same_file(&of_base, &none) &&
                               snprintf(base, sizeof base, "%s/base", folder) < (int)sizeof base;
        e = open_once(o, uses_base ? base : folder, out);
        const struct stat after = weights_of(folder, "");
        if (uses_base || same_file(&before, &after) || i == TRIALS - 1)
            break;
        att_recommender_free(*out);
    }
    return e;
}

att_status att_recommender_open(att_ctx *ctx, const char *folder, const att_model_options *options,
                                att_recommender **out)
{
    att_file_source files;
    if (out)
        *out = NULL;
    att_status e = att_file_source_begin(&files, folder, options);
    e = e ? e : open_recommender(&(opening){.ctx = ctx, .caller = __func__, .options = options}, folder, out);
    att_file_source_end(&files);
    return e;
}

att_status att_recommender_open_for_training(att_ctx *ctx, const char *folder, const att_trainable_options *options,
                                             att_recommender **out)
{
    return open_recommender(&(opening){.ctx = ctx, .caller = __func__, .for_training = options, .trainable = true},
                            folder, out);
}

att_status att_recommender_make(att_ctx *ctx, const char *settings, int64_t items, int64_t content_width, uint64_t seed,
                                att_recommender **out)
{
    att_settings s;
    att_recommender_settings(&s, ctx, settings, items, content_width);
    const att_status e = s.status ? s.status : att_model_new(ctx, &att_recommender_kind, &s, seed, out);
    att_settings_close(&s);
    return e;
}

att_status att_recommender_new(att_ctx *ctx, const char *settings, int64_t n_items, const char *const *items,
                               const att_item_content *content, uint64_t seed, att_recommender **out)
{
    att_item_content c;
    att_recommender *m = NULL;
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"settings", settings}, {"items", items}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    if (n_items < 1 || n_items > ATT_MAX_ITEMS)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "n_items is %lld, expected 1 to %d", (long long)n_items, ATT_MAX_ITEMS);
    att_status e = att_item_content_read(ctx, content, n_items, &c);
    if (e)
        return e;
    e = att_recommender_make(ctx, settings, n_items, c.add ? c.width : 0, seed, &m);
    if (!e && m->architecture->counting)
        e = att_fail(ctx, ATT_ERR_ARGUMENT, "%s counts the actions of a log: att_recommender_fit", m->config.info.type);
    e = e ? e : att_item_ids_add(&m->ids, items, n_items);
    e = e ? e : att_recommender_set_content(m, 0, n_items, &c);
    if (e)
        att_recommender_free(m);
    else
        *out = m;
    return e;
}

void att_recommender_free(att_recommender *m) { att_model_free(m); }

/* ---- what a model has */

att_status att_recommender_weights(const att_recommender *m, att_model_weights *weights)
{
    att_status e = att_require(__func__, ATT_NAMED({"m", m}, {"weights", weights})) ? ATT_ERR_ARGUMENT : ATT_OK;
    if (e)
        return e;
    att_model_weights all = {.size = sizeof all};
    att_model_weights_add(&m->model, &all);
    all.packed += (int64_t)att_param_copies(m->table);
    all.own += m->table_data ? att_elements(att_param_value(m->table)) * (int64_t)sizeof(float) : 0;
    return att_info_write(weights, &all, sizeof all, "att_model_weights");
}

att_status att_recommender_describe(const att_recommender *m, att_recommender_info *info)
{
    if (att_require(__func__, ATT_NAMED({"m", m}, {"info", info})))
        return ATT_ERR_ARGUMENT;
    return att_info_write(info, &m->config.info, sizeof m->config.info, "att_recommender_info");
}

const char *att_recommender_item(const att_recommender *m, int64_t item)
{
    return m ? att_ids_at(&m->ids, item) : NULL;
}

int64_t att_recommender_find_item(const att_recommender *m, const char *id)
{
    return m && id ? att_ids_find(&m->ids, (att_byte_view){id, strlen(id)}) : -1;
}

const att_nn_params *att_recommender_params(const att_recommender *m) { return att_model_params(m ? &m->model : NULL); }

static att_status check_trainable(const att_recommender *m, const char *function)
{
    return m->model.trainable
               ? ATT_OK
               : att_fail(m->model.ctx, ATT_ERR_ARGUMENT,
                          "%s: the model is not trainable: it comes from att_recommender_open", function);
}

att_status att_recommender_set_counts(att_recommender *m, const int64_t *counts)
{
    if (att_require(__func__, ATT_NAMED({"m", m}, {"counts", counts})))
        return ATT_ERR_ARGUMENT;
    const int64_t items = m->config.info.items;
    for (int64_t i = 0; i < items; i++)
        if (counts[i] < 0)
            return att_fail(m->model.ctx, ATT_ERR_ARGUMENT, "counts[%lld] is %lld, less than 0", (long long)i,
                            (long long)counts[i]);
    if (!m->counts)
        m->counts = att_alloc(m->model.ctx, (size_t)items, sizeof *m->counts);
    if (!m->counts)
        return ATT_ERR_MEMORY;
    memcpy(m->counts, counts, (size_t)items * sizeof *counts);
    return ATT_OK;
}

/* ---- further items */

/* Copies rows [from, from + n) of f to rows [to, to + n) of t, which is f32. */
static att_status copy_rows(att_ctx *ctx, att_tensor t, int64_t to, att_tensor f, int64_t from, int64_t n)
{
    t.data = (float *)t.data + to * t.stride[0];
    f.data = (char *)f.data + att_dtype_bytes(f.dtype, from * f.stride[0]);
    t.dim[0] = f.dim[0] = n;
    return n > 0 ? att_tensor_convert(ctx, &f, &t) : ATT_OK;
}

/* Copies parameter `from`, which may have fewer rows, to `to`. The mask of a table remains its last row. */
static att_status copy_param(att_ctx *ctx, att_param *to, const att_param *from, bool mask)
{
    const att_tensor *t = att_param_value(to), *f = att_param_value(from);
    const int64_t rows = f->dim[0], moved = t->dim[0] > rows && mask;
    att_status e = copy_rows(ctx, *t, 0, *f, 0, rows - moved);
    e = e ? e : copy_rows(ctx, *t, t->dim[0] - 1, *f, rows - 1, moved);
    att_param_set_frozen(to, att_param_frozen(from));
    att_param_invalidate(to);
    return e;
}

/* Copies the trained parameters of `from` to a model that has further items. */
static att_status inherit(att_recommender *m, const att_recommender *from)
{
    const char *name;
    att_status e = att_item_ids_copy(&m->ids, &from->ids);
    m->model.options.compute = from->model.options.compute;
    for (int64_t i = 0; !e && i < att_nn_params_count(att_recommender_params(from)); i++) {
        const att_param *p = att_nn_params_at(att_recommender_params(from), i, &name);
        e = copy_param(m->model.ctx, att_nn_params_find(m->model.params, name), p, m->architecture->mask);
    }
    if (e || !from->counts)
        return e;
    m->counts = att_calloc(m->model.ctx, (size_t)m->config.info.items, sizeof *m->counts);
    if (m->counts)
        memcpy(m->counts, from->counts, (size_t)from->config.info.items * sizeof *m->counts);
    return m->counts ? ATT_OK : ATT_ERR_MEMORY;
}

static att_status check_content(const att_recommender *m, const att_item_content *c)
{
    const int64_t needed = m->config.info.content_width, given = c->add ? c->width : 0;
    return needed == given ? ATT_OK
                           : att_fail(m->model.ctx, ATT_ERR_ARGUMENT,
                                      "the model adds content of width %lld, but that of the new items has %lld%s",
                                      (long long)needed, (long long)given, c->add ? "" : " to be added");
}

att_status att_recommender_add_items(att_recommender *m, int64_t n_items, const char *const *items,
                                     const att_item_content *content, uint64_t seed)
{
    att_item_content c;
    att_settings s;
    att_recommender *more = NULL;
    if (att_require(__func__, ATT_NAMED({"m", m}, {"items", items})))
        return ATT_ERR_ARGUMENT;
    att_ctx *ctx = m->model.ctx;
    const int64_t had = m->config.info.items;
    att_status e = check_trainable(m, __func__);
    e = e ? e : att_counting_refuse(m, __func__, "vectors of items");
    if (!e && m->trainings > 0)
        e = att_fail(ctx, ATT_ERR_ARGUMENT,
                     "a training of the model is open, whose parameters would be freed: end it before "
                     "(att_training_free)");
    if (!e && (n_items < 0 || n_items > ATT_MAX_ITEMS - had))
        e = att_fail(ctx, ATT_ERR_ARGUMENT, "n_items is %lld, but the model has %lld and may have %d",
                     (long long)n_items, (long long)had, ATT_MAX_ITEMS);
    if (e || n_items == 0)
        return e;
    e = att_item_content_read(ctx, content, n_items, &c);
    e = e ? e : check_content(m, &c);
    if (e)
        return e;
    att_recommender_config larger = m->config;
    larger.info.items += n_items;
    att_settings_from_json(&s, ctx, "the model's settings", att_recommender_config_json(&larger));
    e = s.status ? s.status : att_model_new(ctx, &att_recommender_kind, &s, seed, &more);
    att_settings_close(&s);
    e = e ? e : inherit(more, m);
    e = e ? e : att_item_ids_add(&more->ids, items, n_items);
    e = e ? e : att_recommender_set_content(more, had, n_items, &c);
    if (!e) { /* the caller's struct gets the larger model */
        const att_recommender was = *m;
        *m = *more;
        *more = was;
    }
    att_recommender_free(more);
    return e;
}

/* ---- writing */

att_status att_recommender_write_files(const att_recommender *m, const char *folder, att_dtype dtype)
{
    enum { TENSORS = 4 };
    const char *names[TENSORS] = {"counts"};
    att_tensor tensors[TENSORS];
    att_ctx *ctx = m->model.ctx;
    const att_counting_kind *k = m->architecture->counting;
    att_status e = att_make_folder(ctx, folder);
    e = e ? e : att_item_ids_write(&m->ids, folder);
    e = e ? e : att_settings_write(ctx, folder, "config.json", att_recommender_config_json(&m->config));
    if (!e && m->counts)
        e = att_wrap(&tensors[0], m->counts, ATT_I64, 1, &m->config.info.items, NULL);
    int n = m->counts != NULL;
    if (!e && k && k->tensors)
        n += k->tensors(m, names + n, tensors + n);
    return e ? e : att_model_write(&m->model, folder, dtype, NULL, NULL, n, names, tensors);
}

att_status att_recommender_write(const att_recommender *m, const char *folder, att_dtype dtype)
{
    char path[ATT_MAX_PATH];
    int file;
    if (att_require(__func__, ATT_NAMED({"m", m}, {"folder", folder})))
        return ATT_ERR_ARGUMENT;
    att_status e = check_trainable(m, __func__);
    e = e ? e : att_make_folder(m->model.ctx, folder);
    e = e ? e : att_install_begin(m->model.ctx, folder, path, &file);
    return e ? e : att_install_end(m->model.ctx, folder, file, att_recommender_write_files(m, path, dtype));
}
