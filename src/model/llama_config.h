/* config.json of Llama and models like it. */
#ifndef ATT_MODEL_LLAMA_CONFIG_H
#define ATT_MODEL_LLAMA_CONFIG_H

#include "io/settings.h"

enum { ATT_MAX_HEAD_DIM = 1024 };

typedef struct att_llama_config {
    const char *type; /* "llama" */
    int64_t vocabulary, hidden, layers, heads, kv_heads, head_dim, intermediate, max_positions, window;
    float eps;
    bool tied, mlp_bias;
    bool qkv_bias, output_bias;             /* of attention */
    bool qk_norm;                           /* of each head's queries and keys */
    double frequency[ATT_MAX_HEAD_DIM / 2]; /* [head_dim / 2] of rotary positions */
} att_llama_config;

void att_llama_config_read(att_settings *s, att_llama_config *c);

#endif
