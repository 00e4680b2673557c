/* Checks the options of a captioner's training, and makes its initial model: words, settings, encoder. */
#include "caption/caption_training.h"
#include "util/util.h"

enum { MAX_CROP = 1 << 14, MAX_BATCH = 1 << 16, MIN_POSITIONS = 64 };

/* ---- options */

static att_status check_encoder(const att_caption_training *t)
{
    const att_caption_training_options *o = &t->options;
    const bool encoder = o->encoder || (t->base.in_memory && t->model->encoder);
    const char *const wrong = !encoder             ? NULL
                              : o->crop            ? "crop"
                              : o->flip            ? "flip"
                              : o->presence_epochs ? "presence_epochs"
                                                   : NULL;
    return wrong ? att_fail(t->base.ctx, ATT_ERR_ARGUMENT,
                            "options.%s does not go with %s, whose features are computed once", wrong,
                            o->encoder ? "options.encoder" : "the model's encoder")
                 : ATT_OK;
}

static att_status check(const att_caption_training *t)
{
    const att_caption_training_options *o = &t->options;
    const att_training_option numbers[] = {{"batch", (double)o->batch, MAX_BATCH},
                                           {"captions_per_image", (double)o->captions_per_image, MAX_BATCH},
                                           {"doubly_stochastic", (double)o->doubly_stochastic, 1e6},
                                           {"crop", (double)o->crop, MAX_CROP},
                                           {"presence_epochs", (double)o->presence_epochs, INT32_MAX},
                                           {"presence_weight", (double)o->presence_weight, 1e6},
                                           {"min_count", (double)o->min_count, INT32_MAX},
                                           {"max_words", (double)o->max_words, 1 << 24},
                                           {"encoder_memory", (double)o->encoder_memory, 0x1p62},
                                           {"label_smoothing", (double)o->label_smoothing, ATT_BELOW_1},
                                           {"dropout", (double)o->dropout, ATT_BELOW_1}};
    const att_folder_option of_folders[] = {{"settings", o->settings != NULL},
                                            {"min_count", o->min_count != 0},
                                            {"max_words", o->max_words != 0},
                                            {"encoder", o->encoder != NULL}};
    if (!o->captions || (!o->settings && !t->base.in_memory))
        return att_fail(t->base.ctx, ATT_ERR_ARGUMENT, "options.%s is NULL", o->captions ? "settings" : "captions");
    att_status e = att_training_check_options(t->base.ctx, numbers, sizeof numbers / sizeof numbers[0]);
    e = e ? e : att_training_check_in_memory(&t->base, of_folders, sizeof of_folders / sizeof of_folders[0]);
    return e ? e : check_encoder(t);
}

static att_status describe_sets(att_caption_training *t)
{
    const att_caption_training_options *o = &t->options;
    t->set.size = t->valid_set.size = sizeof t->set;
    att_status e = att_caption_set_describe(o->captions, &t->set);
    if (!e && o->valid)
        e = att_caption_set_describe(o->valid, &t->valid_set);
    if (!e && t->set.captions > UINT32_MAX)
        e = att_fail(t->base.ctx, ATT_ERR_ARGUMENT, "options.captions has %lld captions, more than 2^32",
                     (long long)t->set.captions);
    return e;
}

int64_t att_caption_word_prediction_steps(const att_caption_training *t)
{
    const int64_t batches = t->options.presence_epochs * att_ceil_div(t->set.images, t->options.batch);
    return att_min(t->word_prediction_steps, att_ceil_div(batches, t->base.common.accumulate));
}

att_status att_caption_training_configure(void *self)
{
    att_caption_training *t = self;
    att_caption_training_options *o = &t->options;
    att_status e = check(t);
    e = e ? e : describe_sets(t);
    if (e)
        return e;
    o->batch = att_min(o->batch ? o->batch : 32, t->set.images);
    o->min_count = o->min_count ? o->min_count : 5;
    o->encoder_memory = o->encoder_memory ? o->encoder_memory : INT64_C(4) << 30;
    t->word_prediction_steps = INT64_MAX;
    t->word_prediction_steps = att_caption_word_prediction_steps(t);
    t->images = (att_caption_images){.ctx = t->base.ctx,
                                     .set = {o->captions, o->valid},
                                     .n = {t->set.images, t->valid_set.images},
                                     .batch = o->batch,
                                     .progress = {.ctx = t->base.ctx,
                                                  .call = "the training",
                                                  .report = o->progress,
                                                  .user = o->user,
                                                  .all = t->set.images + t->valid_set.images}};
    return ATT_OK;
}

