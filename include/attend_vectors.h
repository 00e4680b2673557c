/* attend_vectors.h - quantization of embeddings to fewer bits, and search among the codes.
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

/* The code of a number of a vector. Names are those of sentence-transformers. */
typedef enum att_precision {
    ATT_PRECISION_FLOAT32 = 0, /* f32, unchanged */
    ATT_PRECISION_INT8,        /* the number of one of 256 equal steps of the dimension's range, from -128 to 127 */
    ATT_PRECISION_UINT8,       /* the number of the step, from 0 to 255 */
    ATT_PRECISION_BINARY,      /* a bit, as in UBINARY, but 128 is subtracted from each byte, which is an int8 */
    ATT_PRECISION_UBINARY      /* a bit: 1 if the number is above 0. The first of 8 is the highest bit of a byte
                                * (numpy.packbits); the last byte of a vector is padded with zeros */
} att_precision;

/* Returns "float32", "int8", "uint8", "binary" or "ubinary"; NULL: p is not a precision. */
ATT_API const char *att_precision_name(att_precision p);
/* Returns the bytes of a vector of dim numbers; 0: p is not a precision, or dim is below 1 or so large that the bytes
 * overflow. */
ATT_API int64_t att_precision_bytes(att_precision p, int64_t dim);

/* ---- 2 Quantization ----------------------------------------------------- */

/* Functions for the ranges of dimensions, ranges [2, dim]: the lowest number of each, then the highest. Compute them
 * from vectors that represent all vectors to be quantized, such as the first corpus. Queries need the same ranges:
 *
 *     att_ranges_begin(dim, ranges);
 *     att_ranges_add(ctx, x, n, dim, ranges);                        // and more vectors
 *     att_vectors_quantize(ctx, ATT_PRECISION_INT8, x, n, dim, ranges, codes);
 */
/* Sets all ranges to those of no vector, from +inf to -inf. Error: dim below 1. */
ATT_API att_status att_ranges_begin(int64_t dim, float *ranges);
/* Widens ranges to include vectors x [n, dim]. Errors: sizes below 0, dim below 1; a number that is not finite. */
ATT_API att_status att_ranges_add(att_ctx *ctx, const float *x, int64_t n, int64_t dim, float *ranges);

/* Quantizes vectors x [n, dim] to codes [n, att_precision_bytes(p, dim)]. For int8 and uint8 the step is
 *     floor((x - lowest) / s), at least 0 and at most 255, s = (highest - lowest) / 255, or 1 where that is 0,
 * all in f32. ranges or NULL: only int8 and uint8 need them. Errors: sizes below 0, dim below 1; p is not a precision;
 * ranges are missing, not finite, in the wrong order or so wide that highest - lowest overflows; for int8 and uint8 a
 * number is NaN, whose code in sentence-transformers depends on the processor. In bits NaN is 0, as there. */
ATT_API att_status att_vectors_quantize(att_ctx *ctx, att_precision p, const float *x, int64_t n, int64_t dim,
                                        const float *ranges, void *codes);
/* Converts codes [n, att_precision_bytes(p, dim)] back to x [n, dim]. A step becomes its lowest number, computed in
 * double; a bit becomes 0 or 1. ranges or NULL, and errors, are as for att_vectors_quantize. */
ATT_API att_status att_vectors_dequantize(att_ctx *ctx, att_precision p, const void *codes, int64_t n, int64_t dim,
                                          const float *ranges, float *x);

/* ---- 3 Search ----------------------------------------------------------- */

/* Vectors to search in. */
typedef struct att_vector_corpus {
    size_t size;
    int64_t n, dim; /* dim is at most 32768 */
    att_precision precision;
    const void *codes;   /* [call] [n, att_precision_bytes(precision, dim)] */
    const float *ranges; /* [call] [2, dim]: the ranges with which codes of int8 and uint8 were made; or NULL for other
                          * precisions */
    const bool *hidden;  /* [call] [n]: rows that are never found; or NULL: none */
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

/* Finds the nearest rows of n queries [n, dim] -> nearest [n, k], highest score first; of equal scores the lower row
 * comes first. For float32 the score is the exact dot product. For other precisions the search works as
 * semantic_search_faiss and semantic_search_usearch of sentence-transformers: it quantizes the query with the corpus's
 * ranges, finds the best k * multiplier rows by their codes (int8 and uint8: the dot product of the codes; bits: the
 * smallest number of different bits), and rescores them by the dot product of the query and the dequantized row, in
 * double. by_codes: the scores are those of the codes, for bits minus the number of different bits. options or NULL:
 * defaults. Memory grows with k * multiplier, not with n of the corpus. Errors: sizes out of range; ranges as for
 * att_vectors_quantize; a query, or for float32 a score, that is not finite; out of memory; cancelled. */
ATT_API att_status att_vectors_search(att_ctx *ctx, const att_vector_corpus *corpus, const float *queries, int64_t n,
                                      const att_vector_search_options *options, att_vector_hit *nearest);

#ifdef __cplusplus
}
#endif
#endif
