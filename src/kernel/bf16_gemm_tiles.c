/* The matrix product of pairs of bf16 in AMX tiles: see bf16_gemm_tiles.h. */
// only: amx
#include "simd/simd.h"

#include "kernel/bf16_gemm_tiles.h"

_Static_assert(BLOCK == ATT_PANEL_VECTORS * ATT_LANES, "a panel is two tiles wide");

void ATTEND_ISA(att_kernel_bf16_gemm_tiles)(att_kernels *k);
void ATTEND_ISA(att_kernel_bf16_gemm_tiles)(att_kernels *k)
{
    k->bf16_gemm_tiles = (att_bf16_gemm_kernels){BLOCK, EDGE, panels_for, multiply};
}
