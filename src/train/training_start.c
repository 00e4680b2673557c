/* Trainings: options, construction and resuming. */
#include "train/training.h"
#include "model/checksum.h"
#include "util/util.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_SHARDS = 1 << 16 };

/* ---- options */

att_status att_training_check_options(att_ctx *ctx, const att_training_option *options, int n)
{
    for (int i = 0; i < n; i++) {
        const att_training_option *o = &options[i];
        const bool below_1 = o->max < 0;
        if (!(o->value >= 0 && (below_1 ? o->value < 1 : o->value <= o->max)))
            return att_fail(ctx, ATT_ERR_ARGUMENT,
                            below_1 ? "options.%s is %g, expected [0, 1)" : "options.%s is %g, expected 0 to %g",
                            o->name, o->value, o->max);
    }
    return ATT_OK;
}

att_status att_training_check_in_memory(const att_training_base *base, const att_folder_option *options, int n)
{
    for (int i = 0; base->in_memory && i < n; i++)
        if (options[i].set)
            return att_fail(base->ctx, ATT_ERR_ARGUMENT, "options.%s is for a training in a folder", options[i].name);
    return ATT_OK;
}

att_status att_training_check_start(const att_training_base *base, const char *settings, const char *model)
{
    const att_folder_option of_folders[] = {{"settings", settings != NULL}, {"model", model != NULL}};
    if (!base->in_memory && !settings == !model)
        return att_fail(base->ctx, ATT_ERR_ARGUMENT,
                        "one of options.settings and options.model is needed, but both are %s",
                        model ? "given" : "NULL");
    return att_training_check_in_memory(base, of_folders, 2);
}

att_status att_training_other_folder(att_ctx *ctx, const char *folder, const char *model)
{
    struct stat a, b;
    if (stat(folder, &a) || stat(model, &b) || a.st_dev != b.st_dev || a.st_ino != b.st_ino)
        return ATT_OK;
    return att_fail(ctx, ATT_ERR_ARGUMENT, "%s: is the model's own folder; a training needs another one", folder);
}

/* Checks the options of all trainings and sets defaults. */
static att_status configure(att_training_base *b, const att_training_kind *kind)
{
    att_training_options *o = &b->common;
    const att_training_option numbers[] = {{"weight_decay", o->weight_decay, 1e6},
                                           {"clip", o->clip, 1e30},
                                           {"accumulate", (double)o->accumulate, INT32_MAX},
                                           {"shards", (double)o->shards, MAX_SHARDS}};
    const att_folder_option of_folders[] = {{"resume", o->resume},
                                            {"keep", o->keep != 0},
                                            {"evaluation_id", o->evaluation_id != 0},
                                            {"note", o->note != NULL}};
    if (!o->schedule)
        return att_fail(b->ctx, ATT_ERR_ARGUMENT, "options.schedule is NULL");
    att_status e = att_training_check_options(b->ctx, numbers, sizeof numbers / sizeof numbers[0]);
    e = e ? e : att_training_check_in_memory(b, of_folders, sizeof of_folders / sizeof of_folders[0]);
    e = e ? e : att_compute_choose(b->ctx, o->compute, &o->compute);
    if (!e && o->note && o->note_bytes == 0)
        e = att_fail(b->ctx, ATT_ERR_ARGUMENT, "options.note has no room: options.note_bytes is 0");
    e = e ? e : att_options_read(&b->schedule, sizeof b->schedule, o->schedule, "att_schedule");
    o->schedule = &b->schedule;
    if (!o->keep)
        o->keep = kind->keep ? kind->keep : 2;
    o->accumulate = o->accumulate ? o->accumulate : 1;
    o->shards = o->shards ? o->shards : 1;
    if (!(o->beta2 > 0 || o->beta2 < 0))
        o->beta2 = att_training_beta2(kind);
    return e;
}

/* ---- construction and resuming */

