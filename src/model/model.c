#include "model/model.h"
#include "io/dtype_range.h"
#include "io/file_source.h"
#include "util/shape.h"

#include <math.h>
#include <string.h>

/* Initializes a parameter of a new model: matrices uniformly in +-sqrt(6 / (in + out)) (Glorot, Bengio 2010),
 * convolutions normally by their inputs (He et al. 2015), biases with 0. */
static att_status initialize(void *user, const char *name, const att_init *init, const att_tensor *value)
{
    const att_model *m = user;
    const int last = value->rank - 1;
    att_init ours = {.size = sizeof ours};
    if (value->rank == 4)
        ours.kind = ATT_INIT_KAIMING_NORMAL;
    else if (last > 0) {
        ours.kind = ATT_INIT_XAVIER_UNIFORM;
        ours.fan_in = value->dim[last];
        ours.fan_out = value->dim[last - 1];
    }
    const bool chosen =
        init->kind == ATT_INIT_CONSTANT || init->kind == ATT_INIT_NORMAL || init->kind == ATT_INIT_TRUNCATED_NORMAL;
    return att_initialize(m->ctx, value, chosen ? init : &ours, m->seed, name);
}

/* ---- weights in another type than the file's */

static const att_dtype dtype_of[] = {[ATT_WEIGHT_TYPE_F32] = ATT_F32,
                                     [ATT_WEIGHT_TYPE_F16] = ATT_F16,
                                     [ATT_WEIGHT_TYPE_BF16] = ATT_BF16,
                                     [ATT_WEIGHT_TYPE_INT8] = ATT_Q8_0,
                                     [ATT_WEIGHT_TYPE_INT4] = ATT_Q4_0};

static att_status load_stored(att_model *m, const char *name, int rank, const int64_t *dim, att_tensor *out)
{
    return m->kind->load_parameter ? m->kind->load_parameter(m, name, rank, dim, out)
                                   : att_checkpoint_load(m->checkpoint, name, rank, dim, out);
}

/* Returns the type of a parameter: that of the options for a matrix, quantized only if its rows consist of whole
 * blocks. */
static att_dtype wanted_type(const att_model *m, const char *name, const att_tensor *stored)
{
    const bool stays = m->kind->unconverted && !strcmp(name, m->kind->unconverted);
    const att_dtype dtype = m->options.weights && !stays ? dtype_of[m->options.weights] : stored->dtype;
    const bool in_blocks = stored->rank == 2 && stored->dim[1] % 32 == 0;
    return stored->rank == 2 && (in_blocks || att_dtype_size(dtype) > 0) ? dtype : stored->dtype;
}

/* Returns whether parameters are copies of what the model has read, so that it does not need its files any more. */
static bool owns_parameters(const att_model *m) { return m->options.copy && m->options.weights; }

/* Allocates memory of the model for a parameter. */
static att_status own_memory(att_model *m, att_dtype dtype, int rank, const int64_t *dim, int64_t n, att_tensor *out)
{
    void *memory = att_nn_params_alloc(m->params, (size_t)att_dtype_bytes(dtype, n));
    return memory ? att_wrap(out, memory, dtype, rank, dim, NULL) : att_nn_params_status(m->params);
}

static bool is_fresh(const att_model *m, const char *name)
{
    return m->change && m->change->fresh && m->change->fresh(m, name, m->change->user);
}

static bool is_weight_of_norm(const char *name)
{
    const char *end = "norm.weight";
    const size_t n = strlen(name), bytes = strlen(end);
    return n >= bytes && !strcmp(name + n - bytes, end);
}

/* Makes a parameter that is not loaded, with the default initialization of a new model. */
static att_status make_fresh(att_model *m, const char *name, int rank, const int64_t *dim, att_tensor *out)
{
    const att_init ones = {.size = sizeof ones, .value = 1},
                   by_shape = {.size = sizeof by_shape, .kind = ATT_INIT_FAN_IN_UNIFORM};
    const att_init *init = rank > 1 && m->change->init.size ? &m->change->init
                           : is_weight_of_norm(name)        ? &ones
                                                            : &by_shape;
    int64_t n = 1;
    if (att_checkpoint_has(m->checkpoint, name))
        load_stored(m, name, rank, dim, out); /* so that it counts as used, whatever its shape is */
    for (int i = 0; i < rank; i++)
        n *= dim[i];
    const att_status s = own_memory(m, ATT_F32, rank, dim, n, out);
    return s ? s : initialize(m, name, init, out);
}

