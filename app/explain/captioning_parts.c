#include "captioning_parts.h"
#include "page.h"

#include "attend_util.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- open */

static att_status check(att_ctx *ctx, const char *folder, const att_caption_model_info *i)
{
    if (strcmp(i->encoder, "cnn") || strcmp(i->decoder, "gru") || strcmp(i->attention, "additive") || i->layers != 1)
        return att_fail(
            ctx, ATT_ERR_UNSUPPORTED,
            "%s: the chapter reads captioners with encoder \"cnn\", decoder \"gru\" of 1 layer and attention "
            "\"additive\", not \"%s\", \"%s\" of %" PRId64 " and \"%s\"",
            folder, i->encoder, i->decoder, i->layers, i->attention);
    if (i->grid[0] > CAPTIONING_MAX_GRID || i->grid[1] > CAPTIONING_MAX_GRID)
        return att_fail(ctx, ATT_ERR_UNSUPPORTED,
                        "%s has a grid of %" PRId64 " x %" PRId64 "; the chapter shows no more than %d x %d", folder,
                        i->grid[0], i->grid[1], CAPTIONING_MAX_GRID, CAPTIONING_MAX_GRID);
    if (i->max_words > CAPTIONING_MAX_WORDS)
        return att_fail(ctx, ATT_ERR_UNSUPPORTED,
                        "%s writes captions of up to %" PRId64 " words; the chapter shows no more than %d", folder,
                        i->max_words, CAPTIONING_MAX_WORDS);
    return ATT_OK;
}

static int64_t integer(const json_t *config, const char *key)
{
    return json_integer_value(json_object_get(config, key));
}

/* Reads the settings that att_caption_model_info lacks. The model has been opened, so the file is valid. */
static att_status read_settings(att_ctx *ctx, const char *folder, captioning_parts *m)
{
    json_t *config;
    const att_status opened = page_config(ctx, folder, &config);
    if (opened)
        return opened;
    const json_t *channels = json_object_get(config, "channels");
    for (; m->stages < CAPTIONING_MAX_STAGES && m->stages < (int64_t)json_array_size(channels); m->stages++)
        m->channels[m->stages] = json_integer_value(json_array_get(channels, (size_t)m->stages));
    m->vocabulary = integer(config, "vocab_size");
    m->embedding = integer(config, "embedding_size");
    m->end = integer(config, "eos_token_id");
    json_decref(config);
    return ATT_OK;
}

static void request_stage(captioning_parts *m, int64_t i)
{
    const att_nn_name stage = att_nn_number("encoder", i);
    for (int k = 0; k < 2; k++) {
        char conv[] = "conv0", norm[] = "norm0";
        conv[4] = norm[4] = (char)('0' + k);
        const int64_t in = k ? m->channels[i] : i ? m->channels[i - 1] : m->info.channels;
        m->stage[i].conv[k] = att_nn_conv_new(m->params, att_nn_join(stage.text, conv).text,
                                              ATT_OPTIONS(att_nn_conv_config, .in = in, .out = m->channels[i],
                                                          .kernel = {3, 3}, .padding = {1, 1}, .no_bias = true));
        m->stage[i].norm[k] = att_nn_batch_norm_new(m->params, att_nn_join(stage.text, norm).text, m->channels[i], 0);
    }
}

static void request(captioning_parts *m)
{
    att_nn_params *p = m->params;
    const int64_t d = m->info.hidden, table[] = {m->vocabulary, m->embedding};
    for (int64_t i = 0; i < m->stages; i++)
        request_stage(m, i);
    m->project = att_nn_linear_new(p, "project", m->info.features, d, NULL);
    m->bridge = att_nn_linear_new(p, "bridge.0", d, d, NULL);
    m->query = att_nn_linear_new(p, "attention.query", d, d, ATT_OPTIONS(att_nn_linear_options, .no_bias = true));
    m->key = att_nn_linear_new(p, "attention.key", d, d, ATT_OPTIONS(att_nn_linear_options, .no_bias = true));
    m->score = att_nn_params_request(p, "attention", "score", 2, (const int64_t[]){1, d}, NULL);
    m->gate = m->info.gate ? att_nn_linear_new(p, "attention.gate", d, 1, NULL) : NULL;
    m->decoder = att_nn_recurrent_new(
        p, "decoder", ATT_OPTIONS(att_nn_recurrent_config, .in = m->embedding + d, .units = d, .layers = 1));
    m->readout = att_nn_linear_new(p, "readout", 2 * d, m->embedding, NULL);
    m->output.weight = att_nn_params_request(p, "target", "weight", 2, table, NULL);
    m->output.bias = att_nn_params_request(p, "output", "bias", 1, &m->vocabulary, NULL);
}

