/* The tile kernels: raw pointers, no malloc, no tensors. One source, compiled once per instruction set.
 *
 * A kernel file NAME.c defines static functions and one that enters them in the table:
 *     void ATTEND_ISA(att_kernel_NAME)(att_kernels *k) { k->... = ...; }
 * The scalar set fills the table first, and better sets replace the functions that they have. The build finds the
 * files. */
#ifndef ATT_KERNEL_H
#define ATT_KERNEL_H

#include "kernel/prefetch.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The last step for a finished element c[i][j] of a GEMM: activation(c + bias[j]) + residual[i][j]. */
typedef struct att_epilogue {
    bool add;              /* the sum begins with the old c[i][j] instead of 0 */
    const float *bias;     /* [n] or NULL */
    const float *residual; /* [m, n] or NULL */
    int64_t residual_stride;
    int activation; /* att_activation */
} att_epilogue;

/* Keys [first, last) of a block. */
typedef struct att_range {
    int64_t first, last;
} att_range;
/* The weights of one head of one sequence that are dropped; see att_dropout_keep. */
typedef struct att_dropout_mask {
    uint64_t seed;
    uint32_t sequence, head;
    uint32_t threshold; /* round(p 2^32); 0: nothing is dropped, even if p is not quite 0 */
} att_dropout_mask;
static inline uint32_t att_dropout_threshold(float p) { return (uint32_t)((double)p * 0x1p32 + 0.5); }

/* Products of int8 (int8_bounds.c): the left operand is in [-63, 63], shifted up by 64, the right one in [-127, 127].
 */
enum { ATT_INT8_LEFT = 63, ATT_INT8_SHIFT = 64, ATT_INT8_RIGHT = 127, ATT_INT8_MAX = 1 << 17 /* maximum of k */ };

/* A row x [k], quantized to int8 y [k]: x is about step y. Norms are rounded up. */
typedef struct att_int8_row {
    float step, norm, rest; /* rest: the norm of x - step y; both norms are not finite if x is not */
    int32_t sum;            /* of y */
} att_int8_row;

/* A step of Adam: coefficients for all numbers. */
typedef struct att_adam {
    float scale, l2;    /* the slope is scale g + l2 x */
    float beta1, rest1; /* m = beta1 m + rest1 slope, rest = 1 - beta */
    float beta2, rest2; /* v = beta2 v + rest2 slope^2 */
    float unbias, eps;  /* unbias = 1 / sqrt(1 - beta2^t) */
    float rate, decay;  /* x = x - (rate m / (unbias sqrt(v) + eps) + decay x), rate over 1 - beta1^t */
} att_adam;

/* A step of SGD: slope = scale g + l2 x, m = momentum m + slope, x = x - rate m. */
typedef struct att_sgd {
    float scale, l2, momentum, rate;
} att_sgd;

/* Maximum depth of a block of a product: this part of a panel stays in the second-level cache. */
enum { ATT_GEMM_DEPTH = 2048 };

#define ATT_LOG2_E 1.4426950408889634
/* Scores beyond this size are large: half a unit in their last place is 2^-14 or more, a relative error of weights that
 * are computed from rounded products or sums with them. */
#define ATT_LARGE_SCORE 0x1p10f

/* Scores of one step of the online softmax, which become weights e^(scale s - max): s is [keys][columns] with
 * rows `stride` apart, in decoding [queries][keys]. */
typedef struct att_softmax_step {
    int columns; /* queries in use */
    float scale; /* > 0, of the scores; not in decoding */
    int n_ranges;
    const att_range *range; /* [n_ranges] keys that attend */
    float *s;
    int64_t stride;   /* of s in decoding; else a query tile */
    float *max, *sum; /* [queries] running maximum of scale s, and sum */
    float *rescale;   /* [queries] receives the factor of the sums of earlier blocks */
    float *pairs;     /* bf16: the rounded weights in pairs of keys; s has no result */
} att_softmax_step;

