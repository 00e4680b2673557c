/* The machine's limits: multiply-adds in registers, and reading memory. */
#include "kernel/kernel.h"
#include "simd/simd.h"

/* Independent sums: at least (units x cycles of one multiply-add), and fewer than there are registers, 32 in sets with
 * large tiles. */
enum { CHAINS = ATT_PANEL_VECTORS * ATT_TILE_ROWS < 16 ? 12 : 16, ROUNDS = 4 };

/* Computes `repeats` rounds of ROUNDS multiply-adds for each chain. Sums stay near 1, so there are no denormals and no
 * overflow. */
static double peak(int64_t repeats, double *flops)
{
    const volatile float half = 0.5f; /* unknown to the compiler, which would compute ahead */
    const vf factor = v_set(half), addend = v_set(half);
    vf sum[CHAINS];
    ATT_UNROLL (c, CHAINS)
        sum[c] = v_set(half + (float)c);
    for (int64_t r = 0; r < repeats; r++) {
        ATT_UNROLL (u, ROUNDS) {
            ATT_UNROLL (c, CHAINS)
                sum[c] = v_fma(sum[c], factor, addend);
        }
    }
    double all = 0;
    ATT_UNROLL (c, CHAINS)
        all += (double)v_sum(sum[c]);
    *flops = 2.0 * ATT_LANES * CHAINS * ROUNDS * (double)repeats;
    return all;
}

/* Sums vector by vector in eight streams, and the rest one by one. */
static double read(int64_t n, const float *x)
{
    enum { SUMS = 8 };
    vf sum[SUMS];
    ATT_UNROLL (s, SUMS)
        sum[s] = v_set(0.0f);
    int64_t i = 0;
    for (; i + SUMS * ATT_LANES <= n; i += SUMS * ATT_LANES) {
        ATT_UNROLL (s, SUMS)
            sum[s] = v_add(sum[s], v_load(x + i + s * ATT_LANES));
    }
    double all = 0;
    ATT_UNROLL (s, SUMS)
        all += (double)v_sum(sum[s]);
    for (; i < n; i++)
        all += (double)x[i];
    return all;
}

void ATTEND_ISA(att_kernel_peak)(att_kernels *k)
{
    k->measure.peak = peak;
    k->measure.read = read;
}
