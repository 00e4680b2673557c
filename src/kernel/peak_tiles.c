/* The machine's limits on AMX tiles: see peak_tiles.h. */
// only: amx
#include "kernel/kernel.h"
#include "simd/simd.h"

#include "kernel/peak_tiles.h"

void ATTEND_ISA(att_kernel_peak_tiles)(att_kernels *k);
void ATTEND_ISA(att_kernel_peak_tiles)(att_kernels *k)
{
    k->measure.peak_bf16_tiles = peak_of_bf16;
    k->measure.peak_int8_tiles = peak_of_int8;
}
