/* Routes that classify: texts as TEI's and Infinity's, and images. */
#include "image_work.h"
#include "labels.h"
#include "routes.h"
#include "score_work.h"

#include <stdlib.h>
#include <string.h>

typedef struct predict_fields {
    serve_text model;
    const json_t *inputs, *parameters;
    bool truncate, raw_scores;
} predict_fields;

/* The table that `parameters` is read by. */
typedef struct parameter_fields {
    int64_t top_k;
    int function;
} parameter_fields;

enum { FUNCTION_USUAL, FUNCTION_SIGMOID, FUNCTION_SOFTMAX, FUNCTION_NONE };

static const serve_field parameter_table[] = {
    {"top_k", SERVE_INTEGER, offsetof(parameter_fields, top_k), .min = 1, .max = INT32_MAX,
     .help = "number of labels to return, the most probable ones; default: all"},
    {"function_to_apply", SERVE_CHOICE, offsetof(parameter_fields, function), .words = "default|sigmoid|softmax|none",
     .help = "what makes scores of logits; default: the model's"},
    {0},
};

static const serve_field predict_table[] = {
    {"inputs", SERVE_JSON, offsetof(predict_fields, inputs), .required = true,
     .words = "{\"|\": [\"string\", [\"string\"], [[\"string\"]]]}",
     .help = "a text; a pair of texts, [\"...\", \"...\"]; or a list of lists of one or two texts"},
    SERVE_MODEL_FIELD(predict_fields, "text classifier"),
    {"truncate", SERVE_BOOL, offsetof(predict_fields, truncate), .usual = 1,
     .help = "truncate texts that are too long for the model; false: refuse them"},
    {"raw_scores", SERVE_BOOL, offsetof(predict_fields, raw_scores),
     .help = "scores are the model's logits; false: probabilities"},
    {"truncation_direction", SERVE_REFUSED, .words = "\"Right\"",
     .help = "texts are truncated at their end: \"Right\""},
    {"parameters", SERVE_JSON, offsetof(predict_fields, parameters), .table = parameter_table,
     .help = "object of top_k and function_to_apply, as huggingface_hub sends it; then the answer is a list of lists"},
    {0},
};

typedef struct classify_fields {
    serve_text model;
    serve_texts input, image;
    int64_t top_k;
    bool raw_scores;
} classify_fields;

static const serve_field classify_table[] = {
    {"input", SERVE_TEXTS, offsetof(classify_fields, input), .help = "text or list of texts"},
    {"image", SERVE_TEXTS, offsetof(classify_fields, image), .max = 64,
     .help =
         "instead of texts: image file (JPEG, PNG, WebP, TIFF) as base64, also as a data URL, or a list of them; in "
         "a form the file"},
    SERVE_MODEL_FIELD(classify_fields, "text classifier, or for images vision model"),
    {"top_k", SERVE_INTEGER, offsetof(classify_fields, top_k), .min = 1, .max = INT32_MAX,
     .help = "number of labels to return, the most probable ones; default: all"},
    {"raw_scores", SERVE_BOOL, offsetof(classify_fields, raw_scores),
     .help = "scores are the model's logits; false: probabilities"},
    {0},
};

static const char *label_of(const void *model, int64_t i) { return att_text_classifier_label(model, i); }

static serve_labels labels_of(const serve_model *m, int64_t top)
{
    return (serve_labels){.model = att_any_model_as(m->opened, ATT_SUBJECT_CLASSIFIER),
                          .name = label_of,
                          .n = m->info.classifier.labels,
                          .top = top};
}

static att_text_activation activation_of(const serve_model *m, bool raw)
{
    return raw ? ATT_TEXT_ACTIVATION_IDENTITY : m->info.classifier.probability;
}

/* ---- TEI ---- */

/* The texts of /predict, and their second ones if they are pairs. */
typedef struct sequences {
    int64_t n;
    bool single; /* not a list of lists */
    const char **text, **pair;
    size_t *bytes, *pair_bytes;
} sequences;

