/* Writes a trained sentence model as a sentence-transformers folder. */
#include "io/file.h"
#include "sentence/sentence.h"

/* Writes the weights of a module that has some. */
static att_status write_module(const att_sentence *m, const att_module *x, const char *folder, att_dtype dtype)
{
    char to[ATT_MAX_PATH];
    if (!x->type->build)
        return ATT_OK;
    const att_status s = att_join_path(m->model.ctx, folder, x->path, to);
    return s ? s : att_model_write_part(m->backbone.model, to, dtype, att_nn_join(x->name, "").text);
}

att_status att_sentence_write(const att_sentence *m, const char *folder, att_dtype dtype)
{
    if (att_require(__func__, ATT_NAMED({"m", m}, {"folder", folder})))
        return ATT_ERR_ARGUMENT;
    const att_modules *p = &m->modules;
    const att_backbone *b = &m->backbone;
    char to[ATT_MAX_PATH];
    if (!m->model.trainable)
        return att_fail(m->model.ctx, ATT_ERR_ARGUMENT,
                        "att_sentence_write: the model comes from att_sentence_open, and is not trainable");
    dtype = dtype == ATT_F32 ? 0 : dtype;
    /* The model card is not copied: it describes the original model. */
    att_status s = att_modules_copy(m->model.ctx, p, folder);
    for (int i = 0; !s && i < p->n; i++)
        s = write_module(m, &p->module[i], folder, dtype);
    s = s ? s : att_join_path(m->model.ctx, folder, p->path, to);
    s = s ? s : b->kind->write(b, p->backbone, to, dtype);
    return s ? s : att_model_write_dtype(m->model.ctx, to, dtype);
}
