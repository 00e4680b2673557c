/* What runs a command of attend train: its common options, its data, and the model that it writes. */
#include "cli/base/progress.h"
#include "cli/base/signals.h"
#include "train.h"

#include <math.h>
#include <string.h>

/* ---- options ------------------------------------------------------------------- */

int cli_training_complete(cli_training *t, const cli_trainer *kind, bool *given)
{
    t->kind = kind;
    for (int i = 0; kind->options[i].name; i++)
        t->file.typed[i] = given[i];
    const bool resume = t->options.resume;
    const int code = cli_training_options_read(t, given);
    t->continues = resume && !t->renewed;
    return code;
}

bool cli_schedule_falls(int kind) { return kind == ATT_COSINE || kind == ATT_LINEAR; }

/* "--steps is 40" or "--epochs is 2 (40 steps)" */
typedef struct limit {
    char text[96];
} limit;

static limit limit_of(const cli_training *t)
{
    limit l;
    const cli_training_options *o = &t->options;
    if (o->steps)
        snprintf(l.text, sizeof l.text, "--steps is %lld", (long long)o->steps);
    else
        snprintf(l.text, sizeof l.text, "--epochs is %g (%lld step%s)", o->epochs, (long long)t->steps,
                 t->steps == 1 ? "" : "s");
    return l;
}

/* The rates of all steps, and how often it validates and saves. */
static int plan(cli_training *t, att_schedule *rates)
{
    cli_training_options *o = &t->options;
    const bool falls = cli_schedule_falls(o->schedule), share = o->warmup < 1;
    if (o->steps && t->batches && cli_training_typed(t, "steps") && cli_training_typed(t, "epochs"))
        return cli_misuse("--steps does not go with --epochs: both state where the training ends");
    if (!t->batches && (!o->validate_every || !o->save_every))
        return cli_misuse("--%s-every 0: there are no epochs here, so a number of steps is needed",
                          o->validate_every ? "save" : "validate");
    const double parts = (double)o->accumulate, batches = (double)t->batches;
    const int64_t epoch = (int64_t)ceil(batches / parts);
    t->steps = o->steps ? o->steps : (int64_t)ceil(o->epochs * batches / parts);
    t->validate_every = o->validate_every ? o->validate_every : epoch;
    t->save_every = o->save_every ? o->save_every : epoch;
    if (falls && !t->steps)
        return cli_misuse("--schedule %s needs --steps, where the learning rate is 0",
                          o->schedule == ATT_COSINE ? "cosine" : "linear");
    if (share ? o->warmup > 0 && !t->steps : o->warmup != floor(o->warmup))
        return cli_misuse(share ? "--warmup %g, a share of all steps, needs --steps"
                                : "--warmup: %g is not a whole number of steps",
                          o->warmup);
    *rates = (att_schedule){.size = sizeof *rates,
                            .kind = (att_schedule_kind)o->schedule,
                            .max_rate = o->rate,
                            .warmup = (int64_t)(share ? o->warmup * (double)t->steps : o->warmup),
                            .steps = falls ? t->steps : 0};
    if (falls && t->steps <= rates->warmup)
        return cli_misuse("%s, not more than --warmup %g: between them --schedule falls to 0", limit_of(t).text,
                          o->warmup);
    if (o->patience && !t->validates && cli_training_typed(t, "patience"))
        return cli_misuse("--patience %lld needs %s", (long long)o->patience, t->kind->validation);
    if (!t->validates)
        o->patience = 0;
    return CLI_DONE;
}

double cli_training_epochs(const cli_training *t, double n)
{
    return n * (double)t->options.accumulate / (double)t->batches;
}

int cli_training_find_model(cli_training *t, cli_model_kind kind, const char **name)
{
    const int code = cli_model_find(kind, *name, &t->model);
    *name = t->model.text;
    return code;
}

int cli_training_status(const att_ctx *ctx, att_status s)
{
    static const char prefix[] = "options.";
    char text[1024];
    size_t n = 0;
    const char *message = att_error(ctx);
    if (s != ATT_ERR_ARGUMENT || strncmp(message, prefix, sizeof prefix - 1) != 0)
        return cli_status(ctx, s);
    for (bool name = false; *message && n < sizeof text - 3;) {
        if (!strncmp(message, prefix, sizeof prefix - 1)) {
            n += (size_t)snprintf(text + n, sizeof text - n, "--");
            message += sizeof prefix - 1;
            name = true;
            continue;
        }
        name = name && *message != ' ';
        text[n++] = name && *message == '_' ? '-' : *message;
        message++;
    }
    text[n] = 0;
    return cli_misuse("%s", text);
}

/* ---- the model ----------------------------------------------------------------- */

static att_dtype dtype(const cli_training *t) { return t->options.dtype ? ATT_F16 : ATT_F32; }

/* Is the model the one of the best validation? */
static bool keeps_best(const cli_training *t) { return t->kind->keeps_best && t->validates && !t->options.average; }

/* Appends what share of the time since the last validation the training has waited for images. */
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
    t->score = v->score;
    return code;
}

