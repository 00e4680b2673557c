/* Optimizers. Parameters are split into chunks, the unit of parallel work; a step measures the norm of the gradients
 * and then updates all chunks. */
#include "attend_optimizer.h"
#include "kernel/kernel.h"
#include "tape/tape.h"
#include "base/math.h"
#include "util/array.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { MOMENTS = 2, CHUNK = 1 << 14 };

/* The state of a parameter. */
typedef struct param_state {
    att_param *param;
    float *x;                     /* its data */
    bool learns, no_weight_decay; /* learns: it was not frozen when it was added */
    att_tensor moment[MOMENTS];   /* in its shape; data NULL if the method has fewer */
} param_state;

/* A range of a parameter's elements, updated by one thread; frozen elements are in no chunk. */
typedef struct chunk {
    int64_t param, first, count;
    double squares; /* sum of squared gradients */
} chunk;

struct att_optimizer {
    att_ctx *ctx;
    att_optimizer_config c;
    int64_t steps;
    att_tensor steps_view;
    param_state *param;
    chunk *chunk;
    int64_t n_params, n_chunks;
    size_t param_room, chunk_room;
    float *gradients; /* [n_gradients]: gradients of all trained parameters; NULL: each has its own memory */
    int64_t n_gradients;
};

static int moments_of(const att_optimizer_config *c)
{
    return c->method != ATT_OPTIMIZER_SGD ? 2 : c->momentum > 0 ? 1 : 0;
}

/* ---- construction */

static att_status in_range(att_ctx *ctx, const char *name, double x, double min, double below)
{
    if (x >= min && x < below)
        return ATT_OK;
    return att_fail(ctx, ATT_ERR_ARGUMENT, "optimizer.%s is %g, not from %g to below %g", name, x, min, below);
}

att_status att_optimizer_new(att_ctx *ctx, const att_optimizer_config *config, att_optimizer **out)
{
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    att_optimizer_config c;
    att_status s = att_options_read(&c, sizeof c, config, "att_optimizer_config");
    if (s)
        return s;
    if ((unsigned)c.method > ATT_OPTIMIZER_SGD)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "optimizer.method is %d, which is not an att_optimizer_method",
                        (int)c.method);
    c.beta1 = c.beta1 == 0 ? 0.9 : c.beta1;
    c.beta2 = c.beta2 == 0 ? 0.999 : c.beta2;
    c.eps = c.eps == 0 ? 1e-8 : c.eps;
    s = in_range(ctx, "beta1", c.beta1, 0, 1);
    s = s ? s : in_range(ctx, "beta2", c.beta2, 0, 1);
    s = s ? s : in_range(ctx, "eps", c.eps, (double)FLT_MIN, 1);
    s = s ? s : in_range(ctx, "momentum", c.momentum, 0, 1);
    s = s ? s : in_range(ctx, "weight_decay", c.weight_decay, 0, (double)FLT_MAX);
    if (s)
        return s;
    att_optimizer *o = att_calloc(ctx, 1, sizeof *o);
    if (!o)
        return ATT_ERR_MEMORY;
    o->ctx = ctx;
    o->c = c;
    att_wrap(&o->steps_view, &o->steps, ATT_I64, ATT_DIMS(1), NULL);
    *out = o;
    return ATT_OK;
}

/* Returns the number of elements of a parameter's gradient in o->gradients */
static int64_t n_gradients_of(const param_state *l) { return l->learns ? att_count(att_param_value(l->param)) : 0; }

void att_optimizer_free(att_optimizer *o)
{
    if (!o)
        return;
    const float *from = o->gradients;
    for (int64_t i = 0; from && i < o->n_params && from < o->gradients + o->n_gradients; i++) {
        if (o->param[i].learns && att_param_grad_memory(o->param[i].param) == from)
            att_param_set_grad_memory(o->param[i].param, NULL);
        from += n_gradients_of(&o->param[i]);
    }
    att_free(o->ctx, o->gradients);
    for (int64_t i = 0; i < o->n_params; i++)
        for (int k = 0; k < MOMENTS; k++)
            att_free(o->ctx, o->param[i].moment[k].data);
    att_free(o->ctx, o->param);
    att_free(o->ctx, o->chunk);
    att_free(o->ctx, o);
}

/* ---- adding a parameter */

