/* Makes the vocabulary in the folder of a translator's training: trained on the texts, or copied. */
#include "io/install.h"
#include "io/atomic_write.h"
#include "text/not_utf8.h"
#include "text/utf8.h"
#include "translate/parallel_corpus.h"
#include "translate/translator_vocabulary.h"

#include <stdio.h>

typedef att_translator_training_options training_options;

/* Counts the words and the *lines of a file. Up to max_invalid lines that are not UTF-8 are skipped. */
static att_status count_words(att_ctx *ctx, att_vocab *v, const char *path, int64_t max_invalid, int64_t *lines)
{
    att_text_lines l;
    att_text_line line;
    int64_t before, invalid = 0;
    att_status e = att_text_lines_open(&l, ctx, path);
    do {
        before = l.lines;
        e = e ? e : att_text_lines_fill(&l);
        while (!e && att_text_lines_next(&l, &line))
            if (att_utf8_valid(line.text, line.bytes))
                e = att_vocab_add(v, line.text, line.bytes);
            else if (invalid++ >= max_invalid)
                e = att_fail_not_utf8(&(att_where){.ctx = ctx, .path = path, .number = l.lines}, NULL,
                                      (att_byte_view){line.text, line.bytes});
        if (!e && att_cancelled(ctx))
            e = att_fail(ctx, ATT_ERR_CANCELLED, "cancelled");
    } while (!e && l.lines > before);
    *lines = l.lines;
    att_text_lines_close(&l);
    return e;
}

/* Counts the words of both files, which must have the same number of lines. */
static att_status count_all_words(att_ctx *ctx, const training_options *o, att_vocab *v)
{
    const char *const paths[] = {o->source, o->target};
    int64_t lines[2];
    att_status e = ATT_OK;
    for (int i = 0; !e && i < 2; i++)
        e = count_words(ctx, v, paths[i], o->skip_bad_lines, &lines[i]);
    return e || lines[0] == lines[1] ? e : att_lines_differ(ctx, paths[0], lines[0], paths[1], lines[1]);
}

/* Prepends the names of both files to an error. */
static att_status name_files(att_ctx *ctx, const training_options *o, att_status e)
{
    char what[512];
    snprintf(what, sizeof what, "%s", att_error(ctx));
    return att_fail(ctx, e, "%s, %s: %s", o->source, o->target, what);
}

static att_status write_pieces(att_ctx *ctx, const char *folder, const void *model, size_t bytes)
{
    const att_marian_tokenizer_files *files =
        ATT_OPTIONS(att_marian_tokenizer_files, .source = model, .source_bytes = bytes);
    return att_marian_tokenizer_write(ctx, folder, files, NULL);
}

/* Learns a joint vocabulary of both languages. Digits are separate pieces, so that numbers are copied digit by digit.
 * Rare characters get no piece because there would be too little training for their embeddings; they become the unknown
 * token. */
static att_status learn_vocabulary(att_ctx *ctx, const training_options *o, const char *folder)
{
    enum { PIECES = 8000, MAX_CHARACTERS = 4000, MIN_COUNT = 3 };
    const att_vocab_options *options = ATT_OPTIONS(
        att_vocab_options, .pieces = o->vocabulary ? o->vocabulary : PIECES,
        .character_coverage = o->character_coverage ? o->character_coverage : 1, .max_characters = MAX_CHARACTERS,
        .min_count = MIN_COUNT, .byte_fallback = o->byte_fallback, .split_digits = true);
    att_vocab *v = NULL;
    att_vocab_result r = {.size = sizeof r};
    att_status e = att_vocab_new(ctx, options, &v);
    e = e ? e : count_all_words(ctx, o, v);
    e = e ? e : att_vocab_train(v, &r);
    if (e == ATT_ERR_ARGUMENT)
        e = name_files(ctx, o, e);
    e = e ? e : write_pieces(ctx, folder, r.model, r.bytes);
    att_vocab_free(v);
    return e;
}

/* Reads the vocabulary from a SentencePiece model. */
static att_status read_pieces(att_ctx *ctx, const training_options *o, const char *folder)
{
    att_text_file f = {0};
    att_status e = att_text_file_open(&f, ctx, o->tokenizer, true);
    e = e ? e : write_pieces(ctx, folder, f.text, f.bytes);
    att_text_file_free(&f);
    return e;
}

/* Copies the vocabulary from a folder with the three files. */
static att_status copy_vocabulary(att_ctx *ctx, const training_options *o, const char *folder)
{
    static const char *const names[] = {
        "source.spm", "target.spm", "vocab.json", "tokenizer_config.json", "special_tokens_map.json", NULL};
    return att_copy_files(ctx, o->tokenizer, folder, names, 3);
}

att_status att_translator_vocabulary_make(att_ctx *ctx, const training_options *o, const char *folder)
{
    const att_status e = att_install_forget(ctx, folder); /* removes an earlier model, which has another vocabulary */
    return e                           ? e
           : !o->tokenizer             ? learn_vocabulary(ctx, o, folder)
           : att_is_file(o->tokenizer) ? read_pieces(ctx, o, folder)
                                       : copy_vocabulary(ctx, o, folder);
}
