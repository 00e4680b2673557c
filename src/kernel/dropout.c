/* Dropout of attention weights: decides which pairs of a query and a key are kept, and drops the others.
 *
 * Whether a pair is kept depends only on the seed, the caller's sequence id, the head, and the positions of query and
 * key (att_dropout_keep, in reference.c, defines it), not on threads, batch, blocks or instruction set. One counter of
 * Philox serves four keys of a query. Vectors of queries are processed as numbers of 64 bits, which hold the products
 * of a round exactly. */
#include "kernel/kernel.h"
#include "kernel/philox.h"
#include "kernel/tile.h"

enum { HALVES = 2 * ATT_PANEL_VECTORS }; /* the queries of a panel, as vectors of 64-bit numbers */

/* The round keys. */
typedef struct schedule {
    uint32_t key[ATT_PHILOX_ROUNDS][2];
} schedule;

static schedule schedule_of(uint64_t seed)
{
    schedule s;
    for (uint32_t r = 0; r < ATT_PHILOX_ROUNDS; r++) {
        s.key[r][0] = (uint32_t)seed + r * att_philox_key_step[0];
        s.key[r][1] = (uint32_t)(seed >> 32) + r * att_philox_key_step[1];
    }
    return s;
}

/* The part of the first three rounds that depends only on the query. No product mixes the query with the key before the
 * third round: until then one number for each query, and one for each group of keys, is enough. */
typedef struct columns {
    vw x0[HALVES], x2[HALVES], x2_late[HALVES], x3[HALVES];
} columns;

ATT_INLINE void start_columns(const int halves, const att_dropout_mask *d, const schedule *s, uint32_t q0, columns *c)
{
    const vw m0 = w_set(att_philox_multiplier[0]), m1 = w_set(att_philox_multiplier[1]);
    const uint64_t head = (uint64_t)att_philox_multiplier[1] * d->head;
    uint32_t q[PANEL];
    vw at[HALVES];
    for (uint32_t i = 0; i < PANEL; i++)
        q[i] = q0 + i;
    ATT_UNROLL (v, halves / 2)
        w_widen(q + v * ATT_LANES, at + 2 * v);
    ATT_UNROLL (h, halves) {
        const vw first = w_mul(at[h], m0);                                                       /* round 1 */
        const vw second = w_mul(w_xor(w_high(first), w_set(d->sequence ^ s->key[0][1])), m1);    /* round 2 */
        const vw third = w_mul(w_xor(w_high(second), w_set((uint32_t)head ^ s->key[1][0])), m0); /* round 3 */
        c->x2[h] = w_xor(first, w_set(s->key[1][1]));
        c->x0[h] = w_xor(second, w_set(s->key[2][0]));
        c->x2_late[h] = w_xor(w_high(third), w_set(s->key[2][1]));
        c->x3[h] = third;
    }
}

/* Computes bits of the four keys of a group. */
ATT_INLINE void keep_group(const int halves, const att_dropout_mask *d, const schedule *s, const columns *c,
                           uint32_t group, uint64_t bits[4])
{
    const vw m0 = w_set(att_philox_multiplier[0]), m1 = w_set(att_philox_multiplier[1]);
    const uint64_t head = (uint64_t)att_philox_multiplier[1] * d->head;
    const uint64_t keys = (uint64_t)att_philox_multiplier[0] * ((uint32_t)(head >> 32) ^ group ^ s->key[0][0]);
    vw x[4][HALVES];
    ATT_UNROLL (h, halves) {
        const vw second = w_mul(w_xor(c->x2[h], w_set(keys >> 32)), m1);
        x[0][h] = w_xor(w_high(second), c->x0[h]);
        x[1][h] = second;
        x[2][h] = w_xor(c->x2_late[h], w_set((uint32_t)keys));
        x[3][h] = c->x3[h];
    }
    ATT_UNROLL (r, ATT_PHILOX_ROUNDS - 3)
        ATT_UNROLL (h, halves) {
            const vw first = w_mul(x[0][h], m0), second = w_mul(x[2][h], m1);
            x[0][h] = w_xor(w_xor(w_high(second), x[1][h]), w_set(s->key[r + 3][0]));
            x[1][h] = second;
            x[2][h] = w_xor(w_xor(w_high(first), x[3][h]), w_set(s->key[r + 3][1]));
            x[3][h] = first;
        }
    ATT_UNROLL (k, 4) {
        bits[k] = 0;
        ATT_UNROLL (v, halves / 2)
            bits[k] |= (uint64_t)w_at_least(x[k] + 2 * v, d->threshold) << (v * ATT_LANES);
    }
}

ATT_INLINE void keep_as(const int halves, const att_dropout_mask *d, uint32_t q0, uint32_t k0, int64_t keys,
                        uint64_t *bits)
{
    const schedule s = schedule_of(d->seed);
    columns c;
    start_columns(halves, d, &s, q0, &c);
    for (int64_t k = 0; k < keys; k += 4)
        keep_group(halves, d, &s, &c, (k0 + (uint32_t)k) / 4, bits + k);
}

/* Computes bits [keys, rounded up to whole fours]: bit i of bits[k] states whether query q0 + i keeps key k0 + k, for
 * the first queries of a panel; other bits are undefined. k0 is a multiple of 4. */
static void keep_bits(const att_dropout_mask *d, int queries, uint32_t q0, uint32_t k0, int64_t keys, uint64_t *bits)
{
    if (queries <= ATT_LANES)
        keep_as(2, d, q0, k0, keys, bits);
    else
        keep_as(HALVES, d, q0, k0, keys, bits);
}

/* Multiplies s [keys][PANEL], rows stride apart, by scale where the bit is set, and by 0 elsewhere. */
static void apply_dropout(int64_t keys, const uint64_t *bits, float scale, float *s, int64_t stride)
{
    for (int64_t k = 0; k < keys; k++)
        ATT_UNROLL (v, ATT_PANEL_VECTORS) {
            float *at = s + k * stride + v * ATT_LANES;
            v_store(at, v_pick((uint32_t)(bits[k] >> (v * ATT_LANES)), v_mul(v_load(at), v_set(scale)), v_set(0)));
        }
}

/* Drops elements of x -> y [rows, columns], and adds residual if there is one; at most a panel wide, rows stride
 * apart. */
static void drop_rows(int columns, int64_t rows, const uint64_t *bits, float scale, const float *x,
                      const float *residual, float *y, int64_t stride)
{
    for (int64_t r = 0; r < rows; r++, x += stride, y += stride, residual += residual ? stride : 0)
        for (int i = 0; i < columns; i += ATT_LANES) {
            const int used = columns - i < ATT_LANES ? columns - i : ATT_LANES;
            const vf z = v_pick((uint32_t)(bits[r] >> i), v_mul(v_load_n(x + i, used), v_set(scale)), v_set(0));
            v_store_n(y + i, residual ? v_add(z, v_load_n(residual + i, used)) : z, used);
        }
}

void ATTEND_ISA(att_kernel_dropout)(att_kernels *k);
void ATTEND_ISA(att_kernel_dropout)(att_kernels *k)
{
    k->dropout.mask = keep_bits;
    k->dropout.apply = apply_dropout;
    k->dropout.apply_rows = drop_rows;
}
