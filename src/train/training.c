/* Trainings: construction, resuming, evaluation, writing the model. */
#include "train/training.h"
#include "io/install.h"
#include "io/atomic_write.h"
#include "util/util.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* ---- construction and resuming */

att_status att_training_other_folder(att_ctx *ctx, const char *folder, const char *model)
{
    struct stat a, b;
    if (stat(folder, &a) || stat(model, &b) || a.st_dev != b.st_dev || a.st_ino != b.st_ino)
        return ATT_OK;
    return att_fail(ctx, ATT_ERR_ARGUMENT, "%s: is the model's own folder; a training needs another one", folder);
}

att_status att_training_check_options(att_ctx *ctx, const att_training_option *options, int n)
{
    for (int i = 0; i < n; i++)
        if (!(options[i].value >= 0 && options[i].value <= options[i].max))
            return att_fail(ctx, ATT_ERR_ARGUMENT, "options.%s is %g, expected 0 to %g", options[i].name,
                            options[i].value, options[i].max);
    return ATT_OK;
}

att_status att_training_check_start(att_ctx *ctx, const char *folder, const char *settings, const char *model)
{
    if (folder && !settings == !model)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "one of options.settings and options.model is needed, but both are %s",
                        model ? "given" : "NULL");
    if (!folder && (settings || model))
        return att_fail(ctx, ATT_ERR_ARGUMENT, "options.%s is for a training in a folder",
                        settings ? "settings" : "model");
    return ATT_OK;
}

/* resume requires checkpoints; without it there must be none. */
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

static att_status add_params(att_training *t)
{
    att_status e = ATT_OK;
    const char *name;
    int64_t frozen = 0;
    for (att_param *p; !e && (p = att_training_param(t, t->params, &name)); t->params++) {
        const att_param_options how = t->kind->param_options ? t->kind->param_options(t->self, name, att_param_value(p))
                                                             : (att_param_options){.size = sizeof how};
        e = att_optimizer_add(t->optimizer, p, &how);
        frozen += how.frozen ? att_training_elements(att_param_value(p)) : 0;
    }
    t->frozen = e || !frozen ? NULL : att_alloc(t->ctx, (size_t)frozen, sizeof *t->frozen);
    return !e && frozen && !t->frozen ? ATT_ERR_MEMORY : e;
}

static att_status begin(att_training *t)
{
    const att_training_config *c = &t->config;
    att_status e = c->folder && !c->resume && t->kind->check ? t->kind->check(t->self) : ATT_OK;
    if (!e && c->folder)
        e = att_run_open(t->ctx, t->folder, c->keep ? c->keep : t->kind->keep, &t->run);
    if (!e && c->folder)
        e = check_checkpoints(t, c->resume);
    e = e ? e : t->kind->open(t->self, c->folder, c->resume);
    e = e ? e : att_tape_new(t->ctx, ATT_OPTIONS(att_tape_config, .record = true), &t->tape);
    e = e ? e : att_optimizer_new(t->ctx, &c->optimizer, &t->optimizer);
    e = e ? e : add_params(t);
    return e || !c->resume ? e : att_training_load(t);
}

static att_status check_config(att_training *t)
{
    att_training_config *c = &t->config;
    const struct {
        const char *name;
        bool set;
    } of_folders[] = {{"resume", c->resume}, {"keep", c->keep != 0}, {"note", c->note != NULL}};
    for (int i = 0; !c->folder && i < 3; i++)
        if (of_folders[i].set)
            return att_fail(t->ctx, ATT_ERR_ARGUMENT, "options.%s is for a training in a folder", of_folders[i].name);
    if (c->note && c->note_bytes == 0)
        return att_fail(t->ctx, ATT_ERR_ARGUMENT, "options.note has no room: options.note_bytes is 0");
    if (c->folder && snprintf(t->folder, sizeof t->folder, "%s", c->folder) >= (int)sizeof t->folder)
        return att_fail(t->ctx, ATT_ERR_ARGUMENT, "folder is longer than %d bytes", (int)sizeof t->folder - 1);
    c->folder = c->folder ? t->folder : NULL;
    return ATT_OK;
}

att_status att_training_make(att_ctx *ctx, const att_training_kind *kind, void *self, const att_training_config *config,
                             att_training **out)
{
    *out = NULL;
    att_training *t = att_calloc(ctx, 1, sizeof *t);
    if (!t) {
        kind->free(self);
        return ATT_ERR_MEMORY;
    }
    t->ctx = ctx;
    t->kind = kind;
    t->self = self;
    t->config = *config;
    t->best = -INFINITY;
    att_status e = check_config(t);
    e = e ? e : begin(t);
    if (e) {
        att_run_discard(t->run, kind->files);
        t->run = NULL;
        att_training_free(t);
    } else {
        *out = t;
    }
    return e;
}

void att_training_free(att_training *t)
{
    if (!t)
        return;
    att_optimizer_free(t->optimizer);
    att_tape_free(t->tape);
    t->kind->free(t->self);
    if (t->step == 0 && !t->saved) /* as after a start that has failed */
        att_run_discard(t->run, t->kind->files);
    else
        att_run_close(t->run);
    att_free(t->ctx, t->frozen);
    att_free(t->ctx, t);
}

int64_t att_training_steps(const att_training *t) { return t ? t->step : 0; }

