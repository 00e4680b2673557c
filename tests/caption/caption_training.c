/* Training a captioner: it learns to name colors, with each decoder and with a frozen encoder; what it writes is
 * whole; and what cannot be trained is named. What all trainings promise is tested in train/trainings.c. */
// labels: trains
#include "fixtures/check.h"
#include "fixtures/caption_colors.h"
#include "fixtures/progress.h"
#include "image/processor.h"
#include "caption/captioner.h"
#include "caption/words.h"
#include "train/training.h"
#include "attend_caption.h"

#include <unistd.h>

static test_folder folder;

static int set_up(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    folder = folder_new();
    colors_write(ctx, &folder);
    att_close(ctx);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    folder_remove(&folder);
    return 0;
}

static const char *path_of(const char *name)
{
    static char path[32][320];
    static int next;
    char *at = path[next++ % 32];
    snprintf(at, sizeof path[0], "%s/%s", folder.path, name);
    return at;
}

static att_caption_set *open_set(att_ctx *ctx, const char *list, bool keep_text)
{
    att_caption_set *s;
    if (att_caption_set_open(ctx, path_of("captions.txt"),
                             ATT_OPTIONS(att_caption_set_options, .images = path_of("images"),
                                         .list = list ? path_of(list) : NULL, .keep_text = keep_text),
                             &s))
        fail_msg("%s", att_error(ctx));
    return s;
}

#define CNN "\"image_size\": 16, \"channels\": [8, 8, 12], "
#define ATTENTION                                                                                                      \
    "\"decoder\": \"gru\", \"attention\": \"additive\", \"gate\": true, \"hidden_size\": 16, \"embedding_size\": 8, "  \
    "\"num_layers\": 1"
#define GRU "{" CNN "\"presence\": 300, " ATTENTION "}"
#define LSTM                                                                                                           \
    "{" CNN "\"decoder\": \"lstm\", \"attention\": \"none\", \"hidden_size\": 16, \"embedding_size\": 8, "             \
    "\"num_layers\": 1}"
#define TRANSFORMER                                                                                                    \
    "{" CNN "\"presence\": 4, \"decoder\": \"transformer\", \"hidden_size\": 16, \"num_layers\": 1, "                  \
    "\"num_attention_heads\": 2, \"intermediate_size\": 32}"

/* Options that are not the same in all tests. */
typedef struct how {
    const char *settings, *encoder;
    int64_t presence_epochs, min_count, max_words, batch, seed, per_image, encoder_memory, crop;
    float doubly_stochastic, presence_weight, dropout;
    bool flip, resume, keep_text, no_valid;
    att_progress_fn progress;
    void *user;
} how;

/* The sets outlive the training. */
typedef struct run {
    att_ctx *ctx;
    att_caption_set *train, *valid;
    att_training *training; /* NULL: refused */
} run;

static run open_run(att_ctx *ctx, const char *name, const how *h)
{
    run r = {ctx, open_set(ctx, "train.txt", h->keep_text), open_set(ctx, "valid.txt", false), NULL};
    const att_schedule rates = {.size = sizeof rates, .max_rate = 0.01, .warmup = 4};
    const att_caption_training_options o = {.size = sizeof o,
                                            .captions = r.train,
                                            .valid = h->no_valid ? NULL : r.valid,
                                            .batch = h->batch ? h->batch : 3,
                                            .captions_per_image = h->per_image,
                                            .label_smoothing = 0.05f,
                                            .dropout = h->dropout,
                                            .doubly_stochastic = h->doubly_stochastic,
                                            .crop = h->crop,
                                            .flip = h->flip,
                                            .presence_epochs = h->presence_epochs,
                                            .presence_weight = h->presence_weight,
                                            .settings = h->settings ? h->settings : GRU,
                                            .min_count = h->min_count ? h->min_count : 1,
                                            .max_words = h->max_words,
                                            .encoder = h->encoder,
                                            .encoder_memory = h->encoder_memory,
                                            .progress = h->progress,
                                            .user = h->user};
    const att_training_options common = {.size = sizeof common,
                                         .schedule = &rates,
                                         .weight_decay = 0.01,
                                         .clip = 5,
                                         .seed = (uint64_t)h->seed,
                                         .resume = h->resume};
    if (att_caption_training_open(ctx, path_of(name), &common, &o, &r.training))
        assert_null(r.training);
    return r;
}

static void close_run(run *r)
{
    att_training_free(r->training);
    att_caption_set_free(r->train);
    att_caption_set_free(r->valid);
}

