#include "vision.h"

#include <attend_util.h>

#include <string.h>

int cli_vision_open(cli_vision *m, const char *name, int64_t threads)
{
    *m = (cli_vision){.info = {.size = sizeof m->info}};
    int code = cli_model_find(CLI_VISION_MODEL, name, &m->folder);
    m->name = name ? name : m->folder.text;
    if (!code)
        code = cli_open(&m->ctx, threads);
    if (!code)
        code = cli_status(m->ctx, att_image_model_open(m->ctx, m->folder.text, &m->model));
    if (!code)
        att_vit_describe(att_image_model_vit(m->model), &m->info);
    else
        cli_vision_close(m);
    return code;
}

void cli_vision_close(cli_vision *m)
{
    att_image_model_free(m->model);
    att_close(m->ctx);
    m->model = NULL;
    m->ctx = NULL;
}

int cli_vision_classify(const cli_vision *m, int64_t n, const att_image *images, float *out)
{
    const att_status s = att_image_classify(m->model, n, images, out);
    return s == ATT_ERR_FORMAT ? cli_fail("%s: %s", m->name, att_error(m->ctx)) : cli_status(m->ctx, s);
}

/* ---- Images ----------------------------------------------------------------- */

int64_t cli_images_at_once(const att_ctx *ctx)
{
    const int64_t some = 2 * (int64_t)att_threads(ctx);
    return some < 4 ? 4 : some < 32 ? some : 32;
}

typedef struct reading {
    att_ctx *ctx;
    const char *const *paths; /* or of a set: */
    const att_image_set *set;
    int64_t first;
    const att_image_options *options;
    cli_image *images;
} reading;

/* The message belongs to this thread. */
static void read_one(void *arg, int i)
{
    const reading *r = arg;
    cli_image *image = &r->images[i];
    *image = (cli_image){0};
    image->status = r->set ? att_image_set_read(r->set, r->first + i, &image->image)
                           : att_image_open(r->ctx, r->paths[i], r->options, &image->image);
    if (image->status != ATT_OK)
        snprintf(image->message, sizeof image->message, "%s", att_error(r->ctx));
}

void cli_images_read(att_ctx *ctx, int64_t n, const char *const *paths, const att_image_options *options,
                     cli_image *images)
{
    reading r = {.ctx = ctx, .paths = paths, .options = options, .images = images};
    att_parallel_for(ctx, (int)n, read_one, &r);
}

void cli_images_read_set(att_ctx *ctx, const att_image_set *set, int64_t first, int64_t n, cli_image *images)
{
    reading r = {.ctx = ctx, .set = set, .first = first, .images = images};
    att_parallel_for(ctx, (int)n, read_one, &r);
}

int cli_image_code(const cli_image *image)
{
    if (image->status == ATT_OK)
        return CLI_DONE;
    return image->status == ATT_ERR_CANCELLED ? CLI_INTERRUPTED : cli_fail("%s", image->message);
}

void cli_images_free(att_ctx *ctx, int64_t n, cli_image *images)
{
    for (int64_t i = 0; i < n; i++)
        att_image_free(ctx, &images[i].image);
}
