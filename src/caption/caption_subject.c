/* Opens captioners. */
#include "caption/caption_model.h"
#include "model/subject.h"

static att_status open_model(att_ctx *ctx, const char *path, const att_model_options *options, void **out)
{
    att_caption_model *m;
    const att_status s = att_caption_model_open(ctx, path, options, &m);
    *out = m;
    return s;
}

static att_status weights(const void *model, att_model_weights *weights)
{
    return att_caption_model_weights(model, weights);
}

static const att_nn_params *params(const void *model) { return att_caption_model_params(model); }

static void free_model(void *model) { att_caption_model_free(model); }

static const att_model_kind *const kinds[] = {&att_captioner_kind, NULL};

const att_model_subject att_subject_caption = {.subject = ATT_SUBJECT_CAPTION,
                                               .name = "captioner",
                                               .kinds = kinds,
                                               .open = open_model,
                                               .weights = weights,
                                               .params = params,
                                               .free = free_model};
