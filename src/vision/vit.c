/* The vision Transformer (Dosovitskiy et al. 2021):
 *
 * x = [token; patch_1 E; ...; patch_n E] + positions each layer: x = x + Attention(LayerNorm(x)), x = x + GELU(h
 * W_inner + b) W_outer + b with h = LayerNorm(x) logits = LayerNorm(x)_token W^T + b
 *
 * Settings make it a similar model: with more tokens before the patches (DeiT's for distillation: Touvron et al. 2021;
 * registers: Darcet et al. 2023), with layer scale and SwiGLU (DINOv2: Oquab et al. 2023), with means instead of the
 * token, or with a stem of convolutions instead of E (Hassani et al. 2021). */
#include "vision/vit.h"
#include "io/file_source.h"
#include "util/shape.h"

#include <string.h>

/* ---- open */

/* Makes the patch matrix, or the convolutions of the stem. */
static void build_patches(att_vit *m)
{
    const att_vit_config *c = &m->config;
    const att_vit_info *i = &c->info;
    att_nn_conv_config conv = {.size = sizeof conv,
                               .in = i->channels,
                               .out = i->hidden,
                               .kernel = {i->patch[0], i->patch[1]},
                               .stride = {i->patch[0], i->patch[1]}};
    if (!c->stem_layers)
        m->patches = att_nn_conv_new(m->model.params, "patches", &conv);
    for (int64_t k = 0; k < c->stem_layers; k++) {
        conv = (att_nn_conv_config){.size = sizeof conv,
                                    .in = conv.in,
                                    .out = c->stem[k],
                                    .kernel = {3, 3},
                                    .padding = {1, 1},
                                    .no_bias = true};
        m->stem[k] = att_nn_conv_new(m->model.params, att_nn_number("stem", k).text, &conv);
        conv.in = conv.out;
    }
}

/* Makes the parameter of tokens or positions, without weight decay. */
static att_param *rows(att_vit *m, const char *name, int64_t n)
{
    const att_init init = {.size = sizeof init, .kind = ATT_INIT_TRUNCATED_NORMAL, .value = 0.02};
    att_param *p = att_nn_params_request(m->model.params, "embeddings", name, 2,
                                         (const int64_t[]){n, m->config.info.hidden}, &init);
    att_param_set_weight_decay(p, false);
    return p;
}

/* Makes the tokens before the patches, and the embeddings that are added to the patches. */
static void build_tokens(att_vit *m)
{
    const att_vit_config *c = &m->config;
    const int64_t patches = c->info.image[0] / c->info.patch[0] * (c->info.image[1] / c->info.patch[1]);
    const struct {
        const char *name;
        int64_t n;
    } tokens[] = {{"token", c->class_token}, {"distillation", c->distillation_token}, {"registers", c->registers}};
    for (size_t i = 0; i < sizeof tokens / sizeof tokens[0]; i++)
        if (tokens[i].n)
            m->token[m->tokens++] = rows(m, tokens[i].name, tokens[i].n);
    m->position = rows(m, "position", c->positioned + patches);
}

/* Builds the pooling and the classifier of the settings, if the weights have them. */
static void build_heads(att_vit *m)
{
    att_vit_info *i = &m->config.info;
    att_nn_params *p = m->model.params;
    const bool distilled = i->pooling == ATT_VIT_POOLING_CLS_AND_DISTILL;
    if (!att_model_has(&m->model, "head.weight"))
        i->classes = 0;
    if (distilled ? !att_model_has(&m->model, "distillation_head.weight")
                  : i->pooling == ATT_VIT_POOLING_CLS_AND_MEAN && !i->classes)
        i->pooling = ATT_VIT_POOLING_CLS;
    if (!i->classes)
        return;
    m->head = att_nn_linear_new(p, "head", i->hidden * (i->pooling == ATT_VIT_POOLING_CLS_AND_MEAN ? 2 : 1), i->classes,
                                NULL);
    if (i->pooling == ATT_VIT_POOLING_CLS_AND_DISTILL)
        m->distillation_head = att_nn_linear_new(p, "distillation_head", i->hidden, i->classes, NULL);
}

