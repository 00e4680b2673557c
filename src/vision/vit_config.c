#include "vision/vit_config.h"
#include "model/activation.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- values */

void att_vit_read_pair(att_settings *s, const char *key, int64_t otherwise, int64_t pair[2])
{
    if (!json_is_array(att_settings_get(s, key))) {
        pair[0] = pair[1] = att_settings_int_or(s, key, 1, ATT_VIT_MAX_SIDE, otherwise);
        return;
    }
    const json_t *list = att_settings_list(s, key, true);
    for (size_t i = 0; i < 2; i++) {
        const double side = json_number_value(json_array_get(list, i));
        const bool fits = json_array_size(list) == 2 && side >= 1 && side <= ATT_VIT_MAX_SIDE;
        pair[i] = fits ? (int64_t)side : 1;
        if (!fits || (double)pair[i] != side)
            att_settings_fail(s, ATT_ERR_FORMAT, "\"%s%s\" is %s, not a number or two, height and width, from 1 to %d",
                              s->within, key, att_json_show(list).text, ATT_VIT_MAX_SIDE);
    }
}

/* Returns the number of names, or "num_labels" if there are no names. The default is 2, as in the class. */
static int64_t classes(att_settings *s)
{
    const json_t *names = att_settings_get(s, "id2label");
    if (names && !json_is_object(names))
        att_settings_fail(s, ATT_ERR_FORMAT, "\"id2label\" is %s, not an object", att_json_show(names).text);
    const int64_t named = json_is_object(names) ? (int64_t)json_object_size(names) : 2;
    const int64_t n = att_settings_int_or(s, "num_labels", 0, ATT_VIT_MAX_CLASSES, named);
    if (names && n != named)
        att_settings_fail(s, ATT_ERR_FORMAT, "\"num_labels\" is %lld, but \"id2label\" has %lld classes", (long long)n,
                          (long long)named);
    if (n > ATT_VIT_MAX_CLASSES)
        att_settings_fail(s, ATT_ERR_FORMAT, "\"id2label\" has %lld classes, at most %d are supported", (long long)n,
                          ATT_VIT_MAX_CLASSES);
    return n;
}

static const char multi_label[] = "multi_label_classification";

/* Returns whether classes are independent of each other. Without a "problem_type", only a single class is, and
 * "problem_type" may not state otherwise. */
static bool is_multi_label(att_settings *s, int64_t n)
{
    const char *single = n == 1 ? "" : "single_label_classification";
    const char *type = att_settings_text(s, "problem_type", n == 1 ? multi_label : single);
    if (!strcmp(type, multi_label))
        return true;
    if (strcmp(type, single) != 0)
        att_settings_unsupported(s, "problem_type",
                                 "multi_label_classification, or of several classes single_label_classification,");
    return false;
}

/* ---- types */

static void read_plain(att_settings *s, att_vit_config *c)
{
    c->info.intermediate = att_settings_int_or(s, "intermediate_size", 1, 8 * ATT_VIT_MAX_FEATURES, 3072);
    c->info.pooling = ATT_VIT_POOLING_CLS;
}

/* The distillation head exists if the checkpoint has its weights. */
static void read_deit(att_settings *s, att_vit_config *c)
{
    read_plain(s, c);
    c->distillation_token = true;
    c->info.pooling = ATT_VIT_POOLING_CLS_AND_DISTILL;
}

/* Reads the settings of DINOv2. SwiGLU has two thirds of the features, rounded up to a multiple of 8. */
static void read_dinov2(att_settings *s, att_vit_config *c)
{
    const double ratio = att_settings_has(s, "mlp_ratio") ? att_settings_number(s, "mlp_ratio", 0.01, 64) : 4;
    int64_t features = (int64_t)((double)c->info.hidden * ratio);
    c->gated = att_settings_bool(s, "use_swiglu_ffn", false);
    if (c->gated) {
        features = (features * 2 / 3 + 7) / 8 * 8;
        c->activation = ATT_ACTIVATION_SILU;
    }
    c->info.intermediate = features;
    c->info.pooling = ATT_VIT_POOLING_CLS_AND_MEAN;
    c->layer_scale =
        att_settings_has(s, "layerscale_value") ? att_settings_number(s, "layerscale_value", -1e6, 1e6) : 1;
    if (c->layer_scale == 0) /* a layer has the factors, whatever their initial value is */
        c->layer_scale = 1;
    c->resampled = true;
}

