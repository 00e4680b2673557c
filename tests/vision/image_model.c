/* Images to classes, embeddings and attention: against the model alone, and attention against PyTorch. */
// labels: threads
#include "fixtures/fail_alloc.h"
#include "fixtures/progress.h"
#include "fixtures/tiny_vit.h"
#include "fixtures/trace_rows.h"

#include <jansson.h>
#include <pthread.h>

enum { SIDE = 12, CLASSES = 5 };

static att_image_model *open_model(const test_folder *folder)
{
    att_image_model *m;
    if (att_image_model_open(ctx, folder->path, NULL, &m))
        fail_msg("%s", att_error(ctx));
    return m;
}

static void expect_error(att_status is, att_status status, const char *words)
{
    assert_int_equal(is, status);
    if (!strstr(att_error(ctx), words))
        fail_msg("\"%s\" does not say \"%s\"", att_error(ctx), words);
}

/* Its images are of 12 x 12 pixels. */
static test_folder model_folder(const char *name)
{
    const test_folder folder = tiny_vit_folder(name, NULL);
    folder_write(&folder, "preprocessor_config.json",
                 "{\"image_processor_type\": \"ViTImageProcessor\", \"size\": {\"height\": 12, \"width\": 12}, "
                 "\"image_mean\": [0.5, 0.5, 0.5], \"image_std\": [0.5, 0.5, 0.5]}");
    return folder;
}

/* Makes an image of any size whose pixels differ from those of others. */
static att_image new_image(int64_t height, int64_t width, int factor)
{
    const int64_t n = height * width * 3;
    att_image image = {.height = height, .width = width, .channels = 3, .pixels = malloc((size_t)n)};
    for (int64_t i = 0; i < n; i++)
        image.pixels[i] = (uint8_t)(i * factor % 256);
    return image;
}

/* ---- classes and embeddings */

enum { IMAGES = 7 };

static void fill_images(att_image images[IMAGES])
{
    for (int i = 0; i < IMAGES; i++)
        images[i] = i % 2 ? new_image(SIDE, SIDE, 37 + i) : new_image(20 + i, 31, 11 + i);
}

static void free_images(att_image images[IMAGES])
{
    for (int i = 0; i < IMAGES; i++)
        free(images[i].pixels);
}

/* What the model says of one image after preprocessing */
static void alone(const att_image_model *m, const att_image *image, tiny_vit_function f, float *out)
{
    static tiny_images x;
    tiny_images_make(&x, 1, SIDE, SIDE, 3);
    assert_int_equal(att_image_processor_apply(att_image_model_processor(m), image, x.pixel), ATT_OK);
    tiny_vit_apply(att_image_model_vit(m), f, &x.tensor, out);
}

static void probabilities_are_softmax_of_logits(void **state)
{
    (void)state;
    const test_folder folder = model_folder("vit");
    att_image_model *m = open_model(&folder);
    att_image images[IMAGES];
    float p[IMAGES * CLASSES], logits[CLASSES];
    fill_images(images);
    assert_int_equal(att_image_classify(m, IMAGES, images, NULL, p), ATT_OK);
    for (int i = 0; i < IMAGES; i++) {
        double sum = 0;
        alone(m, &images[i], att_vit_logits, logits);
        for (int c = 0; c < CLASSES; c++)
            sum += exp((double)logits[c]);
        for (int c = 0; c < CLASSES; c++)
            assert_true(fabs((double)p[i * CLASSES + c] - exp((double)logits[c]) / sum) < 1e-6);
    }
    free_images(images);
    att_image_model_free(m);
    folder_remove(&folder);
}

