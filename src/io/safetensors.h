/* Shared by the reader and the writer of .safetensors. */
#ifndef ATT_IO_SAFETENSORS_H
#define ATT_IO_SAFETENSORS_H

#include "attend_model.h"
#include "attend_util.h"
#include "io/file.h"
#include "io/progress.h"

enum { ATT_MAX_SAFETENSORS_HEADER = 100 * 1000 * 1000 };

/* The format's name of a type: "BF16"; NULL: no such type. */
const char *att_safetensors_type(att_dtype t);

/* Whose memory p is in, if it is in the file */
att_memory att_safetensors_memory(const att_safetensors *f, const void *p);

/* Like att_safetensors_write, but for a file inside a folder: a symbolic link is replaced, not followed. */
att_status att_safetensors_write_in_folder(att_ctx *ctx, const char *path, int64_t n, const char *const *names,
                                           const att_tensor *tensors, const att_safetensors_options *options);
/* Writes a file inside a folder, and converts all tensors of floating-point and quantized types to options.dtype.
 * `source` is where they are from, for errors; progress: in numbers. Errors: a finite number that this type does not
 * have; the progress's. */
att_status att_safetensors_convert(att_ctx *ctx, const char *path, int64_t n, const char *const *names,
                                   const att_tensor *tensors, const att_safetensors_options *options,
                                   const char *source, att_progress *progress);

#endif
