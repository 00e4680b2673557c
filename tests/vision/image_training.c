/* Training an image classifier: it learns; what it writes is whole; and what cannot be trained is named. What all
 * trainings promise is tested in train/trainings.c. */
// labels: trains
#include "fixtures/check.h"
#include "fixtures/fail_alloc.h"
#include "fixtures/idx_files.h"

#include "attend_util.h"
#include "attend_vision.h"

#include <math.h>
#include <unistd.h>

enum { SIDE = STRIPES_SIDE, TRAIN = 240, TEST = 60, CLASSES = STRIPES_CLASSES };

#define SIZES                                                                                                          \
    "\"model_type\": \"vit\", \"patch_size\": 2, \"hidden_size\": 16, \"num_hidden_layers\": 2, "                      \
    "\"num_attention_heads\": 2, \"intermediate_size\": 32"
static const char settings[] = "{" SIZES "}",
                  complete_settings[] = "{" SIZES ", \"image_size\": 8, \"num_channels\": 1, \"num_labels\": 3}";
static const char *const names[CLASSES] = {"rows", "columns", "diagonals"};

static test_folder folder;

static int set_up(void **state)
{
    (void)state;
    folder = folder_new();
    stripes_write(&folder, "train", TRAIN, 1);
    stripes_write(&folder, "t10k", TEST, 2);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    folder_remove(&folder);
    return 0;
}

static att_image_set *open_set(att_ctx *ctx, att_image_split split)
{
    att_image_set *s = NULL;
    if (att_image_set_open(ctx, folder.path, split, names, CLASSES, &s))
        assert_null(s);
    return s;
}

static void make_steps(att_training *t, int n)
{
    att_training_report r = {.size = sizeof r};
    for (int i = 0; i < n; i++)
        if (att_training_step(t, &r))
            fail_msg("%s", att_error(NULL));
}

/* ---- learning */

static void stripes_are_learned(void **state)
{
    (void)state;
    enum { STEPS = 600 };
    att_ctx *ctx = check_open(NULL, 2);
    att_image_set *train = open_set(ctx, ATT_IMAGE_SPLIT_TRAIN), *test = open_set(ctx, ATT_IMAGE_SPLIT_TEST);
    att_vit *m;
    att_training *t;
    assert_int_equal(att_vit_new(ctx, complete_settings, 1, &m), ATT_OK);
    const att_image_training_options o = {
        .size = sizeof o, .images = train, .batch = 32, .label_smoothing = 0.1f, .crop = 1, .flip = false};
    const att_training_options common = {
        .size = sizeof common,
        .weight_decay = 0.01,
        .clip = 1,
        .schedule = &(const att_schedule){
            .size = sizeof(att_schedule), .kind = ATT_SCHEDULE_COSINE, .max_rate = 0.01, .warmup = 10, .steps = STEPS}};
    if (att_image_training_new(m, &common, &o, &t))
        fail_msg("%s", att_error(ctx));
    assert_ptr_equal(att_training_vit(t), m);
    int64_t before, after, confusion[CLASSES][CLASSES];
    assert_int_equal(att_training_image_correct(t, test, &before, NULL), ATT_OK);
    assert_true(before < TEST / 2);
    make_steps(t, STEPS);
    assert_int_equal(att_training_image_correct(t, test, &after, &confusion[0][0]), ATT_OK);
    assert_int_equal(after, TEST);
    for (int c = 0; c < CLASSES; c++)
        for (int k = 0; k < CLASSES; k++)
            assert_int_equal(confusion[c][k], c == k ? TEST / CLASSES : 0);
    assert_true(att_training_image_seconds_waiting(t) > 0);
    att_training_free(t);
    att_vit_free(m);
    att_image_set_free(train);
    att_image_set_free(test);
    att_close(ctx);
}

/* ---- a training in a folder */

typedef struct how {
    bool resume;
    int64_t seed, batch;
    double mixup;
    const char *settings, *model;
} how;

static const char *path_of(const char *name)
{
    static char path[320];
    snprintf(path, sizeof path, "%s/%s", folder.path, name);
    return path;
}

