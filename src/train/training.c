/* A training in a folder of its own: made or gone on with, saved, and finished as a model. */
#include "io/util.h"
#include "train/training.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOMENTS = 2, LARGEST_NAME = 112 };
static const char *const kinds[MOMENTS] = {"moment1.", "moment2."};

/* ---- the state of a run, as run_state.h wants it */

typedef struct state {
    att_run_state all;
    char (*names)[LARGEST_NAME];
    const char **name;
    att_tensor *tensor;
    att_facts facts;
} state;

static att_param *param(const att_training *t, int64_t i, const char **name)
{
    return t->trainer->task->param(t->trainer->self, i, name);
}

static void add_tensor(state *s, const char *kind, const char *name, const att_tensor *value)
{
    const int64_t i = s->all.n++;
    snprintf(s->names[i], LARGEST_NAME, "%s%s", kind, name);
    s->name[i] = s->names[i];
    s->tensor[i] = *value;
}

static void state_free(const att_training *t, state *s)
{
    att_free(t->ctx, s->names);
    att_free(t->ctx, s->name);
    att_free(t->ctx, s->tensor);
}

static att_status state_make(att_training *t, state *s)
{
    const int64_t n = t->trainer->params;
    const size_t most = (size_t)(n * (1 + MOMENTS) + 1);
    *s = (state){.names = att_alloc(t->ctx, most, sizeof *s->names),
                 .name = att_alloc(t->ctx, most, sizeof *s->name),
                 .tensor = att_alloc(t->ctx, most, sizeof *s->tensor)};
    if (!s->names || !s->name || !s->tensor) {
        state_free(t, s);
        return ATT_ERR_MEMORY;
    }
    for (int64_t i = 0; i < n; i++) {
        const char *name;
        const att_param *p = param(t, i, &name);
        add_tensor(s, "", name, att_param_value(p));
        for (int k = 0; k < MOMENTS; k++)
            add_tensor(s, kinds[k], name, att_optimizer_moment(t->trainer->optimizer, i, k));
    }
    add_tensor(s, "", "steps", att_optimizer_steps(t->trainer->optimizer));
    att_trainer_facts(t->trainer, &s->facts);
    if (t->kind->judged_by) {
        att_facts_whole(&s->facts, "judged_by", t->kind->judged_by(t->self));
        att_facts_add(&s->facts, "judged", ATT_FACT_WHOLE, &t->judged);
        att_facts_add(&s->facts, "best_step", ATT_FACT_WHOLE, &t->best_step);
        att_facts_add(&s->facts, "best", ATT_FACT_NUMBER, &t->best);
    }
    if (t->note)
        att_facts_note(&s->facts, "note", t->note, t->note_bytes);
    s->all.names = s->name;
    s->all.tensors = s->tensor;
    s->all.n_facts = s->facts.n;
    s->all.facts = s->facts.fact;
    return ATT_OK;
}

/* Numbers that nothing can be learnt from any more: kind of a state's tensors, all f32 and dense. */
static const float *find_bad(const att_tensor *x, float least)
{
    const float *p = x->data;
    int64_t n = 1, bad = 0;
    for (int i = 0; i < x->rank; i++)
        n *= x->dim[i];
    for (int64_t i = 0; i < n; i++)
        bad += !(p[i] >= least && p[i] <= FLT_MAX);
    while (bad && *p >= least && *p <= FLT_MAX)
        p++;
    return bad ? p : NULL;
}

/* All numbers are finite, and means of squares not below 0. `what` begins the sentence. */
static att_status check_numbers(const att_training *t, const state *s, att_status status, const char *what)
{
    for (int64_t i = 0; i < s->all.n; i++) {
        const att_tensor *x = &s->tensor[i];
        const float least = !strncmp(s->name[i], kinds[1], strlen(kinds[1])) ? 0 : -FLT_MAX;
        const float *bad = x->dtype == ATT_F32 ? find_bad(x, least) : NULL;
        if (bad)
            return att_fail(t->ctx, status, "%s: \"%s\" has %g at %lld", what, s->name[i], (double)*bad,
                            (long long)(bad - (const float *)x->data));
    }
    return ATT_OK;
}

