/* The kinds of folders that have a vision Transformer, with the names of its parameters there. */
#include "vision/vit.h"

#include <string.h>

/* ---- names: of Hugging Face's ViT and DeiT, of its DINOv2, of timm */

#define LINEAR ATT_CHECKPOINT_LINEAR
#define EMBEDDINGS                                                                                                     \
    {"embeddings.token", "embeddings.cls_token"}, {"embeddings.position", "embeddings.position_embeddings"},           \
        LINEAR("patches", "embeddings.patch_embeddings.projection")
static const att_checkpoint_name vit_names[] = {
    EMBEDDINGS,
    {"embeddings.distillation", "embeddings.distillation_token"},
    {"stem.*.weight", "embeddings.stem.*.weight"},
    LINEAR("layer.*.attention_norm", "encoder.layer.*.layernorm_before"),
    LINEAR("layer.*.attention.query", "encoder.layer.*.attention.attention.query"),
    LINEAR("layer.*.attention.key", "encoder.layer.*.attention.attention.key"),
    LINEAR("layer.*.attention.value", "encoder.layer.*.attention.attention.value"),
    LINEAR("layer.*.attention.output", "encoder.layer.*.attention.output.dense"),
    LINEAR("layer.*.feed_forward_norm", "encoder.layer.*.layernorm_after"),
    LINEAR("layer.*.feed_forward.inner", "encoder.layer.*.intermediate.dense"),
    LINEAR("layer.*.feed_forward.outer", "encoder.layer.*.output.dense"),
    LINEAR("norm", "layernorm"),
    LINEAR("head", "classifier"),
    LINEAR("head", "cls_classifier"),
    LINEAR("distillation_head", "distillation_classifier"),
    {0},
};
static const att_checkpoint_name dinov2_names[] = {
    EMBEDDINGS,
    {"embeddings.registers", "embeddings.register_tokens"},
    LINEAR("layer.*.attention_norm", "encoder.layer.*.norm1"),
    LINEAR("layer.*.attention.query", "encoder.layer.*.attention.attention.query"),
    LINEAR("layer.*.attention.key", "encoder.layer.*.attention.attention.key"),
    LINEAR("layer.*.attention.value", "encoder.layer.*.attention.attention.value"),
    LINEAR("layer.*.attention.output", "encoder.layer.*.attention.output.dense"),
    {"layer.*.attention_scale", "encoder.layer.*.layer_scale1.lambda1"},
    LINEAR("layer.*.feed_forward_norm", "encoder.layer.*.norm2"),
    LINEAR("layer.*.feed_forward.inner", "encoder.layer.*.mlp.fc1"),
    LINEAR("layer.*.feed_forward.outer", "encoder.layer.*.mlp.fc2"),
    LINEAR("layer.*.feed_forward.gate", "encoder.layer.*.mlp.weights_in"),
    LINEAR("layer.*.feed_forward.inner", "encoder.layer.*.mlp.weights_in"),
    LINEAR("layer.*.feed_forward.outer", "encoder.layer.*.mlp.weights_out"),
    {"layer.*.feed_forward_scale", "encoder.layer.*.layer_scale2.lambda1"},
    LINEAR("norm", "layernorm"),
    LINEAR("head", "classifier"),
    {0},
};
static const att_checkpoint_name timm_names[] = {
    {"embeddings.token", "cls_token"},
    {"embeddings.distillation", "dist_token"},
    {"embeddings.registers", "reg_token"},
    {"embeddings.position", "pos_embed"},
    LINEAR("patches", "patch_embed.proj"),
    LINEAR("layer.*.attention_norm", "blocks.*.norm1"),
    LINEAR("layer.*.attention.query", "blocks.*.attn.qkv"),
    LINEAR("layer.*.attention.key", "blocks.*.attn.qkv"),
    LINEAR("layer.*.attention.value", "blocks.*.attn.qkv"),
    LINEAR("layer.*.attention.output", "blocks.*.attn.proj"),
    {"layer.*.attention_scale", "blocks.*.ls1.gamma"},
    {"layer.*.attention_scale", "blocks.*.gamma_1"}, /* DeiT III's name */
    LINEAR("layer.*.feed_forward_norm", "blocks.*.norm2"),
    LINEAR("layer.*.feed_forward.gate", "blocks.*.mlp.fc1"),
    LINEAR("layer.*.feed_forward.inner", "blocks.*.mlp.fc1"),
    LINEAR("layer.*.feed_forward.outer", "blocks.*.mlp.fc2"),
    {"layer.*.feed_forward_scale", "blocks.*.ls2.gamma"},
    {"layer.*.feed_forward_scale", "blocks.*.gamma_2"},
    LINEAR("norm", "norm"),
    LINEAR("norm", "fc_norm"),
    LINEAR("head", "head"),
    LINEAR("distillation_head", "head_dist"),
    {0},
};
/* Tensors that only pre-training uses. */
static const char *const unused[] = {"embeddings.mask_token", "mask_token", "pooler.", NULL};

