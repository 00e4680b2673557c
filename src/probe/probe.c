/* Classifiers on vectors: trains them, and computes their scores. */
#include "probe/probe.h"
#include "model/class_names.h"
#include "model/model.h"
#include "probe/logistic.h"
#include "util/util.h"

#include "attend_vectors.h"

#include <math.h>
#include <string.h>

enum { MAX_DIM = 32768, MAX_CLASSES = 1 << 20, NEIGHBORS = 20, ITERATIONS = 1000 };
static const double temperature = 0.07, tolerance = 1e-6;

/* ---- checks */

/* Checks data; `what` is its name in errors: "att_probe_fit: train". */
static att_status check_data(att_ctx *ctx, const char *what, const att_probe_data *d)
{
    const struct {
        const char *name;
        int64_t value, min, max;
    } sizes[] = {{"n", d->n, 1, INT32_MAX}, {"dim", d->dim, 1, MAX_DIM}, {"classes", d->classes, 2, MAX_CLASSES}};
    for (int i = 0; i < 3; i++)
        if (sizes[i].value < sizes[i].min || sizes[i].value > sizes[i].max)
            return att_fail(ctx, ATT_ERR_ARGUMENT, "%s.%s is %lld, expected %lld to %lld", what, sizes[i].name,
                            (long long)sizes[i].value, (long long)sizes[i].min, (long long)sizes[i].max);
    if (!d->vectors || !d->labels)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "%s.%s is NULL", what, d->vectors ? "labels" : "vectors");
    for (int64_t i = 0; i < d->n; i++)
        if (d->labels[i] < 0 || d->labels[i] >= d->classes)
            return att_fail(ctx, ATT_ERR_ARGUMENT, "%s.labels[%lld] is %d, but there are %lld classes", what,
                            (long long)i, (int)d->labels[i], (long long)d->classes);
    for (int64_t i = 0; i < d->n * d->dim; i++)
        if (!isfinite(d->vectors[i]))
            return att_fail(ctx, ATT_ERR_ARGUMENT, "%s.vectors: number %lld of vector %lld is not finite", what,
                            (long long)(i % d->dim), (long long)(i / d->dim));
    return ATT_OK;
}

static att_status check_options(att_ctx *ctx, const att_probe_options *o, const att_probe_data *d)
{
    const struct {
        const char *name;
        double value;
    } numbers[] = {{"c", o->c},
                   {"max_iterations", (double)o->max_iterations},
                   {"tolerance", o->tolerance},
                   {"neighbors", (double)o->neighbors},
                   {"temperature", o->temperature}};
    if ((unsigned)o->kind > ATT_PROBE_KIND_NEIGHBORS)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "att_probe_fit: options.kind is %d", (int)o->kind);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (!(numbers[i].value >= 0 && numbers[i].value <= 1e18))
            return att_fail(ctx, ATT_ERR_ARGUMENT, "att_probe_fit: options.%s is %g, expected 0 to 1e18",
                            numbers[i].name, numbers[i].value);
    if (o->class_weights && o->balanced)
        return att_fail(ctx, ATT_ERR_ARGUMENT,
                        "att_probe_fit: options.class_weights and options.balanced are given, not one of them");
    for (int64_t k = 0; o->class_weights && k < d->classes; k++)
        if (!(o->class_weights[k] > 0 && o->class_weights[k] <= 1e18))
            return att_fail(ctx, ATT_ERR_ARGUMENT,
                            "att_probe_fit: options.class_weights[%lld] is %g, expected above 0 and at most 1e18",
                            (long long)k, o->class_weights[k]);
    return ATT_OK;
}

/* ---- the struct */

static att_status make_params(att_probe *p)
{
    att_tensor w, b;
    att_status s = att_probe_weights(p, &w, &b);
    s = s ? s : att_param_new(p->ctx, &w, &p->weight);
    return s ? s : att_param_new(p->ctx, &b, &p->bias);
}

