/* Runs a command of attend train: its common options, its data, its steps. */
#include "cli/base/progress.h"
#include "cli/base/signals.h"
#include "refit.h"
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
    int code = cli_refit_begin(t);
    if (!code)
        code = cli_training_options_read(t, given);
    t->continues = resume && !t->renewed;
    if (!code && t->renewed && t->options.refit)
        code = cli_misuse("--refit does not go with --resume and another log: train in another folder, or with --split "
                          "none and --epochs N");
    return code;
}

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

/* Checks the rates of all steps, and how often it validates and saves. */
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
                          o->schedule == ATT_SCHEDULE_COSINE ? "cosine" : "linear");
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
    const int code = cli_refit_check(t, falls);
    if (code)
        return code;
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

int cli_training_find_model(cli_training *t, att_subject subject, const char **name)
{
    const int code = cli_model_find(subject, *name, &t->model);
    *name = t->model.text;
    return code;
}

int cli_training_status(const att_ctx *ctx, att_status s)
{
    static const char prefix[] = "options.";
    char text[1024];
    size_t n = 0;
    const char *message = att_error(ctx);
    if (s == ATT_ERR_ARGUMENT && !strncmp(message, "freeze: ", 8))
        return cli_misuse("--%s", message);
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

/* ---- the run ------------------------------------------------------------------- */

/* The patterns of --freeze */
enum { PATTERNS = 64 };
typedef struct patterns {
    char text[4300];
    const char *list[PATTERNS];
    int n;
} patterns;

static int read_patterns(const char *text, patterns *p)
{
    *p = (patterns){.n = 0};
    if (!text)
        return CLI_DONE;
    if (snprintf(p->text, sizeof p->text, "%s", text) >= (int)sizeof p->text)
        return cli_misuse("--freeze is longer than %d bytes", (int)sizeof p->text - 1);
    char *next = p->text;
    for (char *one; (one = strsep(&next, ","));) {
        if (!*one || p->n == PATTERNS)
            return *one ? cli_misuse("--freeze has more than %d patterns", PATTERNS)
                        : cli_misuse("--freeze %s has an empty pattern", text);
        p->list[p->n++] = one;
    }
    return CLI_DONE;
}

/* Opens the training. */
static int begin(cli_training *t)
{
    att_schedule rates;
    const cli_training_options *o = &t->options;
    int code = plan(t, &rates);
    if (code)
        return code;
    patterns freeze;
    code = read_patterns(o->freeze, &freeze);
    if (code)
        return code;
    const int64_t keep = o->average > o->keep ? o->average : o->keep;
    const att_training_options *common = ATT_OPTIONS(
        att_training_options, .schedule = &rates, .beta2 = o->beta2, .weight_decay = o->decay, .clip = o->clip,
        .accumulate = o->accumulate, .shards = o->shards, .compute = (att_compute)o->compute, .seed = (uint64_t)o->seed,
        .freeze = freeze.list, .n_freeze = freeze.n, .resume = o->resume, .keep = keep > 1 ? keep : 1,
        .evaluation_id = t->evaluation_id, .note = t->note, .note_bytes = sizeof t->note);
    cli_end_later(); /* a signal cancels the start, which then leaves no folder */
    code = t->kind->open(t, common);
    if (!code && t->steps && t->steps < att_training_steps(t->training))
        code = cli_misuse("%s but %s is at step %lld", limit_of(t).text, t->options.folder,
                          (long long)att_training_steps(t->training));
    return code;
}

/* Stores which step has the best validated model. */
static int find_best(cli_training *t)
{
    att_training_info info = {.size = sizeof info};
    const int code = cli_status(t->ctx, att_training_describe(t->training, &info));
    t->best_step = info.best_step;
    return code;
}

static int run(cli_training *t)
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
    if (!code && t->options.refit)
        code = find_best(t);
    if (t->options.json && (!code || code == CLI_INTERRUPTED) && t->training)
        code = cli_training_print_result(t, code);
    att_training_free(t->training);
    cli_training_images_free(&t->images);
    if (kind->close)
        kind->close(t);
    att_close(t->ctx);
    return code;
}

int cli_training_run(cli_training *t)
{
    int code = run(t);
    if (!code && t->refit_folder) {
        code = cli_refit_next(t, cli_training_epochs(t, (double)t->best_step));
        code = code ? code : run(t);
    }
    return code;
}
