#include "sampling_fields.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* ---- stop strings ---- */

static bool add_stop(serve_call *c, serve_sampling *s, const json_t *value)
{
    const char *text = json_string_value(value);
    if (!text || !*text || strlen(text) != json_string_length(value)) {
        serve_refuse(c, 400, "stop", "stop: is not a string, or a list of at most %d, that are not empty", SERVE_STOPS);
        return false;
    }
    char *copy = strdup(text);
    if (!copy)
        serve_refuse(c, 503, NULL, "out of memory");
    else
        s->stop[s->options.n_stop++] = copy;
    return copy;
}

static bool read_stop(serve_call *c, const json_t *stop, serve_sampling *s)
{
    if (!json_is_array(stop))
        return !stop || add_stop(c, s, stop);
    if (json_array_size(stop) > SERVE_STOPS) {
        serve_refuse(c, 400, "stop", "stop: has %zu strings, but there can be at most %d", json_array_size(stop),
                     SERVE_STOPS);
        return false;
    }
    for (size_t i = 0; i < json_array_size(stop); i++)
        if (!add_stop(c, s, json_array_get(stop, i)))
            return false;
    return true;
}

/* ---- biases ---- */

static bool read_one_bias(serve_call *c, const serve_model *m, const char *key, const json_t *value, att_logit_bias *to)
{
    char *end;
    const long long id = strtoll(key, &end, 10), size = (long long)m->info.language.vocabulary;
    const double x = json_number_value(value);
    if (*key < '0' || *key > '9' || *end || id >= size) {
        serve_refuse(c, 400, "logit_bias", "logit_bias: \"%.40s\" is not the id of a token of %s, from 0 to %lld", key,
                     m->id, size - 1);
        return false;
    }
    if (!json_is_number(value) || !(x >= -100 && x <= 100)) {
        serve_refuse(c, 400, "logit_bias", "logit_bias: the value of %lld is not a number from -100 to 100", id);
        return false;
    }
    *to = (att_logit_bias){(int32_t)id, (float)x};
    return true;
}

static bool read_bias(serve_call *c, const serve_model *m, const json_t *bias, serve_sampling *s)
{
    const char *key;
    json_t *value;
    const size_t n = json_object_size(bias);
    if (!bias)
        return true;
    if (!json_is_object(bias) || (int64_t)n >= m->info.language.vocabulary) {
        serve_refuse(c, 400, "logit_bias", "logit_bias: is not an object with ids of tokens, fewer than the model has");
        return false;
    }
    s->bias = calloc(n + 1, sizeof *s->bias);
    if (!s->bias) {
        serve_refuse(c, 503, NULL, "out of memory");
        return false;
    }
    json_object_foreach((json_t *)bias, key,
                        value) if (!read_one_bias(c, m, key, value, &s->bias[s->sampling.n_bias++])) return false;
    s->sampling.bias = s->bias;
    return true;
}

/* ---- numbers ---- */

static float or_else(double given, float usual) { return given >= 0 ? (float)given : usual; }

/* Changes the model's settings by what was given. A number that sampling alone has asks for it. */
static void change(const serve_sampling_fields *f, att_sampling *s)
{
    const bool asked = f->temperature > 0 || f->top_k > 0 || f->top_p >= 0 || f->min_p > 0;
    s->sample = (asked || s->sample) && f->temperature != 0;
    s->temperature = or_else(f->temperature, s->temperature);
    s->top_k = f->top_k >= -1 ? (f->top_k > 0 ? f->top_k : 0) : s->top_k;
    s->top_p = f->top_p == 0 ? 1e-9f : or_else(f->top_p, s->top_p); /* the most probable token; 0 is 1 there */
    s->min_p = or_else(f->min_p, s->min_p);
    s->repetition_penalty = or_else(f->repetition_penalty, s->repetition_penalty);
    s->presence_penalty = (float)f->presence_penalty;
    s->frequency_penalty = (float)f->frequency_penalty;
}

static uint64_t choose_seed(int64_t given)
{
    uint64_t seed = 0;
    if (given >= 0)
        return (uint64_t)given;
    return getrandom(&seed, sizeof seed, 0) == sizeof seed ? seed : 0;
}

static bool read_numbers(serve_call *c, const serve_model *m, const serve_sampling_fields *f, serve_sampling *s)
{
    const int64_t usual = m->session_tokens / 8;
    s->sampling.size = sizeof s->sampling;
    if (f->temperature > 0 && f->temperature < 1e-6) {
        serve_refuse(c, 400, "temperature", "temperature: %g is neither 0 nor from 1e-6 to 1e6", f->temperature);
        return false;
    }
    if (att_text_generator_sampling(att_any_model_as(m->opened, ATT_SUBJECT_LANGUAGE), &s->sampling)) {
        serve_refuse(c, 500, NULL, "%s", att_error(m->ctx));
        return false;
    }
    change(f, &s->sampling);
    s->options = (att_generate_options){.size = sizeof s->options,
                                        .max_tokens = f->max_tokens > 0 ? f->max_tokens
                                                      : usual > 0       ? usual
                                                                        : 1,
                                        .sampling = &s->sampling,
                                        .seed = choose_seed(f->seed),
                                        .stop = (const char *const *)s->stop,
                                        .ignore_eos = f->ignore_eos};
    return true;
}

bool serve_sampling_read(serve_call *c, const serve_model *m, const serve_sampling_fields *f, serve_sampling **out)
{
    serve_sampling *s = *out = calloc(1, sizeof *s);
    if (!s) {
        serve_refuse(c, 503, NULL, "out of memory");
        return false;
    }
    return read_numbers(c, m, f, s) && read_bias(c, m, f->logit_bias, s) && read_stop(c, f->stop, s);
}

bool serve_top_check(serve_call *c, const serve_model *m, const char *field, bool logprobs, int64_t top)
{
    const int64_t tokens = m->info.language.vocabulary;
    if (top > 0 && !logprobs)
        serve_refuse(c, 400, field, "%s: needs logprobs: true", field);
    else if (top > tokens)
        serve_refuse(c, 400, field, "%s: %lld is more than the %lld tokens of %s", field, (long long)top,
                     (long long)tokens, m->id);
    else
        return true;
    return false;
}

bool serve_usage_read(serve_call *c, const serve_sampling_fields *f, bool *usage)
{
    const json_t *o = f->stream_options, *include = json_object_get(o, "include_usage");
    *usage = json_is_true(include);
    if (!o || (json_is_object(o) && (!include || json_is_boolean(include))))
        return true;
    serve_refuse(c, 400, "stream_options", "stream_options: is not an object with include_usage: true or false");
    return false;
}
