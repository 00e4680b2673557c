/* The tensors of a .gguf file as a checkpoint. In files of the architecture llama, rows of queries and keys are in
 * another order: the two numbers that a position rotates are neighbors, so row 2 i + j of a head there is row j d/2 + i
 * here. */
#include "model/checkpoint.h"
#include "model/gguf_model.h"
#include "util/util.h"

#include <stdlib.h>
#include <string.h>

#define BOTH ATT_CHECKPOINT_LINEAR
static const att_checkpoint_name like_llama[] = {
    {"token_embd.weight", "embed_tokens.weight"},
    BOTH("blk.*.attn_q", "layers.*.self_attn.q_proj"),
    BOTH("blk.*.attn_k", "layers.*.self_attn.k_proj"),
    BOTH("blk.*.attn_v", "layers.*.self_attn.v_proj"),
    BOTH("blk.*.attn_output", "layers.*.self_attn.o_proj"),
    {"blk.*.attn_q_norm.weight", "layers.*.self_attn.q_norm.weight"},
    {"blk.*.attn_k_norm.weight", "layers.*.self_attn.k_norm.weight"},
    BOTH("blk.*.ffn_gate", "layers.*.mlp.gate_proj"),
    BOTH("blk.*.ffn_up", "layers.*.mlp.up_proj"),
    BOTH("blk.*.ffn_down", "layers.*.mlp.down_proj"),
    {"output_norm.weight", "norm.weight"},
    {0},
};
static const att_checkpoint_name norms_before[] = {
    {"blk.*.attn_norm.weight", "layers.*.input_layernorm.weight"},
    {"blk.*.ffn_norm.weight", "layers.*.post_attention_layernorm.weight"},
    {0},
};
static const att_checkpoint_name norms_after[] = {
    {"blk.*.post_attention_norm.weight", "layers.*.post_attention_layernorm.weight"},
    {"blk.*.post_ffw_norm.weight", "layers.*.post_feedforward_layernorm.weight"},
    {0},
};
static const att_checkpoint_name fused[] = {
    {"blk.*.attn_qkv.weight", "layers.*.self_attn.qkv_proj.weight"},
    {"blk.*.ffn_up.weight", "layers.*.mlp.gate_up_proj.weight"},
    {0},
};
static const att_checkpoint_name gpt2[] = {
    {"token_embd.weight", "wte.weight"},
    {"position_embd.weight", "wpe.weight"},
    BOTH("blk.*.attn_norm", "h.*.ln_1"),
    BOTH("blk.*.attn_qkv", "h.*.attn.c_attn"),
    BOTH("blk.*.attn_output", "h.*.attn.c_proj"),
    BOTH("blk.*.ffn_norm", "h.*.ln_2"),
    BOTH("blk.*.ffn_up", "h.*.mlp.c_fc"),
    BOTH("blk.*.ffn_down", "h.*.mlp.c_proj"),
    BOTH("output_norm", "ln_f"),
    {0},
};

/* Names of tensors in .gguf files of an architecture, and in folders, after a prefix. The first row that fits counts.
 */
typedef struct name_table {
    const char *architecture, *prefix;
    const att_checkpoint_name *names[4]; /* up to NULL */
} name_table;
static const name_table tables[] = {{"gpt2", "transformer.", {gpt2}},
                                    {"llama", "model.", {norms_before, like_llama}},
                                    {"olmo2", "model.", {norms_after, like_llama}},
                                    {"phi3", "model.", {fused, norms_before, like_llama}},
                                    {"qwen2", "model.", {norms_before, like_llama}},
                                    {"qwen3", "model.", {norms_before, like_llama}}};

static const name_table *table_of(const char *architecture)
{
    const name_table *t = tables;
    while (t < tables + sizeof tables / sizeof *tables - 1 && strcmp(t->architecture, architecture) != 0)
        t++;
    return t;
}

enum { ALIGN = 64 };

/* Returns the row of the file that becomes row r. */
static int64_t source_row(int64_t r, int64_t head_dim)
{
    const int64_t in_head = r % head_dim, half = head_dim / 2;
    return r - in_head + 2 * (in_head % half) + in_head / half;
}

/* ---- which tensors */

/* Writes the name in model.safetensors; false: there is none, which is not an error for tensors that model.safetensors
 * does not need. */
static bool rename_tensor(att_gguf *g, const char *name, char theirs[ATT_CHECKPOINT_NAME])
{
    if (strcmp(name, "rope_freqs.weight") == 0) /* it is a setting */
        return false;
    if (strcmp(name, "output.weight") == 0) {
        strcpy(theirs, "lm_head.weight");
        return true;
    }
    const name_table *t = table_of(att_gguf_text(g, "general.architecture", ""));
    bool found = false;
    for (int i = 0; !found && t->names[i]; i++)
        found = att_checkpoint_translate(t->names[i], t->prefix, name, theirs);
    if (!found)
        att_gguf_fail(g, ATT_ERR_UNSUPPORTED, "tensor \"%.80s\" has no place in a model of this architecture", name);
    return found;
}

bool att_gguf_weight_name(const char *architecture, const char *theirs, char name[ATT_CHECKPOINT_NAME])
{
    const name_table *t = table_of(architecture);
    const size_t prefix = strlen(t->prefix);
    if (strcmp(theirs, "lm_head.weight") == 0) {
        strcpy(name, "output.weight");
        return true;
    }
    theirs += strncmp(theirs, t->prefix, prefix) ? 0 : prefix;
    for (int i = 0; t->names[i]; i++)
        for (const att_checkpoint_name *row = t->names[i]; row->ours; row++)
            if (att_checkpoint_translate_row(&(att_checkpoint_name){row->theirs, row->ours}, "", theirs, name))
                return true;
    return false;
}

