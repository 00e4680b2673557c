/* Reads the settings of preprocessing: preprocessor_config.json or processor_config.json of the image processors of
 * `transformers`, or pretrained_cfg of timm. */
#include "image/processor.h"
#include "io/settings.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SIDE = 1 << 14 };

typedef struct colors {
    double value[3];
} colors;
static const colors half = {{0.5, 0.5, 0.5}}, imagenet_mean = {{0.485, 0.456, 0.406}},
                    imagenet_deviation = {{0.229, 0.224, 0.225}}, clip_mean = {{0.48145466, 0.4578275, 0.40821073}},
                    clip_deviation = {{0.26862954, 0.26130258, 0.27577711}};

/* ---- filters: numbers of Pillow, names of timm */

static const struct {
    const char *name;
    att_image_filter filter;
} filters[] = {{"nearest", ATT_IMAGE_FILTER_NEAREST},
               {"lanczos", ATT_IMAGE_FILTER_LANCZOS},
               {"bilinear", ATT_IMAGE_FILTER_BILINEAR},
               {"bicubic", ATT_IMAGE_FILTER_BICUBIC}};
enum { N_FILTERS = sizeof filters / sizeof filters[0] };

static att_image_filter read_filter_number(att_settings *s, const char *key, att_image_filter otherwise)
{
    const json_t *value = att_settings_get(s, key);
    for (int i = 0; i < N_FILTERS; i++)
        if (json_is_real(value) && json_real_value(value) == i)
            return filters[i].filter;
    if (value)
        att_settings_unsupported(s, key, "0 (nearest), 1 (lanczos), 2 (bilinear) or 3 (bicubic)");
    return otherwise;
}

static att_image_filter read_filter_name(att_settings *s, const char *key, const char *otherwise)
{
    const char *name = att_settings_text(s, key, otherwise);
    for (int i = 0; i < N_FILTERS; i++)
        if (!strcmp(name, filters[i].name))
            return filters[i].filter;
    att_settings_unsupported(s, key, "nearest, lanczos, bilinear or bicubic");
    return ATT_IMAGE_FILTER_NEAREST;
}

static int number_of_filter(att_image_filter filter)
{
    int i = 0;
    while (filters[i].filter != filter)
        i++;
    return i;
}

/* ---- lists of numbers */

/* Reads a list of n numbers in [min, max] into out. Returns false if it is not such a list. */
static bool read_numbers(const json_t *list, size_t n, double min, double max, double *out)
{
    bool good = json_array_size(list) == n;
    for (size_t i = 0; good && i < n; i++) {
        const json_t *value = json_array_get(list, i);
        out[i] = json_number_value(value);
        good = json_is_real(value) && out[i] >= min && out[i] <= max;
    }
    return good;
}

/* Reads a list of one number for each of 1 or 3 channels, or a number for all channels, into out [3]. Returns the
 * number of channels; 0: a number for all. */
static int64_t read_colors(att_settings *s, const char *key, double min, const colors *otherwise, float *out)
{
    const double max = 1e6;
    const json_t *value = att_settings_get(s, key);
    const int64_t n = json_is_array(value) ? (int64_t)json_array_size(value) : value ? 0 : 3;
    colors c = *otherwise;
    if (json_is_real(value))
        c.value[0] = att_settings_number(s, key, min, max);
    else if (value && ((n != 1 && n != 3) || !read_numbers(value, (size_t)n, min, max, c.value)))
        att_settings_fail(s, ATT_ERR_FORMAT, "\"%s%s\" is %s, not a list of 1 or 3 numbers in [%g, %g]", s->within, key,
                          att_json_show(value).text, min, max);
    for (int i = 0; i < 3; i++)
        out[i] = (float)c.value[n == 3 ? i : 0];
    return n;
}

/* Reads both lists, which have the same number of channels, that of the images. */
static void read_normalization(att_settings *s, const char *mean_key, const colors *mean, const char *deviation_key,
                               const colors *deviation, att_image_processor_info *info)
{
    const int64_t means = read_colors(s, mean_key, -1e6, mean, info->mean);
    const int64_t deviations = read_colors(s, deviation_key, 1e-6, deviation, info->deviation);
    if (means && deviations && means != deviations)
        att_settings_fail(s, ATT_ERR_FORMAT, "\"%s\" is of %d channels, but \"%s\" of %d", mean_key, (int)means,
                          deviation_key, (int)deviations);
    info->channels = means ? means : deviations ? deviations : 3;
}