/* In several batches, too: 3000 images are more than one has. */
static void an_image_has_the_same_bits_in_any_company(void **state)
{
    (void)state;
    enum { MANY = 3000 };
    const test_folder folder = model_folder("dinov2");
    att_image_model *m = open_model(&folder);
    att_image images[IMAGES], *many = malloc(MANY * sizeof *many);
    const int64_t dim = att_image_model_dim(m);
    assert_int_equal(dim, 32);
    float one[32], *all = malloc((size_t)(MANY * dim) * sizeof *all);
    fill_images(images);
    for (int i = 0; i < MANY; i++)
        many[i] = images[i % IMAGES];
    assert_int_equal(att_image_embed(m, MANY, many, NULL, all), ATT_OK);
    for (int i = 0; i < MANY; i++) {
        if (i < IMAGES) {
            assert_int_equal(att_image_embed(m, 1, &images[i], NULL, one), ATT_OK);
            assert_memory_equal(one, all + i * dim, sizeof one);
        }
        assert_memory_equal(all + i % IMAGES * dim, all + i * dim, sizeof one);
    }
    alone(m, &images[3], att_vit_features, one);
    assert_memory_equal(one, all + 3 * dim, sizeof one);
    free(many);
    free(all);
    free_images(images);
    att_image_model_free(m);
    folder_remove(&folder);
}

/* ---- threads and memory */

typedef struct use {
    const att_image_model *m;
    const att_image *images; /* [IMAGES] */
    float p[IMAGES * CLASSES];
    att_status status;
} use;

static void *classify(void *arg)
{
    use *u = arg;
    att_trace *t = NULL;
    float weights[10 * 10];
    u->status = att_image_classify(u->m, IMAGES, u->images, NULL, u->p);
    u->status = u->status ? u->status : att_image_trace(u->m, u->images, NULL, &t);
    u->status = u->status ? u->status : att_trace_rollout(t, weights);
    att_trace_free(t);
    return NULL;
}

static void threads_share_a_model_and_their_number_changes_no_bit(void **state)
{
    (void)state;
    const test_folder folder = model_folder("vit");
    att_image images[IMAGES];
    fill_images(images);
    att_image_model *m = open_model(&folder), *other;
    use uses[3] = {{.m = m, .images = images}, {.m = m, .images = images}};
    pthread_t thread[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, classify, &uses[i]), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    att_ctx *alone;
    assert_int_equal(att_open(&alone, ATT_OPTIONS(att_config, .n_threads = 1)), ATT_OK);
    assert_int_equal(att_image_model_open(alone, folder.path, NULL, &other), ATT_OK);
    uses[2] = (use){.m = other, .images = images};
    classify(&uses[2]);
    for (int i = 0; i < 3; i++)
        assert_int_equal(uses[i].status, ATT_OK);
    assert_memory_equal(uses[0].p, uses[1].p, sizeof uses[0].p);
    assert_memory_equal(uses[0].p, uses[2].p, sizeof uses[0].p);
    att_image_model_free(other);
    att_close(alone);
    att_image_model_free(m);
    free_images(images);
    folder_remove(&folder);
}

typedef struct results {
    float p[IMAGES * CLASSES], weights[10 * 10];
} results;

/* Opens and uses a model; f's memory. */
static att_status compute(const test_folder *folder, const att_image *images, fail_alloc *f, results *r)
{
    att_ctx *poor;
    att_image_model *m = NULL;
    att_trace *t = NULL;
    att_status s = att_open(&poor, ATT_OPTIONS(att_config, .n_threads = 1, .allocator = fail_allocator(f)));
    if (s)
        return s;
    s = att_image_model_open(poor, folder->path, NULL, &m);
    s = s ? s : att_image_classify(m, IMAGES, images, NULL, r->p);
    s = s ? s : att_image_trace(m, &images[0], NULL, &t);
    if (!s) {
        assert_int_equal(trace_info(t).source, 10);
        s = att_trace_rollout(t, r->weights);
    }
    att_trace_free(t);
    att_image_model_free(m);
    att_close(poor);
    assert_int_equal(f->live, 0);
    return s;
}

/* One allocation fails, or two: it is an error, or the results are the right ones. */
static void memory_may_run_out_anywhere(void **state)
{
    (void)state;
    const test_folder folder = model_folder("vit");
    att_image images[IMAGES];
    fail_alloc enough = {0};
    static results right, r;
    fill_images(images);
    assert_int_equal(compute(&folder, images, &enough, &right), ATT_OK);
    assert_true(enough.calls > 50);
    for (long more = 0; more < 2; more++)
        for (long n = 1; n <= enough.calls; n += check_step(7)) {
            fail_alloc f = {.fail_at = n, .more = more};
            memset(&r, 0, sizeof r);
            const att_status s = compute(&folder, images, &f, &r);
            assert_true(s == ATT_OK || s == ATT_ERR_MEMORY);
            if (!s)
                assert_memory_equal(&r, &right, sizeof r);
        }
    free_images(images);
    folder_remove(&folder);
}

