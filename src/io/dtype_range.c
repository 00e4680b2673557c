#include "io/dtype_range.h"
#include "util/shape.h"

#include "io/bytes.h"

#include <math.h>
#include <stdio.h>

/* Types with a range below that of f32 */
typedef struct narrow {
    att_dtype dtype;
    const char *name;
    int at[2];          /* where in a number, or in a block, codes are that become infinite */
    unsigned exponent;  /* bits of a code, all set if it is not finite */
    double largest;     /* number; of blocks of 256, which are fitted, about that */
    double limit;       /* numbers from this one on may become infinite */
    const char *others; /* types with a larger range */
} narrow;

static const narrow narrows[] = {{ATT_F16, "f16", {0}, 0x7C00, 65504, 65520, "bf16 or f32"},
                                 {ATT_BF16, "bf16", {0}, 0x7F80, 0x1.FEp127, 0x1.FFp127, "f32"},
                                 {ATT_Q8_0, "int8", {0}, 0x7C00, 65504 * 127, 65520 * 127, "bf16 or f32"},
                                 {ATT_Q4_0, "int4", {0}, 0x7C00, 65504 * 8, 65520 * 8, "bf16 or f32"},
                                 {ATT_Q5_0, "Q5_0", {0}, 0x7C00, 65504 * 16, 65520 * 16, "bf16 or f32"},
                                 {ATT_Q4_1, "Q4_1", {0, 2}, 0x7C00, 65504, 65520, "bf16 or f32"},
                                 {ATT_Q5_1, "Q5_1", {0, 2}, 0x7C00, 65504, 65520, "bf16 or f32"},
                                 {ATT_Q4_K, "Q4_K", {0}, 0x7C00, 65504 * 32, 65504 * 32, "bf16 or f32"},
                                 {ATT_Q5_K, "Q5_K", {0}, 0x7C00, 65504 * 32, 65504 * 32, "bf16 or f32"},
                                 {ATT_Q6_K, "Q6_K", {208, 208}, 0x7C00, 65504 * 2048, 65504 * 2048, "bf16 or f32"}};

static const narrow *find(att_dtype dtype)
{
    for (size_t i = 0; i < sizeof narrows / sizeof narrows[0]; i++)
        if (narrows[i].dtype == dtype)
            return &narrows[i];
    return NULL;
}

static bool has_infinite(const narrow *n, const char *codes, int64_t bytes)
{
    const int64_t step = att_dtype_bytes(n->dtype, att_dtype_block(n->dtype));
    bool found = false;
    for (int64_t i = 0; i < bytes; i += step)
        for (int k = 0; k < 2; k++)
            found |= (att_read_number(codes + i + n->at[k], 2) & n->exponent) == n->exponent;
    return found;
}

/* Returns an error for the first of numbers x [count] that is too large for n; ATT_OK: infinite ones were not finite
 * before, either. */
static att_status name_number(att_ctx *ctx, const narrow *n, const char *where, const char *verb, const float *x,
                              int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const double number = (double)x[i];
        if (!isfinite(number) && att_dtype_block(n->dtype) > 1)
            return att_fail(ctx, ATT_ERR_UNSUPPORTED, "%s has %g, which a block of %s cannot have; %s f16, bf16 or f32",
                            where, number, n->name, verb);
        if (isfinite(number) && fabs(number) >= n->limit)
            return att_fail(ctx, ATT_ERR_UNSUPPORTED, "%s has %.9g, but the largest number of %s is %.9g; %s %s", where,
                            number, n->name, n->largest, verb, n->others);
    }
    return ATT_OK;
}

att_status att_check_narrow(att_ctx *ctx, const char *source, const char *name, const char *verb, const att_tensor *x,
                            const att_tensor *y)
{
    const narrow *n = x->dtype == y->dtype ? NULL : find(y->dtype);
    const int64_t count = att_elements(x);
    if (!n || !has_infinite(n, y->data, att_dtype_bytes(y->dtype, count)))
        return ATT_OK;
    char where[1024];
    att_tensor numbers;
    float *f = att_alloc(ctx, (size_t)count, sizeof *f);
    if (!f)
        return ATT_ERR_MEMORY;
    snprintf(where, sizeof where, "%.700s: tensor \"%.200s\"", source, name);
    att_status s = att_wrap(&numbers, f, ATT_F32, x->rank, x->dim, NULL);
    s = s ? s : att_tensor_convert(ctx, x, &numbers);
    s = s ? s : name_number(ctx, n, where, verb, f, count);
    att_free(ctx, f);
    return s;
}
