/* Matrix products on packed weights, over all threads. */
#ifndef ATT_GEMM_H
#define ATT_GEMM_H

#include "base/base.h"
#include "kernel/kernel.h"
#include "util/util.h"

/* Returns the floats of B [n, k] packed into panels for the context's instruction set (SIZE_MAX: overflow). */
size_t att_gemm_packed_count(const att_ctx *ctx, int64_t n, int64_t k);

/* Packs B [n, k], element (j, p) at b[j * stride_n + p * stride_k] -> packed [ceil(n / panel)][k][panel]. */
void att_gemm_pack(att_ctx *ctx, int64_t n, int64_t k, const float *b, int64_t stride_n, int64_t stride_k,
                   float *packed);
/* Packs weights as att_gemm_pack does, floats or 16-bit codes (f16 or bf16). It can be cancelled, because there may be
 * many; false: the call was cancelled. */
bool att_gemm_pack_weights(att_ctx *ctx, int64_t n, int64_t k, const float *b, int64_t stride_n, int64_t stride_k,
                           float *packed);
bool att_gemm_pack_codes(att_ctx *ctx, int64_t n, int64_t k, const uint16_t *b, int64_t stride_n, int64_t stride_k,
                         uint16_t *packed);

/* Computes c [m, n] = epilogue(a [m, k] B^T), with all panels of B (first and last are not used). Each element is one
 * ascending chain over k, which begins with the old element if epilogue->add, so a row's bits depend neither on m nor
 * on the number of threads. k = 0 gives epilogue(0). */
void att_gemm(att_ctx *ctx, const att_gemm_args *args);

/* A matrix in any layout: element (i, j) is x[i * row + j * column]. */
typedef struct att_matrix {
    const float *x;
    int64_t row, column;
} att_matrix;
/* A product c [m, n] = or += a [m, k] b [k, n] (product.c). Chains and bits are those of att_gemm. */
typedef struct att_matmul_args {
    int64_t m, n, k;
    att_matrix a, b;
    bool add;
    float *c; /* [m, n], rows ldc apart */
    int64_t ldc;
    bool bf16; /* round a and b to bf16, as att_bf16_multiply does */
} att_matmul_args;
/* scratch [att_matmul_scratch] (SIZE_MAX: overflow) */
size_t att_matmul_scratch(const att_ctx *ctx, const att_matmul_args *args);
void att_matmul_strided(att_ctx *ctx, const att_matmul_args *args, float *scratch);

/* Products of f32 that are rounded to bf16, with sums in f32 (bf16.c). The order of the sums is that of the instruction
 * set: see kernel/bf16_gemm.c and bf16_gemm_tiles.h. A row's bits depend neither on m nor on the number of threads. */

/* Returns the functions for the context's instruction set; NULL: it does not multiply bf16. Tiles are used if the
 * system allows them. */
const att_bf16_gemm_kernels *att_bf16_gemm_of(const att_ctx *ctx);
size_t att_bf16_packed_count(const att_ctx *ctx, int64_t n, int64_t k); /* words of B [n, k]; SIZE_MAX: overflow */
/* Rounds B [n, k] and packs it -> packed [att_bf16_packed_count]: panels of words, each two neighbors along k. Rows of
 * B may be packed in several calls, each from a multiple of a panel's width on. may_cancel is for weights, because
 * there may be many; false: the call was cancelled. */
bool att_bf16_pack(att_ctx *ctx, int64_t n, int64_t k, att_matrix b, bool may_cancel, float *packed);
size_t att_bf16_scratch(const att_ctx *ctx, int64_t m, int64_t k); /* floats; SIZE_MAX: overflow */
/* Computes c [m, n] = epilogue(a [m, k] B^T) as att_gemm does, but element (i, p) of A is a[i * lda + p * column]. */
void att_bf16_multiply(att_ctx *ctx, const att_gemm_args *args, int64_t column, float *scratch);
/* Rounds a [m, k], of at most ATT_BF16_ROWS rows, into scratch [att_bf16_scratch], and sets what a kernel's product
 * needs: m, k, A and `finish` of args. */
enum { ATT_BF16_ROWS = 1024 };
void att_bf16_round(att_ctx *ctx, int64_t m, int64_t k, att_matrix a, float *scratch, att_gemm_args *args);

/* A product c [m, n] = epilogue(a [m, k] B^T), where rows of B are quantized blocks and rows of a are quantized for it:
 * see kernel/quantized.c. A row's bits depend neither on m nor on the number of threads. (quantized.c) */
typedef struct att_quantized_product {
    int64_t m, n, k; /* k is a multiple of the block size */
    const float *a;  /* [m, k] */
    int type;        /* att_dtype of B */
    const void *b;   /* [n] rows of blocks */
    int64_t row_bytes;
    float *c; /* [m, n], rows ldc apart */
    int64_t ldc;
    const att_epilogue *epilogue; /* without `add`; or NULL */
} att_quantized_product;
size_t att_quantized_scratch(int64_t m, int64_t k); /* floats; SIZE_MAX: overflow */
/* Quantizes a [m, k] into scratch [att_quantized_scratch], and sets m, k and A of args. */
void att_quantize_rows(att_ctx *ctx, int64_t m, int64_t k, const float *a, float *scratch, att_quantized_args *args);
/* Returns the kernel for products of m quantized rows with a type: in AMX tiles if there are more than a few, scales
 * are of each 32 numbers, and the system allows it. */
att_quantized_run *att_quantized_run_of(const att_ctx *ctx, int64_t m, int type);
void att_quantized_multiply(att_ctx *ctx, const att_quantized_product *product, float *scratch);

#endif
