/* Embedding texts: the work behind all routes of embeddings. */
#ifndef SERVE_EMBED_WORK_H
#define SERVE_EMBED_WORK_H

#include "call.h"

typedef struct serve_embedding {
    /* given: */
    const serve_texts *input;
    const char *input_name; /* its field, for messages */
    serve_text prompt_name; /* not given: the model's default prompt */
    int64_t dims;           /* 0: the model's */
    bool refuse_long;       /* a text that is too long is refused instead of truncated */
    /* computed: */
    float *vectors; /* [input->n, width] */
    int64_t width, tokens, truncated;
} serve_embedding;

/* Computes vectors. Returns false if the request was refused. serve_embedding_free frees them, also then. */
bool serve_embed(serve_call *c, serve_model *m, serve_embedding *e);
void serve_embedding_free(serve_embedding *e);

/* Finds a prompt of a sentence model by its name; NULL: its default prompt. Returns false if the request was refused.
 */
bool serve_find_prompt(serve_call *c, const serve_model *m, const char *name, const char **prompt);

#endif