/* ---- words */

static att_status make_words(att_caption_training *t)
{
    const att_caption_training_options *o = &t->options;
    att_word_counts counts;
    att_status e = ATT_OK;
    att_word_counts_init(&counts, t->base.ctx);
    for (int64_t i = 0; !e && i < t->set.images; i++)
        for (int64_t k = 0; !e && k < att_caption_set_count(o->captions, i); k++)
            e = att_word_counts_add(&counts, att_caption_set_caption(o->captions, i, k));
    e = e ? e : att_words_make(&t->model->words, &counts, o->min_count, o->max_words);
    att_word_counts_free(&counts);
    return e;
}

/* ---- the model */

/* Sets a setting that follows from the captions or the encoder. A setting that differs is refused. Numbers are real, as
 * att_settings_parse makes them. */
static att_status imply(const att_caption_training *t, json_t *root, const char *key, json_t *value, const char *of)
{
    const json_t *given = json_object_get(root, key);
    att_status e = ATT_OK;
    if (!value)
        e = att_fail(t->base.ctx, ATT_ERR_MEMORY, "out of memory for the settings of a model");
    else if (given && !json_equal(given, value))
        e = att_fail(t->base.ctx, ATT_ERR_FORMAT, "the model's settings: \"%s\" is %s, but %s %s", key,
                     att_json_show(given).text, of, att_json_show(value).text);
    else if (!given && json_object_set(root, key, value))
        e = att_fail(t->base.ctx, ATT_ERR_MEMORY, "out of memory for the settings of a model");
    json_decref(value);
    return e;
}

static att_status imply_encoder(const att_caption_training *t, json_t *root)
{
    const att_caption_encoder *v = &t->images.encoder;
    if (!v->model)
        return imply(t, root, "encoder", json_string("cnn"), "without options.encoder it is");
    att_status e = imply(t, root, "encoder", json_string("vit"), "with options.encoder it is");
    e = e ? e : imply(t, root, "grid", json_pack("[f, f]", (double)v->grid[0], (double)v->grid[1]), "the encoder has");
    return e ? e : imply(t, root, "encoder_hidden_size", json_real((double)v->info.hidden), "the encoder has");
}

/* Limits "presence" to the number of words. */
static att_status limit_presence(const att_caption_training *t, json_t *root)
{
    const double wanted = json_number_value(json_object_get(root, "presence"));
    const int64_t all = att_words_size(&t->model->words);
    int32_t *ids = wanted >= 1 ? att_alloc(t->base.ctx, (size_t)all, sizeof *ids) : NULL;
    if (!(wanted >= 1))
        return ATT_OK;
    if (!ids)
        return ATT_ERR_MEMORY;
    const int64_t n = att_words_content(&t->model->words, ids, wanted < (double)all ? (int64_t)wanted : all);
    att_free(t->base.ctx, ids);
    if (n == 0)
        return att_fail(t->base.ctx, ATT_ERR_ARGUMENT,
                        "\"presence\" is %g, but of the %lld words that the captions have often enough none has a "
                        "meaning of its own: expected 0",
                        wanted, (long long)all);
    return json_object_set_new(root, "presence", json_real((double)n))
               ? att_fail(t->base.ctx, ATT_ERR_MEMORY, "out of memory for the settings of a model")
               : ATT_OK;
}

static att_status complete_settings(const void *self, json_t *root)
{
    const att_caption_training *t = self;
    const int64_t longest = att_max(t->set.max_words, t->valid_set.max_words) + 1;
    const struct {
        const char *key;
        int64_t value;
    } words[] = {{"vocab_size", att_words_size(&t->model->words)},
                 {"unk_token_id", att_words_unknown(&t->model->words)},
                 {"eos_token_id", att_words_end(&t->model->words)}};
    att_status e = imply(t, root, "model_type", json_string(ATT_CAPTIONER_TYPE), "a captioner's is");
    e = e ? e : imply_encoder(t, root);
    for (int i = 0; !e && i < 3; i++)
        e = imply(t, root, words[i].key, json_real((double)words[i].value), "the words of the captions make it");
    e = e ? e : limit_presence(t, root);
    if (!e && !json_object_get(root, "max_positions"))
        e = imply(t, root, "max_positions", json_real((double)att_max(longest, MIN_POSITIONS)), "");
    if (!e && !t->images.encoder.model && !json_object_get(root, "num_channels"))
        e = imply(t, root, "num_channels", json_real(3), "");
    return e;
}

