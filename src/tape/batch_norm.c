/* Batch normalization: each channel is normalized over all rows. Sums are in double, over blocks of rows and then over
 * the blocks in ascending order, so that their bits depend only on the shape. */
#include "tape/tape.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 256 };

typedef struct batch_norm_saved {
    const double *mean, *rstd; /* [channels]: statistics of the batch, or the running ones; rstd is 1 /
                                * sqrt(variance + eps) */
    bool training;
} batch_norm_saved;

typedef struct batch_norm_job batch_norm_job;
struct batch_norm_job {
    int64_t rows, channels;
    const float *x, *dy;       /* [rows, channels] */
    float *y;                  /* [rows, channels]: y or dx */
    const double *mean, *rstd; /* [channels], as those of apply and backward: */
    const double *scale, *shift, *slope;
    /* Adds terms of a row to sums [sums]. */
    void (*add)(const batch_norm_job *j, int64_t row, double *sum);
    int64_t sums; /* channels, or twice as many */
    double *part; /* [blocks, sums] */
    double *total;
};

/* ---- sums over rows */

static void add_x(const batch_norm_job *j, int64_t row, double *sum)
{
    const float *x = j->x + row * j->channels;
    for (int64_t c = 0; c < j->channels; c++)
        sum[c] += (double)x[c];
}

static void add_squares(const batch_norm_job *j, int64_t row, double *sum)
{
    const float *x = j->x + row * j->channels;
    for (int64_t c = 0; c < j->channels; c++)
        sum[c] += ((double)x[c] - j->mean[c]) * ((double)x[c] - j->mean[c]);
}

/* Adds to dbeta and dgamma: dy, and dy times the normalized x. */
static void add_grads(const batch_norm_job *j, int64_t row, double *sum)
{
    const float *x = j->x + row * j->channels, *dy = j->dy + row * j->channels;
    for (int64_t c = 0; c < j->channels; c++) {
        sum[c] += (double)dy[c];
        sum[j->channels + c] += (double)dy[c] * (((double)x[c] - j->mean[c]) * j->rstd[c]);
    }
}

static void sum_blocks(const void *arg, int64_t first, int64_t last)
{
    const batch_norm_job *j = arg;
    for (int64_t b = first; b < last; b++) {
        double *sum = j->part + b * j->sums;
        memset(sum, 0, (size_t)j->sums * sizeof *sum);
        for (int64_t row = b * BLOCK; row < att_min((b + 1) * BLOCK, j->rows); row++)
            j->add(j, row, sum);
    }
}

static void sum_parts(const void *arg, int64_t first, int64_t last)
{
    const batch_norm_job *j = arg;
    for (int64_t c = first; c < last; c++) {
        j->total[c] = 0;
        for (int64_t b = 0; b < att_ceil_div(j->rows, BLOCK); b++)
            j->total[c] += j->part[b * j->sums + c];
    }
}

/* Computes total [sums], the sums over all rows; false: error set. */
static bool sum_rows(att_tape *t, batch_norm_job *j, void (*add)(const batch_norm_job *, int64_t, double *),
                     int64_t sums, double *total)
{
    const int64_t blocks = att_ceil_div(j->rows, BLOCK);
    const size_t mark = att_arena_mark(&t->arena);
    j->add = add;
    j->sums = sums;
    j->total = total;
    j->part = att_arena_alloc(&t->arena, att_size_mul((size_t)blocks * sizeof *j->part, (size_t)sums));
    if (!j->part)
        return false;
    att_tape_for_rows(t->ctx, blocks, BLOCK * j->channels, sum_blocks, j);
    att_tape_for_columns(t->ctx, sums, sum_parts, j);
    att_arena_release(&t->arena, mark);
    return true;
}

static double *doubles(att_tape *t, int64_t count)
{
    return att_arena_alloc(&t->arena, att_size_mul((size_t)count, sizeof(double)));
}

/* ---- backward */

/* Adds scale dy - shift - slope (x - mean) to dx. */
static void add_dx(const void *arg, int64_t first, int64_t last)
{
    const batch_norm_job *j = arg;
    for (int64_t row = first; row < last; row++) {
        const float *x = j->x + row * j->channels, *dy = j->dy + row * j->channels;
        float *dx = j->y + row * j->channels;
        for (int64_t c = 0; c < j->channels; c++)
            dx[c] += (float)(j->scale[c] * (double)dy[c] - j->shift[c] - j->slope[c] * ((double)x[c] - j->mean[c]));
    }
}

/* Computes the backward. With the normalized x, xn, and n rows, dx = gamma rstd (dy - sum(dy) / n - xn sum(dy xn) / n),
 * because the statistics of a batch depend on x. Running statistics do not, so dx = gamma rstd dy. */