/* ---- kinds */

static void configure(att_model *m, att_settings *s) { att_vit_config_read(s, &((att_vit *)m)->config); }
static void configure_timm(att_model *m, att_settings *s) { att_vit_timm_read(s, &((att_vit *)m)->config); }

/* Loads a tensor. Queries, keys and values may be rows of one matrix, and so may gate and inner. Then the parameters
 * are views of that matrix. */
static att_status load(void *model, const char *name, int rank, const int64_t *dim, att_tensor *out)
{
    const att_vit *m = model;
    const int64_t qkv = m->config.fused_qkv ? 3 : 1, swiglu = m->config.gated ? 2 : 1;
    const struct {
        const char *name;
        int64_t part, parts;
    } fused[] = {{".attention.query.", 0, qkv},
                 {".attention.key.", 1, qkv},
                 {".attention.value.", 2, qkv},
                 {".feed_forward.gate.", 0, swiglu},
                 {".feed_forward.inner.", 1, swiglu}};
    for (size_t i = 0; i < sizeof fused / sizeof fused[0]; i++)
        if (fused[i].parts > 1 && strstr(name, fused[i].name)) {
            const att_checkpoint_part part = {fused[i].parts * dim[0], fused[i].part * dim[0], false};
            return att_checkpoint_load_part(m->model.checkpoint, name, rank, dim, part, out);
        }
    return att_checkpoint_load(m->model.checkpoint, name, rank, dim, out);
}

#define KIND(before, table)                                                                                            \
    {                                                                                                                  \
        .bytes = sizeof(att_vit), .types = &att_vit_types, .configure = configure, .build = att_vit_build,             \
        .prepare = att_vit_prepare, .load_parameter = load, .names = (table), .prefix = (before), .unused = unused     \
    }
static const att_model_kind kinds[ATT_N_VIT_NAMES] = {
    [ATT_VIT_NAMES] = KIND("vit.", vit_names),
    [ATT_DEIT_NAMES] = KIND("deit.", vit_names),
    [ATT_DINOV2_NAMES] = KIND("dinov2.", dinov2_names),
    [ATT_REGISTERS_NAMES] = KIND("dinov2_with_registers.", dinov2_names),
};
static const att_model_kind timm = {.bytes = sizeof(att_vit),
                                    .configure = configure_timm,
                                    .build = att_vit_build,
                                    .prepare = att_vit_prepare,
                                    .load_parameter = load,
                                    .names = timm_names,
                                    .prefix = "",
                                    .unused = unused};
const att_model_kind *const att_vit_kinds[] = {&kinds[ATT_VIT_NAMES], NULL};

const att_model_kind *att_vit_kind_of(att_settings *s)
{
    if (!att_settings_has(s, "model_type") && att_settings_has(s, "architecture"))
        return &timm;
    const att_model_kind *kind = att_model_kind_of(s, att_vit_kinds, "");
    return kind ? &kinds[att_vit_names_of(att_settings_text(s, "model_type", NULL))] : NULL;
}

/* ---- names that are written */

/* Names a tensor. Tokens and positions have another dimension there, which is 1. */
static void name_in_file(const void *user, const char *ours, att_file_tensor *out)
{
    const att_vit *m = user;
    const att_model_kind *k = att_vit_config_is_plain(&m->config) ? &kinds[ATT_VIT_NAMES] : m->model.kind;
    const att_tensor x = out->value;
    att_checkpoint_translate(k->names, strncmp(ours, "head.", 5) ? k->prefix : "", ours, out->name);
    if (!strncmp(ours, "embeddings.", 11))
        out->value = (att_tensor){.dtype = x.dtype,
                                  .rank = 3,
                                  .dim = {1, x.dim[0], x.dim[1]},
                                  .stride = {x.dim[0] * x.stride[0], x.stride[0], x.stride[1]},
                                  .data = x.data};
}

att_parameter_naming att_vit_naming(const att_vit *m)
{
    const att_model_kind *k = m->model.kind;
    const bool dinov2 = (k == &kinds[ATT_DINOV2_NAMES] || k == &kinds[ATT_REGISTERS_NAMES]) &&
                        !m->config.gated; /* gate and inner are one matrix there */
    return att_vit_config_is_plain(&m->config) || dinov2 ? name_in_file : NULL;
}
