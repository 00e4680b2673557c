/* Products and distances of codes, numbers of a byte or of a bit: of one query with many rows, in whole numbers.
 *
 * v_dot4 multiplies bytes in [0, 127] by signed ones. A byte u of a row, in [0, 255], is 2 h + l, with h in [0, 127]
 * and l 0 or 1, so that q u = 2 q h + q l for a signed q. Signed codes of a row are u - 128, unsigned ones of the query
 * q + 128; what that adds are sums of the query and of the row. */
#include "kernel/kernel.h"
#include "simd/simd.h"

#include <string.h>

enum { BYTES = 4 * ATT_LANES, OFFSET = 128 };

typedef uint32_t words __attribute__((vector_size(BYTES)));

static int32_t sum_of(vf sums)
{
    int32_t x[ATT_LANES], sum = 0;
    memcpy(x, &sums, sizeof x);
    for (int i = 0; i < ATT_LANES; i++)
        sum += x[i];
    return sum;
}

/* Sums of q h and of q l, and of h and l where the row's sum is needed */
typedef struct products {
    vf high, low, row_high, row_low;
} products;

/* Adds the products of BYTES bytes; ones [BYTES]: 1 where the row has a byte. */
ATT_INLINE void add(const bool with_sums, const void *query, const void *row, const void *ones, products *p)
{
    words q, u, one;
    memcpy(&q, query, sizeof q);
    memcpy(&u, row, sizeof u);
    const vf high = (vf)((u >> 1) & 0x7f7f7f7fu), low = (vf)(u & 0x01010101u);
    p->high = v_dot4(high, (vf)q, p->high);
    p->low = v_dot4(low, (vf)q, p->low);
    if (!with_sums)
        return;
    memcpy(&one, ones, sizeof one);
    p->row_high = v_dot4(high, (vf)one, p->row_high);
    p->row_low = v_dot4(low, (vf)one, p->row_low);
}

/* The bytes of a row after its whole vectors, and zeros */
static void copy_rest(int64_t dim, uint8_t flip, const uint8_t *x, uint8_t rest[BYTES])
{
    const int64_t whole = dim - dim % BYTES;
    memset(rest, 0, BYTES);
    for (int64_t i = whole; i < dim; i++)
        rest[i - whole] = x[i] ^ flip;
}

/* Signed codes: the row's are flipped to u = c + 128, so sum(q c) = sum(q u) - 128 sum(q). */
static void products_signed(int64_t n, int64_t dim, const int8_t *q, const int8_t *rows, int32_t *out)
{
    uint8_t rest[BYTES], q_rest[BYTES], flipped[BYTES];
    const words flip = (words){0} + 0x80808080u;
    int32_t sum = 0;
    for (int64_t i = 0; i < dim; i++)
        sum += q[i];
    copy_rest(dim, 0, (const uint8_t *)q, q_rest);
    for (int64_t r = 0; r < n; r++, rows += dim) {
        products p = {v_set(0), v_set(0), v_set(0), v_set(0)};
        for (int64_t i = 0; i + BYTES <= dim; i += BYTES) {
            words u;
            memcpy(&u, rows + i, sizeof u);
            u ^= flip;
            memcpy(flipped, &u, sizeof u);
            add(false, q + i, flipped, NULL, &p);
        }
        if (dim % BYTES) {
            copy_rest(dim, OFFSET, (const uint8_t *)rows, rest);
            add(false, q_rest, rest, NULL, &p);
        }
        out[r] = 2 * sum_of(p.high) + sum_of(p.low) - OFFSET * sum;
    }
}

/* Unsigned codes: the query's are q + 128, with q signed, so their products are sum(q u) + 128 sum(u). */
static void products_unsigned(int64_t n, int64_t dim, const uint8_t *query, const uint8_t *rows, int32_t *out)
{
    uint8_t rest[BYTES], q_rest[BYTES], flipped[BYTES], ones[BYTES];
    const words flip = (words){0} + 0x80808080u;
    memset(ones, 1, sizeof ones);
    copy_rest(dim, OFFSET, query, q_rest);
    for (int64_t r = 0; r < n; r++, rows += dim) {
        products p = {v_set(0), v_set(0), v_set(0), v_set(0)};
        for (int64_t i = 0; i + BYTES <= dim; i += BYTES) {
            words q;
            memcpy(&q, query + i, sizeof q);
            q ^= flip;
            memcpy(flipped, &q, sizeof q);
            add(true, flipped, rows + i, ones, &p);
        }
        if (dim % BYTES) {
            copy_rest(dim, 0, rows, rest);
            add(true, q_rest, rest, ones, &p);
        }
        out[r] = 2 * sum_of(p.high) + sum_of(p.low) + OFFSET * (2 * sum_of(p.row_high) + sum_of(p.row_low));
    }
}

/* How many bits differ. */
static void hamming(int64_t n, int64_t bytes, const uint8_t *q, const uint8_t *rows, int32_t *out)
{
    for (int64_t r = 0; r < n; r++, rows += bytes) {
        int64_t i = 0;
        int32_t differ = 0;
        for (uint64_t a, b; i + (int64_t)sizeof a <= bytes; i += (int64_t)sizeof a) {
            memcpy(&a, q + i, sizeof a);
            memcpy(&b, rows + i, sizeof b);
            differ += __builtin_popcountll(a ^ b);
        }
        for (; i < bytes; i++)
            differ += __builtin_popcount((unsigned)(q[i] ^ rows[i]));
        out[r] = differ;
    }
}

void ATTEND_ISA(att_kernel_codes)(att_kernels *k);
void ATTEND_ISA(att_kernel_codes)(att_kernels *k)
{
    k->codes.products_signed = products_signed;
    k->codes.products_unsigned = products_unsigned;
    k->codes.hamming = hamming;
}
