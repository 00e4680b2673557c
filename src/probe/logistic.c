#include "probe/logistic.h"
#include "io/cancelled.h"
#include "probe/lbfgs.h"
#include "util/util.h"

#include <math.h>
#include <string.h>

/* Vectors are centered, which changes only b, and get a last feature of 1, whose weights are b. Features and classes
 * are padded with zeros to multiples of 4. Parameters, and their gradient, are panels of 4 classes: [panels, width, 4].
 * Chunks of examples are tasks; their number, and with it the order of all sums, does not depend on the threads. */
enum { TILE = 4, ROWS = 64, MAX_CHUNKS = 16 };

struct att_logistic {
    att_ctx *ctx;
    att_probe_data data;
    const double *weights;       /* [classes] */
    double weight, variance;     /* of all examples; mean squared distance from the mean */
    double *mean;                /* [dim] */
    int64_t width, panels, size; /* features; panels of classes; numbers of parameters */
    double *x;                   /* [size] */
    double lambda;               /* of the current fit */
};

/* ---- making one */

static void find_mean(att_logistic *r)
{
    const att_probe_data *d = &r->data;
    for (int64_t i = 0; i < d->n; i++)
        for (int64_t k = 0; k < d->dim; k++)
            r->mean[k] += (double)d->vectors[i * d->dim + k];
    for (int64_t k = 0; k < d->dim; k++)
        r->mean[k] /= (double)d->n;
    for (int64_t i = 0; i < d->n; i++) {
        double sum = 0;
        for (int64_t k = 0; k < d->dim; k++) {
            const double x = (double)d->vectors[i * d->dim + k] - r->mean[k];
            sum += x * x;
        }
        r->variance += sum / (double)d->n;
        r->weight += r->weights[d->labels[i]];
    }
}

att_status att_logistic_new(att_ctx *ctx, const att_probe_data *data, const double *weights, att_logistic **out)
{
    att_logistic *r = att_calloc(ctx, 1, sizeof *r);
    *out = r;
    if (!r)
        return ATT_ERR_MEMORY;
    *r = (att_logistic){.ctx = ctx,
                        .data = *data,
                        .weights = weights,
                        .width = att_round_up(data->dim + 1, TILE),
                        .panels = att_ceil_div(data->classes, TILE)};
    r->size = r->panels * r->width * TILE;
    r->mean = att_calloc(ctx, (size_t)data->dim, sizeof *r->mean);
    r->x = att_calloc(ctx, (size_t)r->size, sizeof *r->x);
    if (!r->mean || !r->x) {
        att_logistic_free(r);
        *out = NULL;
        return ATT_ERR_MEMORY;
    }
    find_mean(r);
    return ATT_OK;
}

void att_logistic_free(att_logistic *r)
{
    if (!r)
        return;
    att_free(r->ctx, r->mean);
    att_free(r->ctx, r->x);
    att_free(r->ctx, r);
}

double att_logistic_weight(const att_logistic *r) { return r->weight; }
double att_logistic_variance(const att_logistic *r) { return r->variance; }

/* ---- a chunk of examples */

typedef struct chunk {
    double loss;
    double *rows;     /* [width / 4, ROWS, 4]: vectors of a block */
    double *logits;   /* [panels, ROWS, 4]: then the loss's gradient by them */
    double *gradient; /* [size], or NULL */
} chunk;

typedef struct evaluation {
    const att_logistic *r;
    const att_probe_data *data;
    const double *x; /* [size] */
    chunk *chunks;   /* [n] */
    int n;
} evaluation;

static void pack(const evaluation *e, chunk *c, int64_t first, int64_t n)
{
    const att_logistic *r = e->r;
    const int64_t dim = r->data.dim;
    memset(c->rows, 0, (size_t)(r->width * ROWS) * sizeof *c->rows);
    for (int64_t i = 0; i < n; i++) {
        const float *v = e->data->vectors + (first + i) * dim;
        for (int64_t k = 0; k < dim; k++)
            c->rows[(k / TILE * ROWS + i) * TILE + k % TILE] = (double)v[k] - r->mean[k];
        c->rows[(dim / TILE * ROWS + i) * TILE + dim % TILE] = 1;
    }
}

/* Sums of a row or feature with 4 classes, which the compiler keeps in registers. */
typedef struct quad {
    double a, b, c, d;
} quad;

