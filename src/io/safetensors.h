/* What reading and writing .safetensors share. */
#ifndef ATT_IO_SAFETENSORS_H
#define ATT_IO_SAFETENSORS_H

#include "attend_model.h"
#include "attend_util.h"

enum { ATT_MAX_SAFETENSORS_HEADER = 100 * 1000 * 1000 };

/* Our type by the format's name: "BF16"; NULL: it is no type. */
const char *att_safetensors_type(att_dtype t);

/* att_safetensors_write for a file of a folder: a symbolic link there is replaced, not followed. */
att_status att_safetensors_write_in_folder(att_ctx *ctx, const char *path, int64_t n, const char *const *names,
                                           const att_tensor *tensors, const att_safetensors_options *options);

#endif
