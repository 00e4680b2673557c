/* A model of any subject. */
#include "attend_util.h"
#include "io/file_source.h"
#include "open/subjects.h"

struct att_any_model {
    att_ctx *ctx;
    const att_model_subject *subject;
    att_model_identity identity;
    void *model; /* of the type of the subject's functions */
};

static att_status open_as(att_any_model *m, const char *path, att_subject subject, const att_model_options *options)
{
    const att_status s = att_model_identify(m->ctx, path, &m->identity);
    if (subject != ATT_SUBJECT_NONE)
        m->identity.subject = subject;
    m->subject = att_subject_of(m->identity.subject);
    if (m->subject && s != ATT_ERR_MEMORY) /* opening it finds better what is wrong */
        return m->subject->open(m->ctx, path, options, &m->model);
    return s ? s : att_fail(m->ctx, ATT_ERR_UNSUPPORTED, "%s: its files do not tell what kind of model it is", path);
}

att_status att_any_model_open(att_ctx *ctx, const char *path, att_subject subject, const att_model_options *options,
                              att_any_model **out)
{
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"path", path}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    if (subject != ATT_SUBJECT_NONE && !att_subject_of(subject))
        return att_fail(ctx, ATT_ERR_ARGUMENT, "%s: subject is %d, not an att_subject", __func__, (int)subject);
    att_any_model *m = att_calloc(ctx, 1, sizeof *m);
    if (!m)
        return ATT_ERR_MEMORY;
    *m = (att_any_model){.ctx = ctx, .identity.size = sizeof m->identity};
    att_file_source files;
    att_status s = att_file_source_begin(&files, path, options);
    s = s ? s : open_as(m, path, subject, options);
    att_file_source_end(&files);
    if (s)
        att_any_model_free(m);
    else
        *out = m;
    return s;
}

void att_any_model_free(att_any_model *m)
{
    if (!m)
        return;
    if (m->model)
        m->subject->free(m->model);
    att_free(m->ctx, m);
}

att_status att_any_model_describe(const att_any_model *m, att_model_identity *identity)
{
    if (att_require(__func__, ATT_NAMED({"m", m}, {"identity", identity})))
        return ATT_ERR_ARGUMENT;
    return att_info_write(identity, &m->identity, sizeof m->identity, "att_model_identity");
}

att_status att_any_model_weights(const att_any_model *m, att_model_weights *weights)
{
    if (att_require(__func__, ATT_NAMED({"m", m}, {"weights", weights})))
        return ATT_ERR_ARGUMENT;
    return m->subject->weights(m->model, weights);
}

const att_nn_params *att_any_model_params(const att_any_model *m) { return m ? m->subject->params(m->model) : NULL; }

const void *att_any_model_as(const att_any_model *m, att_subject subject)
{
    return m && m->identity.subject == subject ? m->model : NULL;
}
