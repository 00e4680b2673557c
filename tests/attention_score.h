/* Calls of scores that have parameters or prepare rows, forward and backward, f32, batched and dense. */
#ifndef ATTENTION_SCORE_H
#define ATTENTION_SCORE_H

#include "attention_help.h"

#include <math.h>

/* ---- scores and their rounding errors */

/* A score as it is tested. */
typedef struct kind {
    const char *name;
    const att_score *const *score;
    bool projected, any_key_dim;
    double (*error)(const att_pair *p); /* bound of a score's rounding errors, in units of 2^-24 */
} kind;

/* A tanh is off by 24 at most, see src/attn/stage/score/additive.c; the sum is a chain of partial sums up to the whole.
 */
static inline double additive_error(const att_pair *p)
{
    double v = 0;
    for (int64_t a = 0; a < p->param[0].count; a++)
        v += fabs((double)p->param[0].data[a]);
    return v * (24 + sqrt((double)p->param[0].count));
}

/* A chain of n products is off by sqrt(n) + 2 of the sum of their magnitudes: first q W, then the product with k. */
static inline double general_error(const att_pair *p)
{
    double sum = 0;
    for (int64_t i = 0; i < p->dim; i++)
        for (int64_t j = 0; j < p->key_dim; j++)
            sum += fabs((double)p->query[i] * p->param[0].data[i * p->key_dim + j] * p->key[j]);
    return sum * (sqrt((double)p->dim) + sqrt((double)p->key_dim) + 4);
}

/* Two lengths, roots of chains, then a chain over numbers whose magnitudes add up to 1. */
static inline double cosine_error(const att_pair *p) { return 2 * sqrt((double)p->dim) + 10; }

/* Additive, of rows whose errors go straight into tanh. */
static inline double projected_error(const att_pair *p)
{
    const int64_t count = p->param[0].count;
    double sum = 0;
    for (int64_t a = 0; a < count; a++) {
        double q = 0, k = 0;
        for (int64_t i = 0; i < p->dim; i++)
            q += fabs((double)p->param[1].data[a * p->dim + i] * p->query[i]);
        for (int64_t i = 0; i < p->key_dim; i++)
            k += fabs((double)p->param[2].data[a * p->key_dim + i] * p->key[i]);
        q *= sqrt((double)p->dim) + 2;
        k *= sqrt((double)p->key_dim) + 2;
        sum += fabs((double)p->param[0].data[a]) * (24 + sqrt((double)count) + q + k);
    }
    return sum;
}

static const kind kinds[] = {
    {"additive", &att_score_additive, false, false, additive_error},
    {"projected additive", &att_score_additive, true, true, projected_error},
    {"general", &att_score_general, false, true, general_error},
    {"cosine", &att_score_cosine, false, false, cosine_error},
};
enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

/* ---- one call of one score */

typedef struct sizes {
    int64_t batch, heads, kv_heads, tq, tk, head_dim, key_dim, score_dim, value_dim;
} sizes;

typedef struct test_call {
    const kind *kind;
    sizes n;
    int64_t param_heads; /* 1: all heads share the parameters */
    att_attention_spec spec;
    float *data[20]; /* what drop_call frees */
    int n_data;
    att_attention_args args;
    att_attention_grads grads;
} test_call;

static inline void numbers(test_call *c, att_tensor *t, int rank, const int64_t *dim, float spread)
{
    att_wrap(t, NULL, ATT_F32, rank, dim, NULL);
    t->data = c->data[c->n_data] = check_numbers(check_count(t), 0);
    check_fill(t->data, check_count(t), (uint64_t)c->n_data++, 0, spread);
}

/* W, or v, or v, Wq and Wk */
static inline void make_params(test_call *c)
{
    const sizes n = c->n;
    const int64_t h = c->param_heads;
    const float q_spread = 1 / sqrtf((float)n.head_dim), k_spread = 1 / sqrtf((float)n.key_dim);
    if (*c->kind->score == att_score_general)
        numbers(c, param_at(&c->args, 0), ATT_DIMS(h, n.head_dim, n.key_dim), q_spread);
    if (*c->kind->score == att_score_additive)
        numbers(c, param_at(&c->args, 0), ATT_DIMS(h, c->kind->projected ? n.score_dim : n.head_dim), 1);
    if (c->kind->projected) {
        numbers(c, param_at(&c->args, 1), ATT_DIMS(h, n.score_dim, n.head_dim), q_spread);
        numbers(c, param_at(&c->args, 2), ATT_DIMS(h, n.score_dim, n.key_dim), k_spread);
    }
}

static inline test_call make_call(const kind *kind, sizes n, bool shared)
{
    n.key_dim = kind->any_key_dim ? n.key_dim : n.head_dim;
    test_call c = {.kind = kind, .n = n, .param_heads = shared ? 1 : n.heads};
    c.spec = (att_attention_spec){.size = sizeof c.spec,
                                  .heads = n.heads,
                                  .kv_heads = n.kv_heads,
                                  .head_dim = n.head_dim,
                                  .key_dim = n.key_dim,
                                  .value_dim = n.value_dim,
                                  .score_dim = kind->projected ? n.score_dim : 0,
                                  .score = *kind->score};
    c.args.size = sizeof c.args;
    c.grads.size = sizeof c.grads;
    numbers(&c, &c.args.q, ATT_DIMS(n.batch, n.heads, n.tq, n.head_dim), 2);
    numbers(&c, &c.args.k, ATT_DIMS(n.batch, n.kv_heads, n.tk, n.key_dim), 2);
    numbers(&c, &c.args.v, ATT_DIMS(n.batch, n.kv_heads, n.tk, n.value_dim), 1);
    numbers(&c, &c.args.out, ATT_DIMS(n.batch, n.heads, n.tq, n.value_dim), 1);
    numbers(&c, &c.args.lse, ATT_DIMS(n.batch, n.heads, n.tq), 1);
    numbers(&c, &c.grads.dout, ATT_DIMS(n.batch, n.heads, n.tq, n.value_dim), 1);
    numbers(&c, &c.grads.dlse, ATT_DIMS(n.batch, n.heads, n.tq), 1);
    numbers(&c, &c.grads.dq, 4, c.args.q.dim, 1);
    numbers(&c, &c.grads.dk, 4, c.args.k.dim, 1);
    numbers(&c, &c.grads.dv, 4, c.args.v.dim, 1);
    make_params(&c);
    for (int i = 0; i < c.args.n_params; i++)
        numbers(&c, dparam_at(&c.grads, i), c.args.param[i].rank, c.args.param[i].dim, 1);
    return c;
}

static inline void drop_call(test_call *c)
{
    while (c->n_data)
        free(c->data[--c->n_data]);
}

static inline void run_call(att_ctx *ctx, const test_call *c) { run_both(ctx, &c->spec, &c->args, &c->grads); }

static inline void assert_same_written(const test_call *a, const test_call *b)
{
    for (int i = 0; i < WRITTEN; i++) {
        const att_tensor *x = written(&a->args, &a->grads, i), *y = written(&b->args, &b->grads, i);
        assert_same_bits(x->data, y->data, check_count(x));
    }
}

static inline float *floats(const att_tensor *t) { return t->data; }

#endif
