/* Writes a trained sentence model as a sentence-transformers folder. */
#include "io/atomic_write.h"
#include "sentence/sentence.h"

/* Files besides weights. The model card is not copied: it describes the original model. */
static const char *const of_all[] = {"modules.json", "config_sentence_transformers.json", NULL};
static const char *const of_transformer[] = {"config.json",
                                             "sentence_bert_config.json",
                                             "tokenizer.json",
                                             "tokenizer_config.json",
                                             "vocab.txt",
                                             "special_tokens_map.json",
                                             "added_tokens.json",
                                             "vocab.json",
                                             "merges.txt",
                                             "sentencepiece.bpe.model",
                                             NULL};
static const char *const of_module[] = {"config.json", NULL};

/* Copies the files of module i; `to` becomes its folder */
static att_status copy_module(const att_sentence *m, const char *folder, int i, char to[ATT_MAX_PATH])
{
    const att_modules *p = &m->modules;
    att_ctx *ctx = m->model.ctx;
    char from[ATT_MAX_PATH];
    att_status s = att_join_path(ctx, p->folder, p->path[i], from);
    s = s ? s : att_join_path(ctx, folder, p->path[i], to);
    return s ? s : att_copy_files(ctx, from, to, i == 0 ? of_transformer : of_module, 0);
}

att_status att_sentence_write(const att_sentence *m, const char *folder, att_dtype dtype)
{
    if (att_require(__func__, ATT_NAMED({"m", m}, {"folder", folder})))
        return ATT_ERR_ARGUMENT;
    const att_modules *p = &m->modules;
    att_ctx *ctx = m->model.ctx;
    char to[ATT_MAX_PATH];
    if (!m->model.trainable)
        return att_fail(ctx, ATT_ERR_ARGUMENT,
                        "att_sentence_write: the model comes from att_sentence_open, and is not trainable");
    att_status s = att_copy_files(ctx, p->folder, folder, of_all, p->plain ? 0 : 1);
    for (int i = p->n - 1; !s && i >= 0; i--)
        s = copy_module(m, folder, i, to);
    return s ? s : att_encoder_write_weights(m->encoder, p->transformer, to, dtype == ATT_F32 ? 0 : dtype);
}
