/* Arrow's C data interface: the structs of its specification (Apache Arrow, "The Arrow C data interface"), which fixes
 * their layout. */
#ifndef ATT_PYTHON_ARROW_H
#define ATT_PYTHON_ARROW_H

#include "module.h"

enum { ARROW_NULLABLE = 2 }; /* a flag */
typedef struct arrow_schema {
    const char *format, *name, *metadata;
    int64_t flags, n_children;
    struct arrow_schema **children, *dictionary;
    void (*release)(struct arrow_schema *self); /* NULL: released */
    void *manager;
} arrow_schema;

typedef struct arrow_array {
    int64_t length, null_count, offset, n_buffers, n_children;
    const void **buffers;
    struct arrow_array **children, *dictionary;
    void (*release)(struct arrow_array *self); /* NULL: released */
    void *manager;
} arrow_array;

typedef struct arrow_stream {
    int (*get_schema)(struct arrow_stream *self, arrow_schema *out);
    int (*get_next)(struct arrow_stream *self, arrow_array *out);
    const char *(*get_last_error)(struct arrow_stream *self);
    void (*release)(struct arrow_stream *self);
    void *manager;
} arrow_stream;

/* What an object exports: arrays of one type */
typedef struct arrow_chunks {
    const arrow_schema *schema;
    const arrow_array **chunk; /* [n] */
    int64_t n;
    /* private */
    arrow_schema of_stream; /* released with the chunks, as are these */
    arrow_array *streamed;  /* [n_streamed] */
    int64_t n_streamed;
    PyObject *capsules; /* own the rest */
} arrow_chunks;

/* Has the object Arrow's PyCapsule interface? */
bool arrow_is(PyObject *object);
/* Reads an array or all arrays of a stream, in place. false with an exception; arrow_release is to be called anyhow. */
bool arrow_read(module_state *state, PyObject *object, const char *name, arrow_chunks *out);
void arrow_release(arrow_chunks *chunks);

/* ---- cells */

/* How the strings of an array lie: by 32-bit or 64-bit offsets, as views, or by number in a dictionary of these */
typedef enum arrow_layout { ARROW_OFFSETS, ARROW_LARGE_OFFSETS, ARROW_VIEWS } arrow_layout;
typedef struct arrow_strings {
    arrow_layout layout;
    char index; /* format of the numbers of a dictionary, or 0: there is none */
} arrow_strings;
typedef struct arrow_slice {
    const char *text; /* NULL: a null */
    int64_t bytes;    /* -1: the array is damaged */
} arrow_slice;

/* Is the type one of strings? */
bool arrow_strings_of(const arrow_schema *s, arrow_strings *out);
/* Has it the buffers of its type? Those of an array without rows may be missing. */
bool arrow_is_sound(const arrow_array *a, arrow_strings type);
/* The string of row i, after the array's offset */
arrow_slice arrow_string_at(const arrow_array *a, arrow_strings type, int64_t i);
/* Is the cell at i, the array's offset included, null? */
bool arrow_is_null(const arrow_array *a, int64_t i);
/* The integer at p of a format, c C s S i I l L; one of L that does not fit is negative */
int64_t arrow_integer(const void *p, char format);

#endif
