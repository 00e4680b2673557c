/* Reads config.json of timm's vision Transformers. "architecture" is a name that stands for the arguments of a
 * function; "model_args" has those that differ. */
#include "vision/vit_config.h"

#include <string.h>

enum {
    NO_CLS = 1,       /* no [CLS] token */
    MEAN = 2,         /* pooling by the mean of all patches, then the last norm */
    NORM_FIRST = 4,   /* pooling follows that norm */
    BARE = 8,         /* tokens before the patches have no positions */
    NO_QKV_BIAS = 16, /* queries, keys and values have no bias */
    SCALE = 32,       /* layer scale */
    DISTILLED = 64,   /* a second token and a second head */
    SWIGLU = 128,     /* instead of GELU */
    ANY_SIZE = 256,   /* positions are resampled */
    NO_NORM = 512     /* after the last layer */
};

/* The architectures, without the number of pixels at the end of the name. inner: the output features of an MLP's first
 * matrix. */
static const struct architecture {
    const char *name;
    int patch, hidden, layers, heads, inner, registers, flags;
} architectures[] = {
    {"eva_large_patch14", 14, 1024, 24, 16, 4096, 0, MEAN},
    {"flexivit_base", 16, 768, 12, 12, 3072, 0, BARE},
    {"flexivit_large", 16, 1024, 24, 16, 4096, 0, BARE},
    {"flexivit_small", 16, 384, 12, 6, 1536, 0, BARE},
    {"test_vit", 16, 64, 6, 2, 192, 0, ANY_SIZE},
    {"test_vit2", 16, 64, 8, 2, 192, 1, NO_CLS | MEAN | SCALE | ANY_SIZE},
    {"vit_base_patch8", 8, 768, 12, 12, 3072, 0, 0},
    {"vit_base_patch14_dinov2", 14, 768, 12, 12, 3072, 0, SCALE},
    {"vit_base_patch14_reg1_tipsv2", 14, 768, 12, 12, 3072, 1, BARE | SCALE},
    {"vit_base_patch14_reg4_dinov2", 14, 768, 12, 12, 3072, 4, BARE | SCALE},
    {"vit_base_patch16", 16, 768, 12, 12, 3072, 0, 0},
    {"vit_base_patch16_224_miil", 16, 768, 12, 12, 3072, 0, NO_QKV_BIAS},
    {"vit_base_patch16_gap", 16, 768, 12, 16, 3072, 0, NO_CLS | MEAN | NORM_FIRST},
    {"vit_base_patch16_plus", 16, 896, 12, 14, 3584, 0, SCALE},
    {"vit_base_patch16_reg4_gap", 16, 768, 12, 12, 3072, 4, NO_CLS | MEAN | BARE},
    {"vit_base_patch32", 32, 768, 12, 12, 3072, 0, 0},
    {"vit_base_patch32_plus", 32, 896, 12, 14, 3584, 0, SCALE},
    {"vit_betwixt_patch16_gap", 16, 640, 12, 10, 2560, 0, NO_CLS | MEAN | NORM_FIRST | NO_QKV_BIAS | SCALE},
    {"vit_betwixt_patch16_reg1_gap", 16, 640, 12, 10, 2560, 1, NO_CLS | MEAN | BARE | SCALE},
    {"vit_betwixt_patch16_reg4_gap", 16, 640, 12, 10, 2560, 4, NO_CLS | MEAN | BARE | SCALE},
    {"vit_giant_patch14", 14, 1408, 40, 16, 6144, 0, 0},
    {"vit_giant_patch14_dinov2", 14, 1536, 40, 24, 8192, 0, SCALE | SWIGLU},
    {"vit_giant_patch14_reg1_tipsv2", 14, 1536, 40, 24, 8192, 1, BARE | SCALE | SWIGLU},
    {"vit_giant_patch14_reg4_dinov2", 14, 1536, 40, 24, 8192, 4, BARE | SCALE | SWIGLU},
    {"vit_giant_patch16_gap", 16, 1408, 40, 16, 6144, 0, NO_CLS | MEAN | NORM_FIRST},
    {"vit_gigantic_patch14", 14, 1664, 48, 16, 8192, 0, 0},
    {"vit_huge_patch14", 14, 1280, 32, 16, 5120, 0, 0},
    {"vit_huge_patch14_gap", 14, 1280, 32, 16, 5120, 0, NO_CLS | MEAN | NORM_FIRST},
    {"vit_huge_patch16_gap", 16, 1280, 32, 16, 5120, 0, NO_CLS | MEAN | NORM_FIRST},
    {"vit_intern300m_patch14", 14, 1024, 24, 16, 4096, 0, SCALE | NO_NORM | ANY_SIZE},
    {"vit_large_patch14", 14, 1024, 24, 16, 4096, 0, 0},
    {"vit_large_patch14_dinov2", 14, 1024, 24, 16, 4096, 0, SCALE},
    {"vit_large_patch14_reg1_tipsv2", 14, 1024, 24, 16, 4096, 1, BARE | SCALE},
    {"vit_large_patch14_reg4_dinov2", 14, 1024, 24, 16, 4096, 4, BARE | SCALE},
    {"vit_large_patch16", 16, 1024, 24, 16, 4096, 0, 0},
    {"vit_large_patch32", 32, 1024, 24, 16, 4096, 0, 0},
    {"vit_little_patch16_reg1_gap", 16, 320, 14, 5, 1792, 1, NO_CLS | MEAN | BARE | SCALE},
    {"vit_little_patch16_reg4_gap", 16, 320, 14, 5, 1792, 4, NO_CLS | MEAN | BARE | SCALE},
    {"vit_medium_patch16_gap", 16, 512, 12, 8, 2048, 0, NO_CLS | MEAN | NORM_FIRST | NO_QKV_BIAS | SCALE},
    {"vit_medium_patch16_reg1_gap", 16, 512, 12, 8, 2048, 1, NO_CLS | MEAN | BARE | SCALE},
    {"vit_medium_patch16_reg4_gap", 16, 512, 12, 8, 2048, 4, NO_CLS | MEAN | BARE | SCALE},
    {"vit_mediumd_patch16_reg4_gap", 16, 512, 20, 8, 2048, 4, NO_CLS | MEAN | BARE | SCALE},
    {"vit_small_patch8", 8, 384, 12, 6, 1536, 0, 0},
    {"vit_small_patch14_dinov2", 14, 384, 12, 6, 1536, 0, SCALE},
    {"vit_small_patch14_reg4_dinov2", 14, 384, 12, 6, 1536, 4, BARE | SCALE},
    {"vit_small_patch16_36x1", 16, 384, 36, 6, 1536, 0, SCALE},
    {"vit_small_patch16", 16, 384, 12, 6, 1536, 0, 0},
    {"vit_small_patch32", 32, 384, 12, 6, 1536, 0, 0},
    {"vit_so150m2_patch16_reg1_gap", 16, 832, 21, 13, 2176, 1, NO_CLS | MEAN | NO_QKV_BIAS | SCALE},
    {"vit_so150m_patch16_reg4_gap", 16, 896, 18, 14, 2304, 4, NO_CLS | MEAN | NORM_FIRST},
    {"vit_so400m_patch14_reg1_tipsv2", 14, 1152, 27, 16, 4304, 1, BARE | SCALE},
    {"vit_tiny_patch16", 16, 192, 12, 3, 768, 0, 0},
    {"vit_wee_patch16_reg1_gap", 16, 256, 14, 4, 1280, 1, NO_CLS | MEAN | BARE | SCALE},
    {"deit3_base_patch16", 16, 768, 12, 12, 3072, 0, BARE | SCALE},
    {"deit3_huge_patch14", 14, 1280, 32, 16, 5120, 0, BARE | SCALE},
    {"deit3_large_patch16", 16, 1024, 24, 16, 4096, 0, BARE | SCALE},
    {"deit3_medium_patch16", 16, 512, 12, 8, 2048, 0, BARE | SCALE},
    {"deit3_small_patch16", 16, 384, 12, 6, 1536, 0, BARE | SCALE},
    {"deit_base_distilled_patch16", 16, 768, 12, 12, 3072, 0, DISTILLED},
    {"deit_base_patch16", 16, 768, 12, 12, 3072, 0, 0},
    {"deit_small_distilled_patch16", 16, 384, 12, 6, 1536, 0, DISTILLED},
    {"deit_small_patch16", 16, 384, 12, 6, 1536, 0, 0},
    {"deit_tiny_distilled_patch16", 16, 192, 12, 3, 768, 0, DISTILLED},
    {"deit_tiny_patch16", 16, 192, 12, 3, 768, 0, 0},
};
enum { ARCHITECTURES = sizeof architectures / sizeof architectures[0] };