/* ---- labels */

static void expect_labels(const test_folder *folder, const char *first, const char *last)
{
    att_image_model *m = open_model(folder);
    assert_string_equal(att_image_model_label(m, 0), first);
    assert_string_equal(att_image_model_label(m, CLASSES - 1), last);
    assert_null(att_image_model_label(m, CLASSES));
    assert_null(att_image_model_label(m, -1));
    att_image_model_free(m);
}

/* Other names in config.json, which has "LABEL_0" and so on */
static void write_labels(const test_folder *folder, const char *names)
{
    char text[300];
    snprintf(text, sizeof text, "%s/config.json", folder->path);
    json_t *root = json_load_file(text, 0, NULL);
    snprintf(text, sizeof text, "{%s}", names);
    assert_int_equal(json_object_set_new(root, "id2label", json_loads(text, 0, NULL)), 0);
    char *all = json_dumps(root, 0);
    folder_write(folder, "config.json", all);
    free(all);
    json_decref(root);
}

static void classes_have_names_or_numbers(void **state)
{
    (void)state;
    static const char sizes[] = "\"pretrained_cfg\": {\"input_size\": [3, 12, 12]%s}, \"architecture\": "
                                "\"vit_tiny_patch16_224\", \"num_classes\": 5, \"model_args\": {\"embed_dim\": 16, "
                                "\"depth\": 2, \"num_heads\": 4, \"mlp_ratio\": 1.5, \"patch_size\": 4}%s}";
    static const char list[] = ", \"label_names\": [\"a\", \"b\", \"c\", \"d\", \"e\"]";
    char text[800] = "{";
    test_folder folder = model_folder("vit");
    expect_labels(&folder, "LABEL_0", "LABEL_4");
    folder_remove(&folder);
    static const struct {
        const char *names, *first; /* NULL: refused */
    } objects[] = {
        {"\"4\": \"e\", \"0\": \"a\", \"1\": \"b\", \"2\": \"c\", \"3\": \"d\"", "a"},
        {"\"0\": 7, \"1\": 8, \"2\": 9, \"3\": 1.5, \"4\": \"e\"", "7"},
        {"\"1\": \"a\", \"2\": \"b\", \"3\": \"c\", \"4\": \"d\", \"5\": \"e\"", NULL},
        {"\"a\": \"a\", \"b\": \"b\", \"c\": \"c\", \"d\": \"d\", \"e\": \"e\"", NULL},
        {"\"0\": \"a\", \"1\": null, \"2\": \"c\", \"3\": \"d\", \"4\": \"e\"", NULL},
    };
    for (size_t i = 0; i < sizeof objects / sizeof objects[0]; i++) {
        folder = model_folder("vit");
        write_labels(&folder, objects[i].names);
        att_image_model *m;
        if (objects[i].first)
            expect_labels(&folder, objects[i].first, "e");
        else
            expect_error(att_image_model_open(ctx, folder.path, NULL, &m), ATT_ERR_FORMAT,
                         "config.json: \"id2label\" has no name for class ");
        folder_remove(&folder);
    }
    folder = model_folder("timm_vit");
    expect_labels(&folder, "0", "4");
    snprintf(text + 1, sizeof text - 1, sizes, "", list);
    folder_write(&folder, "config.json", text);
    expect_labels(&folder, "a", "e");
    snprintf(text + 1, sizeof text - 1, sizes, list, "");
    folder_write(&folder, "config.json", text);
    expect_labels(&folder, "a", "e");
    folder_remove(&folder);
}

/* ---- attention */

