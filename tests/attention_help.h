/* Operands, stages and bits for the tests of attention. */
#ifndef ATTENTION_HELP_H
#define ATTENTION_HELP_H

#include "attend_extend.h"
#include "base/base.h"
#include "check.h"
#include "kernel/kernel.h"
#include "stage_lists.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct shape {
    int64_t batch, heads, kv_heads, tq, tk, head_dim, value_dim;
} shape;

/* Operands of a shape, batched and dense, with a mask and a bias. */
typedef struct operands {
    shape n;
    float *q, *k, *v, *out, *lse, *bias;
    uint8_t *mask;
    att_attention_args args;
} operands;

static inline operands make(shape n)
{
    operands o = {.n = n};
    o.q = check_numbers(n.batch * n.heads * n.tq * n.head_dim, 1);
    o.k = check_numbers(n.batch * n.kv_heads * n.tk * n.head_dim, 2);
    o.v = check_numbers(n.batch * n.kv_heads * n.tk * n.value_dim, 3);
    o.out = check_numbers(n.batch * n.heads * n.tq * n.value_dim, 4);
    o.lse = check_numbers(n.batch * n.heads * n.tq, 5);
    o.bias = check_numbers(n.heads * n.tq * n.tk, 6);
    o.mask = malloc((size_t)(n.batch * n.tq * n.tk + 1));
    for (int64_t i = 0; i < n.batch * n.tq * n.tk; i++)
        o.mask[i] = check_uniform(7, (uint64_t)i) > -0.4f;
    o.args.size = sizeof o.args;
    att_wrap(&o.args.q, o.q, ATT_F32, ATT_DIMS(n.batch, n.heads, n.tq, n.head_dim), NULL);
    att_wrap(&o.args.k, o.k, ATT_F32, ATT_DIMS(n.batch, n.kv_heads, n.tk, n.head_dim), NULL);
    att_wrap(&o.args.v, o.v, ATT_F32, ATT_DIMS(n.batch, n.kv_heads, n.tk, n.value_dim), NULL);
    att_wrap(&o.args.out, o.out, ATT_F32, ATT_DIMS(n.batch, n.heads, n.tq, n.value_dim), NULL);
    att_wrap(&o.args.lse, o.lse, ATT_F32, ATT_DIMS(n.batch, n.heads, n.tq), NULL);
    return o;
}

static inline void drop(operands *o)
{
    free(o->q), free(o->k), free(o->v), free(o->out), free(o->lse), free(o->bias), free(o->mask);
}

static inline att_attention_spec spec_of(shape n)
{
    return (att_attention_spec){.size = sizeof(att_attention_spec),
                                .heads = n.heads,
                                .kv_heads = n.kv_heads,
                                .head_dim = n.head_dim,
                                .value_dim = n.value_dim};
}

enum { CAUSAL = 1, BOOLEAN = 2, BIAS = 4, LENGTHS = 8, DROPOUT = 16, ALL_STAGES = 31 };

/* Which stages, into the spec and the arguments. */
static inline void choose(unsigned stages, operands *o, att_attention_spec *s, int64_t *lengths)
{
    const shape n = o->n;
    o->args.n_params = 0;
    if (stages & CAUSAL) {
        add_mask(s, att_mask_causal);
        s->align = ATT_ALIGN_BOTTOM_RIGHT;
    }
    if (stages & BOOLEAN) {
        add_mask(s, att_mask_boolean);
        att_wrap(param_at(&o->args, o->args.n_params), o->mask, ATT_BOOL, ATT_DIMS(n.batch, 1, n.tq, n.tk), NULL);
    }
    if (stages & BIAS) {
        add_modifier(s, att_modifier_bias, 0);
        att_wrap(param_at(&o->args, o->args.n_params), o->bias, ATT_F32, ATT_DIMS(1, n.heads, n.tq, n.tk), NULL);
    }
    for (int64_t b = 0; (stages & LENGTHS) && b < n.batch; b++)
        lengths[b] = n.tk - b * n.tk / n.batch;
    o->args.k_lengths = stages & LENGTHS ? lengths : NULL;
    if (stages & DROPOUT) {
        static const uint32_t ids[] = {5, 3, UINT32_MAX, 0};
        s->dropout = 0.3f;
        o->args.dropout_seed = 0x123456789abcdef;
        o->args.sequence_ids = ids;
    }
}

static inline void run(att_ctx *ctx, const att_attention_spec *s, const att_attention_args *a)
{
    if (att_attention(ctx, s, a))
        fail_msg("%s", att_error(ctx));
}

static inline att_plan *plan_of(att_ctx *ctx, const att_attention_spec *s)
{
    att_plan *plan;
    if (att_plan_new(ctx, s, &plan))
        fail_msg("%s", att_error(ctx));
    return plan;
}

