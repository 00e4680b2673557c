/* Saving and loading checkpoints of a training. */
#include "train/training.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOMENTS = 2, LARGEST_NAME = 112 };
static const char *const kinds[MOMENTS] = {"moment1.", "moment2."};

/* ---- the state, for training_folder.h */

typedef struct state {
    att_run_state all;
    char (*names)[LARGEST_NAME];
    const char **name;
    att_tensor *tensor;
    att_fields fields;
} state;

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

/* Adds results of att_training_keep_best, with the names of the file format. */
static void add_evaluation(att_training *t, att_fields *fields)
{
    const bool optional = t->options->evaluation_id == 0;
    const int64_t first = fields->n;
    att_fields_int(fields, "judged_by", t->options->evaluation_id)->sum_of = "evaluation data";
    att_fields_add(fields, "judged", ATT_FIELD_INT, &t->evaluated);
    att_fields_add(fields, "best_step", ATT_FIELD_INT, &t->best_step);
    att_fields_add(fields, "best", ATT_FIELD_DOUBLE, &t->best);
    for (int64_t i = first; i < fields->n; i++)
        fields->field[i].optional = optional;
}

/* Adds the position, which is loaded, and the settings that change results. */
static void add_fields(att_training *t, att_fields *fields)
{
    const att_training_options *o = t->options;
    att_fields_add(fields, "epochs", ATT_FIELD_INT, &t->epochs);
    att_fields_add(fields, "batch", ATT_FIELD_INT, &t->batch);
    att_fields_add(fields, "step", ATT_FIELD_INT, &t->step);
    att_fields_int(fields, "accumulate", o->accumulate);
    att_fields_int(fields, "seed", (int64_t)o->seed);
    att_fields_int(fields, "schedule", o->schedule->kind);
    att_fields_int(fields, "warmup", o->schedule->warmup);
    att_fields_int(fields, "schedule_steps", o->schedule->steps);
    att_fields_double(fields, "rate", o->schedule->max_rate);
    att_fields_double(fields, "least_rate", o->schedule->min_rate);
    att_fields_double(fields, "clip", o->clip);
    const bool frozen = *t->freeze != 0;
    att_fields_text(fields, "freeze", t->freeze);
    fields->field[fields->n - 1].optional = !frozen;
    att_field *weights = att_fields_int(fields, "frozen", (int64_t)t->frozen);
    weights->optional = !frozen;
    weights->sum_of = "frozen weights";
    att_fields_int(fields, "shards", o->shards)->optional = o->shards == 1; /* version 0.2 had none */
    /* Checkpoints of version 0.2 have the following fields only for kinds that had such an option. */
    att_fields_double(fields, "decay", o->weight_decay)->optional = !(o->weight_decay > 0);
    const double beta2 = att_training_beta2(t->kind);
    att_fields_double(fields, "beta2", o->beta2)->optional = !(o->beta2 < beta2 || o->beta2 > beta2);
    att_fields_text(fields, "compute", att_compute_name(o->compute));
    fields->field[fields->n - 1].optional = o->compute == ATT_COMPUTE_F32; /* as in versions without this option */
    add_evaluation(t, fields);
    t->kind->settings(t->self, fields);
    if (o->note) {
        att_field *note = att_fields_add(fields, "note", ATT_FIELD_TEXT, o->note);
        note->room = o->note_bytes;
        note->optional = true;
    }
}

static att_status state_make(att_training *t, state *s)
{
    const int64_t n = t->params;
    const size_t max = (size_t)(n * (1 + MOMENTS) + 1);
    *s = (state){.names = att_alloc(t->ctx, max, sizeof *s->names),
                 .name = att_alloc(t->ctx, max, sizeof *s->name),
                 .tensor = att_alloc(t->ctx, max, sizeof *s->tensor)};
    if (!s->names || !s->name || !s->tensor) {
        state_free(t, s);
        return ATT_ERR_MEMORY;
    }
    for (int64_t i = 0; i < n; i++) {
        const char *name;
        const att_param *p = att_training_param(t, i, &name);
        if (att_training_is_saved(t, i, name))
            add_tensor(s, "", name, att_param_value(p));
        for (int k = 0; k < MOMENTS && att_training_learns(t, i); k++)
            add_tensor(s, kinds[k], name, att_optimizer_moment(t->optimizer, i, k));
    }
    add_tensor(s, "", "steps", att_optimizer_steps(t->optimizer));
    add_fields(t, &s->fields);
    s->all.names = s->name;
    s->all.tensors = s->tensor;
    s->all.n_fields = s->fields.n;
    s->all.fields = s->fields.field;
    return ATT_OK;
}