static void make_steps(run *r, int n)
{
    att_training_report report = {.size = sizeof report};
    if (!r->training)
        fail_msg("%s", att_error(r->ctx));
    for (int i = 0; i < n; i++)
        if (att_training_step(r->training, &report))
            fail_msg("%s", att_error(r->ctx));
}

/* ---- learning */

/* A folder that vision Transformers have been written to, with random weights. */
static void write_vit(att_ctx *ctx, const char *path)
{
    att_vit *m;
    const att_image_processor_config c = {.info = {.size = sizeof c.info,
                                                   .height = 8,
                                                   .width = 8,
                                                   .channels = 3,
                                                   .filter = ATT_IMAGE_FILTER_BILINEAR,
                                                   .mean = {0.5f, 0.5f, 0.5f},
                                                   .deviation = {0.5f, 0.5f, 0.5f},
                                                   .rescale = 1 / 255.0f},
                                          .rescale = 1 / 255.0,
                                          .resized = true,
                                          .size = {.height = 8, .width = 8}};
    if (att_vit_new(ctx,
                    "{\"model_type\": \"vit\", \"image_size\": 8, \"patch_size\": 4, \"num_channels\": 3, "
                    "\"hidden_size\": 12, \"num_hidden_layers\": 1, \"num_attention_heads\": 2, "
                    "\"intermediate_size\": 16, \"num_labels\": 2}",
                    1, &m) ||
        att_vit_write(m, path, NULL, ATT_F32) || att_image_processor_write(ctx, path, &c))
        fail_msg("%s", att_error(ctx));
    att_vit_free(m);
}

static double valid_loss(const run *r)
{
    double loss, words = 0, *const none = NULL;
    if (att_training_validate(r->training, &loss) || att_training_caption_losses(r->training, &words, none))
        fail_msg("%s", att_error(r->ctx));
    assert_true(loss == words && isfinite(loss));
    return loss;
}

static void colors_are_learned(void **state)
{
    (void)state;
    static const struct {
        how how;
        int steps;
    } ways[] = {{{.settings = GRU, .presence_epochs = 10, .presence_weight = 0.5f, .doubly_stochastic = 0.1f}, 150},
                {{.settings = LSTM, .crop = 1, .flip = true, .dropout = 0.1f}, 300},
                {{.settings = TRANSFORMER, .per_image = 1}, 150},
                {{.settings = "{" ATTENTION "}", .encoder = "vit"}, 150}};
    att_ctx *ctx = check_open(NULL, 2);
    write_vit(ctx, path_of("vit"));
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        char name[24];
        how h = ways[i].how;
        snprintf(name, sizeof name, "trained%d", (int)i);
        h.encoder = h.encoder ? path_of(h.encoder) : NULL;
        run r = open_run(ctx, name, &h);
        make_steps(&r, 1);
        const double before = valid_loss(&r);
        make_steps(&r, ways[i].steps);
        const double after = valid_loss(&r);
        double cider, first;
        if (att_training_caption_cider(r.training, 100, &cider) || att_training_caption_cider(r.training, 1, &first))
            fail_msg("%s", att_error(ctx));
        assert_true(cider > 1 && first == 0); /* CIDEr of a single image is 0 */
        /* Of eight words and two ends, only the choice between two beginnings is open: log 2 / 5. */
        if (!(before > 1.5 && after < 0.3))
            fail_msg("way %d: %g became %g", (int)i, before, after);
        if (att_training_write(r.training, 0, ATT_F32))
            fail_msg("%s", att_error(ctx));
        close_run(&r);
    }
    att_close(ctx);
}

/* ---- what is written */

/* The greedy caption of a grid [locations, features] */
static void caption(const att_captioner *m, const att_words *w, const float *grid, char text[256])
{
    att_generator g;
    att_finished found;
    att_ctx *ctx = m->model.ctx;
    const att_search search = {.vocabulary = m->config.vocabulary,
                               .beam = 1,
                               .n_best = 1,
                               .max_tokens = 20,
                               .start = (int32_t)m->config.end,
                               .end = (int32_t)m->config.end};
    att_bytes bytes = {.ctx = ctx};
    if (att_captioner_start(m, grid, 1, &g) || att_search_run(&m->model, &search, &g, 1, &found) ||
        att_words_decode(w, found.ids, found.count, &bytes))
        fail_msg("%s", att_error(ctx));
    snprintf(text, 256, "%.*s", (int)bytes.count, bytes.data);
    att_bytes_free(&bytes);
    att_free(ctx, found.ids);
    g.free(g.user);
}