static void read_registers(att_settings *s, att_vit_config *c)
{
    read_dinov2(s, c);
    c->registers = att_settings_int_or(s, "num_register_tokens", 0, ATT_VIT_MAX_FEATURES, 4);
    c->antialias = true;
}

static void read_stem(att_settings *s, att_vit_config *c)
{
    const json_t *stem = att_settings_list(s, "stem", false);
    c->stem_layers = (int64_t)json_array_size(stem);
    if (c->stem_layers > ATT_VIT_MAX_STEM)
        att_settings_fail(s, ATT_ERR_UNSUPPORTED, "\"stem\" has %lld convolutions, at most %d are supported",
                          (long long)c->stem_layers, ATT_VIT_MAX_STEM);
    for (int64_t i = 0; !s->status && i < c->stem_layers; i++) {
        const double channels = json_number_value(json_array_get(stem, (size_t)i));
        c->stem[i] = channels >= 1 && channels <= ATT_VIT_MAX_FEATURES ? (int64_t)channels : 0;
        if (c->stem[i] < 1 || (double)c->stem[i] != channels)
            att_settings_fail(s, ATT_ERR_FORMAT, "\"stem\" is %s, not a list of numbers of channels",
                              att_json_show(stem).text);
    }
    if (!s->status && c->stem_layers && c->stem[c->stem_layers - 1] != c->info.hidden)
        att_settings_fail(s, ATT_ERR_FORMAT, "\"stem\" ends with %lld channels, but \"hidden_size\" is %lld",
                          (long long)c->stem[c->stem_layers - 1], (long long)c->info.hidden);
    for (int i = 0; c->stem_layers && i < 2; i++)
        c->info.patch[i] = (int64_t)1 << c->stem_layers;
}

static const char *const poolings[] = {"cls", "mean"};

static void read_own(att_settings *s, att_vit_config *c)
{
    const char *pooling = att_settings_text(s, "pooling", "cls");
    read_plain(s, c);
    read_stem(s, c);
    c->info.pooling = !strcmp(pooling, "mean") ? ATT_VIT_POOLING_MEAN : ATT_VIT_POOLING_CLS;
    c->class_token = c->info.pooling == ATT_VIT_POOLING_CLS;
    if (strcmp(pooling, poolings[c->info.pooling]) != 0)
        att_settings_unsupported(s, "pooling", "cls or mean");
}

typedef struct vit_type {
    const char *name;
    att_vit_names names;
    void (*read)(att_settings *s, att_vit_config *c);
    double eps;
    int64_t patch;
} vit_type;
static const vit_type types[] = {
    {"vit", ATT_VIT_NAMES, read_plain, 1e-12, 16},
    {"deit", ATT_DEIT_NAMES, read_deit, 1e-12, 16},
    {"dinov2", ATT_DINOV2_NAMES, read_dinov2, 1e-6, 14},
    {"dinov2_with_registers", ATT_REGISTERS_NAMES, read_registers, 1e-6, 16},
    {"attend-vit", ATT_VIT_NAMES, read_own, 1e-6, 4},
};
const att_model_types att_vit_types = ATT_MODEL_TYPES(types);

att_vit_names att_vit_names_of(const char *type)
{
    const vit_type *row = att_model_type_find(&att_vit_types, type);
    return row ? row->names : ATT_VIT_NAMES;
}

/* ---- reading */

/* Reads the settings of all types that change the model's results. Dropout is not among them because it is an option of
 * training. */