/* Loads a parameter, in the type in which it is wanted. */
static att_status load_parameter(void *model, const char *name, int rank, const int64_t *dim, att_tensor *out)
{
    att_model *m = model;
    if (is_fresh(m, name))
        return make_fresh(m, name, rank, dim, out);
    const att_status s = load_stored(m, name, rank, dim, out);
    if (s)
        return s;
    const att_tensor stored = *out;
    const bool as_stored = m->trainable && !att_patterns_match(&m->freeze, name);
    const att_dtype dtype = as_stored ? stored.dtype : wanted_type(m, name, &stored);
    const int64_t n = att_elements(&stored), bytes = att_dtype_bytes(dtype, n);
    m->weights.stored[stored.dtype] += att_dtype_bytes(stored.dtype, n);
    m->weights.used[dtype] += bytes;
    if (dtype == stored.dtype && !owns_parameters(m))
        return att_progress_add(&m->progress, n);
    att_status e = own_memory(m, dtype, rank, dim, n, out);
    e = e ? e : att_tensor_convert(m->ctx, &stored, out);
    e = e ? e : att_check_narrow(m->ctx, att_checkpoint_path(m->checkpoint, name), name, "open as", &stored, out);
    if (att_checkpoint_memory(m->checkpoint, stored.data) == ATT_MEMORY_MAPPED)
        att_release_mapped(&stored);
    return e ? e : att_progress_add(&m->progress, n);
}

/* Checks that some matrix was quantized if options require it. */
static att_status check_quantized(const att_model *m)
{
    const att_dtype dtype = m->options.weights ? dtype_of[m->options.weights] : ATT_F32;
    if (att_dtype_size(dtype) > 0 || !m->checkpoint || m->weights.used[dtype] > 0)
        return ATT_OK;
    return att_fail(m->ctx, ATT_ERR_UNSUPPORTED,
                    "%s: no matrix has rows in whole blocks of 32 numbers, so none can be %s; open as f32, f16 or bf16",
                    m->checkpoint->path, dtype == ATT_Q8_0 ? "int8" : "int4");
}

/* Reads the settings, whose type has to be one of the model's kind. */
static void configure(att_model *m, att_settings *s)
{
    const att_model_kind *k = m->kind;
    if (k->types)
        att_model_kind_of(s, (const att_model_kind *const[]){k, NULL}, "");
    k->configure(m, s);
    if (m->change && m->change->configured && !s->status)
        m->change->configured(m, s, m->change->user);
    if (m->unquantized && m->options.weights >= ATT_WEIGHT_TYPE_INT8)
        att_settings_fail(s, ATT_ERR_UNSUPPORTED,
                          "%s have no products of int8 or int4 weights, expected f32, f16 or bf16", m->unquantized);
}

static const char *name_at(const void *params, int64_t i)
{
    const char *name;
    att_nn_params_at(params, i, &name);
    return name;
}

/* Returns whether a parameter is a view of the model's files. In a model for training the others are copies, and their
 * pages of the files are released. */
static bool reads_files(const att_model *m)
{
    bool reads = false;
    for (int64_t i = 0; m->checkpoint && i < att_nn_params_count(m->params); i++)
        reads |= att_checkpoint_memory(m->checkpoint, att_param_value(att_nn_params_at(m->params, i, NULL))->data) !=
                 ATT_MEMORY_OTHER;
    for (int64_t i = 0; m->trainable && reads && i < m->checkpoint->count; i++) {
        att_tensor x;
        if (!att_checkpoint_get(m->checkpoint, i, &x) &&
            att_checkpoint_memory(m->checkpoint, x.data) == ATT_MEMORY_MAPPED)
            att_release_mapped(&x);
    }
    return reads;
}