/* O = rescale O + V^T P of some ranges of keys. */
typedef struct att_pv {
    int type;    /* att_dtype of v; decoding only */
    int columns; /* queries in use */
    int n_ranges;
    const att_range *range; /* [n_ranges] */
    int64_t dim;            /* of a value */
    const void *v;          /* [keys, dim] */
    int64_t v_stride;
    const float *p;       /* weights [keys][q_tile]; decoding: [queries][keys], p_stride apart */
    int64_t p_stride;     /* decoding only */
    const float *rescale; /* [queries] or NULL: o starts at 0 */
    float *o;             /* [dim][q_tile]; pv_rows and decoding: [queries, dim], o_stride apart */
    int64_t o_stride;
    att_prefetch *prefetch; /* or NULL; is consumed */
} att_pv;

/* s [queries][keys] = q k^T of a few queries, written to a whole panel of keys. */
typedef struct att_decode_scores {
    int type; /* att_dtype of k */
    int queries;
    bool packed; /* k is in panels [ceil(keys / nr)][dim][nr], and k_stride is not used */
    int64_t keys, dim;
    const void *k; /* [keys, dim] */
    int64_t k_stride;
    const float *q; /* [queries, dim] */
    int64_t q_stride;
    float *s;
    int64_t s_stride;
    att_prefetch *prefetch; /* or NULL; is consumed */
} att_decode_scores;

/* A product of the backward, C = A B or C += A B. */
typedef struct att_product {
    bool add; /* add to c; false: start from 0 */
    int64_t m, n, k;
    const float *a;
    int64_t lda;
    const float *b;
    int64_t ldb;
    float *c;
    int64_t ldc;
    att_prefetch *prefetch; /* or NULL; is consumed */
} att_product;

/* A product c [m, n] = epilogue(a [m, k] times panels [first, last) of B): one ascending chain over k for each
 * element. */
typedef struct att_gemm_args {
    int64_t m, n, k;
    const float *a; /* [m, k], rows lda apart */
    int64_t lda;
    const float *packed;   /* B [n, k] in panels [ceil(n / nr)][k][nr]; or NULL: `codes` has it */
    const uint16_t *codes; /* B in the same panels, 16 bits each; computed as f32, so results have the same bits */
    bool bf16;             /* the codes are bf16; false: f16 */
    int64_t first, last;
    float *c; /* [m, n], rows ldc apart */
    int64_t ldc;
    const att_epilogue *epilogue; /* or NULL */
    /* Applies the epilogue; for products of pairs, where A and B consist of words of two bf16, and k counts words. */
    void (*finish)(int64_t rows, int64_t n, float *c, int64_t ldc, const att_epilogue *epilogue, int64_t i, int64_t j);
} att_gemm_args;

/* Rows [rows, k] to round to bf16, in pairs of neighbors: p and p + 1, with an even p. */
typedef struct att_round_args {
    int64_t rows, k;
    int64_t pairs;  /* of a row: at least ceil(k / 2), and the rest is zeros */
    const float *x; /* element (i, p) is x[i * row + p * column] */
    int64_t row, column;
} att_round_args;

/* Bounds of products from a byte of each number; see int8_bounds.c. */
typedef struct att_int8_args {
    int64_t m, words;
    const float *x;         /* [m, words], quantized */
    const att_int8_row *of; /* [m] */
    int columns;            /* of the panel */
    const float *panel;
    const float *bias; /* [columns] or NULL */
    float *upper;      /* [m, columns], rows `stride` apart */
    int64_t stride;
    float *best;            /* [m] the largest lower bound so far */
    att_prefetch *prefetch; /* or NULL; is consumed */
} att_int8_args;

/* Numbers of a block of a row that is quantized for a product, and of those of B that have scales of their own */
enum { ATT_QUANTIZED_BLOCK = 32 };

/* Numbers of a stored block of the K types and IQ4_XS; the others have ATT_QUANTIZED_BLOCK. */
enum { ATT_SUPER_BLOCK = 256 };

