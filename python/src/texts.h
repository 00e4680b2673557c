/* Texts of an argument as the library takes them: pointers and lengths, without copies of the characters. */
#ifndef ATT_PYTHON_TEXTS_H
#define ATT_PYTHON_TEXTS_H

#include "module.h"

typedef struct texts {
    int64_t n;
    const char **text;         /* [n] UTF-8 */
    size_t *bytes;             /* [n] */
    bool single;               /* the argument is one str */
    PyObject *owner;           /* holds the characters */
    struct texts_arrow *arrow; /* or these do */
} texts;

/* A str, a sequence of str, or an Arrow array or stream of strings (PyCapsule interface). nulls_empty: a null of Arrow
 * is an empty text, else an error. false with an exception */
bool texts_read(module_state *state, PyObject *object, const char *name, bool nulls_empty, texts *out);
void texts_release(texts *t);

/* arrow.c */
bool texts_from_arrow(module_state *state, PyObject *object, const char *name, bool nulls_empty, texts *out);
void texts_arrow_release(struct texts_arrow *arrow);
PyObject *array_arrow(PyObject *self, PyObject *args);

#endif