/* The parameters alone, before they are written as a model. */
static att_status check_params(const att_training *t)
{
    for (int64_t i = 0; i < t->trainer->params; i++) {
        const char *name;
        const att_tensor *x = att_param_value(param(t, i, &name));
        const float *bad = find_bad(x, -FLT_MAX);
        if (bad)
            return att_fail(t->ctx, ATT_ERR_ARGUMENT,
                            "%s: the model of step %lld is not written: \"%s\" has %g at %lld", t->folder,
                            (long long)t->trainer->step, name, (double)*bad, (long long)(bad - (const float *)x->data));
    }
    return ATT_OK;
}

static att_status save(att_training *t, bool pause)
{
    if (att_require(__func__, ATT_NAMED({"t", t})))
        return ATT_ERR_ARGUMENT;
    state s;
    char what[ATT_MAX_PATH + 64];
    att_status e = state_make(t, &s);
    if (e)
        return e;
    snprintf(what, sizeof what, "%s: step %lld is not saved", t->folder, (long long)t->trainer->step);
    e = check_numbers(t, &s, ATT_ERR_ARGUMENT, what);
    e = e ? e : att_run_save(t->run, t->trainer->step, pause, &s.all);
    state_free(t, &s);
    return e;
}

att_status att_training_save(att_training *t) { return save(t, false); }

att_status att_training_pause(att_training *t) { return save(t, true); }

/* What no training saves. */
static att_status check_loaded(const att_training *t, const state *s, int64_t step)
{
    char path[ATT_MAX_PATH];
    att_status e = att_run_path(t->run, step, path);
    if (!e && t->trainer->step != step)
        e = att_fail(t->ctx, ATT_ERR_FORMAT, "%s: \"step\" is %lld, not that of the file's name", path,
                     (long long)t->trainer->step);
    e = e ? e : att_trainer_check(t->trainer, path);
    if (!e && (t->judged < 0 || t->judged > step || t->best_step < 0 || t->best_step > t->judged || isnan(t->best)))
        e = att_fail(t->ctx, ATT_ERR_FORMAT, "%s: \"judged\" is %lld, \"best_step\" %lld and \"best\" %g", path,
                     (long long)t->judged, (long long)t->best_step, t->best);
    return e ? e : check_numbers(t, s, ATT_ERR_FORMAT, path);
}

static att_status load_newest(att_training *t)
{
    state s;
    int64_t step;
    att_status e = state_make(t, &s);
    if (e)
        return e;
    e = att_run_load(t->run, ATT_RUN_NEWEST, &s.all, &step);
    e = e ? e : check_loaded(t, &s, step);
    e = e ? e : att_run_remove_old(t->run);
    state_free(t, &s);
    for (int64_t i = 0; !e && i < t->trainer->params; i++) {
        const char *name;
        att_param_touch(param(t, i, &name));
    }
    return e;
}

/* ---- made, or gone on with */

/* A run without checkpoints is one that has not begun. */
static att_status look(const att_training *t, bool resume)
{
    int64_t *steps = NULL, n = 0;
    const att_status e = att_run_steps(t->run, &steps, &n);
    att_free(t->ctx, steps);
    if (e || (n > 0) == resume)
        return e;
    return att_fail(t->ctx, ATT_ERR_ARGUMENT,
                    n > 0 ? "%s: has checkpoints of a training already; go on with it, or take another folder"
                          : "%s: there is no checkpoint to go on from",
                    t->folder);
}

static att_status begin(att_training *t, const att_training_start *start)
{
    att_status e = att_run_open(t->ctx, t->folder, start->keep ? start->keep : 5, &t->run);
    e = e ? e : look(t, start->resume);
    e = e ? e : t->kind->begin(t->self, t->folder, start->resume, &t->trainer);
    return e || !start->resume ? e : load_newest(t);
}