att_status att_training_describe(const att_training *t, att_training_info *info)
{
    if (att_require(__func__, ATT_NAMED({"t", t}, {"info", info})))
        return ATT_ERR_ARGUMENT;
    att_training_info all = {.evaluated = t->evaluated, .best_step = t->best_step, .best = t->best};
    t->kind->describe(t->self, &all);
    for (int64_t i = 0; i < t->params; i++) {
        const char *name;
        const att_tensor *x = att_param_value(att_training_param(t, i, &name));
        all.parameters += att_training_is_frozen(t, i) ? 0 : att_training_elements(x);
    }
    return att_info_write(info, &all, sizeof all, "att_training_info");
}

/* ---- evaluation and writing */

att_status att_training_validate(att_training *t, double *loss)
{
    if (att_require(__func__, ATT_NAMED({"t", t}, {"loss", loss})))
        return ATT_ERR_ARGUMENT;
    if (!t->kind->validate)
        return att_fail(t->ctx, ATT_ERR_ARGUMENT, "a training of %s has nothing to validate by", t->kind->name);
    return t->kind->validate(t->self, loss);
}

/* Checks the parameters before they are written as a model. */
static att_status check_params(const att_training *t)
{
    char what[ATT_MAX_PATH + 64];
    att_status e = ATT_OK;
    snprintf(what, sizeof what, "%s: the model of step %lld is not written", t->folder, (long long)t->step);
    for (int64_t i = 0; !e && i < t->params; i++) {
        const char *name;
        const att_tensor *x = att_param_value(att_training_param(t, i, &name));
        e = att_training_check_numbers(t, ATT_ERR_ARGUMENT, what, name, x, -FLT_MAX);
    }
    return e;
}

/* Writes the model, all of whose files appear together. */
static att_status write_model(const att_training *t, att_dtype dtype)
{
    char path[ATT_MAX_PATH];
    int file;
    att_status e = att_install_begin(t->ctx, t->folder, path, &file);
    e = e ? e : t->kind->write(t->self, path, dtype);
    return att_install_end(t->ctx, t->folder, file, e);
}

att_status att_training_keep_best(att_training *t, double score, att_dtype dtype)
{
    att_status e = att_training_in_folder(t, __func__);
    if (!e && !t->config.keep_best)
        e = att_fail(t->ctx, ATT_ERR_ARGUMENT, "a training of %s keeps no best model", t->kind->name);
    const bool better = !e && score > t->best;
    e = better ? check_params(t) : e;
    e = e || !better ? e : write_model(t, dtype);
    if (e)
        return e;
    t->saved = t->saved || better;
    t->evaluated = t->step;
    t->best_step = better ? t->evaluated : t->best_step;
    t->best = better ? score : t->best;
    return ATT_OK;
}

att_status att_training_keep_first(att_training *t, double score)
{
    att_status e = att_training_in_folder(t, __func__);
    if (!e && !t->config.keep_best)
        e = att_fail(t->ctx, ATT_ERR_ARGUMENT, "a training of %s keeps no best model", t->kind->name);
    if (!e && t->step > 0)
        e = att_fail(t->ctx, ATT_ERR_ARGUMENT, "%s: the training is at step %lld, not before the first one", __func__,
                     (long long)t->step);
    if (!e && !isnan(score))
        t->best = score;
    return e;
}

/* Sets each parameter to its mean over the checkpoints of steps [n]. */
static att_status average(att_training *t, const int64_t *steps, int64_t n)
{
    att_safetensors **file = att_calloc(t->ctx, (size_t)n, sizeof *file);
    att_tensor *x = att_alloc(t->ctx, (size_t)n, sizeof *x);
    att_status e = file && x ? ATT_OK : ATT_ERR_MEMORY;
    for (int64_t k = 0; !e && k < n; k++)
        e = att_run_checkpoint(t->run, steps[k], &file[k]);
    for (int64_t i = 0; !e && i < t->params; i++) {
        const char *name;
        att_param *p = att_training_param(t, i, &name);
        for (int64_t k = 0; !e && k < n; k++)
            e = att_safetensors_get(file[k], name, &x[k]);
        e = e ? e : att_average(t->ctx, x, n, att_param_value(p));
        att_param_invalidate(p);
    }
    for (int64_t k = 0; file && k < n; k++)
        att_safetensors_free(file[k]);
    att_free(t->ctx, x);
    att_free(t->ctx, file);
    return e;
}

att_status att_training_write(att_training *t, int64_t n, att_dtype dtype)
{
    int64_t *steps = NULL, count = 0;
    att_status e = att_training_in_folder(t, __func__);
    if (!e && n > 0)
        e = att_run_steps(t->run, &steps, &count);
    const int64_t used = att_min(n, count);
    if (!e && used > 0)
        e = average(t, steps + count - used, used);
    if (steps)
        att_free(t->ctx, steps);
    e = e ? e : check_params(t);
    if (e)
        return e;
    t->saved = true;
    return write_model(t, dtype);
}

att_status att_training_keep(att_training *t, int64_t n)
{
    const att_status e = att_training_in_folder(t, __func__);
    if (!e && n < 0)
        return att_fail(t->ctx, ATT_ERR_ARGUMENT, "att_training_keep: n is %lld, expected 0 or more", (long long)n);
    return e ? e : att_run_keep(t->run, n);
}
