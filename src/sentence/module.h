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
    char *path;         /* of its folder, in that of the model: "2_Dense" */
    char name[16];      /* what names of its parameters begin with: "module.2" */
    int64_t in, out;    /* features; 0: any, and those of what it is applied to */
    const char *in_key; /* the setting that `in` comes from */
    bool of_tokens; /* of token_embeddings, hidden states of tokens; false: of sentence_embedding, vectors of texts */
    bool idle;      /* there are no vectors of texts that it could be applied to */
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
} att_module;

struct att_module_type {
    const char *name;                               /* the last component of its class in modules.json */
    bool optional_settings;                         /* folders of older versions have no config.json */
    void (*read)(att_settings *s, att_module *m);   /* s->root NULL: there are no settings */
    void (*build)(att_nn_params *p, att_module *m); /* makes its layers; NULL: it has none */
    /* x: [tokens, in] of a Pooling or `of_tokens`, else [n, in] -> [n, out] or [tokens, out] */
    att_var *(*apply)(att_tape *t, const att_module *m, const att_texts *texts, att_var *x);
};

extern const att_module_type att_module_pooling, att_module_dense, att_module_layer_norm, att_module_normalize;

/* The type of a class in modules.json, whose last component is `name`; NULL: none */
const att_module_type *att_module_type_of(const char *name);
/* "module_input_name" and "module_output_name": token_embeddings or sentence_embedding, and the same */
void att_module_read_names(att_settings *s, att_module *m);

#endif
