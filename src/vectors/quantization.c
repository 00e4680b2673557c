/* Converts vectors to codes of fewer bits, and back. The bytes are those of sentence-transformers'
 * quantize_embeddings. */
#include "vectors.h"

#include "attend_util.h"
#include "util/util.h"

#include <math.h>
#include <string.h>

enum { STEPS = 255, OFFSET = 128, BITS = 8 };

static const struct {
    const char *name;
    int bits; /* of a number */
} precisions[] = {[ATT_PRECISION_FLOAT32] = {"float32", 32},
                  [ATT_PRECISION_INT8] = {"int8", 8},
                  [ATT_PRECISION_UINT8] = {"uint8", 8},
                  [ATT_PRECISION_BINARY] = {"binary", 1},
                  [ATT_PRECISION_UBINARY] = {"ubinary", 1}};
enum { PRECISIONS = sizeof precisions / sizeof *precisions };

static bool is_precision(att_precision p) { return (int)p >= 0 && (int)p < PRECISIONS; }

const char *att_precision_name(att_precision p) { return is_precision(p) ? precisions[p].name : NULL; }

int64_t att_precision_bytes(att_precision p, int64_t dim)
{
    int64_t bits;
    if (!is_precision(p) || dim < 1 || __builtin_mul_overflow(dim, (int64_t)precisions[p].bits, &bits) ||
        bits > INT64_MAX - BITS)
        return 0;
    return (bits + BITS - 1) / BITS;
}

/* ---- checks */

static att_status check_ranges(att_ctx *ctx, const char *call, int64_t dim, const float *ranges)
{
    for (int64_t d = 0; d < dim; d++) {
        const float low = ranges[d], high = ranges[dim + d];
        if (!(low <= high) || !isfinite(high - low))
            return att_fail(ctx, ATT_ERR_ARGUMENT,
                            "%s: ranges of dimension %lld are %g to %g, but must be finite numbers in ascending order",
                            call, (long long)d, (double)low, (double)high);
    }
    return ATT_OK;
}

att_status att_check_vectors(att_ctx *ctx, const char *call, att_precision p, int64_t n, int64_t dim,
                             const float *ranges)
{
    int64_t bytes = 0;
    if (!is_precision(p))
        return att_fail(ctx, ATT_ERR_ARGUMENT, "%s: %d is not a precision", call, (int)p);
    if (n < 0 || dim < 1 || __builtin_mul_overflow(att_precision_bytes(ATT_PRECISION_FLOAT32, dim), n, &bytes) ||
        (bytes == 0 && n > 0))
        return att_fail(ctx, ATT_ERR_ARGUMENT, "%s: n is %lld and dim %lld, but n must be 0 or more and dim 1 or more",
                        call, (long long)n, (long long)dim);
    if (!att_precision_has_ranges(p))
        return ATT_OK;
    if (!ranges)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "%s: ranges are NULL, but %s needs them", call, precisions[p].name);
    return check_ranges(ctx, call, dim, ranges);
}

/* ---- ranges */

att_status att_ranges_begin(int64_t dim, float *ranges)
{
    if (att_require(__func__, ATT_NAMED({"ranges", ranges})))
        return ATT_ERR_ARGUMENT;
    if (dim < 1)
        return att_fail(NULL, ATT_ERR_ARGUMENT, "att_ranges_begin: dim is %lld, but must be 1 or more", (long long)dim);
    for (int64_t d = 0; d < dim; d++) {
        ranges[d] = INFINITY;
        ranges[dim + d] = -INFINITY;
    }
    return ATT_OK;
}

att_status att_ranges_add(att_ctx *ctx, const float *x, int64_t n, int64_t dim, float *ranges)
{
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"ranges", ranges})) ||
        (n > 0 && att_require(__func__, ATT_NAMED({"x", x}))))
        return ATT_ERR_ARGUMENT;
    const att_status s = att_check_vectors(ctx, __func__, ATT_PRECISION_FLOAT32, n, dim, NULL);
    if (s)
        return s;
    for (int64_t i = 0; i < n * dim; i++)
        if (!isfinite(x[i]))
            return att_fail(ctx, ATT_ERR_ARGUMENT, "att_ranges_add: x[%lld, %lld] is not finite", (long long)(i / dim),
                            (long long)(i % dim));
    for (int64_t i = 0; i < n; i++, x += dim)
        for (int64_t d = 0; d < dim; d++) {
            ranges[d] = x[d] < ranges[d] ? x[d] : ranges[d];
            ranges[dim + d] = x[d] > ranges[dim + d] ? x[d] : ranges[dim + d];
        }
    return ATT_OK;
}

/* ---- one vector */

/* Returns the size of a step of dimension d. NumPy also computes it in f32. */
static float step_of(const float *ranges, int64_t dim, int64_t d)
{
    const float step = (ranges[dim + d] - ranges[d]) / STEPS;
    return step == 0 ? 1 : step;
}

static void quantize_steps(uint8_t flip, const float *x, int64_t dim, const float *ranges, uint8_t *codes)
{
    for (int64_t d = 0; d < dim; d++) {
        const float step = floorf((x[d] - ranges[d]) / step_of(ranges, dim, d));
        codes[d] = (uint8_t)((uint8_t)(step > 0 ? (step < STEPS ? step : STEPS) : 0) ^ flip);
    }
}

