#include "layer.h"

#include <stdlib.h>

static const char *const words[] = {"Your", "journey", "starts", "with", "one", "step"};
static const float embeddings[] = {0.43f, 0.15f, 0.89f, 0.55f, 0.87f, 0.66f, 0.57f, 0.85f, 0.64f,
                                   0.22f, 0.58f, 0.33f, 0.77f, 0.25f, 0.10f, 0.05f, 0.80f, 0.55f};
const vectors layer_words = {.n = 6, .dim = 3, .labels = words, .x = embeddings};

att_status layer_open(page *p, layer *l, int64_t out)
{
    *l = (layer){.words = page_vectors(p, &layer_words), .out = out};
    int64_t n = l->words.n, dim = l->words.dim;
    l->X = page_matrix(p, l->words.x, n, dim);
    l->wq = page_zeros(p, out, dim, &l->Wq), l->q = page_zeros(p, n, out, &l->Q);
    l->wk = page_zeros(p, out, dim, &l->Wk), l->k = page_zeros(p, n, out, &l->K);
    l->wv = page_zeros(p, out, dim, &l->Wv), l->v = page_zeros(p, n, out, &l->V);
    return p->status;
}

void layer_draw(torch_random *g, float bound, float *w, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        w[i] = torch_uniform(g, -bound, bound);
}

/* Computes weights of nn.Linear, W_q, W_k, W_v, and queries, keys and values: those of `explain trainable`. */
static att_status fill(page *p, layer *l, uint32_t seed)
{
    int64_t count = l->out * l->words.dim;
    float bound = torch_linear_bound(l->words.dim);
    const att_tensor *w[] = {&l->Wq, &l->Wk, &l->Wv}, *y[] = {&l->Q, &l->K, &l->V};
    torch_manual_seed(&l->random, seed);
    for (int i = 0; i < 3 && p->status == ATT_OK; i++) {
        layer_draw(&l->random, bound, w[i]->data, count);
        p->status = att_tensor_matmul(p->ctx, &l->X, w[i], ATT_OPTIONS(att_matmul_options, .transpose_b = true), y[i]);
    }
    return p->status;
}

att_status layer_make(page *p, layer *l, int64_t out, uint32_t seed)
{
    return layer_open(p, l, out) == ATT_OK ? fill(p, l, seed) : p->status;
}

static att_tensor view(page *p, const float *a, int rank, const int64_t *dim, const int64_t *stride)
{
    att_tensor t = {0};
    att_status s = att_wrap(&t, (float *)a, ATT_F32, rank, dim, stride);
    p->status = p->status == ATT_OK ? s : p->status;
    return t;
}

att_tensor layer_heads(page *p, const float *a, int64_t batch, int64_t heads, int64_t time, int64_t dim)
{
    int64_t width = heads * dim, stride[] = {time * width, dim, width, 1};
    return view(p, a, ATT_DIMS(batch, heads, time, dim), stride);
}

att_attention_args layer_args(page *p, const layer *l)
{
    int64_t n = l->words.n;
    att_attention_args args = {.size = sizeof args};
    args.q = layer_heads(p, l->q, 1, 1, n, l->out);
    args.k = layer_heads(p, l->k, 1, 1, n, l->out);
    args.v = layer_heads(p, l->v, 1, 1, n, l->out);
    return args;
}

att_tensor layer_transpose(page *p, const float *a, int64_t m, int64_t n)
{
    return view(p, a, ATT_DIMS(n, m), (const int64_t[]){1, n});
}

void layer_print(page *p, const layer *l)
{
    static const char *const names[] = {"q_1", "q_2", "k_1", "k_2", "v_1", "v_2"};
    int64_t n = l->words.n, out = l->out, all = 3 * out;
    float *rows = page_floats(p, n * all);
    if (p->status != ATT_OK)
        return;
    for (int64_t i = 0; i < n * out; i++) {
        float *row = rows + i / out * all + i % out;
        row[0] = l->q[i], row[out] = l->k[i], row[2 * out] = l->v[i];
    }
    page_table(p, l->words.labels, n, out == 2 ? names : NULL, all, rows);
}
