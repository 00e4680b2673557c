/* 2-D max and mean pooling, per channel; padding is excluded */
#include "tape/tape.h"

#include <string.h>

typedef struct pool2d_saved {
    att_window w;
    att_pooling kind;
} pool2d_saved;

typedef struct pool2d_job {
    pool2d_saved of;
    const att_kernels *k;
    const float *x, *dy;
    float *y, *dx; /* x and dx [images, height, width, channels], y and dy [images, out[0], out[1], channels] */
} pool2d_job;

/* The part of the image that a window covers: lines and columns. */
typedef struct patch {
    int64_t image, first[2], last[2];
} patch;

static patch patch_of(const att_window *w, int64_t line, int64_t column)
{
    const int64_t at[] = {line % w->out[0], column};
    patch p = {.image = line / w->out[0]};
    for (int i = 0; i < 2; i++) {
        const int64_t first = at[i] * w->stride[i] - w->padding[i], last = first + w->kernel[i];
        p.first[i] = first > 0 ? first : 0;
        p.last[i] = last < w->size[i] ? last : w->size[i];
    }
    return p;
}

static int64_t numbers_of(const patch *p) { return (p->last[0] - p->first[0]) * (p->last[1] - p->first[1]); }

/* Returns the offset of element i of a window. */
static int64_t number_at(const att_window *w, const patch *p, int64_t i)
{
    const int64_t width = p->last[1] - p->first[1], y = p->first[0] + i / width, x = p->first[1] + i % width;
    return ((p->image * w->size[0] + y) * w->size[1] + x) * w->channels;
}

static void pool_lines(const void *arg, int64_t first, int64_t last)
{
    const pool2d_job *j = arg;
    const att_window *w = &j->of.w;
    void (*const merge)(int64_t, const float *, const float *, float *) =
        j->of.kind == ATT_POOLING_MAX ? j->k->vector.max : j->k->vector.add;
    for (int64_t window = first * w->out[1]; window < last * w->out[1]; window++) {
        const patch p = patch_of(w, window / w->out[1], window % w->out[1]);
        const int64_t n = numbers_of(&p);
        float *y = j->y + window * w->channels;
        memcpy(y, j->x + number_at(w, &p, 0), (size_t)w->channels * sizeof *y);
        for (int64_t i = 1; i < n; i++)
            merge(w->channels, y, j->x + number_at(w, &p, i), y);
        if (j->of.kind == ATT_POOLING_MEAN)
            j->k->vector.scale(w->channels, 1.0f / (float)n, y, y);
    }
}

/* ---- backward: in parallel over images only, since windows may overlap */

/* Adds the gradient to the first maximum, or to the first NaN. */
static void max_back(const pool2d_job *j, const patch *p, int64_t window)
{
    enum { CHANNELS = 256 };
    const int64_t channels = j->of.w.channels, n = numbers_of(p);
    for (int64_t c = 0; c < channels; c += CHANNELS) {
        const int64_t some = att_min(CHANNELS, channels - c);
        float left[CHANNELS]; /* the part of dy that no earlier element got */
        memcpy(left, j->dy + window * channels + c, (size_t)some * sizeof *left);
        for (int64_t i = 0; i < n; i++) {
            const int64_t at = number_at(&j->of.w, p, i) + c;
            j->k->vector.max_back(some, j->x + at, j->y + window * channels + c, left, j->dx + at);
        }
    }
}

static void mean_back(const pool2d_job *j, const patch *p, int64_t window)
{
    const att_window *w = &j->of.w;
    const float *dy = j->dy + window * w->channels;
    const float share = 1.0f / (float)numbers_of(p);
    for (int64_t i = 0; i < numbers_of(p); i++) {
        float *dx = j->dx + number_at(w, p, i);
        for (int64_t c = 0; c < w->channels; c++)
            dx[c] += share * dy[c];
    }
}

static void images_back(const void *arg, int64_t first, int64_t last)
{
    const pool2d_job *j = arg;
    const att_window *w = &j->of.w;
    for (int64_t window = first * w->out[0] * w->out[1]; window < last * w->out[0] * w->out[1]; window++) {
        const patch p = patch_of(w, window / w->out[1], window % w->out[1]);
        (j->of.kind == ATT_POOLING_MAX ? max_back : mean_back)(j, &p, window);
    }
}

static att_status backward(att_tape *t, const att_step *s)
{
    const pool2d_saved *saved = s->saved;
    const pool2d_job j = {.of = *saved,
                          .k = att_kernels_of(t->ctx->isa),
                          .x = s->in[0]->value.data,
                          .y = s->y->value.data,
                          .dy = s->y->grad,
                          .dx = att_tape_grad(s->in[0])};
    att_tape_for_rows(t->ctx, saved->w.images, saved->w.images > 0 ? att_count(&s->in[0]->value) / saved->w.images : 0,
                      images_back, &j);
    return ATT_OK;
}

const att_operation att_operation_pool2d = {.name = "pool2d", .backward = backward};

/* ---- forward */

/* Returns how many elements a line of windows reads, padding included, up to the work of a task. */
static int64_t work_of_line(const att_window *w)
{
    const double n = (double)w->out[1] * (double)w->channels * (double)w->kernel[0] * (double)w->kernel[1];
    return n < 0x1p31 ? (int64_t)n : INT32_MAX;
}

att_var *att_pool2d(att_tape *t, att_var *x, att_pooling kind, const att_pool_options *options)
{
    if (!x || !att_tape_ready(t))
        return NULL;
    att_pool_options o;
    pool2d_saved saved = {.kind = kind};
    if (!att_tape_options_read(t, "pool2d", &o, sizeof o, options, "att_pool_options"))
        return NULL;
    if (kind != ATT_POOLING_MAX && kind != ATT_POOLING_MEAN)
        return att_tape_fail(t, ATT_ERR_ARGUMENT, "pool2d: %d is neither ATT_POOLING_MAX nor ATT_POOLING_MEAN",
                             (int)kind);
    if (!options)
        return att_tape_fail(t, ATT_ERR_ARGUMENT, "pool2d: options is NULL, but options.kernel is needed");
    for (int i = 0; i < 2; i++)
        o.stride[i] = o.stride[i] == 0 ? o.kernel[i] : o.stride[i];
    if (!att_tape_window(t, "pool2d", &x->value, o.kernel, o.stride, o.padding, &saved.w))
        return NULL;
    const att_window *w = &saved.w;
    att_var *y = att_tape_var(t, 4, (const int64_t[]){w->images, w->out[0], w->out[1], w->channels});
    if (!y)
        return NULL;
    const pool2d_job j = {.of = saved, .k = att_kernels_of(t->ctx->isa), .x = x->value.data, .y = y->value.data};
    att_tape_for_rows(t->ctx, w->images * w->out[0], work_of_line(w), pool_lines, &j);
    return att_tape_end(t, &att_operation_pool2d, y, &x, 1, &saved, sizeof saved);
}
