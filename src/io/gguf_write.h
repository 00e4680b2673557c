/* Writes .gguf files: values and tensors are added, then the file is written, whose tensors are converted in parts.
 * After an error nothing is added, so writing code needs no checks. */
#ifndef ATT_IO_GGUF_WRITE_H
#define ATT_IO_GGUF_WRITE_H

#include "io/gguf.h"
#include "io/progress.h"

typedef struct att_gguf_entry {
    const char *name; /* in the file; the caller's */
    att_tensor value; /* [of any dimensions whose elements are the file's in order] any strides, a view */
    int rank;
    int64_t dim[ATT_MAX_RANK]; /* [rank] in the file, the last one contiguous */
    att_dtype dtype;           /* in the file; rows are in whole blocks of it */
} att_gguf_entry;

typedef struct att_gguf_writer {
    att_ctx *ctx;
    att_status status; /* the first error of what was added */
    att_bytes values;
    uint64_t n_values;
    att_gguf_entry *entry; /* [count] */
    size_t count, capacity;
} att_gguf_writer;

/* Writes an integer from 0 to 2^32 - 1 (uint32), a number (float32), and so on. */
void att_gguf_put_int(att_gguf_writer *w, const char *key, int64_t x);
void att_gguf_put_number(att_gguf_writer *w, const char *key, double x);
void att_gguf_put_bool(att_gguf_writer *w, const char *key, bool x);
void att_gguf_put_text(att_gguf_writer *w, const char *key, const char *text);
/* Write lists of n items: texts, int32, float32. */
void att_gguf_put_texts(att_gguf_writer *w, const char *key, const att_byte_view *text, int64_t n);
void att_gguf_put_ints(att_gguf_writer *w, const char *key, const int32_t *x, int64_t n);
void att_gguf_put_numbers(att_gguf_writer *w, const char *key, const float *x, int64_t n);
/* Writes the type and the value as another file has them (att_gguf_raw). */
void att_gguf_put_raw(att_gguf_writer *w, const char *key, att_byte_view raw);
void att_gguf_put_tensor(att_gguf_writer *w, const att_gguf_entry *entry);

/* Replaces the file `path`, which is unchanged after an error. progress: its `all` is set here. source: where the
 * tensors are from, for errors. check is called with the complete file under its temporary name. Errors: those of w, of
 * att_tensor_writer_put and of check. */
att_status att_gguf_writer_save(att_gguf_writer *w, const char *path, const char *source, att_progress *progress,
                                att_status (*check)(void *user, const char *path), void *user);
void att_gguf_writer_free(att_gguf_writer *w);

#endif
