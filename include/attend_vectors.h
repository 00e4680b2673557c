/* attend_vectors.h - embeddings in fewer bits: quantization, and search among the codes.
 *
 * Chapters: 1 Precisions, 2 Quantization, 3 Search.
 *
 * Codes have the bytes of sentence-transformers' quantize_embeddings. Arguments that may be NULL are marked as in
 * attend.h. */
#ifndef ATTEND_VECTORS_H
#define ATTEND_VECTORS_H

#include "attend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 1 Precisions ------------------------------------------------------- */

/* What a number of a vector becomes; names are those of sentence-transformers. */
typedef enum att_precision {
    ATT_PRECISION_FLOAT32 = 0, /* f32, unchanged */
    ATT_PRECISION_INT8,        /* one of 256 equal steps of the dimension's range, from -128 to 127 */
    ATT_PRECISION_UINT8,       /* the same step, from 0 to 255 */
    ATT_PRECISION_BINARY,      /* a bit, the byte of 8 of them less 128: int8 */
    ATT_PRECISION_UBINARY /* a bit: is the number above 0? The first of 8 is a byte's highest one (numpy.packbits); the
                           * last byte of a vector is filled up with 0 */
} att_precision;

/* "float32", "int8", "uint8", "binary", "ubinary"; NULL: p is not a precision. */
ATT_API const char *att_precision_name(att_precision p);
/* Bytes of a vector of dim numbers; 0: p is not a precision, or dim is below 1 or so large that they overflow. */
ATT_API int64_t att_precision_bytes(att_precision p, int64_t dim);

/* ---- 2 Quantization ----------------------------------------------------- */

/* Ranges of dimensions, ranges [2, dim]: the lowest number of each, then the highest. They are those of vectors which
 * stand for all that will be quantized, such as the first corpus, and are needed again for queries:
 *
 *     att_ranges_begin(dim, ranges);
 *     att_ranges_add(ctx, x, n, dim, ranges);                        // and more vectors
 *     att_vectors_quantize(ctx, ATT_PRECISION_INT8, x, n, dim, ranges, codes);
 */
/* Begins with the ranges of no vector, from +inf to -inf. Error: dim below 1. */
ATT_API att_status att_ranges_begin(int64_t dim, float *ranges);
/* Widens ranges to have vectors x [n, dim], too. Errors: sizes below 0, dim below 1; a number that is not finite. */
ATT_API att_status att_ranges_add(att_ctx *ctx, const float *x, int64_t n, int64_t dim, float *ranges);

/* Vectors x [n, dim] -> codes [n, att_precision_bytes(p, dim)]. int8 and uint8 have the step
 *     floor((x - lowest) / s), at least 0 and at most 255, s = (highest - lowest) / 255, or 1 where that is 0,
 * all in f32. ranges or NULL: not needed for other precisions. Errors: sizes below 0, dim below 1; p is not a
 * precision; ranges that are missing, not finite, in the wrong order or so wide that highest - lowest overflows; for
 * int8 and uint8 a number that is NaN, whose code the package leaves to the processor. In bits NaN is 0, as there. */
ATT_API att_status att_vectors_quantize(att_ctx *ctx, att_precision p, const float *x, int64_t n, int64_t dim,
                                        const float *ranges, void *codes);
/* The way back: codes [n, att_precision_bytes(p, dim)] -> x [n, dim]. Steps become the lowest number of their step,
 * computed in double, bits 0 and 1. ranges or NULL, and errors, as above. */
ATT_API att_status att_vectors_dequantize(att_ctx *ctx, att_precision p, const void *codes, int64_t n, int64_t dim,
                                          const float *ranges, float *x);

/* ---- 3 Search ----------------------------------------------------------- */

/* Vectors to search in. */
typedef struct att_vector_corpus {
    size_t size;
    int64_t n, dim; /* dim is at most 32768 */
    att_precision precision;
    const void *codes; /* [call] [n, att_precision_bytes(precision, dim)] */
    const float
        *ranges;        /* [call] [2, dim]: those that the codes of int8 and uint8 were made with; or NULL: of others */
    const bool *hidden; /* [call] [n]: rows that are never found; or NULL: none */
} att_vector_corpus;

typedef struct att_vector_search_options {
    size_t size;
    int64_t k;          /* hits of a query; 0: 10 */
    int64_t multiplier; /* k times this number of rows are rescored; 0: 2 */
    bool by_codes;      /* no row is rescored; float32 always is */
    bool cosine;        /* scores are divided by the lengths of query and vector; not those of bits, nor by_codes */
} att_vector_search_options;

typedef struct att_vector_hit { /* stays as it is */
    int64_t row;                /* -1: there are fewer rows than k */
    double score;               /* -inf if row is -1 */
} att_vector_hit;

/* The nearest rows of n queries [n, dim] -> nearest [n, k], highest score first, of equal ones the lower row. float32:
 * by the dot product, exactly. Others as semantic_search_faiss and semantic_search_usearch of sentence-transformers:
 * the query is quantized with the corpus's ranges; the best k * multiplier rows by their codes (int8 and uint8: the dot
 * product of the codes; bits: fewest that differ) are rescored by the dot product of the query with the dequantized
 * row, in double. by_codes: scores are those of the codes, of bits minus how many differ. options or NULL: defaults.
 * Memory grows with k * multiplier, not with n of the corpus. Errors: sizes out of range; ranges as of
 * att_vectors_quantize; a query or, of float32, a score that is not finite; memory; cancelled. */
ATT_API att_status att_vectors_search(att_ctx *ctx, const att_vector_corpus *corpus, const float *queries, int64_t n,
                                      const att_vector_search_options *options, att_vector_hit *nearest);

#ifdef __cplusplus
}
#endif
#endif
