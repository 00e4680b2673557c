/* What all trainings have in common: steps until a limit or a signal, checkpoints, validations, a log. */
#include "cli/base/end.h"
#include "cli/base/progress.h"
#include "train.h"

#include <math.h>

/* ---- the state between two validations, which checkpoints keep as a text */

#define NOTE "loss %la over %lld, epoch %lld, norm %la, rate %la; best %la, worse since %lld"

static void write_note(cli_training *t)
{
    const cli_training_state *s = &t->state;
    snprintf(t->note, sizeof t->note, NOTE, s->loss, (long long)s->n, (long long)s->epoch, s->norm, s->rate, s->best,
             (long long)s->worse);
}

/* Starts with an empty state where the checkpoint has none, or an invalid one. */
static void read_note(cli_training *t)
{
    double loss, norm, rate, best;
    long long n, epoch, worse;
    t->state = (cli_training_state){.best = -INFINITY};
    if (sscanf(t->note, NOTE, &loss, &n, &epoch, &norm, &rate, &best, &worse) == 7 && n >= 0 && n < INT64_MAX &&
        isfinite(loss) && worse >= 0 && worse < INT64_MAX && !isnan(best))
        t->state = (cli_training_state){loss, norm, rate, best, n, epoch, worse};
}

static void add_step(cli_training *t, const att_training_report *r)
{
    cli_training_state *s = &t->state;
    s->loss += r->loss;
    s->n++;
    s->epoch = r->epoch;
    s->norm = r->norm;
    s->rate = r->rate;
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
    char line[512];
    const cli_training_state *s = &t->state;
    const double loss = s->loss / (double)s->n;
    snprintf(line, sizeof line, "{\"step\": %lld, \"epoch\": %lld, \"loss\": %.6g, \"norm\": %.4g, \"rate\": %.6g%s}\n",
             (long long)step, (long long)s->epoch, loss, s->norm, s->rate, v->log);
    fprintf(stderr, "step %lld, epoch %lld: loss %.4f%s\n", (long long)step, (long long)s->epoch, loss, v->shown);
    return cli_log_add(&t->log, line);
}

static int validate(cli_training *t, int64_t step)
{
    cli_validation v = {.score = NAN};
    int code = t->validate ? t->validate(t->user, &v) : CLI_DONE;
    code = code ? code : report(t, step, &v);
    if (code)
        return code;
    cli_training_state *s = &t->state;
    const bool better = v.score > s->best;
    *s = (cli_training_state){.best = better ? v.score : s->best, .worse = better ? 0 : s->worse + 1};
    return CLI_DONE;
}

/* Progress in [0, 1] towards the nearest limit; 0 where there is none. */
static double share_of(const cli_training *t, int64_t step, double begin)
{
    const double steps = t->steps ? (double)step / (double)t->steps : 0;
    const double minutes = t->minutes > 0 ? (cli_seconds() - begin) / (60 * t->minutes) : 0;
    return fmin(1, fmax(steps, minutes));
}

/* Early stopping: did the last `patience` validations bring no improvement? */
static bool is_out_of_patience(const cli_training *t) { return t->patience > 0 && t->state.worse >= t->patience; }

static bool is_due(const cli_training *t, int64_t step, bool done)
{
    return t->state.n > 0 && (done || step % t->validate_every == 0);
}

/* Validates and saves, each where it is due after this step. */
static int validate_and_save(cli_training *t, int64_t step, bool done, bool *unsaved)
{
    int code = is_due(t, step, done) ? validate(t, step) : CLI_DONE;
    if (!code && step % t->save_every == 0) {
        code = save(t, att_training_save);
        *unsaved = code != CLI_DONE;
    }
    return code;
}

/* Until one of the limits, or a signal. */
static int run_steps(cli_training *t)
{
    const double begin = cli_seconds();
    int64_t tokens = 0, step = att_training_steps(t->training);
    bool unsaved = !t->resume, done = share_of(t, step, begin) >= 1 || is_out_of_patience(t);
    int code = CLI_DONE;
    if (t->resume && is_due(t, step, done)) { /* the signal came before that validation */
        unsaved = true;
        code = validate_and_save(t, step, done, &unsaved);
    }
    cli_progress progress;
    cli_progress_begin(&progress);
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
        tokens += r.target_tokens + (t->both ? r.source_tokens : 0);
        if (step == 1 && t->begun)
            t->begun(&r);
        const double share = share_of(t, step, begin);
        cli_progress_show(&progress, tokens, "tokens", share);
        done = share >= 1;
        if (is_due(t, step, done))
            cli_progress_end(&progress);
        code = validate_and_save(t, step, done, &unsaved);
        done = done || is_out_of_patience(t);
    }
    cli_progress_end(&progress);
    if (code == CLI_INTERRUPTED) /* in the middle of a step, which then counts as none, or of a validation */
        code = CLI_DONE;
    if (unsaved && code) { /* as far as possible; the first error has been reported */
        write_note(t);
        att_training_pause(t->training);
    } else if (unsaved)
        code = save(t, att_training_pause);
    return code;
}

int cli_training_run(cli_training *t)
{
    read_note(t);
    int code = cli_log_open(&t->log, t->folder, att_training_steps(t->training));
    if (code)
        return code;
    cli_end_later();
    code = cli_log_close(&t->log, run_steps(t));
    if (!code && cli_signal) {
        cli_note("stopped; the same command with --resume goes on from here");
        code = CLI_INTERRUPTED;
    }
    return code;
}