/* Returns whether the text `is` equals `name`, or `name` followed by _PIXELS. */
static bool is_named(const char *name, const char *is)
{
    const size_t n = strlen(name);
    if (strncmp(name, is, n) != 0)
        return false;
    return !is[n] || (is[n] == '_' && is[n + 1] && !is[n + 1 + strspn(is + n + 1, "0123456789")]);
}

static const struct architecture *find(att_settings *s)
{
    const char *name = att_settings_text(s, "architecture", NULL);
    for (int i = 0; i < ARCHITECTURES; i++)
        if (is_named(architectures[i].name, name))
            return &architectures[i];
    att_settings_unsupported(s, "architecture", "a plain vit_*, deit_* or deit3_* (no CLIP, no SigLIP) of timm 1.0");
    return NULL;
}

/* Checks the names of classes, which are an object or a list of texts. A classifier whose first classes are left out is
 * not supported. */
static void check_labels(att_settings *s)
{
    const json_t *names = att_settings_get(s, "label_names");
    bool good = !names || json_is_object(names) || json_is_array(names);
    for (size_t i = 0; i < json_array_size(names); i++)
        good = good && json_is_string(json_array_get(names, i));
    if (!good)
        att_settings_fail(s, ATT_ERR_FORMAT, "\"%slabel_names\" is %s, not an object or a list of texts", s->within,
                          att_json_show(names).text);
    att_settings_only_number(s, "label_offset", 0);
}