att_status att_training_check_numbers(const att_training *t, att_status status, const char *what, const char *name,
                                      const att_tensor *x, float min)
{
    const float *p = x->data;
    const int64_t n = att_elements(x);
    int64_t bad = 0;
    for (int64_t i = 0; i < n; i++)
        bad += !(p[i] >= min && p[i] <= FLT_MAX);
    if (!bad)
        return ATT_OK;
    while (*p >= min && *p <= FLT_MAX)
        p++;
    return att_fail(t->ctx, status, "%s: \"%s\" has %g at %lld", what, name, (double)*p,
                    (long long)(p - (const float *)x->data));
}

/* Checks that all numbers are finite, and second moments not negative. `what` begins the message. */
static att_status check_state(const att_training *t, const state *s, att_status status, const char *what)
{
    att_status e = ATT_OK;
    for (int64_t i = 0; !e && i < s->all.n; i++) {
        const float min = !strncmp(s->name[i], kinds[1], strlen(kinds[1])) ? 0 : -FLT_MAX;
        if (s->tensor[i].dtype == ATT_F32)
            e = att_training_check_numbers(t, status, what, s->name[i], &s->tensor[i], min);
    }
    return e;
}

att_status att_training_in_folder(const att_training *t, const char *caller)
{
    if (att_require(caller, ATT_NAMED({"t", t})))
        return ATT_ERR_ARGUMENT;
    return t->run ? ATT_OK : att_fail(t->ctx, ATT_ERR_ARGUMENT, "%s: the training has no folder", caller);
}

static att_status save(att_training *t, const char *caller, bool pause)
{
    state s;
    char what[ATT_MAX_PATH + 64];
    att_status e = att_training_in_folder(t, caller);
    e = e ? e : state_make(t, &s);
    if (e)
        return e;
    snprintf(what, sizeof what, "%s: step %lld is not saved", t->folder, (long long)t->step);
    e = check_state(t, &s, ATT_ERR_ARGUMENT, what);
    e = e ? e : att_run_save(t->run, t->step, pause, &s.all);
    t->saved = t->saved || !e;
    state_free(t, &s);
    return e;
}

att_status att_training_save(att_training *t) { return save(t, __func__, false); }

att_status att_training_pause(att_training *t) { return save(t, __func__, true); }

/* ---- loading */

/* Checks that the loaded position is possible. */
static att_status check_position(const att_training *t, const char *path)
{
    const int64_t steps = *(const int64_t *)att_optimizer_steps(t->optimizer)->data;
    int64_t batches = 0; /* batches done */
    const bool can_be =
        t->step >= 0 && t->step < INT64_MAX && !__builtin_mul_overflow(t->step + 1, t->options->accumulate, &batches);
    batches -= t->options->accumulate;
    if (!can_be || steps != t->step)
        return att_fail(t->ctx, ATT_ERR_FORMAT, "%s: \"step\" is %lld and the optimizer's \"steps\" %lld", path,
                        (long long)t->step, (long long)steps);
    if (t->epochs < 0 || t->epochs > batches || t->batch < 0 || t->batch > batches ||
        (t->epochs == 0) != (batches == 0))
        return att_fail(t->ctx, ATT_ERR_FORMAT, "%s: \"epochs\" is %lld and \"batch\" %lld, after %lld batches", path,
                        (long long)t->epochs, (long long)t->batch, (long long)batches);
    return ATT_OK;
}

/* Checks that a training could have saved this. */
static att_status check_loaded(const att_training *t, const state *s, int64_t step)
{
    char path[ATT_MAX_PATH];
    att_status e = att_run_path(t->run, step, path);
    if (!e && t->step != step)
        e = att_fail(t->ctx, ATT_ERR_FORMAT, "%s: \"step\" is %lld, not that of the file's name", path,
                     (long long)t->step);
    e = e ? e : check_position(t, path);
    if (!e &&
        (t->evaluated < 0 || t->evaluated > step || t->best_step < 0 || t->best_step > t->evaluated || isnan(t->best)))
        e = att_fail(t->ctx, ATT_ERR_FORMAT, "%s: \"judged\" is %lld, \"best_step\" %lld and \"best\" %g", path,
                     (long long)t->evaluated, (long long)t->best_step, t->best);
    return e ? e : check_state(t, s, ATT_ERR_FORMAT, path);
}

att_status att_training_load(att_training *t)
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
    for (int64_t i = 0; !e && i < t->params; i++) {
        const char *name;
        att_param_invalidate(att_training_param(t, i, &name));
    }
    return e;
}