/* Builds a configured model from its checkpoint, or with random initialization if there is none. */
static att_status build(att_model *m)
{
    const att_model_kind *k = m->kind;
    const att_nn_params_config c = {.size = sizeof c,
                                    .load = m->checkpoint ? load_parameter : NULL,
                                    .initialize = initialize,
                                    .user = m,
                                    .trainable = m->trainable,
                                    .freeze = m->freeze.list,
                                    .n_freeze = m->freeze.n};
    att_status s = att_nn_params_new(m->ctx, &c, &m->params);
    if (m->checkpoint)
        m->progress.all = att_checkpoint_numbers(m->checkpoint);
    if (m->change && m->checkpoint)
        m->checkpoint->more_names = m->change->names;
    s = s ? s : k->build(m);
    s = s || !m->extension ? s : m->extension->build(m, m->extension->user);
    if (!s && m->change && m->change->built)
        s = m->change->built(m, m->change->user);
    s = s ? s : att_nn_params_status(m->params);
    if (!s && m->checkpoint)
        s = att_checkpoint_all_used(m->checkpoint, k->unused);
    s = s ? s : check_quantized(m);
    s = s ? s : att_patterns_check(m->ctx, &m->freeze, att_nn_params_count(m->params), name_at, m->params);
    s = s ? s : att_progress_end(&m->progress); /* reports the end, because some values may not have been used */
    for (int64_t i = 0; i < att_nn_params_count(m->params); i++)
        att_model_set_mapped(m, att_nn_params_at(m->params, i, NULL));
    if (!s && (m->trainable || owns_parameters(m)) && !reads_files(m)) {
        att_checkpoint_close(m->checkpoint);
        m->checkpoint = NULL;
    }
    return s;
}

static att_status load_folder(att_model *m, const char *folder)
{
    const att_model_kind *k = m->kind;
    att_settings settings;
    att_settings_read(&settings, m->ctx, folder, "config.json", !k->settings_optional);
    configure(m, &settings);
    att_settings_close(&settings);
    att_status s = settings.status;
    s = s ? s : att_checkpoint_open(m->ctx, folder, k->names, k->prefix, &m->checkpoint);
    return s ? s : build(m);
}

static att_status load_gguf(att_model *m, const char *path)
{
    const att_model_kind *k = m->kind;
    att_gguf *g;
    json_t *config;
    att_settings settings = {0};
    att_status s = att_gguf_open(m->ctx, path, &g);
    s = s ? s : att_gguf_config(g, &config);
    if (!s) {
        att_settings_from_json(&settings, m->ctx, path, config);
        configure(m, &settings);
        att_settings_close(&settings);
        s = settings.status;
    }
    if (s)
        att_gguf_free(g);
    else
        s = att_checkpoint_open_gguf(m->ctx, g, k->names, k->prefix, &m->checkpoint);
    return s ? s : build(m);
}

static att_status load(att_model *m, const char *folder)
{
    char gguf[ATT_MAX_PATH];
    if (m->kind->load)
        return m->kind->load(m, folder);
    const att_status s = att_gguf_path(m->ctx, folder, "config.json", gguf);
    if (s)
        return s;
    return *gguf ? load_gguf(m, gguf) : load_folder(m, folder);
}

static att_model *begin(att_ctx *ctx, const char *caller, const att_model_kind *kind, bool trainable)
{
    att_model *m = att_calloc(ctx, 1, kind->bytes);
    if (m)
        *m = (att_model){.kind = kind,
                         .ctx = ctx,
                         .trainable = trainable,
                         .options.size = sizeof m->options,
                         .progress.ctx = ctx,
                         .progress.call = caller};
    return m;
}

/* Sets *out. All pointers to structs have the same representation. */
static void set_out(att_model *m, void *out) { memcpy(out, &m, sizeof m); }

static att_status open_model(att_model *m, const char *folder, void *out)
{
    const att_status s = m ? load(m, folder) : ATT_ERR_MEMORY;
    if (s)
        att_model_free(m);
    else
        set_out(m, out);
    return s;
}

static att_status check_open(att_ctx *ctx, const char *caller, const char *folder, void *out)
{
    if (out)
        set_out(NULL, out);
    return att_require(caller, ATT_NAMED({"ctx", ctx}, {"folder", folder}, {"out", out})) ? ATT_ERR_ARGUMENT : ATT_OK;
}

