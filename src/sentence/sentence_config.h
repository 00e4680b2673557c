/* The settings of a sentence-transformers folder. */
#ifndef ATT_SENTENCE_SENTENCE_CONFIG_H
#define ATT_SENTENCE_SENTENCE_CONFIG_H

#include "attend_sentence.h"
#include "attend_util.h"

enum { ATT_MAX_MODULES = 3 };
typedef struct att_modules {
    char *folder;
    char *path[ATT_MAX_MODULES]; /* [n] folders of the modules; the first is */
    int n;
    char *transformer;  /* that of the Transformer */
    int64_t max_tokens; /* 0: no limit given */
    int64_t dim;        /* of the pooled embedding */
    att_pooling pooling;
    bool normalized;
    bool lower_case; /* convert text to lower case before tokenization */
    bool plain;      /* there is no modules.json */
    att_similarity similarity;
} att_modules;

/* Reads modules.json and the files it names, in the older and the current layout. Without modules.json the folder is
 * that of an encoder, whose hidden states are averaged. Errors name the file, the setting and its value. */
att_status att_modules_read(att_ctx *ctx, const char *folder, att_modules *out);
void att_modules_free(att_ctx *ctx, att_modules *m);

#endif
