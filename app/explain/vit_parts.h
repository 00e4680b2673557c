/* A vision Transformer in parts, for its chapter: the weights by their names in the file, and the forward pass, also
 * with the errata of the chapter's source. */
#ifndef EXPLAIN_VIT_PARTS_H
#define EXPLAIN_VIT_PARTS_H

#include <attend_nn.h>
#include <attend_vision.h>

enum { VIT_MAX_LAYERS = 16, VIT_MAX_GRID = 16, VIT_MAX_TOKENS = 257, VIT_MAX_HEADS = 16, VIT_MAX_CLASSES = 1000 };

typedef enum vit_erratum {
    VIT_RIGHT,
    VIT_ONE_MATRIX,  /* k and v are made with the matrix of q */
    VIT_WHOLE_SCALE, /* scores are divided by the root of the width of all heads */
    VIT_NO_OUTPUT,   /* no matrix after the heads */
    VIT_ERRATA
} vit_erratum;

typedef struct vit_layer {
    const att_nn_norm *before, *after; /* attention, and between it and the feed-forward network */
    const att_nn_linear *query, *key, *value, *output, *inner, *outer;
} vit_layer;

typedef struct vit_parts {
    att_vit_info info;
    int64_t grid[2], patches, tokens; /* tokens: patches and [CLS] */
    int64_t numbers;                  /* in a patch */
    int64_t head_dim;
    att_param *patch_weight; /* [hidden, channels, patch[0], patch[1]] */
    att_param *patch_bias;   /* [hidden] */
    att_param *cls;          /* [1, 1, hidden] */
    att_param *positions;    /* [1, tokens, hidden] */
    vit_layer layer[VIT_MAX_LAYERS];
    const att_nn_norm *norm;
    const att_nn_linear *classifier;
    att_plan *plan, *whole_plan; /* scores divided by the root of head_dim; of hidden */
    att_nn_params *params;
    att_safetensors *file;
} vit_parts;

/* The model in a folder; vit is the same model, opened. Errors: a model of another class than
 * ViTForImageClassification, or too large to be shown. The caller frees *m in any case. */
att_status vit_parts_open(att_ctx *ctx, const char *folder, const att_vit *vit, vit_parts *m);
void vit_parts_free(vit_parts *m);

/* Computes the embeddings [tokens, hidden] of patches [patches, numbers]. */
att_var *vit_embed(att_tape *t, const vit_parts *m, const float *patches);

/* The intermediate results of a layer. */
typedef struct vit_states {
    att_var *h;         /* the norm of the layer's input [tokens, hidden] */
    att_var *q, *k, *v; /* of all heads [tokens, hidden] */
} vit_states;
/* Applies layer i to x [tokens, hidden]. Returns a result of the same shape. states or NULL. */
att_var *vit_layer_apply(att_tape *t, const vit_parts *m, int64_t i, att_var *x, vit_erratum erratum,
                         vit_states *states);
/* Computes the softmax of these logits, out [classes]. Resets the tape. */
att_status vit_probabilities(att_tape *t, const vit_parts *m, const float *patches, vit_erratum erratum, float *out);
/* Computes the attention weights of a head out of queries and keys, out [tokens, tokens]. */
att_status vit_weights(att_tape *t, const vit_parts *m, const vit_states *states, vit_erratum erratum, int64_t head,
                       float *out);

#endif