/* With all random changes. */
static att_training *open_training(att_ctx *ctx, const att_image_set *set, const char *name, const how *h)
{
    att_training *t = NULL;
    const att_image_training_options o = {.size = sizeof o,
                                          .images = set,
                                          .batch = h->batch ? h->batch : 50,
                                          .label_smoothing = 0.1f,
                                          .dropout = 0.1f,
                                          .crop = 1,
                                          .flip = true,
                                          .mixup = h->mixup > 0 ? h->mixup : 0.25,
                                          .cutout = 2,
                                          .settings = h->model      ? NULL
                                                      : h->settings ? h->settings
                                                                    : settings,
                                          .model = h->model};
    const att_training_options common = {
        .size = sizeof common,
        .weight_decay = 0.1,
        .clip = 1,
        .seed = (uint64_t)h->seed,
        .resume = h->resume,
        .schedule = &(const att_schedule){.size = sizeof(att_schedule), .max_rate = 1e-2, .warmup = 3}};
    if (att_image_training_open(ctx, path_of(name), &common, &o, &t))
        assert_null(t);
    return t;
}

enum { MAX_PARAMETERS = 8192 };

/* Copies all parameters; returns their number. */
static int64_t parameters(const att_training *t, float x[MAX_PARAMETERS])
{
    int64_t n = 0;
    const att_vit *m = att_training_vit(t);
    const att_param *p;
    const char *name;
    for (int64_t i = 0; (p = att_nn_params_at(att_vit_params(m), i, &name)); i++) {
        const att_tensor *w = att_param_value(p);
        const int64_t count = w->dim[0] * w->stride[0];
        assert_true(n + count <= MAX_PARAMETERS);
        memcpy(x + n, w->data, (size_t)count * sizeof *x);
        n += count;
    }
    return n;
}

/* Logits of all test images, for comparing models. */
static void logits_of(att_ctx *ctx, const att_vit *m, float y[TEST * CLASSES])
{
    static float pixels[TEST * SIDE * SIDE];
    att_image_set *set = open_set(ctx, ATT_IMAGE_SPLIT_TEST);
    att_tape *tape;
    att_tensor x, value;
    for (int i = 0; i < TEST; i++) {
        att_image image;
        assert_int_equal(att_image_set_read(set, i, &image), ATT_OK);
        for (int k = 0; k < SIDE * SIDE; k++)
            pixels[i * SIDE * SIDE + k] = (float)image.pixels[k] / 127.5f - 1;
        att_image_free(ctx, &image);
    }
    att_wrap(&x, pixels, ATT_F32, ATT_DIMS(TEST, SIDE, SIDE, 1), NULL);
    assert_int_equal(att_tape_new(ctx, NULL, &tape), ATT_OK);
    assert_int_equal(att_var_value(tape, att_vit_logits(tape, m, att_constant(tape, &x), NULL), &value), ATT_OK);
    memcpy(y, value.data, TEST * CLASSES * sizeof *y);
    att_tape_free(tape);
    att_image_set_free(set);
}

static void the_folder_is_a_model_with_its_preprocessing(void **state)
{
    (void)state;
    float trained[TEST * CLASSES], opened[TEST * CLASSES];
    att_ctx *ctx = check_open(NULL, 2);
    att_image_set *set = open_set(ctx, ATT_IMAGE_SPLIT_TRAIN);
    att_training *t = open_training(ctx, set, "written", &(how){.seed = 4});
    assert_non_null(t);
    make_steps(t, 5);
    if (att_training_write(t, 0, ATT_F32))
        fail_msg("%s", att_error(ctx));
    logits_of(ctx, att_training_vit(t), trained);
    att_training_free(t);
    att_image_set_free(set);
    att_vit *m;
    att_image_processor *p;
    att_vit_info info = {.size = sizeof info};
    att_image_processor_info how = {.size = sizeof how};
    if (att_vit_open(ctx, path_of("written"), NULL, &m) || att_image_processor_open(ctx, path_of("written"), &p))
        fail_msg("%s", att_error(ctx));
    logits_of(ctx, m, opened);
    for (int i = 0; i < TEST * CLASSES; i++) /* packed weights have other roundings */
        check_near((double)trained[i], (double)opened[i], 1e-5, "logit %d", i);
    assert_int_equal(att_vit_describe(m, &info), ATT_OK);
    assert_int_equal(info.classes, CLASSES);
    assert_int_equal(att_image_processor_describe(p, &how), ATT_OK);
    assert_int_equal(how.height, SIDE);
    assert_int_equal(how.channels, 1);
    assert_true(how.mean[0] == 0.5f && how.deviation[0] == 0.5f && how.filter == ATT_IMAGE_FILTER_BILINEAR);
    att_image_processor_free(p);
    att_vit_free(m);
    att_close(ctx);
}

