/* Products of bf16 numbers, summed in f32. Sets that multiply pairs take the numbers as they are, others convert. */
// also: avx512bf16
#include "kernel/kernel.h"
#include "simd/simd.h"

#include <string.h>

enum { STEP = 2 * ATT_LANES };

/* sum + a b, for a [STEP] and b [STEP] */
ATT_INLINE vf add_products(vf sum, const uint16_t *a, const uint16_t *b)
{
#ifdef ATT_DOT2_BF16
    return v_dot2_bf16(sum, v_load_bf16(a), v_load_bf16(b));
#else
    sum = v_fma(v_from_bf16(a), v_from_bf16(b), sum);
    return v_fma(v_from_bf16(a + ATT_LANES), v_from_bf16(b + ATT_LANES), sum);
#endif
}

static float dot_bf16(int64_t n, const uint16_t *a, const uint16_t *b)
{
    vf s0 = v_set(0), s1 = s0, s2 = s0, s3 = s0;
    int64_t i = 0;
    for (; i + 4 * STEP <= n; i += 4 * STEP) {
        s0 = add_products(s0, a + i, b + i);
        s1 = add_products(s1, a + i + STEP, b + i + STEP);
        s2 = add_products(s2, a + i + 2 * STEP, b + i + 2 * STEP);
        s3 = add_products(s3, a + i + 3 * STEP, b + i + 3 * STEP);
    }
    for (; i + STEP <= n; i += STEP)
        s0 = add_products(s0, a + i, b + i);
    if (i < n) {
        uint16_t rest[2][STEP] = {0};
        memcpy(rest[0], a + i, (size_t)(n - i) * sizeof *a);
        memcpy(rest[1], b + i, (size_t)(n - i) * sizeof *b);
        s1 = add_products(s1, rest[0], rest[1]);
    }
    return v_sum(v_add(v_add(s0, s1), v_add(s2, s3)));
}

void ATT_ISA(att_kernel_bf16)(att_kernels *k);
void ATT_ISA(att_kernel_bf16)(att_kernels *k) { k->dot_bf16 = dot_bf16; }
