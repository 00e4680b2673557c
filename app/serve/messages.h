/* The messages of a conversation, as OpenAI's and Ollama's requests have them, and the prompt that they are. */
#ifndef SERVE_MESSAGES_H
#define SERVE_MESSAGES_H

#include "generate_work.h"

/* Adds the prompt of a conversation to *out, by the model's template, and the text that ends a message to the stop
 * strings. Returns false: the request was refused, because of its messages, or the model has no template. */
bool serve_messages_prompt(serve_call *c, const serve_model *m, const json_t *messages, serve_sampling *s,
                           serve_prompts *out);

#endif
