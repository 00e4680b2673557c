#include "caption/caption_encoder.h"
#include "vision/vit.h"
#include "io/install.h"
#include "io/parallel_status.h"
#include "io/atomic_write.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

enum { BATCH = 16 }; /* images that are encoded at once */

/* ---- open, copy */

att_status att_caption_encoder_open(att_ctx *ctx, const char *folder, att_compute compute, att_image_model **out)
{
    char weights[ATT_MAX_PATH];
    att_status e = att_image_model_open(ctx, folder, ATT_OPTIONS(att_model_options, .compute = compute), out);
    e = e ? e : att_join_path(ctx, folder, "model.safetensors", weights);
    if (!e && !att_is_file(weights))
        e = att_fail(
            ctx, ATT_ERR_UNSUPPORTED,
            "%s: does not exist; the folder of a captioner gets a copy of its encoder, whose weights have to be "
            "in this one file",
            weights);
    return e;
}

att_status att_caption_encoder_of(att_ctx *ctx, const att_image_model *model, att_caption_encoder *out)
{
    *out = (att_caption_encoder){
        .ctx = ctx, .model = model, .input.size = sizeof out->input, .info.size = sizeof out->info};
    att_status e = att_vit_describe(att_image_model_vit(model), &out->info);
    e = e ? e : att_image_processor_describe(att_image_model_processor(model), &out->input);
    if (e)
        return e;
    out->grid[0] = out->input.height / out->info.patch[0];
    out->grid[1] = out->input.width / out->info.patch[1];
    return ATT_OK;
}

const char *const att_caption_encoder_files[] = {"encoder/config.json",
                                                 "encoder/preprocessor_config.json",
                                                 "encoder/processor_config.json",
                                                 "encoder/model.safetensors",
                                                 "encoder",
                                                 NULL};

static att_status copy_file(att_ctx *ctx, const char *folder, const char *to, const char *name)
{
    char source[ATT_MAX_PATH], target[ATT_MAX_PATH];
    att_file_data file;
    att_status e = att_join_path(ctx, folder, name, source);
    e = e ? e : att_join_path(ctx, to, name, target);
    if (e)
        return e;
    if (!att_is_file(source)) {
        unlink(target); /* of an earlier model */
        return ATT_OK;
    }
    e = att_file_data_open(&file, ctx, source);
    e = e ? e : att_write_file(ctx, target, file.bytes, file.size);
    att_file_data_close(&file);
    return e;
}

att_status att_caption_encoder_copy(att_ctx *ctx, const char *folder, const char *to)
{
    char encoder[ATT_MAX_PATH];
    att_status e = att_install_forget(ctx, to); /* of an earlier model, with another encoder */
    e = e ? e : att_join_path(ctx, to, "encoder", encoder);
    e = e ? e : att_make_folder(ctx, encoder);
    for (const char *const *file = att_caption_encoder_files; !e && strchr(*file, '/'); file++)
        e = copy_file(ctx, folder, encoder, strchr(*file, '/') + 1);
    return e;
}

/* ---- features */

typedef struct grids {
    const att_caption_encoder *e;
    const att_image_source *from;
    int64_t first; /* image of the batch */
    float *pixels; /* [BATCH, height, width, channels] */
} grids;

static int64_t values(const att_caption_encoder *e) { return e->input.height * e->input.width * e->input.channels; }

/* Reads image i of the batch. */
static att_status read_one(void *arg, int i)
{
    const grids *g = arg;
    att_image image;
    att_status e = g->from->read(g->from->images, g->first + i, &image);
    if (e)
        return e;
    e = att_image_processor_apply(att_image_model_processor(g->e->model), &image, g->pixels + i * values(g->e));
    att_image_free(g->e->ctx, &image);
    return e;
}

