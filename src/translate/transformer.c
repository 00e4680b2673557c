/* The Transformer of Vaswani et al. 2017 in the format of the class MarianMTModel. */
#include "translate/transformer.h"
#include "decoder/transformer_decoder.h"

#include <stdio.h>
#include <string.h>

struct att_transformer {
    att_encoder_decoder base;
    att_marian_config config;
    att_param *source;                    /* table */
    const att_nn_encoder_layer **encoder; /* [config.encoder.layers] */
    att_transformer_decoder decoder;
};

/* The names of parameters, in attend and in the class MarianMTModel. */
#define LINEAR ATT_CHECKPOINT_LINEAR
#define NORM(ours, theirs)                                                                                             \
    {ours ".weight", theirs ".weight"}, { ours ".bias", theirs ".bias" }
static const att_checkpoint_name names[] = {
    {"shared.weight", "shared.weight"},
    {"source.weight", "encoder.embed_tokens.weight"},
    {"target.weight", "decoder.embed_tokens.weight"},
    {"output.weight", "lm_head.weight"},
    {"output.bias", "final_logits_bias"},
    LINEAR("encoder.*.attention.query", "encoder.layers.*.self_attn.q_proj"),
    LINEAR("encoder.*.attention.key", "encoder.layers.*.self_attn.k_proj"),
    LINEAR("encoder.*.attention.value", "encoder.layers.*.self_attn.v_proj"),
    LINEAR("encoder.*.attention.output", "encoder.layers.*.self_attn.out_proj"),
    NORM("encoder.*.attention_norm", "encoder.layers.*.self_attn_layer_norm"),
    LINEAR("encoder.*.feed_forward.inner", "encoder.layers.*.fc1"),
    LINEAR("encoder.*.feed_forward.outer", "encoder.layers.*.fc2"),
    NORM("encoder.*.feed_forward_norm", "encoder.layers.*.final_layer_norm"),
    LINEAR("decoder.*.attention.query", "decoder.layers.*.self_attn.q_proj"),
    LINEAR("decoder.*.attention.key", "decoder.layers.*.self_attn.k_proj"),
    LINEAR("decoder.*.attention.value", "decoder.layers.*.self_attn.v_proj"),
    LINEAR("decoder.*.attention.output", "decoder.layers.*.self_attn.out_proj"),
    NORM("decoder.*.attention_norm", "decoder.layers.*.self_attn_layer_norm"),
    LINEAR("decoder.*.cross.query", "decoder.layers.*.encoder_attn.q_proj"),
    LINEAR("decoder.*.cross.key", "decoder.layers.*.encoder_attn.k_proj"),
    LINEAR("decoder.*.cross.value", "decoder.layers.*.encoder_attn.v_proj"),
    LINEAR("decoder.*.cross.output", "decoder.layers.*.encoder_attn.out_proj"),
    NORM("decoder.*.cross_norm", "decoder.layers.*.encoder_attn_layer_norm"),
    LINEAR("decoder.*.feed_forward.inner", "decoder.layers.*.fc1"),
    LINEAR("decoder.*.feed_forward.outer", "decoder.layers.*.fc2"),
    NORM("decoder.*.feed_forward_norm", "decoder.layers.*.final_layer_norm"),
    {0},
};
/* Tensors of some checkpoints that are not used: positions, which attend computes, and further names of shared
 * tables. */
static const char *const unused[] = {"encoder.embed_positions.",
                                     "decoder.embed_positions.",
                                     "encoder.embed_tokens.",
                                     "decoder.embed_tokens.",
                                     "shared.",
                                     "lm_head.",
                                     NULL};

/* ---- open */

static void make_tables(att_transformer *m)
{
    const att_marian_config *c = &m->config;
    att_model *base = &m->base.model;
    att_nn_params *p = base->params;
    /* In a new model: embeddings have standard deviation 1 after scaling by sqrt(hidden). */
    m->source = att_model_embedding(base, c->share ? "shared" : "source", c->source_vocabulary, c->hidden, c->pad);
    m->decoder = (att_transformer_decoder){.ctx = base->ctx,
                                           .hidden = c->hidden,
                                           .layers = c->decoder.layers,
                                           .heads = c->decoder.heads,
                                           .max_positions = c->max_positions,
                                           .scale_embedding = c->scale_embedding,
                                           .table = m->source};
    if (!c->share)
        m->decoder.table = att_model_embedding(base, "target", c->target_vocabulary, c->hidden, c->pad);
    m->decoder.output.weight = m->decoder.table;
    if (!c->tie)
        m->decoder.output.weight =
            att_nn_params_request(p, "output", "weight", 2, (const int64_t[]){c->target_vocabulary, c->hidden},
                                  ATT_OPTIONS(att_init, .kind = ATT_INIT_XAVIER_UNIFORM));
    if (att_model_has(base, "output.bias"))
        m->decoder.output.bias = att_nn_params_request(p, "output", "bias", 1, &c->target_vocabulary, NULL);
}

