/* What Ollama's clients ask about models, and about the server. */
#include "routes.h"
#include "text_answer.h"

/* ---- models ---- */

static void write_details(cli_json *j, const serve_model *m)
{
    cli_json_object(j, "details");
    cli_json_string(j, "family", m->identity.type);
    cli_json_array(j, "families");
    cli_json_string(j, NULL, m->identity.type);
    cli_json_end(j);
    cli_json_string(j, "quantization_level", m->dtype);
    cli_json_end(j);
}

/* Writes all models; open: as those that are open, which all are. */
static void write_models(serve_call *c, bool open)
{
    const serve_models *all = &c->shared->models;
    cli_json j = serve_answer_open(c);
    cli_json_object(&j, NULL);
    cli_json_array(&j, "models");
    for (int i = 0; i < all->n; i++) {
        const serve_model *m = all->model[i];
        cli_json_object(&j, NULL);
        cli_json_string(&j, "name", m->id);
        cli_json_string(&j, "model", m->id);
        if (!open)
            serve_ollama_time(&j, "modified_at", m->created);
        cli_json_integer(&j, "size", m->bytes);
        cli_json_string(&j, "digest", "");
        write_details(&j, m);
        if (open)
            cli_json_integer(&j, "size_vram", 0);
        cli_json_end(&j);
    }
    serve_answer_close(c, &j);
}

static void run_tags(serve_call *c, void *fields)
{
    (void)fields;
    write_models(c, false);
}

static void run_ps(serve_call *c, void *fields)
{
    (void)fields;
    write_models(c, true);
}

#define MODELS                                                                                                         \
    "{\"models\": [{\"name\": \"string\", \"model\": \"string\", \"modified_at?\": \"string\", \"size\": "             \
    "\"integer\", \"digest\": \"string\", \"details\": {\"family\": \"string\", \"families\": [\"string\"], "          \
    "\"quantization_level\": \"string\"}, \"size_vram?\": \"integer\"}]}"

const serve_route serve_route_ollama_tags = {.method = "GET",
                                             .path = "/api/tags",
                                             .answers = MODELS,
                                             .summary = "The models, as Ollama's",
                                             .run = run_tags,
                                             .errors = SERVE_ERRORS_FLAT};
const serve_route serve_route_ollama_ps = {.method = "GET",
                                           .path = "/api/ps",
                                           .answers = MODELS,
                                           .summary = "The models that are open, which all are, as Ollama's",
                                           .run = run_ps,
                                           .errors = SERVE_ERRORS_FLAT};

/* ---- /api/show ---- */

typedef struct show_fields {
    serve_text model;
} show_fields;

static const serve_field show_table[] = {
    {"model", SERVE_TEXT, offsetof(show_fields, model),
     .help = "name of a model; default: the first one that is served"},
    {"verbose", SERVE_IGNORED, .help = "the answer is the same"},
    {0},
};

static void run_show(serve_call *c, void *fields)
{
    const show_fields *f = fields;
    const serve_model *m = f->model.text ? serve_call_model(c, f->model, ATT_SUBJECT_NONE) : c->shared->models.model[0];
    char key[128];
    if (!m)
        return;
    cli_json j = serve_answer_open(c);
    cli_json_object(&j, NULL);
    serve_ollama_time(&j, "modified_at", m->created);
    cli_json_string(&j, "template", m->template ? att_chat_template_name(m->template) : "");
    write_details(&j, m);
    cli_json_object(&j, "model_info");
    cli_json_string(&j, "general.architecture", m->identity.type);
    snprintf(key, sizeof key, "%s.context_length", m->identity.type);
    if (m->max_tokens > 0)
        cli_json_integer(&j, key, m->max_tokens);
    snprintf(key, sizeof key, "%s.embedding_length", m->identity.type);
    if (m->subject == ATT_SUBJECT_SENTENCE)
        cli_json_integer(&j, key, m->info.sentence.dim);
    cli_json_end(&j);
    cli_json_array(&j, "capabilities");
    if (m->subject == ATT_SUBJECT_LANGUAGE)
        cli_json_string(&j, NULL, "completion");
    if (m->subject == ATT_SUBJECT_SENTENCE)
        cli_json_string(&j, NULL, "embedding");
    cli_json_end(&j);
    serve_answer_close(c, &j);
}

#define MODEL                                                                                                          \
    "{\"modified_at\": \"string\", \"template\": \"string\", \"details\": {\"family\": \"string\", "                   \
    "\"families\": [\"string\"], \"quantization_level\": \"string\"}, \"model_info\": {\"*\": \"any\"}, "              \
    "\"capabilities\": [\"string\"]}"

const serve_route serve_route_ollama_show = {.method = "POST",
                                             .path = "/api/show",
                                             .answers = MODEL,
                                             .summary = "What a model is, as Ollama's",
                                             .fields = show_table,
                                             .size = sizeof(show_fields),
                                             .run = run_show,
                                             .errors = SERVE_ERRORS_FLAT};

/* ---- /api/version ---- */

static void run_version(serve_call *c, void *fields)
{
    (void)fields;
    cli_json j = serve_answer_open(c);
    cli_json_object(&j, NULL);
    cli_json_string(&j, "version", att_version());
    serve_answer_close(c, &j);
}

#define VERSION "{\"version\": \"string\"}"

const serve_route serve_route_ollama_version = {.method = "GET",
                                                .path = "/api/version",
                                                .answers = VERSION,
                                                .summary = "The version of attend, as Ollama's of itself",
                                                .run = run_version,
                                                .errors = SERVE_ERRORS_FLAT};