att_status att_vit_build(att_model *base)
{
    att_vit *m = (att_vit *)base;
    const att_vit_config *c = &m->config;
    att_nn_params *p = base->params;
    const att_nn_attention_config attention = {.size = sizeof attention,
                                               .width = c->info.hidden,
                                               .heads = c->info.heads,
                                               .no_query_bias = c->no_qkv_bias,
                                               .no_key_bias = c->no_qkv_bias,
                                               .no_value_bias = c->no_qkv_bias};
    const att_nn_layer_config layer = {.size = sizeof layer,
                                       .width = c->info.hidden,
                                       .intermediate = c->info.intermediate,
                                       .activation = c->activation,
                                       .gated = c->gated,
                                       .order = ATT_NN_ORDER_PRE_NORM,
                                       .norm = ATT_NN_NORM_LAYER,
                                       .eps = (float)c->eps,
                                       .layer_scale = c->layer_scale,
                                       .attention = &attention};
    build_patches(m);
    build_tokens(m);
    m->layer = att_nn_params_alloc(p, (size_t)c->info.layers * sizeof *m->layer);
    for (int64_t i = 0; m->layer && i < c->info.layers; i++)
        m->layer[i] = att_nn_encoder_layer_new(p, att_nn_number("layer", i).text, &layer);
    if (!c->no_norm)
        m->norm = att_nn_norm_new(p, "norm", ATT_NN_NORM_LAYER, c->info.hidden, (float)c->eps);
    build_heads(m);
    return ATT_OK;
}

/* Prepares the model by a pass with a black image of the smallest size that the model accepts. */
att_var *att_vit_prepare(att_tape *t, const void *model)
{
    const att_vit *m = model;
    const att_vit_info *i = &m->config.info;
    const int64_t *size = m->config.resampled ? i->patch : i->image, dim[] = {1, size[0], size[1], i->channels};
    att_tensor v;
    float *pixels = att_calloc(m->model.ctx, (size_t)(dim[1] * dim[2] * dim[3]), sizeof *pixels);
    if (!pixels)
        return att_tape_fail(t, ATT_ERR_MEMORY, "%s", att_error(m->model.ctx));
    att_wrap(&v, pixels, ATT_F32, 4, dim, NULL);
    att_var *y = (m->head ? att_vit_logits : att_vit_features)(t, m, att_constant(t, &v), NULL);
    att_free(m->model.ctx, pixels);
    return y;
}

static att_status find_kind(att_ctx *ctx, const char *folder, const att_model_kind **kind)
{
    att_settings s;
    att_settings_read(&s, ctx, folder, "config.json", true);
    *kind = att_vit_kind_of(&s);
    att_settings_close(&s);
    return s.status;
}

att_status att_vit_open(att_ctx *ctx, const char *folder, const att_model_options *options, att_vit **out)
{
    const att_model_kind *kind;
    att_file_source files;
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"folder", folder}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    att_status s = att_file_source_begin(&files, folder, options);
    s = s ? s : find_kind(ctx, folder, &kind);
    s = s ? s : att_model_open(ctx, __func__, kind, folder, options, out);
    att_file_source_end(&files);
    return s;
}

att_status att_vit_open_for_training(att_ctx *ctx, const char *folder, const att_trainable_options *options,
                                     att_vit **out)
{
    const att_model_kind *kind;
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"folder", folder}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    const att_status s = find_kind(ctx, folder, &kind);
    return s ? s : att_model_open_for_training(ctx, __func__, kind, folder, options, out);
}

att_status att_vit_new(att_ctx *ctx, const char *settings, uint64_t seed, att_vit **out)
{
    att_settings s;
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"settings", settings}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    att_settings_parse(&s, ctx, "the model's settings", settings, strlen(settings));
    const att_status e = att_vit_make(ctx, &s, seed, out);
    att_settings_close(&s);
    return e;
}

att_status att_vit_make(att_ctx *ctx, att_settings *s, uint64_t seed, att_vit **out)
{
    const att_model_kind *kind = att_vit_kind_of(s);
    const att_status e = kind ? att_model_new(ctx, kind, s, seed, out) : s->status;
    if (!e && out)
        att_vit_init_positions(*out);
    return e;
}

void att_vit_free(att_vit *m) { att_model_free(m); }

