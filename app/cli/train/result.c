/* The results of a training: validations, the model, the output of --json. */
#include "cli/base/progress.h"
#include "train.h"

#include <math.h>
#include <string.h>

static att_dtype dtype(const cli_training *t) { return t->options.dtype ? ATT_F16 : ATT_F32; }

/* Returns whether the model is the one of the best validation. */
static bool keeps_best(const cli_training *t) { return t->kind->keeps_best && t->validates && !t->options.average; }

/* Notes the score of a validation as that of the model that is written. */
static void set_score(cli_training *t, const cli_validation *v)
{
    t->score = v->score;
    t->low = v->low;
    t->high = v->high;
}

/* " (from 40.88 to 79.25)", or "" if the score has no interval */
typedef struct interval {
    char text[64];
} interval;

static interval interval_of(const cli_training *t)
{
    interval i = {""};
    if (t->low < t->high)
        snprintf(i.text, sizeof i.text, " (from %.*f to %.*f)", t->kind->digits, t->low, t->kind->digits, t->high);
    return i;
}

/* Appends the share of the time since the last validation for which the training has waited for images. */
static void add_waiting(cli_training *t, double now, cli_validation *v)
{
    const double waited = t->seconds_waiting(t->training);
    const size_t n = strlen(v->shown);
    snprintf(v->shown + n, sizeof v->shown - n, "; %.1f %% of the time waited for images",
             100 * (waited - t->waited) / (now - t->validated));
    t->waited = waited;
}

int cli_training_validate(cli_training *t, cli_validation *v)
{
    const double now = cli_seconds();
    const bool first = att_training_steps(t->training) == 0;
    int code = t->kind->validate(t, v);
    if (!code && t->seconds_waiting)
        add_waiting(t, now, v);
    if (!code && keeps_best(t) && !v->unscored)
        code = cli_status(t->ctx, first && t->in_folder ? att_training_keep_first(t->training, v->score)
                                                        : att_training_keep_best(t->training, v->score, dtype(t)));
    t->validated = cli_seconds();
    set_score(t, v);
    return code;
}

/* Reports how the training continues if the last validation was the best. */
static void report_improving(const cli_training *t)
{
    const cli_training_options *o = &t->options;
    const cli_shell_word folder = cli_quoted(o->folder);
    const char *command = t->kind->command;
    if (t->steps > att_training_steps(t->training) && !o->refit)
        cli_note("it was still improving: attend train %s --resume -o %s --minutes %g continues", command, folder.text,
                 2 * o->minutes);
    else if (o->refit || cli_schedule_falls(o->schedule) || (o->warmup > 0 && o->warmup < 1))
        cli_note("it was still improving: with more --epochs another training may be better");
    else
        cli_note("it was still improving: attend train %s --resume -o %s --%s %g continues", command, folder.text,
                 o->steps ? "steps" : "epochs", 2 * (o->steps ? (double)o->steps : o->epochs));
}

/* Reports which model was written as the best, or that no step was better than the model to begin with. */
static void report_best(cli_training *t, const att_training_info *info, bool stopped)
{
    const cli_trainer *k = t->kind;
    const char *folder = t->options.folder;
    const long long more = t->new_items;
    const double measure = k->negative ? -info->best : info->best;
    char items[64] = "";
    t->score = info->best;
    t->low = t->state.low;
    t->high = t->state.high;
    if (info->best_step > 0) {
        cli_note("%s is the model of step %lld, with the %s %s on validation, %.*f%s", folder,
                 (long long)info->best_step, k->negative ? "lowest" : "highest", k->measure, k->digits, measure,
                 interval_of(t).text);
        if (!stopped && info->best_step == att_training_steps(t->training))
            report_improving(t);
        return;
    }
    t->stays = t->in_folder;
    if (more > 0)
        snprintf(items, sizeof items, t->stays ? ", without the %lld new item%s" : ", with the new items", more,
                 more == 1 ? "" : "s");
    cli_note("no step was better than the model to begin with, whose %s on validation is %.*f%s: %s %s%s", k->measure,
             k->digits, measure, interval_of(t).text, folder, t->stays ? "stays unchanged" : "is that one", items);
}

int cli_training_write(cli_training *t, bool stopped, bool *none)
{
    att_training_info info = {.size = sizeof info};
    cli_validation v = {.score = NAN};
    int code = cli_status(t->ctx, att_training_describe(t->training, &info));
    const bool best = keeps_best(t) && isfinite(info.best);
    if (code)
        return code;
    *none = !best && t->kind->has_no_model && t->kind->has_no_model(t, stopped);
    if (*none)
        return CLI_DONE;
    if (best) {
        report_best(t, &info, stopped);
        return CLI_DONE;
    }
    if (keeps_best(t) && !stopped && t->kind->fail_unscored)
        return t->kind->fail_unscored(t);
    code = cli_status(t->ctx, att_training_write(t->training, t->options.average, dtype(t)));
    if (code || t->options.average < 2 || !t->validates || stopped)
        return code;
    code = t->kind->validate(t, &v);
    set_score(t, &v);
    if (!code)
        cli_note("the mean of the last checkpoints, up to %lld:%s", (long long)t->options.average,
                 v.shown + (*v.shown == ','));
    return code;
}

int cli_training_print_result(const cli_training *t, int code)
{
    att_training_info info = {.size = sizeof info};
    const int failed = cli_status(t->ctx, att_training_describe(t->training, &info));
    if (failed)
        return failed;
    const int64_t steps = att_training_steps(t->training);
    const bool best = keeps_best(t) && isfinite(info.best);
    const double score = best ? info.best : t->score;
    const double low = best ? t->state.low : t->low, high = best ? t->state.high : t->high;
    json_t *folder = json_string(t->options.folder), /* NULL: it is not UTF-8 */
        *v = json_pack("{s:o, s:b, s:s, s:I, s:I, s:o, s:b}", "model", folder ? folder : json_null(), "finished", !code,
                       "compute", cli_training_compute(t), "steps", (json_int_t)steps, "step",
                       (json_int_t)(best ? info.best_step : steps), t->kind->score,
                       isfinite(score) ? json_real(t->kind->negative ? -score : score) : json_null(), "improved",
                       !best || info.best_step > 0);
    if (isfinite(score) && low < high) {
        json_object_set_new(v, "low", json_real(low));
        json_object_set_new(v, "high", json_real(high));
    }
    json_dumpf(v, stdout, JSON_REAL_PRECISION(6));
    putchar('\n');
    json_decref(v);
    return code;
}