static att_status backward(att_tape *t, const att_step *s)
{
    const batch_norm_saved *saved = s->saved;
    const att_tensor *x = &s->in[0]->value;
    const int64_t channels = x->dim[x->rank - 1];
    batch_norm_job j = {.rows = att_tape_rows(x),
                        .channels = channels,
                        .x = x->data,
                        .dy = s->y->grad,
                        .y = att_tape_grad(s->in[0]),
                        .mean = saved->mean,
                        .rstd = saved->rstd};
    const float *gamma = att_param_floats(s->param[0]);
    float *dgamma = att_param_partial(s->param[0]), *dbeta = att_param_partial(s->param[1]);
    double *sum = doubles(t, 5 * channels);
    if (!gamma || !sum || !sum_rows(t, &j, add_grads, 2 * channels, sum))
        return ATT_ERR_MEMORY;
    double *scale = sum + 2 * channels, *shift = scale + channels, *slope = shift + channels;
    for (int64_t c = 0; dbeta && c < channels; c++)
        dbeta[c] += (float)sum[c];
    for (int64_t c = 0; dgamma && c < channels; c++)
        dgamma[c] += (float)sum[channels + c];
    for (int64_t c = 0; c < channels; c++) {
        scale[c] = (double)gamma[c] * saved->rstd[c];
        shift[c] = saved->training ? scale[c] * sum[c] / (double)j.rows : 0;
        slope[c] = saved->training ? scale[c] * saved->rstd[c] * sum[channels + c] / (double)j.rows : 0;
    }
    j.scale = scale, j.shift = shift, j.slope = slope;
    if (j.y)
        att_tape_for_rows(t->ctx, j.rows, channels, add_dx, &j);
    return ATT_OK;
}

const att_operation att_operation_batch_norm = {.name = "batch_norm", .backward = backward, .ignores_y = true};

/* ---- forward */

static bool check_vector(att_tape *t, const att_tensor *x, const char *name, const att_tensor *v)
{
    const int64_t channels = x->dim[x->rank - 1];
    if (!v)
        att_tape_fail(t, ATT_ERR_ARGUMENT, "batch_norm: %s is NULL", name);
    else if (v->rank != 1 || v->dim[0] != channels)
        att_tape_fail(t, ATT_ERR_SHAPE, "batch_norm: x has %lld channels but %s is %s", (long long)channels, name,
                      att_shape_of(v).text);
    return !t->status;
}

static bool check_running(att_tape *t, const att_tensor *x, const char *name, const att_tensor *v, bool training)
{
    const bool half = v && !training && (v->dtype == ATT_F16 || v->dtype == ATT_BF16);
    if (check_vector(t, x, name, v) && att_check_output(t->ctx, name, v, half ? v->dtype : ATT_F32, 1))
        att_tape_fail(t, ATT_ERR_ARGUMENT, "batch_norm: %s", att_error(t->ctx));
    else if (!t->status && !att_is_dense(v))
        att_tape_fail(t, ATT_ERR_SHAPE, "batch_norm: %s is %s but not dense", name, att_shape_of(v).text);
    return !t->status;
}

static bool read_options(att_tape *t, const att_tensor *x, const att_batch_norm_options *options,
                         att_batch_norm_options *o)
{
    if (!att_tape_options_read(t, "batch_norm", o, sizeof *o, options, "att_batch_norm_options"))
        return false;
    o->momentum = o->momentum == 0 ? 0.1 : o->momentum;
    o->eps = o->eps == 0 ? 1e-5 : o->eps;
    if (!(o->momentum > 0 && o->momentum <= 1))
        att_tape_fail(t, ATT_ERR_ARGUMENT, "batch_norm: momentum is %g, not in (0, 1]", o->momentum);
    else if (!(o->eps > 0 && isfinite(o->eps)))
        att_tape_fail(t, ATT_ERR_ARGUMENT, "batch_norm: eps is %g, not above 0", o->eps);
    else if (o->training && att_tape_rows(x) < 2)
        att_tape_fail(t, ATT_ERR_SHAPE, "batch_norm: x is %s, less than 2 values per channel, in training",
                      att_shape_of(x).text);
    return !t->status;
}

/* Reads running statistics of any type -> out [channels]; false: error set. */
static bool read_running(att_tape *t, const att_tensor *v, double *out)
{
    att_tensor floats;
    void *f = doubles(t, v->dim[0]);
    if (!f || att_wrap(&floats, f, ATT_F32, 1, v->dim, NULL) || att_tensor_convert(t->ctx, v, &floats))
        return false;
    for (int64_t c = 0; c < v->dim[0]; c++)
        out[c] = (double)((const float *)f)[c];
    return true;
}