/* Bytes of a stored block of each quantized type */
enum {
    ATT_Q8_0_BYTES = 34,
    ATT_Q4_0_BYTES = 18,
    ATT_Q4_1_BYTES = 20,
    ATT_Q5_0_BYTES = 22,
    ATT_Q5_1_BYTES = 24,
    ATT_IQ4_NL_BYTES = 18,
    ATT_Q2_K_BYTES = 84,
    ATT_Q3_K_BYTES = 110,
    ATT_Q4_K_BYTES = 144,
    ATT_Q5_K_BYTES = 176,
    ATT_Q6_K_BYTES = 210,
    ATT_IQ4_XS_BYTES = 136
};

/* A product c [m, n] = a [m, k] times B^T for panels [first, last) of nr columns; see quantized.c. k is a multiple of
 * the block size. */
typedef struct att_quantized_args {
    int64_t m, n, k;
    const float *words;      /* A, quantized: [m, k / 4], four int8 each */
    const float *step, *sum; /* [m, blocks]: the scale of the numbers in `words`, and the sum of a block's numbers */
    const float *half;       /* [m, blocks] the sum of a block's first 16 numbers, of Q6_K, Q3_K and Q2_K */
    int type;                /* att_dtype of B */
    const void *b;           /* [n] rows of blocks */
    int64_t row_bytes;
    int64_t first, last;
    float *c; /* [m, n], rows ldc apart */
    int64_t ldc;
} att_quantized_args;

/* gemm.c */
typedef struct att_gemm_kernels {
    int (*panels_per_tile)(int64_t rows); /* panels of B in a register tile, if A has `rows` rows */
    /* Packs B [n, k] with element strides (row: n, column: k) -> panels [ceil(n / nr)][k][nr], zero-padded; only panels
     * [first, last) are written. */
    void (*pack)(int64_t n, int64_t k, const float *b, int64_t stride_n, int64_t stride_k, int64_t first, int64_t last,
                 float *packed);
    /* Packs 16-bit codes of f16 or bf16 in the same way. */
    void (*pack_codes)(int64_t n, int64_t k, const uint16_t *b, int64_t stride_n, int64_t stride_k, int64_t first,
                       int64_t last, uint16_t *packed);
    void (*run)(const att_gemm_args *args);
    /* Applies the epilogue to c [rows, n], rows ldc apart: the tile at (i, j) of a product. */
    void (*finish)(int64_t rows, int64_t n, float *c, int64_t ldc, const att_epilogue *epilogue, int64_t i, int64_t j);
} att_gemm_kernels;

/* quantized.c, quantized_tiles.h */
enum { ATT_QUANTIZED_SMALL = 3 }; /* maximum number of rows that `run` multiplies with blocks as they are stored */
typedef void att_quantized_run(const att_quantized_args *args);
typedef struct att_quantized_kernels {
    /* Quantizes rows x of k numbers in all -> words [k / 4], step and sum [k / 32]. A block with a number that is not
     * finite has step NaN. */
    void (*quantize)(int64_t k, const float *x, float *words, float *step, float *sum);
    att_quantized_run *run, *run_tiles; /* in vectors; in AMX tiles, with the same bits, or NULL */
} att_quantized_kernels;

/* int8_bounds.c */
typedef struct att_int8_kernels {
    int extra_rows; /* of a panel after its words */
    att_int8_row (*quantize)(int levels, int shift, int64_t k, const float *x, int8_t *y);
    void (*pack)(int64_t words, const float *x, const att_int8_row *of, float *panel);
    void (*bounds)(const att_int8_args *args);
} att_int8_kernels;

/* codes.c: queries with rows of codes, numbers of a byte or packed bits -> out [queries, rows] */
enum { ATT_MAX_CODES = 1 << 15 }; /* a sum of products of this many bytes is within int32 */
typedef struct att_codes_args {
    int64_t queries, rows;
    int64_t bytes; /* of a query and of a row, at most ATT_MAX_CODES */
    const int8_t *q;
    const uint8_t *codes;
    bool is_signed; /* the rows are int8; else they are uint8, and the queries are uint8 less 128 */
    int32_t *out;   /* queries are `stride` apart */
    int64_t stride;
} att_codes_args;
typedef struct att_codes_kernels {
    void (*products)(const att_codes_args *args);
    void (*hamming)(const att_codes_args *args); /* how many bits differ */
} att_codes_kernels;

