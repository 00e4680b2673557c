/* Opens vision models. */
#include "vision/vit.h"
#include "model/subject.h"

static att_status open_model(att_ctx *ctx, const char *path, const att_model_options *options, void **out)
{
    att_image_model *m;
    const att_status s = att_image_model_open(ctx, path, options, &m);
    *out = m;
    return s;
}

static att_status weights(const void *model, att_model_weights *weights)
{
    return att_image_model_weights(model, weights);
}

static const att_nn_params *params(const void *model) { return att_image_model_params(model); }

static void free_model(void *model) { att_image_model_free(model); }

/* Returns whether a folder is one of timm. */
static bool recognizes(const att_settings *config) { return json_is_string(att_settings_get(config, "architecture")); }

const att_model_subject att_subject_vision = {.subject = ATT_SUBJECT_VISION,
                                              .name = "vision model",
                                              .kinds = att_vit_kinds,
                                              .recognizes = recognizes,
                                              .open = open_model,
                                              .weights = weights,
                                              .params = params,
                                              .free = free_model};
