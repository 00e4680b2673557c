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

/* ---- the description ---- */

static json_t *error_schema(serve_errors shape)
{
    return shape == SERVE_ERRORS_FLAT
               ? json_pack("{s:s, s:{s:{s:s}, s:{s:s}}, s:[s]}", "type", "object", "properties", "error", "type",
                           "string", "error_type", "type", "string", "required", "error")
               : json_pack("{s:s, s:{s:{s:s}}, s:[s]}", "type", "object", "properties", "error", "type", "object",
                           "required", "error");
}

/* Returns whether a path has the id of a model at its end. */
static bool has_id(const serve_route *r) { return r->path[1] && r->path[strlen(r->path) - 1] == '/'; }

static json_t *describe_route(const serve_route *r)
{
    json_t *o = json_pack("{s:s, s:{s:{s:s}, s:{s:s, s:{s:{s:o}}}}}", "summary", r->summary, "responses", "200",
                          "description", "the answer", "default", "description", "an error", "content",
                          "application/json", "schema", error_schema(r->errors));
    if (r->fields)
        json_object_set_new(o, "requestBody",
                            json_pack("{s:b, s:{s:{s:o}}}", "required", 1, "content", "application/json", "schema",
                                      serve_fields_schema(r->fields)));
    if (r->open)
        json_object_set_new(o, "security", json_array());
    if (has_id(r))
        json_object_set_new(o, "parameters",
                            json_pack("[{s:s, s:s, s:b, s:{s:s}}]", "name", "id", "in", "path", "required", 1, "schema",
                                      "type", "string"));
    return o;
}

static void answer_openapi(serve_call *c, void *fields)
{
    json_t *paths = json_object();
    char path[128], method[8];
    (void)fields;
    for (const serve_route *const *r = c->shared->routes; *r; r++) {
        snprintf(path, sizeof path, "%s%s", (*r)->path, has_id(*r) ? "{id}" : "");
        snprintf(method, sizeof method, "%s", strcmp((*r)->method, "GET") ? "post" : "get");
        json_t *at = json_object_get(paths, path);
        if (!at) {
            at = json_object();
            json_object_set_new(paths, path, at);
        }
        json_object_set_new(at, method, describe_route(*r));
    }
    json_t *all = json_pack("{s:s, s:{s:s, s:s}, s:o, s:[{s:[]}], s:{s:{s:{s:s, s:s}}}}", "openapi", "3.1.0", "info",
                            "title", "attend serve", "version", att_version(), "paths", paths, "security", "key",
                            "components", "securitySchemes", "key", "type", "http", "scheme", "bearer");
    cli_json j = serve_answer_open(c);
    cli_json_value(&j, NULL, all, JSON_SORT_KEYS | JSON_REAL_PRECISION(9));
    json_decref(all);
    serve_answer_close(c, &j);
}

const serve_route serve_route_models = {
    .method = "GET", .path = "/v1/models", .summary = "The models that are served", .run = answer_models};
const serve_route serve_route_model = {
    .method = "GET", .path = "/v1/models/", .summary = "One model", .run = answer_model};
const serve_route serve_route_info = {.method = "GET",
                                      .path = "/info",
                                      .summary = "The first model and the limits, as TEI's",
                                      .run = answer_info,
                                      .errors = SERVE_ERRORS_FLAT};
const serve_route serve_route_health = {
    .method = "GET", .path = "/health", .summary = "Whether requests are answered", .run = answer_ok, .open = true};
const serve_route serve_route_livez = {.method = "GET",
                                       .path = "/livez",
                                       .summary = "Whether the process lives",
                                       .run = answer_ok,
                                       .open = true,
                                       .always = true};
const serve_route serve_route_readyz = {.method = "GET",
                                        .path = "/readyz",
                                        .summary = "Whether to send requests here: 503 while models are opened, and "
                                                   "from SIGTERM on",
                                        .run = answer_ok,
                                        .open = true};
const serve_route serve_route_metrics = {
    .method = "GET", .path = "/metrics", .summary = "Counts, in the text format of Prometheus", .run = answer_metrics};
const serve_route serve_route_openapi = {.method = "GET",
                                         .path = "/openapi.json",
                                         .summary = "The routes and their fields",
                                         .run = answer_openapi,
                                         .open = true,
                                         .always = true};
