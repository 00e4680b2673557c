/* Rows of queries and keys are in another order in files of the architecture llama, where the two numbers that a
 * position rotates are neighbours: row 2 i + j of a head there is row j d/2 + i here. */
#include "model/checkpoint.h"
#include "model/gguf_model.h"
#include "util/util.h"

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

enum { NUMBERS = 1 << 18 /* that one thread reads at once */, ALIGN = 64 };

/* Rows [first, first + rows) of a tensor, which become f32 or stay as they are */
typedef struct part {
    const att_gguf_tensor *from;
    bool stored;
    char *to;
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
    const int64_t bytes = p->from->bytes / (p->from->elements / width);
    if (!p->head_dim) { /* of what becomes f32 */
        j->status[i] = att_gguf_floats_of(j->ctx, p->from, p->first * width, p->rows * width, (float *)(void *)p->to);
        return;
    }
    for (int64_t r = 0; r < p->rows && !j->status[i]; r++) {
        const int64_t source = source_row(p->first + r, p->head_dim);
        char *to = p->to + r * (p->stored ? bytes : width * (int64_t)sizeof(float));
        if (p->stored)
            memcpy(to, (const char *)p->from->data + source * bytes, (size_t)bytes);
        else
            j->status[i] = att_gguf_floats_of(j->ctx, p->from, source * width, width, (float *)(void *)to);
    }
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

static void add_parts(job *j, const att_gguf_tensor *t, int64_t head_dim, bool stored, char *to)
{
    const int64_t rows = t->rank > 1 ? t->elements / t->dim[t->rank - 1] : t->elements;
    const int64_t width = t->elements / rows, each = width < NUMBERS ? NUMBERS / width : 1;
    const int64_t bytes = stored ? t->bytes / rows : width * (int64_t)sizeof(float);
    for (int64_t first = 0; first < rows; first += each) {
        const part p = {t, stored, to + first * bytes, first, first + each < rows ? each : rows - first, head_dim};
        att_bytes_add(&j->parts, &p, sizeof p);
    }
}

typedef struct named {
    char name[ATT_CHECKPOINT_NAME];
    const att_gguf_tensor *from;
} named;

static int by_name(const void *a, const void *b) { return strcmp(((const named *)a)->name, ((const named *)b)->name); }

/* The tensor i of w, which was t: a view of the file if it is as stored and in order, else in memory at *to, which
 * then moves past it, and which parts are read into. */
static att_status make_tensor(att_gguf_weights *w, att_gguf *g, int64_t i, const att_gguf_tensor *t, bool stored,
                              job *j, char **to)
{
    const int64_t rows = t->rank > 1 ? t->elements / t->dim[t->rank - 1] : t->elements;
    const int64_t head_dim = head_dim_of(g, t->name, rows);
    att_status s = att_gguf_view(t, &w->tensor[i]);
    if (s || (stored && !head_dim))
        return s;
    if (!stored)
        s = att_wrap(&w->tensor[i], NULL, ATT_F32, t->rank, t->dim, NULL);
    w->tensor[i].data = *to;
    add_parts(j, t, head_dim, stored, *to);
    *to += att_round_up(stored ? t->bytes : t->elements * (int64_t)sizeof(float), ALIGN);
    return s;
}

/* Fills w with tensors [count] of memory that is still empty. */
static att_status make_tensors(att_gguf_weights *w, att_gguf *g, const named *t, bool stored, job *j)
{
    int64_t bytes = 0;
    for (int64_t i = 0; i < w->count; i++)
        if (!stored || strstr(t[i].from->name, ".attn_q.") || strstr(t[i].from->name, ".attn_k."))
            bytes += ALIGN + (stored ? t[i].from->bytes : t[i].from->elements * (int64_t)sizeof(float));
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
        s = make_tensor(w, g, i, t[i].from, stored, j, &to);
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

att_status att_gguf_weights_read(att_ctx *ctx, att_gguf *g, bool stored, att_gguf_weights *w)
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
    s = s ? s : make_tensors(w, g, t, stored, &j);
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
