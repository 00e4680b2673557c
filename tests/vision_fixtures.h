/* Images, vision Transformers and what trains them: for tests/null_fixtures.h, whose give() they use. */
#ifndef VISION_FIXTURES_H
#define VISION_FIXTURES_H

#include "attend_vision.h"
#include "captioner_files.h"
#include "folder.h"

#include <sys/stat.h>

static void give(const char *of, const void *value);
static void need(att_status s);

enum { VISION_SIDE = 2, VISION_CLASSES = 2 };
static const char *const vision_labels[VISION_CLASSES] = {"a", "b"};
static const char vision_settings[] =
    "{\"model_type\": \"vit\", \"hidden_size\": 4, \"num_hidden_layers\": 1, \"num_attention_heads\": 1, "
    "\"intermediate_size\": 4, \"image_size\": 2, \"patch_size\": 1, \"num_channels\": 3, \"num_labels\": 2}";

/* A PNG file in memory, decoded, and the files a/1.png, a/2.png, b/1.png, b/2.png in a folder. */
static void give_images(att_ctx *c, const test_folder *folder)
{
    static uint8_t pixels[VISION_SIDE * VISION_SIDE * 3] = {1, 2, 3};
    static const att_image image = {VISION_SIDE, VISION_SIDE, 3, pixels};
    static const uint8_t colour[] = {1, 2, 3};
    static const att_image_options decoding = {.size = sizeof decoding, .background = colour};
    static const att_image_filter filter = ATT_FILTER_BICUBIC;
    static const int64_t side = VISION_SIDE, channels = 1;
    static att_image_bytes png;
    static att_image decoded;
    static char path[160];
    need(att_image_encode_png(c, &image, &png));
    for (int i = 0; i < VISION_CLASSES; i++) {
        snprintf(path, sizeof path, "%s/%s", folder->path, vision_labels[i]);
        assert_int_equal(mkdir(path, 0777), 0);
        for (int k = 1; k <= 2; k++) {
            snprintf(path, sizeof path, "%s/%d.png", vision_labels[i], k);
            FILE *f = folder_open(folder, path);
            assert_true(fwrite(png.data, 1, png.bytes, f) == png.bytes);
            assert_int_equal(fclose(f), 0);
        }
    }
    snprintf(path, sizeof path, "%s/a/1.png", folder->path);
    need(att_image_decode(c, "an image", png.data, png.bytes, NULL, &decoded));
    give("const att_image *", &image);
    give("const att_image_options *", &decoding);
    give("att_image_open.path", path);
    give("att_image_has_name.path", path);
    give("att_image_decode.label", "an image");
    give("att_image_decode.data", png.data);
    give("att_image_decode.bytes", &png.bytes);
    give("att_image_filter", &filter);
    give("att_image_resize.height", &side);
    give("att_image_resize.width", &side);
    give("att_image_convert.channels", &channels);
    give("att_image *", &decoded);
    give("att_image_bytes *", &png);
}

/* Returns images of 2 classes. */
static att_image_set *give_image_set(att_ctx *c, const test_folder *folder)
{
    static att_image_set_info info = {.size = sizeof info};
    static const att_image_split split = ATT_SPLIT_TRAIN;
    static const int64_t n_labels = VISION_CLASSES;
    static const double share = 0.5;
    att_image_set *set, *whole; /* one for trainings, and one from which images can be held out */
    need(att_image_set_open(c, folder->path, ATT_SPLIT_TRAIN, vision_labels, VISION_CLASSES, &set));
    need(att_image_set_open(c, folder->path, ATT_SPLIT_TRAIN, vision_labels, VISION_CLASSES, &whole));
    give("att_image_set_open.path", folder->path);
    give("att_image_split", &split);
    give("att_image_set_hold_out.share", &share);
    give("int64_t n_labels", &n_labels);
    give("const char *const *labels", vision_labels);
    give("att_image_set_info *", &info);
    give("const att_image_set *", set);
    give("att_image_set *", whole);
    return set;
}

/* Returns a set of one image of the folder, which has a caption. */
static att_caption_set *give_caption_set(att_ctx *c, const test_folder *folder)
{
    static char captions[96], images[96], list[96];
    static const att_caption_set_options options = {.size = sizeof options, .images = images, .list = list};
    static att_caption_set_info info = {.size = sizeof info};
    att_caption_set *set;
    snprintf(captions, sizeof captions, "%s/captions", folder->path);
    snprintf(images, sizeof images, "%s/a", folder->path);
    snprintf(list, sizeof list, "%s/list", folder->path);
    folder_write(folder, "captions", "1.png\ta dog\n");
    folder_write(folder, "list", "1.png\n");
    need(att_caption_set_open(c, captions, &options, &set));
    give("att_caption_set_open.captions", captions);
    give("const att_caption_set_options *", &options);
    give("att_caption_set_info *", &info);
    give("const att_caption_set *", set);
    give("att_caption_set *", set);
    return set;
}