static att_status build(att_model *base)
{
    att_transformer *m = (att_transformer *)base;
    att_nn_params *p = base->params;
    const att_marian_config *c = &m->config;
    att_nn_layer_config layer = {.size = sizeof layer, .width = c->hidden, .activation = c->activation, .eps = 1e-5f};
    make_tables(m);
    m->encoder = att_nn_params_alloc(p, (size_t)c->encoder.layers * sizeof *m->encoder);
    m->decoder.layer = att_nn_params_alloc(p, (size_t)c->decoder.layers * sizeof *m->decoder.layer);
    layer.heads = c->encoder.heads, layer.intermediate = c->encoder.intermediate;
    for (int64_t i = 0; m->encoder && i < c->encoder.layers; i++)
        m->encoder[i] = att_nn_encoder_layer_new(p, att_nn_number("encoder", i).text, &layer);
    layer.heads = c->decoder.heads, layer.intermediate = c->decoder.intermediate;
    for (int64_t i = 0; m->decoder.layer && i < c->decoder.layers; i++)
        m->decoder.layer[i] = att_nn_decoder_layer_new(p, att_nn_number("decoder", i).text, &layer);
    return ATT_OK;
}

static att_encoder_decoder_info info_of(const att_marian_config *c)
{
    return (att_encoder_decoder_info){.architecture = att_transformer_architecture.name,
                                      .source_vocabulary = c->source_vocabulary,
                                      .target_vocabulary = c->target_vocabulary,
                                      .max_positions = c->max_positions,
                                      .attention_layers = c->decoder.layers,
                                      .attention_heads = c->decoder.heads,
                                      .pad = c->pad,
                                      .eos = c->eos,
                                      .start = c->start};
}

static void configure(att_model *base, att_settings *s)
{
    att_transformer *m = (att_transformer *)base;
    att_marian_config_read(s, &m->config);
    m->base.info = info_of(&m->config);
}

att_status att_transformer_open(att_ctx *ctx, const char *folder, const att_model_options *options,
                                att_transformer **out)
{
    return att_model_open(ctx, __func__, &att_transformer_architecture.kind, folder, options, out);
}

att_status att_transformer_open_for_training(att_ctx *ctx, const char *folder, const att_trainable_options *options,
                                             att_transformer **out)
{
    return att_model_open_for_training(ctx, __func__, &att_transformer_architecture.kind, folder, options, out);
}

att_status att_transformer_new(att_ctx *ctx, const att_marian_config *config, uint64_t seed, att_transformer **out)
{
    att_settings s;
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"config", config}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    att_settings_from_json(&s, ctx, "transformer", att_marian_config_json(config));
    const att_status e = att_model_new(ctx, &att_transformer_architecture.kind, &s, seed, out);
    att_settings_close(&s);
    return e;
}

void att_transformer_free(att_transformer *m) { att_model_free(m); }

att_status att_transformer_describe(const att_transformer *m, att_transformer_info *info)
{
    if (att_require(__func__, ATT_NAMED({"m", m}, {"info", info})))
        return ATT_ERR_ARGUMENT;
    const att_marian_config *c = &m->config;
    const att_transformer_info all = {.source_vocabulary = c->source_vocabulary,
                                      .target_vocabulary = c->target_vocabulary,
                                      .hidden = c->hidden,
                                      .max_positions = c->max_positions,
                                      .encoder_layers = c->encoder.layers,
                                      .encoder_heads = c->encoder.heads,
                                      .encoder_intermediate = c->encoder.intermediate,
                                      .decoder_layers = c->decoder.layers,
                                      .decoder_heads = c->decoder.heads,
                                      .decoder_intermediate = c->decoder.intermediate};
    return att_info_write(info, &all, sizeof all, "att_transformer_info");
}

/* ---- apply */

static att_var *encode(att_tape *t, const att_transformer *m, const int32_t *ids, const int64_t *offsets, int64_t n,
                       const att_nn_dropout *dropout)
{
    if (!att_sequences_fit(t, "source", ids, offsets, n, m->config.max_positions))
        return NULL;
    const att_attention_args args = {.size = sizeof args, .n_sequences = n, .q_offsets = offsets};
    const att_nn_layer_call call = {.size = sizeof call, .args = &args, .dropout = dropout};
    const att_positions at = {.size = sizeof at, .offsets = offsets, .n = n};
    att_scope s = att_scope_begin(t, "encoder");
    att_var *x = att_transformer_embed(t, &m->decoder, m->source, ids, offsets[n], &at, dropout, 1);
    for (int64_t i = 0; i < m->config.encoder.layers; i++) {
        att_scope layer = att_scope_begin(t, att_nn_number("layer", i).text);
        x = att_scope_end(t, layer, att_nn_encoder_layer_apply(t, m->encoder[i], x, &call));
        x = att_scope_reset(t, s, x);
    }
    return att_scope_end(t, s, x);
}

