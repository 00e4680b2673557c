/* The recurrent encoder-decoder: with a fixed context (Cho et al. 2014), with additive attention (Bahdanau et al.
 * 2015), or with dot or general attention (Luong et al. 2015).
 *
 * The encoder's outputs h_j are keys and values of the attention. Its last states, after a layer tanh(W h), are the
 * decoder's initial states; the last one is the fixed context. recurrent_decoder.h has the decoder. */
#include "translate/seq2seq.h"
#include "translate/seq2seq_config.h"

#include <math.h>
#include <string.h>

/* ---- open */

static att_status build(att_model *base)
{
    att_seq2seq *m = (att_seq2seq *)base;
    const att_seq2seq_config *c = &m->config;
    const att_nn_recurrent_config layers = {.size = sizeof layers,
                                            .in = c->embedding,
                                            .units = c->bidirectional ? c->units / 2 : c->units,
                                            .layers = c->layers,
                                            .bidirectional = c->bidirectional,
                                            .lstm = c->lstm};
    m->source = att_model_embedding(base, c->share ? "shared" : "source", c->source_vocabulary, c->embedding, c->pad);
    m->encoder = att_nn_recurrent_new(base->params, "encoder", &layers);
    const att_recurrent_decoder_config decoder = {.vocabulary = c->target_vocabulary,
                                                  .embedding = c->embedding,
                                                  .units = c->units,
                                                  .layers = c->layers,
                                                  .attention = c->attention,
                                                  .lstm = c->lstm,
                                                  .scale_embedding = c->scale_embedding,
                                                  .tie = c->tie,
                                                  .table = c->share ? m->source : NULL,
                                                  .pad = c->pad};
    return att_recurrent_decoder_build(&m->decoder, base, &decoder);
}

static att_encoder_decoder_info info_of(const att_seq2seq_config *c)
{
    const int attends = c->attention != ATT_SEQ2SEQ_NONE;
    return (att_encoder_decoder_info){.architecture = att_seq2seq_architecture.name,
                                      .source_vocabulary = c->source_vocabulary,
                                      .target_vocabulary = c->target_vocabulary,
                                      .max_positions = c->max_positions,
                                      .attention_layers = attends,
                                      .attention_heads = attends,
                                      .pad = c->pad,
                                      .eos = c->eos,
                                      .start = c->start};
}

static void configure(att_model *base, att_settings *s)
{
    att_seq2seq *m = (att_seq2seq *)base;
    base->unquantized = "recurrent layers";
    m->config.size = sizeof m->config;
    att_seq2seq_config_read(s, &m->config);
    m->base.info = info_of(&m->config);
}

static void free_seq2seq(att_model *base) { att_recurrent_decoder_clean(&((att_seq2seq *)base)->decoder); }

att_status att_seq2seq_open(att_ctx *ctx, const char *folder, const att_model_options *options, att_seq2seq **out)
{
    return att_model_open(ctx, __func__, &att_seq2seq_architecture.kind, folder, options, out);
}

att_status att_seq2seq_open_for_training(att_ctx *ctx, const char *folder, const att_trainable_options *options,
                                         att_seq2seq **out)
{
    return att_model_open_for_training(ctx, __func__, &att_seq2seq_architecture.kind, folder, options, out);
}

att_status att_seq2seq_new(att_ctx *ctx, const att_seq2seq_config *config, uint64_t seed, att_seq2seq **out)
{
    att_settings s;
    att_seq2seq_config c;
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"config", config}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    att_status e = att_options_read(&c, sizeof c, config, "att_seq2seq_config");
    if (!e && (unsigned)c.attention > ATT_SEQ2SEQ_GENERAL)
        e = att_fail(ctx, ATT_ERR_ARGUMENT, "seq2seq: %d is not an attention", (int)c.attention);
    if (e)
        return e;
    att_settings_from_json(&s, ctx, "seq2seq", att_seq2seq_config_json(&c));
    e = att_model_new(ctx, &att_seq2seq_architecture.kind, &s, seed, out);
    att_settings_close(&s);
    return e;
}

void att_seq2seq_free(att_seq2seq *m) { att_model_free(m); }

att_status att_seq2seq_describe(const att_seq2seq *m, att_seq2seq_config *config)
{
    if (att_require(__func__, ATT_NAMED({"m", m}, {"config", config})))
        return ATT_ERR_ARGUMENT;
    return att_info_write(config, &m->config, sizeof m->config, "att_seq2seq_config");
}

/* ---- encoder */

/* The dropout layers, besides those between recurrent layers and those of the decoder. */
typedef enum dropout_layer { OF_SOURCE = 1, OF_OUTPUTS = 3 } dropout_layer;

static bool check(att_tape *t, const char *what, const int32_t *ids, const int64_t *offsets, int64_t n,
                  int64_t max_positions)
{
    if (!att_sequences_fit(t, what, ids, offsets, n, max_positions))
        return false;
    if (n == 0)
        att_tape_fail(t, ATT_ERR_ARGUMENT, "%s: there is no sequence", what);
    for (int64_t i = 0; i < n; i++)
        if (offsets[i] == offsets[i + 1]) {
            att_tape_fail(t, ATT_ERR_ARGUMENT, "%s: sequence %lld has no tokens", what, (long long)i);
            return false;
        }
    return n > 0;
}

