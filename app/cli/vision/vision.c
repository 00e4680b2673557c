#include "vision.h"
#include "cli/base/output.h"
#include "cli/base/progress.h"

#include <attend_util.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int describe(cli_model *base)
{
    cli_vision *m = (cli_vision *)base;
    m->model = att_any_model_as(base->opened, ATT_SUBJECT_VISION);
    m->info = (att_vit_info){.size = sizeof m->info};
    const int code = cli_status(base->ctx, att_vit_describe(att_image_model_vit(m->model), &m->info));
    m->info.classes = att_image_model_classes(m->model); /* a probe counts instead of the own classifier */
    m->info.multi_label = m->info.multi_label && !att_image_model_probe(m->model);
    return code;
}

const cli_model_kind cli_vision_kind = {.subject = ATT_SUBJECT_VISION, .describe = describe};

int cli_vision_classify(const cli_vision *m, int64_t n, const att_image *images, const char *const *paths, float *out)
{
    const int64_t classes = m->info.classes;
    memset(out, 0, (size_t)(n * classes) * sizeof *out);
    const att_status s = att_image_classify(m->model, n, images, NULL, out);
    for (int64_t i = 0; s == ATT_ERR_FORMAT && paths && i < n * classes; i++)
        if (!isfinite(out[i]))
            return cli_fail("%s: the probabilities of image %s are not finite: the weights are damaged, or too large",
                            m->base.name, paths[i / classes]);
    return s == ATT_ERR_FORMAT ? cli_fail("%s: %s", m->base.name, att_error(m->base.ctx)) : cli_status(m->base.ctx, s);
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

/* ---- Images of the command line ----------------------------------------------- */

int cli_image_stream_open(cli_image_stream *s, int n, char *const *arguments)
{
    const int code = cli_lines_of_images(&s->in, n, arguments);
    return code ? code : cli_lines_shard(&s->in);
}

int cli_image_stream_start(cli_image_stream *s, att_ctx *ctx)
{
    s->ctx = ctx;
    s->room = cli_images_at_once(ctx);
    s->read = malloc((size_t)s->room * sizeof *s->read);
    s->image = malloc((size_t)s->room * sizeof *s->image);
    s->path = malloc((size_t)s->room * sizeof *s->path);
    return s->read && s->image && s->path ? CLI_DONE : cli_fail_memory();
}

static int run_block(cli_image_stream *s, int (*each)(void *user), void *user)
{
    int code = CLI_DONE;
    cli_images_read(s->ctx, s->in.count, s->in.text, &s->options, s->read);
    s->count = 0;
    for (int64_t i = 0; i < s->in.count; i++) {
        if (s->read[i].status == ATT_OK) {
            s->path[s->count] = s->in.text[i];
            s->image[s->count++] = s->read[i].image;
        } else if (!code && cli_image_code(&s->read[i]) == CLI_INTERRUPTED) {
            code = CLI_INTERRUPTED;
        }
    }
    if (!code && s->count)
        code = each(user);
    s->done += s->in.count;
    s->failed += s->in.count - s->count;
    cli_images_free(s->ctx, s->in.count, s->read);
    return code;
}

int cli_image_stream_run(cli_image_stream *s, int (*each)(void *user), void *user, const char *drawn)
{
    cli_progress progress;
    int code = cli_output_open(&s->out, s->output);
    cli_progress_begin(&progress);
    while (!code) {
        code = cli_lines_next(&s->in, s->room);
        if (code || s->in.count == 0)
            break;
        code = run_block(s, each, user);
        if (!code)
            code = cli_output_flush(&s->out);
        cli_progress_show(&progress, s->done, "images", s->in.done / s->in.total);
    }
    cli_progress_end(&progress);
    if (!code && drawn && s->done > 1 && s->done > s->failed)
        cli_note("%s shows the first of %lld image%s%s", drawn, (long long)(s->done - s->failed),
                 s->done - s->failed == 1 ? "" : "s", s->failed ? " that could be read" : "");
    if (!code && s->failed && s->skip_broken)
        cli_note("%lld of %lld images cannot be read", (long long)s->failed, (long long)s->done);
    return cli_output_close(&s->out, !code && s->failed && !s->skip_broken ? CLI_FAILED : code);
}

void cli_image_stream_close(cli_image_stream *s)
{
    cli_lines_close(&s->in);
    free(s->read);
    free(s->image);
    free(s->path);
}

int cli_read_background(const char *text, uint8_t color[3], att_image_options *options)
{
    static const struct {
        const char *name;
        uint8_t level;
    } names[] = {{"white", 255}, {"black", 0}, {"gray", 128}, {"grey", 128}};
    options->background = text ? color : NULL;
    if (!text)
        return CLI_DONE;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(text, names[i].name)) {
            memset(color, names[i].level, 3);
            return CLI_DONE;
        }
    const char *digits = text + (*text == '#');
    if (strlen(digits) != 6 || strspn(digits, "0123456789abcdefABCDEF") != 6)
        return cli_misuse("--background: \"%s\" is neither #rrggbb nor white, black or gray", text);
    const unsigned long bits = strtoul(digits, NULL, 16);
    for (int i = 0; i < 3; i++)
        color[i] = (uint8_t)(bits >> (16 - 8 * i));
    return CLI_DONE;
}

int cli_set_background(const char *text, att_image_set *set)
{
    att_image_options o = {.size = sizeof o};
    uint8_t color[3];
    const int code = cli_read_background(text, color, &o);
    return code ? code : cli_status(NULL, att_image_set_background(set, o.background));
}