/* Image i, as the preprocessing of a folder makes it */
static void see(att_ctx *ctx, const char *name, int i, float *pixels)
{
    char image_name[32];
    att_image image;
    att_image_processor *p = NULL;
    snprintf(image_name, sizeof image_name, "images/%d.png", i);
    if (att_image_open(ctx, path_of(image_name), NULL, &image) || att_image_processor_open(ctx, path_of(name), &p) ||
        att_image_processor_apply(p, &image, pixels))
        fail_msg("%s", att_error(ctx));
    att_image_free(ctx, &image);
    att_image_processor_free(p);
}

/* Checks the captions of the images for validation by the first word that is a color. */
static void expect_colors(att_ctx *ctx, const char *name, const char *encoder)
{
    static float pixels[COLOR_SIDE * COLOR_SIDE * 3];
    att_captioner *m;
    att_words w;
    att_vit *vit = NULL;
    if (att_captioner_load(ctx, path_of(name), NULL, &m) || att_words_read(&w, ctx, path_of(name)) ||
        (encoder && att_vit_open(ctx, path_of(encoder), NULL, &vit)))
        fail_msg("%s", att_error(ctx));
    for (int i = 2 * COLORS; i < COLOR_IMAGES; i++) {
        const int64_t side = encoder ? 8 : COLOR_SIDE;
        char text[256], expected[2][256];
        att_tape *t;
        att_tensor x, grid;
        see(ctx, encoder ? encoder : name, i, pixels);
        att_wrap(&x, pixels, ATT_F32, ATT_DIMS(1, side, side, 3), NULL);
        assert_int_equal(att_tape_new(ctx, NULL, &t), ATT_OK);
        att_var *y = encoder ? att_vit_apply(t, vit, att_constant(t, &x), NULL)
                             : att_captioner_encode(t, m, att_constant(t, &x), false);
        assert_int_equal(att_var_value(t, y, &grid), ATT_OK);
        caption(m, &w, (const float *)grid.data + (encoder ? m->config.features : 0), text);
        att_tape_free(t);
        snprintf(expected[0], sizeof expected[0], "a %s square", color_names[i % COLORS]);
        snprintf(expected[1], sizeof expected[1], "this is a square and it is %s", color_names[i % COLORS]);
        if (strcmp(text, expected[0]) && strcmp(text, expected[1]))
            fail_msg("%s: %s is called \"%s\"", name, color_names[i % COLORS], text);
    }
    att_vit_free(vit);
    att_words_free(&w);
    att_model_free(m);
}

static void the_folder_is_a_captioner(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 2);
    expect_colors(ctx, "trained0", NULL); /* of the test above */
    expect_colors(ctx, "trained1", NULL);
    expect_colors(ctx, "trained2", NULL);
    expect_colors(ctx, "trained3", "trained3/encoder");
    assert_int_equal(access(path_of("trained3/preprocessor_config.json"), F_OK), -1);
    att_close(ctx);
}

/* Features are computed twice: those of the 8 images to learn from, and of 4 for validation. */
static att_status open_with_encoder(void *context, att_progress_fn progress, void *user)
{
    static int n;
    char name[24];
    snprintf(name, sizeof name, "stopped%d", n++);
    run r =
        open_run(context, name,
                 &(how){.settings = "{" ATTENTION "}", .encoder = path_of("vit"), .progress = progress, .user = user});
    const att_status s = r.training ? ATT_OK : ATT_ERR_CANCELLED;
    if (r.training) {
        const double loss = valid_loss(&r);
        progress_result(s, &loss, sizeof loss);
    }
    close_run(&r);
    assert_true(!s || access(path_of(name), F_OK) == -1);
    return s;
}

static void progress_of_the_encoder_may_stop_the_call(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 2);
    write_vit(ctx, path_of("vit"));
    assert_progress(ctx, open_with_encoder, ctx);
    att_close(ctx);
}

/* ---- what is refused */

