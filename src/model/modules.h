/* What a sentence-transformers folder says about itself. */
#ifndef ATT_MODEL_MODULES_H
#define ATT_MODEL_MODULES_H

#include "attend_model.h"
#include "attend_util.h"

enum { ATT_MAX_MODULES = 3 };
typedef struct att_modules {
    char *folder;
    char *path[ATT_MAX_MODULES]; /* [n] of the modules, within it; the first is */
    int n;
    char *transformer;  /* the Transformer's: the folder */
    int64_t max_tokens; /* 0: not said */
    int64_t dim;        /* of what is pooled */
    att_pooling pooling;
    bool normalized;
    bool lower_case; /* lowers all text before the tokenizer */
} att_modules;

/* modules.json and what it names, old and current layout. Errors name the file, the setting and its value. */
att_status att_modules_read(att_ctx *ctx, const char *folder, att_modules *out);
void att_modules_free(att_ctx *ctx, att_modules *m);

#endif
