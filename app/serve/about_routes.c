/* Routes about the server: its models, whether it is ready, its counts, and its description. */
#include "metrics.h"
#include "routes.h"

#include <stdlib.h>
#include <string.h>

/* ---- models ---- */

static void write_model(cli_json *j, const serve_model *m, const char *id)
{
    cli_json_object(j, NULL);
    cli_json_string(j, "id", id);
    cli_json_string(j, "object", "model");
    cli_json_integer(j, "created", m->created);
    cli_json_string(j, "owned_by", "attend");
    cli_json_object(j, "attend");
    cli_json_string(j, "kind", att_subject_name(m->subject));
    cli_json_string(j, "type", m->identity.type);
    cli_json_string(j, "dtype", m->dtype);
    cli_json_string(j, "compute", m->compute);
    if (m->max_tokens > 0)
        cli_json_integer(j, "max_tokens", m->max_tokens);
    if (m->subject == ATT_SUBJECT_SENTENCE)
        cli_json_integer(j, "dim", m->info.sentence.dim);
    if (m->subject == ATT_SUBJECT_CLASSIFIER)
        cli_json_integer(j, "labels", m->info.classifier.labels);
    if (m->subject == ATT_SUBJECT_LANGUAGE)
        cli_json_bool(j, "chat", m->template);
    if (m->subject == ATT_SUBJECT_TRANSLATE && *m->source) {
        cli_json_string(j, "source", m->source);
        cli_json_string(j, "target", m->target);
    }
    cli_json_end(j);
    cli_json_end(j);
}

static void answer_models(serve_call *c, void *fields)
{
    const serve_models *all = &c->shared->models;
    (void)fields;
    cli_json j = serve_answer_open(c);
    cli_json_object(&j, NULL);
    cli_json_string(&j, "object", "list");
    cli_json_array(&j, "data");
    for (int i = 0; i < all->n; i++)
        write_model(&j, all->model[i], all->model[i]->id);
    for (int i = 0; i < all->aliases; i++)
        write_model(&j, all->alias[i].model, all->alias[i].name);
    serve_answer_close(c, &j);
}

static void answer_model(serve_call *c, void *fields)
{
    const char *name = c->request->path + strlen(c->route->path);
    const serve_model *m = serve_models_find(&c->shared->models, name, strlen(name));
    (void)fields;
    if (!m) {
        serve_refuse(c, 404, "model", "there is no model \"%.200s\"; GET /v1/models lists those that there are", name);
        return;
    }
    cli_json j = serve_answer_open(c);
    write_model(&j, m, name);
    serve_answer_close(c, &j);
}

/* Describes the first model, as TEI describes its only one: the first that makes vectors, or else scores. */
static void answer_info(serve_call *c, void *fields)
{
    const serve_models *all = &c->shared->models;
    const serve_settings *s = c->shared->settings;
    const serve_model *m = serve_models_first(all, ATT_SUBJECT_SENTENCE);
    (void)fields;
    m = m ? m : serve_models_first(all, ATT_SUBJECT_CLASSIFIER);
    m = m ? m : all->model[0];
    cli_json j = serve_answer_open(c);
    cli_json_object(&j, NULL);
    cli_json_string(&j, "model_id", m->id);
    cli_json_string(&j, "model_sha", NULL);
    cli_json_string(&j, "model_dtype", m->dtype);
    cli_json_object(&j, "model_type");
    if (m->subject == ATT_SUBJECT_SENTENCE) {
        cli_json_object(&j, "embedding");
        cli_json_string(&j, "pooling",
                        m->info.sentence.poolings == 1 ? m->info.sentence.pooling[0] == ATT_POOLING_MEAN  ? "mean"
                                                         : m->info.sentence.pooling[0] == ATT_POOLING_CLS ? "cls"
                                                                                                          : "other"
                                                       : "other");
        cli_json_end(&j);
    } else if (m->subject == ATT_SUBJECT_CLASSIFIER) {
        cli_json_object(&j, m->info.classifier.labels == 1 ? "reranker" : "classifier");
        cli_json_end(&j);
    }
    cli_json_end(&j);
    cli_json_integer(&j, "max_concurrent_requests", s->max_connections);
    cli_json_integer(&j, "max_input_length", m->max_tokens);
    cli_json_integer(&j, "max_batch_tokens", s->step_tokens);
    cli_json_string(&j, "max_batch_requests", NULL);
    cli_json_integer(&j, "max_client_batch_size", s->max_inputs);
    cli_json_bool(&j, "auto_truncate", true);
    cli_json_integer(&j, "tokenization_workers", s->max_connections);
    cli_json_string(&j, "version", att_version());
    cli_json_string(&j, "sha", NULL);
    cli_json_string(&j, "docker_label", NULL);
    serve_answer_close(c, &j);
}

