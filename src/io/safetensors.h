/* What reading and writing .safetensors share. */
#ifndef ATT_IO_SAFETENSORS_H
#define ATT_IO_SAFETENSORS_H

#include "attend_model.h"

enum { ATT_MAX_SAFETENSORS_HEADER = 100 * 1000 * 1000 };

/* Our type by the format's name: "BF16"; NULL: it is no type. */
const char *att_safetensors_type(att_dtype t);

#endif