/* A model of three classes learns to tell two: all but the classifier stays. */
static void a_pretrained_model_gets_a_new_classifier(void **state)
{
    (void)state;
    static float was[MAX_PARAMETERS], is[MAX_PARAMETERS];
    static const char *const two[] = {"even", "odd"};
    uint8_t pixels[4 * 10 * 10], labels[] = {0, 1, 0, 1};
    const test_folder other = folder_new();
    att_ctx *ctx = check_open(NULL, 2);
    att_image_set *set = open_set(ctx, ATT_IMAGE_SPLIT_TRAIN), *others;
    att_training *t = open_training(ctx, set, "three", &(how){.seed = 4});
    assert_non_null(t);
    make_steps(t, 2);
    assert_int_equal(att_training_write(t, 0, ATT_F32), ATT_OK);
    const int64_t n = parameters(t, was);
    att_training_free(t);
    memset(pixels, 77, sizeof pixels);
    idx_write(&other, "train", 4, 10, pixels, labels); /* of another size, too */
    assert_int_equal(att_image_set_open(ctx, other.path, ATT_IMAGE_SPLIT_TRAIN, two, 2, &others), ATT_OK);
    char model[320];
    snprintf(model, sizeof model, "%s", path_of("three"));
    assert_null(open_training(ctx, others, "three", &(how){.seed = 4, .model = model}));
    assert_non_null(strstr(att_error(ctx), "is the model's own folder"));
    t = open_training(ctx, others, "two", &(how){.seed = 4, .model = model});
    if (!t)
        fail_msg("%s", att_error(ctx));
    assert_int_equal(parameters(t, is), n - (16 + 1)); /* a row of the classifier and its bias */
    assert_memory_equal(is, was, (size_t)(n - 3 * (16 + 1)) * sizeof *is);
    make_steps(t, 2);
    assert_int_equal(att_training_write(t, 0, ATT_F16), ATT_OK);
    att_training_free(t);
    att_image_set_free(others);
    att_image_set_free(set);
    att_close(ctx);
    folder_remove(&other);
}

static void a_training_is_refused_where_it_would_spoil_another(void **state)
{
    (void)state;
    static const struct {
        how how;
        const char *says;
    } cases[] = {{{.seed = 1}, "has checkpoints of a training already"},
                 {{.seed = 1, .resume = true, .batch = 30}, "\"batch_images\" is 50 but here it is 30"},
                 {{.seed = 1, .resume = true, .mixup = 0.5}, "\"mixup\" is 0.25 but here it is 0.5"},
                 {{.seed = 1, .resume = true, .settings = "{\"hidden_act\": \"relu\", " SIZES "}"},
                  "with other settings or weights at the start"}};
    att_ctx *ctx = check_open(NULL, 1);
    att_image_set *set = open_set(ctx, ATT_IMAGE_SPLIT_TRAIN), *test = open_set(ctx, ATT_IMAGE_SPLIT_TEST), *held;
    att_training *t = open_training(ctx, set, "one", &(how){.seed = 1});
    assert_non_null(t);
    make_steps(t, 1);
    assert_int_equal(att_image_set_hold_out(set, 0.5, 1, &held), ATT_ERR_ARGUMENT);
    assert_non_null(strstr(att_error(ctx), "a training is open that reads these images"));
    assert_int_equal(att_training_save(t), ATT_OK);
    att_training_free(t);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_null(open_training(ctx, set, "one", &cases[i].how));
        if (!strstr(att_error(ctx), cases[i].says))
            fail_msg("%s: %s", cases[i].says, att_error(ctx));
    }
    assert_null(open_training(ctx, test, "one", &(how){.seed = 1, .resume = true}));
    assert_non_null(strstr(att_error(ctx), "\"images\" is 240 but here it is 60"));
    assert_int_equal(att_image_set_hold_out(set, 0.5, 1, &held), ATT_OK);
    assert_null(open_training(ctx, set, "one", &(how){.seed = 1, .resume = true}));
    att_image_set_free(held);
    att_image_set_free(set);
    att_image_set_free(test);
    att_close(ctx);
}

/* ---- errors */