static att_status check_rows(att_ctx *ctx, const att_param_options *l, int64_t rows)
{
    if (l->n_frozen_rows < 0 || (l->n_frozen_rows > 0 && !l->frozen_rows))
        return att_fail(ctx, ATT_ERR_ARGUMENT, "optimizer: n_frozen_rows = %lld with %s frozen_rows",
                        (long long)l->n_frozen_rows, l->frozen_rows ? "these" : "no");
    for (int64_t i = 0; i < l->n_frozen_rows; i++) {
        const int64_t row = l->frozen_rows[i], before = i > 0 ? l->frozen_rows[i - 1] : -1;
        if (row < 0 || row >= rows)
            return att_fail(ctx, ATT_ERR_ARGUMENT,
                            "optimizer: frozen_rows[%lld] = %lld but the parameter has %lld rows", (long long)i,
                            (long long)row, (long long)rows);
        if (row <= before)
            return att_fail(ctx, ATT_ERR_ARGUMENT, "optimizer: frozen_rows[%lld] = %lld does not ascend from %lld",
                            (long long)i, (long long)row, (long long)before);
    }
    return ATT_OK;
}

static att_status check_param(const att_optimizer *o, const att_param *p)
{
    const att_tensor *x = att_param_value(p);
    const bool frozen = att_param_frozen(p);
    if (x->dtype != ATT_F32 && !frozen)
        return att_fail(o->ctx, ATT_ERR_DTYPE, "optimizer: parameter %lld is %s, not f32", (long long)o->n_params,
                        att_dtype_name(x->dtype));
    if (!att_is_dense(x) && !frozen)
        return att_fail(o->ctx, ATT_ERR_SHAPE, "optimizer: parameter %lld, %s, is not dense", (long long)o->n_params,
                        att_shape_of(x).text);
    for (int64_t i = 0; i < o->n_params; i++)
        if (o->param[i].param == p)
            return att_fail(o->ctx, ATT_ERR_ARGUMENT, "optimizer: parameter %lld is there already, as parameter %lld",
                            (long long)o->n_params, (long long)i);
    return ATT_OK;
}

/* Splits a parameter into chunks between frozen rows, into `to` unless NULL; returns their number. */
static int64_t split(const att_param_options *l, int64_t rows, int64_t features, int64_t index, chunk *to)
{
    int64_t n = 0;
    for (int64_t i = 0, row = 0; i <= l->n_frozen_rows; i++) {
        const int64_t end = (i < l->n_frozen_rows ? l->frozen_rows[i] : rows) * features;
        for (int64_t first = row * features; first < end; first += CHUNK, n++)
            if (to)
                to[n] = (chunk){index, first, end - first < CHUNK ? end - first : CHUNK, 0};
        row = i < l->n_frozen_rows ? l->frozen_rows[i] + 1 : rows;
    }
    return n;
}

static att_status make_moments(att_optimizer *o, param_state *l, const att_tensor *value)
{
    for (int k = 0; k < moments_of(&o->c); k++) {
        att_wrap(&l->moment[k], NULL, ATT_F32, value->rank, value->dim, NULL); /* cannot fail: the sizes of value */
        l->moment[k].data = att_calloc(o->ctx, (size_t)att_count(value), sizeof(float));
        if (!l->moment[k].data) {
            att_free(o->ctx, l->moment[0].data);
            return ATT_ERR_MEMORY;
        }
    }
    return ATT_OK;
}

att_status att_optimizer_add(att_optimizer *o, att_param *param, const att_param_options *options)
{
    if (att_require(__func__, ATT_NAMED({"o", o}, {"param", param})))
        return ATT_ERR_ARGUMENT;
    att_param_options l;
    att_status s = att_options_read(&l, sizeof l, options, "att_param_options");
    s = s ? s : check_param(o, param);
    if (s)
        return s;
    const att_tensor *value = att_param_value(param);
    const int64_t rows = value->dim[0], features = rows > 0 ? att_count(value) / rows : 0;
    s = check_rows(o->ctx, &l, rows);
    if (s)
        return s;
    const bool learns = !att_param_frozen(param);
    const int64_t n = o->n_params, more = learns ? split(&l, rows, features, n, NULL) : 0;
    s = att_grow(o->ctx, &o->param, sizeof *o->param, (size_t)n, 1, &o->param_room);
    s = s ? s : att_grow(o->ctx, &o->chunk, sizeof *o->chunk, (size_t)o->n_chunks, (size_t)more, &o->chunk_room);
    if (s)
        return s;
    param_state new = {.param = param,
                       .x = value->data,
                       .learns = learns,
                       .no_weight_decay = l.no_weight_decay || !att_param_weight_decay(param)};
    if (learns && make_moments(o, &new, value))
        return ATT_ERR_MEMORY;
    if (more)
        split(&l, rows, features, n, o->chunk + o->n_chunks);
    o->param[o->n_params++] = new;
    o->n_chunks += more;
    return ATT_OK;
}