att_status att_model_kind_find(att_ctx *ctx, const char *caller, const char *folder, const att_model_kind *const *kinds,
                               const att_model_kind **kind, void *out)
{
    att_settings config;
    const att_status s = check_open(ctx, caller, folder, out);
    if (s)
        return s;
    att_model_settings_read(&config, ctx, folder, "config.json", true);
    *kind = att_model_kind_of(&config, kinds, "");
    att_settings_close(&config);
    return config.status;
}

/* Checks the types of an opening; *compute becomes what is computed. */
static att_status check_types(att_ctx *ctx, const char *caller, att_weight_type weights, att_compute *compute)
{
    if ((unsigned)weights <= ATT_WEIGHT_TYPE_INT4)
        return att_compute_choose(ctx, *compute, compute);
    return att_fail(ctx, ATT_ERR_ARGUMENT, "%s: weights is %d, which is not an att_weight_type", caller, (int)weights);
}

/* Makes the copies of weights that calls need, if options.prepare; after an error the model is freed and *out NULL. */
static att_status prepare(att_model *m, void *out)
{
    att_tape *t;
    att_tensor y;
    if (!m->options.prepare || !m->kind->prepare)
        return ATT_OK;
    att_status s = att_model_tape(m, &t);
    s = s ? s : att_var_value(t, m->kind->prepare(t, m), &y);
    att_tape_free(t);
    if (s) {
        att_model_free(m);
        set_out(NULL, out);
    }
    return s;
}

/* Opens the model of FOLDER for inference and makes the change, or none if that is NULL. */
static att_status open_for_inference(att_ctx *ctx, const char *caller, const att_model_kind *kind, const char *folder,
                                     const att_model_options *options, const att_model_change *change, void *out)
{
    att_file_source files;
    att_status s = check_open(ctx, caller, folder, out);
    if (s)
        return s;
    s = att_file_source_begin(&files, folder, options);
    s = s ? s : check_types(ctx, caller, files.options.weights, &files.options.compute);
    att_model *m = s ? NULL : begin(ctx, caller, kind, false);
    if (m) {
        m->options = files.options;
        m->progress.report = m->options.progress;
        m->progress.user = m->options.user;
        m->change = change;
    }
    s = s ? s : open_model(m, folder, out);
    if (!s)
        m->change = NULL; /* the caller's */
    s = s ? s : prepare(m, out);
    att_file_source_end(&files);
    return s;
}

att_status att_model_open(att_ctx *ctx, const char *caller, const att_model_kind *kind, const char *folder,
                          const att_model_options *options, void *out)
{
    return open_for_inference(ctx, caller, kind, folder, options, NULL, out);
}

att_status att_model_open_as(att_ctx *ctx, const char *caller, const att_model_kind *const *kinds, const char *folder,
                             const att_model_options *options, void *out)
{
    return att_model_open_as_changed(ctx, caller, kinds, folder, options, NULL, out);
}

att_status att_model_open_as_changed(att_ctx *ctx, const char *caller, const att_model_kind *const *kinds,
                                     const char *folder, const att_model_options *options,
                                     const att_model_change *change, void *out)
{
    const att_model_kind *kind = NULL;
    att_file_source files;
    if (out)
        set_out(NULL, out);
    att_status s = att_file_source_begin(&files, folder, options);
    s = s ? s : att_model_kind_find(ctx, caller, folder, kinds, &kind, out);
    s = s ? s : open_for_inference(ctx, caller, kind, folder, options, change, out);
    att_file_source_end(&files);
    return s;
}

att_status att_model_open_for_training(att_ctx *ctx, const char *caller, const att_model_kind *kind, const char *folder,
                                       const att_trainable_options *options, void *out)
{
    return att_model_open_changed(ctx, caller, kind, folder, options, NULL, out);
}