static void free_sequences(sequences *s)
{
    free(s->text);
    free(s->pair);
    free(s->bytes);
    free(s->pair_bytes);
}

/* Reads a text, or a list of one or two. Returns the number of texts, 0: it is neither. */
static size_t read_sequence(const json_t *value, sequences *s, int64_t i)
{
    const size_t n = json_is_string(value) ? 1 : json_array_size(value);
    const json_t *first = json_is_string(value) ? value : json_array_get(value, 0), *second = json_array_get(value, 1);
    if (n < 1 || n > 2 || !json_is_string(first) || (n == 2 && !json_is_string(second)))
        return 0;
    s->text[i] = json_string_value(first);
    s->bytes[i] = json_string_length(first);
    s->pair[i] = json_string_value(second);
    s->pair_bytes[i] = second ? json_string_length(second) : 0;
    return n;
}

static bool read_sequences(serve_call *c, const json_t *inputs, sequences *s)
{
    s->single = !json_is_array(json_array_get(inputs, 0));
    s->n = s->single ? 1 : (int64_t)json_array_size(inputs);
    if (s->n > c->shared->settings->max_inputs) {
        serve_refuse(c, 400, "inputs", "inputs: has %lld texts, but --max-inputs allows %lld", (long long)s->n,
                     (long long)c->shared->settings->max_inputs);
        return false;
    }
    s->text = calloc((size_t)s->n, sizeof *s->text);
    s->pair = calloc((size_t)s->n, sizeof *s->pair);
    s->bytes = calloc((size_t)s->n, sizeof *s->bytes);
    s->pair_bytes = calloc((size_t)s->n, sizeof *s->pair_bytes);
    if (!s->text || !s->pair || !s->bytes || !s->pair_bytes) {
        serve_refuse(c, 503, NULL, "out of memory");
        return false;
    }
    size_t texts = 0;
    for (int64_t i = 0; i < s->n; i++) {
        const size_t n = read_sequence(s->single ? inputs : json_array_get(inputs, (size_t)i), s, i);
        if (n == 0 || (i > 0 && n != texts)) {
            serve_refuse(c, 400, "inputs",
                         n ? "inputs: texts and pairs of texts are in one list"
                           : "inputs: is not a text, one or two texts in a list, or a list of such lists");
            return false;
        }
        texts = n;
    }
    return true;
}

static void answer_predict(serve_call *c, void *fields)
{
    static const att_text_activation functions[] = {[FUNCTION_SIGMOID] = ATT_TEXT_ACTIVATION_SIGMOID,
                                                    [FUNCTION_SOFTMAX] = ATT_TEXT_ACTIVATION_SOFTMAX,
                                                    [FUNCTION_NONE] = ATT_TEXT_ACTIVATION_IDENTITY};
    const predict_fields *o = fields;
    parameter_fields p = {0};
    sequences q = {0};
    serve_model *m = serve_call_model(c, o->model, ATT_SUBJECT_CLASSIFIER);
    if (m && serve_call_read(c, "parameters", parameter_table, o->parameters, &p) && read_sequences(c, o->inputs, &q)) {
        const serve_labels labels = labels_of(m, p.top_k);
        const bool list = !q.single || o->parameters;
        serve_scoring s = {.field = "inputs",
                           .n = q.n,
                           .text = q.text,
                           .bytes = q.bytes,
                           .pair = q.pair[0] ? q.pair : NULL,
                           .pair_bytes = q.pair_bytes,
                           .activation = p.function ? functions[p.function] : activation_of(m, o->raw_scores),
                           .refuse_long = !o->truncate};
        if (serve_score(c, m, &s)) {
            cli_json j = serve_answer_open(c);
            if (list)
                cli_json_array(&j, NULL);
            for (int64_t i = 0; i < q.n; i++)
                serve_labels_write(&labels, &j, NULL, s.scores + i * labels.n);
            serve_answer_close(c, &j);
        }
        serve_scoring_free(&s);
    }
    free_sequences(&q);
}

