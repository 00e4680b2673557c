/* Columns of a table, read cell by cell where they lie: no copy, and no object of Python for each cell. */
#ifndef ATT_PYTHON_COLUMNS_H
#define ATT_PYTHON_COLUMNS_H

#include "arrow.h"
#include "attend_text.h"

typedef enum column_kind {
    COLUMN_STRINGS, /* of Arrow */
    COLUMN_NUMBERS, /* of Arrow or of a buffer */
    COLUMN_OBJECTS  /* a sequence of Python's */
} column_kind;

typedef struct column {
    module_state *state;
    const char *name; /* in errors */
    column_kind kind;
    int64_t n;
    char format;             /* of numbers: Arrow's letter, of integers c C s S i I l L, of floats f g */
    double multiply, divide; /* of times: what makes seconds of a date's number; 1 and 1 of other numbers */
    bool is_date;
    /* private */
    arrow_strings strings;
    arrow_chunks arrow;
    int64_t chunk, first; /* the chunk of the last cell, and its first row */
    Py_buffer buffer;     /* obj NULL: none */
    PyObject *objects, *held;
    bool texts_are_dates; /* of times that are texts */
    bool has_texts;       /* of objects: an id was a text */
    char text[32];        /* an id that is a number */
} column;

/* Opens a column: an object with Arrow's interface, a buffer of one dimension, or a sequence; or of times (numbers,
 * unit), with unit one of s, ms, us, ns, m, h, D. name: in errors, and valid as long as the column. false with an
 * exception; column_close is to be called anyhow. */
bool column_open(module_state *state, PyObject *object, const char *name, column *out);
void column_close(column *c);

/* Were all ids that were read integers? */
bool column_has_integers(const column *c);

/* Read a cell without the GIL: an id, valid until the next cell, or a time. Errors are set as Python's exception, and
 * name column and row: a null; a value of another type; a time that is negative or not finite. */
att_status column_id(column *c, int64_t row, att_byte_view *out);
att_status column_time(column *c, int64_t row, double *out);

#endif
