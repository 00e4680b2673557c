/* The messages of a conversation, as OpenAI's and Ollama's requests have them, and the prompt that they make. */
#ifndef SERVE_MESSAGES_H
#define SERVE_MESSAGES_H

#include "generate_work.h"

/* A conversation: a system message if it is given, then the list, then a user's text if it is given. */
typedef struct serve_messages {
    const char *field;  /* of the list or of the text, for messages about errors */
    const json_t *list; /* or NULL */
    bool items;         /* the list is of the items of /v1/responses */
    serve_text system, user;
} serve_messages;

/* Adds the prompt of a conversation to *out, by the model's template, and the text that ends a message to the stop
 * strings. Returns false: the request was refused, because of its messages, or the model has no template. */
bool serve_messages_prompt(serve_call *c, const serve_model *m, const serve_messages *messages, serve_sampling *s,
                           serve_prompts *out);

#endif