/* ---- preprocessor_config.json */

/* The values that a class uses if a setting is missing. */
typedef struct class_defaults {
    const char *name;
    const char *model_types[2]; /* in config.json, or NULL */
    att_image_filter filter;
    const colors *mean, *deviation;
    att_image_size size;
    bool square;  /* whether a number as "size" is the size of both sides; otherwise it is that of the shorter one */
    int64_t crop; /* 0: no crop */
} class_defaults;
static const class_defaults classes[] = {
    {"ViT", {"vit"}, ATT_IMAGE_FILTER_BILINEAR, &half, &half, {224, 224, 0}, true, 0},
    {"DeiT", {"deit"}, ATT_IMAGE_FILTER_BICUBIC, &half, &half, {256, 256, 0}, true, 224},
    {"Bit",
     {"dinov2", "dinov2_with_registers"},
     ATT_IMAGE_FILTER_BICUBIC,
     &clip_mean,
     &clip_deviation,
     {0, 0, 224},
     false,
     224},
};
enum { N_CLASSES = sizeof classes / sizeof classes[0] };

/* Returns the defaults of a model's class: the oldest files do not name a class. */
static const class_defaults *class_of_model(att_settings *s, const char *folder)
{
    att_settings model;
    const class_defaults *found = NULL;
    att_settings_read(&model, s->ctx, folder, "config.json", false);
    const char *type = model.root ? att_settings_text(&model, "model_type", "") : "";
    for (int i = 0; i < N_CLASSES; i++)
        for (int j = 0; j < 2; j++)
            if (classes[i].model_types[j] && !strcmp(classes[i].model_types[j], type))
                found = &classes[i];
    if (model.status)
        s->status = model.status;
    else if (!found)
        att_settings_fail(
            s, ATT_ERR_FORMAT,
            "there is no \"image_processor_type\", and config.json has no \"model_type\" that implies one "
            "(vit, deit, dinov2)");
    att_settings_close(&model);
    return found;
}

/* Finds the class's defaults. Both back ends of a class count as one class: the results of Fast (torchvision) differ by
 * one level at most from those of Pil, which are computed here. */
static const class_defaults *find_class(att_settings *s, const char *folder)
{
    static const char *const suffixes[] = {"ImageProcessor", "FeatureExtractor", "ImageProcessorFast",
                                           "ImageProcessorPil"};
    const char *key = att_settings_has(s, "image_processor_type") ? "image_processor_type" : "feature_extractor_type";
    if (!att_settings_has(s, key))
        return class_of_model(s, folder);
    const char *name = att_settings_text(s, key, NULL);
    for (int i = 0; i < N_CLASSES; i++) {
        const size_t length = strlen(classes[i].name);
        for (size_t j = 0; j < sizeof suffixes / sizeof suffixes[0]; j++)
            if (!strncmp(name, classes[i].name, length) && !strcmp(name + length, suffixes[j]))
                return &classes[i];
    }
    att_settings_unsupported(s, key, "ViTImageProcessor, DeiTImageProcessor or BitImageProcessor");
    return NULL;
}

/* Reads {"height": 224, "width": 224} or {"shortest_edge": 224}. */
static att_image_size read_size_object(att_settings *s, const char *key)
{
    static const char *const known[] = {"height",    "width", "shortest_edge", "longest_edge", "max_height",
                                        "max_width", NULL};
    att_image_size size = {0};
    const att_settings_scope before = att_settings_enter(s, key);
    att_settings_only_known(s, known);
    for (const char *const *k = known + 3; *k; k++)
        att_settings_only_empty(s, *k);
    if (att_settings_has(s, "shortest_edge")) {
        att_settings_only_empty(s, "height");
        att_settings_only_empty(s, "width");
        size.shortest = att_settings_int(s, "shortest_edge", 1, MAX_SIDE);
    } else {
        size.height = att_settings_int(s, "height", 1, MAX_SIDE);
        size.width = att_settings_int(s, "width", 1, MAX_SIDE);
    }
    att_settings_leave(s, before);
    return size;
}

