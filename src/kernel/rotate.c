/* Rotates pairs of numbers, each by its own angle. */
#include "kernel/kernel.h"
#include "simd/simd.h"

ATT_INLINE void rotate_vectors(int64_t pairs, int used, vf direction, const float *x, const float *sine,
                               const float *cosine, float *y)
{
    const vf a = v_load_n(x, used), b = v_load_n(x + pairs, used);
    const vf s = v_mul(direction, v_load_n(sine, used)), c = v_load_n(cosine, used);
    v_store_n(y, v_sub(v_mul(a, c), v_mul(b, s)), used);
    v_store_n(y + pairs, v_fma(a, s, v_mul(b, c)), used);
}

/* Rotates pairs x[i] and x[pairs + i]. */
static void rotate_halves(int64_t pairs, float direction, const float *x, const float *sine, const float *cosine,
                          float *y)
{
    int64_t i = 0;
    for (; i + ATT_LANES <= pairs; i += ATT_LANES)
        rotate_vectors(pairs, ATT_LANES, v_set(direction), x + i, sine + i, cosine + i, y + i);
    if (i < pairs)
        rotate_vectors(pairs, (int)(pairs - i), v_set(direction), x + i, sine + i, cosine + i, y + i);
}

/* Rotates pairs x[2 i] and x[2 i + 1]; no vector has the members of a pair in two vectors. */
static void rotate_neighbors(int64_t pairs, float direction, const float *x, const float *sine, const float *cosine,
                             float *y)
{
    for (int64_t i = 0; i < pairs; i++) {
        const float a = x[2 * i], b = x[2 * i + 1], s = direction * sine[i], c = cosine[i];
        y[2 * i] = a * c - b * s;
        y[2 * i + 1] = a * s + b * c;
    }
}

void ATTEND_ISA(att_kernel_rotate)(att_kernels *k);
void ATTEND_ISA(att_kernel_rotate)(att_kernels *k)
{
    k->layer.rotate_halves = rotate_halves;
    k->layer.rotate_pairs = rotate_neighbors;
}
