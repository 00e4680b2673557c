/* Evaluates a translator in training: BLEU on held-out texts. */
#include "cli/base/lines.h"
#include "cli/base/terminal.h"
#include "cli/base/utf8.h"
#include "cli/train/train.h"

#include <attend_metric.h>

#include <attend_translate.h>

#include <stdlib.h>
#include <unistd.h>

enum { BLOCK = 4096, SAMPLES = 3 };

typedef struct evaluation {
    const cli_training *training;
    att_translator *translator;
    const char *texts, *references; /* files */
    cli_lines in;
    cli_reader expected;
    att_translation *out; /* [BLOCK] */
    att_bleu_counts all;
    int64_t samples; /* printed so far */
} evaluation;

/* Prints a text on one line of the terminal, cut if it is longer. */
static void print_sample(int indent, const char *text)
{
    const int room = (isatty(STDERR_FILENO) ? terminal_columns(stderr) : 78) - indent, width = utf8_width(text);
    fprintf(stderr, "%*s", indent, "");
    utf8_field(stderr, text, width < room ? width : room, 0);
    fputc('\n', stderr);
}

/* Counts the translation of line i of the block. */
static int count_line(evaluation *e, int64_t i)
{
    att_ctx *ctx = e->training->ctx;
    const att_text *text = &e->out[i].text;
    att_bleu_counts one;
    bool there;
    int code = cli_reader_next(&e->expected, &there);
    if (!code && !there)
        code =
            cli_fail("%s has fewer lines than %s: one of them was changed while it was read", e->references, e->texts);
    if (code)
        return code;
    const cli_lines *l = &e->expected.in;
    const int64_t at = e->expected.at;
    code = cli_status(ctx, att_bleu_count(ctx, ATT_BLEU_TOKENIZER_13A, text->text, text->bytes, &l->text[at],
                                          &l->bytes[at], 1, &one));
    if (!code)
        att_bleu_add(&e->all, &one);
    if (!code && e->samples++ < SAMPLES) {
        print_sample(2, e->in.text[i]);
        print_sample(4, text->text);
    }
    return code;
}

static int translate_block(evaluation *e)
{
    const cli_lines *in = &e->in;
    const att_translate_options *o =
        ATT_OPTIONS(att_translate_options, .beam = 1, .max_tokens = 128, .split = true, .no_scores = true);
    int code = cli_status(e->training->ctx, att_translate(e->translator, in->count, in->text, in->bytes, o, e->out));
    if (code)
        return code;
    for (int64_t i = 0; !code && i < in->count; i++)
        code = count_line(e, i);
    for (int64_t i = 0; i < in->count; i++)
        att_translation_free(e->training->ctx, &e->out[i]);
    return code;
}

static int open_all(evaluation *e)
{
    const att_training *t = e->training->training;
    e->out = malloc(BLOCK * sizeof *e->out);
    int code = e->out ? CLI_DONE : cli_fail_memory();
    if (!code)
        code = cli_lines_open(&e->in, 1, (char *const *)&e->texts);
    if (!code)
        code = cli_lines_open(&e->expected.in, 1, (char *const *)&e->references);
    if (!code)
        code = cli_status(e->training->ctx, att_translator_new(att_training_encoder_decoder(t),
                                                               att_training_tokenizer(t), &e->translator));
    return code;
}

int cli_training_bleu(const cli_training *t, const char *texts, const char *references, double *bleu)
{
    evaluation e = {
        .training = t, .texts = texts, .references = references, .in = {.fd = -1}, .expected = {.in = {.fd = -1}}};
    att_bleu_info info = {.size = sizeof info};
    int code = open_all(&e);
    while (!code) {
        code = cli_lines_next(&e.in, BLOCK);
        if (code || e.in.count == 0)
            break;
        code = translate_block(&e);
    }
    if (!code)
        code = cli_status(t->ctx, att_bleu_describe(&e.all, NULL, &info));
    *bleu = info.bleu;
    att_translator_free(e.translator);
    cli_lines_close(&e.in);
    cli_lines_close(&e.expected.in);
    free(e.out);
    return code;
}
