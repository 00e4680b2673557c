/* Types of tensors in .gguf files: numbers, or blocks of small integers with a scale. */
#ifndef ATT_IO_GGUF_TYPES_H
#define ATT_IO_GGUF_TYPES_H

#include "io/gguf.h"

typedef struct att_gguf_type {
    const char *name;
    int number; /* in files */
    bool supported;
    att_dtype dtype; /* if it is supported */
} att_gguf_type;

/* Returns a type; NULL: the format has no such type. */
const att_gguf_type *att_gguf_type_of(int number);
/* Returns the file's number of a type that tensors have. */
int att_gguf_type_number(att_dtype dtype);

#endif