/* ---- Infinity ---- */

/* Writes the labels of n texts or images, whose scores are [n, labels->n]. */
static void write_classes(serve_call *c, const serve_model *m, const serve_labels *labels, int64_t n,
                          const float *scores, int64_t tokens, int64_t truncated)
{
    cli_json j = serve_answer_open(c);
    cli_json_object(&j, NULL);
    cli_json_string(&j, "object", "classify");
    cli_json_array(&j, "data");
    for (int64_t i = 0; i < n; i++)
        serve_labels_write(labels, &j, NULL, scores + i * labels->n);
    cli_json_end(&j);
    cli_json_string(&j, "model", m->id);
    if (tokens > 0)
        serve_usage_write(&j, tokens, truncated);
    serve_answer_close(c, &j);
}

static void classify_texts(serve_call *c, const classify_fields *o)
{
    serve_model *m = serve_call_model(c, o->model, ATT_SUBJECT_CLASSIFIER);
    if (!m)
        return;
    const serve_labels labels = labels_of(m, o->top_k);
    serve_scoring s = {.field = "input",
                       .n = o->input.n,
                       .text = o->input.text,
                       .bytes = o->input.bytes,
                       .activation = activation_of(m, o->raw_scores)};
    if (serve_score(c, m, &s))
        write_classes(c, m, &labels, s.n, s.scores, s.tokens, s.truncated);
    serve_scoring_free(&s);
}

static const char *class_of(const void *model, int64_t i) { return att_image_model_label(model, i); }

static void classify_images(serve_call *c, const classify_fields *o)
{
    serve_model *m = serve_call_model(c, o->model, ATT_SUBJECT_VISION);
    serve_images images = {0};
    if (!m)
        return;
    const void *model = att_any_model_as(m->opened, ATT_SUBJECT_VISION);
    const serve_labels labels = {
        .model = model, .name = class_of, .n = att_image_model_classes(model), .top = o->top_k};
    float *scores = serve_images_read(c, "image", &o->image, &images) ? serve_classify_images(c, m, &images) : NULL;
    if (scores)
        write_classes(c, m, &labels, images.n, scores, 0, 0);
    free(scores);
    serve_images_free(c, &images);
}

static void answer_classify(serve_call *c, void *fields)
{
    const classify_fields *o = fields;
    if (!o->input.text == !o->image.text)
        serve_refuse(c, 400, "input", "one of input and image is needed");
    else if (o->image.text && o->raw_scores)
        serve_refuse(c, 400, "raw_scores", "raw_scores: scores of images are probabilities");
    else if (o->image.text)
        classify_images(c, o);
    else
        classify_texts(c, o);
}

#define LABELS "[{\"label\": \"string\", \"score\": \"number\"}]"
#define CLASSES                                                                                                        \
    "{\"object\": \"string\", \"data\": [" LABELS                                                                      \
    "], \"model\": \"string\", \"usage?\": {\"prompt_tokens\": \"integer\", \"total_tokens\": \"integer\", "           \
    "\"truncated\": \"integer\"}}"

const serve_route serve_route_predict = {.method = "POST",
                                         .path = "/predict",
                                         .answers = "{\"|\": [" LABELS ", [" LABELS "]]}",
                                         .summary = "Labels of texts or pairs of texts, as TEI's",
                                         .fields = predict_table,
                                         .size = sizeof(predict_fields),
                                         .run = answer_predict,
                                         .errors = SERVE_ERRORS_FLAT};
const serve_route serve_route_classify = {.method = "POST",
                                          .path = "/classify",
                                          .answers = CLASSES,
                                          .summary = "Labels of texts, as Infinity's, or of images",
                                          .fields = classify_table,
                                          .size = sizeof(classify_fields),
                                          .run = answer_classify,
                                          .form = true};
