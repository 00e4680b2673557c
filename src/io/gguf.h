/* The .gguf format of llama.cpp: metadata and tensors, which may be quantized. A file is mapped into memory and
 * validated completely before any of its content is used. */
#ifndef ATT_IO_GGUF_H
#define ATT_IO_GGUF_H

#include "io/bytes.h"
#include "io/file.h"

typedef struct att_gguf att_gguf;

typedef struct att_gguf_tensor {
    const char *name;          /* zero-terminated */
    const char *type_name;     /* "Q4_1" */
    int rank;                  /* 1 to ATT_MAX_RANK */
    int64_t dim[ATT_MAX_RANK]; /* the last one is contiguous, unlike in the file, which has them in reverse */
    int64_t elements, bytes;
    const void *data; /* [bytes] */
    int type;         /* the file's number */
} att_gguf_tensor;

/* Returns whether a name ends in ".gguf", in letters of either case. */
bool att_is_gguf_name(const char *name);
/* Returns whether two paths are those of parts of one model: NAME-00001-of-00003.gguf. a and b may be equal. */
bool att_gguf_is_part_of_same(const char *a, const char *b);
/* Finds the .gguf file of a model -> file: path itself, or the only one, or the first part, of the folder `path` that
 * has no file `instead`; "" if the model has another format. Errors: several. (gguf_path.c) */
att_status att_gguf_path(att_ctx *ctx, const char *path, const char *instead, char file[ATT_MAX_PATH]);

/* Opens a file, and the others if it is the first part of a model in several (gguf_parts.c). Errors: a file that is not
 * GGUF, or of a version other than 2 and 3; a tensor or value that lies outside the file, overlaps another, or occurs
 * twice; a tensor of an unsupported type (the message names it); another part than the first; parts that are missing or
 * do not belong together. */
att_status att_gguf_open(att_ctx *ctx, const char *path, att_gguf **out);
/* Opens one file in memory (not copied, 8-byte aligned); `label` is the path in messages. */
att_status att_gguf_from_memory(att_ctx *ctx, const char *label, const void *data, size_t bytes, att_gguf **out);
void att_gguf_free(att_gguf *g);

/* Returns which memory of the file has p, if any. */
att_memory att_gguf_memory(const att_gguf *g, const void *p);

/* Returns the path, for messages. */
const char *att_gguf_label(const att_gguf *g);

/* ---- metadata: the first error stays, and later values are zero, so reading code needs no checks */

att_status att_gguf_error(const att_gguf *g);
void att_gguf_fail(att_gguf *g, att_status s, const char *format, ...) ATT_PRINTF(3, 4);
bool att_gguf_has(const att_gguf *g, const char *key);
/* Returns a required integer in [min, max]. */
int64_t att_gguf_int(att_gguf *g, const char *key, int64_t min, int64_t max);
/* Return a value, or `otherwise` if there is none; a text with `otherwise` NULL is required. The text is
 * zero-terminated. */
double att_gguf_number(att_gguf *g, const char *key, double otherwise);
bool att_gguf_bool(att_gguf *g, const char *key, bool otherwise);
const char *att_gguf_text(att_gguf *g, const char *key, const char *otherwise);
/* Returns the number of items of a list of texts, or of numbers; 0 if there is none. */
int64_t att_gguf_texts(att_gguf *g, const char *key);
int64_t att_gguf_numbers(att_gguf *g, const char *key);
/* Copy the items: text [n], which are not zero-terminated, or number [n]. */
void att_gguf_get_texts(att_gguf *g, const char *key, att_byte_view *text, int64_t n);
/* Returns item i alone; empty if there is none. */
void att_gguf_get_text(att_gguf *g, const char *key, int64_t i, att_byte_view *text);
void att_gguf_get_numbers(att_gguf *g, const char *key, double *number, int64_t n);
/* Copies value i in the order of the keys, as it is in the file, with its type -> *raw; returns its key. NULL: there
 * are only i values. */
const char *att_gguf_raw(const att_gguf *g, int64_t i, att_byte_view *raw);

/* ---- tensors */

int64_t att_gguf_count(const att_gguf *g);
const att_gguf_tensor *att_gguf_at(const att_gguf *g, int64_t i);
/* Finds a tensor; NULL: there is none with that name. */
const att_gguf_tensor *att_gguf_find(const att_gguf *g, const char *name);
/* Makes a view of the tensor, in its type. */
att_status att_gguf_view(const att_gguf_tensor *t, att_tensor *out);

#endif
