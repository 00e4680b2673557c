/* Makes captions of images: preprocesses and encodes each image once, and searches in batches. */
#include "caption/caption_model.h"
#include "attend_util.h"
#include "io/file.h"
#include "io/file_source.h"
#include "decoder/beam_config.h"
#include "util/util.h"

#include <math.h>
#include <string.h>

enum {
    DEFAULT_BEAM = 5,
    BATCH_ROWS = 128, /* hypotheses decoded together: the weights are read once for all */
    BATCH_IMAGES = 32 /* images encoded together */
};

/* ---- open */

static const char encoder_folder[] = "encoder";

/* Checks that a vision Transformer has the locations and features of the captioner. */
static att_status check_encoder(const att_caption_model *m, const char *folder)
{
    const att_captioner_config *c = &m->captioner->config;
    att_vit_info v = {.size = sizeof v};
    const att_status s = att_vit_describe(att_image_model_vit(m->encoder), &v);
    if (s)
        return s;
    const int64_t rows = m->input.height / v.patch[0], columns = m->input.width / v.patch[1];
    return rows == c->grid[0] && columns == c->grid[1] && v.hidden == c->features
               ? ATT_OK
               : att_fail(m->ctx, ATT_ERR_FORMAT,
                          "%s: %s makes %lld x %lld locations of %lld numbers, but config.json states %lld x %lld "
                          "locations of "
                          "%lld",
                          folder, encoder_folder, (long long)rows, (long long)columns, (long long)v.hidden,
                          (long long)c->grid[0], (long long)c->grid[1], (long long)c->features);
}

static att_status open_encoder(att_caption_model *m, const char *folder, const att_model_options *options)
{
    char path[ATT_MAX_PATH];
    att_status s = att_join_path(m->ctx, folder, encoder_folder, path);
    s = s ? s : att_image_model_open(m->ctx, path, options, &m->encoder);
    m->processor = att_image_model_processor(m->encoder);
    s = s ? s : att_image_processor_describe(m->processor, &m->input);
    return s ? s : check_encoder(m, folder);
}

static att_status open_processor(att_caption_model *m, const char *folder)
{
    const att_captioner_config *c = &m->captioner->config;
    const att_image_processor_info *p = &m->input;
    att_status s = att_image_processor_open(m->ctx, folder, &m->own);
    m->processor = m->own;
    s = s ? s : att_image_processor_describe(m->own, &m->input);
    if (s || (p->height == c->image[0] && p->width == c->image[1] && p->channels == c->channels))
        return s;
    return att_fail(m->ctx, ATT_ERR_FORMAT,
                    "%s: preprocessing makes images of %lld x %lld x %lld (height, width, channels), but the model has "
                    "%lld x %lld x %lld",
                    folder, (long long)p->height, (long long)p->width, (long long)p->channels, (long long)c->image[0],
                    (long long)c->image[1], (long long)c->channels);
}

static att_status open_words(att_caption_model *m, const char *folder)
{
    const att_captioner_config *c = &m->captioner->config;
    const att_status s = att_words_read(&m->words, m->ctx, folder);
    if (s || (att_words_size(&m->words) == c->vocabulary && att_words_unknown(&m->words) == c->unknown &&
              att_words_end(&m->words) == c->end))
        return s;
    return att_fail(m->ctx, ATT_ERR_FORMAT,
                    "%s: %s has %lld words, then <unk> %lld and the end %lld, but config.json has \"vocab_size\" %lld, "
                    "\"unk_token_id\" %lld and \"eos_token_id\" %lld",
                    folder, ATT_WORDS_FILE, (long long)att_words_unknown(&m->words),
                    (long long)att_words_unknown(&m->words), (long long)att_words_end(&m->words),
                    (long long)c->vocabulary, (long long)c->unknown, (long long)c->end);
}

att_caption_model *att_caption_model_alloc(att_ctx *ctx)
{
    att_caption_model *m = att_calloc(ctx, 1, sizeof *m);
    if (!m)
        return NULL;
    m->ctx = ctx;
    m->input.size = sizeof m->input;
    att_ids_init(&m->words.words, ctx);
    return m;
}