att_status att_probe_make(att_ctx *ctx, const att_probe_info *info, att_probe **out)
{
    att_probe *p = att_calloc(ctx, 1, sizeof *p);
    *out = p;
    if (!p)
        return ATT_ERR_MEMORY;
    *p = (att_probe){.ctx = ctx, .info = *info};
    const size_t classes = (size_t)info->classes, dim = (size_t)info->dim;
    bool made;
    if (info->kind == ATT_PROBE_KIND_LINEAR) {
        p->w = att_calloc(ctx, classes, dim * sizeof *p->w);
        p->b = att_calloc(ctx, classes, sizeof *p->b);
        made = p->w && p->b && !make_params(p);
    } else {
        p->vectors = att_calloc(ctx, (size_t)info->vectors, dim * sizeof *p->vectors);
        p->counts = att_calloc(ctx, classes, sizeof *p->counts);
        p->labels = att_calloc(ctx, (size_t)info->vectors, sizeof *p->labels);
        made = p->vectors && p->counts && p->labels;
    }
    if (!made) {
        att_probe_free(p);
        *out = NULL;
    }
    return made ? ATT_OK : ATT_ERR_MEMORY;
}

void att_probe_free(att_probe *p)
{
    if (!p)
        return;
    att_class_names_free(p->ctx, p->info.classes, p->name);
    att_param_free(p->weight);
    att_param_free(p->bias);
    att_free(p->ctx, p->w);
    att_free(p->ctx, p->b);
    att_free(p->ctx, p->vectors);
    att_free(p->ctx, p->counts);
    att_free(p->ctx, p->labels);
    att_free(p->ctx, p);
}

att_status att_probe_describe(const att_probe *p, att_probe_info *info)
{
    if (att_require(__func__, ATT_NAMED({"p", p}, {"info", info})))
        return ATT_ERR_ARGUMENT;
    return att_info_write(info, &p->info, sizeof p->info, "att_probe_info");
}

att_status att_probe_weights(const att_probe *p, att_tensor *w, att_tensor *b)
{
    if (att_require(__func__, ATT_NAMED({"p", p}, {"w", w}, {"b", b})))
        return ATT_ERR_ARGUMENT;
    const int64_t *n = &p->info.classes;
    if (!p->w)
        return att_fail(p->ctx, ATT_ERR_ARGUMENT, "%s: the probe is one of nearest neighbors", __func__);
    const att_status s = att_wrap(w, p->w, ATT_F32, 2, (const int64_t[]){*n, p->info.dim}, NULL);
    return s ? s : att_wrap(b, p->b, ATT_F32, 1, n, NULL);
}

/* ---- the linear probe */

/* Sets weights [classes]. Error: a class has no example. */
static att_status find_weights(att_ctx *ctx, const att_probe_data *d, const att_probe_options *o, double *weights)
{
    for (int64_t i = 0; i < d->n; i++)
        weights[d->labels[i]]++;
    for (int64_t k = 0; k < d->classes; k++) {
        if (weights[k] == 0)
            return att_fail(ctx, ATT_ERR_ARGUMENT, "att_probe_fit: class %lld has no example", (long long)k);
        weights[k] = o->balanced        ? (double)d->n / ((double)d->classes * weights[k])
                     : o->class_weights ? o->class_weights[k]
                                        : 1;
    }
    return ATT_OK;
}

/* The factor of sum of W^2 / 2 beside the mean loss, for this c. Of two classes scikit-learn has W_1 - W_0 alone. */
static double strength(const att_logistic *r, double c, int64_t classes)
{
    return (classes == 2 ? 2 : 1) / (c * att_logistic_weight(r));
}

/* Fits the probe for its c, and takes its weights. */
static att_status fit_once(att_logistic *r, const att_logistic_limits *limits, att_probe *p)
{
    const att_status s = att_logistic_fit(r, strength(r, p->info.c, p->info.classes), limits, &p->info);
    if (!s)
        att_logistic_get(r, p->w, p->b);
    return s;
}

/* Fits the probe with increasing c, each from the solution before and only as exactly as the loss on valid needs, and
 * then for the c of the lowest loss. The first c is ten times the one whose regularization is as strong as the data can
 * be. */