const att_nn_params *att_vit_params(const att_vit *m) { return att_model_params(m ? &m->model : NULL); }

att_status att_vit_weights(const att_vit *m, att_model_weights *weights)
{
    return att_model_weights_write(__func__, m ? &m->model : NULL, weights);
}

att_status att_vit_describe(const att_vit *m, att_vit_info *info)
{
    if (att_require(__func__, ATT_NAMED({"m", m}, {"info", info})))
        return ATT_ERR_ARGUMENT;
    return att_info_write(info, &m->config.info, sizeof m->config.info, "att_vit_info");
}

/* ---- apply */

/* Computes the grid of tokens [n, rows, columns, hidden] of images [n, height, width, channels]. */
static att_var *patches(att_tape *t, const att_vit *m, att_var *images)
{
    if (m->patches)
        return att_nn_conv_apply(t, m->patches, images);
    const att_pool_options pool = {.size = sizeof pool, .kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}};
    att_var *x = images;
    for (int64_t i = 0; i < m->config.stem_layers; i++)
        x = att_pool2d(t, att_activate(t, att_nn_conv_apply(t, m->stem[i], x), ATT_ACTIVATION_RELU), ATT_POOLING_MAX,
                       &pool);
    return x;
}

/* Returns the positions of a grid, [rows * columns, hidden], resampled if the grid differs from that of the
 * training. */
static att_var *grid_positions(att_tape *t, const att_vit *m, att_var *position, int64_t rows, int64_t columns)
{
    const att_vit_config *c = &m->config;
    const att_vit_info *i = &c->info;
    const int64_t trained[] = {1, i->image[0] / i->patch[0], i->image[1] / i->patch[1], i->hidden};
    const att_resize_options resize = {
        .size = sizeof resize, .mode = ATT_RESIZE_BICUBIC, .antialias = c->antialias, .out = {rows, columns}};
    att_var *x = att_slice(t, position, 0, c->positioned, trained[1] * trained[2]);
    if (rows == trained[1] && columns == trained[2])
        return x;
    x = att_resize(t, att_reshape(t, x, 4, trained), &resize);
    return att_reshape(t, x, 2, (const int64_t[]){rows * columns, i->hidden});
}

/* Returns the tokens before the patches, once for each of n images: [n, prefix, hidden]. The first ones have
 * positions. */
static att_var *prefix(att_tape *t, const att_vit *m, att_var *position, int64_t n)
{
    const int64_t count = m->config.info.prefix, positioned = m->config.positioned;
    att_var *part[3];
    for (int i = 0; i < m->tokens; i++)
        part[i] = att_parameter(t, m->token[i]);
    att_var *x = att_concat(t, m->tokens, part, 0);
    if (positioned) {
        part[0] = att_add(t, att_slice(t, x, 0, 0, positioned), att_slice(t, position, 0, 0, positioned));
        part[1] = att_slice(t, x, 0, positioned, count - positioned);
        x = att_concat(t, 2, part, 0);
    }
    int32_t *id = att_alloc(m->model.ctx, (size_t)(n * count), sizeof *id);
    if (!id)
        return att_tape_fail(t, ATT_ERR_MEMORY, "%s", att_error(m->model.ctx));
    for (int64_t i = 0; i < n * count; i++)
        id[i] = (int32_t)(i % count);
    x = att_gather(t, x, id, n * count);
    att_free(m->model.ctx, id);
    return att_reshape(t, x, 3, (const int64_t[]){n, count, -1});
}

/* Computes [token; ...; patch_1 E; ...] + positions, [n * tokens, hidden]. */
static att_var *embed(att_tape *t, const att_vit *m, att_var *images, int64_t n, const int64_t grid[2],
                      const att_nn_dropout *dropout)
{
    const int64_t hidden = m->config.info.hidden, of_patches[] = {n, grid[0] * grid[1], hidden};
    att_scope s = att_scope_begin(t, "embeddings");
    att_var *position = att_parameter(t, m->position);
    att_var *x = att_reshape(t, patches(t, m, images), 3, of_patches);
    x = att_add(t, x, grid_positions(t, m, position, grid[0], grid[1]));
    if (m->tokens)
        x = att_concat(t, 2, (att_var *[]){prefix(t, m, position, n), x}, 1);
    x = att_reshape(t, x, 2, (const int64_t[]){-1, hidden});
    return att_scope_end(t, s, att_nn_dropout_apply(t, dropout, att_nn_dropout_id("embeddings", ""), x, NULL));
}