/* Opens what belongs to the captioner, whose status is s. */
static att_status open_rest(att_caption_model *m, const char *folder, const att_model_options *options, att_status s,
                            att_progress *p, att_caption_model **out)
{
    s = s ? s : open_words(m, folder);
    if (!s)
        s = m->captioner->config.encoder == ATT_CAPTIONER_VIT ? open_encoder(m, folder, options)
                                                              : open_processor(m, folder);
    s = s ? s : att_progress_end(p);
    if (s)
        att_caption_model_free(m);
    else
        *out = m;
    return s;
}

att_status att_caption_model_open(att_ctx *ctx, const char *folder, const att_model_options *options,
                                  att_caption_model **out)
{
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"folder", folder}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    att_model_options o;
    att_status s = att_options_read(&o, sizeof o, options, "att_model_options");
    att_caption_model *m = s ? NULL : att_caption_model_alloc(ctx);
    if (!m)
        return s ? s : ATT_ERR_MEMORY;
    att_progress p = {.ctx = ctx, .call = __func__, .report = o.progress, .user = o.user, .all = 2};
    o.progress = att_progress_of_unit;
    o.user = &p;
    att_file_source files;
    s = att_file_source_begin(&files, folder, &o);
    s = s ? s : att_captioner_load(ctx, folder, &o, &m->captioner);
    s = open_rest(m, folder, &o, s, &p, out);
    att_file_source_end(&files);
    return s;
}

att_status att_caption_model_open_for_training(att_ctx *ctx, const char *folder, const att_trainable_options *options,
                                               att_caption_model **out)
{
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"folder", folder}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    att_caption_model *m = att_caption_model_alloc(ctx);
    att_progress p = {.ctx = ctx, .call = __func__};
    return m ? open_rest(m, folder, NULL, att_captioner_load_for_training(ctx, folder, options, &m->captioner), &p, out)
             : ATT_ERR_MEMORY;
}

const att_nn_params *att_caption_model_params(const att_caption_model *m)
{
    return att_model_params(m ? &m->captioner->model : NULL);
}

const att_image_model *att_caption_model_encoder(const att_caption_model *m) { return m ? m->encoder : NULL; }

void att_caption_model_free(att_caption_model *m)
{
    if (!m)
        return;
    att_image_processor_free(m->own);
    att_image_model_free(m->encoder);
    att_words_free(&m->words);
    att_model_free(m->captioner);
    att_free(m->ctx, m);
}

att_status att_caption_model_describe(const att_caption_model *m, att_caption_model_info *info)
{
    if (att_require(__func__, ATT_NAMED({"m", m}, {"info", info})))
        return ATT_ERR_ARGUMENT;
    const att_captioner_config *c = &m->captioner->config;
    const att_caption_model_info own = {.size = sizeof own,
                                        .encoder = c->encoder == ATT_CAPTIONER_VIT ? "vit" : "cnn",
                                        .decoder = att_captioner_decoder_name(c),
                                        .attention = c->decoder == ATT_CAPTIONER_TRANSFORMER ? "multi-head"
                                                     : c->attention                          ? "additive"
                                                                                             : "none",
                                        .gate = c->gate,
                                        .image = {m->input.height, m->input.width},
                                        .channels = m->input.channels,
                                        .grid = {c->grid[0], c->grid[1]},
                                        .features = c->features,
                                        .hidden = c->hidden,
                                        .layers = c->layers,
                                        .words = att_words_unknown(&m->words),
                                        .max_words = c->max_positions};
    return att_info_write(info, &own, sizeof own, "att_caption_model_info");
}

att_status att_caption_model_weights(const att_caption_model *m, att_model_weights *weights)
{
    if (att_require(__func__, ATT_NAMED({"m", m}, {"weights", weights})))
        return ATT_ERR_ARGUMENT;
    att_model_weights all = {.size = sizeof all};
    const att_status s = m->encoder ? att_image_model_weights(m->encoder, &all) : ATT_OK;
    att_model_weights_add(&m->captioner->model, &all);
    return s ? s : att_info_write(weights, &all, sizeof all, "att_model_weights");
}

