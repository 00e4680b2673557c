/* The model: x = encoder(image), a grid of vectors; h = tanh(x W + b), the source of the decoder, with a row for each
 * location. A recurrent decoder begins with the mean of all locations, which is its only source if it has no
 * attention. */
#include "caption/captioner.h"
#include "io/atomic_write.h"
#include "util/shape.h"

#include <string.h>

static int64_t locations(const att_captioner *m) { return m->config.grid[0] * m->config.grid[1]; }

/* ---- open */

static att_status build_transformer(att_captioner *m, att_nn_params *p)
{
    const att_captioner_config *c = &m->config;
    const att_nn_layer_config layer = {.size = sizeof layer,
                                       .width = c->hidden,
                                       .heads = c->heads,
                                       .intermediate = c->intermediate,
                                       .activation = ATT_ACTIVATION_GELU_ERF,
                                       .eps = 1e-5f};
    att_transformer_decoder *d = &m->transformer;
    *d = (att_transformer_decoder){.ctx = m->model.ctx,
                                   .hidden = c->hidden,
                                   .layers = c->layers,
                                   .heads = c->heads,
                                   .max_positions = c->max_positions,
                                   .scale_embedding = true,
                                   .table = att_model_embedding(&m->model, "target", c->vocabulary, c->hidden, -1),
                                   .layer = att_nn_params_alloc(p, (size_t)c->layers * sizeof *d->layer)};
    for (int64_t i = 0; d->layer && i < c->layers; i++)
        d->layer[i] = att_nn_decoder_layer_new(p, att_nn_number("decoder", i).text, &layer);
    d->output.weight = d->table;
    d->output.bias = att_nn_params_request(p, "output", "bias", 1, &c->vocabulary, NULL);
    return ATT_OK;
}

static att_status build_recurrent(att_captioner *m)
{
    const att_captioner_config *c = &m->config;
    const att_recurrent_decoder_config d = {.vocabulary = c->vocabulary,
                                            .embedding = c->embedding,
                                            .units = c->hidden,
                                            .layers = c->layers,
                                            .attention = c->attention ? ATT_SEQ2SEQ_ADDITIVE : ATT_SEQ2SEQ_NONE,
                                            .lstm = c->decoder == ATT_CAPTIONER_LSTM,
                                            .scale_embedding = true,
                                            .tie = true,
                                            .pad = -1,
                                            .gate = c->gate,
                                            .locations = c->attention && m->model.trainable ? locations(m) : 0};
    return att_recurrent_decoder_build(&m->recurrent, &m->model, &d);
}

static att_status build(att_model *base)
{
    att_captioner *m = (att_captioner *)base;
    const att_captioner_config *c = &m->config;
    att_nn_params *p = base->params;
    if (c->encoder == ATT_CAPTIONER_CNN)
        att_image_cnn_build(&m->cnn, p, c->channels, c->stage, c->stages);
    if (c->presence)
        m->presence = att_nn_linear_new(p, "presence", c->features, c->presence, NULL);
    m->project = att_nn_linear_new(p, "project", c->features, c->hidden, NULL);
    const att_status s = c->decoder == ATT_CAPTIONER_TRANSFORMER ? build_transformer(m, p) : build_recurrent(m);
    att_param_set_weight_decay(att_nn_params_find(p, "target.weight"), false);
    return s;
}

static void configure(att_model *base, att_settings *s)
{
    att_captioner *m = (att_captioner *)base;
    att_captioner_config_read(s, &m->config);
    base->unquantized = m->config.decoder == ATT_CAPTIONER_TRANSFORMER ? NULL : "recurrent layers";
}

static void free_captioner(att_model *base) { att_recurrent_decoder_clean(&((att_captioner *)base)->recurrent); }

static const char *const types[] = {ATT_CAPTIONER_TYPE};
static const att_model_types captioner_types = ATT_MODEL_TYPES(types);
static att_var *prepare(att_tape *t, const void *model);
const att_model_kind att_captioner_kind = {.bytes = sizeof(att_captioner),
                                           .types = &captioner_types,
                                           .configure = configure,
                                           .build = build,
                                           .prepare = prepare,
                                           .prefix = "",
                                           .unused = (const char *const[]){NULL},
                                           .free = free_captioner};

att_status att_captioner_make(att_ctx *ctx, att_settings *s, uint64_t seed, att_captioner **out)
{
    return att_model_new(ctx, &att_captioner_kind, s, seed, out);
}

att_status att_captioner_load_for_training(att_ctx *ctx, const char *folder, const att_trainable_options *options,
                                           att_captioner **out)
{
    return att_model_open_for_training(ctx, __func__, &att_captioner_kind, folder, options, out);
}