static void what_cannot_be_trained_on_is_named(void **state)
{
    (void)state;
    static const struct {
        how how;
        const char *says;
    } cases[] = {
        {{.min_count = 100}, "no word is in the captions 100 times or more: of their 10 words, the most frequent is"},
        {{.keep_text = true}, "options.captions has captions as they were typed"},
        {{.settings = "{" CNN "\"max_positions\": 8, " ATTENTION "}"},
         "/0.png: caption 2 has 8 words, but the model's \"max_positions\" is 8, one of them for the end"},
        {{.settings = "{" CNN "\"vocab_size\": 10, " ATTENTION "}"},
         "\"vocab_size\" is 10, but the words of the captions make it 12"},
        {{.settings = "{" CNN "\"encoder\": \"vit\", " ATTENTION "}"}, "without options.encoder it is \"cnn\""},
        {{.settings = "{" CNN ATTENTION "}", .presence_epochs = 1},
         "options.presence_epochs is 1, but \"presence\", the number of"},
        {{.settings = "{" CNN ATTENTION "}", .presence_weight = 1}, "options.presence_weight is 1, but"},
        {{.settings = LSTM, .doubly_stochastic = 1}, "only a decoder with additive attention"},
        {{.settings = TRANSFORMER, .doubly_stochastic = 1}, "only a decoder with additive attention"},
        {{.crop = 16}, "options.crop is 16, but the model's images have 16 x 16"},
        {{.dropout = 1}, "options.dropout is 1, expected [0, 1)"},
        {{.settings = "{" ATTENTION "}", .encoder = "vit", .crop = 1}, "options.crop does not go with options.encoder"},
        {{.settings = "{" ATTENTION "}", .encoder = "vit", .flip = true}, "options.flip does not go with"},
        {{.settings = "{" ATTENTION "}", .encoder = "vit", .presence_epochs = 1}, "options.presence_epochs does not"},
        {{.settings = "{\"grid\": [3, 3], " ATTENTION "}", .encoder = "vit"},
         "\"grid\" is [3.0,3.0], but the encoder has [2.0,2.0]"},
        {{.settings = "{" ATTENTION "}", .encoder = "vit", .encoder_memory = 800},
         "options.encoder_memory leaves 3.2e-08 GB, but the encoder's features of 4 images, 2 x 2 locations of 12 "
         "numbers "
         "each"},
        {{.settings = "{" ATTENTION "}", .encoder = "images"}, "images/config.json"},
    };
    att_ctx *ctx = check_open(NULL, 1);
    write_vit(ctx, path_of("vit"));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        how h = cases[i].how;
        h.encoder = h.encoder ? path_of(h.encoder) : NULL;
        run r = open_run(ctx, "refused", &h);
        assert_null(r.training);
        if (!strstr(att_error(ctx), cases[i].says))
            fail_msg("%s: %s", cases[i].says, att_error(ctx));
        assert_int_equal(access(path_of("refused"), F_OK), -1);
        close_run(&r);
    }
    att_close(ctx);
}

static void another_training_is_not_continued(void **state)
{
    (void)state;
    static const struct {
        how how;
        const char *says;
    } cases[] = {
        {{.seed = 1}, "has checkpoints of a training already"},
        {{.seed = 1, .resume = true, .batch = 2}, "\"batch_images\" is 3 but here it is 2"},
        {{.seed = 1, .resume = true, .no_valid = true}, "with other captions or names of images for validation"},
        {{.seed = 1, .resume = true, .max_words = 5}, "with other captions or names of images"},
        {{.seed = 1, .resume = true, .settings = TRANSFORMER}, "with other settings of the model"}};
    att_ctx *ctx = check_open(NULL, 1);
    run r = open_run(ctx, "one", &(how){.seed = 1});
    make_steps(&r, 1);
    assert_int_equal(att_training_save(r.training), ATT_OK);
    close_run(&r);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        r = open_run(ctx, "one", &cases[i].how);
        assert_null(r.training);
        if (!strstr(att_error(ctx), cases[i].says))
            fail_msg("%s: %s", cases[i].says, att_error(ctx));
        close_run(&r);
    }
    att_close(ctx);
}

static void validation_needs_captions_for_it(void **state)
{
    (void)state;
    double loss;
    att_ctx *ctx = check_open(NULL, 1);
    run r = open_run(ctx, "without", &(how){.no_valid = true});
    assert_non_null(r.training);
    assert_int_equal(att_training_validate(r.training, &loss), ATT_ERR_ARGUMENT);
    check_message(ctx, "options.valid was NULL");
    assert_int_equal(att_training_caption_losses(r.training, &loss, NULL), ATT_ERR_ARGUMENT);
    close_run(&r);
    r = open_run(ctx, "lstm", &(how){.settings = LSTM});
    assert_non_null(r.training);
    assert_int_equal(att_training_caption_losses(r.training, NULL, &loss), ATT_ERR_ARGUMENT);
    check_message(ctx, "the model predicts no words");
    close_run(&r);
    att_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(colors_are_learned),
        cmocka_unit_test(the_folder_is_a_captioner),
        cmocka_unit_test(progress_of_the_encoder_may_stop_the_call),
        cmocka_unit_test(what_cannot_be_trained_on_is_named),
        cmocka_unit_test(another_training_is_not_continued),
        cmocka_unit_test(validation_needs_captions_for_it),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
