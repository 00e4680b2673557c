/* Resampling of images. It is linear and separable: each axis is a sparse matrix, which is applied to lines, then to
 * columns, and transposed for backward. */
#include "tape/tape.h"
#include "base/math.h"

#include <math.h>
#include <string.h>

/* A matrix [out, in]: row i has weights for columns first[i] to first[i] + taps - 1, and zeros elsewhere. first
 * ascends. */
typedef struct resize_axis {
    int64_t in, out, taps;
    int64_t *first; /* [out] */
    float *weight;  /* [out, taps] */
} resize_axis;

typedef struct resize_saved {
    resize_axis axis[2]; /* height, width */
} resize_saved;

static bool allocate_axis(att_tape *t, resize_axis *a)
{
    const size_t weights = att_size_mul((size_t)a->out * sizeof *a->weight, (size_t)a->taps);
    a->first = att_arena_alloc(&t->arena, att_size_mul((size_t)a->out, sizeof *a->first));
    a->weight = att_arena_alloc(&t->arena, weights);
    if (!a->first || !a->weight)
        return false;
    memset(a->weight, 0, weights);
    return true;
}

/* ---- the weights of an axis, as PyTorch has them with align_corners = False */

/* How an output is computed: from the inputs near its center, weighted by a filter of their distance. */
typedef struct resize_filter {
    bool cubic, antialias;
    double scale; /* inputs for each output */
} resize_filter;

