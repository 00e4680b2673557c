/* Writes the files of a Marian tokenizer from SentencePiece models. */
#include "io/atomic_write.h"
#include "io/settings.h"
#include "text/sentencepiece.h"

#include <string.h>

typedef struct writer {
    att_ctx *ctx;
    const char *folder;
    json_t *vocabulary; /* tokens and their ids, in the order of ids */
    bool failed;        /* out of memory */
} writer;

static void add_token(writer *w, const char *token)
{
    if (*token && !json_object_get(w->vocabulary, token))
        w->failed |=
            json_object_set_new(w->vocabulary, token, json_integer((json_int_t)json_object_size(w->vocabulary))) != 0;
}

/* Adds the pieces that occur in text. <pad> is added last. */
static void add_pieces(writer *w, const att_sentencepiece *m)
{
    for (int64_t i = 0; i < m->size; i++) {
        const att_piece *p = &m->piece[i];
        if (p->type != ATT_PIECE_UNKNOWN && p->type != ATT_PIECE_CONTROL && p->type != ATT_PIECE_UNUSED &&
            strcmp(p->text, "<pad>") != 0)
            add_token(w, p->text);
    }
}

/* Reads and checks both models before anything is written. */
static att_status read_models(writer *w, const att_marian_tokenizer_files *t)
{
    const att_byte_view models[] = {{t->source, t->source_bytes}, {t->target, t->target_bytes}};
    static const char *const names[] = {"source.spm", "target.spm"};
    att_status s = ATT_OK;
    add_token(w, "</s>");
    add_token(w, "<unk>");
    for (int i = 0; !s && i < 2; i++) {
        att_sentencepiece m;
        s = att_sentencepiece_parse(&m, w->ctx, names[i], models[i]);
        if (!s)
            add_pieces(w, &m);
        att_sentencepiece_free(&m);
    }
    add_token(w, "<pad>");
    return s;
}

static att_status write_model(const writer *w, const char *name, const void *model, size_t bytes)
{
    char path[ATT_MAX_PATH];
    const att_status s = att_join_path(w->ctx, w->folder, name, path);
    return s ? s : att_write_file(w->ctx, path, model, bytes);
}

static json_t *configuration(const att_marian_tokenizer_files *t)
{
    return json_pack("{s:s, s:s*, s:s*, s:s, s:s, s:s, s:b}", "tokenizer_class", "MarianTokenizer", "source_lang",
                     t->source_language, "target_lang", t->target_language, "unk_token", "<unk>", "eos_token", "</s>",
                     "pad_token", "<pad>", "separate_vocabs", 0);
}

static att_status write_all(const writer *w, const att_marian_tokenizer_files *t)
{
    att_status s = att_make_folder(w->ctx, w->folder);
    s = s ? s : write_model(w, "source.spm", t->source, t->source_bytes);
    s = s ? s : write_model(w, "target.spm", t->target, t->target_bytes);
    s = s ? s : att_settings_write(w->ctx, w->folder, "tokenizer_config.json", configuration(t));
    return s ? s : att_settings_write(w->ctx, w->folder, "vocab.json", json_incref(w->vocabulary));
}

att_status att_marian_tokenizer_write(att_ctx *ctx, const char *folder, const att_marian_tokenizer_files *text,
                                      int64_t *size)
{
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"folder", folder}, {"text", text})))
        return ATT_ERR_ARGUMENT;
    att_marian_tokenizer_files t;
    att_status s = att_options_read(&t, sizeof t, text, "att_marian_tokenizer_files");
    s = s ? s : att_require(__func__, ATT_NAMED({"text.source", t.source}));
    if (s)
        return s;
    if (!t.target) {
        t.target = t.source;
        t.target_bytes = t.source_bytes;
    }
    writer w = {ctx, folder, json_object(), false};
    s = read_models(&w, &t);
    if (!s && w.failed)
        s = att_fail(ctx, ATT_ERR_MEMORY, "%s/vocab.json cannot be written: out of memory", folder);
    s = s ? s : write_all(&w, &t);
    if (!s && size)
        *size = (int64_t)json_object_size(w.vocabulary);
    json_decref(w.vocabulary);
    return s;
}