/* ---- gradients as one buffer */

att_status att_optimizer_gradients(att_optimizer *o, float **data, int64_t *count)
{
    if (data)
        *data = NULL;
    if (att_require(__func__, ATT_NAMED({"o", o}, {"data", data}, {"count", count})))
        return ATT_ERR_ARGUMENT;
    int64_t n = 0;
    for (int64_t i = 0; i < o->n_params; i++)
        n += n_gradients_of(&o->param[i]);
    const bool grown = !o->gradients || n != o->n_gradients;
    float *const all = grown ? att_alloc(o->ctx, n ? (size_t)n : 1, sizeof *all) : o->gradients, *to = all;
    if (!all)
        return ATT_ERR_MEMORY;
    for (int64_t i = 0; i < o->n_params; to += n_gradients_of(&o->param[i++])) {
        if (!o->param[i].learns)
            continue;
        att_param_set_grad_memory(o->param[i].param, to);
        if (!att_param_frozen(o->param[i].param))
            att_param_set_grad(o->param[i].param);
    }
    if (grown)
        att_free(o->ctx, o->gradients);
    o->gradients = *data = all;
    o->n_gradients = *count = n;
    return ATT_OK;
}

/* ---- a step */

typedef struct step_job {
    const att_optimizer *o;
    const att_kernels *k;
    double rate;
    att_adam adam; /* all except the decay, which depends on the parameter */
    att_sgd sgd;
} step_job;

/* Returns the gradient of a parameter; NULL: none, or the parameter is now frozen. */
static const float *gradient_of(const param_state *l)
{
    return att_param_frozen(l->param) ? NULL : att_param_grad(l->param)->data;
}

/* Computes the sum of squares: blocks are summed in float, the block sums in double. Squares below the range of float
 * are lost: an error of at most n 2^-149. If a block overflows it is summed again in double. */
static double squares(const att_kernels *k, int64_t n, const float *x)
{
    enum { RUN = 256 };
    double sum = 0;
    for (int64_t first = 0; first < n; first += RUN) {
        const int64_t length = n - first < RUN ? n - first : RUN;
        const float part = k->vector.dot(length, x + first, x + first);
        if (part <= FLT_MAX)
            sum += (double)part;
        else
            for (int64_t i = first; i < first + length; i++)
                sum += (double)x[i] * x[i];
    }
    return sum;
}

static void measure(void *arg, int i)
{
    const step_job *j = arg;
    chunk *p = &j->o->chunk[i];
    const float *g = gradient_of(&j->o->param[p->param]);
    p->squares = g ? squares(j->k, p->count, g + p->first) : 0;
}

static void update(void *arg, int i)
{
    const step_job *j = arg;
    const chunk *p = &j->o->chunk[i];
    const param_state *l = &j->o->param[p->param];
    const float *g = gradient_of(l);
    float *const m = l->moment[0].data, *const v = l->moment[1].data;
    const double decay = l->no_weight_decay ? 0 : j->o->c.weight_decay;
    if (!g)
        return;
    if (j->o->c.method == ATT_OPTIMIZER_SGD) {
        att_sgd sgd = j->sgd;
        sgd.l2 = (float)decay;
        j->k->layer.sgd(p->count, &sgd, g + p->first, l->x + p->first, m ? m + p->first : NULL);
    } else {
        att_adam adam = j->adam;
        adam.l2 = j->o->c.method == ATT_OPTIMIZER_ADAM ? (float)decay : 0;
        adam.decay = j->o->c.method == ATT_OPTIMIZER_ADAMW ? (float)(j->rate * decay) : 0;
        j->k->layer.adam(p->count, &adam, g + p->first, l->x + p->first, m + p->first, v + p->first);
    }
}

