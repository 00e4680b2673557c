#include "codes.h"

#include "correlation.h"
#include "ranges.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool has_ranges(att_precision p) { return p == ATT_PRECISION_INT8 || p == ATT_PRECISION_UINT8; }

int cli_codes_precision(const cli_npy *index, const cli_embedder *m, const cli_codes_options *o,
                        att_precision *precision)
{
    static const att_precision of[][2] = {[CLI_NPY_FLOAT32] = {ATT_PRECISION_FLOAT32, ATT_PRECISION_FLOAT32},
                                          [CLI_NPY_INT8] = {ATT_PRECISION_INT8, ATT_PRECISION_BINARY},
                                          [CLI_NPY_UINT8] = {ATT_PRECISION_UINT8, ATT_PRECISION_UBINARY}};
    static const char *const types[] = {
        [CLI_NPY_FLOAT32] = "numbers", [CLI_NPY_INT8] = "int8", [CLI_NPY_UINT8] = "uint8"};
    const bool floats = index->type == CLI_NPY_FLOAT32, bits = !floats && index->columns != m->dim;
    const int64_t bytes = att_precision_bytes(ATT_PRECISION_UBINARY, m->dim);
    *precision = of[index->type][bits];
    if (floats ? index->columns != m->dim : bits && index->columns != bytes)
        return cli_fail("%s: has vectors of %lld %s, but those of %s have %lld numbers%s", o->index,
                        (long long)index->columns, types[index->type], m->name, (long long)m->dim,
                        !m->images && index->columns <= m->text.info.full_dim ? " (--dims)" : "");
    if (o->precision >= 0 && *precision != (att_precision)o->precision)
        return cli_fail("%s: has vectors of %s, but --precision is %s", o->index, att_precision_name(*precision),
                        att_precision_name((att_precision)o->precision));
    return CLI_DONE;
}

/* Checks the model's measure. Codes are compared by their products, or by the number of different bits. */
static int check_measure(const cli_embedder *m, att_precision p)
{
    return m->similarity == ATT_SIMILARITY_COSINE || m->similarity == ATT_SIMILARITY_DOT
               ? CLI_DONE
               : cli_fail("%s compares by distances, but vectors of %s are compared by their products", m->name,
                          att_precision_name(p));
}

/* Reads the given ranges, or those next to the index. */
static int read_ranges(cli_codes *c, const cli_embedder *m, const cli_codes_options *o)
{
    char *path = o->ranges ? strdup(o->ranges) : cli_ranges_path(o->index);
    int code = path ? CLI_DONE : cli_fail_memory();
    if (!code && !o->ranges && access(path, F_OK))
        code = cli_fail("%s: is missing, the ranges of %s that queries need: give --ranges, or make both anew: %s",
                        path, o->index, o->remake);
    if (!code)
        code = cli_ranges_read(path, m->dim, m->name, &c->ranges);
    free(path);
    return code;
}

int cli_codes_open(cli_codes *c, const cli_npy *index, const cli_embedder *m, const cli_codes_options *o)
{
    *c = (cli_codes){.data = index->codes};
    int code = cli_codes_precision(index, m, o, &c->precision);
    if (!code && c->precision != ATT_PRECISION_FLOAT32)
        code = check_measure(m, c->precision);
    if (!code && has_ranges(c->precision))
        code = read_ranges(c, m, o);
    else if (!code && o->ranges)
        code = cli_misuse("--ranges is of int8 and uint8, but %s has vectors of %s", o->index,
                          att_precision_name(c->precision));
    return code;
}

int cli_codes_make(cli_codes *c, const float *vectors, int64_t rows, const cli_embedder *m, const cli_codes_options *o)
{
    const int64_t dim = m->dim;
    *c = (cli_codes){.precision = (att_precision)o->precision};
    int code = check_measure(m, c->precision);
    if (!code && o->ranges && !has_ranges(c->precision))
        code = cli_misuse("--ranges is of int8 and uint8, not of --precision %s", att_precision_name(c->precision));
    if (!code && o->ranges)
        code = cli_ranges_read(o->ranges, dim, m->name, &c->ranges);
    else if (!code && has_ranges(c->precision)) {
        c->ranges = malloc(2 * (size_t)dim * sizeof *c->ranges);
        code = c->ranges ? cli_status(m->ctx, att_ranges_begin(dim, c->ranges)) : cli_fail_memory();
        if (!code)
            code = cli_status(m->ctx, att_ranges_add(m->ctx, vectors, rows, dim, c->ranges));
    }
    c->own = malloc((size_t)(rows * att_precision_bytes(c->precision, dim)) + 1);
    c->data = c->own;
    if (!code && !c->own)
        code = cli_fail_memory();
    return code ? code
                : cli_status(m->ctx, att_vectors_quantize(m->ctx, c->precision, vectors, rows, dim, c->ranges, c->own));
}

void cli_codes_close(cli_codes *c)
{
    free(c->ranges);
    free(c->own);
    *c = (cli_codes){0};
}

/* ---- Is it the line's row? */

/* Returns the number of bits in which codes [bytes] differ. */
static int64_t different_bits(const uint8_t *a, const uint8_t *b, int64_t bytes)
{
    int64_t n = 0;
    for (int64_t i = 0; i < bytes; i++)
        n += __builtin_popcount((unsigned)(a[i] ^ b[i]));
    return n;
}

/* Checks that two rows of codes are equal, up to rounding. The vector's error is at most 0.04 of its length (see
 * check_floats of corpus.c), an angle that changes 0.04 / pi = 1.3 % of the bits on average. Three times as many may
 * differ. */
static int compare(const cli_codes *c, const cli_embedder *m, const uint8_t *row, const uint8_t *again, float *scratch,
                   bool *same)
{
    const double min_cosine = 0.9992, max_bits = 0.04 * (double)m->dim;
    if (!has_ranges(c->precision)) {
        const int64_t bits = different_bits(row, again, att_precision_bytes(c->precision, m->dim));
        *same = (double)bits <= max_bits || bits <= 2;
        return CLI_DONE;
    }
    int code = cli_status(m->ctx, att_vectors_dequantize(m->ctx, c->precision, row, 1, m->dim, c->ranges, scratch));
    if (!code)
        code = cli_status(m->ctx,
                          att_vectors_dequantize(m->ctx, c->precision, again, 1, m->dim, c->ranges, scratch + m->dim));
    *same = !code && cli_cosine(scratch, scratch + m->dim, m->dim) >= min_cosine;
    return code;
}

int cli_codes_check(const cli_codes *c, const cli_embedder *m, const cli_codes_options *o, int64_t line,
                    const float *again)
{
    const int64_t bytes = att_precision_bytes(c->precision, m->dim);
    uint8_t *codes = malloc((size_t)bytes);
    float *scratch = malloc(2 * (size_t)m->dim * sizeof *scratch);
    bool same = false;
    int code = codes && scratch ? CLI_DONE : cli_fail_memory();
    if (!code)
        code = cli_status(m->ctx, att_vectors_quantize(m->ctx, c->precision, again, 1, m->dim, c->ranges, codes));
    if (!code)
        code = compare(c, m, c->data + line * bytes, codes, scratch, &same);
    if (!code && !same)
        code = cli_fail("%s: row %lld is not the %s vector of line %lld by %s: the text, the model, its --dtype or "
                        "--compute, or the ranges are others; %s makes the index anew",
                        o->index, (long long)line + 1, att_precision_name(c->precision), (long long)line + 1, m->name,
                        o->remake);
    free(codes);
    free(scratch);
    return code;
}
