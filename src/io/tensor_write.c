#include "io/tensor_write.h"

#include "io/bytes.h"
#include "io/util.h"

#include <math.h>
#include <string.h>

/* Types with a range below that of f32 */
typedef struct narrow {
    att_dtype dtype;
    int step;           /* bytes from one code to the next that may be infinite: of a number, or of a block's d */
    unsigned exponent;  /* bits of a code, all set if it is not finite */
    double largest;     /* number */
    double limit;       /* what is not below it becomes infinite */
    const char *others; /* types with a larger one */
} narrow;

static const narrow narrows[] = {{ATT_F16, 2, 0x7C00, 65504, 65520, "bf16 or f32"},
                                 {ATT_BF16, 2, 0x7F80, 0x1.FEp127, 0x1.FFp127, "f32"},
                                 {ATT_Q8_0, 34, 0x7C00, 65504 * 127, 65520 * 127, "bf16 or f32"}};

static const narrow *find_narrow(att_dtype dtype)
{
    for (size_t i = 0; i < sizeof narrows / sizeof narrows[0]; i++)
        if (narrows[i].dtype == dtype)
            return &narrows[i];
    return NULL;
}

static bool has_infinite(const narrow *n, const char *codes, int64_t bytes)
{
    bool found = false;
    for (int64_t i = 0; i < bytes; i += n->step)
        found |= (att_read_number(codes + i, 2) & n->exponent) == n->exponent;
    return found;
}

/* Finds the number of x, which has `count`, that dtype does not have. One that is not finite stays so, but in a block,
 * whose others would become NaN. */
static void check_range(const att_tensor_writer *w, const narrow *n, const char *name, const att_tensor *x,
                        int64_t count)
{
    att_tensor numbers;
    att_status s = att_wrap(&numbers, w->numbers, ATT_F32, x->rank, x->dim, NULL);
    s = s ? s : att_tensor_convert(w->file->ctx, x, &numbers);
    for (int64_t i = 0; !s && i < count; i++) {
        const double number = (double)w->numbers[i];
        if (!isfinite(number) && n->dtype == ATT_Q8_0)
            s = att_fail(w->file->ctx, ATT_ERR_UNSUPPORTED,
                         "%s: tensor \"%s\" has %g, which a block of int8 cannot have; convert to f16, bf16 or f32",
                         w->source, name, number);
        else if (isfinite(number) && fabs(number) >= n->limit)
            s = att_fail(w->file->ctx, ATT_ERR_UNSUPPORTED,
                         "%s: tensor \"%s\" has %.9g, but the largest number of %s is %.9g; convert to %s", w->source,
                         name, number, n->dtype == ATT_Q8_0 ? "int8" : att_dtype_name(n->dtype), n->largest, n->others);
    }
    if (s && !w->file->status)
        w->file->status = s;
}

/* Converts a tensor that fits into the chunk, and writes it. */
static void put_chunk(att_tensor_writer *w, const char *name, const att_tensor *t, att_dtype dtype)
{
    att_tensor dense;
    int64_t count = 1;
    for (int i = 0; i < t->rank; i++)
        count *= t->dim[i];
    const int64_t bytes = att_dtype_bytes(dtype, count);
    const narrow *n = w->source && dtype != t->dtype ? find_narrow(dtype) : NULL;
    att_status s = att_wrap(&dense, w->chunk, dtype, t->rank, t->dim, NULL);
    s = s ? s : att_tensor_convert(w->file->ctx, t, &dense);
    if (s && !w->file->status)
        w->file->status = s;
    for (int64_t i = 0; dtype == ATT_BOOL && i < bytes; i++)
        w->chunk[i] = w->chunk[i] != 0;
    if (!s && n && has_infinite(n, w->chunk, bytes))
        check_range(w, n, name, t, count);
    att_replace_write(w->file, w->chunk, (size_t)bytes);
}

/* Splits a tensor into ranges of rows, or of elements of a row, that fit into the chunk. */
void att_tensor_writer_put(att_tensor_writer *w, const char *name, const att_tensor *t, att_dtype dtype)
{
    enum { BLOCK = 32, NUMBERS = ATT_TENSOR_CHUNK / 8 }; /* of 8 bytes or fewer */
    int64_t each = 1;                                    /* numbers of a row */
    for (int i = 1; i < t->rank; i++)
        each *= t->dim[i];
    const int64_t rows = t->rank > 0 ? t->dim[0] : 1;
    if (rows * each == 0 || w->file->status)
        return;
    if (rows * each <= NUMBERS) {
        put_chunk(w, name, t, dtype);
        return;
    }
    const bool whole = each <= NUMBERS;
    const int64_t max = t->rank == 1 ? NUMBERS / BLOCK * BLOCK : whole ? NUMBERS / each : 1;
    att_tensor part = *t;
    if (!whole) { /* one row */
        part.rank--;
        memmove(part.dim, t->dim + 1, (size_t)part.rank * sizeof *part.dim);
        memmove(part.stride, t->stride + 1, (size_t)part.rank * sizeof *part.stride);
    }
    for (int64_t r = 0; r < rows; r += max) {
        part.data = (char *)t->data + att_dtype_bytes(t->dtype, r * t->stride[0]);
        if (whole)
            part.dim[0] = att_min(rows - r, max);
        att_tensor_writer_put(w, name, &part, dtype);
    }
}

att_status att_tensor_writer_init(att_tensor_writer *w, att_replace *file, const char *source)
{
    att_ctx *ctx = file->ctx;
    *w = (att_tensor_writer){.file = file, .source = source, .chunk = att_alloc(ctx, ATT_TENSOR_CHUNK, 1)};
    if (source)
        w->numbers = att_alloc(ctx, ATT_TENSOR_CHUNK / 8, sizeof *w->numbers);
    return w->chunk && (w->numbers || !source) ? ATT_OK : ATT_ERR_MEMORY;
}

void att_tensor_writer_free(att_tensor_writer *w)
{
    att_free(w->file->ctx, w->chunk);
    att_free(w->file->ctx, w->numbers);
}
