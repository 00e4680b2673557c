/* Arrow's C data interface: the structs of its specification (Apache Arrow, "The Arrow C data interface"), which fixes
 * their layout. */
#ifndef ATT_PYTHON_ARROW_H
#define ATT_PYTHON_ARROW_H

#include <stdint.h>

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

#endif
