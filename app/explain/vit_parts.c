#include "vit_parts.h"
#include "page.h"

#include "attend_util.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- open */

typedef struct settings {
    float eps;
    bool bias; /* of queries, keys and values */
} settings;

/* Reads the settings that att_vit_info lacks. */
static att_status read_settings(att_ctx *ctx, const char *folder, settings *s)
{
    json_t *config;
    const att_status opened = page_config(ctx, folder, &config);
    if (opened)
        return opened;
    const json_t *eps = json_object_get(config, "layer_norm_eps"), *act = json_object_get(config, "hidden_act");
    s->eps = (float)(json_is_number(eps) ? json_number_value(eps) : 1e-12);
    s->bias = !json_is_false(json_object_get(config, "qkv_bias"));
    const bool gelu = !act || (json_is_string(act) && !strcmp(json_string_value(act), "gelu"));
    json_decref(config);
    return gelu ? ATT_OK
                : att_fail(ctx, ATT_ERR_UNSUPPORTED,
                           "%s/config.json: hidden_act is not \"gelu\", the one of this chapter", folder);
}

static att_status check(att_ctx *ctx, const char *folder, const vit_parts *m)
{
    const att_vit_info *i = &m->info;
    if (strcmp(i->type, "vit") != 0 || i->pooling != ATT_VIT_POOLING_CLS || i->classes == 0)
        return att_fail(ctx, ATT_ERR_UNSUPPORTED,
                        "%s: the chapter reads models of the class ViTForImageClassification, with a classifier of "
                        "[CLS], not of type \"%s\" with %" PRId64 " classes",
                        folder, i->type, i->classes);
    if (i->multi_label)
        return att_fail(ctx, ATT_ERR_UNSUPPORTED,
                        "%s: each of its classes has a probability of its own (\"problem_type\" of its config.json, or "
                        "one class); the chapter shows a softmax over classes",
                        folder);
    if (i->layers > VIT_MAX_LAYERS || i->heads > VIT_MAX_HEADS || m->tokens > VIT_MAX_TOKENS ||
        i->classes > VIT_MAX_CLASSES)
        return att_fail(ctx, ATT_ERR_UNSUPPORTED,
                        "%s has %" PRId64 " layers, %" PRId64 " heads, %" PRId64 " tokens and %" PRId64
                        " classes; the chapter shows no more than %d, %d, %d and %d",
                        folder, i->layers, i->heads, m->tokens, i->classes, VIT_MAX_LAYERS, VIT_MAX_HEADS,
                        VIT_MAX_TOKENS, VIT_MAX_CLASSES);
    if (m->grid[0] > VIT_MAX_GRID || m->grid[1] > VIT_MAX_GRID)
        return att_fail(ctx, ATT_ERR_UNSUPPORTED,
                        "%s has %" PRId64 " x %" PRId64 " patches; the chapter shows no more than %d x %d", folder,
                        m->grid[0], m->grid[1], VIT_MAX_GRID, VIT_MAX_GRID);
    return ATT_OK;
}

static void request_layer(vit_parts *m, int64_t i, const settings *s)
{
    const int64_t d = m->info.hidden, inner = m->info.intermediate;
    const att_nn_name prefix = att_nn_number("vit.encoder.layer", i);
    att_nn_params *p = m->params;
    vit_layer *l = &m->layer[i];
    const struct {
        const att_nn_linear **to;
        const char *name;
        int64_t in, out;
        bool bias;
    } linear[] = {
        {&l->query, "attention.attention.query", d, d, s->bias}, {&l->key, "attention.attention.key", d, d, s->bias},
        {&l->value, "attention.attention.value", d, d, s->bias}, {&l->output, "attention.output.dense", d, d, true},
        {&l->inner, "intermediate.dense", d, inner, true},       {&l->outer, "output.dense", inner, d, true}};
    l->before = att_nn_norm_new(p, att_nn_join(prefix.text, "layernorm_before").text, ATT_NN_NORM_LAYER, d, s->eps);
    l->after = att_nn_norm_new(p, att_nn_join(prefix.text, "layernorm_after").text, ATT_NN_NORM_LAYER, d, s->eps);
    for (size_t k = 0; k < sizeof linear / sizeof *linear; k++)
        *linear[k].to = att_nn_linear_new(p, att_nn_join(prefix.text, linear[k].name).text, linear[k].in, linear[k].out,
                                          ATT_OPTIONS(att_nn_linear_options, .no_bias = !linear[k].bias));
}