/* A training of a captioner of the set, in a folder. */
static void give_caption_training(att_ctx *c, const att_caption_set *set, const att_schedule *rates)
{
    static test_folder folder;
    static att_caption_training_options options = {
        .size = sizeof options,
        .min_count = 1,
        .settings = "{\"image_size\": 4, \"channels\": [2], \"decoder\": \"gru\", \"attention\": \"additive\", "
                    "\"hidden_size\": 2, \"embedding_size\": 2, \"num_layers\": 1, \"presence\": 1}"};
    static double words, presence, cider;
    static const int64_t images = 1;
    att_training *t;
    folder = folder_new();
    options.captions = options.valid = set;
    options.schedule = rates;
    need(att_caption_training_open(c, folder.path, &options, &t));
    give("const att_caption_training_options *", &options);
    give("att_training_caption_losses.t", t);
    give("att_training_caption_learn_words.t", t);
    give("att_training_caption_losses.words", &words);
    give("att_training_caption_losses.presence", &presence);
    give("att_training_caption_cider.t", t);
    give("att_training_caption_cider.max_images", &images);
    give("att_training_caption_cider.cider", &cider);
    give("att_training_caption_wait.t", t);
}

/* Gives a model that learns, in memory and in a folder. */
static att_vit *give_vit(att_ctx *c, const test_folder *folder)
{
    static const uint32_t image_ids[] = {0};
    static const att_vit_options options = {.size = sizeof options, .dropout = 0.1f, .sequence_ids = image_ids};
    static att_vit_info info = {.size = sizeof info};
    static float pixels[VISION_SIDE * VISION_SIDE * 3];
    static att_tensor tensor;
    att_tape *t;
    att_vit *m;
    need(att_vit_new(c, vision_settings, 1, &m));
    need(att_vit_write(m, folder->path, vision_labels, 0));
    need(att_tape_new(c, NULL, &t));
    need(att_wrap(&tensor, pixels, ATT_F32, 4, (const int64_t[]){1, VISION_SIDE, VISION_SIDE, 3}, NULL));
    static const char *const functions[] = {"att_vit_apply", "att_vit_features", "att_vit_logits"};
    static char keys[2][3][40];
    for (int i = 0; i < 3; i++) {
        snprintf(keys[0][i], sizeof keys[0][i], "%s.t", functions[i]);
        snprintf(keys[1][i], sizeof keys[1][i], "%s.images", functions[i]);
        give(keys[0][i], t);
        give(keys[1][i], att_input(t, &tensor));
    }
    give("att_vit_open.folder", folder->path);
    give("att_vit_open_for_training.folder", folder->path);
    give("att_vit_new.settings", vision_settings);
    give("const att_vit_options *", &options);
    give("att_vit_info *", &info);
    give("const att_vit *", m);
    give("att_vit *", m);
    return m;
}

/* The folder has the model of give_vit. */
static void give_image_model(att_ctx *c, const test_folder *folder)
{
    static att_image_processor_info info = {.size = sizeof info};
    static att_image_attention attention;
    att_image_processor *p;
    att_image_model *m;
    folder_write(folder, "preprocessor_config.json",
                 "{\"image_processor_type\": \"ViTImageProcessor\", \"size\": {\"height\": 2, \"width\": 2}}");
    need(att_image_processor_open(c, folder->path, &p));
    need(att_image_model_open(c, folder->path, &m));
    give("att_image_processor_open.folder", folder->path);
    give("att_image_model_open.folder", folder->path);
    give("att_image_processor_info *", &info);
    give("const att_image_processor *", p);
    give("att_image_processor *", p);
    give("const att_image_model *", m);
    give("att_image_model *", m);
    give("att_image_attention *", &attention);
}

/* A captioner, and what it writes. */
static void give_captioner(att_ctx *c)
{
    static test_folder folder;
    static const int64_t n_captions = 1;
    static const float penalty = 1;
    static const att_caption_options options = {.size = sizeof options, .length_penalty = &penalty};
    static att_caption_model_info info = {.size = sizeof info};
    static att_image_caption captions[8];
    static att_caption_attention attention;
    att_caption_model *m;
    folder = captioner_folder(CAPTIONER_GRU, false);
    need(att_caption_model_open(c, folder.path, &m));
    give("att_caption_model_open.folder", folder.path);
    give("att_caption_model_info *", &info);
    give("const att_caption_options *", &options);
    give("att_caption_score.n_captions", &n_captions);
    give("att_image_caption *", captions);
    give("att_caption_attention *", &attention);
    give("const att_caption_model *", m);
    give("att_caption_model *", m);
}

/* Images [1] in memory and in a folder, models and trainings of them. */
static void give_vision(att_ctx *c, const att_schedule *rates)
{
    static test_folder images, model;
    static att_image_training_options options = {.size = sizeof options};
    static att_image_training_options in_folder;
    static int64_t hits, confusion[VISION_CLASSES * VISION_CLASSES];
    images = folder_new();
    model = folder_new();
    give_images(c, &images);
    options.schedule = rates;
    options.images = give_image_set(c, &images);
    in_folder = options;
    in_folder.settings = vision_settings;
    give_caption_training(c, give_caption_set(c, &images), rates);
    give_captioner(c);
    att_vit *m = give_vit(c, &model);
    give_image_model(c, &model);
    att_training *t;
    need(att_image_training_new(m, &options, &t));
    give("att_image_training_new.options", &options);
    give("const att_image_training_options *", &in_folder);
    give("att_training_image_hits.t", t);
    give("att_training_vit.t", t);
    give("att_training_image_hits.hits", &hits);
    give("att_training_image_hits.confusion", confusion);
}

#endif
