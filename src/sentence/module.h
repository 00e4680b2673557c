/* The modules of a sentence model after its backbone, those of sentence-transformers. A table has the types: each reads
 * a module's settings, makes its layers and applies it. */
#ifndef ATT_SENTENCE_MODULE_H
#define ATT_SENTENCE_MODULE_H

#include "io/settings.h"
#include "model/model.h"
#include "sentence/backbone.h"

enum { ATT_MAX_FEATURES = 1 << 20 };

typedef struct att_module_type att_module_type;

typedef struct att_module {
    const att_module_type *type;
    char *path;         /* of its folder, within that of the model: "2_Dense" */
    char name[16];      /* the beginning of names of its parameters: "module.2" */
    int64_t in, out;    /* numbers of features; 0: any number, which the module does not change */
    const char *in_key; /* the setting that states `in` */
    bool of_tokens; /* of token_embeddings, hidden states of tokens; false: of sentence_embedding, vectors of texts */
    bool idle;      /* it is not applied, because there are no vectors of texts */
    /* Pooling, of tokens to vectors of texts */
    att_pooling pooling[ATT_MAX_POOLINGS]; /* [poolings], whose results are concatenated */
    int poolings;
    bool without_prompt;
    /* Dense */
    bool bias, residual;
    att_activation activation;
    const att_nn_linear *linear, *shortcut; /* shortcut of a residual of other features; or NULL */
    /* LayerNorm */
    const att_nn_norm *norm;
    /* Dropout */
    float dropout;
} att_module;

struct att_module_type {
    const char *name;                               /* the last component of its class in modules.json */
    bool optional_settings;                         /* folders of older versions have no config.json */
    void (*read)(att_settings *s, att_module *m);   /* s->root NULL: there are no settings */
    void (*build)(att_nn_params *p, att_module *m); /* makes its layers; NULL: it has none */
    /* Applies the module to x: [tokens, in] for a Pooling or `of_tokens`, otherwise [n, in]. Returns [n, out] or
     * [tokens, out]. */
    att_var *(*apply)(att_tape *t, const att_module *m, const att_texts *texts, att_var *x);
};

extern const att_module_type att_module_pooling, att_module_dense, att_module_layer_norm, att_module_normalize,
    att_module_dropout;

/* Reads "module_input_name" and "module_output_name", which must both be token_embeddings or both
 * sentence_embedding. */
void att_module_read_names(att_settings *s, att_module *m);

#endif