const char *att_caption_model_word(const att_caption_model *m, int64_t i)
{
    return m ? att_ids_at(&m->words.words, i) : NULL;
}

/* ---- grids */

int64_t att_caption_grid_size(const att_caption_model *m)
{
    const att_captioner_config *c = &m->captioner->config;
    return c->grid[0] * c->grid[1] * c->features;
}

static att_var *encode_batch(att_tape *t, const void *user, att_var *images)
{
    const att_caption_model *m = user;
    const att_captioner_config *c = &m->captioner->config;
    if (!m->encoder)
        return att_captioner_encode(t, m->captioner, images, false);
    const int64_t locations = c->grid[0] * c->grid[1];
    att_vit_info v = {.size = sizeof v};
    att_tensor x;
    if (att_var_value(t, images, &x) || att_vit_describe(att_image_model_vit(m->encoder), &v))
        return NULL;
    att_var *y = att_vit_apply(t, att_image_model_vit(m->encoder), images, NULL);
    y = att_reshape(t, y, 3, (const int64_t[]){x.dim[0], v.prefix + locations, c->features});
    y = att_slice(t, y, 1, v.prefix, locations);
    return att_reshape(t, y, 2, (const int64_t[]){x.dim[0] * locations, c->features});
}

att_status att_caption_check(const char *function, const att_caption_model *m, int64_t n, const void *images,
                             const void *out)
{
    if (att_require(function, ATT_NAMED({"m", m})))
        return ATT_ERR_ARGUMENT;
    if (n < 0)
        return att_fail(m->ctx, ATT_ERR_ARGUMENT, "%s: n is %lld, expected 0 or more", function, (long long)n);
    return n > 0 ? att_require(function, ATT_NAMED({"images", images}, {"out", out})) : ATT_OK;
}

att_image_run att_caption_grid_run(const att_caption_model *m)
{
    return (att_image_run){.model = &m->captioner->model,
                           .processor = m->processor,
                           .batch = BATCH_IMAGES,
                           .width = att_caption_grid_size(m),
                           .apply = encode_batch,
                           .user = m};
}

/* Computes the grids of images [n] into out [n, locations, features]. */
static att_status encode(const att_caption_model *m, int64_t n, const att_image *images, att_progress *p, float *out)
{
    att_image_run r = att_caption_grid_run(m);
    r.progress = p;
    return att_image_run_all(&r, n, images, out);
}

att_status att_caption_grids(const att_caption_model *m, int64_t n, const att_image *images, float *out)
{
    return encode(m, n, images, NULL, out);
}

att_status att_caption_encode(const att_caption_model *m, int64_t n, const att_image *images,
                              const att_call_options *options, float *out)
{
    att_progress p;
    att_status s = att_caption_check(__func__, m, n, images, out);
    s = s ? s : att_progress_of(&p, m->ctx, __func__, options, n);
    s = s ? s : encode(m, n, images, &p, out);
    return s ? s : att_progress_end(&p);
}

/* ---- captions */

static att_status set_options(const att_caption_model *m, const att_caption_options *o, att_search *search)
{
    const att_captioner_config *c = &m->captioner->config;
    const int64_t beam = o->beam ? o->beam : DEFAULT_BEAM;
    const struct {
        const char *name;
        int64_t value, min, max;
    } limits[] = {{"beam", o->beam, 0, ATT_MAX_BEAMS},
                  {"n_best", o->n_best, 0, beam},
                  {"max_words", o->max_words, 0, c->max_positions}};
    for (int i = 0; i < 3; i++)
        if (limits[i].value < limits[i].min || limits[i].value > limits[i].max)
            return att_fail(m->ctx, ATT_ERR_ARGUMENT, "att_caption: options.%s is %lld, not in [%lld, %lld]",
                            limits[i].name, (long long)limits[i].value, (long long)limits[i].min,
                            (long long)limits[i].max);
    *search = (att_search){.vocabulary = c->vocabulary,
                           .beam = beam,
                           .n_best = o->n_best ? o->n_best : 1,
                           .min_tokens = 2,
                           .max_tokens = o->max_words ? o->max_words : c->max_positions,
                           .length_penalty = o->length_penalty ? (double)*o->length_penalty : 1,
                           .start = (int32_t)c->end,
                           .end = (int32_t)c->end,
                           .no_scores = o->no_scores};
    return isfinite(search->length_penalty)
               ? ATT_OK
               : att_fail(m->ctx, ATT_ERR_ARGUMENT, "att_caption: options.length_penalty is %g, not a number",
                          search->length_penalty);
}