att_status att_training_make(att_ctx *ctx, const char *folder, const att_training_start *start,
                             const att_training_kind *kind, void *self, att_training **out)
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
    t->best = -INFINITY;
    t->note = start->note;
    t->note_bytes = start->note_bytes;
    att_status e = ATT_OK;
    if (snprintf(t->folder, sizeof t->folder, "%s", folder) >= (int)sizeof t->folder)
        e = att_fail(ctx, ATT_ERR_ARGUMENT, "folder is longer than %d bytes", (int)sizeof t->folder - 1);
    else if (start->note && start->note_bytes == 0)
        e = att_fail(ctx, ATT_ERR_ARGUMENT, "options.note has no room: options.note_bytes is 0");
    e = e ? e : begin(t, start);
    if (e)
        att_training_close(t);
    else
        *out = t;
    return e;
}

void att_training_close(att_training *t)
{
    if (!t)
        return;
    att_trainer_free(t->trainer);
    t->kind->free(t->self);
    att_run_close(t->run);
    att_free(t->ctx, t);
}

att_trainer *att_training_trainer(const att_training *t) { return t ? t->trainer : NULL; }

att_status att_training_describe(const att_training *t, att_training_info *info)
{
    if (att_require(__func__, ATT_NAMED({"t", t}, {"info", info})))
        return ATT_ERR_ARGUMENT;
    const att_training_info all = {.judged = t->judged, .best_step = t->best_step, .best = t->best};
    return att_give_info(info, &all, sizeof all, "att_training_info");
}

/* ---- judged, finished */

att_status att_training_judge(att_training *t, double score, att_dtype dtype)
{
    if (att_require(__func__, ATT_NAMED({"t", t})))
        return ATT_ERR_ARGUMENT;
    if (!t->kind->judged_by)
        return att_fail(t->ctx, ATT_ERR_ARGUMENT, "a training of %s is not judged", t->trainer->task->name);
    const bool better = score > t->best;
    att_status e = better ? check_params(t) : ATT_OK;
    e = e || !better ? e : t->kind->write(t->self, t->folder, dtype);
    if (e)
        return e;
    t->judged = t->trainer->step;
    t->best_step = better ? t->judged : t->best_step;
    t->best = better ? score : t->best;
    return ATT_OK;
}

/* The mean of each parameter over the checkpoints of n steps, into the model. */
static att_status average(att_training *t, const int64_t *steps, int64_t n)
{
    att_safetensors **file = att_calloc(t->ctx, (size_t)n, sizeof *file);
    att_tensor *x = att_alloc(t->ctx, (size_t)n, sizeof *x);
    att_status e = file && x ? ATT_OK : ATT_ERR_MEMORY;
    for (int64_t k = 0; !e && k < n; k++)
        e = att_run_checkpoint(t->run, steps[k], &file[k]);
    for (int64_t i = 0; !e && i < t->trainer->params; i++) {
        const char *name;
        att_param *p = param(t, i, &name);
        for (int64_t k = 0; !e && k < n; k++)
            e = att_safetensors_get(file[k], name, &x[k]);
        e = e ? e : att_average(t->ctx, x, n, att_param_value(p));
        att_param_touch(p);
    }
    for (int64_t k = 0; file && k < n; k++)
        att_safetensors_close(file[k]);
    att_free(t->ctx, x);
    att_free(t->ctx, file);
    return e;
}

att_status att_training_finish(att_training *t, int64_t n, att_dtype dtype)
{
    if (att_require(__func__, ATT_NAMED({"t", t})))
        return ATT_ERR_ARGUMENT;
    int64_t *steps = NULL, count = 0;
    att_status e = n > 0 ? att_run_steps(t->run, &steps, &count) : ATT_OK;
    const int64_t used = att_min(n, count);
    if (!e && used > 0)
        e = average(t, steps + count - used, used);
    att_free(t->ctx, steps);
    e = e ? e : check_params(t);
    return e ? e : t->kind->write(t->self, t->folder, dtype);
}