/* Concatenates the results of both directions of an encoder layer: [n, units] */
static att_var *joined(att_tape *t, int64_t directions, att_var *forward, att_var *backward)
{
    return directions == 2 ? att_concat(t, 2, (att_var *[]){forward, backward}, 1) : forward;
}

/* Encodes ids [offsets[n]] with offsets [n + 1]. dropout NULL: none. */
static att_decoder_memory encode(att_tape *t, const att_seq2seq *m, const int32_t *ids, const int64_t *offsets,
                                 int64_t n, const att_nn_dropout *dropout)
{
    const int64_t layers = m->config.layers, directions = m->encoder->directions;
    att_recurrent_state last[ATT_NN_MAX_RECURRENT];
    if (!check(t, "source", ids, offsets, n, m->config.max_positions))
        return (att_decoder_memory){.n = n, .offsets = offsets};
    att_scope s = att_scope_begin(t, "encoder/embeddings");
    att_var *x = att_embedding(t, m->source, ids, offsets[n]);
    x = m->config.scale_embedding ? att_scale(t, x, sqrtf((float)m->config.embedding)) : x;
    x = att_scope_end(t, s, att_nn_dropout_apply(t, dropout, OF_SOURCE, x, NULL));
    att_var *h = att_nn_recurrent_apply(t, m->encoder, x, offsets, n, NULL, last, dropout);
    h = att_nn_dropout_apply(t, dropout, OF_OUTPUTS, h, NULL);
    for (int64_t i = 0; i < layers; i++) { /* after the last step */
        const att_recurrent_state *forward = &last[i * directions], *backward = forward + directions - 1;
        last[i] =
            (att_recurrent_state){.hidden = joined(t, directions, forward->hidden, backward->hidden),
                                  .cell = m->config.lstm ? joined(t, directions, forward->cell, backward->cell) : NULL};
    }
    return att_recurrent_decoder_memory(t, &m->decoder, h, offsets, n, last);
}

/* ---- targets */

static att_var *decode(att_tape *t, const att_encoder_decoder *base, const att_sequence_pairs *p, const int32_t *inputs,
                       const att_nn_dropout *of_source, const att_nn_dropout *of_target)
{
    const att_seq2seq *m = (const att_seq2seq *)base;
    if (!check(t, "target", p->target, p->target_offsets, p->n, m->config.max_positions))
        return NULL;
    const att_decoder_memory source = encode(t, m, p->source, p->source_offsets, p->n, of_source);
    const att_decoder_teacher teacher = {.inputs = inputs, .dropout = of_target};
    return att_recurrent_decoder_apply(t, &m->decoder, &source, &teacher);
}

static att_var *output(att_tape *t, const att_encoder_decoder *m, att_var *x)
{
    return att_nn_linear_apply(t, &((const att_seq2seq *)m)->decoder.output, x, ATT_ACTIVATION_IDENTITY, NULL);
}

static att_status start(const att_encoder_decoder *base, const int32_t *ids, const int64_t *offsets, int64_t n,
                        att_generator *out)
{
    const att_seq2seq *m = (const att_seq2seq *)base;
    att_ctx *ctx = base->model.ctx;
    att_tape *t;
    *out = (att_generator){0};
    int64_t *own = att_alloc(ctx, (size_t)n + 1, sizeof *own);
    const att_status e = own ? att_model_tape(&base->model, &t) : ATT_ERR_MEMORY;
    if (e) {
        att_free(ctx, own);
        return e;
    }
    memcpy(own, offsets, (size_t)(n + 1) * sizeof *own);
    const att_decoder_memory source = encode(t, m, ids, own, n, NULL);
    return att_recurrent_decoder_start(&m->decoder, t, &source, own, out);
}

/* ---- the architecture */

att_encoder_decoder *att_seq2seq_as_encoder_decoder(att_seq2seq *m) { return m ? &m->base : NULL; }

static json_t *defaults(int64_t vocabulary)
{
    const att_seq2seq_config c = att_seq2seq_config_default(vocabulary);
    return att_seq2seq_config_json(&c);
}

static void trace(const att_encoder_decoder *m, att_trace_pass *pass)
{
    att_recurrent_decoder_trace(&((const att_seq2seq *)m)->decoder, 0, pass);
}

static json_t *settings(const att_encoder_decoder *m)
{
    return att_seq2seq_config_json(&((const att_seq2seq *)m)->config);
}

static const char *const types[] = {ATT_SEQ2SEQ_TYPE};
static const att_model_types seq2seq_types = ATT_MODEL_TYPES(types);
const att_architecture att_seq2seq_architecture = {.kind = {.bytes = sizeof(att_seq2seq),
                                                            .types = &seq2seq_types,
                                                            .configure = configure,
                                                            .build = build,
                                                            .prepare = att_encoder_decoder_prepare,
                                                            .prefix = "",
                                                            .unused = (const char *const[]){NULL},
                                                            .free = free_seq2seq},
                                                   .name = "rnn",
                                                   .settings = settings,
                                                   .defaults = defaults,
                                                   .decode = decode,
                                                   .output = output,
                                                   .start = start,
                                                   .trace = trace};