static void request(vit_parts *m, const settings *s)
{
    static const char embeddings[] = "vit.embeddings", projection[] = "vit.embeddings.patch_embeddings.projection";
    const att_vit_info *i = &m->info;
    const int64_t d = i->hidden, patch[] = {d, i->channels, i->patch[0], i->patch[1]};
    att_nn_params *p = m->params;
    m->patch_weight = att_nn_params_request(p, projection, "weight", 4, patch, NULL);
    m->patch_bias = att_nn_params_request(p, projection, "bias", 1, &d, NULL);
    m->cls = att_nn_params_request(p, embeddings, "cls_token", 3, (const int64_t[]){1, 1, d}, NULL);
    m->positions =
        att_nn_params_request(p, embeddings, "position_embeddings", 3, (const int64_t[]){1, m->tokens, d}, NULL);
    for (int64_t k = 0; k < i->layers; k++)
        request_layer(m, k, s);
    m->norm = att_nn_norm_new(p, "vit.layernorm", ATT_NN_NORM_LAYER, d, s->eps);
    m->classifier = att_nn_linear_new(p, "classifier", d, i->classes, NULL);
}

att_status vit_parts_open(att_ctx *ctx, const char *folder, const att_vit *vit, vit_parts *m)
{
    char path[sizeof(att_model_path) + sizeof "/model.safetensors"];
    settings s = {0};
    *m = (vit_parts){.info = {.size = sizeof m->info}};
    att_status e = att_vit_describe(vit, &m->info);
    if (e)
        return e;
    const att_vit_info *i = &m->info;
    m->grid[0] = i->image[0] / i->patch[0], m->grid[1] = i->image[1] / i->patch[1];
    m->patches = m->grid[0] * m->grid[1], m->tokens = i->prefix + m->patches;
    m->numbers = i->channels * i->patch[0] * i->patch[1], m->head_dim = i->hidden / i->heads;
    e = check(ctx, folder, m);
    if (!e)
        e = read_settings(ctx, folder, &s);
    if (e)
        return e;
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    const att_attention_spec spec = {.size = sizeof spec, .heads = i->heads, .head_dim = m->head_dim};
    att_attention_spec whole = spec;
    whole.scale = 1 / sqrtf((float)i->hidden);
    if (!(e = att_safetensors_open(ctx, path, &m->file)) && !(e = att_plan_new(ctx, &spec, &m->plan)) &&
        !(e = att_plan_new(ctx, &whole, &m->whole_plan)))
        e = att_nn_params_new(
            ctx, /* trainable: in f32 */
            ATT_OPTIONS(att_nn_params_config, .load = att_safetensors_load, .user = m->file, .trainable = true),
            &m->params);
    if (e)
        return e;
    request(m, &s);
    return att_nn_params_status(m->params);
}

void vit_parts_free(vit_parts *m)
{
    att_nn_params_free(m->params);
    att_plan_free(m->whole_plan);
    att_plan_free(m->plan);
    att_safetensors_free(m->file);
}

/* ---- apply */

/* Computes a parameter as a matrix. */
static att_var *matrix(att_tape *t, att_param *w, int64_t rows)
{
    return att_reshape(t, att_parameter(t, w), 2, (const int64_t[]){rows, -1});
}

att_var *vit_embed(att_tape *t, const vit_parts *m, const float *patches)
{
    att_tensor X = {0};
    att_wrap(&X, (float *)patches, ATT_F32, ATT_DIMS(m->patches, m->numbers), NULL);
    att_var *e = matrix(t, m->patch_weight, m->info.hidden);
    att_var *x = att_matmul(t, att_constant(t, &X), e, ATT_OPTIONS(att_matmul_options, .transpose_b = true));
    x = att_add(t, x, att_parameter(t, m->patch_bias));
    x = att_concat(t, 2, (att_var *[]){matrix(t, m->cls, 1), x}, 0);
    return att_add(t, x, matrix(t, m->positions, m->tokens));
}