/* Writes the caption that the search has found. */
static att_status write_caption(const att_caption_model *m, const att_search *search, att_finished *f,
                                att_image_caption *out)
{
    att_bytes text = {.ctx = m->ctx};
    if (!f->ids)
        return ATT_OK;
    att_status s = att_words_decode(&m->words, f->ids, f->count, &text);
    att_bytes_add(&text, "", 1);
    s = s ? s : text.status;
    if (s) {
        att_bytes_free(&text);
        return s;
    }
    *out = (att_image_caption){
        .text = text.data, .ids = f->ids, .count = f->count, .score = search->no_scores ? NAN : (float)f->score};
    f->ids = NULL;
    return ATT_OK;
}

/* Writes captions of images [n] to out [n][n_best]. grids and found are scratch memory of the same size. */
static att_status caption_batch(const att_caption_model *m, const att_search *search, int64_t n,
                                const att_image *images, float *grids, att_finished *found, att_image_caption *out)
{
    att_generator model = {0};
    const int64_t all = n * search->n_best;
    memset(found, 0, (size_t)all * sizeof *found);
    att_status s = att_caption_grids(m, n, images, grids);
    s = s ? s : att_captioner_start(m->captioner, grids, n, &model);
    s = s ? s : att_search_run(&m->captioner->model, search, &model, n, found);
    for (int64_t i = 0; !s && i < all; i++)
        s = write_caption(m, search, &found[i], &out[i]);
    for (int64_t i = 0; i < all; i++)
        att_free(m->ctx, found[i].ids);
    if (model.free)
        model.free(model.user);
    return s;
}

att_status att_caption(const att_caption_model *m, int64_t n, const att_image *images,
                       const att_caption_options *options, att_image_caption *out)
{
    att_caption_options o;
    att_search search;
    att_status s = att_caption_check(__func__, m, n, images, out);
    s = s ? s : att_options_read(&o, sizeof o, options, "att_caption_options");
    s = s ? s : set_options(m, &o, &search);
    if (s)
        return s;
    const int32_t unknown = (int32_t)m->captioner->config.unknown;
    search.banned = &unknown;
    search.n_banned = 1;
    for (int64_t i = 0; i < n * search.n_best; i++)
        out[i] = (att_image_caption){0};
    const int64_t max = att_max(1, att_min(n, BATCH_ROWS / search.beam));
    float *grids = att_alloc(m->ctx, (size_t)max, (size_t)att_caption_grid_size(m) * sizeof *grids);
    att_finished *found = att_alloc(m->ctx, (size_t)(max * search.n_best), sizeof *found);
    s = grids && found ? ATT_OK : ATT_ERR_MEMORY;
    att_progress p = {.ctx = m->ctx, .call = __func__, .report = o.progress, .user = o.user, .all = n};
    for (int64_t i = 0, count; !s && i < n; i += count) {
        count = att_min(max, n - i);
        s = caption_batch(m, &search, count, images + i, grids, found, out + i * search.n_best);
        s = s ? s : att_progress_add(&p, count);
    }
    s = s ? s : att_progress_end(&p);
    for (int64_t i = 0; s && i < n * search.n_best; i++)
        att_image_caption_free(m->ctx, &out[i]);
    att_free(m->ctx, found);
    att_free(m->ctx, grids);
    return s;
}

void att_image_caption_free(att_ctx *ctx, att_image_caption *c)
{
    if (!ctx || !c)
        return;
    att_free(ctx, c->text);
    att_free(ctx, c->ids);
    *c = (att_image_caption){0};
}
