/* Exceptions: attend.Error with the library's status and sentence, and a subclass of each status that is also the
 * exception of Python that callers expect. */
#include "module.h"

#include <errno.h>

/* name, status, the exception of Python that it also is */
static const struct error_class {
    const char *name;
    att_status status;
    PyObject **also;
} classes[] = {
    {"attend.ArgumentError", ATT_ERR_ARGUMENT, &PyExc_ValueError},
    {"attend.ShapeError", ATT_ERR_SHAPE, &PyExc_ValueError},
    {"attend.DtypeError", ATT_ERR_DTYPE, &PyExc_TypeError},
    {"attend.OutOfMemoryError", ATT_ERR_MEMORY, &PyExc_MemoryError},
    {"attend.FileError", ATT_ERR_IO, &PyExc_OSError},
    {"attend.FormatError", ATT_ERR_FORMAT, &PyExc_ValueError},
    {"attend.UnsupportedError", ATT_ERR_UNSUPPORTED, &PyExc_ValueError},
    {"attend.CancelledError", ATT_ERR_CANCELLED, NULL},
    {"attend.SystemCallError", ATT_ERR_SYSTEM, &PyExc_OSError},
    {"attend.BusyError", ATT_ERR_BUSY, NULL},
};
enum { CLASSES = sizeof classes / sizeof *classes };

/* status: the class attribute of this name; NULL: None */
static PyObject *new_class(PyObject *module, const char *name, PyObject *base, PyObject *also, const char *status)
{
    PyObject *bases = also ? PyTuple_Pack(2, base, also) : PyTuple_Pack(1, base);
    PyObject *members = bases ? Py_BuildValue("{s:s}", "status", status) : NULL;
    PyObject *class = members ? PyErr_NewException(name, bases, members) : NULL;
    Py_XDECREF(bases);
    Py_XDECREF(members);
    if (class && PyModule_AddObjectRef(module, name + sizeof "attend." - 1, class) == 0)
        return class;
    Py_XDECREF(class);
    return NULL;
}

int errors_add(PyObject *module, module_state *state)
{
    state->error = new_class(module, "attend.Error", PyExc_Exception, NULL, NULL);
    if (!state->error)
        return -1;
    for (int i = 0; i < CLASSES; i++) {
        const struct error_class *c = &classes[i];
        PyObject *class =
            new_class(module, c->name, state->error, c->also ? *c->also : NULL, att_status_name(c->status));
        if (!class)
            return -1;
        state->error_of[c->status] = class;
    }
    state->file_not_found = new_class(module, "attend.FileNotFound", state->error_of[ATT_ERR_IO],
                                      PyExc_FileNotFoundError, att_status_name(ATT_ERR_IO));
    return state->file_not_found ? 0 : -1;
}

/* number: errno, or 0 */
static void raise_with(module_state *state, att_status status, int number, PyObject *sentence)
{
    if (!sentence)
        return;
    PyObject *class = status > 0 && (int)status < MODULE_STATUSES ? state->error_of[status] : NULL;
    if (status == ATT_ERR_IO && number == ENOENT)
        class = state->file_not_found;
    if (!class)
        class = state->error;
    PyObject *error = PyObject_CallFunctionObjArgs(class, sentence, NULL);
    PyObject *errno_ = number ? PyLong_FromLong(number) : NULL;
    if (error && (!errno_ || PyObject_SetAttrString(error, "errno", errno_) == 0))
        PyErr_SetObject(class, error);
    Py_XDECREF(error);
    Py_XDECREF(errno_);
}

static PyObject *raise_said(module_state *state, att_status status, int number)
{
    if (status == ATT_ERR_CANCELLED && PyErr_Occurred())
        return NULL; /* what cancelled it */
    const char *said = att_error(state->ctx);
    PyObject *sentence = PyUnicode_DecodeUTF8(said, (Py_ssize_t)strlen(said), "replace");
    raise_with(state, status, number, sentence);
    Py_XDECREF(sentence);
    return NULL;
}

PyObject *raise_status(module_state *state, att_status status) { return raise_said(state, status, att_error_number()); }

PyObject *raise_not_found(module_state *state) { return raise_said(state, ATT_ERR_IO, ENOENT); }

PyObject *raise_sentence(module_state *state, att_status status, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    PyObject *sentence = PyUnicode_FromFormatV(format, values);
    va_end(values);
    raise_with(state, status, 0, sentence);
    Py_XDECREF(sentence);
    return NULL;
}

bool call_succeeded(module_state *state, att_status status)
{
    if (status != ATT_OK && !PyErr_Occurred())
        raise_status(state, status);
    return !PyErr_Occurred();
}

PyObject *call_result(module_state *state, att_status status, PyObject *result)
{
    if (call_succeeded(state, status))
        return result;
    Py_XDECREF(result);
    return NULL;
}
