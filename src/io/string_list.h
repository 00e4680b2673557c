/* A growing list of texts. */
#ifndef ATT_IO_STRING_LIST_H
#define ATT_IO_STRING_LIST_H

#include "io/bytes.h"

/* Zero-terminated texts, one after another. */
typedef struct att_names {
    att_bytes text;
    size_t *start; /* [n] */
    size_t n, room;
} att_names;

/* Adds a name [bytes], which need not be zero-terminated. */
att_status att_names_add_bytes(att_names *names, const char *name, size_t bytes);
att_status att_names_add(att_names *names, const char *name);
static inline const char *att_names_at(const att_names *names, int64_t i) { return names->text.data + names->start[i]; }
void att_names_free(att_names *names);

#endif