static void expect_attention(const att_image_model *m, const char *name, const char *what, int64_t layer, int64_t head)
{
    static double want[TINY_VIT_NUMBERS];
    att_image image = new_image(SIDE, SIDE, 37);
    att_trace *t;
    if (att_image_trace(m, &image, NULL, &t))
        fail_msg("%s", att_error(ctx));
    const att_trace_info a = trace_info(t);
    const int64_t tokens = a.source;
    assert_int_equal(a.grid[0], 3);
    assert_int_equal(a.grid[1], 3);
    assert_int_equal(tokens, a.prefix + 9);
    assert_int_equal(golden_line(TINY_VIT_GOLDEN, tiny_vit_key(name, what), want, TINY_VIT_NUMBERS), tokens * tokens);
    float *weights = layer < 0 ? malloc((size_t)(tokens * tokens) * sizeof *weights)
                               : trace_weights(t, ATT_TRACE_SIDE_ENCODER, layer, head);
    if (layer < 0 && att_trace_rollout(t, weights))
        fail_msg("%s", att_error(ctx));
    for (int64_t row = 0; row < tokens; row++) {
        double sum = 0;
        for (int64_t i = row * tokens; i < (row + 1) * tokens; i++) {
            sum += (double)weights[i];
            if (!(fabs((double)weights[i] - want[i]) <= 1e-5))
                fail_msg("%s.%s: weight %lld is %g, not %g", name, what, (long long)i, (double)weights[i], want[i]);
        }
        assert_true(fabs(sum - 1) < 1e-5);
    }
    assert_int_equal(a.image->height, SIDE);
    assert_memory_equal(a.image->pixels, image.pixels, SIDE * SIDE * 3);
    free(weights);
    att_trace_free(t);
    free(image.pixels);
}

static void attention_and_rollout_are_those_of_pytorch(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int prefix;
    } models[] = {{"vit", 1}, {"registers", 4}};
    for (int i = 0; i < 2; i++) {
        const test_folder folder = model_folder(models[i].name);
        att_image_model *m = open_model(&folder);
        expect_attention(m, models[i].name, "head", 1, 2);
        expect_attention(m, models[i].name, "mean", 0, -1);
        expect_attention(m, models[i].name, "rollout", -1, -1);
        att_image_model_free(m);
        folder_remove(&folder);
    }
}

/* Of the class token alone, whose logits are those of att_vit_logits: the same bits. Of an earlier layer they are
 * others. Without a classifier the output is the embedding. */
static void the_output_of_a_trace_is_that_of_the_model(void **state)
{
    (void)state;
    static const char *const models[] = {"vit", "registers", "vit_model"};
    for (int i = 0; i < 3; i++) {
        const test_folder folder = model_folder(models[i]);
        att_image_model *m = open_model(&folder);
        att_vit_info v = {.size = sizeof v};
        att_image image = new_image(SIDE, SIDE, 37);
        float expected[64];
        att_trace *t;
        assert_int_equal(att_vit_describe(att_image_model_vit(m), &v), ATT_OK);
        if (att_image_trace(m, &image, ATT_OPTIONS(att_trace_options, .hidden = true), &t))
            fail_msg("%s", att_error(ctx));
        const att_trace_info info = trace_info(t);
        assert_int_equal(info.outputs, v.classes ? v.classes : att_image_model_dim(m));
        assert_true(info.output_rows == 1 && info.target == 0 && !info.source_ids);
        assert_true(info.layers[ATT_TRACE_SIDE_ENCODER] == v.layers && info.attentions == v.layers);
        att_trace *told;
        const att_trace_options o = {.size = sizeof o, .hidden = true, .describe_only = true};
        assert_int_equal(att_image_trace(m, &image, &o, &told), ATT_OK);
        assert_true(info.bytes > SIDE * SIDE * 3 && trace_info(told).bytes == info.bytes && !trace_info(told).image);
        assert_true(trace_info(told).grid[0] == 3 && trace_info(told).source == info.source);
        att_trace_free(told);
        if (v.classes)
            alone(m, &image, att_vit_logits, expected);
        else
            assert_int_equal(att_image_embed(m, 1, &image, NULL, expected), ATT_OK);
        float *last = trace_output(t, -1), *same = trace_output(t, v.layers), *first = trace_output(t, 0);
        assert_memory_equal(last, expected, (size_t)info.outputs * sizeof *last);
        assert_memory_equal(last, same, (size_t)info.outputs * sizeof *last);
        assert_memory_not_equal(last, first, (size_t)info.outputs * sizeof *last);
        free(last), free(same), free(first);
        att_trace_free(t);
        free(image.pixels);
        att_image_model_free(m);
        folder_remove(&folder);
    }
}

