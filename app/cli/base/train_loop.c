/* What all trainings have in common: steps until a limit or a signal, checkpoints, validations, a log. */
#include "progress.h"
#include "train.h"

#include <math.h>

/* Of what has been learnt since the last validation. */
typedef struct mean {
    double sum;
    int64_t n;
} mean;

static int64_t judged(const cli_training *t)
{
    att_training_info info = {.size = sizeof info};
    att_training_describe(t->training, &info);
    return info.judged;
}

static int save(const cli_training *t) { return cli_status(t->ctx, att_training_save(t->training)); }

/* A line of the log, and one for who looks. */
static void note(const cli_training *t, const att_train_report *r, const mean *loss, const cli_validation *v)
{
    const double mean_loss = loss->sum / (double)loss->n;
    fprintf(t->log, "{\"step\": %lld", (long long)r->step);
    fprintf(stderr, "step %lld", (long long)r->step);
    if (loss->n > 0) { /* else a training goes on with the validation that it was stopped at */
        fprintf(t->log, ", \"epoch\": %lld, \"loss\": %.6g, \"norm\": %.4g, \"rate\": %.6g", (long long)r->epoch,
                mean_loss, r->norm, r->rate);
        fprintf(stderr, ", epoch %lld: loss %.4f", (long long)r->epoch, mean_loss);
    }
    fprintf(t->log, "%s}\n", v->log);
    fflush(t->log);
    fprintf(stderr, "%s\n", v->shown);
}

static int validate(cli_training *t, const att_train_report *r, mean *loss)
{
    cli_validation v = {.score = NAN};
    const int code = t->validate ? t->validate(t->user, &v) : CLI_DONE;
    if (code)
        return code;
    note(t, r, loss, &v);
    *loss = (mean){0};
    const bool better = v.score > t->best;
    t->best = better ? v.score : t->best;
    t->worse = better ? 0 : t->worse + 1;
    return CLI_DONE;
}

/* How much is done, to the limit that is nearest: from 0 to 1; 0 where there is none. */
static double share_of(const cli_training *t, int64_t step, double begin)
{
    const double steps = t->steps ? (double)step / (double)t->steps : 0;
    const double minutes = t->minutes > 0 ? (cli_seconds() - begin) / (60 * t->minutes) : 0;
    return fmin(1, fmax(steps, minutes));
}

/* Until one of the limits, or a signal. */
static int learn(cli_training *t)
{
    const double begin = cli_seconds();
    mean loss = {0};
    int64_t tokens = 0;
    cli_progress progress;
    const att_train_report so_far = {.step = att_trainer_steps(att_training_trainer(t->training))};
    bool saved = t->resume, done = share_of(t, so_far.step, begin) >= 1;
    int code = CLI_DONE;
    const bool due = done || so_far.step % t->validate_every == 0;
    if (t->judged && due && judged(t) < so_far.step) /* a signal came before */
        code = validate(t, &so_far, &loss);
    cli_progress_begin(&progress);
    while (!code && !done && !cli_signal) {
        att_train_report r = {.size = sizeof r};
        code = cli_status(t->ctx, att_trainer_step(att_training_trainer(t->training), &r));
        if (code)
            break;
        loss.sum += r.loss;
        loss.n++;
        tokens += r.target_tokens + (t->both ? r.source_tokens : 0);
        if (r.step == 1 && t->begun)
            t->begun(&r);
        const double share = share_of(t, r.step, begin);
        cli_progress_show(&progress, tokens, "tokens", share);
        done = share >= 1;
        saved = r.step % t->save_every == 0;
        code = saved ? save(t) : CLI_DONE;
        if (!code && (r.step % t->validate_every == 0 || done)) {
            cli_progress_end(&progress);
            saved = saved && !t->judged;
            code = validate(t, &r, &loss);
            done = done || (t->patience > 0 && t->worse >= t->patience);
        }
    }
    cli_progress_end(&progress);
    if (code == CLI_INTERRUPTED) /* amid a step, which was none then, or amid a validation */
        code = CLI_DONE;
    return code || saved ? code : save(t);
}

int cli_learn(cli_training *t)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/log.jsonl", t->folder);
    t->log = fopen(path, "a");
    if (!t->log)
        return cli_fail_errno(path);
    t->best = -INFINITY;
    int code = learn(t);
    if (fclose(t->log) && !code)
        code = cli_fail_errno(path);
    if (!code && cli_signal) {
        cli_note("stopped; the same command with --resume goes on from here");
        code = CLI_INTERRUPTED;
    }
    return code;
}
