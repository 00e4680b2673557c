/* Writes tensors to a file, converted in parts: no copy of a whole tensor is made. */
#ifndef ATT_IO_TENSOR_WRITE_H
#define ATT_IO_TENSOR_WRITE_H

#include "io/atomic_write.h"
#include "io/progress.h"

typedef struct att_tensor_writer {
    att_replace *file;  /* has the first error */
    const char *source; /* where the tensors are from, for errors; NULL: a number that is too large becomes infinite */
    att_progress *progress; /* counts numbers; or NULL */
    char *chunk;            /* [ATT_TENSOR_CHUNK], by att_tensor_writer_init */
} att_tensor_writer;

enum { ATT_TENSOR_CHUNK = 4 << 20 }; /* bytes converted at once */

att_status att_tensor_writer_init(att_tensor_writer *w, att_replace *file, const char *source, att_progress *progress);
void att_tensor_writer_free(att_tensor_writer *w);
/* Writes a tensor of any strides as dense numbers of dtype, whose rows are then in whole blocks; `name` is for errors.
 * Errors: with a source, a finite number that dtype does not have; those of the progress. */
void att_tensor_writer_put(att_tensor_writer *w, const char *name, const att_tensor *t, att_dtype dtype);

#endif