static att_var *linear(att_tape *t, const att_nn_linear *l, att_var *x)
{
    return att_nn_linear_apply(t, l, x, ATT_ACTIVATION_IDENTITY, NULL);
}

/* Computes the heads' results side by side [tokens, hidden] */
static att_var *heads(att_tape *t, const vit_parts *m, const vit_states *s, vit_erratum erratum)
{
    const int64_t h = m->info.heads, offsets[] = {0, m->tokens};
    const att_attention_args args = {.size = sizeof args, .n_sequences = 1, .q_offsets = offsets};
    const att_plan *plan = erratum == VIT_WHOLE_SCALE ? m->whole_plan : m->plan;
    return att_merge_heads(t, att_attend(t, plan, att_split_heads(t, s->q, h), att_split_heads(t, s->k, h),
                                         att_split_heads(t, s->v, h), &args, NULL));
}

att_var *vit_layer_apply(att_tape *t, const vit_parts *m, int64_t i, att_var *x, vit_erratum erratum,
                         vit_states *states)
{
    const vit_layer *l = &m->layer[i];
    vit_states s = {.h = att_nn_norm_apply(t, l->before, x)};
    s.q = linear(t, l->query, s.h);
    s.k = erratum == VIT_ONE_MATRIX ? s.q : linear(t, l->key, s.h);
    s.v = erratum == VIT_ONE_MATRIX ? s.q : linear(t, l->value, s.h);
    if (states)
        *states = s;
    att_var *c = heads(t, m, &s, erratum);
    x = erratum == VIT_NO_OUTPUT ? att_add(t, x, c) : att_nn_linear_apply(t, l->output, c, ATT_ACTIVATION_IDENTITY, x);
    att_var *f = att_nn_linear_apply(t, l->inner, att_nn_norm_apply(t, l->after, x), ATT_ACTIVATION_GELU_ERF, NULL);
    return att_nn_linear_apply(t, l->outer, f, ATT_ACTIVATION_IDENTITY, x);
}

/* Computes logits [1, classes] of patches [patches, numbers]. */
static att_var *logits(att_tape *t, const vit_parts *m, const float *patches, vit_erratum erratum)
{
    att_var *x = vit_embed(t, m, patches);
    for (int64_t i = 0; i < m->info.layers; i++)
        x = vit_layer_apply(t, m, i, x, erratum, NULL);
    return linear(t, m->classifier, att_slice(t, att_nn_norm_apply(t, m->norm, x), 0, 0, 1));
}

att_status vit_probabilities(att_tape *t, const vit_parts *m, const float *patches, vit_erratum erratum, float *out)
{
    att_tensor Y = {0};
    const att_status s = att_var_value(t, att_softmax(t, logits(t, m, patches, erratum)), &Y);
    if (s == ATT_OK)
        memcpy(out, Y.data, (size_t)m->info.classes * sizeof *out);
    att_tape_reset(t);
    return s;
}

att_status vit_weights(att_tape *t, const vit_parts *m, const vit_states *states, vit_erratum erratum, int64_t head,
                       float *out)
{
    const int64_t d = m->info.hidden, strides[] = {m->tokens * d, m->head_dim, d, 1};
    att_tensor q, k;
    att_attention_args args = {.size = sizeof args};
    att_status e = att_var_value(t, states->q, &q);
    if (!e)
        e = att_var_value(t, states->k, &k);
    if (!e)
        e = att_wrap(&args.q, q.data, ATT_F32, ATT_DIMS(1, m->info.heads, m->tokens, m->head_dim), strides);
    if (!e)
        e = att_wrap(&args.k, k.data, ATT_F32, ATT_DIMS(1, m->info.heads, m->tokens, m->head_dim), strides);
    return e ? e : att_weights(erratum == VIT_WHOLE_SCALE ? m->whole_plan : m->plan, &args, 0, head, 0, m->tokens, out);
}
