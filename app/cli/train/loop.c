/* The loop of all trainings: steps until a limit or a signal, checkpoints, validations, a log. */
#include "cli/base/progress.h"
#include "cli/model/checkpoints.h"
#include "train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the state between two validations, which checkpoints keep as a text */

#define NOTE "loss %la over %lld, epoch %lld, norm %la, rate %la; best %la, worse since %lld; seconds "

/* Returns the wall-clock time of the training, including that of the processes that it continues. */
static double seconds_of(const cli_training *t) { return t->seconds + cli_seconds() - t->begin; }

static void write_note(cli_training *t)
{
    const cli_training_state *s = &t->state;
    /* The seconds have a fixed length: all checkpoints are as long as those of an uninterrupted training. */
    snprintf(t->note, sizeof t->note, NOTE "%015.3f; best from %la to %la", s->loss, (long long)s->n,
             (long long)s->epoch, s->norm, s->rate, s->best, (long long)s->worse, seconds_of(t), s->low, s->high);
}

/* Reads the state from the checkpoint. It is empty if the checkpoint has none, or an invalid one. */
static void read_note(cli_training *t)
{
    double loss, norm, rate, best, seconds = 0, low = 0, high = 0;
    long long n, epoch, worse;
    t->state = (cli_training_state){.best = -INFINITY};
    /* Older checkpoints have no seconds, or no interval. */
    if (sscanf(t->note, NOTE "%lf; best from %lf to %lf", &loss, &n, &epoch, &norm, &rate, &best, &worse, &seconds,
               &low, &high) >= 7 &&
        n >= 0 && n < INT64_MAX && isfinite(loss) && worse >= 0 && worse < INT64_MAX && !isnan(best))
        t->state = (cli_training_state){loss, norm, rate, best, low, high, n, epoch, worse};
    t->seconds = seconds >= 0 && seconds < 1e11 ? seconds : 0;
}

static void add_step(cli_training *t, const att_training_report *r)
{
    cli_training_state *s = &t->state;
    s->loss += r->loss;
    s->n++;
    s->epoch = r->epoch;
    s->norm = r->norm;
    s->rate = r->rate;
    t->score = NAN;
}

/* ---- saving and validating */

/* Saves a checkpoint. The log is flushed first: a training that resumes from here finds all its lines. */
static int save(cli_training *t, att_status (*how)(att_training *))
{
    const int code = cli_log_flush(&t->log);
    write_note(t);
    return code ? code : cli_status(t->ctx, how(t->training));
}

/* Writes the averages since the last validation, and v, to the log and to standard error. */
static int report(cli_training *t, int64_t step, const cli_validation *v)
{
    char line[640];
    const cli_training_state *s = &t->state;
    const double loss = s->loss / (double)s->n;
    const char *name = t->kind->quantity ? t->kind->quantity(t) : "loss";
    snprintf(line, sizeof line,
             "{\"step\": %lld, \"seconds\": %.3f, \"epoch\": %lld, \"%s\": %.6g, \"norm\": %.4g, \"rate\": %.6g%s}\n",
             (long long)step, seconds_of(t), (long long)s->epoch, name, loss, s->norm, s->rate, v->log);
    fprintf(stderr, "step %lld, epoch %lld: %s %.4f%s\n", (long long)step, (long long)s->epoch, name, loss, v->shown);
    return cli_log_add(&t->log, line);
}

static int validate(cli_training *t, int64_t step)
{
    cli_validation v = {.score = NAN};
    int code = t->validates ? cli_training_validate(t, &v) : CLI_DONE;
    code = code ? code : report(t, step, &v);
    if (code)
        return code;
    cli_training_state *s = &t->state;
    const bool better = v.score > s->best;
    *s = (cli_training_state){.best = better ? v.score : s->best,
                              .low = better ? v.low : s->low,
                              .high = better ? v.high : s->high,
                              .worse = better ? 0 : s->worse + !v.unscored};
    return CLI_DONE;
}

/* Evaluates the initial model. Later models must be better. */
static int validate_first(cli_training *t)
{
    char line[640];
    cli_validation v = {.score = NAN};
    int code = cli_training_validate(t, &v);
    if (code)
        return code;
    snprintf(line, sizeof line, "{\"step\": 0, \"seconds\": %.3f%s}\n", seconds_of(t), v.log);
    fprintf(stderr, "step 0, the model to begin with%s\n", v.shown);
    if (v.score > t->state.best) {
        t->state.best = v.score;
        t->state.low = v.low;
        t->state.high = v.high;
    }
    return cli_log_add(&t->log, line);
}

double cli_training_time(const cli_training *t)
{
    return t->options.minutes > 0 ? seconds_of(t) / (60 * t->options.minutes) : 0;
}

void cli_training_forget(cli_training *t)
{
    t->state.loss = 0;
    t->state.n = 0;
}

