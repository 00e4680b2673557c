/* The route of similarities, as TEI's and Hugging Face's sentence-similarity. */
#include "embed_work.h"
#include "routes.h"

#include <stdlib.h>

typedef struct similarity_fields {
    const json_t *inputs, *parameters;
    serve_text model;
} similarity_fields;

typedef struct sentence_fields {
    serve_text source;
    serve_texts sentences;
} sentence_fields;

/* The table that `inputs` is read by. */
static const serve_field sentence_table[] = {
    {"source_sentence", SERVE_TEXT, offsetof(sentence_fields, source), .required = true,
     .help = "text that the others are compared with"},
    {"sentences", SERVE_DOCUMENTS, offsetof(sentence_fields, sentences), .required = true, .help = "list of texts"},
    {0},
};

/* The table that `parameters` is read by. */
typedef struct parameter_fields {
    serve_text prompt_name;
    bool truncate;
} parameter_fields;

static const serve_field parameter_table[] = {
    {"prompt_name", SERVE_TEXT, offsetof(parameter_fields, prompt_name), .help = "name of one of the model's prompts"},
    {"truncate", SERVE_BOOL, offsetof(parameter_fields, truncate), .usual = 1,
     .help = "truncate texts that are too long"},
    {"truncation_direction", SERVE_REFUSED, .words = "\"Right\"",
     .help = "texts are truncated where the model's tokenizer states: \"Right\""},
    {0},
};

static const serve_field similarity_table[] = {
    {"inputs", SERVE_JSON, offsetof(similarity_fields, inputs), .table = sentence_table, .required = true,
     .help = "{\"source_sentence\": a text, \"sentences\": a list of texts}"},
    {"parameters", SERVE_JSON, offsetof(similarity_fields, parameters), .table = parameter_table,
     .help = "{\"prompt_name\": \"...\", \"truncate\": true}, as of /embed"},
    SERVE_MODEL_FIELD(similarity_fields, "sentence model"),
    {0},
};

/* Writes the cosine of the first vector and each other one. */
static void write_cosines(serve_call *c, const serve_embedding *e)
{
    const int64_t n = e->input->n - 1;
    att_tensor x, y, z;
    float *out = malloc((size_t)n * sizeof *out);
    att_status s = out ? ATT_OK : ATT_ERR_MEMORY;
    if (!s) {
        att_wrap(&x, e->vectors, ATT_F32, ATT_DIMS(1, e->width), NULL);
        att_wrap(&y, e->vectors + e->width, ATT_F32, ATT_DIMS(n, e->width), NULL);
        att_wrap(&z, out, ATT_F32, ATT_DIMS(1, n), NULL);
        s = att_tensor_cosine(c->shared->models.ctx, &x, &y, &z);
    }
    if (s) {
        serve_refuse(c, 503, NULL, "%s", att_status_text(s));
    } else {
        cli_json j = serve_answer_open(c);
        cli_json_row(&j, NULL, out, n);
        serve_answer_close(c, &j);
    }
    free(out);
}

/* Embeds the first text with the others. */
static void compare(serve_call *c, serve_model *m, const sentence_fields *o, const parameter_fields *p)
{
    const int64_t n = o->sentences.n + 1;
    serve_texts all = {
        .n = n, .text = malloc((size_t)n * sizeof *all.text), .bytes = malloc((size_t)n * sizeof *all.bytes)};
    serve_embedding e = {
        .input = &all, .input_name = "inputs", .prompt_name = p->prompt_name, .refuse_long = !p->truncate};
    if (!all.text || !all.bytes) {
        serve_refuse(c, 503, NULL, "out of memory");
    } else {
        all.text[0] = o->source.text;
        all.bytes[0] = o->source.bytes;
        for (int64_t i = 1; i < n; i++) {
            all.text[i] = o->sentences.text[i - 1];
            all.bytes[i] = o->sentences.bytes[i - 1];
        }
        if (serve_embed(c, m, &e))
            write_cosines(c, &e);
    }
    serve_embedding_free(&e);
    free(all.text);
    free(all.bytes);
}

static void answer(serve_call *c, void *fields)
{
    const similarity_fields *o = fields;
    sentence_fields s = {0};
    parameter_fields p = {0};
    serve_model *m = serve_call_model(c, o->model, ATT_SUBJECT_SENTENCE);
    if (m && serve_call_read(c, "inputs", sentence_table, o->inputs, &s) &&
        serve_call_read(c, "parameters", parameter_table, o->parameters, &p))
        compare(c, m, &s, &p);
    serve_fields_free(sentence_table, &s);
}

#define COSINES "[\"number\"]"

const serve_route serve_route_similarity = {.method = "POST",
                                            .path = "/similarity",
                                            .answers = COSINES,
                                            .summary = "Cosines of a text and others, as TEI's",
                                            .fields = similarity_table,
                                            .size = sizeof(similarity_fields),
                                            .run = answer,
                                            .errors = SERVE_ERRORS_FLAT};