/* attention.c: forward, queries are the columns of a tile, keys its rows */
typedef struct att_attend_kernels {
    /* Pack x [rows, n] times scale -> y [n][q_tile], transposed; and unpack x [n][q_tile] -> y [rows, n], row i times
     * scale[i]. */
    void (*pack)(int64_t rows, int64_t n, const float *x, int64_t stride, float scale, float *y);
    void (*unpack)(int64_t rows, int64_t n, const float *x, const float *scale, float *y, int64_t stride);
    void (*scale_scores)(int64_t keys, float factor, float *s, int64_t stride);
    /* Sets s to `value` where bit i of bits[key] is 0. */
    void (*apply_mask)(int64_t keys, const uint64_t *bits, float value, float *s, int64_t stride);
    void (*softmax_step)(const att_softmax_step *args);
    void (*accumulate_pv)(const att_pv *args);
    void (*pv_rows)(const att_pv *args); /* NULL if it is not faster */
    /* Computes 1 / sum from maxima and sums [q_tile], and the log-sum-exp, lse or NULL. */
    void (*normalizer)(const float *max, const float *sum, float *inverse, float *lse);
    void (*merge)(int64_t dim, float *max, float *sum, float *o, const float *max2, const float *sum2, const float *o2);
} att_attend_kernels;

/* attention_backward.c */
typedef struct att_backward_kernels {
    void (*pack_rows)(int64_t rows, int64_t all, int64_t n, const float *x, int64_t stride, float scale, float *y);
    void (*dp)(const att_product *args);
    void (*gemm_tn)(const att_product *args);
    void (*gemm_nn)(const att_product *args);
    /* Replaces s and dp [keys][q_tile] by p = exp(scale s - lse) and p (dp - delta); lse is in units of log2. */
    void (*softmax)(int64_t keys, float scale, float *s, float *dp, int64_t stride, const float *lse,
                    const float *delta);
} att_backward_kernels;

/* decode.c: attention of a few queries */
typedef struct att_decode_kernels {
    void (*scores)(const att_decode_scores *args);
    void (*softmax_step)(const att_softmax_step *args);
    void (*accumulate_pv)(const att_pv *args);
    void (*normalize)(int64_t dim, float inverse, float *o); /* o [dim] times inverse */
    void (*merge)(int64_t dim, float *max, float *sum, float *o, float max2, float sum2, const float *o2);
} att_decode_kernels;

/* bf16.c, bf16_products.c, bf16_tiles.h: attention on pairs of bf16; NULL where pairs cannot be multiplied */
typedef struct att_bf16_kernels {
    void (*pack)(int64_t rows, int64_t pairs, const float *x, int64_t stride, float *y);
    void (*scores)(int64_t keys, int64_t queries, int64_t pairs, const float *k, int64_t stride, const float *q,
                   float *s, int64_t s_stride);
    bool (*interleave)(int64_t n, const uint16_t *even, const uint16_t *odd, float *y);
    void (*softmax_step)(const att_softmax_step *args);
    void (*accumulate_pv)(int n_ranges, const att_range *range, int64_t dim, const float *v, const float *p,
                          float *p_pairs, const float *rescale, float *o);
    /* Prepares pairs of the values of a block for accumulate_pv; NULL if it reads them as they are. A set that has this
     * function multiplies in AMX tiles, which the system must allow (att_os_allow_tiles). */
    void (*pack_values)(int64_t keys, int64_t dim, float *pairs);
    void (*amx_begin)(void), (*amx_end)(void); /* called by each thread before and after scores and accumulate_pv */
} att_bf16_kernels;

