/* Routes of embeddings: OpenAI's and those of text-embeddings-inference (TEI). */
#include "cli/base/base64.h"
#include "embed_work.h"
#include "routes.h"

#include <math.h>

/* ---- OpenAI ---- */

typedef struct openai_fields {
    serve_texts input;
    serve_text model, prompt_name;
    int encoding_format;
    int64_t dimensions;
    bool truncate;
} openai_fields;

enum { FORMAT_FLOAT, FORMAT_BASE64 };

static const serve_field openai_table[] = {
    {"input", SERVE_INPUT, offsetof(openai_fields, input), .required = true,
     .help = "text, list of texts, ids of tokens, or list of such lists"},
    SERVE_MODEL_FIELD(openai_fields, "sentence model"),
    {"encoding_format", SERVE_CHOICE, offsetof(openai_fields, encoding_format), .words = "float|base64",
     .help = "numbers as JSON, or the bytes of little-endian float32 as base64"},
    {"dimensions", SERVE_INTEGER, offsetof(openai_fields, dimensions), .min = 1, .max = 1 << 20,
     .help = "truncate vectors to their first numbers, and normalize them if the model's are"},
    {"user", SERVE_IGNORED, .help = "who asks; nothing is stored"},
    {"prompt_name", SERVE_TEXT, offsetof(openai_fields, prompt_name),
     .help = "name of one of the model's prompts, before each text; default: the model's default prompt"},
    {"truncate", SERVE_BOOL, offsetof(openai_fields, truncate), .usual = 1,
     .help = "truncate texts that are too long for the model; false: refuse them"},
    {0},
};

/* Writes a vector as base64 of little-endian floats. */
static void write_base64(cli_json *j, FILE *f, const float *vector, int64_t n)
{
    cli_json_begin_value(j, "embedding");
    putc('"', f);
    cli_base64_write(f, vector, (size_t)n * sizeof *vector);
    putc('"', f);
}

static void answer_openai(serve_call *c, void *fields)
{
    openai_fields *o = fields;
    serve_embedding e = {.input = &o->input,
                         .input_name = "input",
                         .prompt_name = o->prompt_name,
                         .dims = o->dimensions,
                         .refuse_long = !o->truncate};
    serve_model *m = serve_call_model(c, o->model, ATT_SUBJECT_SENTENCE);
    if (m && serve_embed(c, m, &e)) {
        cli_json j = serve_answer_open(c);
        cli_json_object(&j, NULL);
        cli_json_string(&j, "object", "list");
        cli_json_array(&j, "data");
        for (int64_t i = 0; i < o->input.n; i++) {
            cli_json_object(&j, NULL);
            cli_json_string(&j, "object", "embedding");
            cli_json_integer(&j, "index", i);
            if (o->encoding_format == FORMAT_BASE64)
                write_base64(&j, c->file, e.vectors + i * e.width, e.width);
            else
                cli_json_row(&j, "embedding", e.vectors + i * e.width, e.width);
            cli_json_end(&j);
        }
        cli_json_end(&j);
        cli_json_string(&j, "model", m->id);
        serve_usage_write(&j, e.tokens, e.truncated);
        serve_answer_close(c, &j);
    }
    serve_embedding_free(&e);
}

/* ---- TEI ---- */

typedef struct tei_fields {
    serve_texts inputs;
    serve_text model, prompt_name;
    int64_t dimensions;
    bool truncate, normalize;
} tei_fields;

static const serve_field tei_table[] = {
    {"inputs", SERVE_TEXTS, offsetof(tei_fields, inputs), .required = true, .help = "text or list of texts"},
    SERVE_MODEL_FIELD(tei_fields, "sentence model"),
    {"truncate", SERVE_BOOL, offsetof(tei_fields, truncate), .usual = 1,
     .help = "truncate texts that are too long for the model; false: refuse them"},
    {"truncation_direction", SERVE_REFUSED, .words = "\"Right\"",
     .help = "texts are truncated where the model's tokenizer states, most often at their end: \"Right\""},
    {"prompt_name", SERVE_TEXT, offsetof(tei_fields, prompt_name),
     .help = "name of one of the model's prompts, before each text; default: the model's default prompt"},
    {"normalize", SERVE_BOOL, offsetof(tei_fields, normalize), .usual = 1, .help = "make the length of each vector 1"},
    {"dimensions", SERVE_INTEGER, offsetof(tei_fields, dimensions), .min = 1, .max = 1 << 20,
     .help = "truncate vectors to their first numbers"},
    {0},
};

static void normalize(float *vector, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)vector[i] * (double)vector[i];
    const double length = sqrt(sum);
    for (int64_t i = 0; length > 0 && i < n; i++)
        vector[i] = (float)((double)vector[i] / length);
}

static void answer_tei(serve_call *c, void *fields)
{
    tei_fields *o = fields;
    serve_embedding e = {.input = &o->inputs,
                         .input_name = "inputs",
                         .prompt_name = o->prompt_name,
                         .dims = o->dimensions,
                         .refuse_long = !o->truncate};
    serve_model *m = serve_call_model(c, o->model, ATT_SUBJECT_SENTENCE);
    if (m && !o->normalize && m->info.sentence.normalized) {
        serve_refuse(c, 400, "normalize", "normalize: %s itself normalizes its vectors, so false is not possible",
                     m->id);
    } else if (m && serve_embed(c, m, &e)) {
        for (int64_t i = 0; o->normalize && !m->info.sentence.normalized && i < o->inputs.n; i++)
            normalize(e.vectors + i * e.width, e.width);
        cli_json j = serve_answer_open(c);
        cli_json_matrix(&j, NULL, e.vectors, o->inputs.n, e.width);
        serve_answer_close(c, &j);
    }
    serve_embedding_free(&e);
}

#define VECTORS                                                                                                        \
    "{\"object\": \"string\", \"data\": [{\"object\": \"string\", \"index\": \"integer\", \"embedding\": "             \
    "{\"|\": [[\"number\"], \"string\"]}}], \"model\": \"string\", \"usage\": {\"prompt_tokens\": "                    \
    "\"integer\", \"total_tokens\": \"integer\", \"truncated\": \"integer\"}}"

const serve_route serve_route_embeddings = {.method = "POST",
                                            .path = "/v1/embeddings",
                                            .answers = VECTORS,
                                            .summary = "Embeddings of texts, as OpenAI's",
                                            .fields = openai_table,
                                            .size = sizeof(openai_fields),
                                            .run = answer_openai};
const serve_route serve_route_embeddings_short = {.method = "POST",
                                                  .path = "/embeddings",
                                                  .answers = VECTORS,
                                                  .summary = "The same as /v1/embeddings",
                                                  .fields = openai_table,
                                                  .size = sizeof(openai_fields),
                                                  .run = answer_openai};
#define ROWS "[[\"number\"]]"

const serve_route serve_route_embed = {.method = "POST",
                                       .path = "/embed",
                                       .answers = ROWS,
                                       .summary = "Embeddings of texts, as TEI's",
                                       .fields = tei_table,
                                       .size = sizeof(tei_fields),
                                       .run = answer_tei,
                                       .errors = SERVE_ERRORS_FLAT};
