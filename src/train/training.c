/* Trainings: description, evaluation, writing the model. */
#include "train/training.h"
#include "io/install.h"
#include "io/atomic_write.h"
#include "util/util.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Unfreezes the parameters that the training has frozen. */
static void thaw(att_training *t)
{
    const char *name;
    att_param *p;
    for (int64_t i = 0; t->froze && (p = att_training_param(t, i, &name)); i++)
        if (t->froze[i])
            att_param_set_frozen(p, false);
}

void att_training_free(att_training *t)
{
    if (!t)
        return;
    att_optimizer_free(t->optimizer);
    att_tape_free(t->tape);
    thaw(t);
    t->kind->free(t->self);
    att_free(t->ctx, t->self);
    if (t->step == 0 && !t->saved) /* as after a failed start */
        att_run_discard(t->run, t->kind->files);
    else
        att_run_close(t->run);
    att_free(t->ctx, t->buffers);
    att_free(t->ctx, t->froze);
    att_free(t->ctx, t->freeze);
    att_free(t->ctx, t->pending);
    att_free(t->ctx, t);
}

att_status att_training_of_kind(const char *caller, const att_training *t, const att_training_kind *kind)
{
    if (att_require(caller, ATT_NAMED({"t", t})))
        return ATT_ERR_ARGUMENT;
    return t->kind == kind ? ATT_OK
                           : att_fail(t->ctx, ATT_ERR_ARGUMENT, "%s: the training is one of %s, not of %s", caller,
                                      t->kind->name, kind->name);
}

int64_t att_training_steps(const att_training *t) { return t ? t->step : 0; }

int64_t att_training_count(const att_training *t)
{
    int64_t n = 0;
    const char *name;
    for (int64_t i = 0; i < t->params; i++) {
        const att_param *p = att_training_param(t, i, &name);
        n += att_training_learns(t, i) ? att_elements(att_param_value(p)) : 0;
    }
    return n;
}

static int64_t count_frozen(const att_training *t)
{
    int64_t n = 0;
    const char *name;
    for (int64_t i = 0; i < t->params; i++) {
        const att_param *p = att_training_param(t, i, &name);
        n += att_training_is_saved(t, i, name) ? 0 : att_elements(att_param_value(p));
    }
    return n;
}

att_status att_training_describe(const att_training *t, att_training_info *info)
{
    if (att_require(__func__, ATT_NAMED({"t", t}, {"info", info})))
        return ATT_ERR_ARGUMENT;
    att_training_info all = {.evaluated = t->evaluated, .best_step = t->best_step, .best = t->best};
    t->kind->describe(t->self, &all);
    all.parameters = att_training_count(t);
    all.frozen = count_frozen(t);
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
        const att_param *p = att_training_param(t, i, &name);
        if (att_training_is_saved(t, i, name))
            e = att_training_check_numbers(t, ATT_ERR_ARGUMENT, what, name, att_param_value(p), -FLT_MAX);
    }
    return e;
}

/* Writes the model, whose files all appear together. */
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
        if (!att_training_is_saved(t, i, name))
            continue;
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