/* bf16_gemm.c, bf16_gemm_tiles.h: products of f32 that are rounded to bf16, with sums in f32 */
typedef struct att_bf16_gemm_kernels {
    int rows;                             /* those of a register tile, or of a block of tiles */
    int pairs;                            /* the pairs of a row are a multiple of this */
    int (*panels_per_tile)(int64_t rows); /* see att_gemm_kernels */
    void (*run)(const att_gemm_args *args);
} att_bf16_gemm_kernels;
typedef struct att_bf16_round_kernels {
    void (*rows)(const att_round_args *args, float *words, int64_t stride); /* -> words [rows, pairs], stride apart */
    void (*panels)(const att_round_args *args, float *words); /* -> panels [pairs][nr] of nr rows, zero-padded */
} att_bf16_round_kernels;

/* dropout.c */
typedef struct att_dropout_kernels {
    /* Computes bits [keys, in whole fours] of the pairs that are kept. */
    void (*mask)(const att_dropout_mask *d, int queries, uint32_t q0, uint32_t k0, int64_t keys, uint64_t *bits);
    /* s = kept ? scale s : 0 */
    void (*apply)(int64_t keys, const uint64_t *bits, float scale, float *s, int64_t stride);
    void (*apply_rows)(int columns, int64_t rows, const uint64_t *bits, float scale, const float *x,
                       const float *residual, float *y, int64_t stride);
} att_dropout_kernels;

/* Rows of layers: activation.c, softmax.c, norm.c, rotate.c, recurrent.c, optimizer_step.c */
typedef struct att_layer_kernels {
    /* activation.c: y [n] = f(x [n]); y may be x */
    void (*activate)(int activation, int64_t n, const float *x, float *y);
    /* dx [n] = dy [n] f'(x [n]); dx may be dy */
    void (*activate_back)(int activation, int64_t n, const float *x, const float *dy, float *dx);
    void (*tanh_back)(int64_t n, const float *x, const float *dy, float *dx);
    /* Computes log(1 + e^x) - x t of logits x and targets t, all [n], and its derivative by x; 0 where t < 0. */
    void (*logistic)(int64_t n, const float *x, const float *t, float *y);
    void (*logistic_back)(int64_t n, const float *x, const float *t, float *dx);

    /* softmax.c: y [n] = exp(x - max x) / sum; all -inf gives zeros; NaN gives NaN; y may be x */
    void (*softmax)(int64_t n, const float *x, float *y);
    /* Adds the gradient that follows from y and dy to dx; all [n]. */
    void (*softmax_back)(int64_t n, const float *y, const float *dy, float *dx);
    float (*log_sum_exp)(int64_t n, const float *x); /* -inf if all are */
    /* Computes the largest x, and the sum of e^(x - largest): 0 if all are -inf, NaN if one is NaN. */
    void (*sum_exp)(int64_t n, const float *x, float *largest, float *sum);
    /* Returns the first i from `from` on with x[i] >= min or NaN; n: there is none. */
    int64_t (*next_at_least)(int64_t n, const float *x, float min, int64_t from);
    /* dx [n] = factor (e^(x - lse) - share); dx may be x */
    void (*cross_entropy_back)(int64_t n, const float *x, float lse, float share, float factor, float *dx);

    /* norm.c; y may be x; beta [n] or NULL: 0 */
    void (*layer_norm)(int64_t n, const float *x, const float *gamma, const float *beta, float eps, float *y);
    /* Adds the gradients that follow from dy to dx, dgamma and dbeta; all [n]. */
    void (*layer_norm_back)(int64_t n, const float *x, const float *gamma, float eps, const float *dy, float *dx,
                            float *dgamma, float *dbeta);
    /* x / sqrt(mean square + eps) * gamma */
    void (*rms_norm)(int64_t n, const float *x, const float *gamma, float eps, float *y);
    void (*rms_norm_back)(int64_t n, const float *x, const float *gamma, float eps, const float *dy, float *dx,
                          float *dgamma);
    void (*normalize)(int64_t n, const float *x, float eps, float *y); /* x / max(|x|, eps) */

    /* rotate.c: (a, b) = (a cos - b sin, a sin + b cos) of pairs of x [2 pairs], with sin times direction, 1 or -1 for
     * the inverse; y may be x. Pair i is x[i] and x[pairs + i], or for neighbors x[2 i] and x[2 i + 1]. */
    void (*rotate_halves)(int64_t pairs, float direction, const float *x, const float *sine, const float *cosine,
                          float *y);
    void (*rotate_pairs)(int64_t pairs, float direction, const float *x, const float *sine, const float *cosine,
                         float *y);

    /* recurrent.c: one step of n units of a GRU or an LSTM; see there */
    void (*gru)(int64_t n, const float *product, const float *h, float *gates, float *y);
    void (*gru_back)(int64_t n, const float *gates, const float *h, float *dh, float *d, float *dproduct);
    void (*lstm)(int64_t n, const float *product, const float *c, float *gates, float *y);
    void (*lstm_back)(int64_t n, const float *gates, const float *c, float *dh, float *dc, float *d);

    /* optimizer_step.c: a step of x [n] and its moments m, v [n] from gradients g [n]; sgd's m NULL: no momentum */
    void (*adam)(int64_t n, const att_adam *a, const float *g, float *x, float *m, float *v);
    void (*sgd)(int64_t n, const att_sgd *s, const float *g, float *x, float *m);
} att_layer_kernels;

