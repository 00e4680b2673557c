/* Quantizes rows of A for products with quantized blocks (quantized.c): x = s p, with integers p in [-127, 127] and s
 * those of a block of 32. */
#include "kernel/kernel.h"
#include "simd/simd.h"
#include "util/util.h"

#include <math.h>
#include <string.h>

enum { BLOCK = ATT_QUANTIZED_BLOCK, WORDS = BLOCK / 4 };
static const float levels = 127;
/* If a block's largest number is below this, all its numbers count as 0; 127 divided by it is finite. */
static const float smallest = 0x1p-118f;

/* Returns the maxima or the sums of the lanes of t[0], t[1], ... */
ATT_INLINE vf across(const bool maxima, const vf t[ATT_LANES])
{
    vf y[2 * ATT_LANES]; /* number LANES + i is made of numbers 2 i and 2 i + 1 */
    ATT_UNROLL (i, ATT_LANES)
        y[i] = t[i];
    v_transpose(y);
    ATT_UNROLL (i, ATT_LANES - 1)
        y[ATT_LANES + i] = maxima ? v_max(y[2 * i], y[2 * i + 1]) : v_add(y[2 * i], y[2 * i + 1]);
    return y[2 * ATT_LANES - 2];
}

/* Returns the largest |x| of each of n blocks, at least 0, or infinity if one of its numbers is not finite. */
ATT_INLINE vf largest(int n, const float *x)
{
    vf t[ATT_LANES];
    for (int b = 0; b < n; b++, x += BLOCK) {
        vf max = v_set(0), zero = v_set(0);
        ATT_UNROLL (i, BLOCK / ATT_LANES) {
            const vf y = v_load(x + i * ATT_LANES);
            max = v_max(v_abs(y), max);
            zero = v_fma(y, v_set(0), zero);
        }
        t[b] = v_select(v_is_nan(zero), v_set(INFINITY), max);
    }
    for (int b = n; b < ATT_LANES; b++)
        t[b] = v_set(0);
    return across(true, t);
}

/* Rounds n blocks times scale to words; those of a block of scale 0 are 0. Returns the sums of their numbers: exact, at
 * most 32 * 127. */
ATT_INLINE vf round_blocks(int n, const float *x, const float scale[ATT_LANES], float *words)
{
    vf t[ATT_LANES];
    for (int b = 0; b < n; b++, x += BLOCK, words += WORDS) {
        t[b] = v_set(0);
        if (!(scale[b] > 0)) {
            memset(words, 0, BLOCK);
            continue;
        }
        ATT_UNROLL (i, BLOCK / ATT_LANES) {
            const vf whole = v_round(v_mul(v_load(x + i * ATT_LANES), v_set(scale[b])));
            v_store_int8((int8_t *)words + i * ATT_LANES, whole);
            t[b] = v_add(t[b], whole);
        }
    }
    for (int b = n; b < ATT_LANES; b++)
        t[b] = v_set(0);
    return across(false, t);
}

static void quantize(int64_t k, const float *x, float *words, float *step, float *sum)
{
    for (int64_t left = k / BLOCK; left > 0; left -= ATT_LANES) {
        const int n = (int)att_min(left, ATT_LANES);
        const vf max = largest(n, x), zero = v_set(0), finite = v_select(v_lt(max, v_set(INFINITY)), max, zero);
        const vf scales = v_select(v_lt(finite, v_set(smallest)), zero, v_div(v_set(levels), max));
        float scale[ATT_LANES];
        v_store(scale, scales);
        /* Infinity times 0 is NaN. */
        v_store_n(step, v_select(v_lt(zero, scales), v_div(max, v_set(levels)), v_mul(max, zero)), n);
        v_store_n(sum, round_blocks(n, x, scale, words), n);
        x += n * BLOCK;
        words += n * WORDS;
        step += n;
        sum += n;
    }
}

void ATTEND_ISA(att_kernel_quantize_rows)(att_kernels *k);
void ATTEND_ISA(att_kernel_quantize_rows)(att_kernels *k) { k->quantized.quantize = quantize; }
