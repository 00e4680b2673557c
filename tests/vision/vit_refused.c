/* Folders and images that a vision Transformer refuses, each with one sentence; memory that runs out. */
#include "fixtures/fail_alloc.h"
#include "fixtures/tiny_vit.h"

static void expect_words(att_status is, att_status status, const char *words)
{
    if (is != status || !strstr(att_error(ctx), words))
        fail_msg("status %d, \"%s\"; expected %d and \"%s\"", (int)is, att_error(ctx), (int)status, words);
}

static void expect_failure(const test_folder *folder, att_status status, const char *words)
{
    att_vit *m = (att_vit *)(uintptr_t)1;
    expect_words(att_vit_open(ctx, folder->path, NULL, &m), status, words);
    assert_null(m);
}

/* ---- settings */

#define OWN                                                                                                            \
    "\"model_type\": \"attend-vit\", \"hidden_size\": 16, \"num_hidden_layers\": 2, \"num_attention_heads\": 4, "      \
    "\"intermediate_size\": 24, \"image_size\": 12, \"num_labels\": 5"
#define TIMM                                                                                                           \
    "\"architecture\": \"vit_tiny_patch16_224\", \"num_classes\": 5, \"pretrained_cfg\": {\"input_size\": [3, 32, "    \
    "32]}, \"model_args\": {\"depth\": 1"

/* A key that is there twice is refused, too, so these replace none. */
static void settings_that_do_not_fit_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *settings;
        att_status status;
        const char *words;
    } bad[] = {
        {"{}", ATT_ERR_FORMAT, "model_type"},
        {"{\"model_type\": \"swin\"}", ATT_ERR_UNSUPPORTED,
         "\"model_type\" is \"swin\", which is not supported; one of vit, deit, dinov2, dinov2_with_registers and "
         "attend-vit is"},
        {"{\"model_type\": \"vit\", \"num_attention_heads\": 5}", ATT_ERR_FORMAT,
         "\"num_attention_heads\" is 5, which does not divide \"hidden_size\", 768"},
        {"{\"model_type\": \"vit\", \"hidden_size\": 0}", ATT_ERR_FORMAT, "\"hidden_size\" is 0"},
        {"{\"model_type\": \"vit\", \"image_size\": 8}", ATT_ERR_FORMAT, "\"image_size\" is 8, less than a patch, 16"},
        {"{\"model_type\": \"vit\", \"image_size\": [8]}", ATT_ERR_FORMAT, "\"image_size\" is [8"},
        {"{\"model_type\": \"vit\", \"image_size\": [32, 0.5]}", ATT_ERR_FORMAT, "\"image_size\" is [32"},
        {"{\"model_type\": \"vit\", \"patch_size\": 1e9}", ATT_ERR_FORMAT, "\"patch_size\" is"},
        {"{\"model_type\": \"vit\", \"hidden_act\": \"mish\"}", ATT_ERR_UNSUPPORTED, "\"hidden_act\" is \"mish\""},
        {"{\"model_type\": \"vit\", \"layer_norm_eps\": 0}", ATT_ERR_FORMAT, "\"layer_norm_eps\" is 0"},
        {"{\"model_type\": \"vit\", \"quantization_config\": {\"bits\": 4}}", ATT_ERR_UNSUPPORTED,
         "quantization_config"},
        {"{\"model_type\": \"vit\", \"num_labels\": 3, \"id2label\": {\"0\": \"a\", \"1\": \"b\"}}", ATT_ERR_FORMAT,
         "\"num_labels\" is 3, but \"id2label\" has 2 classes"},
        {"{\"model_type\": \"dinov2\", \"mlp_ratio\": 0}", ATT_ERR_FORMAT, "\"mlp_ratio\" is 0"},
        {"{" OWN ", \"stem\": [8]}", ATT_ERR_FORMAT, "\"stem\" ends with 8 channels, but \"hidden_size\" is 16"},
        {"{" OWN ", \"stem\": [0, 16]}", ATT_ERR_FORMAT, "\"stem\" is [0"},
        {"{" OWN ", \"stem\": [16, 16, 16]}", ATT_ERR_UNSUPPORTED, "\"image_size\" is 12, not a multiple of 8"},
        {"{" OWN ", \"stem\": [1, 1, 1, 1, 1, 1, 1, 1, 16]}", ATT_ERR_UNSUPPORTED, "\"stem\" has 9 convolutions"},
        {"{" OWN ", \"pooling\": \"max\"}", ATT_ERR_UNSUPPORTED, "\"pooling\" is \"max\""},
        {"{\"architecture\": \"vit_base_patch16_clip_224\"}", ATT_ERR_UNSUPPORTED,
         "\"architecture\" is \"vit_base_patch16_clip_224\""},
        {"{\"architecture\": \"vit_base_patch16_siglip_224\"}", ATT_ERR_UNSUPPORTED, "no SigLIP"},
        {"{\"architecture\": \"vit_tiny_patch16_\"}", ATT_ERR_UNSUPPORTED, "\"architecture\" is"},
        {"{\"architecture\": \"resnet50\"}", ATT_ERR_UNSUPPORTED, "\"architecture\" is \"resnet50\""},
        {"{\"architecture\": \"vit_tiny_patch16_224\"}", ATT_ERR_FORMAT, "pretrained_cfg"},
        {"{\"architecture\": \"vit_tiny_patch16_224\", \"pretrained_cfg\": {\"input_size\": [224, 224]}}",
         ATT_ERR_FORMAT, "input_size"},
        {"{" TIMM ", \"qk_norm\": true}}", ATT_ERR_UNSUPPORTED, "\"model_args.qk_norm\" is true"},
        {"{" TIMM ", \"pre_norm\": true}}", ATT_ERR_UNSUPPORTED, "pre_norm"},
        {"{" TIMM ", \"act_layer\": \"relu\"}}", ATT_ERR_UNSUPPORTED, "act_layer"},
        {"{" TIMM ", \"global_pool\": \"map\"}}", ATT_ERR_UNSUPPORTED, "\"model_args.global_pool\" is \"map\""},
        {"{" TIMM ", \"num_heads\": 5}}", ATT_ERR_FORMAT, "5"},
        {"{" TIMM ", \"embed_dim\": 0}}", ATT_ERR_FORMAT, "\"model_args\" have 0 features"},
        {"{" TIMM ", \"class_token\": false}}", ATT_ERR_FORMAT, "there is no class token"},
    };
    const test_folder folder = tiny_vit_folder("vit", NULL);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        att_vit *m;
        folder_write(&folder, "config.json", bad[i].settings);
        expect_failure(&folder, bad[i].status, bad[i].words);
        expect_words(att_vit_new(ctx, bad[i].settings, 1, &m), bad[i].status, bad[i].words);
        assert_null(m);
    }
    folder_remove(&folder);
}

