/* Opens sentence models. */
#include "attend_sentence.h"
#include "sentence/static_model.h"
#include "stack/encoder.h"
#include "model/subject.h"

static att_status open_model(att_ctx *ctx, const char *path, const att_model_options *options, void **out)
{
    att_sentence *m;
    const att_status s = att_sentence_open(ctx, path, options, &m);
    *out = m;
    return s;
}

static att_status weights(const void *model, att_model_weights *weights)
{
    return att_sentence_weights(model, weights);
}

static const att_nn_params *params(const void *model) { return att_sentence_params(model); }

static void free_model(void *model) { att_sentence_free(model); }

const att_model_subject att_subject_sentence = {.subject = ATT_SUBJECT_SENTENCE,
                                                .name = "sentence model",
                                                .kinds = att_encoder_kinds,
                                                .file = "modules.json",
                                                .recognizes = att_static_is_model2vec,
                                                .open = open_model,
                                                .weights = weights,
                                                .params = params,
                                                .free = free_model};