/* Whether a patch is hidden that is gray or white makes no difference to the classes. */
static void hidden_patches_change_nothing(void **state)
{
    (void)state;
    static const int64_t hide[] = {1 + 4}; /* after [CLS], the patch in the middle */
    const test_folder folder = model_folder("vit");
    att_image_model *m = open_model(&folder);
    att_image image = new_image(SIDE, SIDE, 37);
    att_trace *t[3];
    float *logits[3];
    for (int i = 0; i < 3; i++) {
        const att_trace_options o = {.size = sizeof o, .hide = hide, .n_hide = i > 0};
        for (int y = SIDE / 3; i == 2 && y < 2 * SIDE / 3; y++)
            memset(image.pixels + (y * SIDE + SIDE / 3) * 3, 255, SIDE);
        if (att_image_trace(m, &image, &o, &t[i]))
            fail_msg("%s", att_error(ctx));
        logits[i] = trace_output(t[i], -1);
    }
    float *weights = trace_weights(t[1], ATT_TRACE_SIDE_ENCODER, 0, -1);
    for (int i = 0; i < 10; i++)
        assert_true(weights[i * 10 + 5] <= 0);
    trace_check_rows(weights, 10, 10);
    assert_memory_not_equal(logits[0], logits[1], CLASSES * sizeof *logits[0]);
    assert_memory_equal(logits[1], logits[2], CLASSES * sizeof *logits[1]);
    free(weights);
    for (int i = 0; i < 3; i++) {
        free(logits[i]);
        att_trace_free(t[i]);
    }
    free(image.pixels);
    att_image_model_free(m);
    folder_remove(&folder);
}

/* ---- errors */

static void what_does_not_fit_is_named(void **state)
{
    (void)state;
    const test_folder folder = model_folder("vit"), bare = model_folder("vit_model");
    att_image_model *m = open_model(&folder), *other;
    att_image image = new_image(SIDE, SIDE, 37), images[2] = {image, {.height = 4, .width = 4, .channels = 2}};
    att_trace *t;
    float out[64];
    static const int64_t layers[] = {2, -2}, hide[] = {10};
    static const int32_t ids[] = {1};
    assert_int_equal(att_image_trace(m, &image, NULL, &t), ATT_OK);
    assert_int_equal(att_trace_find(t, ATT_TRACE_SIDE_ENCODER, 2), -1);
    assert_int_equal(att_trace_find(t, ATT_TRACE_SIDE_ENCODER, -2), -1);
    expect_error(att_trace_weights(t, 2, 0, 0, 1, out), ATT_ERR_ARGUMENT, "i is 2, but the attentions are 0 to 1");
    expect_error(att_trace_weights(t, 0, 4, 0, 1, out), ATT_ERR_ARGUMENT, "head is 4, but the heads are 0 to 3");
    att_trace_free(t);
    for (int i = 0; i < 2; i++)
        expect_error(
            att_image_trace(m, &image, ATT_OPTIONS(att_trace_options, .layers = layers + i, .n_layers = 1), &t),
            ATT_ERR_ARGUMENT, i ? "options.layers[0] is -2" : "options.layers[0] is 2");
    expect_error(att_image_trace(m, &image, ATT_OPTIONS(att_trace_options, .hide = hide, .n_hide = 1), &t),
                 ATT_ERR_ARGUMENT, "options.hide[0] is 10, but the tokens are 0 to 9");
    expect_error(att_image_trace(m, &image, ATT_OPTIONS(att_trace_options, .ids = ids, .n_ids = 1), &t),
                 ATT_ERR_ARGUMENT, "options.ids are given, but the tokens are an image's");
    assert_null(t);
    images[1].pixels = image.pixels;
    assert_int_equal(att_image_classify(m, 2, images, NULL, out), ATT_ERR_ARGUMENT);
    assert_non_null(strstr(att_error(ctx), "2"));
    expect_error(att_image_classify(m, -1, images, NULL, out), ATT_ERR_ARGUMENT, "n is -1");
    expect_error(att_image_classify(NULL, 1, images, NULL, out), ATT_ERR_ARGUMENT, "m is NULL");
    assert_int_equal(att_image_classify(m, 0, NULL, NULL, NULL), ATT_OK);
    other = open_model(&bare);
    expect_error(att_image_classify(other, 1, images, NULL, out), ATT_ERR_ARGUMENT, "no classifier");
    assert_int_equal(att_image_embed(other, 1, images, NULL, out), ATT_OK);
    att_image_model_free(other);
    folder_write(&folder, "preprocessor_config.json",
                 "{\"image_processor_type\": \"ViTImageProcessor\", \"size\": {\"height\": 24, \"width\": 12}}");
    expect_error(att_image_model_open(ctx, folder.path, NULL, &other), ATT_ERR_FORMAT,
                 "images of 24 x 12 x 3 (height, width, channels), but the model has 12 x 12 x 3");
    assert_null(other);
    assert_int_equal(att_image_model_dim(NULL), 0);
    att_image_model_free(m);
    free(image.pixels);
    folder_remove(&folder);
    folder_remove(&bare);
}

