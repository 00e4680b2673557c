/* attend bench attention: makes the tensors of a case, and fits them to the plan's parameters. */
#include "attention.h"
#include "attend_util.h"

#include <math.h>
#include <string.h>

/* ---- The library's messages --------------------------------------------------- */

/* Names of the library's sentences, and the options that set them. */
static const char *const option_of[][2] = {
    {"spec.head_dim", "--dim"},
    {"spec.key_dim", "--kdim"},
    {"spec.value_dim", "--vdim"},
    {"spec.score_dim", "--score-dim"},
    {"spec.kv_heads", "--kv-heads"},
    {"spec.heads", "--heads"},
    {"spec.dropout", "--dropout"},
    {"spec.align", "--align"},
    {"ATT_ALIGN_TOP_LEFT, ATT_ALIGN_BOTTOM_RIGHT or ATT_ALIGN_STARTS", "top-left or bottom-right"},
};
enum { NAMES = sizeof option_of / sizeof *option_of };

/* Prints the library's message with the options as typed. */
static void name_options(const char *message, char *text, size_t size)
{
    size_t used = 0;
    for (const char *p = message; *p && used < size - 1;) {
        int i = 0;
        while (i < NAMES && strncmp(p, option_of[i][0], strlen(option_of[i][0])) != 0)
            i++;
        const char *const from = i < NAMES ? option_of[i][1] : p;
        used += (size_t)snprintf(text + used, size - used, "%.*s", i < NAMES ? (int)strlen(from) : 1, from);
        p += i < NAMES ? strlen(option_of[i][0]) : 1;
    }
}

int attention_status(const attention_case *c, att_status s)
{
    char text[1024] = "";
    if (s == ATT_OK || s == ATT_ERR_CANCELLED)
        return cli_status(c->ctx, s);
    name_options(att_error(c->ctx), text, sizeof text);
    return cli_fail("%s%s", c->line, text);
}

/* ---- Numbers in f32, f16, bf16 ------------------------------------------------ */

enum { RUN = 256 }; /* numbers that are converted at a time */

/* n contiguous numbers, from one type to another. */
static void convert(att_ctx *ctx, int64_t n, void *from, att_dtype from_type, void *to, att_dtype to_type)
{
    att_tensor x, out;
    att_wrap(&x, from, from_type, ATT_DIMS(n), NULL);
    att_wrap(&out, to, to_type, ATT_DIMS(n), NULL);
    att_tensor_convert(ctx, &x, &out);
}

/* Fills data with numbers in [-1, 1), which depend only on the seed; in half types they are multiples of 1/128, which
 * f16 and bf16 hold exactly. */
static void fill(att_ctx *ctx, void *data, att_dtype dtype, int64_t n, uint64_t seed)
{
    float run[RUN];
    for (int64_t first = 0; first < n; first += RUN) {
        const int64_t some = n - first < RUN ? n - first : RUN;
        for (int64_t i = 0; i < some; i++) {
            const double x = bench_random(&seed);
            run[i] = (float)(dtype == ATT_F32 ? x : floor(x * 128) / 128);
        }
        convert(ctx, some, run, ATT_F32, (char *)data + (size_t)first * att_dtype_size(dtype), dtype);
    }
}

void attention_read(const attention_case *c, const att_tensor *x, int64_t b, int64_t head, int64_t i, double *row)
{
    const int64_t at[] = {b, head, i}, n = x->rank == 4 ? x->dim[3] : 1;
    const int64_t size = (int64_t)att_dtype_size(x->dtype);
    float run[RUN];
    char *data = x->data;
    for (int d = 0; d < 3; d++)
        data += x->dim[d] == 1 ? 0 : at[d] * x->stride[d] * size;
    for (int64_t first = 0; first < n; first += RUN) {
        const int64_t some = n - first < RUN ? n - first : RUN;
        convert(c->ctx, some, data + first * size, x->dtype, run, ATT_F32);
        for (int64_t d = 0; d < some; d++)
            row[first + d] = (double)run[d];
    }
}

/* ---- Tensors ------------------------------------------------------------------ */

int attention_tensor(attention_case *c, att_tensor *out, att_dtype dtype, int rank, const int64_t *dim)
{
    if (att_wrap(out, NULL, dtype, rank, dim, NULL))
        return attention_status(c, ATT_ERR_SHAPE);
    int64_t n = 1;
    for (int i = 0; i < rank; i++)
        n *= dim[i];
    out->data = att_alloc(c->ctx, (size_t)n, att_dtype_size(dtype));
    if (!out->data)
        return cli_fail("%sno memory for %.3g numbers", c->line, (double)n);
    c->memory[c->n_memory++] = out->data;
    c->bytes += (double)n * (double)att_dtype_size(dtype);
    if (dtype <= ATT_BF16)
        fill(c->ctx, out->data, dtype, n, (uint64_t)c->n_memory);
    return CLI_DONE;
}
