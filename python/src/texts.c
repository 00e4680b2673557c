/* Texts of an argument: str and sequences of it; those of Arrow are in arrow.c. */
#include "texts.h"
#include "arrow.h"

#include <stdlib.h>

const char texts_null[1] = "";

bool texts_reserve(int64_t n, texts *out)
{
    out->text = malloc(sizeof *out->text * (size_t)(n + 1));
    out->bytes = malloc(sizeof *out->bytes * (size_t)(n + 1));
    if (!out->text || !out->bytes)
        return PyErr_NoMemory();
    out->n = n;
    return true;
}

bool texts_refuse_null(module_state *state, const char *name, int64_t i)
{
    return raise_sentence(state, ATT_ERR_ARGUMENT, "%s[%lld]: is null; nulls=\"zero\" makes a row of zeros of it", name,
                          (long long)i);
}

static bool from_tuple(module_state *state, PyObject *tuple, const char *name, bool nulls, texts *out)
{
    Py_ssize_t n = PyTuple_Size(tuple);
    if (!texts_reserve(n, out))
        return false;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PyTuple_GetItem(tuple, i);
        Py_ssize_t bytes = 0;
        if (item == Py_None && nulls) {
            out->text[i] = texts_null, out->bytes[i] = 0;
            continue;
        }
        if (!PyUnicode_Check(item)) {
            PyObject *type = PyType_GetQualName(Py_TYPE(item));
            raise_sentence(state, ATT_ERR_DTYPE, "%s[%zd]: a str is needed, not %S", name, i, type ? type : Py_None);
            Py_XDECREF(type);
            return false;
        }
        out->text[i] = PyUnicode_AsUTF8AndSize(item, &bytes);
        if (!out->text[i] && PyErr_ExceptionMatches(PyExc_UnicodeError)) {
            PyErr_Clear();
            return raise_sentence(state, ATT_ERR_ARGUMENT, "%s[%zd]: is not valid Unicode: it has a lone surrogate",
                                  name, i);
        }
        if (!out->text[i])
            return false;
        out->bytes[i] = (size_t)bytes;
    }
    return true;
}

static PyObject *tuple_of(module_state *state, PyObject *object, const char *name)
{
    PyObject *items = PyObject_GetIter(object);
    if (!items && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
        raise_sentence(state, ATT_ERR_DTYPE,
                       "%s: a str, a sequence of str or an Arrow array of strings is needed, not %R", name,
                       (PyObject *)Py_TYPE(object));
    }
    PyObject *tuple = items ? PySequence_Tuple(items) : NULL;
    Py_XDECREF(items);
    return tuple;
}

bool texts_read(module_state *state, PyObject *object, const char *name, bool nulls, texts *out)
{
    *out = (texts){.single = PyUnicode_Check(object)};
    if (!out->single && arrow_is(object))
        return texts_from_arrow(state, object, name, nulls, out);
    if (PyBytes_Check(object))
        return raise_sentence(state, ATT_ERR_DTYPE, "%s: a str is needed, not bytes: bytes.decode() makes one", name);
    out->owner = out->single ? PyTuple_Pack(1, object) : tuple_of(state, object, name);
    return out->owner && from_tuple(state, out->owner, name, nulls, out);
}

void texts_release(texts *t)
{
    free(t->text);
    free(t->bytes);
    Py_CLEAR(t->owner);
    if (t->arrow)
        texts_arrow_release(t->arrow);
    *t = (texts){.n = 0};
}