static att_status check_update(const att_optimizer *o, const att_update *u)
{
    if (o->steps < 0 || o->steps == INT64_MAX)
        return att_fail(o->ctx, ATT_ERR_ARGUMENT, "step: %lld steps were taken before", (long long)o->steps);
    if (!(u->rate >= 0 && u->rate <= (double)FLT_MAX))
        return att_fail(o->ctx, ATT_ERR_ARGUMENT, "step: rate is %g, not a rate", u->rate);
    if (!(u->scale > 0 && u->scale <= (double)FLT_MAX))
        return att_fail(o->ctx, ATT_ERR_ARGUMENT, "step: scale is %g, not above 0", u->scale);
    if (!(u->clip >= 0))
        return att_fail(o->ctx, ATT_ERR_ARGUMENT, "step: clip is %g, not a norm", u->clip);
    for (int64_t i = 0; i < o->n_params; i++)
        if (gradient_of(&o->param[i]))
            return ATT_OK;
    return att_fail(o->ctx, ATT_ERR_ARGUMENT,
                    "step: none of %lld parameters has a gradient: call att_tape_backward first, for a variable that "
                    "depends on one that is not frozen",
                    (long long)o->n_params);
}

/* Returns an error that names the first gradient element that is not finite. */
static att_status not_finite(const att_optimizer *o)
{
    const chunk *p = o->chunk;
    while (isfinite(p->squares))
        p++;
    const float *g = gradient_of(&o->param[p->param]);
    int64_t i = p->first;
    while (isfinite(g[i]))
        i++;
    return att_fail(o->ctx, ATT_ERR_ARGUMENT, "step: the gradient of parameter %lld, %s, has %g at %lld",
                    (long long)p->param, att_shape_of(att_param_value(o->param[p->param].param)).text, (double)g[i],
                    (long long)i);
}

/* Sets the coefficients of step t. */
static void prepare(step_job *j, double scale)
{
    const att_optimizer_config *c = &j->o->c;
    const double t = (double)j->o->steps + 1;
    j->sgd = (att_sgd){.scale = (float)scale, .momentum = (float)c->momentum, .rate = (float)j->rate};
    j->adam = (att_adam){.scale = (float)scale,
                         .beta1 = (float)c->beta1,
                         .rest1 = (float)(1 - c->beta1),
                         .beta2 = (float)c->beta2,
                         .rest2 = (float)(1 - c->beta2),
                         .unbias = (float)(1 / sqrt(1 - att_f64_power(c->beta2, t, 1))),
                         .eps = (float)c->eps,
                         .rate = (float)(j->rate / (1 - att_f64_power(c->beta1, t, 1)))};
}

att_status att_optimizer_step(att_optimizer *o, const att_update *options, double *norm)
{
    if (att_require(__func__, ATT_NAMED({"o", o}, {"update", options})))
        return ATT_ERR_ARGUMENT;
    att_update u;
    att_status s = att_options_read(&u, sizeof u, options, "att_update");
    u.scale = !s && u.scale == 0 ? 1 : u.scale;
    s = s ? s : check_update(o, &u);
    if (s)
        return s;
    step_job j = {.o = o, .k = att_kernels_of(o->ctx->isa), .rate = u.rate};
    att_parallel_for(o->ctx, (int)o->n_chunks, measure, &j);
    double sum = 0;
    for (int64_t i = 0; i < o->n_chunks; i++)
        sum += o->chunk[i].squares;
    const double length = u.scale * sqrt(sum);
    if (norm)
        *norm = length;
    if (!isfinite(sum))
        return not_finite(o);
    prepare(&j, u.clip > 0 && length > u.clip ? u.scale * u.clip / length : u.scale);
    att_parallel_for(o->ctx, (int)o->n_chunks, update, &j);
    for (int64_t i = 0; i < o->n_params; i++) {
        if (o->param[i].learns)
            att_param_invalidate(o->param[i].param);
        att_param_zero_grad(o->param[i].param);
    }
    o->steps++;
    return ATT_OK;
}

/* ---- state */

att_tensor *att_optimizer_steps(att_optimizer *o) { return o ? &o->steps_view : NULL; }

att_tensor *att_optimizer_moment(att_optimizer *o, int64_t param, int k)
{
    if (!o || param < 0 || param >= o->n_params || k < 0 || k >= MOMENTS || !o->param[param].moment[k].data)
        return NULL;
    return &o->param[param].moment[k];
}
