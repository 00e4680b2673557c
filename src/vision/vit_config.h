/* Reads and writes config.json of vision Transformers. */
#ifndef ATT_VISION_VIT_CONFIG_H
#define ATT_VISION_VIT_CONFIG_H

#include "attend_vision.h"
#include "model/model_types.h"

enum { ATT_VIT_MAX_STEM = 8 };

typedef struct att_vit_config {
    att_vit_info info;
    int64_t stem[ATT_VIT_MAX_STEM], stem_layers; /* output channels of each convolution; 0: one matrix of patches */
    bool class_token, distillation_token;        /* in this order, then the registers */
    int64_t registers;
    int64_t positioned; /* the first tokens of info.prefix that have positions */
    bool resampled;     /* whether positions may be resampled for images of another size */
    bool antialias;     /* att_resize_options.antialias */
    att_activation activation;
    bool gated;     /* SwiGLU */
    bool fused_qkv; /* one matrix of queries, keys and values */
    bool no_qkv_bias;
    double eps;
    double layer_scale; /* att_nn_layer_config.layer_scale */
    bool no_norm;       /* there is no norm after the last layer */
    bool pooled_norm;   /* it follows pooling */
} att_vit_config;

/* The values of "model_type" in Hugging Face's folders and in those of attend. */
extern const att_model_types att_vit_types;
/* The source of the names of a type's parameters. */
typedef enum att_vit_names {
    ATT_VIT_NAMES,
    ATT_DEIT_NAMES,
    ATT_DINOV2_NAMES,
    ATT_REGISTERS_NAMES,
    ATT_N_VIT_NAMES
} att_vit_names;
att_vit_names att_vit_names_of(const char *type);

/* Reads the settings of Hugging Face's types and of "attend-vit". info.classes is the number that the settings state;
 * the weights may lack a classifier. */
void att_vit_config_read(att_settings *s, att_vit_config *c);
/* Returns whether the settings are only those of the types "vit" and "attend-vit". */
bool att_vit_config_is_plain(const att_vit_config *c);
/* Returns the settings as JSON. The type is DINOv2's if "vit" and "attend-vit" lack some of the settings; otherwise
 * "attend-vit" if the model has a stem or means, or "vit". labels [info.classes] or NULL. Returns NULL if memory fails
 * or a label is not UTF-8. */
json_t *att_vit_config_json(const att_vit_config *c, const char *const *labels);
/* Reads the settings of timm. (vit_timm.c) */
void att_vit_timm_read(att_settings *s, att_vit_config *c);

/* ---- what both readers use */

enum {
    ATT_VIT_MAX_FEATURES = 65536,
    ATT_VIT_MAX_LAYERS = 1024,
    ATT_VIT_MAX_SIDE = 16384,
    ATT_VIT_MAX_CLASSES = 1 << 20
};
/* Reads a number or a list of two, each in [1, ATT_VIT_MAX_SIDE]. otherwise: the value of both if the key is
 * missing. */
void att_vit_read_pair(att_settings *s, const char *key, int64_t otherwise, int64_t pair[2]);
/* Sets info.prefix and checks sizes against each other, which fails s. */
void att_vit_config_check(att_settings *s, att_vit_config *c);

#endif
