/* How good a translator is that is being trained: BLEU on texts that it does not learn. */
#include "cli/base/lines.h"
#include "train.h"

#include <stdlib.h>

enum { BLOCK = 4096, SAMPLES = 3 };

typedef struct measure {
    const cli_training *training;
    att_translator *translator;
    const char *texts, *references; /* files */
    cli_lines in;
    cli_reader expected;
    att_translation *out; /* [BLOCK] */
    att_bleu_counts all;
    int64_t samples; /* that were printed */
} measure;

/* Counts the translation of line i of the block. */
static int count_line(measure *m, int64_t i)
{
    att_ctx *ctx = m->training->ctx;
    const att_text *text = &m->out[i].text;
    att_bleu_counts one;
    bool there;
    int code = cli_reader_next(&m->expected, &there);
    if (!code && !there)
        code =
            cli_fail("%s has fewer lines than %s: one of them was changed while it was read", m->references, m->texts);
    if (code)
        return code;
    const cli_lines *l = &m->expected.in;
    const int64_t at = m->expected.at;
    code = cli_status(ctx,
                      att_bleu_count(ctx, ATT_BLEU_13A, text->text, text->bytes, &l->text[at], &l->bytes[at], 1, &one));
    if (!code)
        att_bleu_add(&m->all, &one);
    if (!code && m->samples++ < SAMPLES)
        fprintf(stderr, "  %.*s\n    %.*s\n", (int)m->in.bytes[i], m->in.text[i], (int)text->bytes, text->text);
    return code;
}

static int translate_block(measure *m)
{
    const cli_lines *in = &m->in;
    const att_translate_options *o =
        ATT_OPTIONS(att_translate_options, .beam = 1, .max_tokens = 128, .split = true, .no_scores = true);
    int code = cli_status(m->training->ctx, att_translate(m->translator, in->count, in->text, in->bytes, o, m->out));
    if (code)
        return code;
    for (int64_t i = 0; !code && i < in->count; i++)
        code = count_line(m, i);
    for (int64_t i = 0; i < in->count; i++)
        att_translation_free(m->translator, &m->out[i]);
    return code;
}

static int open_all(measure *m)
{
    const att_training *t = m->training->training;
    m->out = malloc(BLOCK * sizeof *m->out);
    int code = m->out ? CLI_DONE : cli_fail_memory();
    if (!code)
        code = cli_lines_open(&m->in, 1, (char *const *)&m->texts);
    if (!code)
        code = cli_lines_open(&m->expected.in, 1, (char *const *)&m->references);
    if (!code)
        code = cli_status(m->training->ctx,
                          att_translator_of(att_training_model(t), att_training_tokenizer(t), &m->translator));
    return code;
}

int cli_train_bleu(const cli_training *t, const char *texts, const char *references, double *bleu)
{
    measure m = {
        .training = t, .texts = texts, .references = references, .in = {.fd = -1}, .expected = {.in = {.fd = -1}}};
    att_bleu_info info = {.size = sizeof info};
    int code = open_all(&m);
    while (!code) {
        code = cli_lines_next(&m.in, BLOCK);
        if (code || m.in.count == 0)
            break;
        code = translate_block(&m);
    }
    if (!code)
        code = cli_status(t->ctx, att_bleu_describe(&m.all, false, &info));
    *bleu = info.bleu;
    att_translator_free(m.translator);
    cli_lines_close(&m.in);
    cli_lines_close(&m.expected.in);
    free(m.out);
    return code;
}
