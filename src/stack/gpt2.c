/* GPT-2 (Radford et al. 2019):
 *
 * x = embedding(ids) + position
 * each layer: x = x + Attention(LayerNorm(x)), x = x + GELU(h W_inner + b) W_outer + b with h = LayerNorm(x)
 * logits = LayerNorm(x) W^T */
#include "stack/language_model.h"

#include <string.h>

enum { MAX_FEATURES = 65536, MAX_LAYERS = 1024, MAX_POSITIONS = 1 << 20, MAX_TOKENS = 1 << 22 };

typedef struct gpt2 {
    att_language_model base;
    float eps;
    att_param *embedding, *position; /* [vocabulary, hidden], [max_positions, hidden] */
} gpt2;

#define LINEAR ATT_CHECKPOINT_LINEAR
static const att_checkpoint_name names[] = {
    {"embedding.weight", "wte.weight"},
    {"position.weight", "wpe.weight"},
    LINEAR("layer.*.attention_norm", "h.*.ln_1"),
    LINEAR("layer.*.attention.query", "h.*.attn.c_attn"),
    LINEAR("layer.*.attention.key", "h.*.attn.c_attn"),
    LINEAR("layer.*.attention.value", "h.*.attn.c_attn"),
    LINEAR("layer.*.attention.output", "h.*.attn.c_proj"),
    LINEAR("layer.*.feed_forward_norm", "h.*.ln_2"),
    LINEAR("layer.*.feed_forward.inner", "h.*.mlp.c_fc"),
    LINEAR("layer.*.feed_forward.outer", "h.*.mlp.c_proj"),
    LINEAR("norm", "ln_f"),
    {"head.weight", "lm_head.weight"},
    {0},
};
/* Tensors that are not used: a tied output layer, and the causal mask and its -10000, which are buffers in older
 * files. */
static const char *const unused[] = {"lm_head.", "h.*.attn.bias", "h.*.attn.masked_bias", NULL};

static void configure(att_model *base, att_settings *s)
{
    gpt2 *m = (gpt2 *)base;
    att_language_model_info *c = &m->base.info;
    c->type = "gpt2";
    c->vocabulary = att_settings_int(s, "vocab_size", 1, MAX_TOKENS);
    c->hidden = att_settings_int(s, "n_embd", 1, MAX_FEATURES);
    c->layers = att_settings_int(s, "n_layer", 1, MAX_LAYERS);
    c->heads = c->kv_heads = att_settings_int(s, "n_head", 1, MAX_FEATURES);
    c->intermediate =
        att_settings_has(s, "n_inner") ? att_settings_int(s, "n_inner", 1, 8 * MAX_FEATURES) : 4 * c->hidden;
    c->max_positions = att_settings_int(s, "n_positions", 1, MAX_POSITIONS);
    c->tied = att_settings_bool(s, "tie_word_embeddings", true);
    m->eps =
        att_settings_has(s, "layer_norm_epsilon") ? (float)att_settings_number(s, "layer_norm_epsilon", 0, 1) : 1e-5f;
    att_settings_only_text(s, "activation_function", "gelu_new");
    att_settings_only_bool(s, "scale_attn_weights", true);
    att_settings_only_bool(s, "scale_attn_by_inverse_layer_idx", false);
    att_settings_only_bool(s, "reorder_and_upcast_attn", false);
    att_settings_only_bool(s, "add_cross_attention", false);
    att_settings_only_bool(s, "is_causal", true);
    att_settings_only_empty(s, "pruned_heads");
    att_settings_only_empty(s, "quantization_config");
    if (!s->status && c->hidden % c->heads)
        att_settings_fail(s, ATT_ERR_FORMAT, "\"n_head\" is %d, which does not divide \"n_embd\", %d", (int)c->heads,
                          (int)c->hidden);
    c->head_dim = s->status ? 0 : c->hidden / c->heads;
}

/* ---- weights */

/* The matrices of the class Conv1D are [in, out], the transpose of those in attend and in .gguf files; one has queries,
 * keys and values side by side. Parameters are views of these. */
static const struct {
    const char *name;
    int part, parts;
} conv1d[] = {{".attention.query.", 0, 3},  {".attention.key.", 1, 3},      {".attention.value.", 2, 3},
              {".attention.output.", 0, 1}, {".feed_forward.inner.", 0, 1}, {".feed_forward.outer.", 0, 1}};

static att_status load(void *model, const char *name, int rank, const int64_t *dim, att_tensor *out)
{
    att_checkpoint *file = ((gpt2 *)model)->base.model.checkpoint;
    for (size_t i = 0; i < sizeof conv1d / sizeof conv1d[0]; i++)
        if (strstr(name, conv1d[i].name)) {
            const att_checkpoint_part part = {conv1d[i].parts * dim[0], conv1d[i].part * dim[0],
                                              .transposed = !file->gguf};
            return att_checkpoint_load_part(file, name, rank, dim, part, out);
        }
    return att_checkpoint_load(file, name, rank, dim, out);
}

static att_status build(att_model *base)
{
    gpt2 *m = (gpt2 *)base;
    const att_language_model_info *c = &m->base.info;
    const att_nn_layer_config layer = {.size = sizeof layer,
                                       .width = c->hidden,
                                       .heads = c->heads,
                                       .intermediate = c->intermediate,
                                       .activation = ATT_ACTIVATION_GELU_TANH,
                                       .causal = true,
                                       .order = ATT_NN_ORDER_PRE_NORM,
                                       .norm = ATT_NN_NORM_LAYER,
                                       .eps = m->eps};
    m->base.causal = true;
    m->embedding = att_model_embedding(base, "embedding", c->vocabulary, c->hidden, -1);
    m->position = att_model_embedding(base, "position", c->max_positions, c->hidden, -1);
    att_language_model_layers(&m->base, &layer);
    return att_language_model_build_head(&m->base, m->embedding);
}

static att_var *embed(att_tape *t, const att_language_model *base, const int32_t *ids, const int64_t *offsets,
                      int64_t n, const att_language_state *state)
{
    const gpt2 *m = (const gpt2 *)base;
    int64_t *starts = att_calloc(m->base.model.ctx, (size_t)n + 1, sizeof *starts);
    if (!starts)
        return att_tape_fail(t, ATT_ERR_MEMORY, "%s", att_error(m->base.model.ctx));
    for (int64_t b = 0; state && b < n; b++)
        starts[b] = att_language_state_length(state, b);
    const att_positions at = {.size = sizeof at, .offsets = offsets, .n = n, .starts = starts};
    att_var *x = att_learned_positions(t, att_embedding(t, m->embedding, ids, offsets[n]), m->position, &at);
    att_free(m->base.model.ctx, starts);
    return x;
}

static const char *const types[] = {"gpt2"};
static const att_model_types gpt2_types = ATT_MODEL_TYPES(types);
#define ARCHITECTURE(applied, headless)                                                                                \
    {                                                                                                                  \
        .kind = {.bytes = sizeof(gpt2),                                                                                \
                 .types = &gpt2_types,                                                                                 \
                 .configure = configure,                                                                               \
                 .build = build,                                                                                       \
                 .prepare = (applied),                                                                                 \
                 .load_parameter = load,                                                                               \
                 .names = names,                                                                                       \
                 .prefix = "transformer.",                                                                             \
                 .unused = unused},                                                                                    \
        .embed = embed, .without_head = (headless)                                                                     \
    }
const att_language_architecture att_gpt2 = ARCHITECTURE(att_language_model_prepare, false),
                                att_gpt2_base = ARCHITECTURE(att_language_base_prepare, true);