static inline void add_scaled(quad *sum, double x, const double *w)
{
    sum->a += x * w[0];
    sum->b += x * w[1];
    sum->c += x * w[2];
    sum->d += x * w[3];
}

/* Computes the logits [2 rows, 4 classes] of two rows. w: a panel of parameters. */
static void multiply_tile(const double *rows, const double *w, int64_t quads, double *out)
{
    quad first = {0}, second = {0};
    for (int64_t q = 0; q < quads; q++, rows += ROWS * TILE, w += TILE * TILE) {
        add_scaled(&first, rows[0], w);
        add_scaled(&second, rows[TILE], w);
        add_scaled(&first, rows[1], w + TILE);
        add_scaled(&second, rows[TILE + 1], w + TILE);
        add_scaled(&first, rows[2], w + 2 * TILE);
        add_scaled(&second, rows[TILE + 2], w + 2 * TILE);
        add_scaled(&first, rows[3], w + 3 * TILE);
        add_scaled(&second, rows[TILE + 3], w + 3 * TILE);
    }
    memcpy(out, &first, sizeof first);
    memcpy(out + TILE, &second, sizeof second);
}

/* Adds the products of 4 features with 4 columns of the gradient by the logits, summed over a block. */
static void add_tile(const double *rows, const double *by_logits, double *gradient)
{
    quad sum[TILE] = {{0}};
    for (int64_t i = 0; i < ROWS; i++, rows += TILE, by_logits += TILE) {
        add_scaled(&sum[0], rows[0], by_logits);
        add_scaled(&sum[1], rows[1], by_logits);
        add_scaled(&sum[2], rows[2], by_logits);
        add_scaled(&sum[3], rows[3], by_logits);
    }
    for (int e = 0; e < TILE; e++, gradient += TILE) {
        gradient[0] += sum[e].a;
        gradient[1] += sum[e].b;
        gradient[2] += sum[e].c;
        gradient[3] += sum[e].d;
    }
}

/* Replaces the logits of row i by the gradient of its loss, weight (softmax - one-hot), and returns the loss. */
static double row_loss(const att_logistic *r, double *logits, int64_t i, int32_t label)
{
    const int64_t classes = r->data.classes, step = ROWS * TILE;
    const double weight = r->weights[label];
    double *z = logits + i * TILE, max = z[0], sum = 0;
    for (int64_t k = 0; k < classes; k++)
        max = fmax(max, z[k / TILE * step + k % TILE]);
    const double right = z[label / TILE * step + label % TILE] - max;
    for (int64_t k = 0; k < classes; k++) {
        double *at = &z[k / TILE * step + k % TILE];
        *at = exp(*at - max);
        sum += *at;
    }
    for (int64_t k = 0; k < r->panels * TILE; k++) {
        double *at = &z[k / TILE * step + k % TILE];
        *at = k < classes ? weight * (*at / sum - (k == label)) : 0;
    }
    return weight * (log(sum) - right);
}

static void run_block(const evaluation *e, chunk *c, int64_t first, int64_t n)
{
    const att_logistic *r = e->r;
    const int64_t quads = r->width / TILE, step = ROWS * TILE;
    pack(e, c, first, n);
    for (int64_t p = 0; p < r->panels; p++)
        for (int64_t i = 0; i < ROWS; i += 2)
            multiply_tile(c->rows + i * TILE, e->x + p * r->width * TILE, quads, c->logits + p * step + i * TILE);
    for (int64_t i = 0; i < n; i++)
        c->loss += row_loss(r, c->logits, i, e->data->labels[first + i]);
    if (!c->gradient)
        return;
    for (int64_t p = 0; p < r->panels; p++) {
        double *logits = c->logits + p * step;
        memset(logits + n * TILE, 0, (size_t)((ROWS - n) * TILE) * sizeof *logits);
        for (int64_t q = 0; q < quads; q++)
            add_tile(c->rows + q * step, logits, c->gradient + (p * quads + q) * TILE * TILE);
    }
}

static void run_chunk(void *arg, int i)
{
    const evaluation *e = arg;
    chunk *c = &e->chunks[i];
    const int64_t blocks = att_ceil_div(e->data->n, ROWS), last = (i + 1) * blocks / e->n;
    c->loss = 0;
    if (c->gradient)
        memset(c->gradient, 0, (size_t)e->r->size * sizeof *c->gradient);
    for (int64_t b = i * blocks / e->n; b < last && !att_cancelled(e->r->ctx); b++)
        run_block(e, c, b * ROWS, att_min(ROWS, e->data->n - b * ROWS));
}