/* Rows of a table that are chosen by ids, and rows of x: row i of x belongs to ids[i]. */
typedef struct att_chosen_args {
    int64_t rows, count; /* of ids and y */
    const int32_t *ids;  /* [rows, count], or NULL: the table's rows in their order */
    int64_t n, stride;   /* numbers of a row of x and of the table; the rows are `stride` apart */
    float *x, *table;
    float *y; /* [rows, count] */
} att_chosen_args;

/* vector.c, activation.c: on n numbers; y may be an input of the same type */
typedef struct att_vector_kernels {
    void (*exp2)(int64_t n, const float *x, float *y);
    void (*exp)(int64_t n, const float *x, float *y);
    void (*log2)(int64_t n, const float *x, float *y);
    void (*log)(int64_t n, const float *x, float *y);
    void (*erf)(int64_t n, const float *x, float *y);
    void (*tanh)(int64_t n, const float *x, float *y);
    void (*add)(int64_t n, const float *a, const float *b, float *y);
    void (*sub)(int64_t n, const float *a, const float *b, float *y); /* a - b */
    void (*mul)(int64_t n, const float *a, const float *b, float *y);
    void (*div)(int64_t n, const float *a, const float *b, float *y); /* a / b */
    void (*max)(int64_t n, const float *a, const float *b, float *y); /* NaN where a or b is */
    /* Passes the gradient of a maximum y of several x: where y is this x, adds dy to dx and sets dy to 0, so that the
     * other x get none. */
    void (*max_back)(int64_t n, const float *x, const float *y, float *dy, float *dx);
    void (*scale)(int64_t n, float s, const float *x, float *y);
    float (*dot)(int64_t n, const float *a, const float *b);
    /* Transposes x [rows, columns] -> y [columns, rows]. */
    void (*transpose)(int64_t rows, int64_t columns, const float *x, int64_t x_stride, float *y, int64_t y_stride);
    bool (*all_finite)(int64_t n, const float *x); /* whether no number is Inf or NaN */
    void (*from_f16)(int64_t n, const uint16_t *x, float *y);
    void (*from_bf16)(int64_t n, const uint16_t *x, float *y);
    void (*to_f16)(int64_t n, const float *x, uint16_t *y); /* to nearest even */
    void (*to_bf16)(int64_t n, const float *x, uint16_t *y);
    float (*sum)(int64_t n, const float *x);
    /* Computes y = x . row, as dot does. */
    void (*chosen_dots)(const att_chosen_args *args);
    /* Adds y row to x, or y x to row, one after the other. */
    void (*chosen_add)(const att_chosen_args *args, bool to_table);
} att_vector_kernels;

/* peak.c, peak_words.c, peak_tiles.c: the machine's limits. Multiplies in registers, and counts the operations; the
 * result only keeps them alive. */