static att_status check_finite(const grids *g, int64_t image, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!(fabsf(x[i]) <= 65504)) /* the largest number of f16 */
            return att_fail(
                g->e->ctx, ATT_ERR_ARGUMENT,
                "the encoder's features of image %lld, from 0, have %g, which f16 cannot represent: its weights are "
                "damaged, or too large",
                (long long)image, (double)x[i]);
    return ATT_OK;
}

/* Copies the locations of n images, without the tokens before them, to out, f16 [n, locations, hidden]. */
static att_status copy_locations(const grids *g, const float *tokens, int64_t n, uint16_t *out)
{
    const att_vit_info *v = &g->e->info;
    const int64_t locations = g->e->grid[0] * g->e->grid[1], all = (v->prefix + locations) * v->hidden,
                  saved = locations * v->hidden;
    att_status e = ATT_OK;
    for (int64_t i = 0; !e && i < n; i++) {
        const float *x = tokens + i * all + v->prefix * v->hidden;
        att_tensor from, to;
        att_wrap(&from, (void *)(uintptr_t)x, ATT_F32, ATT_DIMS(saved), NULL);
        att_wrap(&to, out + i * saved, ATT_F16, ATT_DIMS(saved), NULL);
        e = check_finite(g, g->first + i, x, saved);
        e = e ? e : att_tensor_convert(g->e->ctx, &from, &to);
    }
    return e;
}

static att_status encode(grids *g, att_tape *t, int64_t n, uint16_t *out)
{
    const att_image_processor_info *in = &g->e->input;
    att_tensor images, y;
    att_wrap(&images, g->pixels, ATT_F32, ATT_DIMS(n, in->height, in->width, in->channels), NULL);
    att_status e = att_parallel_all(g->e->ctx, (int)n, read_one, g);
    e = e ? e
          : att_var_value(t, att_vit_apply(t, att_image_model_vit(g->e->model), att_constant(t, &images), NULL), &y);
    e = e ? e : copy_locations(g, y.data, n, out);
    att_tape_reset(t);
    return e;
}

static att_status check_memory(const att_caption_encoder *e, int64_t n, int64_t *max_bytes)
{
    const int64_t locations = e->grid[0] * e->grid[1];
    const double bytes = (double)n * (double)locations * (double)e->info.hidden * sizeof(uint16_t);
    if (bytes <= (double)*max_bytes) {
        *max_bytes -= (int64_t)bytes;
        return ATT_OK;
    }
    return att_fail(
        e->ctx, ATT_ERR_ARGUMENT,
        "options.encoder_memory leaves %.4g GB, but the encoder's features of %lld images, %lld x %lld "
        "locations of %lld numbers each, need %.4g GB: take a smaller encoder or fewer images, or allow more",
        1e-9 * (double)*max_bytes, (long long)n, (long long)e->grid[0], (long long)e->grid[1],
        (long long)e->info.hidden, 1e-9 * bytes);
}

att_status att_caption_encoder_run(const att_caption_encoder *e, const att_image_source *from, int64_t n,
                                   int64_t *max_bytes, att_progress *progress, uint16_t **out)
{
    const int64_t of_image = e->grid[0] * e->grid[1] * e->info.hidden;
    grids g = {.e = e, .from = from};
    att_tape *t = NULL;
    *out = NULL;
    att_status s = check_memory(e, n, max_bytes);
    if (s)
        return s;
    g.pixels = att_alloc(e->ctx, BATCH, (size_t)values(e) * sizeof *g.pixels);
    *out = att_alloc(e->ctx, (size_t)n, (size_t)of_image * sizeof **out);
    s = g.pixels && *out ? att_model_tape(&att_image_model_vit(e->model)->model, &t) : ATT_ERR_MEMORY;
    for (; !s && g.first < n; g.first += BATCH) {
        const int64_t images = n - g.first < BATCH ? n - g.first : BATCH;
        s = encode(&g, t, images, *out + g.first * of_image);
        s = s ? s : att_progress_add(progress, images);
    }
    att_tape_free(t);
    att_free(e->ctx, g.pixels);
    return s;
}