/* Reads the sizes of the images of pre-training, before the arguments. */
static void read_images(att_settings *s, att_vit_config *c)
{
    const att_settings_scope before = att_settings_enter(s, "pretrained_cfg");
    const json_t *size = att_settings_list(s, "input_size", true);
    int64_t is[3] = {1, 1, 1};
    for (size_t i = 0; !s->status && i < 3; i++) {
        const double x = json_number_value(json_array_get(size, i));
        is[i] = x >= 1 && x <= ATT_VIT_MAX_SIDE ? (int64_t)x : 0;
        if (json_array_size(size) != 3 || is[i] < 1)
            att_settings_fail(s, ATT_ERR_FORMAT, "\"%sinput_size\" is %s, not channels, height and width", s->within,
                              att_json_show(size).text);
    }
    check_labels(s);
    c->info.channels = is[0];
    c->info.image[0] = is[1];
    c->info.image[1] = is[2];
    att_settings_leave(s, before);
}

static void replace_int(att_settings *s, const char *key, int64_t max, int64_t *value)
{
    if (att_settings_has(s, key))
        *value = att_settings_int(s, key, 0, max);
}

static void replace_flag(att_settings *s, const char *key, int flag, bool sets, int *flags)
{
    if (att_settings_has(s, key))
        *flags = att_settings_bool(s, key, false) == sets ? *flags | flag : *flags & ~flag;
}

/* Replaces the pooling by "global_pool". The last norm follows a mean unless "fc_norm" states otherwise. */
static void replace_pooling(att_settings *s, int *flags)
{
    const char *pool = att_settings_text(s, "global_pool", *flags & MEAN ? "avg" : "token");
    if (strcmp(pool, "avg") != 0 && strcmp(pool, "token") != 0)
        att_settings_unsupported(s, "global_pool", "avg or token");
    *flags = !strcmp(pool, "avg") ? *flags | MEAN : *flags & ~MEAN;
    replace_flag(s, "fc_norm", NORM_FIRST, false, flags);
}

/* Refuses arguments that are not supported, or only with one value. Those that matter only in training are ignored. */
static void refuse_others(att_settings *s)
{
    static const char *const known[] = {"img_size",
                                        "patch_size",
                                        "in_chans",
                                        "num_classes",
                                        "global_pool",
                                        "embed_dim",
                                        "depth",
                                        "num_heads",
                                        "mlp_ratio",
                                        "qkv_bias",
                                        "init_values",
                                        "class_token",
                                        "no_embed_class",
                                        "reg_tokens",
                                        "fc_norm",
                                        "dynamic_img_size",
                                        "drop_rate",
                                        "pos_drop_rate",
                                        "patch_drop_rate",
                                        "proj_drop_rate",
                                        "attn_drop_rate",
                                        "drop_path_rate",
                                        "weight_init",
                                        "fix_init",
                                        "qk_norm",
                                        "pre_norm",
                                        "scale_attn_norm",
                                        "scale_mlp_norm",
                                        "dynamic_img_pad",
                                        "pool_include_prefix",
                                        "final_norm",
                                        "proj_bias",
                                        "pos_embed",
                                        "embed_layer",
                                        "norm_layer",
                                        "embed_norm_layer",
                                        "act_layer",
                                        "block_fn",
                                        "mlp_layer",
                                        "attn_layer",
                                        "device",
                                        "dtype",
                                        NULL};
    static const char *const off[] = {"qk_norm",        "pre_norm",        "scale_attn_norm",
                                      "scale_mlp_norm", "dynamic_img_pad", "pool_include_prefix"};
    static const char *const layers[] = {"embed_layer", "norm_layer", "embed_norm_layer", "act_layer",
                                         "block_fn",    "mlp_layer",  "attn_layer"};
    att_settings_only_known(s, known);
    for (size_t i = 0; i < sizeof off / sizeof off[0]; i++)
        att_settings_only_bool(s, off[i], false);
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++)
        att_settings_only_empty(s, layers[i]);
    att_settings_only_bool(s, "proj_bias", true);
    att_settings_only_text(s, "pos_embed", "learn");
}