/* Returns the size of heads if their rows are in another order; otherwise 0. */
static int64_t head_dim_of(att_gguf *g, const char *name, int64_t rows)
{
    const bool query = strstr(name, ".attn_q."), key = strstr(name, ".attn_k.");
    if (strcmp(att_gguf_text(g, "general.architecture", ""), "llama") != 0 || (!query && !key))
        return 0;
    const char *heads_key = query || !att_gguf_has(g, "llama.attention.head_count_kv")
                                ? "llama.attention.head_count"
                                : "llama.attention.head_count_kv";
    const int64_t heads = att_gguf_int(g, heads_key, 1, 1 << 16);
    if (rows % (2 * heads))
        att_gguf_fail(g, ATT_ERR_FORMAT, "tensor \"%.80s\" has %lld rows, which are not %lld heads", name,
                      (long long)rows, (long long)heads);
    return rows % (2 * heads) ? 0 : rows / heads;
}

typedef struct named {
    char name[ATT_CHECKPOINT_NAME];
    const att_gguf_tensor *from;
} named;

static int by_name(const void *a, const void *b) { return strcmp(((const named *)a)->name, ((const named *)b)->name); }

/* Returns the bytes of a tensor's copy in memory; 0: it is a view of the file. */
static int64_t copy_bytes(const att_gguf_tensor *t)
{
    return strstr(t->name, ".attn_q.") || strstr(t->name, ".attn_k.") ? t->bytes : 0;
}

/* Makes tensor i of w from t: a view of the file if its rows are in order, otherwise a copy at *to, which then moves
 * past it. */
static att_status make_tensor(att_gguf_weights *w, att_gguf *g, int64_t i, const att_gguf_tensor *t, char **to)
{
    const int64_t rows = t->rank > 1 ? t->elements / t->dim[t->rank - 1] : t->elements, bytes = t->bytes / rows;
    const int64_t head_dim = head_dim_of(g, t->name, rows);
    const att_status s = att_gguf_view(t, &w->tensor[i]);
    if (s || !head_dim)
        return s;
    if (t->bytes % rows)
        return att_fail(w->ctx, ATT_ERR_UNSUPPORTED,
                        "%s: tensor \"%.80s\" of type %s could not be read: its rows are not whole blocks",
                        att_gguf_label(g), t->name, t->type_name);
    for (int64_t r = 0; r < rows; r++)
        memcpy(*to + r * bytes, (const char *)t->data + source_row(r, head_dim) * bytes, (size_t)bytes);
    if (att_gguf_memory(g, t->data) == ATT_MEMORY_MAPPED)
        att_release_mapped(&w->tensor[i]);
    w->tensor[i].data = *to;
    *to += att_round_up(t->bytes, ALIGN);
    return s;
}

/* Fills w with tensors [count]. */
static att_status make_tensors(att_gguf_weights *w, att_gguf *g, const named *t)
{
    int64_t bytes = 0;
    for (int64_t i = 0; i < w->count; i++)
        bytes += ALIGN + copy_bytes(t[i].from);
    w->name = att_alloc(w->ctx, (size_t)w->count, sizeof *w->name);
    w->tensor = att_alloc(w->ctx, (size_t)w->count, sizeof *w->tensor);
    w->names = att_alloc(w->ctx, (size_t)w->count, sizeof t->name);
    w->memory = att_alloc(w->ctx, (size_t)bytes + 1, 1);
    if (!w->name || !w->tensor || !w->names || !w->memory)
        return ATT_ERR_MEMORY;
    char *to = w->memory;
    att_status s = ATT_OK;
    for (int64_t i = 0; !s && i < w->count; i++) {
        char *name = w->names + i * ATT_CHECKPOINT_NAME;
        memcpy(name, t[i].name, sizeof t[i].name);
        w->name[i] = name;
        s = make_tensor(w, g, i, t[i].from, &to);
    }
    return s ? s : att_gguf_error(g);
}

att_status att_gguf_weights_read(att_ctx *ctx, att_gguf *g, att_gguf_weights *w)
{
    const int64_t n = att_gguf_count(g);
    *w = (att_gguf_weights){.ctx = ctx};
    named *t = att_alloc(ctx, (size_t)n, sizeof *t);
    att_status s = t ? ATT_OK : ATT_ERR_MEMORY;
    for (int64_t i = 0; !s && i < n && !att_gguf_error(g); i++) {
        t[w->count].from = att_gguf_at(g, i);
        w->count += rename_tensor(g, t[w->count].from->name, t[w->count].name);
    }
    s = s ? s : att_gguf_error(g);
    if (!s && w->count > 0)
        qsort(t, (size_t)w->count, sizeof *t, by_name);
    s = s ? s : make_tensors(w, g, t);
    att_free(ctx, t);
    if (s)
        att_gguf_weights_free(w);
    return s;
}

void att_gguf_weights_free(att_gguf_weights *w)
{
    att_free(w->ctx, w->name);
    att_free(w->ctx, w->tensor);
    att_free(w->ctx, w->names);
    att_free(w->ctx, w->memory);
    *w = (att_gguf_weights){.ctx = w->ctx};
}
