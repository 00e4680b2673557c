/* The modules of a sentence model: reads modules.json, checks that they fit each other, and applies them. */
#ifndef ATT_SENTENCE_MODULES_H
#define ATT_SENTENCE_MODULES_H

#include "sentence/module.h"

enum { ATT_MAX_MODULES = 32 };
typedef struct att_modules {
    char *folder;                       /* of the model */
    char *path, *backbone;              /* of the backbone: "0_Transformer", and with the folder before it */
    const att_backbone_kind *kind;      /* of the backbone */
    att_backbone_settings settings;     /* of the backbone */
    att_module module[ATT_MAX_MODULES]; /* [n]: those after the backbone */
    int n;
    bool plain; /* there is no modules.json: one Pooling, of any number of features */
    /* Set by att_modules_build. */
    int64_t dim, token_dim; /* features of a vector of a text and of a token */
    bool normalized;
} att_modules;

/* Reads modules.json and the files it names, in the older and the current layout. Without modules.json the folder is
 * that of a Transformer, whose hidden states are pooled. Errors name the file, the setting and its value. */
att_status att_modules_read(att_ctx *ctx, const char *folder, att_modules *out);
void att_modules_free(att_ctx *ctx, att_modules *m);

/* Checks that the features of each module fit its input. hidden: features of the backbone's hidden states. Errors name
 * both files and numbers. */
att_status att_modules_check(att_ctx *ctx, att_modules *m, int64_t hidden);
/* Checks the att_modules and makes their layers. `build` of att_model_extension, for the backbone's model. */
att_status att_modules_build(att_model *model, void *modules);
/* The beginning of names of their parameters. */
#define ATT_MODULES_NAMES "module."

/* Applies all modules. Returns [n, dim]. tokens [offsets[n], hidden], or NULL; vectors [n, hidden] if the backbone
 * makes them, or NULL. */
att_var *att_modules_apply(att_tape *t, const att_modules *m, const att_texts *texts, att_var *tokens,
                           att_var *vectors);
/* Applies only the modules of tokens. Returns [offsets[n], token_dim]. */
att_var *att_modules_apply_to_tokens(att_tape *t, const att_modules *m, const att_texts *texts, att_var *tokens);

/* Copies the files of all modules to a folder, which is created if necessary. */
att_status att_modules_copy(att_ctx *ctx, const att_modules *m, const char *folder);

#endif