static void a_broken_image_stops_the_training_and_is_named(void **state)
{
    (void)state;
    static float before[MAX_PARAMETERS], after[MAX_PARAMETERS];
    const test_folder images = folder_new();
    att_ctx *ctx = check_open(NULL, 2);
    uint8_t pixels[SIDE * SIDE];
    att_image_bytes png;
    for (int i = 0; i < 12; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s/%d.png", names[i % 2], i);
        memset(pixels, 20 * i, sizeof pixels);
        assert_int_equal(att_image_encode_png(
                             ctx, &(att_image){.height = SIDE, .width = SIDE, .channels = 1, .pixels = pixels}, &png),
                         ATT_OK);
        FILE *f = folder_open(&images, name);
        fwrite(png.data, 1, i == 7 ? png.bytes / 2 : png.bytes, f);
        fclose(f);
        att_image_bytes_free(ctx, &png);
    }
    att_image_set *set;
    assert_int_equal(att_image_set_open(ctx, images.path, ATT_IMAGE_SPLIT_TRAIN, NULL, 0, &set), ATT_OK);
    att_training *t =
        open_training(ctx, set, "broken", &(how){.seed = 1, .batch = 4, .settings = "{" SIZES ", \"image_size\": 8}"});
    if (!t)
        fail_msg("%s", att_error(ctx));
    att_training_report r = {.size = sizeof r};
    att_status e = ATT_OK;
    int steps = 0;
    for (; !e && steps < 4; steps += !e) {
        parameters(t, before);
        e = att_training_step(t, &r);
    }
    assert_true(e && steps < 3); /* an epoch has three steps */
    assert_non_null(strstr(att_error(ctx), "columns/7.png"));
    const int64_t n = parameters(t, after);
    assert_memory_equal(before, after, (size_t)n * sizeof *after);
    int64_t hits;
    assert_int_equal(att_training_image_correct(t, set, &hits, NULL), e);
    assert_non_null(strstr(att_error(ctx), "columns/7.png"));
    assert_int_equal(att_training_step(t, &r), e); /* and again */
    memset(pixels, 140, sizeof pixels);
    assert_int_equal(
        att_image_encode_png(ctx, &(att_image){.height = SIDE, .width = SIDE, .channels = 1, .pixels = pixels}, &png),
        ATT_OK);
    FILE *f = folder_open(&images, "columns/7.png");
    fwrite(png.data, 1, png.bytes, f);
    fclose(f);
    att_image_bytes_free(ctx, &png);
    make_steps(t, 4);
    assert_int_equal(att_training_steps(t), steps + 4);
    att_training_free(t);
    att_image_set_free(set);
    att_close(ctx);
    folder_remove(&images);
}

static void what_cannot_be_trained_on_is_named(void **state)
{
    (void)state;
    static const att_schedule rates = {.size = sizeof rates, .max_rate = 1e-2};
    static const struct {
        att_image_training_options o;
        const char *says;
    } cases[] = {
        {{.batch = -1}, "options.batch is -1"},
        {{.crop = -1}, "options.crop is -1"},
        {{.crop = 8}, "options.crop is 8, but the model's images have 8 x 8"},
        {{.cutout = 9}, "options.cutout is 9, but the model's images have 8 x 8"},
        {{.mixup = -0.5}, "options.mixup is -0.5"},
        {{.mixup = NAN}, "options.mixup is nan"},
        {{.mixup = 1e-309}, "options.mixup is 1e-309, expected 0 or at least 0.001"},
        {{.mixup = 9e-4}, "options.mixup is 0.0009, expected 0 or at least 0.001"},
        {{.label_smoothing = 1}, "options.label_smoothing is 1, expected [0, 1)"},
        {{.dropout = -0.1f}, "options.dropout is -0.1"},
        {{.settings = settings}, "options.settings is for a training in a folder"},
        {{.model = "."}, "options.model is for a training in a folder"},
    };
    att_ctx *ctx = check_open(NULL, 1);
    att_image_set *set = open_set(ctx, ATT_IMAGE_SPLIT_TRAIN);
    att_vit *m;
    att_training *t;
    assert_int_equal(att_vit_new(ctx, complete_settings, 1, &m), ATT_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        att_image_training_options o = cases[i].o;
        o.size = sizeof o;
        o.images = set;
        const att_training_options common = {.size = sizeof common, .schedule = &rates};
        assert_int_equal(att_image_training_new(m, &common, &o, &t), ATT_ERR_ARGUMENT);
        assert_null(t);
        if (!strstr(att_error(ctx), cases[i].says))
            fail_msg("%s: %s", cases[i].says, att_error(ctx));
    }
    att_vit_free(m);
    att_image_set_free(set);
    att_close(ctx);
}

