/* Shared by the reader and the writer of .safetensors. */
#ifndef ATT_IO_SAFETENSORS_H
#define ATT_IO_SAFETENSORS_H

#include "attend_model.h"
#include "attend_util.h"
#include "io/file.h"
#include "io/progress.h"

enum { ATT_MAX_SAFETENSORS_HEADER = 100 * 1000 * 1000 };

/* Returns the format's name of a type: "BF16"; NULL: no such type. */
const char *att_safetensors_type(att_dtype t);

/* Returns which memory of the file has p, if any. */
att_memory att_safetensors_memory(const att_safetensors *f, const void *p);

/* Writes a file as att_safetensors_write does, but inside a folder: a symbolic link is replaced, not followed. */
att_status att_safetensors_write_in_folder(att_ctx *ctx, const char *path, int64_t n, const char *const *names,
                                           const att_tensor *tensors, const att_safetensors_options *options);
/* Writes a file inside a folder, and converts all tensors of floating-point and quantized types to options.dtype.
 * `source` is where they are from, for errors; progress: in numbers. Errors: a finite number that is too large for this
 * type; those of the progress. */
att_status att_safetensors_convert(att_ctx *ctx, const char *path, int64_t n, const char *const *names,
                                   const att_tensor *tensors, const att_safetensors_options *options,
                                   const char *source, att_progress *progress);

#endif