/* Returns the weight at a distance: triangle, or cubic convolution (Keys 1981); a: the slope at distance 1. */
static double weight_at(const resize_filter *f, double distance)
{
    const double x = fabs(distance), a = f->antialias ? -0.5 : -0.75;
    if (!f->cubic)
        return x < 1 ? 1 - x : 0;
    if (x < 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/* Computes the weights of output i. Without antialias, positions outside the image count as those at its edge. */
static void fill_row(const resize_axis *a, const resize_filter *f, int64_t i)
{
    const double stretch = f->antialias && f->scale > 1 ? f->scale : 1, center = f->scale * ((double)i + 0.5);
    const double support = stretch * (f->cubic ? 2 : 1);
    int64_t from = (int64_t)floor(center - 0.5) - (f->cubic ? 1 : 0), to = from + (f->cubic ? 4 : 2);
    if (f->antialias) {
        from = (int64_t)att_fmax(center - support + 0.5, 0);
        to = (int64_t)att_fmin(center + support + 0.5, (double)a->in);
    }
    float *weight = a->weight + i * a->taps;
    double total = 0;
    a->first[i] = att_min(att_max(from, 0), a->in - a->taps);
    for (int64_t p = from; p < to; p++)
        total += weight_at(f, ((double)p + 0.5 - center) / stretch);
    for (int64_t p = from; p < to; p++) {
        const int64_t inside = att_min(att_max(p, 0), a->in - 1);
        weight[inside - a->first[i]] += (float)(weight_at(f, ((double)p + 0.5 - center) / stretch) / total);
    }
}

static bool make_axis(att_tape *t, const resize_filter *f, resize_axis *a)
{
    const double support = (f->cubic ? 2 : 1) * att_fmax(f->scale, 1);
    a->taps = att_min(f->antialias ? 2 * (int64_t)ceil(support) + 1 : f->cubic ? 4 : 2, a->in);
    if (!allocate_axis(t, a))
        return false;
    for (int64_t i = 0; i < a->out; i++)
        fill_row(a, f, i);
    return true;
}

/* Transposes a into b. The rows of a that have a weight for input i are neighbors, because first ascends. */
static bool transpose_axis(att_tape *t, const resize_axis *a, resize_axis *b)
{
    *b = (resize_axis){.in = a->out, .out = a->in};
    for (int64_t i = 0, from = 0, to = 0; i < a->in; i++) {
        while (from < a->out && a->first[from] + a->taps <= i)
            from++;
        while (to < a->out && a->first[to] <= i)
            to++;
        b->taps = att_max(b->taps, to - from);
    }
    if (!allocate_axis(t, b))
        return false;
    for (int64_t i = 0, from = 0; i < a->in; i++) {
        while (from < a->out && a->first[from] + a->taps <= i)
            from++;
        b->first[i] = att_min(from, b->in - b->taps);
        for (int64_t r = from; r < a->out && a->first[r] <= i; r++)
            b->weight[i * b->taps + r - b->first[i]] = a->weight[r * a->taps + i - a->first[r]];
    }
    return true;
}

/* ---- applying it */

typedef struct resize_job {
    const resize_axis *a;
    int64_t inner;
    const float *x; /* [outer, in, inner] */
    float *y;       /* [outer, out, inner] */
} resize_job;

static void resize_rows(const void *arg, int64_t first, int64_t last)
{
    const resize_job *j = arg;
    const resize_axis *a = j->a;
    for (int64_t row = first; row < last; row++) {
        const int64_t i = row % a->out;
        const float *weight = a->weight + i * a->taps, *x = j->x + (row / a->out * a->in + a->first[i]) * j->inner;
        float *y = j->y + row * j->inner;
        memset(y, 0, (size_t)j->inner * sizeof *y);
        for (int64_t k = 0; k < a->taps; k++, x += j->inner)
            for (int64_t d = 0; weight[k] != 0 && d < j->inner; d++)
                y[d] += weight[k] * x[d];
    }
}

static void apply_axis(att_ctx *ctx, const resize_axis *a, int64_t outer, int64_t inner, const float *x, float *y)
{
    const resize_job j = {a, inner, x, y};
    att_tape_for_rows(ctx, outer * a->out, a->taps * inner, resize_rows, &j);
}

/* Resamples x by height, then by width -> y; false: error set. */
static bool apply_axes(att_tape *t, const resize_axis axis[2], const att_tensor *shape, const float *x, float *y)
{
    const int64_t images = shape->dim[0], channels = shape->dim[3];
    const size_t mark = att_arena_mark(&t->arena), width = (size_t)axis[1].in * (size_t)channels;
    float *lines = att_tape_scratch(t, att_size_mul(att_size_mul((size_t)images, (size_t)axis[0].out), width));
    if (!lines)
        return false;
    apply_axis(t->ctx, &axis[0], images, axis[1].in * channels, x, lines);
    apply_axis(t->ctx, &axis[1], images * axis[0].out, channels, lines, y);
    att_arena_release(&t->arena, mark);
    return true;
}

/* ---- backward */

static att_status backward(att_tape *t, const att_step *s)
{
    const resize_saved *saved = s->saved;
    resize_axis axis[2];
    float *dx = att_tape_dx(t, s->in[0]);
    if (!dx || !transpose_axis(t, &saved->axis[0], &axis[0]) || !transpose_axis(t, &saved->axis[1], &axis[1]) ||
        !apply_axes(t, axis, &s->y->value, s->y->grad, dx))
        return ATT_ERR_MEMORY;
    att_tape_dx_end(t, s->in[0], dx);
    return ATT_OK;
}

const att_operation att_operation_resize = {.name = "resize", .backward = backward, .ignores_y = true, .ignores_in = 1};

/* ---- forward */

/* Reads sizes and scale of one axis from the options. */
static bool read_axis(att_tape *t, const att_tensor *x, int i, const att_resize_options *o, resize_axis *a,
                      double *scale)
{
    static const char *const names[] = {"height", "width"};
    const int64_t in = x->dim[1 + i], out = o->out[i];
    const double factor = o->factor[i], size = factor == 0 ? (double)out : floor((double)in * factor);
    if (in < 1 || in > INT32_MAX)
        att_tape_fail(t, ATT_ERR_SHAPE, "resize: x is %s: a %s not from 1 to %d", att_shape_of(x).text, names[i],
                      INT32_MAX);
    else if ((out == 0) == (factor == 0))
        att_tape_fail(t, ATT_ERR_ARGUMENT, "resize: %s: %s", names[i],
                      out == 0 ? "neither out nor factor is given" : "both out and factor are given");
    else if (!(size >= 1 && size <= INT32_MAX)) /* also refuses NaN */
        att_tape_fail(t, ATT_ERR_ARGUMENT, "resize: %s: %lld inputs by out = %lld, factor = %g: not from 1 to %d",
                      names[i], (long long)in, (long long)out, factor, INT32_MAX);
    if (t->status)
        return false;
    *a = (resize_axis){.in = in, .out = (int64_t)size};
    *scale = factor == 0 ? (double)in / size : 1 / factor;
    return true;
}

static bool check(att_tape *t, const att_tensor *x, const att_resize_options *options, const att_resize_options *o)
{
    if (!options)
        att_tape_fail(t, ATT_ERR_ARGUMENT, "resize: options is NULL, but options.out or .factor is needed");
    else if (o->mode != ATT_RESIZE_BILINEAR && o->mode != ATT_RESIZE_BICUBIC)
        att_tape_fail(t, ATT_ERR_ARGUMENT, "resize: mode is %d, neither ATT_RESIZE_BILINEAR nor ATT_RESIZE_BICUBIC",
                      (int)o->mode);
    else if (x->rank != 4)
        att_tape_fail(t, ATT_ERR_SHAPE, "resize: x is %s, not [images, height, width, channels]", att_shape_of(x).text);
    return !t->status;
}

att_var *att_resize(att_tape *t, att_var *x, const att_resize_options *options)
{
    if (!x || !att_tape_ready(t))
        return NULL;
    att_resize_options o;
    resize_saved saved;
    double scale[2];
    if (!att_tape_options_read(t, "resize", &o, sizeof o, options, "att_resize_options") ||
        !check(t, &x->value, options, &o))
        return NULL;
    for (int i = 0; i < 2; i++)
        if (!read_axis(t, &x->value, i, &o, &saved.axis[i], &scale[i]))
            return NULL;
    const int64_t dim[] = {x->value.dim[0], saved.axis[0].out, saved.axis[1].out, x->value.dim[3]};
    att_var *y = att_tape_var(t, 4, dim);
    if (!y)
        return NULL;
    bool made = true;
    for (int i = 0; made && i < 2; i++)
        made =
            make_axis(t, &(const resize_filter){o.mode == ATT_RESIZE_BICUBIC, o.antialias, scale[i]}, &saved.axis[i]);
    if (!made || !apply_axes(t, saved.axis, &x->value, x->value.data, y->value.data))
        return att_tape_fail(t, ATT_ERR_MEMORY, "resize: %s", att_error(t->ctx));
    return att_tape_end(t, &att_operation_resize, y, &x, 1, &saved, sizeof saved);
}
