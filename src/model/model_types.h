/* The values of "model_type" in config.json that models open. */
#ifndef ATT_MODEL_MODEL_TYPES_H
#define ATT_MODEL_MODEL_TYPES_H

#include "io/settings.h"

#include <stddef.h>

/* A table whose rows begin with a type, a const char *, so that each type is listed once, with the settings that depend
 * on it. */
typedef struct att_model_types {
    const void *rows;
    size_t row_bytes;
    int64_t n;
} att_model_types;
/* clang-format off */
#define ATT_MODEL_TYPES(table) {(table), sizeof (table)[0], sizeof (table) / sizeof (table)[0]}
/* clang-format on */

/* Returns type i; NULL: out of range. */
const char *att_model_type_at(const att_model_types *types, int64_t i);
/* Returns the row of a type; NULL: none. */
const void *att_model_type_find(const att_model_types *types, const char *type);
/* Returns which of the lists, up to NULL, has the type that the required setting "model_type" is; -1: s has failed,
 * with a message that names all types. purpose: for that message, " for embeddings of sentences", or "". */
int att_model_type_choose(att_settings *s, const att_model_types *const *lists, const char *purpose);

#endif