att_status att_captioner_save(const att_captioner *m, const char *folder, att_dtype dtype)
{
    att_status s = att_make_folder(m->model.ctx, folder);
    s = s ? s : att_settings_write(m->model.ctx, folder, "config.json", att_captioner_config_json(&m->config));
    return s ? s : att_model_write(&m->model, folder, dtype, NULL, NULL, 0, NULL, NULL);
}

/* ---- the encoder */

att_var *att_captioner_encode(att_tape *t, const att_captioner *m, att_var *images, bool training)
{
    const att_captioner_config *c = &m->config;
    att_tensor v;
    if (c->encoder != ATT_CAPTIONER_CNN)
        return att_tape_fail(t, ATT_ERR_ARGUMENT, "captioner: its grids come from another model");
    if (att_var_value(t, images, &v))
        return NULL;
    if (v.rank != 4 || v.dim[1] != c->image[0] || v.dim[2] != c->image[1] || v.dim[3] != c->channels)
        return att_tape_fail(t, ATT_ERR_SHAPE, "captioner: images are %s, not [n, %lld, %lld, %lld]",
                             att_shape_of(&v).text, (long long)c->image[0], (long long)c->image[1],
                             (long long)c->channels);
    att_scope s = att_scope_begin(t, "encoder");
    att_var *x = att_image_cnn_apply(t, &m->cnn, images, training);
    return att_scope_end(t, s, att_reshape(t, x, 2, (const int64_t[]){-1, c->features}));
}

/* Returns the mean of the locations of each image, [n, any], of x [n * locations, any]. */
static att_var *mean(att_tape *t, const att_captioner *m, att_var *x, int64_t n)
{
    return att_mean(t, att_reshape(t, x, 3, (const int64_t[]){n, locations(m), -1}), 1);
}

att_var *att_captioner_predict_words(att_tape *t, const att_captioner *m, att_var *grids, int64_t n)
{
    if (!m->presence)
        return att_tape_fail(t, ATT_ERR_ARGUMENT, "captioner: the model predicts no words");
    return att_nn_linear_apply(t, m->presence, mean(t, m, grids, n), ATT_ACTIVATION_IDENTITY, NULL);
}

/* ---- sources of the decoder */

/* Returns the offsets [n + 1] of each image's rows, which the caller frees; NULL: error set. */
static int64_t *offsets_of(const att_captioner *m, int64_t n)
{
    int64_t *offsets = att_alloc(m->model.ctx, (size_t)n + 1, sizeof *offsets);
    for (int64_t i = 0; offsets && i <= n; i++)
        offsets[i] = i * locations(m);
    return offsets;
}

/* Makes the decoder's source of h, the projected grids. */
static att_decoder_memory recurrent_source(att_tape *t, const att_captioner *m, att_var *h, const int64_t *offsets,
                                           int64_t n)
{
    att_recurrent_state last[ATT_NN_MAX_RECURRENT] = {{0}};
    att_var *context = mean(t, m, h, n);
    for (int64_t i = 0; i < m->config.layers; i++)
        last[i] = (att_recurrent_state){.hidden = context, .cell = m->recurrent.config.lstm ? context : NULL};
    return att_recurrent_decoder_memory(t, &m->recurrent, h, offsets, n, last);
}

static att_var *project(att_tape *t, const att_captioner *m, att_var *grids)
{
    return att_nn_linear_apply(t, m->project, grids, ATT_ACTIVATION_TANH, NULL);
}

/* ---- training */

enum { OF_GRID = 1 }; /* dropout layers; the decoders have other numbers */

/* Applies dropout to locations. An image has the id of its first caption. */
static att_var *drop_locations(att_tape *t, const att_captioner *m, const att_caption_batch *b, const int64_t *offsets,
                               att_var *h)
{
    const att_positions at = {.size = sizeof at, .offsets = offsets, .n = b->images};
    if (b->dropout == 0)
        return h;
    uint32_t *id = att_alloc(m->model.ctx, (size_t)b->images, sizeof *id);
    if (!id)
        return att_tape_fail(t, ATT_ERR_MEMORY, "%s", att_error(m->model.ctx));
    for (int64_t i = 0; i < b->images; i++)
        id[i] = b->sequence_ids ? b->sequence_ids[b->of_image[i]] : 0;
    const att_nn_dropout dropout = {sizeof dropout, b->dropout, b->seed, &at, id};
    h = att_nn_dropout_apply(t, &dropout, OF_GRID, h, NULL);
    att_free(m->model.ctx, id);
    return h;
}