att_status captioning_parts_open(att_ctx *ctx, const char *folder, const att_caption_model *model, captioning_parts *m)
{
    char path[sizeof(att_model_path) + sizeof "/model.safetensors"];
    *m = (captioning_parts){.info = {.size = sizeof m->info}};
    att_status e = att_caption_model_describe(model, &m->info);
    e = e ? e : check(ctx, folder, &m->info);
    e = e ? e : read_settings(ctx, folder, m);
    e = e ? e : att_image_processor_open(ctx, folder, &m->processor);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    e = e ? e : att_safetensors_open(ctx, path, &m->file);
    e = e ? e
          : att_nn_params_new(
                ctx, /* trainable: in f32 */
                ATT_OPTIONS(att_nn_params_config, .load = att_safetensors_load, .user = m->file, .trainable = true),
                &m->params);
    if (e)
        return e;
    m->grid[0] = m->info.grid[0], m->grid[1] = m->info.grid[1], m->locations = m->grid[0] * m->grid[1];
    request(m);
    return att_nn_params_status(m->params);
}

void captioning_parts_free(captioning_parts *m)
{
    att_nn_params_free(m->params);
    att_safetensors_free(m->file);
    att_image_processor_free(m->processor);
}

/* ---- write */

/* The results of attention for a word. */
typedef struct captioning_context {
    att_var *e, *a; /* scores, weights [1, locations] */
    att_var *c;     /* with the gate [1, hidden] */
    att_var *gate;  /* [1, 1], or NULL */
} captioning_context;

/* h [locations, hidden], state [1, hidden]: that before the word */
static captioning_context attend(att_tape *t, const captioning_parts *m, att_var *h, att_var *state)
{
    captioning_context x = {0};
    att_var *q = att_nn_linear_apply(t, m->query, state, ATT_ACTIVATION_IDENTITY, NULL);
    att_var *k = att_nn_linear_apply(t, m->key, h, ATT_ACTIVATION_IDENTITY, NULL);
    x.e = att_matmul(t, att_parameter(t, m->score), att_activate(t, att_add(t, k, q), ATT_ACTIVATION_TANH),
                     ATT_OPTIONS(att_matmul_options, .transpose_b = true));
    x.a = att_softmax(t, x.e);
    x.c = att_matmul(t, x.a, h, NULL);
    if (m->gate) {
        x.gate = att_nn_linear_apply(t, m->gate, state, ATT_ACTIVATION_SIGMOID, NULL);
        x.c = att_mul(t, x.c, x.gate);
    }
    return x;
}

/* Computes the state after a word: c [1, hidden], before: the word before it. */
static att_var *step(att_tape *t, const captioning_parts *m, att_var *c, int32_t before, att_var *state)
{
    static const int64_t one[] = {0, 1};
    const att_recurrent_state initial = {.hidden = state};
    att_var *w = att_scale(t, att_embedding(t, m->output.weight, &before, 1), sqrtf((float)m->embedding));
    return att_nn_recurrent_apply(t, m->decoder, att_concat(t, 2, (att_var *[]){w, c}, 1), one, 1, &initial, NULL,
                                  NULL);
}

static att_status copy(att_tape *t, const att_var *from, float *to, int64_t count)
{
    att_tensor v;
    const att_status e = att_var_value(t, from, &v);
    if (!e)
        memcpy(to, v.data, (size_t)count * sizeof *to);
    return e;
}

att_status captioning_write(att_tape *t, const captioning_parts *m, const att_tensor *h, const int32_t *ids, int64_t n,
                            const captioning_record *r)
{
    const int64_t d = m->info.hidden;
    att_var *grid = att_constant(t, h);
    att_var *mean = att_reshape(t, att_mean(t, grid, 0), 2, (const int64_t[]){1, -1});
    att_var *s = att_nn_linear_apply(t, m->bridge, mean, ATT_ACTIVATION_TANH, NULL);
    att_status e = ATT_OK;
    for (int64_t i = 0; i < n && !e; i++) {
        const captioning_context x = attend(t, m, grid, s);
        e = copy(t, s, r->s + i * d, d);
        e = e ? e : copy(t, x.e, r->e + i * m->locations, m->locations);
        e = e ? e : copy(t, x.a, r->a + i * m->locations, m->locations);
        r->gate[i] = 1;
        e = e || !x.gate ? e : copy(t, x.gate, r->gate + i, 1);
        s = step(t, m, x.c, i ? ids[i - 1] : (int32_t)m->end, s);
    }
    att_tape_reset(t);
    return e;
}

void captioning_mirror(const captioning_parts *m, const float *a, int64_t width, float *out)
{
    const int64_t columns = m->grid[1];
    for (int64_t i = 0; i < m->locations; i++) {
        const int64_t from = i / columns * columns + columns - 1 - i % columns;
        memcpy(out + i * width, a + from * width, (size_t)width * sizeof *a);
    }
}