static att_status make_captioner(att_caption_training *t)
{
    att_settings s;
    att_status e = att_settings_complete(&s, t->base.ctx, t->options.settings, complete_settings, t);
    e = e ? e : att_captioner_make(t->base.ctx, &s, t->base.common.seed, &t->model->captioner);
    att_settings_close(&s);
    if (!e)
        t->model->captioner->model.options.compute = t->base.common.compute;
    return e;
}

/* Makes the preprocessing for a new CNN. */
static att_status make_input(att_caption_training *t)
{
    att_caption_model *m = t->model;
    const att_captioner_config *c = &m->captioner->config;
    if (c->channels != 1 && c->channels != 3)
        return att_fail(t->base.ctx, ATT_ERR_UNSUPPORTED,
                        "the model has images of %lld channels; 1 and 3 are supported", (long long)c->channels);
    const att_status e = att_image_input_of_size(t->base.ctx, c->image, c->channels, &t->images.input);
    m->processor = m->own = t->images.input.processor;
    m->input = t->images.input.info;
    return e;
}

/* Makes the encoder's input from the training's images. */
static att_status set_encoder(att_caption_training *t)
{
    att_caption_encoder *v = &t->images.encoder;
    const att_status e = att_caption_encoder_of(t->base.ctx, t->model->encoder, v);
    t->model->processor = att_image_model_processor(t->model->encoder);
    t->model->input = v->input;
    return e;
}

static att_status make_model(att_caption_training *t)
{
    const att_caption_training_options *o = &t->options;
    t->model = att_caption_model_alloc(t->base.ctx);
    att_status e = t->model ? make_words(t) : ATT_ERR_MEMORY;
    if (!e && o->encoder)
        e = att_caption_encoder_open(t->base.ctx, o->encoder, t->base.common.compute, &t->model->encoder);
    if (!e && o->encoder)
        e = set_encoder(t);
    return e ? e : make_captioner(t);
}

/* ---- options that depend on the model */

static att_status check_model(const att_caption_training *t)
{
    const att_caption_training_options *o = &t->options;
    const att_captioner_config *c = &t->model->captioner->config;
    if ((o->presence_epochs || o->presence_weight > 0) && !c->presence)
        return att_fail(t->base.ctx, ATT_ERR_ARGUMENT,
                        "options.presence_%s is %g, but \"presence\", the number of words of word prediction, is "
                        "0",
                        o->presence_epochs ? "epochs" : "weight",
                        o->presence_epochs ? (double)o->presence_epochs : (double)o->presence_weight);
    if (o->doubly_stochastic > 0 && (!c->attention || c->decoder == ATT_CAPTIONER_TRANSFORMER))
        return att_fail(t->base.ctx, ATT_ERR_ARGUMENT,
                        "options.doubly_stochastic is %g, but only a decoder with additive attention has such weights",
                        (double)o->doubly_stochastic);
    if (!t->images.encoder.model && c->grid[0] * c->grid[1] == 1 && t->set.images % o->batch == 1 % o->batch)
        return att_fail(
            t->base.ctx, ATT_ERR_ARGUMENT,
            "options.batch is %lld: of %lld images the last would be alone in its batch, and with a grid of "
            "one place has no variance to learn from",
            (long long)o->batch, (long long)t->set.images);
    if (!t->images.encoder.model && o->crop >= att_min(c->image[0], c->image[1]))
        return att_fail(t->base.ctx, ATT_ERR_ARGUMENT, "options.crop is %lld, but the model's images have %lld x %lld",
                        (long long)o->crop, (long long)c->image[0], (long long)c->image[1]);
    return ATT_OK;
}

att_status att_caption_training_model(att_caption_training *t)
{
    att_status e = t->base.in_memory ? ATT_OK : make_model(t);
    if (!e && t->base.in_memory && t->model->encoder)
        e = set_encoder(t);
    e = e ? e : check_model(t);
    if (e || t->model->encoder)
        return e;
    t->images.input = (att_image_input){.ctx = t->base.ctx, .processor = t->model->own, .info = t->model->input};
    return t->base.in_memory ? ATT_OK : make_input(t);
}
