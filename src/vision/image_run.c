#include "vision/image_run.h"
#include "attend_util.h"
#include "io/parallel_status.h"
#include "util/util.h"

#include <string.h>

typedef struct batch {
    const att_image_processor *processor;
    att_image_processor_info input;
    int64_t pixels;          /* values of an image */
    const att_image *images; /* [n] */
    float *x;                /* [n, pixels] */
} batch;

static att_status preprocess(void *arg, int i)
{
    const batch *b = arg;
    return att_image_processor_apply(b->processor, &b->images[i], b->x + i * b->pixels);
}

/* Computes the results of the first n images of b into out [n, width]. */
static att_status run_batch(const att_image_run *r, att_tape *t, batch *b, int64_t n, float *out)
{
    const att_image_processor_info *p = &b->input;
    att_tensor images, y;
    att_status s = att_parallel_all(r->model->ctx, (int)n, preprocess, b);
    s = s ? s : att_wrap(&images, b->x, ATT_F32, 4, (const int64_t[]){n, p->height, p->width, p->channels}, NULL);
    s = s ? s : att_var_value(t, r->apply(t, r->user, att_input(t, &images)), &y);
    if (!s)
        memcpy(out, y.data, (size_t)(n * r->width) * sizeof *out);
    att_tape_reset(t);
    return s;
}

att_status att_image_run_all(const att_image_run *r, int64_t n, const att_image *images, float *out)
{
    const int64_t max = att_max(1, att_min(r->batch, n));
    batch b = {.processor = r->processor, .input.size = sizeof b.input};
    att_tape *t = NULL;
    att_status s = att_image_processor_describe(r->processor, &b.input);
    if (s)
        return s;
    b.pixels = b.input.height * b.input.width * b.input.channels;
    b.x = att_alloc(r->model->ctx, (size_t)max, (size_t)b.pixels * sizeof *b.x);
    s = b.x ? att_model_tape(r->model, &t) : ATT_ERR_MEMORY;
    for (int64_t first = 0; !s && first < n; first += max) {
        const int64_t count = att_min(max, n - first);
        b.images = images + first;
        s = run_batch(r, t, &b, count, out + first * r->width);
        if (!s && r->progress)
            s = att_progress_add(r->progress, count);
    }
    att_tape_free(t);
    att_free(r->model->ctx, b.x);
    return s;
}

att_var *att_image_run_one(att_tape *t, const att_image_run *r, const att_image *image)
{
    att_image_processor_info p = {.size = sizeof p};
    att_tensor x;
    att_var *y = NULL;
    float *pixels = NULL;
    att_status s = att_image_processor_describe(r->processor, &p);
    if (!s) {
        pixels = att_alloc(r->model->ctx, (size_t)(p.height * p.width), (size_t)p.channels * sizeof *pixels);
        s = pixels ? att_image_processor_apply(r->processor, image, pixels) : ATT_ERR_MEMORY;
    }
    s = s ? s : att_wrap(&x, pixels, ATT_F32, 4, (const int64_t[]){1, p.height, p.width, p.channels}, NULL);
    if (s)
        att_tape_fail(t, s, "%s", att_error(r->model->ctx));
    else
        y = r->apply(t, r->user, att_input(t, &x));
    att_free(r->model->ctx, pixels);
    return y;
}
