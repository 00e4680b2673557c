/* The machine's limits on vectors of words: of pairs of bf16 (AVX512-BF16), and of fours of int8 (VNNI). */
// only: avx512bf16
#include "kernel/kernel.h"
#include "kernel/peak_words.h"
#include "simd/simd.h"

#include <string.h>

enum { CHAINS = 16, ROUNDS = 4 }; /* as in peak.c */

/* Computes `repeats` rounds of ROUNDS multiply-adds of words for each chain. Returns the sums' bits. */
ATT_INLINE double chains(vf multiply_add(vf a, vf b, vf sum), peak_words kind, int64_t repeats)
{
    uint32_t words[2 * ATT_LANES], bits[ATT_LANES], all = 0;
    float numbers[2 * ATT_LANES];
    vf sum[CHAINS];
    peak_fill(kind, 2 * ATT_LANES, words);
    memcpy(numbers, words, sizeof numbers);
    const vf a = v_load(numbers), b = v_load(numbers + ATT_LANES);
    ATT_UNROLL (c, CHAINS)
        sum[c] = v_set(0);
    for (int64_t r = 0; r < repeats; r++) {
        ATT_UNROLL (u, ROUNDS) {
            ATT_UNROLL (c, CHAINS)
                sum[c] = multiply_add(a, b, v_keep(sum[c]));
        }
    }
    ATT_UNROLL (c, CHAINS) {
        v_store(numbers, sum[c]);
        memcpy(bits, numbers, sizeof bits);
        for (int i = 0; i < ATT_LANES; i++)
            all ^= bits[i];
    }
    return all;
}

static double peak_of_bf16(int64_t repeats, double *operations)
{
    *operations = 2.0 * 2 * ATT_LANES * CHAINS * ROUNDS * (double)repeats;
    return chains(v_dot2_words, peak_bf16_words, repeats);
}

static double peak_of_int8(int64_t repeats, double *operations)
{
    *operations = 2.0 * 4 * ATT_LANES * CHAINS * ROUNDS * (double)repeats;
    return chains(v_dot4_onto, peak_int8_words, repeats);
}

void ATTEND_ISA(att_kernel_peak_words)(att_kernels *k);
void ATTEND_ISA(att_kernel_peak_words)(att_kernels *k)
{
    k->measure.peak_bf16 = peak_of_bf16;
    k->measure.peak_int8 = peak_of_int8;
}
