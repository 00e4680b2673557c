#include "caption_images.h"
#include "cli/base/progress.h"

#include <math.h>
#include <stdlib.h>

int caption_image_blocks(const cli_captioner *m, const char *const *paths, int64_t n, const char *unit,
                         int (*each)(void *user, int64_t first, int64_t count, const att_image *images), void *user)
{
    att_ctx *ctx = m->base.ctx;
    const int64_t room = cli_images_at_once(ctx);
    cli_image *read = malloc((size_t)room * sizeof *read);
    att_image *image = malloc((size_t)room * sizeof *image);
    cli_progress line;
    int code = read && image ? CLI_DONE : cli_fail_memory();
    cli_progress_begin(&line);
    for (int64_t first = 0; !code && first < n; first += room) {
        const int64_t count = n - first < room ? n - first : room;
        cli_progress_show(&line, first, unit, (double)first / (double)n);
        cli_images_read(ctx, count, paths + first, m->image_options.size ? &m->image_options : NULL, read);
        for (int64_t i = 0; !code && i < count; i++) {
            code = cli_image_code(&read[i]);
            image[i] = read[i].image;
        }
        if (!code)
            code = each(user, first, count, image);
        cli_images_free(ctx, count, read);
    }
    cli_progress_end(&line);
    free(read);
    free(image);
    return code;
}

typedef struct features {
    const cli_captioner *m;
    int64_t locations;
    float *grids; /* [a block, locations, features] */
    double *out;
} features;

static int encode_block(void *user, int64_t first, int64_t count, const att_image *images)
{
    const features *x = user;
    const int64_t width = x->m->info.features;
    int code = cli_status(x->m->base.ctx, att_caption_encode(x->m->model, count, images, NULL, x->grids));
    for (int64_t i = 0; !code && i < count; i++)
        for (int64_t f = 0; !code && f < width; f++) {
            double sum = 0;
            for (int64_t p = 0; p < x->locations; p++)
                sum += (double)x->grids[(i * x->locations + p) * width + f];
            x->out[(first + i) * width + f] = sum / (double)x->locations;
            if (!isfinite(sum))
                code = cli_fail("%s: a feature of an image is not a number: the weights are damaged, or too large",
                                x->m->base.name);
        }
    return code;
}

int caption_image_features(const cli_captioner *m, const char *const *paths, int64_t n, double *out)
{
    features x = {.m = m, .locations = m->info.grid[0] * m->info.grid[1], .out = out};
    const size_t size = (size_t)(x.locations * m->info.features);
    x.grids = malloc((size_t)cli_images_at_once(m->base.ctx) * size * sizeof *x.grids);
    const int code =
        x.grids ? caption_image_blocks(m, paths, n, "images encoded", encode_block, &x) : cli_fail_memory();
    free(x.grids);
    return code;
}