static att_status choose(att_logistic *r, const att_probe_data *valid, const att_logistic_limits *limits, att_probe *p)
{
    enum { MAX_FITS = 24, MAX_WORSE = 2 };
    const double variance = fmax(att_logistic_variance(r), 1e-30), root = sqrt(variance / (double)p->info.dim);
    const double first = ceil(2 * log10(10 / (att_logistic_weight(r) * variance)));
    const att_logistic_limits rough = {limits->iterations, fmax(limits->tolerance, 3e-4 * root)};
    double best = INFINITY, c = 1;
    int worse = 0;
    att_status s = ATT_OK;
    for (int i = 0; !s && i < MAX_FITS && worse < MAX_WORSE; i++) {
        double loss = NAN;
        p->info.c = pow(10, (first + i) / 2);
        s = fit_once(r, &rough, p);
        s = s ? s : att_logistic_loss(r, valid, &loss);
        worse = loss < best ? 0 : worse + 1;
        if (!worse) {
            best = loss;
            c = p->info.c;
        }
    }
    p->info.c = c;
    return s ? s : fit_once(r, limits, p);
}

static att_status fit_linear(const att_probe_data *train, const att_probe_data *valid, const att_probe_options *o,
                             att_probe *p)
{
    const att_logistic_limits limits = {.iterations = o->max_iterations ? o->max_iterations : ITERATIONS,
                                        .tolerance = o->tolerance > 0 ? o->tolerance : tolerance};
    att_logistic *r = NULL;
    double *weights = att_calloc(p->ctx, (size_t)train->classes, sizeof *weights);
    att_status s = weights ? find_weights(p->ctx, train, o, weights) : ATT_ERR_MEMORY;
    s = s ? s : att_logistic_new(p->ctx, train, weights, &r);
    p->info.c = o->c;
    s = s ? s : o->c > 0 ? fit_once(r, &limits, p) : choose(r, valid, &limits, p);
    att_logistic_free(r);
    att_free(p->ctx, weights);
    return s;
}

/* ---- nearest neighbors */

/* Copies a vector, divided by its norm. */
static void normalize(const float *x, int64_t dim, float *out)
{
    double square = 0;
    for (int64_t k = 0; k < dim; k++)
        square += (double)x[k] * (double)x[k];
    const double factor = square > 0 ? 1 / sqrt(square) : 0;
    for (int64_t k = 0; k < dim; k++)
        out[k] = (float)((double)x[k] * factor);
}

/* Sorts the vectors by class. */
static att_status store(const att_probe_data *d, att_probe *p)
{
    int64_t at = 0;
    for (int64_t i = 0; i < d->n; i++)
        p->counts[d->labels[i]]++;
    for (int64_t k = 0; k < d->classes; k++)
        if (!p->counts[k])
            return att_fail(p->ctx, ATT_ERR_ARGUMENT, "att_probe_fit: class %lld has no example", (long long)k);
    int64_t *next = att_alloc(p->ctx, (size_t)d->classes, sizeof *next);
    if (!next)
        return ATT_ERR_MEMORY;
    for (int64_t k = 0; k < d->classes; k++) {
        next[k] = at;
        at += p->counts[k];
    }
    for (int64_t i = 0; i < d->n; i++) {
        const int64_t to = next[d->labels[i]]++;
        p->labels[to] = d->labels[i];
        normalize(d->vectors + i * d->dim, d->dim, p->vectors + to * d->dim);
    }
    att_free(p->ctx, next);
    return ATT_OK;
}

/* Writes the logarithm of each class's share of the votes. hits [neighbors]: the nearest first. */
static void vote(const att_probe *p, const att_vector_hit *hits, float *out)
{
    const double lowest = -80;
    double sum = 0;
    memset(out, 0, (size_t)p->info.classes * sizeof *out);
    for (int64_t j = 0; j < p->info.neighbors; j++) {
        const double weight = exp((hits[j].score - hits[0].score) / p->info.temperature);
        out[p->labels[hits[j].row]] += (float)weight;
        sum += weight;
    }
    for (int64_t k = 0; k < p->info.classes; k++)
        out[k] = (float)(out[k] > 0 ? fmax(log((double)out[k] / sum), lowest) : lowest);
}