/* No answer is better than one from values that are not numbers. */
static void probabilities_that_are_not_finite_are_an_error(void **state)
{
    (void)state;
    const test_folder folder = model_folder("vit"), damaged = folder_new();
    att_vit *learns = tiny_vit_open(&folder, true);
    const char *name;
    for (int64_t i = 0; i < att_nn_params_count(att_vit_params(learns)); i++) {
        const att_param *p = att_nn_params_at(att_vit_params(learns), i, &name);
        if (!strcmp(name, "head.bias"))
            ((float *)att_param_value(p)->data)[3] = NAN;
    }
    assert_int_equal(att_vit_write(learns, damaged.path, NULL, 0), ATT_OK);
    att_vit_free(learns);
    folder_write(&damaged, "preprocessor_config.json",
                 "{\"image_processor_type\": \"ViTImageProcessor\", \"size\": {\"height\": 12, \"width\": 12}}");
    att_image_model *m = open_model(&damaged);
    att_image images[IMAGES];
    float p[IMAGES * CLASSES];
    fill_images(images);
    expect_error(att_image_classify(m, IMAGES, images, NULL, p), ATT_ERR_FORMAT,
                 "the probabilities of image 0 are not finite");
    free_images(images);
    att_image_model_free(m);
    folder_remove(&damaged);
    folder_remove(&folder);
}

/* Images of more than two batches */
typedef struct many_images {
    const att_image_model *m;
    att_image images[600];
    float out[600 * 32];
} many_images;

static att_status classify_in_batches(void *what, att_progress_fn progress, void *user)
{
    many_images *x = what;
    const att_status s = att_image_classify(x->m, 600, x->images,
                                            ATT_OPTIONS(att_call_options, .progress = progress, .user = user), x->out);
    progress_result(s, x->out, 600 * CLASSES * sizeof *x->out);
    return s;
}

static att_status embed_in_batches(void *what, att_progress_fn progress, void *user)
{
    many_images *x = what;
    const att_status s = att_image_embed(x->m, 600, x->images,
                                         ATT_OPTIONS(att_call_options, .progress = progress, .user = user), x->out);
    progress_result(s, x->out, (size_t)(600 * att_image_model_dim(x->m)) * sizeof *x->out);
    return s;
}

static void progress_may_stop_the_calls(void **state)
{
    (void)state;
    static many_images x;
    const test_folder folder = model_folder("vit");
    att_image_model *m = open_model(&folder);
    att_image images[IMAGES];
    fill_images(images);
    x.m = m;
    for (int i = 0; i < 600; i++)
        x.images[i] = images[i % IMAGES];
    assert_progress(ctx, classify_in_batches, &x);
    assert_progress(ctx, embed_in_batches, &x);
    free_images(images);
    att_image_model_free(m);
    folder_remove(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(probabilities_are_softmax_of_logits),
        cmocka_unit_test(an_image_has_the_same_bits_in_any_company),
        cmocka_unit_test(threads_share_a_model_and_their_number_changes_no_bit),
        cmocka_unit_test(memory_may_run_out_anywhere),
        cmocka_unit_test(classes_have_names_or_numbers),
        cmocka_unit_test(attention_and_rollout_are_those_of_pytorch),
        cmocka_unit_test(the_output_of_a_trace_is_that_of_the_model),
        cmocka_unit_test(hidden_patches_change_nothing),
        cmocka_unit_test(probabilities_that_are_not_finite_are_an_error),
        cmocka_unit_test(what_does_not_fit_is_named),
        cmocka_unit_test(progress_may_stop_the_calls),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