static void read_common(att_settings *s, att_vit_config *c, const vit_type *type)
{
    att_vit_info *i = &c->info;
    i->type = type->name;
    i->hidden = att_settings_int_or(s, "hidden_size", 1, ATT_VIT_MAX_FEATURES, 768);
    i->layers = att_settings_int_or(s, "num_hidden_layers", 1, ATT_VIT_MAX_LAYERS, 12);
    i->heads = att_settings_int_or(s, "num_attention_heads", 1, ATT_VIT_MAX_FEATURES, 12);
    i->channels = att_settings_int_or(s, "num_channels", 1, ATT_VIT_MAX_FEATURES, 3);
    i->classes = classes(s);
    i->multi_label = is_multi_label(s, i->classes);
    att_vit_read_pair(s, "image_size", 224, i->image);
    att_vit_read_pair(s, "patch_size", type->patch, i->patch);
    c->class_token = true;
    c->positioned = -1; /* all but registers */
    c->activation = att_activation_read(s, "hidden_act", "gelu");
    c->no_qkv_bias = !att_settings_bool(s, "qkv_bias", true);
    c->eps = att_settings_has(s, "layer_norm_eps") ? att_settings_number(s, "layer_norm_eps", 1e-30, 1) : type->eps;
    att_settings_only_empty(s, "pruned_heads");
    att_settings_only_empty(s, "quantization_config");
    if (att_settings_has(s, "head_dim"))
        att_settings_only_number(s, "head_dim", s->status ? 0 : (double)(i->hidden / i->heads));
}

void att_vit_config_check(att_settings *s, att_vit_config *c)
{
    att_vit_info *i = &c->info;
    const int64_t tokens = c->class_token + c->distillation_token;
    i->prefix = tokens + c->registers;
    c->positioned = c->positioned < 0 ? tokens : c->positioned;
    if (!s->status && i->hidden % i->heads)
        att_settings_fail(s, ATT_ERR_FORMAT,
                          "\"num_attention_heads\" is %lld, which does not divide \"hidden_size\", %lld",
                          (long long)i->heads, (long long)i->hidden);
    for (int d = 0; !s->status && d < 2; d++)
        if (i->image[d] < i->patch[d])
            att_settings_fail(s, ATT_ERR_FORMAT, "\"image_size\" is %lld, less than a patch, %lld",
                              (long long)i->image[d], (long long)i->patch[d]);
        else if (c->stem_layers && i->image[d] % i->patch[d])
            att_settings_fail(
                s, ATT_ERR_UNSUPPORTED,
                "\"image_size\" is %lld, not a multiple of %lld, which %lld convolutions of \"stem\" halve",
                (long long)i->image[d], (long long)i->patch[d], (long long)c->stem_layers);
}

void att_vit_config_read(att_settings *s, att_vit_config *c)
{
    const vit_type *type = att_model_type_find(&att_vit_types, att_settings_text(s, "model_type", NULL));
    *c = (att_vit_config){.info.size = sizeof c->info};
    if (s->status)
        return;
    read_common(s, c, type);
    type->read(s, c);
    att_vit_config_check(s, c);
}

/* ---- writing */

static json_t *pair_json(const int64_t pair[2])
{
    return pair[0] == pair[1] ? json_integer(pair[0]) : json_pack("[I, I]", (json_int_t)pair[0], (json_int_t)pair[1]);
}

/* Adds "id2label" and its inverse. */
static int add_labels(json_t *root, int64_t n, const char *const *labels)
{
    json_t *names = json_object(), *ids = json_object();
    int failed = 0;
    for (int64_t i = 0; i < n; i++) {
        char id[24];
        snprintf(id, sizeof id, "%lld", (long long)i);
        failed |= json_object_set_new(names, id, json_string(labels[i]));
        failed |= json_object_set_new(ids, labels[i], json_integer(i));
    }
    failed |= json_object_set_new(root, "id2label", names);
    return failed | json_object_set_new(root, "label2id", ids);
}

