/* Valid layers and what they are applied to, two features wide: for tests/null_fixtures.h, whose give() they use. */
#ifndef NN_FIXTURES_H
#define NN_FIXTURES_H

#include "attend_nn.h"

static void give(const char *of, const void *value);
static void need(att_status s);

static att_status fixture_load(void *user, const char *name, int rank, const int64_t *dim, att_tensor *value)
{
    (void)name;
    return att_wrap(value, user, ATT_F32, rank, dim, NULL);
}

static att_status fixture_initialize(void *user, const char *name, const att_init *init, const att_tensor *value)
{
    (void)user, (void)name, (void)init, (void)value;
    return ATT_OK;
}

/* Configurations with all their pointers; the plan has one head of 2. */
static const att_nn_layer_config *give_nn_configs(const att_plan *plan)
{
    static float data[64];
    static att_nn_params_config params = {.size = sizeof params, .load = fixture_load};
    static const att_rotary_options rotary = {.size = sizeof rotary};
    static att_nn_attention_config attention = {.size = sizeof attention, .width = 2, .heads = 1, .rotary = &rotary};
    static att_nn_layer_config layer = {.size = sizeof layer, .width = 2, .heads = 1, .intermediate = 2};
    static const att_nn_recurrent_config recurrent = {.size = sizeof recurrent, .in = 2, .units = 2, .layers = 1};
    static const att_nn_conv_config conv = {.size = sizeof conv, .in = 1, .out = 1, .kernel = {1, 1}};
    static const att_init init = {.size = sizeof init, .value = 1};
    static const att_nn_norm_kind kind = ATT_RMS_NORM;
    static att_plan_parameter_info parameter = {.size = sizeof parameter};
    params.initialize = fixture_initialize;
    params.user = data;
    attention.plan = attention.training_plan = plan;
    layer.attention = layer.cross = &attention;
    give("const att_nn_params_config *", &params);
    give("const att_nn_attention_config *", &attention);
    give("const att_nn_layer_config *", &layer);
    give("const att_nn_recurrent_config *", &recurrent);
    give("const att_nn_conv_config *", &conv);
    give("const att_init *", &init);
    give("att_plan_parameter_info *", &parameter);
    give("att_nn_norm_kind", &kind);
    return &layer;
}

/* What layers are applied to: x of the tape, its sequence, positions and dropout. */
static void give_nn_calls(att_var *source, const int64_t *offsets, const uint32_t *ids)
{
    static att_attention_args args = {.size = sizeof args, .n_sequences = 1};
    static att_positions at = {.size = sizeof at, .n = 1};
    static att_nn_dropout dropout = {.size = sizeof dropout, .p = 0.1f, .at = &at};
    static att_nn_attention_call attention = {.size = sizeof attention, .args = &args, .positions = &at};
    static att_nn_layer_call layer = {.size = sizeof layer, .args = &args, .cross = &args, .positions = &at};
    args.q_offsets = at.offsets = offsets;
    dropout.sequence_ids = ids;
    attention.dropout = layer.dropout = &dropout;
    attention.source = attention.residual = layer.source = source;
    static const att_recurrent_state zeros;
    give("const att_recurrent_state *", &zeros);
    give("const att_nn_dropout *", &dropout);
    give("const att_nn_attention_call *", &attention);
    give("const att_nn_layer_call *", &layer);
}

static void give_nn_layers(att_ctx *in, const att_nn_layer_config *config)
{
    static att_nn_params *p;
    static const att_nn_recurrent_config recurrent = {.size = sizeof recurrent, .in = 2, .units = 2, .layers = 1};
    static const att_nn_conv_config conv = {.size = sizeof conv, .in = 1, .out = 1, .kernel = {1, 1}};
    static att_plan *general; /* with a parameter */
    static const int index = 0;
    need(att_plan_new(in, ATT_OPTIONS(att_attention_spec, .heads = 1, .head_dim = 2, .score = att_score_general),
                      &general));
    give("att_plan_parameter.plan", general);
    give("int i", &index);
    need(att_nn_params_new(in, NULL, &p));
    give("const att_nn_linear *", att_nn_linear_new(p, "linear", 2, 2, true));
    give("const att_nn_norm *", att_nn_norm_new(p, "norm", ATT_LAYER_NORM, 2, 0));
    give("const att_nn_embedding *", att_nn_embedding_new(p, "embedding", 2, 2));
    give("const att_nn_attention *", att_nn_attention_new(p, "attention", config->attention));
    give("const att_nn_feed_forward *", att_nn_feed_forward_new(p, "feed_forward", config));
    give("const att_nn_encoder_layer *", att_nn_encoder_layer_new(p, "encoder", config));
    give("const att_nn_decoder_layer *", att_nn_decoder_layer_new(p, "decoder", config));
    give("const att_nn_recurrent *", att_nn_recurrent_new(p, "recurrent", &recurrent));
    give("const att_nn_conv *", att_nn_conv_new(p, "conv", &conv));
    give("const att_nn_batch_norm *", att_nn_batch_norm_new(p, "batch_norm", 2, 0));
    need(att_nn_params_status(p));
    give("att_nn_params *", p);
    give("const att_nn_params *", p);
    give("att_nn_params_find.name", "linear.weight");
}

#endif