static void pack_bits(uint8_t flip, const float *x, int64_t dim, uint8_t *codes)
{
    for (int64_t first = 0; first < dim; first += BITS) {
        unsigned byte = 0;
        for (int64_t d = first; d < first + BITS; d++)
            byte = byte << 1 | (d < dim && x[d] > 0);
        codes[first / BITS] = (uint8_t)(byte ^ flip);
    }
}

/* Returns the bit to flip: flipping a byte's highest bit subtracts 128 from it, or adds 128. */
static uint8_t flip_of(att_precision p) { return p == ATT_PRECISION_INT8 || p == ATT_PRECISION_BINARY ? OFFSET : 0; }

void att_quantize_vector(att_precision p, const float *x, int64_t dim, const float *ranges, void *codes)
{
    if (p == ATT_PRECISION_FLOAT32)
        memcpy(codes, x, (size_t)dim * sizeof *x);
    else if (att_precision_has_ranges(p))
        quantize_steps(flip_of(p), x, dim, ranges, codes);
    else
        pack_bits(flip_of(p), x, dim, codes);
}

double att_dequantized(att_precision p, const void *codes, int64_t dim, const float *ranges, int64_t d)
{
    const uint8_t *code = codes, flip = flip_of(p);
    if (p == ATT_PRECISION_FLOAT32)
        return (double)((const float *)codes)[d];
    if (att_precision_has_ranges(p))
        return (double)(code[d] ^ flip) * (double)step_of(ranges, dim, d) + (double)ranges[d];
    return (code[d / BITS] ^ flip) >> (BITS - 1 - d % BITS) & 1;
}

/* ---- many */

enum { ROWS = 256 }; /* of a task */

typedef struct vectors_job {
    att_precision p;
    int64_t n, dim, bytes; /* bytes: of a vector's codes */
    const float *ranges;
    const float *x;     /* [n, dim] to quantize, or NULL */
    void *codes;        /* [n, bytes] */
    float *dequantized; /* [n, dim], or NULL */
} vectors_job;

static void convert_rows(void *arg, int task)
{
    const vectors_job *j = arg;
    const int64_t first = (int64_t)task * ROWS, last = att_min(first + ROWS, j->n);
    for (int64_t i = first; i < last; i++) {
        uint8_t *codes = (uint8_t *)j->codes + i * j->bytes;
        if (j->x)
            att_quantize_vector(j->p, j->x + i * j->dim, j->dim, j->ranges, codes);
        for (int64_t d = 0; j->dequantized && d < j->dim; d++)
            j->dequantized[i * j->dim + d] = (float)att_dequantized(j->p, codes, j->dim, j->ranges, d);
    }
}

/* Runs tasks of ROWS rows; their number may exceed int. */
static att_status convert_all(att_ctx *ctx, const vectors_job *all)
{
    enum { TASKS = 1 << 16 };
    for (int64_t first = 0; first < all->n; first += (int64_t)TASKS * ROWS) {
        vectors_job j = *all;
        if (att_cancelled(ctx))
            return att_fail(ctx, ATT_ERR_CANCELLED, "the conversion of vectors was cancelled");
        j.n = att_min(all->n - first, (int64_t)TASKS * ROWS);
        j.x = all->x ? all->x + first * all->dim : NULL;
        j.codes = (uint8_t *)all->codes + first * all->bytes;
        j.dequantized = all->dequantized ? all->dequantized + first * all->dim : NULL;
        att_parallel_for(ctx, (int)att_ceil_div(j.n, ROWS), convert_rows, &j);
    }
    return ATT_OK;
}

att_status att_vectors_quantize(att_ctx *ctx, att_precision p, const float *x, int64_t n, int64_t dim,
                                const float *ranges, void *codes)
{
    if (att_require(__func__, ATT_NAMED({"ctx", ctx})) ||
        (n > 0 && att_require(__func__, ATT_NAMED({"x", x}, {"codes", codes}))))
        return ATT_ERR_ARGUMENT;
    const att_status s = att_check_vectors(ctx, __func__, p, n, dim, ranges);
    if (s)
        return s;
    for (int64_t i = 0; att_precision_has_ranges(p) && i < n * dim; i++)
        if (isnan(x[i]))
            return att_fail(ctx, ATT_ERR_ARGUMENT, "att_vectors_quantize: x[%lld, %lld] is NaN, which has no code",
                            (long long)(i / dim), (long long)(i % dim));
    return convert_all(ctx, &(const vectors_job){.p = p,
                                                 .n = n,
                                                 .dim = dim,
                                                 .bytes = att_precision_bytes(p, dim),
                                                 .ranges = ranges,
                                                 .x = x,
                                                 .codes = codes});
}

att_status att_vectors_dequantize(att_ctx *ctx, att_precision p, const void *codes, int64_t n, int64_t dim,
                                  const float *ranges, float *x)
{
    if (att_require(__func__, ATT_NAMED({"ctx", ctx})) ||
        (n > 0 && att_require(__func__, ATT_NAMED({"codes", codes}, {"x", x}))))
        return ATT_ERR_ARGUMENT;
    const att_status s = att_check_vectors(ctx, __func__, p, n, dim, ranges);
    if (s)
        return s;
    return convert_all(ctx, &(const vectors_job){.p = p,
                                                 .n = n,
                                                 .dim = dim,
                                                 .bytes = att_precision_bytes(p, dim),
                                                 .ranges = ranges,
                                                 .codes = (void *)codes,
                                                 .dequantized = x});
}
