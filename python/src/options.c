#include "options.h"

#include <stddef.h>

static const option_field *find(const option_field *fields, PyObject *name)
{
    while (fields->name && (!PyUnicode_Check(name) || PyUnicode_CompareWithASCIIString(name, fields->name)))
        fields++;
    return fields->name ? fields : NULL;
}

static bool read_text(module_state *state, const option_field *f, PyObject *value, const char **out, PyObject *held)
{
    PyObject *bytes = NULL;
    if (!PyUnicode_FSConverter(value, &bytes)) { /* refuses zero bytes, too */
        PyErr_Clear();
        return raise_sentence(state, ATT_ERR_DTYPE, "%s: %R, must be a str or a path", f->name, value);
    }
    const bool added = PyList_Append(held, bytes) == 0;
    *out = PyBytes_AsString(bytes);
    Py_DECREF(bytes); /* held has it */
    return added;
}

static bool read_word(module_state *state, const option_field *f, PyObject *value, int *out)
{
    for (int i = 0; f->words[i]; i++)
        if (PyUnicode_Check(value) && PyUnicode_CompareWithASCIIString(value, f->words[i]) == 0) {
            *out = i;
            return true;
        }
    PyObject *all = PyUnicode_FromString("");
    for (int i = 0; all && f->words[i]; i++) {
        PyObject *more = PyUnicode_FromFormat("%U%s%s", all, i ? ", " : "", f->words[i]);
        Py_DECREF(all);
        all = more;
    }
    if (all)
        raise_sentence(state, ATT_ERR_ARGUMENT, "%s: %R, must be one of %U", f->name, value, all);
    Py_XDECREF(all);
    return false;
}

static bool read_field(module_state *state, const option_field *f, PyObject *value, void *options, PyObject *held)
{
    void *at = (char *)options + f->offset;
    switch (f->type) {
    case OPTION_INTEGER:
        *(int64_t *)at = PyLong_AsLongLong(value);
        break;
    case OPTION_UNSIGNED:
        *(uint64_t *)at = PyLong_AsUnsignedLongLong(value);
        break;
    case OPTION_DOUBLE:
        *(double *)at = PyFloat_AsDouble(value);
        break;
    case OPTION_FLOAT:
        *(float *)at = (float)PyFloat_AsDouble(value);
        break;
    case OPTION_BOOL:
        *(bool *)at = PyObject_IsTrue(value) > 0;
        break;
    case OPTION_TEXT:
        return read_text(state, f, value, at, held);
    case OPTION_WORD:
        return read_word(state, f, value, at);
    }
    if (!PyErr_Occurred())
        return true;
    const bool range = PyErr_ExceptionMatches(PyExc_OverflowError);
    PyErr_Clear();
    return raise_sentence(state, range ? ATT_ERR_ARGUMENT : ATT_ERR_DTYPE, "%s: %R, must be %s", f->name, value,
                          f->type == OPTION_INTEGER    ? "an integer of 64 bits"
                          : f->type == OPTION_UNSIGNED ? "an integer from 0 to 2^64 - 1"
                                                       : "a number");
}

bool options_read(module_state *state, PyObject *dict, const option_field *fields, void *options, PyObject *held)
{
    PyObject *name, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(dict, &at, &name, &value)) {
        const option_field *f = find(fields, name);
        if (!f)
            return raise_sentence(state, ATT_ERR_ARGUMENT, "%S: there is no option of this name", name);
        if (value != Py_None && !read_field(state, f, value, options, held))
            return false;
    }
    return true;
}