/* Writes the scores of n vectors, at most BLOCK. */
enum { BLOCK = 256 };
static att_status vote_block(const att_probe *p, int64_t n, const float *x, float *unit, att_vector_hit *hits,
                             float *out)
{
    const int64_t dim = p->info.dim, k = p->info.neighbors;
    for (int64_t i = 0; i < n; i++)
        normalize(x + i * dim, dim, unit + i * dim);
    const att_vector_corpus corpus = {.size = sizeof corpus,
                                      .n = p->info.vectors,
                                      .dim = dim,
                                      .precision = ATT_PRECISION_FLOAT32,
                                      .codes = p->vectors};
    const att_status s =
        att_vectors_search(p->ctx, &corpus, unit, n, ATT_OPTIONS(att_vector_search_options, .k = k), hits);
    for (int64_t i = 0; !s && i < n; i++)
        vote(p, hits + i * k, out + i * p->info.classes);
    return s;
}

static att_status vote_all(const att_probe *p, int64_t n, const float *vectors, float *out)
{
    att_vector_hit *hits = att_alloc(p->ctx, (size_t)(BLOCK * p->info.neighbors), sizeof *hits);
    float *unit = att_alloc(p->ctx, BLOCK, (size_t)p->info.dim * sizeof *unit);
    att_status s = hits && unit ? ATT_OK : ATT_ERR_MEMORY;
    for (int64_t i = 0; !s && i < n; i += BLOCK)
        s = vote_block(p, att_min(BLOCK, n - i), vectors + i * p->info.dim, unit, hits, out + i * p->info.classes);
    att_free(p->ctx, unit);
    att_free(p->ctx, hits);
    return s;
}

/* ---- training */

att_status att_probe_fit(att_ctx *ctx, const att_probe_data *train, const att_probe_data *valid,
                         const att_probe_options *options, att_probe **out)
{
    att_probe_data t, v;
    att_probe_options o;
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"train", train}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    att_status s = att_options_read(&t, sizeof t, train, "att_probe_data");
    s = s ? s : att_options_read(&v, sizeof v, valid, "att_probe_data");
    s = s ? s : att_options_read(&o, sizeof o, options, "att_probe_options");
    s = s ? s : check_data(ctx, "att_probe_fit: train", &t);
    if (!s && valid)
        s = check_data(ctx, "att_probe_fit: valid", &v);
    s = s ? s : check_options(ctx, &o, &t);
    if (!s && valid && (v.dim != t.dim || v.classes != t.classes))
        s = att_fail(ctx, ATT_ERR_ARGUMENT,
                     "att_probe_fit: train has %lld numbers and %lld classes, but valid %lld and %lld",
                     (long long)t.dim, (long long)t.classes, (long long)v.dim, (long long)v.classes);
    if (!s && o.kind == ATT_PROBE_KIND_LINEAR && o.c == 0 && !valid)
        s = att_fail(ctx, ATT_ERR_ARGUMENT, "att_probe_fit: options.c is 0 and valid NULL: nothing chooses c");
    if (s)
        return s;
    const bool linear = o.kind == ATT_PROBE_KIND_LINEAR;
    const att_probe_info info = {.size = sizeof info,
                                 .kind = o.kind,
                                 .dim = t.dim,
                                 .classes = t.classes,
                                 .vectors = linear ? 0 : t.n,
                                 .neighbors = linear ? 0 : att_min(t.n, o.neighbors ? o.neighbors : NEIGHBORS),
                                 .temperature = linear              ? 0
                                                : o.temperature > 0 ? o.temperature
                                                                    : temperature};
    att_probe *p = NULL;
    s = att_probe_make(ctx, &info, &p);
    s = s ? s : linear ? fit_linear(&t, &v, &o, p) : store(&t, p);
    if (s)
        att_probe_free(p);
    else
        *out = p;
    return s;
}

/* ---- scores */

static att_var *linear(att_tape *t, const att_probe *p, att_var *x)
{
    return att_linear(t, x, p->weight, p->bias, ATT_ACTIVATION_IDENTITY, NULL);
}