att_var *att_transformer_encode(att_tape *t, const att_transformer *m, const int32_t *ids, const int64_t *offsets,
                                int64_t n)
{
    return att_tape_require(t, "source", ATT_NAMED({"m", m})) ? encode(t, m, ids, offsets, n, NULL) : NULL;
}

static att_var *output(att_tape *t, const att_encoder_decoder *base, att_var *x)
{
    const att_transformer *m = (const att_transformer *)base;
    att_scope s = att_scope_begin(t, "output");
    return att_scope_end(t, s, att_nn_linear_apply(t, &m->decoder.output, x, ATT_ACTIVATION_IDENTITY, NULL));
}

att_var *att_transformer_decode(att_tape *t, const att_transformer *m, att_var *source, const int64_t *source_offsets,
                                const int32_t *ids, const int64_t *offsets, int64_t n)
{
    const att_transformer_memory memory = {.n = n, .offsets = source_offsets, .rows = source};
    if (!att_tape_require(t, "target", ATT_NAMED({"m", m}, {"source", source}, {"source_offsets", source_offsets})))
        return NULL;
    return output(t, &m->base, att_transformer_decoder_apply(t, &m->decoder, &memory, ids, offsets, n, NULL, NULL));
}

/* ---- training */

static att_var *decode(att_tape *t, const att_encoder_decoder *base, const att_sequence_pairs *p, const int32_t *inputs,
                       const att_nn_dropout *of_source, const att_nn_dropout *of_target)
{
    const att_transformer *m = (const att_transformer *)base;
    const att_transformer_memory source = {
        .n = p->n, .offsets = p->source_offsets, .rows = encode(t, m, p->source, p->source_offsets, p->n, of_source)};
    return att_transformer_decoder_apply(t, &m->decoder, &source, inputs, p->target_offsets, p->n, NULL, of_target);
}

static att_status start(const att_encoder_decoder *base, const int32_t *ids, const int64_t *offsets, int64_t n,
                        att_generator *out)
{
    const att_transformer *m = (const att_transformer *)base;
    att_tape *t;
    *out = (att_generator){0};
    att_status e = att_model_tape(&base->model, &t);
    if (e)
        return e;
    const att_transformer_memory source = {
        .n = n, .offsets = offsets, .rows = att_transformer_encode(t, m, ids, offsets, n)};
    e = att_transformer_decoder_start(t, &m->decoder, &source, out);
    att_tape_free(t);
    return e;
}

/* ---- the architecture */

static void trace(const att_encoder_decoder *base, att_trace_pass *pass)
{
    const att_marian_config *c = &((const att_transformer *)base)->config;
    pass->part[pass->parts++] = (att_trace_part){.side = ATT_TRACE_SIDE_ENCODER,
                                                 .layers = c->encoder.layers,
                                                 .heads = c->encoder.heads,
                                                 .head_dim = c->hidden / c->encoder.heads,
                                                 .queries = pass->info.source,
                                                 .keys = pass->info.source,
                                                 .hidden = c->hidden};
    att_transformer_decoder_trace(&((const att_transformer *)base)->decoder, 0, pass);
}

att_encoder_decoder *att_transformer_as_encoder_decoder(att_transformer *m) { return m ? &m->base : NULL; }

static json_t *defaults(int64_t vocabulary)
{
    const att_marian_config c = att_marian_config_default(vocabulary);
    return att_marian_config_json(&c);
}

static json_t *settings(const att_encoder_decoder *m)
{
    return att_marian_config_json(&((const att_transformer *)m)->config);
}

/* Names a parameter as the class does: all except the output layer is inside "model", and the bias has two
 * dimensions. */
static void in_file(const void *user, const char *ours, att_file_tensor *out)
{
    (void)user;
    const bool output = !strncmp(ours, "output.", 7);
    att_tensor *value = &out->value;
    att_checkpoint_translate(names, output ? "" : "model.", ours, out->name);
    if (output && value->rank == 1)
        att_wrap(value, value->data, ATT_F32, ATT_DIMS(1, value->dim[0]), NULL);
}

static const char *const types[] = {ATT_MARIAN_TYPE};
static const att_model_types marian_types = ATT_MODEL_TYPES(types);
const att_architecture att_transformer_architecture = {.kind = {.bytes = sizeof(att_transformer),
                                                                .types = &marian_types,
                                                                .configure = configure,
                                                                .build = build,
                                                                .prepare = att_encoder_decoder_prepare,
                                                                .names = names,
                                                                .prefix = "model.",
                                                                .unused = unused},
                                                       .name = "transformer",
                                                       .settings = settings,
                                                       .defaults = defaults,
                                                       .decode = decode,
                                                       .output = output,
                                                       .start = start,
                                                       .trace = trace,
                                                       .in_file = in_file};