static int add_own(json_t *root, const att_vit_config *c)
{
    json_t *stem = json_array();
    int failed = 0;
    for (int64_t i = 0; i < c->stem_layers; i++)
        failed |= json_array_append_new(stem, json_integer(c->stem[i]));
    return failed | json_object_set_new(root, "stem", stem) |
           json_object_set_new(root, "pooling", json_string(poolings[c->info.pooling]));
}

/* Returns a ratio for which floor(hidden * ratio), in double, is the intermediate size. A quotient that is rounded down
 * would give one less. */
static double mlp_ratio(const att_vit_info *i)
{
    const double hidden = (double)i->hidden, intermediate = (double)i->intermediate, ratio = intermediate / hidden;
    return floor(hidden * ratio) < intermediate ? nextafter(ratio, INFINITY) : ratio;
}

static int add_dinov2(json_t *root, const att_vit_config *c)
{
    const att_vit_info *i = &c->info;
    json_t *ratio = i->intermediate % i->hidden ? json_real(mlp_ratio(i)) : json_integer(i->intermediate / i->hidden);
    int failed = json_object_set_new(root, "mlp_ratio", ratio) |
                 json_object_set_new(root, "layerscale_value", json_real(c->layer_scale));
    if (strcmp(i->type, "dinov2") != 0)
        failed |= json_object_set_new(root, "num_register_tokens", json_integer(c->registers));
    return failed;
}

bool att_vit_config_is_plain(const att_vit_config *c)
{
    const bool mean = c->info.pooling == ATT_VIT_POOLING_MEAN;
    return !c->distillation_token && !c->registers && c->layer_scale == 0 && !c->gated && !c->no_norm &&
           !c->pooled_norm && c->class_token == !mean && c->positioned == !mean;
}

/* The type that is written, and its class in `transformers` or NULL. */
typedef struct written {
    const char *type, *in_transformers;
} written;

static written written_as(const att_vit_config *c)
{
    const bool classes = c->info.classes > 0;
    if (!att_vit_config_is_plain(c) && strcmp(c->info.type, "dinov2") != 0)
        return (written){c->info.type,
                         classes ? "Dinov2WithRegistersForImageClassification" : "Dinov2WithRegistersModel"};
    if (!att_vit_config_is_plain(c))
        return (written){c->info.type, classes ? "Dinov2ForImageClassification" : "Dinov2Model"};
    if (c->stem_layers || c->info.pooling == ATT_VIT_POOLING_MEAN)
        return (written){"attend-vit", NULL};
    return (written){"vit", classes ? "ViTForImageClassification" : "ViTModel"};
}

json_t *att_vit_config_json(const att_vit_config *c, const char *const *labels)
{
    const att_vit_info *i = &c->info;
    const written as = written_as(c);
    json_t *root =
        json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:s, s:f, s:b, s:o, s:o}", "model_type", as.type, "hidden_size",
                  (json_int_t)i->hidden, "num_hidden_layers", (json_int_t)i->layers, "num_attention_heads",
                  (json_int_t)i->heads, "intermediate_size", (json_int_t)i->intermediate, "num_channels",
                  (json_int_t)i->channels, "hidden_act", att_activation_name(c->activation), "layer_norm_eps", c->eps,
                  "qkv_bias", !c->no_qkv_bias, "image_size", pair_json(i->image), "patch_size", pair_json(i->patch));
    int failed = !root;
    if (as.in_transformers)
        failed |= json_object_set_new(root, "architectures", json_pack("[s]", as.in_transformers));
    else
        failed |= add_own(root, c);
    if (c->layer_scale != 0)
        failed |= add_dinov2(root, c);
    if (i->multi_label && i->classes > 1)
        failed |= json_object_set_new(root, "problem_type", json_string(multi_label));
    if (labels && i->classes)
        failed |= add_labels(root, i->classes, labels);
    else
        failed |= json_object_set_new(root, "num_labels", json_integer(i->classes));
    if (!failed)
        return root;
    json_decref(root);
    return NULL;
}