/* Checks that there are checkpoints if resume is set, and none otherwise. */
static att_status check_checkpoints(const att_training *t, bool resume)
{
    int64_t newest;
    const att_status e = att_run_newest(t->run, &newest);
    const bool exist = newest != ATT_NO_CHECKPOINT;
    if (e || exist == resume)
        return e;
    return att_fail(t->ctx, ATT_ERR_ARGUMENT,
                    exist ? "%s: has checkpoints of a training already; continue it (options.resume), or take another "
                            "folder"
                          : "%s: there is no checkpoint to continue from",
                    t->folder);
}

/* ---- frozen parameters */

static bool is_own(const att_training *t, const char *name)
{
    return t->kind->own && !strncmp(name, t->kind->own, strlen(t->kind->own));
}

/* Returns the name of parameter i, or "" if it is not the model's. */
static const char *name_at(const void *training, int64_t i)
{
    const att_training *t = training;
    const char *name;
    att_training_param(t, i, &name);
    return is_own(t, name) ? "" : name;
}

static att_status join_patterns(att_training *t)
{
    const att_training_options *o = t->options;
    size_t n = 1;
    for (int64_t i = 0; i < o->n_freeze; i++)
        n += strlen(o->freeze[i]) + 1;
    t->freeze = att_calloc(t->ctx, n, 1);
    for (int64_t i = 0; t->freeze && i < o->n_freeze; i++) {
        strcat(t->freeze, i ? "," : "");
        strcat(t->freeze, o->freeze[i]);
    }
    return t->freeze ? ATT_OK : ATT_ERR_MEMORY;
}

/* Freezes the parameters of options.freeze, unless the model was opened with them frozen. */
static att_status freeze(att_training *t)
{
    const att_patterns all = {t->options->freeze, t->options->n_freeze};
    const char *name;
    int64_t n = 0, learn = 0;
    while (att_training_param(t, n, &name))
        n++;
    att_status e = att_patterns_check(t->ctx, &all, n, name_at, t);
    t->froze = e ? NULL : att_calloc(t->ctx, (size_t)n, sizeof *t->froze);
    if (!t->froze)
        return e ? e : ATT_ERR_MEMORY;
    t->frozen = ATT_FNV64_OFFSET;
    for (int64_t i = 0; i < n; i++) {
        att_param *p = att_training_param(t, i, &name);
        t->froze[i] = !att_param_frozen(p) && !is_own(t, name) && att_patterns_match(&all, name);
        if (t->froze[i])
            att_param_set_frozen(p, true);
        learn += !att_param_frozen(p);
        if (att_param_frozen(p) && !att_training_is_buffer(t, name))
            t->frozen = att_param_checksum(t->frozen, t->ctx, p);
    }
    return learn || n == 0 ? ATT_OK
                           : att_fail(t->ctx, ATT_ERR_ARGUMENT,
                                      "options.freeze: all %lld parameters are frozen, so none learns", (long long)n);
}

static att_status add_params(att_training *t)
{
    att_status e = ATT_OK;
    const char *name;
    int64_t buffers = 0;
    for (att_param *p; !e && (p = att_training_param(t, t->params, &name)); t->params++) {
        const att_param_options how = t->kind->param_options ? t->kind->param_options(t->self, name, att_param_value(p))
                                                             : (att_param_options){.size = sizeof how};
        e = att_optimizer_add(t->optimizer, p, &how);
        buffers += att_training_is_buffer(t, name) ? att_elements(att_param_value(p)) : 0;
    }
    t->buffers = e || !buffers ? NULL : att_alloc(t->ctx, (size_t)buffers, sizeof *t->buffers);
    return !e && buffers && !t->buffers ? ATT_ERR_MEMORY : e;
}

static att_status check_shards(const att_training *t)
{
    const int64_t shards = t->options->shards;
    return shards < 2 || !t->coupling
               ? ATT_OK
               : att_fail(t->ctx, ATT_ERR_ARGUMENT, "options.shards is %lld, but %s: set it to 0, or %s",
                          (long long)shards, t->coupling->what, t->coupling->instead);
}