att_status att_model_open_changed(att_ctx *ctx, const char *caller, const att_model_kind *kind, const char *folder,
                                  const att_trainable_options *options, const att_model_change *change, void *out)
{
    att_trainable_options o;
    att_status s = check_open(ctx, caller, folder, out);
    s = s ? s : att_options_read(&o, sizeof o, options, "att_trainable_options");
    if (s)
        return s;
    const att_patterns freeze = {o.freeze, o.n_freeze};
    s = att_patterns_valid(ctx, &freeze);
    s = s ? s : check_types(ctx, caller, o.weights, &o.compute);
    att_model *m = s ? NULL : begin(ctx, caller, kind, true);
    if (!m)
        return s ? s : ATT_ERR_MEMORY;
    m->freeze = freeze;
    m->options.weights = o.weights;
    m->options.compute = o.compute;
    m->change = change;
    m->seed = change ? change->seed : 0;
    s = open_model(m, folder, out);
    if (!s) { /* the caller's pointer */
        m->freeze = (att_patterns){0};
        m->change = NULL;
    }
    return s;
}

att_status att_model_open_inside(const att_model *outer, const att_model_kind *kind, const char *folder,
                                 const att_model_extension *extension, void *out)
{
    set_out(NULL, out);
    att_model *m = begin(outer->ctx, outer->progress.call, kind, outer->trainable);
    if (!m)
        return ATT_ERR_MEMORY;
    m->options = outer->options;
    m->progress.report = outer->progress.report;
    m->progress.user = outer->progress.user;
    m->freeze = outer->freeze;
    m->extension = extension;
    const att_status s = open_model(m, folder, out);
    if (!s)
        m->freeze = (att_patterns){0};
    return s;
}

att_status att_model_add_folder(att_model *m, const char *names, const char *folder)
{
    const att_status s = att_checkpoint_add(m->checkpoint, names, folder);
    if (!s)
        m->progress.all = att_checkpoint_numbers(m->checkpoint);
    return s;
}

att_status att_model_new(att_ctx *ctx, const att_model_kind *kind, att_settings *settings, uint64_t seed, void *out)
{
    if (out)
        set_out(NULL, out);
    att_model *m = begin(ctx, __func__, kind, true);
    if (!m)
        return ATT_ERR_MEMORY;
    m->seed = seed;
    configure(m, settings);
    att_status s = settings->status;
    if (!s && out)
        s = build(m);
    if (s || !out)
        att_model_free(m);
    else
        set_out(m, out);
    return s;
}

void att_model_free(void *model)
{
    att_model *m = model;
    if (!m)
        return;
    if (m->kind->free)
        m->kind->free(m);
    att_nn_params_free(m->params);
    att_checkpoint_close(m->checkpoint);
    att_free(m->ctx, m);
}

bool att_model_has(const att_model *m, const char *name)
{
    return !m->checkpoint || is_fresh(m, name) || att_checkpoint_has(m->checkpoint, name);
}

att_param *att_model_embedding(att_model *m, const char *name, int64_t n, int64_t features, int64_t pad)
{
    const att_init init = {.size = sizeof init, .kind = ATT_INIT_NORMAL, .value = 1 / sqrt((double)features)};
    att_param *p = att_nn_params_request(m->params, name, "weight", 2, (const int64_t[]){n, features}, &init);
    if (p && !m->checkpoint && pad >= 0 && pad < n)
        memset((float *)att_param_value(p)->data + pad * features, 0, (size_t)features * sizeof(float));
    return p;
}

att_status att_model_weights_write(const char *caller, const att_model *m, att_model_weights *weights)
{
    if (att_require(caller, ATT_NAMED({"m", m}, {"weights", weights})))
        return ATT_ERR_ARGUMENT;
    att_model_weights all = {.size = sizeof all};
    att_model_weights_add(m, &all);
    return att_info_write(weights, &all, sizeof all, "att_model_weights");
}

att_status att_check_finite_from(att_ctx *ctx, const char *what, int64_t first, int64_t n, int64_t width,
                                 const float *x)
{
    for (int64_t i = 0; i < n * width; i++)
        if (!isfinite(x[i]))
            return att_fail(ctx, ATT_ERR_FORMAT, "%s %lld are not finite: the weights are damaged, or too large", what,
                            (long long)(first + i / width));
    return ATT_OK;
}

att_status att_check_finite(att_ctx *ctx, const char *what, int64_t n, int64_t width, const float *x)
{
    return att_check_finite_from(ctx, what, 0, n, width, x);
}

const att_nn_params *att_model_params(const att_model *m) { return m ? m->params : NULL; }
