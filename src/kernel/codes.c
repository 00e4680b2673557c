/* Products and distances of codes, numbers of a byte or of a bit: of queries with many rows, in whole numbers.
 *
 * v_dot4 multiplies bytes in [0, 127] by signed ones. A byte u of a row, in [0, 255], is 2 h + l, with h in [0, 127]
 * and l 0 or 1, so q u = 2 q h + q l for a signed q. Signed codes of a row are u - 128, unsigned ones of a query are q
 * + 128: what these add are sums of the query and of the row. */
#include "kernel/kernel.h"
#include "simd/simd.h"

#include <string.h>

enum { BYTES = 4 * ATT_LANES, TILE = 4 /* queries */, OFFSET = 128 };

typedef uint32_t words __attribute__((vector_size(BYTES)));

static int32_t sum_of(vf sums)
{
    int32_t x[ATT_LANES], sum = 0;
    memcpy(x, &sums, sizeof x);
    for (int i = 0; i < ATT_LANES; i++)
        sum += x[i];
    return sum;
}

/* Sums of products of the halves h and l of a row's bytes: with queries, and with 1 where the row's sum is needed */
typedef struct sums {
    vf high[TILE], low[TILE], row_high, row_low;
} sums;

/* Adds the products of BYTES bytes of a row and of n queries, q [n] rows `stride` apart. ones [BYTES] or NULL: 1 where
 * the row has a byte. */
ATT_INLINE void add(const int n, const bool is_signed, const void *row, const uint8_t *q, int64_t stride,
                    const uint8_t *ones, sums *s)
{
    words u, x;
    memcpy(&u, row, sizeof u);
    if (is_signed)
        u ^= 0x80808080u;
    const vf high = (vf)((u >> 1) & 0x7f7f7f7fu), low = (vf)(u & 0x01010101u);
    ATT_UNROLL (r, n) {
        memcpy(&x, q + r * stride, sizeof x);
        s->high[r] = v_dot4(high, (vf)x, s->high[r]);
        s->low[r] = v_dot4(low, (vf)x, s->low[r]);
    }
    if (is_signed)
        return;
    memcpy(&x, ones, sizeof x);
    s->row_high = v_dot4(high, (vf)x, s->row_high);
    s->row_low = v_dot4(low, (vf)x, s->row_low);
}

/* The last bytes of queries and of ones, after whole vectors, followed by zeros */
typedef struct rest {
    uint8_t q[TILE][BYTES], ones[BYTES];
} rest;

static void copy_rest(int64_t bytes, const void *x, uint8_t *to)
{
    const int64_t some = bytes % BYTES;
    memset(to, 0, BYTES);
    memcpy(to, (const uint8_t *)x + bytes - some, (size_t)some);
}

/* n queries from q on, with all rows -> out */
ATT_INLINE void multiply(const int n, const bool is_signed, const att_codes_args *a, const int8_t *q, int32_t *out)
{
    rest after;
    uint8_t ones[BYTES], row_rest[BYTES];
    int32_t q_sum[TILE] = {0};
    memset(ones, 1, sizeof ones);
    copy_rest(a->bytes % BYTES, ones, after.ones);
    for (int r = 0; r < n; r++) {
        copy_rest(a->bytes, q + r * a->bytes, after.q[r]);
        for (int64_t i = 0; i < a->bytes; i++)
            q_sum[r] += q[r * a->bytes + i];
    }
    for (int64_t i = 0; i < a->rows; i++) {
        const uint8_t *row = a->codes + i * a->bytes;
        sums s;
        s.row_high = s.row_low = v_set(0);
        ATT_UNROLL (r, n)
            s.high[r] = s.low[r] = v_set(0);
        int64_t at = 0;
        for (; at + BYTES <= a->bytes; at += BYTES)
            add(n, is_signed, row + at, (const uint8_t *)q + at, a->bytes, ones, &s);
        if (at < a->bytes) {
            copy_rest(a->bytes, row, row_rest);
            add(n, is_signed, row_rest, after.q[0], BYTES, after.ones, &s);
        }
        const int32_t of_row = is_signed ? 0 : OFFSET * (2 * sum_of(s.row_high) + sum_of(s.row_low));
        for (int r = 0; r < n; r++)
            out[r * a->stride + i] =
                2 * sum_of(s.high[r]) + sum_of(s.low[r]) + (is_signed ? -OFFSET * q_sum[r] : of_row);
    }
}

ATT_INLINE void products_as(const bool is_signed, const att_codes_args *a)
{
    int64_t r = 0;
    for (; r + TILE <= a->queries; r += TILE)
        multiply(TILE, is_signed, a, a->q + r * a->bytes, a->out + r * a->stride);
    for (; r < a->queries; r++)
        multiply(1, is_signed, a, a->q + r * a->bytes, a->out + r * a->stride);
}

static void products(const att_codes_args *a)
{
    if (a->is_signed)
        products_as(true, a);
    else
        products_as(false, a);
}

/* In how many bits do two rows differ? */
static int32_t different_bits(int64_t bytes, const uint8_t *x, const uint8_t *y)
{
    int64_t i = 0;
    int32_t bits = 0;
    for (uint64_t a, b; i + (int64_t)sizeof a <= bytes; i += (int64_t)sizeof a) {
        memcpy(&a, x + i, sizeof a);
        memcpy(&b, y + i, sizeof b);
        bits += __builtin_popcountll(a ^ b);
    }
    for (; i < bytes; i++)
        bits += __builtin_popcount((unsigned)(x[i] ^ y[i]));
    return bits;
}

static void hamming(const att_codes_args *a)
{
    for (int64_t r = 0; r < a->queries; r++)
        for (int64_t i = 0; i < a->rows; i++)
            a->out[r * a->stride + i] =
                different_bits(a->bytes, (const uint8_t *)a->q + r * a->bytes, a->codes + i * a->bytes);
}

void ATTEND_ISA(att_kernel_codes)(att_kernels *k);
void ATTEND_ISA(att_kernel_codes)(att_kernels *k)
{
    k->codes.products = products;
    k->codes.hamming = hamming;
}