/* Returns the progress in [0, 1] towards the nearest limit; 0 if there is none. */
static double share_of(const cli_training *t, int64_t step)
{
    const double steps = t->steps ? (double)step / (double)t->steps : 0;
    return fmin(1, fmax(steps, cli_training_time(t)));
}

/* Returns whether to stop early: the last `patience` validations brought no improvement. */
static bool is_out_of_patience(const cli_training *t)
{
    return t->options.patience > 0 && t->state.worse >= t->options.patience;
}

static bool is_due(const cli_training *t, int64_t step, bool done)
{
    return t->state.n > 0 && (done || step % t->validate_every == 0);
}

/* Returns whether the training has reached a limit. */
static bool is_done(const cli_training *t, int64_t step) { return share_of(t, step) >= 1 || is_out_of_patience(t); }

/* Validates and saves, if each is due after this step. */
static int validate_and_save(cli_training *t, int64_t step, bool done, bool *unsaved)
{
    int code = is_due(t, step, done) ? validate(t, step) : CLI_DONE;
    if (!code && step % t->save_every == 0) {
        code = save(t, att_training_save);
        *unsaved = code != CLI_DONE;
    }
    return code;
}

/* Does the work that the last process could not do after its last step: a signal came before the validation, or the
 * checkpoint could not be written and only a pause was saved, which is not averaged. */
static int make_up(cli_training *t, int64_t step, bool done, bool *unsaved)
{
    cli_checkpoints c;
    cli_checkpoints_find(t->options.folder, &c);
    if (!is_due(t, step, done) && !(c.paused && step > 0 && step % t->save_every == 0))
        return CLI_DONE;
    *unsaved = true;
    return validate_and_save(t, step, done, unsaved);
}

/* Runs steps until one of the limits, or a signal. *limit: it was a limit. */
static int run_steps(cli_training *t, bool *limit)
{
    int64_t counted = 0, step = att_training_steps(t->training);
    bool unsaved = !t->options.resume, done = is_done(t, step);
    int code = t->validates && t->has_base && step == 0 ? validate_first(t) : CLI_DONE;
    if (!code && t->options.resume)
        code = make_up(t, step, done, &unsaved);
    done = done || is_out_of_patience(t);
    cli_progress progress;
    cli_progress_begin(&progress);
    progress.unit = t->kind->unit;
    cli_progress_step(&progress, step, NAN, 0, share_of(t, step));
    while (!code && !done && !cli_signal) {
        att_training_report r = {.size = sizeof r};
        code = cli_status(t->ctx, att_training_step(t->training, &r));
        if (code) { /* no step was made; saving helps only after a signal, as an error would occur again */
            unsaved &= code == CLI_INTERRUPTED;
            break;
        }
        step = r.step;
        unsaved = true;
        add_step(t, &r);
        counted += t->kind->sources ? r.sources : r.targets;
        const double share = share_of(t, step);
        cli_progress_step(&progress, step, t->state.loss / (double)t->state.n, counted, share);
        done = share >= 1;
        if (is_due(t, step, done))
            cli_progress_clear();
        code = validate_and_save(t, step, done, &unsaved);
        done = done || is_out_of_patience(t);
        if (!code && t->kind->after_step)
            code = t->kind->after_step(t);
    }
    cli_progress_end(&progress);
    *limit = done && !code;
    if (code == CLI_INTERRUPTED) /* in the middle of a step, which then does not count, or of a validation */
        code = CLI_DONE;
    if (unsaved && code) { /* saves if possible; the first error has been reported */
        write_note(t);
        att_training_pause(t->training);
    } else if (unsaved)
        code = save(t, att_training_pause);
    return code;
}

/* ---- the start and the end */

/* Writes the first line of an empty log. */
static int log_options(cli_training *t)
{
    char *line;
    if (!t->kind->logs_options || t->log.bytes > 0)
        return CLI_DONE;
    int code = cli_training_options_line(t, &line);
    if (code)
        return code;
    code = cli_log_add(&t->log, line);
    free(line);
    return code;
}

