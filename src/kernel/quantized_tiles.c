/* The product of quantized rows and columns in AMX tiles: see quantized_tiles.h. */
// only: amx
#include "simd/simd.h"

#include "kernel/quantized_tiles.h"

void ATTEND_ISA(att_kernel_quantized_tiles)(att_kernels *k);
void ATTEND_ISA(att_kernel_quantized_tiles)(att_kernels *k) { k->quantized.run_tiles = multiply; }
