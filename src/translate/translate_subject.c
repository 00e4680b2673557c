/* Opens translators. */
#include "translate/encoder_decoder.h"
#include "model/subject.h"

static att_status open_model(att_ctx *ctx, const char *path, const att_model_options *options, void **out)
{
    att_translator *m;
    const att_status s = att_translator_open(ctx, path, options, &m);
    *out = m;
    return s;
}

static att_status weights(const void *model, att_model_weights *weights)
{
    return att_translator_weights(model, weights);
}

static const att_nn_params *params(const void *model) { return att_translator_params(model); }

static void free_model(void *model) { att_translator_free(model); }

const att_model_subject att_subject_translate = {.subject = ATT_SUBJECT_TRANSLATE,
                                                 .name = "translator",
                                                 .kinds = att_encoder_decoder_kinds,
                                                 .open = open_model,
                                                 .weights = weights,
                                                 .params = params,
                                                 .free = free_model};
