/* Probes on the embeddings of images: whatever the model is, the folder that is written classifies as the probe of the
 * vectors does. */
#include "fixtures/tiny_vit.h"

#include "attend_probe.h"
#include "attend_util.h"

#include <dirent.h>
#include <sys/stat.h>

enum { IMAGES = 24, CLASSES = 3, SIDE = 12, MOST_DIM = 32 };
static const char *const classes[CLASSES] = {"blue", "green", "red"};
static test_folder data;
static att_image_set *set;

/* Images of mostly one color, with noise, as PNG files in a folder for each class. */
static void write_images(void)
{
    static uint8_t pixels[SIDE * SIDE * 3];
    const att_image image = {SIDE, SIDE, 3, pixels};
    for (int i = 0; i < IMAGES; i++) {
        const int class = i % CLASSES;
        char path[160];
        att_image_bytes png;
        for (int k = 0; k < SIDE * SIDE * 3; k++)
            pixels[k] = (uint8_t)((k % 3 == 2 - class ? 140 : 60) + check_bits(3, (uint64_t)(i * 1000 + k)) % 80);
        snprintf(path, sizeof path, "%s/%s", data.path, classes[class]);
        mkdir(path, 0777);
        assert_int_equal(att_image_encode_png(ctx, &image, &png), ATT_OK);
        snprintf(path, sizeof path, "%s/%d.png", classes[class], i);
        FILE *f = folder_open(&data, path);
        assert_int_equal(fwrite(png.data, 1, png.bytes, f), png.bytes);
        assert_int_equal(fclose(f), 0);
        att_image_bytes_free(ctx, &png);
    }
}

static int set_up(void **state)
{
    open_context(state);
    data = folder_new();
    write_images();
    return att_image_set_open(ctx, data.path, ATT_IMAGE_SPLIT_TRAIN, NULL, 0, &set);
}

static int tear_down(void **state)
{
    att_image_set_free(set);
    folder_remove(&data);
    return close_context(state);
}

static test_folder folder_of(const char *name)
{
    const test_folder folder = tiny_vit_folder(name, NULL);
    if (strncmp(name, "timm", 4) != 0)
        folder_write(&folder, "preprocessor_config.json",
                     "{\"image_processor_type\": \"ViTImageProcessor\", \"size\": {\"height\": 12, \"width\": 12}, "
                     "\"image_mean\": [0.5, 0.4, 0.5], \"image_std\": [0.2, 0.2, 0.3]}");
    return folder;
}

static att_image_model *open_model(const char *folder)
{
    att_image_model *m;
    if (att_image_model_open(ctx, folder, NULL, &m))
        fail_msg("%s", att_error(ctx));
    return m;
}

/* The images, and their vectors by a model -> [IMAGES, dim]; labels. */
static void embed(const att_image_model *m, float *vectors, int32_t *labels)
{
    for (int i = 0; i < IMAGES; i++) {
        att_image image;
        assert_int_equal(att_image_set_read(set, i, &image), ATT_OK);
        assert_int_equal(att_image_embed(m, 1, &image, NULL, vectors + i * att_image_model_dim(m)), ATT_OK);
        att_image_free(ctx, &image);
        labels[i] = att_image_set_class(set, i);
    }
}

static bool has_file(const char *folder, const char *name)
{
    char path[300];
    struct stat is;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return stat(path, &is) == 0;
}

/* Checks that a folder classifies as a probe of the vectors that its model embeds, computed apart. Its weights are
 * written as f32 and its vectors have the same bits or, in another layout of the weights, nearly; logits below 100 are
 * then equal to 1e-4, and so are probabilities. */
static void check_folder(const char *folder, const att_probe_options *o)
{
    static float vectors[IMAGES * MOST_DIM], scores[IMAGES * CLASSES], out[CLASSES];
    static int32_t labels[IMAGES];
    att_image_model *m = open_model(folder);
    att_probe *p;
    assert_int_equal(att_image_model_classes(m), CLASSES);
    assert_true(att_image_model_dim(m) <= MOST_DIM);
    for (int k = 0; k < CLASSES; k++)
        assert_string_equal(att_image_model_label(m, k), classes[k]);
    embed(m, vectors, labels);
    const att_probe_data d = {.size = sizeof d,
                              .n = IMAGES,
                              .dim = att_image_model_dim(m),
                              .classes = CLASSES,
                              .vectors = vectors,
                              .labels = labels};
    assert_int_equal(att_probe_fit(ctx, &d, NULL, o, &p), ATT_OK);
    assert_int_equal(att_probe_scores(p, IMAGES, vectors, scores), ATT_OK);
    for (int i = 0; i < IMAGES; i++) {
        att_image image;
        double sum = 0;
        assert_int_equal(att_image_set_read(set, i, &image), ATT_OK);
        assert_int_equal(att_image_classify(m, 1, &image, NULL, out), ATT_OK);
        for (int k = 0; k < CLASSES; k++)
            sum += exp((double)scores[i * CLASSES + k]);
        for (int k = 0; k < CLASSES; k++)
            assert_true(fabs((double)out[k] - exp((double)scores[i * CLASSES + k]) / sum) < 1e-4);
        att_trace *t;
        float traced[CLASSES];
        assert_int_equal(att_image_trace(m, &image, NULL, &t), ATT_OK);
        assert_int_equal(att_trace_output(t, -1, 0, 1, traced), ATT_OK);
        for (int k = 0; k < CLASSES; k++)
            assert_true(fabs((double)traced[k] - (double)scores[i * CLASSES + k]) < 1e-3);
        att_trace_free(t);
        att_image_free(ctx, &image);
    }
    att_probe_free(p);
    att_image_model_free(m);
}