/* Replaces arguments by those in the scope of s. ratio: inner features divided by hidden ones. */
static void replace_arguments(att_settings *s, att_vit_config *c, double *ratio, int *flags)
{
    att_vit_info *i = &c->info;
    refuse_others(s);
    replace_int(s, "in_chans", ATT_VIT_MAX_FEATURES, &i->channels);
    replace_int(s, "embed_dim", ATT_VIT_MAX_FEATURES, &i->hidden);
    replace_int(s, "depth", ATT_VIT_MAX_LAYERS, &i->layers);
    replace_int(s, "num_heads", ATT_VIT_MAX_FEATURES, &i->heads);
    replace_int(s, "reg_tokens", ATT_VIT_MAX_FEATURES, &c->registers);
    if (att_settings_has(s, "mlp_ratio"))
        *ratio = att_settings_number(s, "mlp_ratio", 0.01, 64);
    if (att_settings_has(s, "img_size"))
        att_vit_read_pair(s, "img_size", 0, i->image);
    if (att_settings_has(s, "patch_size"))
        att_vit_read_pair(s, "patch_size", 0, i->patch);
    if (att_settings_has(s, "init_values"))
        *flags = att_settings_number(s, "init_values", -1e6, 1e6) != 0 ? *flags | SCALE : *flags & ~SCALE;
    replace_flag(s, "class_token", NO_CLS, false, flags);
    replace_flag(s, "no_embed_class", BARE, true, flags);
    replace_flag(s, "qkv_bias", NO_QKV_BIAS, false, flags);
    replace_flag(s, "dynamic_img_size", ANY_SIZE, true, flags);
    replace_flag(s, "final_norm", NO_NORM, false, flags);
    replace_pooling(s, flags);
}

static void set_flags(att_vit_config *c, int flags)
{
    c->class_token = !(flags & NO_CLS);
    c->distillation_token = flags & DISTILLED;
    c->positioned = flags & BARE ? 0 : c->class_token + c->distillation_token + c->registers;
    c->gated = flags & SWIGLU;
    c->activation = c->gated ? ATT_ACTIVATION_SILU : ATT_ACTIVATION_GELU_ERF;
    c->fused_qkv = c->antialias = true;
    c->no_qkv_bias = flags & NO_QKV_BIAS;
    c->layer_scale = flags & SCALE ? 1 : 0;
    c->resampled = flags & ANY_SIZE;
    c->no_norm = flags & NO_NORM;
    c->pooled_norm = flags & MEAN && !(flags & NORM_FIRST);
    c->info.pooling = flags & MEAN        ? ATT_VIT_POOLING_MEAN
                      : flags & DISTILLED ? ATT_VIT_POOLING_CLS_AND_DISTILL
                                          : ATT_VIT_POOLING_CLS;
}

static void check(att_settings *s, const att_vit_config *c)
{
    const att_vit_info *i = &c->info;
    if (!s->status && (i->hidden < 1 || i->layers < 1 || i->heads < 1 || i->intermediate < 1))
        att_settings_fail(s, ATT_ERR_FORMAT,
                          "\"model_args\" have %lld features, %lld layers, %lld heads and %lld inner features; each "
                          "must be 1 or more",
                          (long long)i->hidden, (long long)i->layers, (long long)i->heads, (long long)i->intermediate);
    if (!s->status && i->pooling != ATT_VIT_POOLING_MEAN && !c->class_token)
        att_settings_fail(s, ATT_ERR_FORMAT, "\"global_pool\" is token, but there is no class token");
    if (!s->status && i->pooling == ATT_VIT_POOLING_MEAN && c->distillation_token)
        att_settings_fail(s, ATT_ERR_UNSUPPORTED, "\"global_pool\" is avg, which is not supported with distillation");
}

void att_vit_timm_read(att_settings *s, att_vit_config *c)
{
    *c = (att_vit_config){.info = {.size = sizeof c->info, .type = "timm"}, .eps = 1e-6};
    const struct architecture *a = find(s);
    if (!a)
        return;
    att_vit_info *i = &c->info;
    int flags = a->flags;
    double ratio = (double)a->inner / a->hidden;
    i->hidden = a->hidden;
    i->layers = a->layers;
    i->heads = a->heads;
    i->patch[0] = i->patch[1] = a->patch;
    c->registers = a->registers;
    check_labels(s);
    read_images(s, c);
    replace_pooling(s, &flags);
    if (att_settings_has(s, "model_args")) {
        const att_settings_scope before = att_settings_enter(s, "model_args");
        replace_arguments(s, c, &ratio, &flags);
        att_settings_leave(s, before);
    }
    replace_int(s, "num_classes", ATT_VIT_MAX_CLASSES, &i->classes);
    i->multi_label = i->classes == 1;
    set_flags(c, flags);
    i->intermediate = (int64_t)((double)i->hidden * ratio) / (c->gated ? 2 : 1);
    check(s, c);
    att_vit_config_check(s, c);
}
