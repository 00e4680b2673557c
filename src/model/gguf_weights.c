/* Rows of queries and keys are in another order in files of the architecture llama, where the two numbers that a
 * position rotates are neighbours: row 2 i + j of a head there is row j d/2 + i here. */
#include "model/checkpoint.h"
#include "model/gguf_model.h"

#include <stdlib.h>
#include <string.h>

#define BOTH ATT_CHECKPOINT_LINEAR
static const att_checkpoint_name names[] = {
    {"token_embd.weight", "embed_tokens.weight"},
    {"blk.*.attn_norm.weight", "layers.*.input_layernorm.weight"},
    BOTH("blk.*.attn_q", "layers.*.self_attn.q_proj"),
    BOTH("blk.*.attn_k", "layers.*.self_attn.k_proj"),
    BOTH("blk.*.attn_v", "layers.*.self_attn.v_proj"),
    BOTH("blk.*.attn_output", "layers.*.self_attn.o_proj"),
    {"blk.*.attn_q_norm.weight", "layers.*.self_attn.q_norm.weight"},
    {"blk.*.attn_k_norm.weight", "layers.*.self_attn.k_norm.weight"},
    {"blk.*.ffn_norm.weight", "layers.*.post_attention_layernorm.weight"},
    BOTH("blk.*.ffn_gate", "layers.*.mlp.gate_proj"),
    BOTH("blk.*.ffn_up", "layers.*.mlp.up_proj"),
    BOTH("blk.*.ffn_down", "layers.*.mlp.down_proj"),
    {"output_norm.weight", "norm.weight"},
    {0},
};

enum { NUMBERS = 1 << 18 }; /* that one thread reads at once */

/* Rows [first, first + rows) of a tensor */
typedef struct part {
    const att_gguf_tensor *from;
    float *to;
    int64_t first, rows;
    int64_t head_dim; /* of rows to put in order; 0: none */
} part;

typedef struct job {
    att_ctx *ctx;
    att_bytes parts;
    att_status *status; /* [parts] */
} job;

/* The row of the file that becomes row r */
static int64_t source_row(int64_t r, int64_t head_dim)
{
    const int64_t in_head = head_dim ? r % head_dim : 0, half = head_dim / 2;
    return head_dim ? r - in_head + 2 * (in_head % half) + in_head / half : r;
}

static void read_part(void *arg, int i)
{
    job *j = arg;
    const part *p = (const part *)(const void *)j->parts.data + i;
    const int64_t width = p->from->rank > 1 ? p->from->dim[p->from->rank - 1] : 1;
    if (!p->head_dim) {
        j->status[i] = att_gguf_floats_of(j->ctx, p->from, p->first * width, p->rows * width, p->to);
        return;
    }
    for (int64_t r = 0; r < p->rows && !j->status[i]; r++)
        j->status[i] = att_gguf_floats_of(j->ctx, p->from, source_row(p->first + r, p->head_dim) * width, width,
                                          p->to + r * width);
}

/* ---- which tensors */

/* The name in model.safetensors; false: none, and if the tensor is one that has no place there, not even an error. */
static bool rename_tensor(att_gguf *g, const char *name, char theirs[ATT_CHECKPOINT_NAME])
{
    if (strcmp(name, "rope_freqs.weight") == 0) /* a setting */
        return false;
    if (strcmp(name, "output.weight") == 0) {
        strcpy(theirs, "lm_head.weight");
        return true;
    }
    const bool found = att_checkpoint_translate(names, "model.", name, theirs);
    if (!found)
        att_gguf_fail(g, ATT_ERR_UNSUPPORTED, "tensor \"%.80s\" has no place in a model of this architecture", name);
    return found;
}

/* The size of heads whose rows are in another order; 0: they are not. */
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

static void add_parts(att_gguf *g, job *j, const att_gguf_tensor *t, float *to)
{
    const int64_t rows = t->rank > 1 ? t->elements / t->dim[t->rank - 1] : t->elements;
    const int64_t width = t->elements / rows, head_dim = head_dim_of(g, t->name, rows);
    const int64_t each = width < NUMBERS ? NUMBERS / width : 1;
    for (int64_t first = 0; first < rows; first += each) {
        const part p = {t, to + first * width, first, first + each < rows ? each : rows - first, head_dim};
        att_bytes_add(&j->parts, &p, sizeof p);
    }
}

typedef struct named {
    char name[ATT_CHECKPOINT_NAME];
    const att_gguf_tensor *from;
} named;

static int by_name(const void *a, const void *b) { return strcmp(((const named *)a)->name, ((const named *)b)->name); }

/* Fills w with tensors [count] of memory that is still empty. */
static att_status make_tensors(att_gguf_weights *w, att_gguf *g, const named *t, job *j)
{
    int64_t elements = 0;
    for (int64_t i = 0; i < w->count; i++)
        elements += t[i].from->elements;
    w->name = att_alloc(w->ctx, (size_t)w->count, sizeof *w->name);
    w->tensor = att_alloc(w->ctx, (size_t)w->count, sizeof *w->tensor);
    w->names = att_alloc(w->ctx, (size_t)w->count, sizeof t->name);
    w->memory = att_alloc(w->ctx, (size_t)elements, sizeof *w->memory);
    if (!w->name || !w->tensor || !w->names || !w->memory)
        return ATT_ERR_MEMORY;
    float *to = w->memory;
    att_status s = ATT_OK;
    for (int64_t i = 0; !s && i < w->count; i++) {
        char *name = w->names + i * ATT_CHECKPOINT_NAME;
        memcpy(name, t[i].name, sizeof t[i].name);
        w->name[i] = name;
        s = att_wrap(&w->tensor[i], to, ATT_F32, t[i].from->rank, t[i].from->dim, NULL);
        add_parts(g, j, t[i].from, to);
        to += t[i].from->elements;
    }
    s = s ? s : att_gguf_error(g);
    return s ? s : j->parts.status;
}

static att_status read_parts(const att_gguf *g, job *j)
{
    const part *p = (const part *)(const void *)j->parts.data;
    const size_t n = j->parts.count / sizeof(part);
    j->status = att_calloc(j->ctx, n, sizeof *j->status);
    if (!j->status)
        return ATT_ERR_MEMORY;
    att_parallel_for(j->ctx, (int)n, read_part, j);
    att_status s = ATT_OK;
    for (size_t i = 0; !s && i < n; i++)
        if (j->status[i])
            s = att_fail(j->ctx, j->status[i], "%s: tensor \"%.80s\" of type %s could not be read", att_gguf_label(g),
                         p[i].from->name, p[i].from->type_name);
    return s;
}

att_status att_gguf_weights_read(att_ctx *ctx, att_gguf *g, att_gguf_weights *w)
{
    const int64_t n = att_gguf_count(g);
    *w = (att_gguf_weights){.ctx = ctx};
    job j = {.ctx = ctx, .parts.ctx = ctx};
    named *t = att_alloc(ctx, (size_t)n, sizeof *t);
    att_status s = t ? ATT_OK : ATT_ERR_MEMORY;
    for (int64_t i = 0; !s && i < n && !att_gguf_error(g); i++) {
        t[w->count].from = att_gguf_at(g, i);
        w->count += rename_tensor(g, t[w->count].from->name, t[w->count].name);
    }
    s = s ? s : att_gguf_error(g);
    if (!s && w->count > 0)
        qsort(t, (size_t)w->count, sizeof *t, by_name);
    s = s ? s : make_tensors(w, g, t, &j);
    s = s ? s : read_parts(g, &j);
    att_free(ctx, t);
    att_free(ctx, j.status);
    att_bytes_free(&j.parts);
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