/* Computes W x + b of vectors [n, dim] on a tape of its own. */
static att_status multiply(const att_probe *p, int64_t n, const float *vectors, float *out)
{
    const int64_t dim = p->info.dim, classes = p->info.classes;
    att_tensor x, y;
    att_tape *t;
    att_status s = att_tape_new(p->ctx, NULL, &t);
    for (int64_t i = 0; !s && i < n; i += BLOCK) {
        const int64_t rows = att_min(BLOCK, n - i);
        att_wrap(&x, (void *)(uintptr_t)(vectors + i * dim), ATT_F32, 2, (const int64_t[]){rows, dim}, NULL);
        s = att_var_value(t, linear(t, p, att_constant(t, &x)), &y);
        if (!s)
            memcpy(out + i * classes, y.data, (size_t)(rows * classes) * sizeof *out);
        att_tape_reset(t);
    }
    att_tape_free(t);
    return s;
}

att_status att_probe_scores(const att_probe *p, int64_t n, const float *vectors, float *out)
{
    if (att_require(__func__, ATT_NAMED({"p", p})))
        return ATT_ERR_ARGUMENT;
    if (n < 0)
        return att_fail(p->ctx, ATT_ERR_ARGUMENT, "%s: n is %lld, expected 0 or more", __func__, (long long)n);
    if (n == 0)
        return ATT_OK;
    if (att_require(__func__, ATT_NAMED({"vectors", vectors}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    att_status s = att_check_finite(p->ctx, "the numbers of vector", n, p->info.dim, vectors);
    s = s ? s : (p->w ? multiply : vote_all)(p, n, vectors, out);
    return s ? s : att_check_finite(p->ctx, "the scores of vector", n, p->info.classes, out);
}

att_status att_probe_correct(const att_probe *p, const att_probe_data *data, int64_t *correct)
{
    att_probe_data d;
    if (att_require(__func__, ATT_NAMED({"p", p}, {"data", data}, {"correct", correct})))
        return ATT_ERR_ARGUMENT;
    att_status s = att_options_read(&d, sizeof d, data, "att_probe_data");
    s = s ? s : check_data(p->ctx, "att_probe_correct: data", &d);
    if (!s && (d.dim != p->info.dim || d.classes != p->info.classes))
        s = att_fail(p->ctx, ATT_ERR_ARGUMENT,
                     "att_probe_correct: data has %lld numbers and %lld classes, but the probe %lld and %lld",
                     (long long)d.dim, (long long)d.classes, (long long)p->info.dim, (long long)p->info.classes);
    float *scores = s ? NULL : att_alloc(p->ctx, (size_t)d.n, (size_t)d.classes * sizeof *scores);
    if (!s)
        s = scores ? att_probe_scores(p, d.n, d.vectors, scores) : ATT_ERR_MEMORY;
    *correct = 0;
    for (int64_t i = 0; !s && i < d.n; i++) {
        const float *of = scores + i * d.classes;
        int64_t best = 0;
        for (int64_t k = 1; k < d.classes; k++)
            best = of[k] > of[best] ? k : best;
        *correct += best == d.labels[i];
    }
    att_free(p->ctx, scores);
    return s;
}

att_var *att_probe_apply(att_tape *t, const att_probe *p, att_var *x)
{
    att_tensor v;
    if (p->weight)
        return linear(t, p, x);
    if (att_var_value(t, x, &v))
        return NULL;
    const int64_t n = v.dim[0], classes = p->info.classes;
    float *scores = att_alloc(p->ctx, (size_t)n, (size_t)classes * sizeof *scores);
    const att_status s = scores ? att_probe_scores(p, n, v.data, scores) : ATT_ERR_MEMORY;
    att_var *y = NULL;
    if (s)
        att_tape_fail(t, s, "%s", att_error(p->ctx));
    else if (!att_wrap(&v, scores, ATT_F32, 2, (const int64_t[]){n, classes}, NULL))
        y = att_scale(t, att_constant(t, &v), 1); /* a copy */
    att_free(p->ctx, scores);
    return y;
}
