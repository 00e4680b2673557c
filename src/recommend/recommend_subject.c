/* Opens recommenders. */
#include "recommend/recommender.h"
#include "model/subject.h"

static att_status open_model(att_ctx *ctx, const char *path, const att_model_options *options, void **out)
{
    att_recommender *m;
    const att_status s = att_recommender_open(ctx, path, options, &m);
    *out = m;
    return s;
}

static att_status weights(const void *model, att_model_weights *weights)
{
    return att_recommender_weights(model, weights);
}

static const att_nn_params *params(const void *model) { return att_recommender_params(model); }

static void free_model(void *model) { att_recommender_free(model); }

static const att_model_kind *const kinds[] = {&att_recommender_kind, NULL};

const att_model_subject att_subject_recommend = {.subject = ATT_SUBJECT_RECOMMEND,
                                                 .name = "recommender",
                                                 .kinds = kinds,
                                                 .open = open_model,
                                                 .weights = weights,
                                                 .params = params,
                                                 .free = free_model};