/* Reads an object, a number, or [height, width] */
static att_image_size read_size(att_settings *s, const char *key, att_image_size otherwise, bool square)
{
    const json_t *value = att_settings_get(s, key);
    double pair[2];
    if (!value)
        return otherwise;
    if (json_is_object(value))
        return read_size_object(s, key);
    if (json_is_real(value)) {
        const int64_t n = att_settings_int(s, key, 1, MAX_SIDE);
        return square ? (att_image_size){n, n, 0} : (att_image_size){0, 0, n};
    }
    if (read_numbers(value, 2, 1, MAX_SIDE, pair) && pair[0] == floor(pair[0]) && pair[1] == floor(pair[1]))
        return (att_image_size){(int64_t)pair[0], (int64_t)pair[1], 0};
    att_settings_unsupported(s, key, "a number, [height, width], or an object with height and width or shortest_edge");
    return otherwise;
}

/* Reads the sizes. Images of any size must become images of one size. */
static void read_sizes(att_settings *s, const class_defaults *class, att_image_processor_config *c)
{
    const bool square = att_settings_bool(s, "default_to_square", class->square);
    const att_image_size crop = {class->crop, class->crop, 0};
    c->resized = att_settings_bool(s, "do_resize", true);
    c->cropped = att_settings_bool(s, "do_center_crop", class->crop > 0);
    c->size = read_size(s, "size", class->size, square);
    const att_image_size result = c->cropped ? read_size(s, "crop_size", crop, true) : c->size;
    if (!c->resized && !c->cropped)
        att_settings_fail(s, ATT_ERR_UNSUPPORTED,
                          "\"do_resize\" is false and \"do_center_crop\", too: inputs of any size are not supported");
    if (c->cropped && result.height == 0)
        att_settings_fail(s, ATT_ERR_FORMAT, "\"do_center_crop\" is true, but \"crop_size\" has no height and width");
    if (result.shortest > 0)
        att_settings_fail(
            s, ATT_ERR_UNSUPPORTED,
            "\"size\" is of the shortest edge and \"do_center_crop\" is false: inputs of any size are not "
            "supported");
    c->info.height = result.height;
    c->info.width = result.width;
}

static void read_transformers(att_settings *s, const char *folder, att_image_processor_config *c)
{
    const class_defaults *class = find_class(s, folder);
    if (!class)
        return;
    att_settings_only_bool(s, "do_pad", false); /* keys that the class does not know have no effect in either library */
    read_sizes(s, class, c);
    c->info.filter = read_filter_number(s, "resample", class->filter);
    const bool rescaled = att_settings_bool(s, "do_rescale", true);
    c->rescale = rescaled && att_settings_has(s, "rescale_factor") ? att_settings_number(s, "rescale_factor", 1e-9, 1e9)
                                                                   : 1 / 255.0;
    c->rescale = rescaled ? c->rescale : 1;
    read_normalization(s, "image_mean", class->mean, "image_std", class->deviation, &c->info);
    if (!att_settings_bool(s, "do_normalize", true))
        for (int i = 0; i < 3; i++) {
            c->info.mean[i] = 0;
            c->info.deviation[i] = 1;
        }
    if (c->info.channels == 1 && att_settings_bool(s, "do_convert_rgb", false))
        att_settings_unsupported(s, "do_convert_rgb", "false, for gray images,");
}

/* ---- timm's config.json */

/* Reads [channels, height, width]. */
static void read_input_size(att_settings *s, att_image_processor_info *info)
{
    double size[3] = {3, 224, 224};
    const json_t *value = att_settings_get(s, "input_size");
    const bool good = !value || (read_numbers(value, 3, 1, MAX_SIDE, size) && size[1] == floor(size[1]) &&
                                 size[2] == floor(size[2]) && (size[0] == 1 || size[0] == 3));
    if (!good)
        att_settings_unsupported(s, "input_size", "[1 or 3, height, width]");
    info->height = (int64_t)size[1];
    info->width = (int64_t)size[2];
    if (info->channels != (int64_t)size[0])
        att_settings_fail(s, ATT_ERR_FORMAT, "\"%sinput_size\" is of %d channels, but \"mean\" and \"std\" of %d",
                          s->within, (int)size[0], (int)info->channels);
}

/* Reads settings as timm's transform for evaluation does: images are resized to 1 / crop_pct of the size needed, then
 * cropped. */