/* ---- weights */

static void weights_that_do_not_fit_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        tiny_weights how;
        att_status status;
        const char *words;
    } bad[] = {
        {"vit", {.without = "vit.embeddings.cls_token"}, ATT_ERR_FORMAT, "no tensor \"embeddings.cls_token\""},
        {"vit", {.without = "classifier.bias"}, ATT_ERR_FORMAT, "no tensor \"classifier.bias\""},
        {"vit", {.wider = "classifier.weight"}, ATT_ERR_SHAPE, "is [5, 17] but by config.json it is [5, 16]"},
        {"vit", {.wider = "classifier.bias"}, ATT_ERR_SHAPE, "is [6] but by config.json it is [5]"},
        {"dinov2", {.without = "dinov2.encoder.layer.1.layer_scale2.lambda1"}, ATT_ERR_FORMAT, "layer_scale2.lambda1"},
        {"dinov2_giant", {.wider = "dinov2.encoder.layer.0.mlp.weights_in.bias"}, ATT_ERR_SHAPE, "weights_in.bias"},
        {"timm_vit", {.wider = "blocks.1.attn.qkv.bias"}, ATT_ERR_SHAPE, "is [49] but by config.json it is [48]"},
        {"timm_distilled", {.without = "dist_token"}, ATT_ERR_FORMAT, "dist_token"},
        {"timm_mean", {.without = "fc_norm.weight"}, ATT_ERR_FORMAT, "no tensor \"norm.weight\""},
        {"own_stem", {.without = "vit.embeddings.stem.1.weight"}, ATT_ERR_FORMAT, "stem.1.weight"},
        {"own_stem", {.wider = "vit.embeddings.stem.0.weight"}, ATT_ERR_SHAPE, "[8, 1, 3, 4]"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const test_folder folder = tiny_vit_folder(bad[i].model, &bad[i].how);
        expect_failure(&folder, bad[i].status, bad[i].words);
        folder_remove(&folder);
    }
}

static void tensors_of_training_alone_are_ignored(void **state)
{
    (void)state;
    const test_folder folder = tiny_vit_folder("vit", &(const tiny_weights){.extra = "vit.pooler.dense.bias"});
    att_vit_free(tiny_vit_open(&folder, false));
    folder_remove(&folder);
}