/* Checks that the model accepts images of this size. Sets grid to the rows and columns of their patches. */
static bool check_images(att_tape *t, const att_vit *m, att_var *images, att_tensor *v, int64_t grid[2])
{
    const att_vit_info *i = &m->config.info;
    if (att_var_value(t, images, v))
        return false;
    if (v->rank != 4 || v->dim[0] < 1 || v->dim[3] != i->channels)
        return att_tape_fail(t, ATT_ERR_SHAPE, "vit: images are %s, not [n, %lld, %lld, %lld]", att_shape_of(v).text,
                             (long long)i->image[0], (long long)i->image[1], (long long)i->channels) != NULL;
    for (int d = 0; d < 2; d++) {
        const int64_t side = v->dim[1 + d];
        grid[d] = side / i->patch[d];
        if (m->config.resampled ? side < i->patch[d] : side != i->image[d])
            return att_tape_fail(t, ATT_ERR_SHAPE, "vit: images are %s, but the model has %s %lld x %lld",
                                 att_shape_of(v).text, m->config.resampled ? "patches of" : "images of",
                                 (long long)(m->config.resampled ? i->patch[0] : i->image[0]),
                                 (long long)(m->config.resampled ? i->patch[1] : i->image[1])) != NULL;
    }
    return true;
}

static att_var *layers(att_tape *t, const att_vit *m, att_scope s, att_var *x, const att_nn_layer_call *call)
{
    for (int64_t i = 0; i < m->config.info.layers; i++) {
        att_scope layer = att_scope_begin(t, att_nn_number("layer", i).text);
        x = att_scope_end(t, layer, att_nn_encoder_layer_apply(t, m->layer[i], x, call));
        x = att_scope_reset(t, s, x);
    }
    return x;
}

/* Applies the norm after the last layer, if it is before pooling. */
static att_var *last_norm(att_tape *t, const att_vit *m, att_var *x)
{
    return m->norm && !m->config.pooled_norm ? att_nn_norm_apply(t, m->norm, x) : x;
}

/* Returns the hidden states of n images, [n, tokens, hidden]. */
static att_var *hidden_states(att_tape *t, const att_vit *m, att_var *images, const att_vit_options *options)
{
    att_tensor v;
    int64_t grid[2] = {0, 0};
    att_vit_options o = {.size = sizeof o};
    if (!att_tape_require(t, "vit", ATT_NAMED({"m", m})) || !images || !check_images(t, m, images, &v, grid))
        return NULL;
    if (!att_tape_options_read(t, "vit", &o, sizeof o, options, "att_vit_options"))
        return NULL;
    if (o.dropout != 0 && !m->model.trainable)
        return att_tape_fail(t, ATT_ERR_ARGUMENT,
                             "vit: dropout is %g, but the model is not trainable: it comes from "
                             "att_vit_open",
                             (double)o.dropout);
    const int64_t n = v.dim[0], tokens = m->config.info.prefix + grid[0] * grid[1];
    int64_t *offsets = att_alloc(m->model.ctx, (size_t)n + 1, sizeof *offsets);
    if (!offsets)
        return att_tape_fail(t, ATT_ERR_MEMORY, "%s", att_error(m->model.ctx));
    for (int64_t i = 0; i <= n; i++)
        offsets[i] = i * tokens;
    const att_positions at = {.size = sizeof at, .offsets = offsets, .n = n};
    const att_nn_dropout dropout = {sizeof dropout, o.dropout, o.seed, &at, o.sequence_ids};
    const att_attention_args args = {.size = sizeof args, .n_sequences = n, .q_offsets = offsets};
    const att_nn_layer_call call = {.size = sizeof call, .args = &args, .dropout = o.dropout != 0 ? &dropout : NULL};
    att_scope s = att_scope_begin(t, "encoder");
    att_var *x = embed(t, m, images, n, grid, call.dropout);
    x = att_scope_end(t, s, last_norm(t, m, layers(t, m, s, x, &call)));
    att_free(m->model.ctx, offsets);
    return att_reshape(t, x, 3, (const int64_t[]){n, tokens, -1});
}