static void what_is_missing_or_does_not_fit_is_named(void **state)
{
    (void)state;
    static const att_schedule rates = {.size = sizeof rates, .max_rate = 1e-2};
    att_ctx *ctx = check_open(NULL, 1);
    att_image_set *set = open_set(ctx, ATT_IMAGE_SPLIT_TRAIN);
    att_vit *m, *four;
    att_training *t;
    assert_int_equal(att_vit_new(ctx, complete_settings, 1, &m), ATT_OK);
    const att_training_options common = {.size = sizeof common, .schedule = &rates};
    att_image_training_options o = {.size = sizeof o};
    assert_int_equal(att_image_training_new(m, &common, &o, &t), ATT_ERR_ARGUMENT);
    check_message(ctx, "options.images is NULL");
    o.images = set;
    assert_int_equal(att_image_training_open(ctx, path_of("none"), &common, &o, &t), ATT_ERR_ARGUMENT);
    check_message(ctx, "one of options.settings and options.model is needed, but both are NULL");
    assert_int_equal(access(path_of("none"), F_OK), -1);
    assert_int_equal(
        att_vit_new(ctx, "{" SIZES ", \"image_size\": 8, \"num_channels\": 1, \"num_labels\": 4}", 1, &four), ATT_OK);
    assert_int_equal(att_image_training_new(four, &common, &o, &t), ATT_ERR_ARGUMENT);
    check_message(ctx, "the model has 4 classes, but the images have 3");
    att_vit_free(four);
    att_vit_free(m);
    att_image_set_free(set);
    att_close(ctx);
}

/* At once, not when the model is written. */
static void names_that_no_model_can_have_are_refused_at_the_start(void **state)
{
    (void)state;
    static const char *const names[] = {"rows", "caf\xe9", "diagonals"};
    att_ctx *ctx = check_open(NULL, 1);
    att_image_set *set, *one;
    assert_int_equal(att_image_set_open(ctx, folder.path, ATT_IMAGE_SPLIT_TRAIN, names, CLASSES, &set), ATT_OK);
    assert_null(open_training(ctx, set, "latin1", &(how){.seed = 1}));
    check_message(ctx, "the name of class 1 is not UTF-8");
    assert_int_equal(access(path_of("latin1"), F_OK), -1);
    att_image_set_free(set);
    const test_folder alone = folder_new();
    idx_write(&alone, "train", 4, SIDE, (uint8_t[4 * SIDE * SIDE]){0}, (uint8_t[4]){0});
    assert_int_equal(att_image_set_open(ctx, alone.path, ATT_IMAGE_SPLIT_TRAIN, NULL, 0, &one), ATT_OK);
    assert_null(open_training(ctx, one, "alone", &(how){.seed = 1}));
    check_message(ctx, "options.images has only one class, \"0\"; a classifier needs two");
    att_image_set_free(one);
    att_close(ctx);
    folder_remove(&alone);
}

static void sets_that_run_out_of_memory_leak_nothing(void **state)
{
    (void)state;
    bool done = false;
    for (long n = 1; !done; n++) {
        fail_alloc f = {0};
        att_ctx *ctx = fail_open(&f);
        f.fail_at = f.calls + n;
        att_image_set *set = open_set(ctx, ATT_IMAGE_SPLIT_TRAIN), *held = NULL;
        const att_status e = set ? att_image_set_hold_out(set, 0.1, 1, &held) : ATT_ERR_MEMORY;
        done = e == ATT_OK;
        assert_true((done || e == ATT_ERR_MEMORY) && done == (held != NULL));
        att_image_set_free(held);
        att_image_set_free(set);
        att_close(ctx);
        assert_int_equal(f.live, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stripes_are_learned),
        cmocka_unit_test(the_folder_is_a_model_with_its_preprocessing),
        cmocka_unit_test(a_pretrained_model_gets_a_new_classifier),
        cmocka_unit_test(a_training_is_refused_where_it_would_spoil_another),
        cmocka_unit_test(a_broken_image_stops_the_training_and_is_named),
        cmocka_unit_test(what_cannot_be_trained_on_is_named),
        cmocka_unit_test(what_is_missing_or_does_not_fit_is_named),
        cmocka_unit_test(sets_that_run_out_of_memory_leak_nothing),
        cmocka_unit_test(names_that_no_model_can_have_are_refused_at_the_start),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