/* Trains a probe on a tiny model, and checks the folder. */
static void check(const char *name, att_probe_kind kind, bool plain, int64_t dim)
{
    const test_folder model = folder_of(name), parent = folder_new();
    const att_probe_options o = {.size = sizeof o, .kind = kind, .c = 1, .neighbors = 5, .tolerance = 1e-9};
    const att_image_probe_options options = {.size = sizeof options, .images = set, .probe = &o};
    att_probe_result r = {.size = sizeof r};
    char folder[200];
    snprintf(folder, sizeof folder, "%s/probe", parent.path);
    if (att_image_probe_train(ctx, model.path, folder, &options, &r))
        fail_msg("%s: %s", name, att_error(ctx));
    assert_int_equal(r.plain, plain);
    assert_int_equal(r.dim, dim);
    assert_int_equal(has_file(folder, "probe.json"), !plain);
    assert_int_equal(has_file(folder, "probe.safetensors"), !plain);
    check_folder(folder, &o);
    folder_remove(&parent);
    folder_remove(&model);
}

static void a_linear_probe_becomes_the_classifier_of_a_model_that_can_be_written(void **state)
{
    (void)state;
    check("vit", ATT_PROBE_KIND_LINEAR, true, 16);
    check("dinov2", ATT_PROBE_KIND_LINEAR, true, 32);
    check("dinov2_model", ATT_PROBE_KIND_LINEAR, true, 32); /* without a classifier its embedding is [CLS] alone */
    check("registers", ATT_PROBE_KIND_LINEAR, true, 32);
    check("own_patches", ATT_PROBE_KIND_LINEAR, true, 16);
    check("timm_vit", ATT_PROBE_KIND_LINEAR, true, 16);
}

static void other_models_get_a_probe_of_their_own(void **state)
{
    (void)state;
    check("deit_distilled", ATT_PROBE_KIND_LINEAR, false, 16);
    check("dinov2_giant", ATT_PROBE_KIND_LINEAR, false, 32);
    check("vit", ATT_PROBE_KIND_NEIGHBORS, false, 16);
    check("dinov2_model", ATT_PROBE_KIND_NEIGHBORS, false, 16);
    check("timm_vit", ATT_PROBE_KIND_NEIGHBORS, false, 16);
}

static void a_probe_is_trained_on_a_model_that_has_one(void **state)
{
    (void)state;
    const test_folder model = folder_of("vit"), parent = folder_new();
    const att_probe_options o = {.size = sizeof o, .kind = ATT_PROBE_KIND_NEIGHBORS, .neighbors = 3};
    const att_image_probe_options options = {.size = sizeof options, .images = set, .probe = &o};
    char folder[2][200];
    for (int i = 0; i < 2; i++) {
        snprintf(folder[i], sizeof folder[i], "%s/probe-%d", parent.path, i);
        assert_int_equal(att_image_probe_train(ctx, i ? folder[0] : model.path, folder[i], &options, NULL), ATT_OK);
        check_folder(folder[i], &o);
    }
    folder_remove(&parent);
    folder_remove(&model);
}

static void validation_counts_and_refitting_uses_all(void **state)
{
    (void)state;
    const test_folder model = folder_of("vit"), parent = folder_new();
    att_image_set *train, *valid;
    att_image_set_info info = {.size = sizeof info};
    assert_int_equal(att_image_set_open(ctx, data.path, ATT_IMAGE_SPLIT_TRAIN, NULL, 0, &train), ATT_OK);
    assert_int_equal(att_image_set_hold_out(train, 0.25, 1, &valid), ATT_OK);
    assert_int_equal(att_image_set_describe(valid, &info), ATT_OK);
    for (int refit = 0; refit < 2; refit++) {
        const att_probe_options o = {.size = sizeof o, .kind = ATT_PROBE_KIND_NEIGHBORS};
        const att_image_probe_options options = {
            .size = sizeof options, .images = train, .valid = valid, .refit = refit, .probe = &o};
        att_probe_result r = {.size = sizeof r};
        att_probe_info stored = {.size = sizeof stored};
        char folder[200];
        snprintf(folder, sizeof folder, "%s/probe-%d", parent.path, refit);
        assert_int_equal(att_image_probe_train(ctx, model.path, folder, &options, &r), ATT_OK);
        assert_int_equal(r.validated, info.images);
        assert_int_equal(r.examples, IMAGES - info.images);
        assert_true(r.correct > 0 && r.correct <= info.images);
        att_image_model *m = open_model(folder);
        assert_int_equal(att_probe_describe(att_image_model_probe(m), &stored), ATT_OK);
        assert_int_equal(stored.vectors, refit ? IMAGES : r.examples);
        att_image_model_free(m);
    }
    att_image_set_free(valid);
    att_image_set_free(train);
    folder_remove(&parent);
    folder_remove(&model);
}