static void half_weights_are_those_of_f32(void **state)
{
    (void)state;
    static float y[2][TINY_VIT_NUMBERS];
    static tiny_images images;
    static const char *const models[] = {"vit", "dinov2_giant", "timm_reg4", "own_stem", "registers"};
    for (size_t k = 0; k < sizeof models / sizeof models[0]; k++) {
        int64_t n = 0;
        tiny_images_of(&images, models[k]);
        for (int bf16 = 0; bf16 < 2; bf16++) {
            const test_folder folder = tiny_vit_folder(models[k], &(const tiny_weights){.coarse = !bf16, .bf16 = bf16});
            att_vit *m = tiny_vit_open(&folder, false);
            n = tiny_vit_apply(m, att_vit_logits, &images.tensor, y[bf16]);
            att_vit_free(m);
            folder_remove(&folder);
        }
        assert_memory_equal(y[0], y[1], (size_t)n * sizeof(float));
    }
}

/* ---- images */

static void expect_refused(att_tape *t, const att_vit *m, const tiny_images *images, const char *words)
{
    att_tensor y;
    expect_words(att_var_value(t, att_vit_logits(t, m, att_input(t, &images->tensor), NULL), &y), ATT_ERR_SHAPE, words);
    att_tape_reset(t);
}

static void images_of_another_size_are_refused(void **state)
{
    (void)state;
    static tiny_images images;
    const test_folder folder = tiny_vit_folder("vit", NULL), other = tiny_vit_folder("dinov2", NULL);
    att_vit *m = tiny_vit_open(&folder, false), *dinov2 = tiny_vit_open(&other, false);
    att_tape *t;
    att_tensor y;
    assert_int_equal(att_tape_new(ctx, NULL, &t), ATT_OK);
    tiny_images_make(&images, 1, 12, 16, 3);
    expect_refused(t, m, &images, "images are [1, 12, 16, 3], but the model has images of 12 x 12");
    tiny_images_make(&images, 1, 12, 3, 3);
    expect_refused(t, dinov2, &images, "images are [1, 12, 3, 3], but the model has patches of 4 x 4");
    tiny_images_make(&images, 2, 12, 12, 1);
    expect_refused(t, m, &images, "images are [2, 12, 12, 1], not [n, 12, 12, 3]");
    tiny_images_make(&images, 0, 12, 12, 3);
    expect_refused(t, m, &images, "images are [0, 12, 12, 3]");
    expect_words(att_var_value(t, att_vit_apply(t, NULL, att_input(t, &images.tensor), NULL), &y), ATT_ERR_ARGUMENT,
                 "m is NULL");
    att_tape_free(t);
    att_vit_free(m);
    att_vit_free(dinov2);
    folder_remove(&folder);
    folder_remove(&other);
}

/* ---- memory */

/* Opens and applies a model whose n-th allocation fails: is it done? */
static bool survives(const test_folder *folder, const tiny_images *images, long n)
{
    fail_alloc f = {.fail_at = n};
    att_ctx *poor;
    att_vit *m = NULL;
    att_tape *t = NULL;
    att_tensor y;
    att_status s = att_open(&poor, ATT_OPTIONS(att_config, .n_threads = 1, .allocator = fail_allocator(&f)));
    if (s) {
        assert_int_equal(s, ATT_ERR_MEMORY);
        return false;
    }
    s = att_vit_open(poor, folder->path, NULL, &m);
    s = s ? s : att_tape_new(poor, NULL, &t);
    s = s ? s : att_var_value(t, att_vit_logits(t, m, att_input(t, &images->tensor), NULL), &y);
    assert_true(s == ATT_OK || s == ATT_ERR_MEMORY);
    att_tape_free(t);
    att_vit_free(m);
    att_close(poor);
    assert_int_equal(f.live, 0);
    return !s;
}

static void memory_may_run_out_anywhere(void **state)
{
    (void)state;
    static const char *const models[] = {"registers", "own_stem", "timm_distilled"};
    static tiny_images images;
    for (size_t k = 0; k < sizeof models / sizeof models[0]; k++) {
        const test_folder folder = tiny_vit_folder(models[k], NULL);
        long n = 1;
        tiny_images_of(&images, models[k]);
        while (!survives(&folder, &images, n))
            n += check_step(7);
        assert_true(n > 50);
        folder_remove(&folder);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_that_do_not_fit_are_named),    cmocka_unit_test(weights_that_do_not_fit_are_named),
        cmocka_unit_test(tensors_of_training_alone_are_ignored), cmocka_unit_test(half_weights_are_those_of_f32),
        cmocka_unit_test(images_of_another_size_are_refused),    cmocka_unit_test(memory_may_run_out_anywhere),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