/* Finds mean and variance [channels]: of the batch, or the running ones; false: error set. */
static bool find_statistics(att_tape *t, batch_norm_job *j, const att_tensor *running_mean,
                            const att_tensor *running_var, bool training, double *mean, double *variance)
{
    if (!training)
        return read_running(t, running_mean, mean) && read_running(t, running_var, variance);
    if (!sum_rows(t, j, add_x, j->channels, mean))
        return false;
    for (int64_t c = 0; c < j->channels; c++)
        mean[c] /= (double)j->rows;
    if (!sum_rows(t, j, add_squares, j->channels, variance))
        return false;
    for (int64_t c = 0; c < j->channels; c++)
        variance[c] /= (double)j->rows;
    return true;
}

/* Computes y = scale (x - mean) + shift. */
static void normalize(const void *arg, int64_t first, int64_t last)
{
    const batch_norm_job *j = arg;
    for (int64_t row = first; row < last; row++) {
        const float *x = j->x + row * j->channels;
        float *y = j->y + row * j->channels;
        for (int64_t c = 0; c < j->channels; c++)
            y[c] = (float)(j->scale[c] * ((double)x[c] - j->mean[c]) + j->shift[c]);
    }
}

static void apply(att_ctx *ctx, batch_norm_job *j, const float *gamma, const float *beta, double *scale, double *shift)
{
    for (int64_t c = 0; c < j->channels; c++)
        scale[c] = (double)gamma[c] * j->rstd[c], shift[c] = (double)beta[c];
    j->scale = scale, j->shift = shift;
    att_tape_for_rows(ctx, j->rows, j->channels, normalize, j);
}

/* Updates running = (1 - momentum) running + momentum batch; the variance of the batch is divided by n - 1. */
static void update(const batch_norm_job *j, double momentum, const double *variance, float *mean, float *var)
{
    const double unbias = (double)j->rows / (double)(j->rows - 1);
    for (int64_t c = 0; c < j->channels; c++) {
        mean[c] = (float)((1 - momentum) * (double)mean[c] + momentum * j->mean[c]);
        var[c] = (float)((1 - momentum) * (double)var[c] + momentum * unbias * variance[c]);
    }
}

att_var *att_batch_norm(att_tape *t, att_var *x, att_param *gamma, att_param *beta, const att_tensor *running_mean,
                        const att_tensor *running_var, const att_batch_norm_options *options)
{
    att_batch_norm_options o;
    if (!x || !att_tape_ready(t) || !read_options(t, &x->value, options, &o) ||
        !check_vector(t, &x->value, "gamma", gamma ? att_param_value(gamma) : NULL) ||
        !check_vector(t, &x->value, "beta", beta ? att_param_value(beta) : NULL) ||
        !check_running(t, &x->value, "running_mean", running_mean, o.training) ||
        !check_running(t, &x->value, "running_var", running_var, o.training))
        return NULL;
    const int64_t channels = x->value.dim[x->value.rank - 1];
    const float *g = att_param_floats(gamma), *b = att_param_floats(beta);
    att_var *y = att_tape_var(t, x->value.rank, x->value.dim);
    double *mean = y ? doubles(t, 5 * channels) : NULL;
    if (!g || !b || !mean)
        return att_tape_fail(t, ATT_ERR_MEMORY, "batch_norm: %s", att_error(t->ctx));
    double *rstd = mean + channels, *variance = rstd + channels;
    batch_norm_job j = {.rows = att_tape_rows(&x->value),
                        .channels = channels,
                        .x = x->value.data,
                        .y = y->value.data,
                        .mean = mean,
                        .rstd = rstd};
    if (!find_statistics(t, &j, running_mean, running_var, o.training, mean, variance))
        return att_tape_fail(t, ATT_ERR_MEMORY, "batch_norm: %s", att_error(t->ctx));
    for (int64_t c = 0; c < channels; c++)
        rstd[c] = 1 / sqrt(variance[c] + o.eps);
    apply(t->ctx, &j, g, b, variance + channels, variance + 2 * channels);
    const batch_norm_saved saved = {.mean = mean, .rstd = rstd, .training = o.training};
    const att_step step = {.op = &att_operation_batch_norm,
                           .y = y,
                           .in = &x,
                           .n_in = 1,
                           .param = (att_param *[]){gamma, beta},
                           .n_param = 2,
                           .saved = &saved,
                           .saved_bytes = sizeof saved};
    y = att_tape_done(t, &step, NULL, NULL);
    if (y && o.training && !t->recomputing)
        update(&j, o.momentum, variance, running_mean->data, running_var->data);
    return y;
}
