/* The description of all routes, as OpenAPI, made of the tables that requests are read by. */
#include "routes.h"
#include "schema.h"

#include <string.h>

static const char *const error_shapes[] = {
    [SERVE_ERRORS_OPENAI] = "{\"error\": {\"message\": \"string\", \"type\": \"string\", \"param\": \"string|null\", "
                            "\"code\": \"string|null\"}}",
    [SERVE_ERRORS_FLAT] = "{\"error\": \"string\", \"error_type\": \"string\"}"};

/* The statuses of errors, besides those that all routes have. */
static const char no_fields[] =
    "an error: 401 without a key, 403 for another host, 404, 405 for another method, 429 and 503 with Retry-After, 500",
                  with_fields[] =
                      "an error: 400 for what is wrong in the body, 401 without a key, 403 for another host, 404 for a "
                      "model that is not served, 405 for another method, 408 if the body does not arrive, 413 if it is "
                      "too large, 429 and 503 with Retry-After, 500, 504 if it is not computed in time";

/* Returns whether a path has the id of a model at its end. */
static bool has_id(const serve_route *r) { return r->path[1] && r->path[strlen(r->path) - 1] == '/'; }

/* Returns what a route answers, by content type. */
static json_t *describe_content(const serve_route *r)
{
    json_t *content = json_object();
    if (r->answers)
        json_object_set_new(content, "application/json", json_pack("{s:o}", "schema", serve_schema(r->answers)));
    if (r->type)
        json_object_set_new(content, r->type, json_pack("{s:{s:s}}", "schema", "type", "string"));
    if (r->stream)
        json_object_set_new(content, r->stream, json_pack("{s:{s:s}}", "schema", "type", "string"));
    return content;
}

/* Returns what a route reads: JSON, and forms, whose values are texts. */
static json_t *describe_body(const serve_route *r)
{
    json_t *schema = serve_fields_schema(r->fields),
           *content = json_pack("{s:{s:O}}", "application/json", "schema", schema);
    if (r->form) {
        json_object_set_new(content, "application/x-www-form-urlencoded", json_pack("{s:O}", "schema", schema));
        json_object_set_new(content, "multipart/form-data", json_pack("{s:O}", "schema", schema));
    }
    json_decref(schema);
    return json_pack("{s:b, s:o}", "required", 1, "content", content);
}

static json_t *describe_route(const serve_route *r)
{
    json_t *o = json_pack("{s:s, s:{s:{s:s, s:o}, s:{s:s, s:{s:{s:o}}}}}", "summary", r->summary, "responses", "200",
                          "description", "the answer", "content", describe_content(r), "default", "description",
                          r->fields ? with_fields : no_fields, "content", "application/json", "schema",
                          serve_schema(error_shapes[r->errors]));
    if (r->fields)
        json_object_set_new(o, "requestBody", describe_body(r));
    if (r->open)
        json_object_set_new(o, "security", json_array());
    if (has_id(r))
        json_object_set_new(o, "parameters",
                            json_pack("[{s:s, s:s, s:b, s:{s:s}}]", "name", "id", "in", "path", "required", 1, "schema",
                                      "type", "string"));
    return o;
}

static void run(serve_call *c, void *fields)
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

const serve_route serve_route_openapi = {.method = "GET",
                                         .path = "/openapi.json",
                                         .summary = "The routes and their fields",
                                         .answers = "{\"*\": \"any\"}",
                                         .run = run,
                                         .open = true,
                                         .always = true};
