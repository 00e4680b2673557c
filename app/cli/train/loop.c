/* What all trainings have in common: steps until a limit or a signal, checkpoints, validations, a log. */
#include "cli/base/end.h"
#include "cli/base/progress.h"
#include "train.h"

#include <math.h>

/* ---- what a training knows between two validations: checkpoints have it as a text */

#define NOTE "loss %la over %lld, epoch %lld, norm %la, rate %la; best %la, worse since %lld"

static void write_note(cli_training *t)
{
    const cli_training_so_far *s = &t->so_far;
    snprintf(t->note, sizeof t->note, NOTE, s->loss, (long long)s->n, (long long)s->epoch, s->norm, s->rate, s->best,
             (long long)s->worse);
}

/* Begins anew where there is none, or none that can be. */
static void read_note(cli_training *t)
{
    double loss, norm, rate, best;
    long long n, epoch, worse;
    t->so_far = (cli_training_so_far){.best = -INFINITY};
    if (sscanf(t->note, NOTE, &loss, &n, &epoch, &norm, &rate, &best, &worse) == 7 && n >= 0 && n < INT64_MAX &&
        isfinite(loss) && worse >= 0 && worse < INT64_MAX && !isnan(best))
        t->so_far = (cli_training_so_far){loss, norm, rate, best, n, epoch, worse};
}

static void count(cli_training *t, const att_train_report *r)
{
    cli_training_so_far *s = &t->so_far;
    s->loss += r->loss;
    s->n++;
    s->epoch = r->epoch;
    s->norm = r->norm;
    s->rate = r->rate;
}

/* ---- saved and validated */

/* A checkpoint: the log's lines are on the disk before it, so that one that goes on from it has them. */
static int save(cli_training *t, att_status (*how)(att_training *))
{
    const int code = cli_log_flush(&t->log);
    write_note(t);
    return code ? code : cli_status(t->ctx, how(t->training));
}

/* A line of the log, and one for who looks. */
static int note(cli_training *t, int64_t step, const cli_validation *v)
{
    char line[512];
    const cli_training_so_far *s = &t->so_far;
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
    code = code ? code : note(t, step, &v);
    if (code)
        return code;
    cli_training_so_far *s = &t->so_far;
    const bool better = v.score > s->best;
    *s = (cli_training_so_far){.best = better ? v.score : s->best, .worse = better ? 0 : s->worse + 1};
    return CLI_DONE;
}

/* How much is done, to the limit that is nearest: from 0 to 1; 0 where there is none. */
static double share_of(const cli_training *t, int64_t step, double begin)
{
    const double steps = t->steps ? (double)step / (double)t->steps : 0;
    const double minutes = t->minutes > 0 ? (cli_seconds() - begin) / (60 * t->minutes) : 0;
    return fmin(1, fmax(steps, minutes));
}

/* As many validations as are allowed were no better. */
static bool is_hopeless(const cli_training *t) { return t->patience > 0 && t->so_far.worse >= t->patience; }

static bool is_due(const cli_training *t, int64_t step, bool done)
{
    return t->so_far.n > 0 && (done || step % t->validate_every == 0);
}

/* Validates and saves where that is due. */
static int look_after(cli_training *t, int64_t step, bool done, bool *unsaved)
{
    int code = is_due(t, step, done) ? validate(t, step) : CLI_DONE;
    if (!code && step % t->save_every == 0) {
        code = save(t, att_training_save);
        *unsaved = code != CLI_DONE;
    }
    return code;
}

/* Until one of the limits, or a signal. */
static int learn(cli_training *t)
{
    const double begin = cli_seconds();
    int64_t tokens = 0, step = att_trainer_steps(att_training_trainer(t->training));
    bool unsaved = !t->resume, done = share_of(t, step, begin) >= 1 || is_hopeless(t);
    int code = CLI_DONE;
    if (t->resume && is_due(t, step, done)) { /* a signal came before that */
        unsaved = true;
        code = look_after(t, step, done, &unsaved);
    }
    cli_progress progress;
    cli_progress_begin(&progress);
    while (!code && !done && !cli_signal) {
        att_train_report r = {.size = sizeof r};
        code = cli_status(t->ctx, att_trainer_step(att_training_trainer(t->training), &r));
        if (code) { /* it was no step; what is not due to a signal would happen again */
            unsaved &= code == CLI_INTERRUPTED;
            break;
        }
        step = r.step;
        unsaved = true;
        count(t, &r);
        tokens += r.target_tokens + (t->both ? r.source_tokens : 0);
        if (step == 1 && t->begun)
            t->begun(&r);
        const double share = share_of(t, step, begin);
        cli_progress_show(&progress, tokens, "tokens", share);
        done = share >= 1;
        if (is_due(t, step, done))
            cli_progress_end(&progress);
        code = look_after(t, step, done, &unsaved);
        done = done || is_hopeless(t);
    }
    cli_progress_end(&progress);
    if (code == CLI_INTERRUPTED) /* amid a step, which was none then, or amid a validation */
        code = CLI_DONE;
    if (unsaved && code) { /* if that is possible; what went wrong first has been said */
        write_note(t);
        att_training_pause(t->training);
    } else if (unsaved)
        code = save(t, att_training_pause);
    return code;
}

int cli_learn(cli_training *t)
{
    read_note(t);
    int code = cli_log_open(&t->log, t->folder, att_trainer_steps(att_training_trainer(t->training)));
    if (code)
        return code;
    cli_end_later();
    code = cli_log_close(&t->log, learn(t));
    if (!code && cli_signal) {
        cli_note("stopped; the same command with --resume goes on from here");
        code = CLI_INTERRUPTED;
    }
    return code;
}
