/* Computes perplexity, which measures how well a language model predicts a text, window by window. */
#include "io/progress.h"
#include "util/util.h"
#include "stack/language_model.h"

#include <math.h>

enum { DEFAULT_WINDOW = 1024, BATCH_TOKENS = 2048 };

typedef struct evaluation {
    const att_language_model *m;
    const int32_t *ids; /* [n] */
    int64_t n, window, stride, windows, batch;
    int32_t *targets, *input; /* [batch * window] */
    int64_t *offsets;         /* [batch + 1] */
} evaluation;

/* Writes the inputs of windows [first, first + count) one after another. Targets that an earlier window predicts are
 * ignored. */
static void fill(const evaluation *e, int64_t first, int64_t count)
{
    e->offsets[0] = 0;
    for (int64_t b = 0; b < count; b++) {
        const int64_t k = first + b, begin = k * e->stride, end = att_min(begin + e->window, e->n - 1);
        /* The first target that no earlier window has */
        const int64_t new = k == 0 ? 0 : begin - e->stride + e->window;
        int64_t at = e->offsets[b];
        for (int64_t i = begin; i < end; i++, at++) {
            e->input[at] = e->ids[i];
            e->targets[at] = i < new ? -1 : e->ids[i + 1];
        }
        e->offsets[b + 1] = at;
    }
}

/* Computes the sum of the losses of windows [first, first + count). */
static att_status add_windows(const evaluation *e, att_tape *t, int64_t first, int64_t count, double *sum,
                              int64_t *tokens)
{
    int64_t predicted = 0;
    att_tensor loss;
    fill(e, first, count);
    att_var *y = att_language_model_loss(t, e->m, e->input, e->offsets, count, e->targets,
                                         ATT_OPTIONS(att_cross_entropy_options, .sum = true, .count = &predicted));
    const att_status s = att_var_value(t, y, &loss);
    if (!s) {
        *sum += (double)*(float *)loss.data;
        *tokens += predicted;
    }
    att_tape_reset(t);
    return s;
}

static att_status evaluate(const evaluation *e, const att_perplexity_options *o, att_perplexity *all)
{
    att_tape *t = NULL;
    att_ctx *ctx = e->m->model.ctx;
    att_status s = att_model_tape(&e->m->model, &t);
    double sum = 0;
    att_progress p = {
        .ctx = ctx, .call = "att_language_perplexity", .report = o->progress, .user = o->user, .all = e->windows};
    for (int64_t k = 0; !s && k < e->windows; k += e->batch) {
        const int64_t count = att_min(e->batch, e->windows - k);
        s = add_windows(e, t, k, count, &sum, &all->tokens);
        s = s ? s : att_progress_add(&p, count);
    }
    att_tape_free(t);
    if (!s) {
        all->loss = sum / (double)all->tokens;
        all->perplexity = exp(all->loss);
        if (!isfinite(all->loss))
            s = att_fail(
                ctx, ATT_ERR_ARGUMENT,
                "att_language_perplexity: the model's logits are not finite: the weights are damaged, or too large");
    }
    return s;
}

static att_status configure(evaluation *e, const att_perplexity_options *o, int64_t positions)
{
    att_ctx *ctx = e->m->model.ctx;
    e->window = o->window ? o->window : att_min(positions, DEFAULT_WINDOW);
    e->stride = o->stride ? o->stride : e->window;
    if (e->n < 2)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "att_language_perplexity: n is %lld; a text has at least 2 tokens",
                        (long long)e->n);
    if (e->window < 1 || e->window > positions)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "att_language_perplexity: options.window is %lld, not in [1, %lld]",
                        (long long)e->window, (long long)positions);
    if (e->stride < 1 || e->stride > e->window)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "att_language_perplexity: options.stride is %lld, not in [1, %lld]",
                        (long long)e->stride, (long long)e->window);
    e->windows = 1 + (e->n - 1 > e->window ? att_ceil_div(e->n - 1 - e->window, e->stride) : 0);
    e->batch = att_min(e->windows, att_max(BATCH_TOKENS / e->window, 1));
    return ATT_OK;
}

att_status att_language_perplexity(const att_language_model *m, const int32_t *ids, int64_t n,
                                   const att_perplexity_options *options, att_perplexity *out)
{
    if (att_require(__func__, ATT_NAMED({"m", m}, {"ids", ids}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    att_ctx *ctx = m->model.ctx;
    evaluation e = {.m = m, .ids = ids, .n = n};
    att_perplexity_options o;
    att_status s = att_options_read(&o, sizeof o, options, "att_perplexity_options");
    s = s ? s : configure(&e, &o, m->info.max_positions);
    if (s)
        return s;
    e.input = att_alloc(ctx, (size_t)(e.batch * e.window), sizeof *e.input);
    e.targets = att_alloc(ctx, (size_t)(e.batch * e.window), sizeof *e.targets);
    e.offsets = att_alloc(ctx, (size_t)e.batch + 1, sizeof *e.offsets);
    att_perplexity all = {.windows = e.windows, .window = e.window, .stride = e.stride};
    s = e.input && e.targets && e.offsets ? evaluate(&e, &o, &all) : ATT_ERR_MEMORY;
    att_free(ctx, e.input);
    att_free(ctx, e.targets);
    att_free(ctx, e.offsets);
    return s ? s : att_info_write(out, &all, sizeof all, "att_perplexity");
}