/* Returns whether the folder is empty. */
static bool is_empty(const char *folder)
{
    int n = 0;
    DIR *d = opendir(folder);
    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n == 2;
}

static bool stop(void *user, double share)
{
    (void)user, (void)share;
    return false;
}

static void an_error_leaves_nothing(void **state)
{
    (void)state;
    const test_folder model = folder_of("vit"), parent = folder_new();
    const att_probe_options o = {.size = sizeof o, .c = 1};
    att_image_probe_options options = {.size = sizeof options, .images = set, .probe = &o, .progress = stop};
    char folder[200];
    snprintf(folder, sizeof folder, "%s/probe", parent.path);
    assert_int_equal(att_image_probe_train(ctx, model.path, folder, &options, NULL), ATT_ERR_CANCELLED);
    assert_true(is_empty(parent.path));
    options.progress = NULL;
    assert_int_not_equal(att_image_probe_train(ctx, data.path, folder, &options, NULL), ATT_OK);
    assert_true(is_empty(parent.path));
    assert_int_equal(att_image_probe_train(ctx, model.path, model.path, &options, NULL), ATT_ERR_ARGUMENT);
    check_message(ctx, "is not empty");
    folder_remove(&parent);
    folder_remove(&model);
}

/* Damaged files of a probe are refused with their name. */
static void damaged_probes_are_refused(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"{", "probe.json"},
        {"{\"inputs\": \"images\", \"kind\": \"tree\", \"labels\": []}", "linear or knn"},
        {"{\"inputs\": \"texts\"}", "\"inputs\" is \"texts\", but the model embeds images"},
        {"{\"kind\": \"knn\", \"inputs\": \"images\", \"dim\": 15, \"labels\": [\"a\", \"b\"], \"counts\": [1, 1], "
         "\"temperature\": 1, \"neighbors\": 1}",
         "\"dim\" is 15, but the model's vectors have 16 numbers"},
        {"{\"kind\": \"knn\", \"inputs\": \"images\", \"dim\": 16, \"labels\": [\"a\", \"b\"], \"counts\": [1, -1], "
         "\"temperature\": 1, \"neighbors\": 1}",
         "\"counts\" has -1"},
        {"{\"kind\": \"knn\", \"inputs\": \"images\", \"dim\": 16, \"labels\": [\"a\", \"b\"], \"counts\": [1, 5], "
         "\"temperature\": 1, \"neighbors\": 1}",
         "the shape of \"vectors\" does not fit probe.json, which has 6 x 16"},
        {"{\"kind\": \"linear\", \"inputs\": \"images\", \"dim\": 16, \"labels\": [\"a\"]}", "expected 2 to"},
        {"{\"kind\": \"linear\", \"inputs\": \"images\", \"dim\": 16, \"labels\": [\"a\", 2]}", "2, not a name"},
        {"{\"kind\": \"linear\", \"inputs\": \"images\", \"dim\": 16, \"labels\": [\"a\", \"b\"]}", "weight"},
    };
    const test_folder model = folder_of("vit");
    const att_probe_options o = {.size = sizeof o, .kind = ATT_PROBE_KIND_NEIGHBORS};
    const att_image_probe_options options = {.size = sizeof options, .images = set, .probe = &o};
    test_folder folder = folder_new();
    assert_int_equal(att_image_probe_train(ctx, model.path, folder.path, &options, NULL), ATT_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        att_image_model *m;
        folder_write(&folder, "probe.json", cases[i][0]);
        assert_int_not_equal(att_image_model_open(ctx, folder.path, NULL, &m), ATT_OK);
        check_message(ctx, cases[i][1]);
    }
    folder_remove(&folder);
    folder_remove(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_linear_probe_becomes_the_classifier_of_a_model_that_can_be_written),
        cmocka_unit_test(other_models_get_a_probe_of_their_own),
        cmocka_unit_test(a_probe_is_trained_on_a_model_that_has_one),
        cmocka_unit_test(validation_counts_and_refitting_uses_all),
        cmocka_unit_test(an_error_leaves_nothing),
        cmocka_unit_test(damaged_probes_are_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
