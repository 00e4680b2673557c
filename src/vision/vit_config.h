/* config.json of vision Transformers. */
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
    bool resampled;     /* may positions be resampled for images of another size? */
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

/* "model_type" of Hugging Face's folders, and of our own */
extern const att_model_types att_vit_types;
/* Whose names the parameters of a type have */
typedef enum att_vit_names {
    ATT_VIT_NAMES,
    ATT_DEIT_NAMES,
    ATT_DINOV2_NAMES,
    ATT_REGISTERS_NAMES,
    ATT_N_VIT_NAMES
} att_vit_names;
att_vit_names att_vit_names_of(const char *type);

/* Hugging Face, and our own type "attend-vit". info.classes is what the settings state; the weights may have no
 * classifier. */
void att_vit_config_read(att_settings *s, att_vit_config *c);
/* Has it only what the types "vit" and "attend-vit" have? */
bool att_vit_config_is_plain(const att_vit_config *c);
/* Returns the settings as JSON: of "attend-vit" with a stem or means, else of "vit", where these have all of it;
 * otherwise of its own type, which is DINOv2's. labels [info.classes] or NULL. NULL: out of memory, or a label is not
 * UTF-8. */
json_t *att_vit_config_json(const att_vit_config *c, const char *const *labels);
/* timm (vit_timm.c) */
void att_vit_timm_read(att_settings *s, att_vit_config *c);

/* ---- what both readers use */

enum {
    ATT_VIT_MAX_FEATURES = 65536,
    ATT_VIT_MAX_LAYERS = 1024,
    ATT_VIT_MAX_SIDE = 16384,
    ATT_VIT_MAX_CLASSES = 1 << 20
};
/* Reads a number or a list of two, each in [1, ATT_VIT_MAX_SIDE]; otherwise: what both are if it is missing. */
void att_vit_read_pair(att_settings *s, const char *key, int64_t otherwise, int64_t pair[2]);
/* Sets info.prefix and checks sizes against each other, which fails s. */
void att_vit_config_check(att_settings *s, att_vit_config *c);

#endif
