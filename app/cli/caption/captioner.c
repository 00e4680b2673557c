#include "captioner.h"

int cli_captioner_open(cli_captioner *m, const char *name, int64_t threads)
{
    *m = (cli_captioner){.info = {.size = sizeof m->info}, .name = name};
    int code = cli_model_find(CLI_CAPTIONER, name, &m->folder);
    if (!code)
        code = cli_open(&m->ctx, threads);
    if (!code)
        code = cli_status(m->ctx, att_caption_model_open(m->ctx, m->folder.text, NULL, &m->model));
    if (!code)
        att_caption_model_describe(m->model, &m->info);
    else
        cli_captioner_close(m);
    return code;
}

void cli_captioner_close(cli_captioner *m)
{
    att_caption_model_free(m->model);
    att_close(m->ctx);
    m->model = NULL;
    m->ctx = NULL;
}

int cli_captioner_caption(const cli_captioner *m, int64_t n, const att_image *images,
                          const att_caption_options *options, att_image_caption *out)
{
    const att_status s = att_caption(m->model, n, images, options, out);
    return s == ATT_ERR_FORMAT ? cli_fail("%s: %s", m->name, att_error(m->ctx)) : cli_status(m->ctx, s);
}

int cli_caption_search_options(cli_caption_search *s, const cli_captioner *m, int64_t n_best, att_caption_options *o)
{
    s->penalty = (float)s->length_penalty;
    *o = (att_caption_options){
        .size = sizeof *o, .beam = s->beam, .n_best = n_best, .max_words = s->max_words, .length_penalty = &s->penalty};
    if (s->max_words > m->info.max_words)
        return cli_misuse("--max-words: %s writes captions of up to %lld words, not %lld", m->name,
                          (long long)m->info.max_words, (long long)s->max_words);
    return CLI_DONE;
}