/* Makes the decoder's inputs: each caption shifted by one, `end` first. */
static void shift(const att_captioner *m, const att_caption_batch *b, int32_t *inputs)
{
    for (int64_t k = 0; k < b->captions; k++)
        for (int64_t i = b->offsets[k]; i < b->offsets[k + 1]; i++)
            inputs[i] = i == b->offsets[k] ? (int32_t)m->config.end : b->words[i - 1];
}

typedef struct forced {
    const att_caption_batch *b;
    int64_t *offsets, *words_of; /* [images + 1]: offsets of the locations, and of the words, of each image */
    int32_t *inputs;             /* [words]: of the decoder */
} forced;

/* Returns the input of the output layer, [words, any]. h: the projected grids. */
static att_var *decode(att_tape *t, const att_captioner *m, att_var *h, const forced *f, att_var **weights)
{
    const att_caption_batch *b = f->b;
    const att_positions at = {.size = sizeof at, .offsets = b->offsets, .n = b->captions};
    const att_nn_dropout dropout = {sizeof dropout, b->dropout, b->seed, &at, b->sequence_ids};
    if (m->config.decoder == ATT_CAPTIONER_TRANSFORMER) {
        const att_transformer_memory source = {.n = b->images, .offsets = f->offsets, .rows = h};
        return att_transformer_decoder_apply(t, &m->transformer, &source, f->inputs, b->offsets, b->captions,
                                             f->words_of, &dropout);
    }
    const att_decoder_memory source = recurrent_source(t, m, h, f->offsets, b->images);
    const att_decoder_teacher teacher = {
        .inputs = f->inputs, .dropout = &dropout, .of_source = b->of_image, .weights = weights};
    return att_recurrent_decoder_apply(t, &m->recurrent, &source, &teacher);
}

att_var *att_captioner_states(att_tape *t, const att_captioner *m, att_var *grids, const att_caption_batch *b,
                              att_var **weights)
{
    att_ctx *ctx = m->model.ctx;
    if (!att_sequences_fit(t, "captions", b->words, b->offsets, b->captions, m->config.max_positions))
        return NULL;
    if (weights && !m->recurrent.weights)
        return att_tape_fail(t, ATT_ERR_ARGUMENT, "captioner: its decoder has no additive attention to locations");
    forced f = {.b = b,
                .offsets = offsets_of(m, b->images),
                .words_of = att_alloc(ctx, (size_t)b->images + 1, sizeof *f.words_of),
                .inputs = att_alloc(ctx, (size_t)b->offsets[b->captions] + 1, sizeof *f.inputs)};
    att_var *y = NULL;
    if (f.offsets && f.words_of && f.inputs) {
        for (int64_t i = 0; i <= b->images; i++)
            f.words_of[i] = b->offsets[b->of_image[i]];
        shift(m, b, f.inputs);
        y = decode(t, m, drop_locations(t, m, b, f.offsets, project(t, m, grids)), &f, weights);
    } else {
        att_tape_fail(t, ATT_ERR_MEMORY, "%s", att_error(ctx));
    }
    att_free(ctx, f.inputs);
    att_free(ctx, f.words_of);
    att_free(ctx, f.offsets);
    return y;
}

static const att_nn_linear *output_layer(const att_captioner *m)
{
    return m->config.decoder == ATT_CAPTIONER_TRANSFORMER ? &m->transformer.output : &m->recurrent.output;
}

att_var *att_captioner_output(att_tape *t, const att_captioner *m, att_var *x)
{
    return att_nn_linear_apply(t, output_layer(m), x, ATT_ACTIVATION_IDENTITY, NULL);
}

att_var *att_captioner_logits(att_tape *t, const att_captioner *m, att_var *grids, const att_caption_batch *b)
{
    return att_captioner_output(t, m, att_captioner_states(t, m, grids, b, NULL));
}

/* Computes the mean over captions of sum_i (1 - sum_t alpha_ti)^2. */
static att_var *spread(att_tape *t, const att_captioner *m, att_var *weights, const att_caption_batch *b)
{
    static const float one = 1;
    att_tensor v, lengths;
    att_wrap(&v, (void *)(uintptr_t)&one, ATT_F32, 1, (const int64_t[]){1}, NULL);
    att_wrap(&lengths, (void *)(uintptr_t)b->lengths, ATT_F32, 2, (const int64_t[]){b->captions, 1}, NULL);
    att_var *sums = att_pool(t, weights, b->offsets, b->captions, ATT_POOLING_MEAN, 0);
    sums = att_mul(t, sums, att_constant(t, &lengths));
    att_var *missing = att_sub(t, att_constant(t, &v), sums);
    return att_scale(t, att_mean(t, att_mul(t, missing, missing), ATT_ALL_DIMS), (float)locations(m));
}