/* Reports the data of the training, its current step and its limits. done: it has reached a limit. */
static int report_start(const cli_training *t, bool done)
{
    att_training_info info = {.size = sizeof info};
    char limit[96] = "until interrupted";
    const long long step = att_training_steps(t->training);
    const double minutes = t->options.minutes;
    int code = cli_status(t->ctx, att_training_describe(t->training, &info));
    if (code)
        return code;
    if (t->steps && minutes > 0)
        snprintf(limit, sizeof limit, "%lld step%s or %g minute%s", (long long)t->steps, t->steps == 1 ? "" : "s",
                 minutes, minutes == 1 ? "" : "s");
    else if (t->steps)
        snprintf(limit, sizeof limit, "%lld step%s", (long long)t->steps, t->steps == 1 ? "" : "s");
    else if (minutes > 0)
        snprintf(limit, sizeof limit, "%g minute%s", minutes, minutes == 1 ? "" : "s");
    t->kind->report(t, &info);
    const int threads = att_threads(t->ctx);
    if (info.vocabulary && !t->kind->unit)
        fprintf(stderr, "vocabulary of %lld, ", (long long)info.vocabulary);
    fprintf(stderr, "%lld ", (long long)info.parameters);
    if (info.frozen)
        fprintf(stderr, "of %lld ", (long long)(info.parameters + info.frozen));
    fprintf(stderr, "parameters; %d thread%s; ", threads, threads == 1 ? "" : "s");
    const char *compute = cli_training_compute(t);
    if (t->options.compute && compute)
        fprintf(stderr, "products of %s; ", compute);
    if (step > 0 && done)
        fprintf(stderr, "at step %lld, with no further step to make (%s)\n", step, limit);
    else if (step > 0)
        fprintf(stderr, "continues after step %lld, %s in all\n", step, limit);
    else
        fprintf(stderr, "%s\n", limit);
    return CLI_DONE;
}

/* Returns whether the folder has the initial model of its training. */
static bool has_base(const char *folder)
{
    char path[4200];
    struct stat s;
    return snprintf(path, sizeof path, "%s/base", folder) < (int)sizeof path && stat(path, &s) == 0;
}

/* Reports the size and the purpose of remaining checkpoints. */
static void report_checkpoints(const cli_training *t)
{
    cli_checkpoints c;
    const char *folder = t->options.folder;
    cli_checkpoints_find(folder, &c);
    if (c.n > 0)
        cli_note("%.3g MB are checkpoints, which only --resume needs%s; to delete them: rm %s/checkpoint-*.safetensors",
                 1e-6 * (double)c.bytes, has_base(folder) ? ", like the model in base/" : "", cli_quoted(folder).text);
}

/* Writes the final model. changed: false if the folder's model is up to date. */
static int finish(cli_training *t, bool changed)
{
    const char *command = t->used_by ? t->used_by : t->kind->command, *folder = t->options.folder;
    bool none = false;
    int code = changed ? cli_training_write(t, false, &none) : CLI_DONE;
    if (code || none)
        return code ? code : CLI_FAILED;
    if (changed && !t->stays)
        cli_note("%s is a model now: attend %s -m %s", folder, command, cli_quoted(folder).text);
    else if (!changed)
        cli_note("%s is a model that has finished its training, and stays as it is", folder);
    code = cli_training_options_write(t, folder, att_training_steps(t->training));
    if (!code)
        code = cli_status(t->ctx, att_training_keep(t->training, t->options.keep));
    if (!code)
        report_checkpoints(t);
    return code;
}

/* Evaluates the model so far. */
static int stop(cli_training *t)
{
    const char *command = t->kind->command, *used_by = t->used_by ? t->used_by : command;
    const cli_shell_word folder = cli_quoted(t->options.folder),
                         resumed = cli_quoted(t->refit_folder ? t->refit_folder : t->options.folder);
    bool none = false;
    const int code = cli_training_write(t, true, &none);
    if (code || none)
        return code ? code : CLI_INTERRUPTED;
    cli_note("stopped after step %lld; attend train %s --resume -o %s continues, attend %s -m %s uses the model so far",
             (long long)att_training_steps(t->training), command, resumed.text, used_by, folder.text);
    return CLI_INTERRUPTED;
}

/* Opens the log and stores the options; after an error nothing of that is left. */
static int begin_files(cli_training *t, int64_t first)
{
    char path[CLI_TRAINING_PATH];
    struct stat s;
    bool lists = false;
    int code = cli_training_file_path(t->options.folder, path);
    const bool is_new = !code && lstat(path, &s) != 0;
    if (!code)
        code = cli_log_open(&t->log, t->options.folder, first > 0 ? first : -1) /* from the start: a new log */;
    if (code)
        return code;
    code = cli_training_images_write(&t->images, &lists);
    if (!code)
        code = cli_training_options_write(t, t->options.folder, cli_training_finished(t));
    if (!code)
        code = log_options(t);
    if (code)
        cli_log_discard(&t->log);
    if (code && lists)
        cli_training_images_discard(&t->images);
    if (code && is_new)
        unlink(path);
    return code;
}

int cli_training_loop(cli_training *t)
{
    const int64_t first = att_training_steps(t->training);
    bool limit = false;
    t->begin = cli_seconds();
    read_note(t);
    int code = begin_files(t, first);
    if (code)
        return code;
    code = report_start(t, is_done(t, first));
    if (!code)
        code = run_steps(t, &limit);
    code = cli_log_close(&t->log, code);
    if (code)
        return code;
    const bool was_finished = first > 0 && first == cli_training_finished(t);
    return limit ? finish(t, !was_finished || att_training_steps(t->training) > first) : stop(t);
}
