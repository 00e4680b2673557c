/* Shared by the chapters with weights: six words, and the queries, keys and values that torch.nn computes from them. */
#ifndef EXPLAIN_LAYER_H
#define EXPLAIN_LAYER_H

#include "page.h"
#include "torch.h"

extern const vectors layer_words; /* "Your journey starts with one step" [6, 3] */

typedef struct layer {
    vectors words;            /* [n, dim] */
    int64_t out;              /* numbers in a query, key or value */
    torch_random random;      /* state after the weights */
    float *wq, *wk, *wv;      /* [out, dim], as nn.Linear stores them */
    float *q, *k, *v;         /* [n, out] */
    att_tensor X, Wq, Wk, Wv; /* the same as tensors */
    att_tensor Q, K, V;
} layer;

/* Initializes the words (the user's or the six) and zeroed weights, queries, keys and values. */
att_status layer_open(page *p, layer *l, int64_t out);
/* Draws weights from PyTorch's generator, row by row. */
void layer_draw(torch_random *g, float bound, float *w, int64_t count);
/* Makes all of these: a layer with weights from a seed. */
att_status layer_make(page *p, layer *l, int64_t out, uint32_t seed);
/* Returns queries, keys and values as arguments of attention with one head. out is not set. */
att_attention_args layer_args(page *p, const layer *l);
/* [batch, heads, time, dim] as a view of a [batch, time, heads * dim]. */
att_tensor layer_heads(page *p, const float *a, int64_t batch, int64_t heads, int64_t time, int64_t dim);
/* Returns the transpose of a [m, n] as a view. */
att_tensor layer_transpose(page *p, const float *a, int64_t m, int64_t n);
/* Prints queries, keys and values in one table. */
void layer_print(page *p, const layer *l);

#endif