static void read_timm(att_settings *s, att_image_processor_config *c)
{
    const bool nested = att_settings_has(s, "pretrained_cfg"); /* the oldest folders have everything at the top */
    if (nested)
        att_settings_enter(s, "pretrained_cfg");
    read_normalization(s, "mean", &imagenet_mean, "std", &imagenet_deviation, &c->info);
    read_input_size(s, &c->info);
    c->info.filter = read_filter_name(s, "interpolation", "bicubic");
    const double share = att_settings_has(s, "crop_pct") ? att_settings_number(s, "crop_pct", 0.01, 1) : 0.875;
    const char *mode = att_settings_text(s, "crop_mode", "center");
    if (s->status)
        return;
    c->resized = c->cropped = c->rounds_offset = true;
    c->rescale = 1 / 255.0;
    const int64_t height = (int64_t)floor((double)c->info.height / share);
    const int64_t width = (int64_t)floor((double)c->info.width / share);
    if (!strcmp(mode, "squash"))
        c->size = (att_image_size){height, width, 0};
    else if (strcmp(mode, "center") != 0)
        att_settings_unsupported(s, "crop_mode", "center or squash");
    else if (height != width)
        att_settings_fail(s, ATT_ERR_UNSUPPORTED,
                          "\"%sinput_size\" is %d x %d: with \"crop_mode\" center only squares are supported",
                          s->within, (int)c->info.height, (int)c->info.width);
    else
        c->size.shortest = height;
}

/* ---- either */

/* Opens processor_config.json, which describes processors for several kinds of input; the one for images is an object
 * in it. If there is no such file, opens preprocessor_config.json. No root: neither exists. */
static void open_transformers(att_settings *s, att_ctx *ctx, const char *folder)
{
    att_settings_read(s, ctx, folder, "processor_config.json", false);
    if (s->status || (s->root && att_settings_has(s, "image_processor"))) {
        att_settings_enter(s, "image_processor");
        return;
    }
    att_settings_close(s);
    att_settings_read(s, ctx, folder, "preprocessor_config.json", false);
}

att_status att_image_processor_config_read(att_ctx *ctx, const char *folder, att_image_processor_config *out)
{
    att_settings s;
    *out = (att_image_processor_config){0};
    open_transformers(&s, ctx, folder);
    if (!s.status && s.root)
        read_transformers(&s, folder, out);
    else if (!s.status) {
        att_settings_read(&s, ctx, folder, "config.json", false);
        if (!s.status && (!s.root || !(att_settings_has(&s, "pretrained_cfg") || att_settings_has(&s, "architecture"))))
            s.status = att_fail(ctx, ATT_ERR_IO,
                                "%s has no preprocessor_config.json, nor \"pretrained_cfg\" in config.json: how images "
                                "become the model's input is not known",
                                folder);
        if (!s.status)
            read_timm(&s, out);
    }
    out->info.rescale = (float)out->rescale;
    att_settings_close(&s);
    return s.status;
}

/* ---- writing */

/* Returns the shortest decimal number that is read back as this float. */
static json_t *number(float x)
{
    char text[32];
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)x);
        if (strtof(text, NULL) == x)
            break;
    }
    return json_real(strtod(text, NULL));
}

static json_t *numbers(const float *x, int64_t n)
{
    json_t *list = json_array();
    for (int64_t i = 0; list && i < n; i++)
        if (json_array_append_new(list, number(x[i]))) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static json_t *size_json(att_image_size size)
{
    return size.shortest ? json_pack("{s:I}", "shortest_edge", (json_int_t)size.shortest)
                         : json_pack("{s:I, s:I}", "height", (json_int_t)size.height, "width", (json_int_t)size.width);
}

att_status att_image_processor_write(att_ctx *ctx, const char *folder, const att_image_processor_config *config)
{
    const att_image_processor_info *info = &config->info;
    const char *class = config->size.shortest ? "BitImageProcessor"
                        : config->cropped     ? "DeiTImageProcessor"
                                              : "ViTImageProcessor";
    json_t *root =
        json_pack("{s:s, s:b, s:o, s:i, s:b, s:f, s:b, s:o, s:o}", "image_processor_type", class, "do_resize",
                  config->resized, "size", size_json(config->size), "resample", number_of_filter(info->filter),
                  "do_rescale", true, "rescale_factor", config->rescale, "do_normalize", true, "image_mean",
                  numbers(info->mean, info->channels), "image_std", numbers(info->deviation, info->channels));
    const att_image_size crop = {.height = info->height, .width = info->width};
    if (root && config->cropped &&
        (json_object_set_new(root, "do_center_crop", json_true()) ||
         json_object_set_new(root, "crop_size", size_json(crop)))) {
        json_decref(root);
        root = NULL;
    }
    return att_settings_write(ctx, folder, "preprocessor_config.json", root);
}
