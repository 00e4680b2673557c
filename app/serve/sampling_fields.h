/* The fields of requests for texts: how tokens are chosen, where a text ends, and what is told about it. */
#ifndef SERVE_SAMPLING_FIELDS_H
#define SERVE_SAMPLING_FIELDS_H

#include "generate_work.h"

#include <math.h>

enum { SERVE_CHOICES = 64, SERVE_TOP_LOGPROBS = 20 }; /* texts of a prompt; alternatives of a token */

/* A negative number was not given; a penalty of 0 is none. */
typedef struct serve_sampling_fields {
    double temperature, top_p, min_p, repetition_penalty, presence_penalty, frequency_penalty;
    int64_t top_k, seed, n, max_tokens;
    const json_t *stop, *logit_bias, *stream_options;
    bool stream, ignore_eos;
} serve_sampling_fields;

/* clang-format off */
/* type: of the route's struct, which has a serve_sampling_fields called `sampling`. */
#define SERVE_SAMPLING_FIELD(type, name) offsetof(type, sampling) + offsetof(serve_sampling_fields, name)
#define SERVE_SAMPLING_FIELDS(type)                                                                                    \
    {"temperature", SERVE_NUMBER, SERVE_SAMPLING_FIELD(type, temperature), .max = 1e6, .usual = -1,                    \
     .help = "divides the logits; 0: the most probable token each time; default: as the model's "                      \
             "generation_config.json states"},                                                                         \
    {"top_p", SERVE_NUMBER, SERVE_SAMPLING_FIELD(type, top_p), .max = 1, .usual = -1,                                  \
     .help = "only the most probable tokens whose probabilities sum to this"},                                         \
    {"top_k", SERVE_INTEGER, SERVE_SAMPLING_FIELD(type, top_k), .min = -1, .max = INT32_MAX, .usual = -2,              \
     .help = "only this many most probable tokens; 0 or -1: all"},                                                     \
    {"min_p", SERVE_NUMBER, SERVE_SAMPLING_FIELD(type, min_p), .max = 1, .usual = -1,                                  \
     .help = "only tokens with at least this share of the largest probability"},                                       \
    {"repetition_penalty", SERVE_NUMBER, SERVE_SAMPLING_FIELD(type, repetition_penalty), .min = 1e-3, .max = 1e3,      \
     .usual = -1, .help = "makes tokens that occurred less probable, the prompt's as well; 1: off"},                   \
    {"presence_penalty", SERVE_NUMBER, SERVE_SAMPLING_FIELD(type, presence_penalty), .min = -2, .max = 2,              \
     .help = "is subtracted from the logits of tokens that were generated"},                                           \
    {"frequency_penalty", SERVE_NUMBER, SERVE_SAMPLING_FIELD(type, frequency_penalty), .min = -2, .max = 2,            \
     .help = "is subtracted from the logits of tokens for each time that they were generated"},                        \
    {"logit_bias", SERVE_JSON, SERVE_SAMPLING_FIELD(type, logit_bias), .words = "{\"*\": \"number\"}",                                                 \
     .help = "object: ids of tokens, and what is added to their logits, from -100 to 100"},                            \
    {"seed", SERVE_INTEGER, SERVE_SAMPLING_FIELD(type, seed), .min = -1, .max = 0x1p53, .usual = -1,                   \
     .help = "of the random tokens: the same seed gives the same text; -1: another one each time"},                    \
    {"n", SERVE_INTEGER, SERVE_SAMPLING_FIELD(type, n), .min = 1, .max = SERVE_CHOICES, .usual = 1,                    \
     .help = "texts of each prompt"},                                                                                  \
    {"stop", SERVE_JSON, SERVE_SAMPLING_FIELD(type, stop), .words = "{\"|\": [\"string\", [\"string\"]]}",                                                             \
     .help = "a text ends before this string, or one of at most four"},                                                \
    {"ignore_eos", SERVE_BOOL, SERVE_SAMPLING_FIELD(type, ignore_eos),                                                 \
     .help = "continue after the model's end token"},                                                                  \
    {"stream", SERVE_BOOL, SERVE_SAMPLING_FIELD(type, stream),                                                         \
     .help = "send tokens as they are generated, as events of text/event-stream"},                                     \
    {"stream_options", SERVE_JSON, SERVE_SAMPLING_FIELD(type, stream_options), .words = "{\"include_usage?\": \"boolean\", \"*\": \"any\"}",                                         \
     .help = "object: include_usage, to send the counts of tokens at the end of a stream"},                            \
    {"user", SERVE_IGNORED, .help = "who asks; nothing is stored"}
/* clang-format on */

/* Reads them for a model. *out is freed by serve_sampling_free. Returns false: the request was refused. */
bool serve_sampling_read(serve_call *c, const serve_model *m, const serve_sampling_fields *f, serve_sampling **out);
/* Checks for how many alternatives of each token a field asks: not without log probabilities, and of a model with as
 * many tokens. Returns false: the request was refused. */
bool serve_top_check(serve_call *c, const serve_model *m, const char *field, bool logprobs, int64_t top);
/* Reads stream_options.include_usage; false: the request was refused. */
bool serve_usage_read(serve_call *c, const serve_sampling_fields *f, bool *usage);

#endif
