#include "captioner.h"

#include <string.h>

static int describe(cli_model *base)
{
    cli_captioner *m = (cli_captioner *)base;
    m->model = att_any_model_as(base->opened, ATT_SUBJECT_CAPTION);
    m->info = (att_caption_model_info){.size = sizeof m->info};
    return cli_status(base->ctx, att_caption_model_describe(m->model, &m->info));
}

const cli_model_kind cli_captioner_kind = {.subject = ATT_SUBJECT_CAPTION, .describe = describe};

int cli_captioner_caption(const cli_captioner *m, int64_t n, const att_image *images,
                          const att_caption_options *options, att_image_caption *out)
{
    const att_status s = att_caption(m->model, n, images, options, out);
    return s == ATT_ERR_FORMAT ? cli_fail("%s: %s", m->base.name, att_error(m->base.ctx)) : cli_status(m->base.ctx, s);
}

int cli_caption_search_options(cli_caption_search *s, const cli_captioner *m, int64_t n_best, att_caption_options *o)
{
    s->penalty = (float)s->length_penalty;
    *o = (att_caption_options){
        .size = sizeof *o, .beam = s->beam, .n_best = n_best, .max_words = s->max_words, .length_penalty = &s->penalty};
    if (s->max_words > m->info.max_words)
        return cli_misuse("--max-words: %s writes captions of up to %lld words, not %lld", m->base.name,
                          (long long)m->info.max_words, (long long)s->max_words);
    return CLI_DONE;
}

int cli_captions_open(const cli_captions *c, att_ctx *ctx, const char *list, att_caption_set **out)
{
    att_image_options image = {.size = sizeof image};
    uint8_t color[3];
    const int code = cli_read_background(c->background, color, &image);
    if (code)
        return code;
    const att_caption_set_options o = {.size = sizeof o,
                                       .images = c->images,
                                       .list = list,
                                       .skip_bad_lines = c->skip_bad_lines,
                                       .image_column = c->image_column,
                                       .caption_column = c->caption_column,
                                       .background = image.background};
    const att_status s = att_caption_set_open(ctx, c->data, &o, out);
    const char *message = att_error(ctx);
    if (s && (strstr(message, "; the columns are ") || strstr(message, "; expected lines ")))
        return cli_fail("%s; --image-column and --caption-column name others", message);
    return cli_status(ctx, s);
}
