#include "caption/caption_images.h"
#include "util/util.h"

static att_status read_training(const void *images, int64_t i, att_image *out)
{
    const att_caption_images *of = images;
    return att_caption_set_read(of->set[0], i, out);
}

static att_status read_validation(const void *images, int64_t i, att_image *out)
{
    const att_caption_images *of = images;
    return att_caption_set_read(of->set[1], i, out);
}

static att_image_source source(const att_caption_images *i, int part)
{
    return (att_image_source){.images = i, .read = part ? read_validation : read_training};
}

/* Returns the number of values of a grid. */
static int64_t values(const att_caption_images *i)
{
    const att_captioner_config *c = &i->model->config;
    return c->grid[0] * c->grid[1] * c->features;
}

/* ---- open */

static att_status open_images(att_caption_images *i, const att_augmentation *how)
{
    const att_image_source from = source(i, 0);
    i->pixels = att_alloc(i->ctx, (size_t)(i->batch * att_image_input_values(&i->input)), sizeof *i->pixels);
    return i->pixels ? att_image_batches_new(i->ctx, &i->input, &from, how, i->batch, &i->batches) : ATT_ERR_MEMORY;
}

static att_status encode_images(att_caption_images *i, int64_t max_bytes)
{
    att_status e = ATT_OK;
    for (int part = 0; !e && part < 2 && i->set[part]; part++) {
        const att_image_source from = source(i, part);
        e = att_caption_encoder_run(&i->encoder, &from, i->n[part], &max_bytes, &i->progress, &i->grids[part]);
    }
    i->grid = e ? NULL : att_alloc(i->ctx, (size_t)(i->batch * values(i)), sizeof *i->grid);
    if (e || !i->grid)
        return e ? e : ATT_ERR_MEMORY;
    i->sum = ATT_FNV64_OFFSET;
    for (int64_t k = 0; k < i->n[0] * values(i); k++)
        i->sum = att_fnv64(i->sum, i->grids[0][k]);
    return ATT_OK;
}

att_status att_caption_images_open(att_caption_images *i, const att_augmentation *how, int64_t max_bytes)
{
    return i->encoder.model ? encode_images(i, max_bytes) : open_images(i, how);
}

void att_caption_images_free(att_caption_images *i)
{
    att_image_batches_free(i->batches);
    att_free(i->ctx, i->pixels);
    att_free(i->ctx, i->grids[0]);
    att_free(i->ctx, i->grids[1]);
    att_free(i->ctx, i->grid);
}

/* ---- grids */

/* Writes the grid of an image as number k of the batch. */
static att_status add_grid(att_caption_images *i, int part, int64_t image, int64_t k)
{
    att_tensor from, to;
    att_wrap(&from, i->grids[part] + image * values(i), ATT_F16, ATT_DIMS(values(i)), NULL);
    att_wrap(&to, i->grid + k * values(i), ATT_F32, ATT_DIMS(values(i)), NULL);
    return att_tensor_convert(i->ctx, &from, &to);
}

static att_var *grids_of(const att_caption_images *i, att_tape *t, int64_t n)
{
    const int64_t features = i->model->config.features;
    att_tensor x;
    att_wrap(&x, i->grid, ATT_F32, ATT_DIMS(n * values(i) / features, features), NULL);
    return att_constant(t, &x);
}

static att_var *encode(const att_caption_images *i, att_tape *t, float *pixels, int64_t n, bool training)
{
    const att_image_processor_info *in = &i->input.info;
    att_tensor x;
    att_wrap(&x, pixels, ATT_F32, ATT_DIMS(n, in->height, in->width, in->channels), NULL);
    return att_captioner_encode(t, i->model, att_constant(t, &x), training);
}

static att_var *fail(const att_caption_images *i, att_tape *t, att_status e)
{
    return att_tape_fail(t, e, "%s", att_error(i->ctx));
}

att_var *att_caption_images_get(att_caption_images *i, att_tape *t, const att_image_choice *now,
                                const att_image_choice *next)
{
    att_status e = ATT_OK;
    const att_image_batch *b;
    double waited = 0;
    if (i->encoder.model) {
        const int64_t n = now->last - now->first;
        for (int64_t k = 0; !e && k < n; k++)
            e = add_grid(i, 0, now->images[now->first + k], k);
        return e ? fail(i, t, e) : grids_of(i, t, n);
    }
    e = att_image_batches_get(i->batches, now, next, &b, &waited);
    i->waited += waited;
    return e ? fail(i, t, e) : encode(i, t, b->pixels, b->n, true);
}

/* ---- validation */

att_var *att_caption_images_valid(att_caption_images *i, att_tape *t, int64_t first, int64_t n)
{
    att_status e = ATT_OK;
    if (i->encoder.model) {
        for (int64_t k = 0; !e && k < n; k++)
            e = add_grid(i, 1, first + k, k);
        return e ? fail(i, t, e) : grids_of(i, t, n);
    }
    const att_image_source from = source(i, 1);
    e = att_image_input_pixels(&i->input, &from, first, n, i->pixels);
    return e ? fail(i, t, e) : encode(i, t, i->pixels, n, false);
}
