/* The attention weights of one head, recorded while a model is applied. */
#ifndef ATT_MODEL_ATTENTION_MAP_H
#define ATT_MODEL_ATTENTION_MAP_H

#include "attend_learn.h"
#include "attend_model.h"

typedef struct att_map_source {
    att_ctx *ctx;
    const att_tokenizer *tokenizer;
    int64_t layers, heads;
    const void *model;
    /* Applies the model to ids [offsets[1]], one sequence. */
    att_var *(*apply)(att_tape *t, const void *model, const int32_t *ids, const int64_t *offsets);
} att_map_source;

/* The weights of a layer and head for a text [bytes], encoded by these options. Errors: no such layer or head; what
 * encoding and applying may find; memory. */
att_status att_map_attention(const att_map_source *s, const char *text, size_t bytes,
                             const att_tokenize_options *options, int64_t layer, int64_t head, att_attention_map *out);

#endif
