/* The struct of a vision Transformer, and what its files share. */
#ifndef ATT_MODEL_VIT_H
#define ATT_MODEL_VIT_H

#include "model/model.h"
#include "model/vit_config.h"

struct att_vit {
    att_model model;
    att_vit_config config;
    const att_nn_conv *patches;                /* the patch matrix, or NULL: a stem */
    const att_nn_conv *stem[ATT_VIT_MAX_STEM]; /* [config.stem_layers] */
    att_param *token[3];                       /* [tokens], each [n, hidden]: before the patches */
    int tokens;
    att_param *position;                           /* [config.positioned + patches, hidden] */
    const att_nn_encoder_layer **layer;            /* [config.info.layers] */
    const att_nn_norm *norm;                       /* or NULL */
    const att_nn_linear *head, *distillation_head; /* or NULL */
};

/* The kind of model that these settings are of, by "model_type", or "architecture" of timm's folders; NULL: they have
 * failed. (vit_kinds.c) */
const att_model_kind *att_vit_kind_of(att_settings *s);
/* The `build` of all kinds */
att_status att_vit_build(att_model *base);
/* A new model of settings. out NULL: only checks them. */
att_status att_vit_make(att_ctx *ctx, att_settings *s, uint64_t seed, att_vit **out);
/* Names and layout of parameters in the file that att_vit_write makes; NULL: it cannot write this model. */
att_parameter_naming att_vit_naming(const att_vit *m);
/* Sets those of the patches to what they begin with. (vit_positions.c) */
void att_vit_init_positions(att_vit *m);

/* ---- of a model that was opened for training (vit_write.c) */

/* FOLDER/config.json alone, the first half of att_vit_write */
att_status att_vit_write_settings(const att_vit *m, const char *folder, const char *const *labels);
/* As att_vit_open_for_training, with a classifier of these classes, which is new if the folder's has another number.
 * seed: of its initialisation. */
att_status att_vit_open_for_classes(att_ctx *ctx, const char *folder, int64_t classes, uint64_t seed, att_vit **out);

#endif
