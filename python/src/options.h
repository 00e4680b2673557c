/* Options of the library from dicts: a table has the names of a struct's fields, and where they are. */
#ifndef ATT_PYTHON_OPTIONS_H
#define ATT_PYTHON_OPTIONS_H

#include "module.h"

typedef enum option_type {
    OPTION_INTEGER,  /* int64_t */
    OPTION_UNSIGNED, /* uint64_t */
    OPTION_DOUBLE,
    OPTION_FLOAT,
    OPTION_BOOL,
    OPTION_TEXT, /* const char *, of a str or a path */
    OPTION_WORD  /* an enum, by the words of its values */
} option_type;

typedef struct option_field {
    const char *name; /* NULL: the end */
    option_type type;
    size_t offset;
    const char *const *words; /* [up to NULL] */
} option_field;

#define OPTION(type, struct_, field)                                                                                   \
    {                                                                                                                  \
#field, OPTION_##type, offsetof(struct_, field), NULL                                                          \
    }
#define OPTION_OF(struct_, field, words)                                                                               \
    {                                                                                                                  \
#field, OPTION_WORD, offsetof(struct_, field), words                                                           \
    }

/* Sets the fields of a dict whose value is not None. held: a list that gets what owns the texts. false with an
 * exception: a value of another type or word, or a name that is not in the table */
bool options_read(module_state *state, PyObject *dict, const option_field *fields, void *options, PyObject *held);

#endif