/* The last validation was the best: reports how the training continues. */
static void report_improving(const cli_training *t)
{
    const cli_training_options *o = &t->options;
    const cli_shell_word folder = cli_quoted(o->folder);
    const char *command = t->kind->command;
    if (t->steps > att_training_steps(t->training))
        cli_note("it was still improving: attend train %s --resume -o %s --minutes %g continues", command, folder.text,
                 2 * o->minutes);
    else if (cli_schedule_falls(o->schedule) || (o->warmup > 0 && o->warmup < 1))
        cli_note("it was still improving: with more --epochs another training may be better");
    else
        cli_note("it was still improving: attend train %s --resume -o %s --%s %g continues", command, folder.text,
                 o->steps ? "steps" : "epochs", 2 * (o->steps ? (double)o->steps : o->epochs));
}

/* The best model has been written: states which one it is, or that no step was better than the model to begin with. */
static void report_best(cli_training *t, const att_training_info *info, bool stopped)
{
    const cli_trainer *k = t->kind;
    const char *folder = t->options.folder;
    const long long more = t->new_items;
    const double measure = k->negative ? -info->best : info->best;
    char items[64] = "";
    t->score = info->best;
    if (info->best_step > 0) {
        cli_note("%s is the model of step %lld, with the %s %s on validation, %.*f", folder, (long long)info->best_step,
                 k->negative ? "lowest" : "highest", k->measure, k->digits, measure);
        if (!stopped && info->best_step == att_training_steps(t->training))
            report_improving(t);
        return;
    }
    t->stays = t->in_folder;
    if (more > 0)
        snprintf(items, sizeof items, t->stays ? ", without the %lld new item%s" : ", with the new items", more,
                 more == 1 ? "" : "s");
    cli_note("no step was better than the model to begin with, whose %s on validation is %.*f: %s %s%s", k->measure,
             k->digits, measure, folder, t->stays ? "stays unchanged" : "is that one", items);
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
    t->score = v.score;
    if (!code)
        cli_note("the mean of the last checkpoints, up to %lld:%s", (long long)t->options.average,
                 v.shown + (*v.shown == ','));
    return code;
}

/* --json: prints what model the folder has now. Returns code, or that of an error. */
static int print_result(const cli_training *t, int code)
{
    att_training_info info = {.size = sizeof info};
    const int failed = cli_status(t->ctx, att_training_describe(t->training, &info));
    if (failed)
        return failed;
    const int64_t steps = att_training_steps(t->training);
    const bool best = keeps_best(t) && isfinite(info.best);
    const double score = best ? info.best : t->score;
    json_t *folder = json_string(t->options.folder), /* NULL: it is not UTF-8 */
        *v = json_pack("{s:o, s:b, s:I, s:I, s:o, s:b}", "model", folder ? folder : json_null(), "finished", !code,
                       "steps", (json_int_t)steps, "step", (json_int_t)(best ? info.best_step : steps), t->kind->score,
                       isfinite(score) ? json_real(t->kind->negative ? -score : score) : json_null(), "improved",
                       !best || info.best_step > 0);
    json_dumpf(v, stdout, JSON_REAL_PRECISION(6));
    putchar('\n');
    json_decref(v);
    return code;
}

/* ---- the run ------------------------------------------------------------------- */

/* Opens the training. */
static int begin(cli_training *t)
{
    att_schedule rates;
    const cli_training_options *o = &t->options;
    int code = plan(t, &rates);
    if (code)
        return code;
    const int64_t keep = o->average > o->keep ? o->average : o->keep;
    const att_training_options *common = ATT_OPTIONS(
        att_training_options, .schedule = &rates, .beta2 = o->beta2, .weight_decay = o->decay, .clip = o->clip,
        .accumulate = o->accumulate, .seed = (uint64_t)o->seed, .resume = o->resume, .keep = keep > 1 ? keep : 1,
        .evaluation_id = t->evaluation_id, .note = t->note, .note_bytes = sizeof t->note);
    cli_end_later(); /* a signal cancels the start, which then leaves no folder */
    code = t->kind->open(t, common);
    if (!code && t->steps && t->steps < att_training_steps(t->training))
        code = cli_misuse("%s but %s is at step %lld", limit_of(t).text, t->options.folder,
                          (long long)att_training_steps(t->training));
    return code;
}

int cli_training_run(cli_training *t)
{
    const cli_trainer *kind = t->kind;
    int code = kind->check ? kind->check(t) : CLI_DONE;
    if (!code)
        code = cli_open(&t->ctx, t->options.threads);
    t->images.ctx = t->ctx;
    t->images.folder = t->options.folder;
    t->images.resume = t->options.resume;
    if (!code)
        code = kind->read(t);
    if (!code)
        code = begin(t);
    t->validated = cli_seconds();
    t->score = NAN;
    if (!code)
        code = cli_training_loop(t);
    if (t->options.json && (!code || code == CLI_INTERRUPTED) && t->training)
        code = print_result(t, code);
    att_training_free(t->training);
    cli_training_images_free(&t->images);
    if (kind->close)
        kind->close(t);
    att_close(t->ctx);
    return code;
}
