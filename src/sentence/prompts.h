/* The settings for all modules of a sentence-transformers folder: config_sentence_transformers.json. */
#ifndef ATT_SENTENCE_PROMPTS_H
#define ATT_SENTENCE_PROMPTS_H

#include "attend_sentence.h"
#include "attend_util.h"

typedef struct att_prompt {
    char *name, *text;
} att_prompt;

typedef struct att_prompts {
    att_prompt *prompt; /* [n] */
    int64_t n;
    int64_t chosen;       /* the default prompt; -1: none */
    int64_t truncate_dim; /* 0: embeddings are not truncated */
    att_similarity similarity;
} att_prompts;

/* Reads FOLDER/config_sentence_transformers.json, if there is one; folder NULL: there is none. All models have the
 * prompts "query" and "document", which are empty if the file does not have them, as in sentence-transformers. Errors
 * name the setting and its value; even then the caller frees *out with att_prompts_free. */
att_status att_prompts_read(att_ctx *ctx, const char *folder, att_prompts *out);
void att_prompts_free(att_ctx *ctx, att_prompts *p);
/* Finds the text of a prompt; name NULL: of the default one, "" if there is none. Error: no such prompt. The message
 * begins with `what` and lists the names of all prompts. */
att_status att_prompts_find(att_ctx *ctx, const att_prompts *p, const char *what, const char *name, const char **text);

#endif