static att_status begin(att_training *t, const char *folder)
{
    const att_training_options *o = t->options;
    const att_optimizer_config adam = {.size = sizeof adam,
                                       .method = ATT_OPTIMIZER_ADAMW,
                                       .beta2 = o->beta2,
                                       .eps = t->kind->eps,
                                       .weight_decay = o->weight_decay};
    const att_patterns patterns = {o->freeze, o->n_freeze};
    att_status e = att_patterns_valid(t->ctx, &patterns);
    e = e ? e : join_patterns(t);
    e = e ? e : check_shards(t);
    if (!e && folder && !o->resume && t->kind->check)
        e = t->kind->check(t->self);
    if (!e && folder)
        e = att_run_open(t->ctx, folder, o->keep, &t->run);
    if (!e && folder)
        e = check_checkpoints(t, o->resume);
    e = e ? e : t->kind->open(t->self, folder, o->resume);
    e = e ? e : freeze(t);
    e = e ? e : att_tape_new(t->ctx, ATT_OPTIONS(att_tape_config, .record = true, .compute = o->compute), &t->tape);
    e = e ? e : att_optimizer_new(t->ctx, &adam, &t->optimizer);
    e = e ? e : add_params(t);
    return e || !o->resume ? e : att_training_load(t);
}

/* Makes a training of self, which it then owns, even after an error. folder NULL: in memory. */
static att_status make(att_ctx *ctx, const att_training_kind *kind, att_training_base *self, const char *folder,
                       att_training **out)
{
    att_training *t = att_calloc(ctx, 1, sizeof *t);
    if (!t) {
        kind->free(self);
        att_free(ctx, self);
        return ATT_ERR_MEMORY;
    }
    t->ctx = ctx;
    t->kind = kind;
    t->self = self;
    t->options = &self->common;
    t->best = -INFINITY;
    t->coupling = kind->coupling ? kind->coupling(self) : NULL;
    t->shards = (att_shard_order){.step = -1, .last = self->common.shards - 1};
    att_status e = ATT_OK;
    if (folder && snprintf(t->folder, sizeof t->folder, "%s", folder) >= (int)sizeof t->folder)
        e = att_fail(ctx, ATT_ERR_ARGUMENT, "folder is longer than %d bytes", (int)sizeof t->folder - 1);
    e = e ? e : begin(t, folder ? t->folder : NULL);
    if (e) {
        att_run_discard(t->run, kind->files);
        t->run = NULL;
        att_training_free(t);
    } else {
        *out = t;
    }
    return e;
}

/* Starts a training; given: the initial self, or NULL. */
static att_status start(att_ctx *ctx, const att_training_kind *kind, const char *folder, const void *given,
                        const att_training_options *common, const void *options, att_training **out)
{
    att_training_base *self = att_calloc(ctx, 1, kind->bytes);
    if (!self)
        return ATT_ERR_MEMORY;
    if (given)
        memcpy(self, given, kind->bytes);
    self->ctx = ctx;
    self->in_memory = !folder;
    att_status e = att_options_read(&self->common, sizeof self->common, common, "att_training_options");
    e = e ? e : att_options_read((char *)self + kind->options_at, kind->options_bytes, options, kind->options);
    e = e ? e : configure(self, kind);
    e = e ? e : kind->configure(self);
    if (!e)
        return make(ctx, kind, self, folder, out);
    att_free(ctx, self);
    return e;
}

att_status att_training_new(const char *caller, const att_training_kind *kind, const att_model *m, const void *given,
                            const att_training_options *common, const void *options, att_training **out)
{
    if (out)
        *out = NULL;
    if (att_require(caller, ATT_NAMED({"m", m}, {"common", common}, {"options", options}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    return m->trainable ? start(m->ctx, kind, NULL, given, common, options, out)
                        : att_fail(m->ctx, ATT_ERR_ARGUMENT,
                                   "%s: the model was opened for inference; open it for training", caller);
}

att_status att_training_open(const char *caller, const att_training_kind *kind, att_ctx *ctx, const char *folder,
                             const att_training_options *common, const void *options, att_training **out)
{
    if (out)
        *out = NULL;
    if (att_require(caller, ATT_NAMED({"ctx", ctx}, {"folder", folder}, {"common", common}, {"options", options},
                                      {"out", out})))
        return ATT_ERR_ARGUMENT;
    return start(ctx, kind, folder, NULL, common, options, out);
}