/* ---- health ---- */

static void answer_ok(serve_call *c, void *fields)
{
    (void)fields;
    cli_json j = serve_answer_open(c);
    cli_json_object(&j, NULL);
    cli_json_string(&j, "status", "ok");
    serve_answer_close(c, &j);
}

static void answer_metrics(serve_call *c, void *fields)
{
    serve_shared *s = c->shared;
    (void)fields;
    cli_json j = serve_answer_open(c);
    serve_metrics_write(s->metrics, c->file, &s->models, serve_queue_waiting(s->queue), att_isa(s->models.ctx));
    serve_answer_close(c, &j);
    c->answer->type = "text/plain; version=0.0.4; charset=utf-8";
}

/* ---- the routes ---- */

#define STATUS "{\"status\": \"string\"}"
#define MODEL                                                                                                          \
    "{\"id\": \"string\", \"object\": \"string\", \"created\": \"integer\", \"owned_by\": \"string\", "                \
    "\"attend\": {\"kind\": \"string\", \"type\": \"string\", \"dtype\": \"string\", \"compute\": \"string\", "        \
    "\"max_tokens?\": \"integer\", \"dim?\": \"integer\", \"labels?\": \"integer\", \"chat?\": \"boolean\", "          \
    "\"source?\": \"string\", \"target?\": \"string\"}}"
#define INFO                                                                                                           \
    "{\"model_id\": \"string\", \"model_sha\": \"null\", \"model_dtype\": \"string\", \"model_type\": {\"*\": "        \
    "\"any\"}, "                                                                                                       \
    "\"max_concurrent_requests\": \"integer\", \"max_input_length\": \"integer\", \"max_batch_tokens\": \"integer\", " \
    "\"max_batch_requests\": \"null\", \"max_client_batch_size\": \"integer\", \"auto_truncate\": \"boolean\", "       \
    "\"tokenization_workers\": \"integer\", \"version\": \"string\", \"sha\": \"null\", \"docker_label\": \"null\"}"

const serve_route serve_route_models = {.method = "GET",
                                        .path = "/v1/models",
                                        .summary = "The models that are served",
                                        .answers = "{\"object\": \"string\", \"data\": [" MODEL "]}",
                                        .run = answer_models};
const serve_route serve_route_model = {
    .method = "GET", .path = "/v1/models/", .summary = "One model", .answers = MODEL, .run = answer_model};
const serve_route serve_route_info = {.method = "GET",
                                      .path = "/info",
                                      .summary = "The first model and the limits, as TEI's",
                                      .answers = INFO,
                                      .run = answer_info,
                                      .errors = SERVE_ERRORS_FLAT};
const serve_route serve_route_health = {.method = "GET",
                                        .path = "/health",
                                        .summary = "Whether requests are answered",
                                        .answers = STATUS,
                                        .run = answer_ok,
                                        .open = true};
const serve_route serve_route_livez = {.method = "GET",
                                       .path = "/livez",
                                       .summary = "Whether the process lives",
                                       .answers = STATUS,
                                       .run = answer_ok,
                                       .open = true,
                                       .always = true};
const serve_route serve_route_readyz = {.method = "GET",
                                        .path = "/readyz",
                                        .summary = "Whether to send requests here: 503 while models are opened, and "
                                                   "from SIGTERM on",
                                        .answers = STATUS,
                                        .run = answer_ok,
                                        .open = true};
const serve_route serve_route_metrics = {.method = "GET",
                                         .path = "/metrics",
                                         .summary = "Counts, in the text format of Prometheus",
                                         .type = "text/plain",
                                         .run = answer_metrics};