/* Forward, and backward unless g is NULL. */
static inline void run_both(att_ctx *ctx, const att_attention_spec *s, const att_attention_args *a,
                            const att_attention_grads *g)
{
    att_plan *plan = plan_of(ctx, s);
    if (att_forward(plan, a) || (g && att_backward(plan, a, g)))
        fail_msg("%s", att_error(ctx));
    att_plan_free(plan);
}

/* Rows [first, first + n) of dimension i. */
static inline att_tensor slice(att_tensor t, int i, int64_t first, int64_t n)
{
    t.data = (char *)t.data + first * t.stride[i] * (int64_t)att_dtype_size(t.dtype);
    t.dim[i] = n;
    return t;
}

/* q, k, v and out in another type, in their own memory. */
static inline void store_as(att_ctx *ctx, att_dtype dtype, operands *o, att_attention_spec *s)
{
    const att_kernels *k = att_kernels_of(ctx->isa);
    att_tensor *const tensors[] = {&o->args.q, &o->args.k, &o->args.v, &o->args.out};
    s->dtype = dtype;
    for (int i = 0; dtype != ATT_F32 && i < 4; i++) {
        att_tensor *t = tensors[i];
        const int64_t n = check_count(t);
        uint16_t *codes = malloc((size_t)(n + 1) * sizeof *codes);
        (dtype == ATT_F16 ? k->vector.to_f16 : k->vector.to_bf16)(n, t->data, codes);
        memcpy(t->data, codes, (size_t)n * sizeof *codes);
        t->dtype = dtype;
        free(codes);
    }
}

static inline void assert_same_bits(const float *a, const float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (memcmp(a + i, b + i, sizeof *a))
            fail_msg("number %lld: %.9g and %.9g", (long long)i, (double)a[i], (double)b[i]);
}

/* Everything that a call writes; what is not given has rank 0. */
enum {
    WRITTEN_OUT,
    WRITTEN_LSE,
    WRITTEN_DQ,
    WRITTEN_DK,
    WRITTEN_DV,
    WRITTEN_DPARAM,
    WRITTEN = WRITTEN_DPARAM + MOST_PARAMS
};
static inline const att_tensor *written(const att_attention_args *a, const att_attention_grads *g, int i)
{
    const att_tensor *const first[] = {&a->out, &a->lse, &g->dq, &g->dk, &g->dv};
    return i < WRITTEN_DPARAM ? first[i] : dparam_of(g, i - WRITTEN_DPARAM);
}

static inline size_t bytes_of(const att_tensor *t) { return (size_t)check_count(t) * att_dtype_size(t->dtype); }

/* A call, f32 and dense, writes the same with 1 to 16 threads, `step` apart; g NULL: forward alone. */
static inline void check_threads(int step, const att_attention_spec *s, const att_attention_args *a,
                                 const att_attention_grads *g)
{
    static const att_attention_grads none;
    float *first[WRITTEN] = {NULL};
    for (int threads = 1; threads <= 16; threads += step) {
        for (int i = 0; i < WRITTEN; i++) {
            const att_tensor *x = written(a, g ? g : &none, i);
            if (x->data)
                memset(x->data, 0xa5, bytes_of(x));
        }
        att_ctx *ctx = check_open(NULL, threads);
        run_both(ctx, s, a, g);
        att_close(ctx);
        for (int i = 0; i < WRITTEN; i++) {
            const att_tensor *x = written(a, g ? g : &none, i);
            if (threads == 1 && x->data)
                first[i] = memcpy(check_numbers(check_count(x), 0), x->data, bytes_of(x));
            assert_same_bits(first[i], x->data, check_count(x));
        }
    }
    for (int i = 0; i < WRITTEN; i++)
        free(first[i]);
}

/* Rounding, in units of 2^-24, for numbers up to 1: a weight is off by twice its score's sqrt(head_dim) + 2 roundings
 * of at most head_dim^0.5 (as in the forward), dS by that and the chain over value_dim of dP; all of it enters sums
 * of at most `terms` weighted terms, whose weights sum to one (dQ) or to at most tq (dK, dV). Dropout makes P and dP,
 * with their errors, 1 / (1 - p) times as much. */
static inline double gradient_tolerance(shape n, double dropout, double terms)
{
    const double score = 2 * (sqrt((double)n.head_dim) + 2) * (sqrt((double)n.head_dim) + 1);
    return 0x1p-24 * (score + 2 * (double)n.value_dim + 4 + 2 * sqrt((double)n.tk)) * 2 * (1 + terms) / (1 - dropout);
}

static inline int64_t out_count(shape n) { return n.batch * n.heads * n.tq * n.value_dim; }

#endif
