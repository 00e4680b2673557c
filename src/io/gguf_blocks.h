/* Blocks of types that attend reads but does not multiply: the K-quants and others of llama.cpp, unpacked to floats. */
#ifndef ATT_IO_GGUF_BLOCKS_H
#define ATT_IO_GGUF_BLOCKS_H

#include "io/gguf_types.h"

/* Returns whether a type of the file, by its number, has such blocks. */
bool att_gguf_is_packed(int type);
/* Unpacks blocks of such a type -> out [count * numbers in a block], with the bits of the package gguf. */
void att_gguf_unpack(const att_gguf_type *type, int64_t count, const void *blocks, float *out);

#endif
