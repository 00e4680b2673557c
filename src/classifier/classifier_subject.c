/* Opens text classifiers. */
#include "classifier/classifier.h"
#include "model/subject.h"

static att_status open_model(att_ctx *ctx, const char *path, const att_model_options *options, void **out)
{
    att_text_classifier *m;
    const att_status s = att_text_classifier_open(ctx, path, options, &m);
    *out = m;
    return s;
}

static att_status weights(const void *model, att_model_weights *weights)
{
    return att_text_classifier_weights(model, weights);
}

static const att_nn_params *params(const void *model) { return att_text_classifier_params(model); }

static void free_model(void *model) { att_text_classifier_free(model); }

/* The types are those of encoders, which are sentence models without a classifier. */
static const att_model_kind *const no_kinds[] = {NULL};

const att_model_subject att_subject_classifier = {.subject = ATT_SUBJECT_CLASSIFIER,
                                                  .name = "text classifier",
                                                  .kinds = no_kinds,
                                                  .claims = att_is_text_classifier,
                                                  .open = open_model,
                                                  .weights = weights,
                                                  .params = params,
                                                  .free = free_model};
