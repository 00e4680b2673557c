/* A request for texts, from its prompts to its answer, whole or as a stream of events. */
#ifndef SERVE_TEXT_RUN_H
#define SERVE_TEXT_RUN_H

#include "sampling_fields.h"
#include "text_answer.h"

typedef struct serve_text_request {
    serve_model *model;
    const serve_text_shape *shape;
    serve_prompts prompts;
    serve_sampling *sampling;
    int64_t per_prompt;
    bool stream, usage;
    json_t *echo; /* the body's, as in serve_text_answer; or NULL */
} serve_text_request;

/* Answers a request, or refuses it: also because a prompt is empty or too long. `what`: the name of the prompts in
 * messages. */
void serve_text_run(serve_call *c, serve_text_request *r, const char *what);

void serve_text_request_free(serve_text_request *r);

#endif