att_var *att_captioner_loss(att_tape *t, const att_captioner *m, att_var *grids, const att_caption_batch *b)
{
    const int64_t n = b->offsets[b->captions];
    int32_t *targets = att_alloc(m->model.ctx, (size_t)n + 1, sizeof *targets);
    if (!targets)
        return att_tape_fail(t, ATT_ERR_MEMORY, "%s", att_error(m->model.ctx));
    for (int64_t i = 0; i < n; i++)
        targets[i] = b->words[i] == m->config.unknown ? -1 : b->words[i];
    att_var *weights = NULL;
    att_var *y = att_captioner_states(t, m, grids, b, b->doubly_stochastic != 0 ? &weights : NULL);
    y = att_linear_cross_entropy(t, y, output_layer(m)->weight, output_layer(m)->bias, targets,
                                 ATT_OPTIONS(att_cross_entropy_options, .label_smoothing = b->label_smoothing));
    att_free(m->model.ctx, targets);
    return weights ? att_add(t, y, att_scale(t, spread(t, m, weights, b), b->doubly_stochastic)) : y;
}

/* ---- decoding */

static att_status start_recurrent(const att_captioner *m, att_tape *t, att_var *h, int64_t *offsets, int64_t n,
                                  att_generator *out)
{
    const att_decoder_memory source = recurrent_source(t, m, h, offsets, n);
    return att_recurrent_decoder_start(&m->recurrent, t, &source, offsets, out);
}

static att_status start_transformer(const att_captioner *m, att_tape *t, att_var *h, int64_t *offsets, int64_t n,
                                    att_generator *out)
{
    const att_transformer_memory source = {.n = n, .offsets = offsets, .rows = h};
    const att_status e = att_transformer_decoder_start(t, &m->transformer, &source, out);
    att_tape_free(t);
    att_free(m->model.ctx, offsets);
    return e;
}

att_status att_captioner_start(const att_captioner *m, const float *grids, int64_t n, att_generator *out)
{
    att_tape *t = NULL;
    att_tensor v;
    *out = (att_generator){0};
    int64_t *offsets = offsets_of(m, n);
    att_status e = offsets ? att_model_tape(&m->model, &t) : ATT_ERR_MEMORY;
    e = e ? e
          : att_wrap(&v, (void *)(uintptr_t)grids, ATT_F32, 2, (const int64_t[]){n * locations(m), m->config.features},
                     NULL);
    if (e) {
        att_tape_free(t);
        att_free(m->model.ctx, offsets);
        return e;
    }
    att_var *h = project(t, m, att_constant(t, &v));
    return (m->config.decoder == ATT_CAPTIONER_TRANSFORMER ? start_transformer : start_recurrent)(m, t, h, offsets, n,
                                                                                                  out);
}

/* ---- opening */

/* Prepares the model: applies it to a caption of one word, of a black image or a grid of zeros. */
static att_var *prepare(att_tape *t, const void *model)
{
    static const int64_t ends[] = {0, 1};
    const att_captioner *m = model;
    const att_captioner_config *c = &m->config;
    const bool cnn = c->encoder == ATT_CAPTIONER_CNN;
    const int64_t image[] = {1, c->image[0], c->image[1], c->channels}, grid[] = {locations(m), c->features};
    const int32_t word = (int32_t)c->end;
    const att_caption_batch b = {.images = 1, .captions = 1, .of_image = ends, .words = &word, .offsets = ends};
    att_tensor v;
    const att_status s = att_wrap(&v, NULL, ATT_F32, cnn ? 4 : 2, cnn ? image : grid, NULL);
    v.data = s ? NULL : att_calloc(m->model.ctx, (size_t)att_elements(&v), sizeof(float));
    if (!v.data)
        return att_tape_fail(t, s ? s : ATT_ERR_MEMORY, "%s", att_error(m->model.ctx));
    att_var *x = att_constant(t, &v);
    att_var *y = att_captioner_logits(t, m, cnn ? att_captioner_encode(t, m, x, false) : x, &b);
    att_free(m->model.ctx, v.data);
    return y;
}

att_status att_captioner_load(att_ctx *ctx, const char *folder, const att_model_options *options, att_captioner **out)
{
    return att_model_open(ctx, __func__, &att_captioner_kind, folder, options, out);
}