/* ---- the objective */

static void close_evaluation(evaluation *e)
{
    for (int i = 0; e->chunks && i < e->n; i++) {
        att_free(e->r->ctx, e->chunks[i].rows);
        att_free(e->r->ctx, e->chunks[i].logits);
        att_free(e->r->ctx, e->chunks[i].gradient);
    }
    att_free(e->r->ctx, e->chunks);
}

static att_status open_evaluation(evaluation *e, const att_logistic *r, const att_probe_data *data, bool gradient)
{
    *e = (evaluation){.r = r, .data = data, .x = r->x};
    e->n = (int)att_min(MAX_CHUNKS, att_ceil_div(data->n, ROWS));
    e->chunks = att_calloc(r->ctx, (size_t)e->n, sizeof *e->chunks);
    bool made = e->chunks;
    for (int i = 0; made && i < e->n; i++) {
        chunk *c = &e->chunks[i];
        c->rows = att_alloc(r->ctx, (size_t)(r->width * ROWS), sizeof *c->rows);
        c->logits = att_alloc(r->ctx, (size_t)(r->panels * TILE * ROWS), sizeof *c->logits);
        c->gradient = gradient ? att_alloc(r->ctx, (size_t)r->size, sizeof *c->gradient) : NULL;
        made = c->rows && c->logits && (c->gradient || !gradient);
    }
    return made ? ATT_OK : ATT_ERR_MEMORY;
}

/* Returns the mean of the losses, without regularization, of the parameters e->x. */
static double mean_loss(const evaluation *e, double weight)
{
    double loss = 0;
    att_parallel_for(e->r->ctx, e->n, run_chunk, (void *)(uintptr_t)e);
    for (int i = 0; i < e->n; i++)
        loss += e->chunks[i].loss;
    return loss / weight;
}

/* Computes the objective at x and its gradient. */
static att_status objective(void *user, const double *x, double *value, double *gradient)
{
    evaluation *e = user;
    const att_logistic *r = e->r;
    e->x = x;
    *value = mean_loss(e, r->weight);
    for (int64_t j = 0; j < r->size; j++) {
        double sum = 0;
        for (int i = 0; i < e->n; i++)
            sum += e->chunks[i].gradient[j];
        gradient[j] = sum / r->weight;
        if (j / TILE % r->width == r->data.dim) /* b */
            continue;
        gradient[j] += r->lambda * x[j];
        *value += r->lambda / 2 * x[j] * x[j];
    }
    return att_check_cancelled(r->ctx, "the fit of a linear probe");
}

att_status att_logistic_fit(att_logistic *r, double lambda, const att_logistic_limits *limits, att_probe_info *info)
{
    evaluation e;
    att_minimum at = {.n = r->size, .x = r->x, .iterations = limits->iterations, .tolerance = limits->tolerance};
    att_status s = open_evaluation(&e, r, &r->data, true);
    r->lambda = lambda;
    s = s ? s : att_lbfgs(r->ctx, objective, &e, &at);
    close_evaluation(&e);
    info->iterations = at.steps;
    info->gradient = at.gradient;
    info->converged = at.gradient <= limits->tolerance;
    return s;
}

att_status att_logistic_loss(const att_logistic *r, const att_probe_data *data, double *loss)
{
    evaluation e;
    double weight = 0;
    const att_status s = open_evaluation(&e, r, data, false);
    for (int64_t i = 0; i < data->n; i++)
        weight += r->weights[data->labels[i]];
    if (!s)
        *loss = mean_loss(&e, weight);
    close_evaluation(&e);
    return s ? s : att_check_cancelled(r->ctx, "the fit of a linear probe");
}

void att_logistic_get(const att_logistic *r, float *w, float *b)
{
    const int64_t dim = r->data.dim;
    for (int64_t c = 0; c < r->data.classes; c++) {
        const double *x = r->x + c / TILE * r->width * TILE + c % TILE;
        double sum = x[dim * TILE];
        for (int64_t k = 0; k < dim; k++) {
            w[c * dim + k] = (float)x[k * TILE];
            sum -= x[k * TILE] * r->mean[k];
        }
        b[c] = (float)sum;
    }
}