typedef double att_peak_kernel(int64_t repeats, double *operations);
typedef struct att_measure_kernels {
    att_peak_kernel *peak;                              /* multiply-adds of floats */
    att_peak_kernel *peak_bf16, *peak_int8;             /* in vectors; NULL where there is no instruction for them */
    att_peak_kernel *peak_bf16_tiles, *peak_int8_tiles; /* in AMX tiles, or NULL */
    double (*read)(int64_t n, const float *x);          /* reads n numbers once, at memory speed */
} att_measure_kernels;

typedef struct att_kernels {
    int lanes;  /* floats in a vector */
    int nr, mr; /* columns of a packed panel of B, rows of a register tile */
    int q_tile; /* queries of a tile of attention: nr */
    att_gemm_kernels gemm;
    att_quantized_kernels quantized;
    att_int8_kernels int8;
    att_codes_kernels codes;
    att_attend_kernels attend;
    att_backward_kernels backward;
    att_decode_kernels decode;
    att_bf16_kernels bf16;
    att_bf16_round_kernels round;                     /* NULL where pairs cannot be multiplied */
    att_bf16_gemm_kernels bf16_gemm, bf16_gemm_tiles; /* in vectors and in AMX tiles, or NULL */
    att_dropout_kernels dropout;
    att_layer_kernels layer;
    att_vector_kernels vector;
    att_measure_kernels measure;
} att_kernels;

/* Returns the table of an instruction set (att_ctx.isa). Filled once; safe from any thread. */
const att_kernels *att_kernels_of(int isa);

/* ---- references in double, beside each kernel (reference.c): what the tests hold the kernels against */

/* A product c [m, n] = epilogue(a [m, k] times B), as att_gemm_args, but with B [n, k] as it is stored. */
typedef struct att_ref_gemm_args {
    int64_t m, n, k;
    const float *a; /* rows lda apart */
    int64_t lda;
    const float *b; /* element (j, p) is b[j * stride_n + p * stride_k] */
    int64_t stride_n, stride_k;
    const att_epilogue *epilogue; /* or NULL */
} att_ref_gemm_args;
void att_ref_gemm(const att_ref_gemm_args *args, double *c, int64_t ldc);
/* Returns whether dropout keeps the weight of query q and key k, which are counted by their absolute positions, modulo
 * 2^32:
 *     Philox4x32-10, key = (low, high word of the seed), counter = (q, k / 4, head, sequence)
 * makes four words; the pair is kept if word k % 4 >= threshold. */
bool att_dropout_keep(const att_dropout_mask *d, uint32_t q, uint32_t k);
double att_ref_activate(int activation, double x);
double att_ref_activate_slope(int activation, double x);
double att_ref_logistic(double x, double t);
void att_ref_softmax(int64_t n, const float *x, double *y);
double att_ref_log_sum_exp(int64_t n, const float *x);
/* beta or NULL: 0 */
void att_ref_layer_norm(int64_t n, const float *x, const float *gamma, const float *beta, float eps, double *y);
/* Computes the gradients of sum(dy y) by x and by gamma; y = gamma x / sqrt(mean square + eps), of x less its mean if
 * centered.
 */
void att_ref_norm_back(bool centered, int64_t n, const float *x, const float *gamma, float eps, const float *dy,
                       double *dx, double *dgamma);
void att_ref_rms_norm(int64_t n, const float *x, const float *gamma, float eps, double *y);
void att_ref_normalize(int64_t n, const float *x, float eps, double *y);
/* step: from pair to pair, and to a pair's second number */
void att_ref_rotate(int64_t pairs, const int64_t step[2], float direction, const float *x, const float *sine,
                    const float *cosine, double *y);
/* Compute a step from the products of x (in) and of h, with all gates one after the other, as kernel/recurrent.c
 * does. */
void att_ref_gru(int64_t n, const double *in, const double *product, const double *h, double *y);
void att_ref_lstm(int64_t n, const double *in, const double *product, const double *c, double *y, double *c_new);
void att_ref_adam(int64_t n, const att_adam *a, const float *g, double *x, double *m, double *v);
void att_ref_sgd(int64_t n, const att_sgd *s, const float *g, double *x, double *m);

#endif
