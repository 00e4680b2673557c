/* Texts of an argument as the library takes them: pointers and lengths, without copies of the characters. */
#ifndef ATT_PYTHON_TEXTS_H
#define ATT_PYTHON_TEXTS_H

#include "module.h"

typedef struct texts {
    int64_t n;
    const char **text;          /* [n] UTF-8 */
    size_t *bytes;              /* [n] */
    bool single;                /* the argument is one str */
    PyObject *owner;            /* holds the characters */
    struct arrow_chunks *arrow; /* or these do */
} texts;

/* The text of a null, of 0 bytes */
extern const char texts_null[1];

/* A str, a sequence of str, or an Arrow array or stream of strings (PyCapsule interface). nulls: a null of Arrow, or
 * None in a sequence, is texts_null, else an error. false with an exception */
bool texts_read(module_state *state, PyObject *object, const char *name, bool nulls, texts *out);
void texts_release(texts *t);

/* Has room for n texts in out. false with an exception */
bool texts_reserve(int64_t n, texts *out);
/* Raises the exception of a null that is not allowed. */
bool texts_refuse_null(module_state *state, const char *name, int64_t i);

/* arrow_texts.c */
bool texts_from_arrow(module_state *state, PyObject *object, const char *name, bool nulls, texts *out);
void texts_arrow_release(struct arrow_chunks *arrow);

/* arrow.c */
PyObject *array_arrow(PyObject *self, PyObject *args);

#endif