att_var *att_vit_apply(att_tape *t, const att_vit *m, att_var *images, const att_vit_options *options)
{
    att_var *x = hidden_states(t, m, images, options);
    return x ? att_reshape(t, x, 2, (const int64_t[]){-1, m->config.info.hidden}) : NULL;
}

/* Returns token i of each image, [n, hidden], of x [n, tokens, hidden]. */
static att_var *token(att_tape *t, const att_vit *m, att_var *x, int64_t i)
{
    return att_reshape(t, att_slice(t, x, 1, i, 1), 2, (const int64_t[]){-1, m->config.info.hidden});
}

/* Returns the mean of all patches of each image, [n, hidden], of x [n, tokens, hidden]. */
static att_var *mean(att_tape *t, const att_vit *m, att_var *x)
{
    const int64_t first = m->config.info.prefix;
    att_tensor v;
    return att_var_value(t, x, &v) ? NULL : att_mean(t, att_slice(t, x, 1, first, v.dim[1] - first), 1);
}

static att_var *features(att_tape *t, const att_vit *m, att_var *x)
{
    const att_vit_pooling pooling = m->config.info.pooling;
    att_var *y = pooling == ATT_VIT_POOLING_MEAN ? mean(t, m, x) : token(t, m, x, 0);
    if (pooling == ATT_VIT_POOLING_CLS_AND_MEAN)
        y = att_concat(t, 2, (att_var *[]){y, mean(t, m, x)}, 1);
    return m->norm && m->config.pooled_norm ? att_nn_norm_apply(t, m->norm, y) : y;
}

/* Computes the logits of x [n, tokens, hidden] after the last norm. */
static att_var *classify(att_tape *t, const att_vit *m, att_var *x)
{
    att_var *y = att_nn_linear_apply(t, m->head, features(t, m, x), ATT_ACTIVATION_IDENTITY, NULL);
    if (!m->distillation_head)
        return y;
    return att_scale(t, att_nn_linear_apply(t, m->distillation_head, token(t, m, x, 1), ATT_ACTIVATION_IDENTITY, y),
                     0.5f);
}

att_var *att_vit_features(att_tape *t, const att_vit *m, att_var *images, const att_vit_options *options)
{
    att_var *x = hidden_states(t, m, images, options);
    return x ? features(t, m, x) : NULL;
}

att_var *att_vit_logits(att_tape *t, const att_vit *m, att_var *images, const att_vit_options *options)
{
    if (!att_tape_require(t, "vit", ATT_NAMED({"m", m})))
        return NULL;
    if (!m->head)
        return att_tape_fail(t, ATT_ERR_ARGUMENT, "vit: the model has no classifier");
    att_var *x = hidden_states(t, m, images, options);
    return x ? classify(t, m, x) : NULL;
}

/* ---- traces */

/* Returns the hidden states of one image after the last norm, [1, tokens, hidden]. */
static att_var *finish_one(att_tape *t, const att_vit *m, att_var *x)
{
    return att_reshape(t, last_norm(t, m, x), 3, (const int64_t[]){1, -1, m->config.info.hidden});
}

att_var *att_vit_output(att_tape *t, const att_vit *m, att_var *x)
{
    x = finish_one(t, m, x);
    return x ? (m->head ? classify : features)(t, m, x) : NULL;
}

att_var *att_vit_output_features(att_tape *t, const att_vit *m, att_var *x)
{
    x = finish_one(t, m, x);
    return x ? features(t, m, x) : NULL;
}

void att_vit_trace(const att_vit *m, att_trace_pass *pass)
{
    const att_vit_info *i = &m->config.info;
    pass->part[pass->parts++] = (att_trace_part){.side = ATT_TRACE_SIDE_ENCODER,
                                                 .layers = i->layers,
                                                 .heads = i->heads,
                                                 .head_dim = i->hidden / i->heads,
                                                 .queries = pass->info.source,
                                                 .keys = pass->info.source,
                                                 .hidden = i->hidden};
}
