/* What the writers of quantized blocks share: quantize.c has those of 32 numbers, quantize_k.c those of 256. */
#ifndef ATT_TENSOR_QUANTIZE_H
#define ATT_TENSOR_QUANTIZE_H

#include <stdint.h>

/* Writes x as f16. */
void att_write_half(float x, uint8_t *at);
/* Returns d, or NaN if one of x [n] is not finite. */
float att_finite_or_nan(int n, const float *x, float d);

/* Write x [256] as a block. */
void att_write_q4_k(const float *x, uint8_t *block);
void att_write_q5_k(const float *x, uint8_t *block);
void att_write_q6_k(const float *x, uint8_t *block);

#endif
