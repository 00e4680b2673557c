/* The struct of a vision Transformer, and declarations that its files share. */
#ifndef ATT_VISION_VIT_H
#define ATT_VISION_VIT_H

#include "model/model.h"
#include "model/trace.h"
#include "vision/vit_config.h"

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

extern const att_model_kind *const att_vit_kinds[]; /* one for all types of "model_type", and NULL */
/* Returns the kind of model that these settings describe, by "model_type", or by "architecture" in timm's folders;
 * NULL: they have failed. (vit_kinds.c) */
const att_model_kind *att_vit_kind_of(att_settings *s);
/* Builds the parameters. `build` of all kinds. */
att_status att_vit_build(att_model *base);
/* Prepares the model. `prepare` of all kinds. */
att_var *att_vit_prepare(att_tape *t, const void *model);
/* Makes a new model from settings. out NULL: only checks them. */
att_status att_vit_make(att_ctx *ctx, att_settings *s, uint64_t seed, att_vit **out);
/* Returns the names and layout of parameters in the file that att_vit_write writes; NULL: it cannot write this
 * model. */
att_parameter_naming att_vit_naming(const att_vit *m);
/* Initializes the patch position embeddings. (vit_positions.c) */
void att_vit_init_positions(att_vit *m);

/* Adds the layers to a pass for a trace, whose info has the number of tokens. */
void att_vit_trace(const att_vit *m, att_trace_pass *pass);
/* Computes the model's results from the hidden states x [tokens, hidden] of one image after the last layer: the logits,
 * or without a classifier the results of att_vit_features. */
att_var *att_vit_output(att_tape *t, const att_vit *m, att_var *x);
/* Computes the results of att_vit_features from the hidden states x of one image. */
att_var *att_vit_output_features(att_tape *t, const att_vit *m, att_var *x);

/* Returns how many images of this preprocessing are computed together. (image_model.c) */
int64_t att_vit_batch(const att_vit_info *v, const att_image_processor_info *p);
/* Checks that the result of a folder's preprocessing is the model's input. (image_model.c) */
att_status att_vit_check_input(const att_vit *m, const att_image_processor_info *p, const char *folder);

/* ---- names of classes (vit_labels.c) */

/* Reads the names of n classes in FOLDER/config.json, "7" where class 7 has none -> *out [n], which
 * att_class_names_free frees. */
att_status att_vit_read_labels(att_ctx *ctx, const char *folder, int64_t n, char ***out);
/* Has a folder's model, m, the classes of labels [m's classes], in any order? Then *same is true, and the classifier of
 * m is put into their order. */
att_status att_vit_order_classes(const att_vit *m, const char *folder, const char *const *labels, bool *same);

/* ---- of a model that was opened for training (vit_write.c) */

/* Checks that att_vit_write can write the model with labels [classes] or NULL. The errors are those of
 * att_vit_write. */
att_status att_vit_check_written(const att_vit *m, const char *const *labels);
/* Opens a model as att_vit_open_for_training does, with options or NULL and a classifier of labels [classes]: the
 * folder's classifier in their order, if it has the same names; otherwise a new one, initialized from the seed. Error:
 * the model cannot be written. */
att_status att_vit_open_for_classes(att_ctx *ctx, const char *folder, const char *const *labels, int64_t classes,
                                    const att_trainable_options *options, uint64_t seed, att_vit **out);

#endif
