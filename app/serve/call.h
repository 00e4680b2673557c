/* One request on its way through a route: its fields, its work, and its answer. */
#ifndef SERVE_CALL_H
#define SERVE_CALL_H

#include "cli/base/json.h"
#include "field.h"
#include "http.h"
#include "queue.h"

typedef struct serve_route serve_route;
struct serve_metrics;
struct serve_guard;

/* What all requests share. */
typedef struct serve_shared {
    const serve_settings *settings;
    serve_models models;
    serve_queue *queue;
    http_server *http;
    const serve_route *const *routes; /* up to NULL */
    struct serve_metrics *metrics;
    const struct serve_guard *guard;
} serve_shared;

typedef struct serve_call {
    serve_shared *shared;
    const http_request *request;
    http_answer *answer;
    const serve_route *route;
    const json_t *body; /* of a route with fields */
    bool is_form;       /* the body was that of a form, whose texts may have any bytes */
    FILE *file;         /* to the answer's body, between serve_answer_open and serve_answer_close */
} serve_call;

/* How a route's clients expect errors. */
typedef enum serve_errors {
    SERVE_ERRORS_OPENAI, /* {"error": {"message", "type", "param", "code"}} */
    SERVE_ERRORS_FLAT    /* {"error": "message", "error_type"}: TEI, LibreTranslate */
} serve_errors;

struct serve_route {
    const char *method, *path; /* a path that ends with "/" has all below it */
    const char *summary;       /* one sentence without a full stop */
    const char *answers;       /* the shape (schema.h) of its JSON; NULL: it answers with text of `type` */
    const char *type, *stream; /* "Content-Type" of a text; of a stream, which it may answer with; or NULL */
    const serve_field *fields; /* of its JSON; NULL: it reads no body */
    size_t size;               /* of the struct of fields */
    /* Answers, or refuses by serve_refuse. fields: the struct, or NULL. */
    void (*run)(serve_call *c, void *fields);
    serve_errors errors;
    bool open;    /* it needs no key */
    bool own_key; /* run checks the key, which may be a field */
    bool form;    /* its body may be that of an HTML form */
    bool always;  /* it is answered while models are opened and while the server ends, too */
};

/* ---- errors ---- */

/* Answers with an error: status, the field that is wrong or NULL, and one sentence. */
void serve_refuse(serve_call *c, int status, const char *param, const char *format, ...) ATT_PRINTF(4, 5);
/* Fills an answer with an error. */
void serve_error_answer(http_answer *a, serve_errors shape, int status, const char *param, const char *message);

/* Reads by a table the object that is the value of a field, as if it were empty where it is NULL: not given. Returns
 * false: the request was refused. */
bool serve_call_read(serve_call *c, const char *field, const serve_field *table, const json_t *object, void *to);

/* ---- answers ---- */

/* Begins the answer's JSON: returns a writer, with nothing open. */
cli_json serve_answer_open(serve_call *c);
/* Ends it, with status 200. */
void serve_answer_close(serve_call *c, cli_json *j);

/* Writes "usage": the tokens of texts, and how many of these were truncated. */
void serve_usage_write(cli_json *j, int64_t tokens, int64_t truncated);

/* ---- models and work ---- */

/* Returns the model of a request, of this subject (ATT_SUBJECT_NONE: of any): the first one if no name is given. NULL:
 * the request was refused. */
serve_model *serve_call_model(serve_call *c, serve_text name, att_subject subject);
/* Computes a job. Returns false if it failed, and the request was refused. */
bool serve_call_run(serve_call *c, serve_job *job);
/* Acquires bytes of --max-memory until the answer was sent. Returns false if there are not as many left: then the
 * request must be refused by serve_refuse_memory. */
bool serve_call_acquire(serve_call *c, size_t bytes);
void serve_refuse_memory(serve_call *c);
extern const char serve_memory_sentence[]; /* that it answers with */
/* Adds a job to the queue, or refuses the request as its tokens have no room; then returns false. */
bool serve_call_add(serve_call *c, serve_job *job);
/* Waits for the end of a job that was added, as serve_call_run does. */
bool serve_call_wait(serve_call *c, serve_job *job);
/* Returns when the time of a request is over, by cli_seconds. */
double serve_call_deadline(const serve_call *c);
/* Returns whether a request has a key, in a header or as the value of a field (text NULL: none), or needs none. */
bool serve_call_has_key(const serve_call *c, serve_text key);
/* Sets the headers that count tokens and truncated texts, and adds them to the metrics. */
void serve_call_count(serve_call *c, int64_t tokens, int64_t truncated);

#endif
