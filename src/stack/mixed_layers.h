/* Settings of encoders whose layers are of two types, "full_attention" and "sliding_attention", each with rotary
 * positions of its own. */
#ifndef ATT_STACK_MIXED_LAYERS_H
#define ATT_STACK_MIXED_LAYERS_H

#include "attend_learn.h"
#include "stack/rotary_config.h"

/* Upper limits; larger sizes indicate a damaged file. */
enum { ATT_MAX_MIXED_LAYERS = 1024 };

/* Where a class differs */
typedef struct att_mixed_keys {
    const char *every;          /* older: of how many layers one has full attention */
    int64_t default_every;      /* where there is no such key */
    bool last;                  /* the last of them has it; false: the first */
    const char *full, *sliding; /* older: bases of rotary positions */
    double default_full, default_sliding;
    bool sliding_scaled; /* does "rope_scaling" of older files hold for sliding layers, too? */
} att_mixed_keys;

typedef struct att_mixed_layers {
    bool slides[ATT_MAX_MIXED_LAYERS];                                /* [layers] */
    double full[ATT_MAX_HEAD_DIM / 2], sliding[ATT_MAX_HEAD_DIM / 2]; /* frequencies [head_dim / 2] */
} att_mixed_layers;

/* Reads "layer_types" and "rope_parameters", or the keys of older files. layers at most ATT_MAX_MIXED_LAYERS, head_dim
 * at most ATT_MAX_HEAD_DIM */
void att_mixed_layers_read(att_settings *s, const att_mixed_keys *keys, int64_t layers, int64_t head_dim,
                           att_mixed_layers *out);
/* The rotary positions of a layer; its frequencies are those of m. */
att_rotary_options att_mixed_layers_rotary(const att_mixed_layers *m, int64_t layer);

#endif
