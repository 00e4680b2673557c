/* Reads config.json of Llama and similar models. */
#ifndef ATT_STACK_LLAMA_CONFIG_H
#define ATT_STACK_LLAMA_CONFIG_H

#include "attend_nn.h"
#include "model/model_types.h"
#include "stack/rotary_config.h"

typedef struct att_llama_config {
    const char *type; /* "llama" */
    int64_t vocabulary, hidden, layers, heads, kv_heads, head_dim, intermediate, max_positions, window;
    float eps;
    bool tied, mlp_bias;
    bool bidirectional;         /* "is_causal" is false: tokens attend to all */
    bool qkv_bias, output_bias; /* of attention */
    bool fused;                 /* one matrix of queries, keys and values; one of gate and inner */
    att_nn_qk_norm qk_norm;
    att_nn_order order;
    int64_t rotary_dims;                    /* features of a head that are rotated */
    double rotary_base;                     /* 10000, "rope_theta" */
    att_rotary_scaling scaling;             /* of positions */
    double frequency[ATT_MAX_HEAD_DIM / 2]; /* [rotary_dims / 2] */
} att_llama_config;

/* The values of "model_type". */
extern const att_model_types att_llama_types;
/* Reads settings that have one of these types. */
void att_llama_config_read(att_settings *s, att_llama_config *c);

#endif
