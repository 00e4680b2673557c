/* Arrays and streams of Arrow, in place. */
#include "arrow.h"

#include <stdlib.h>

bool arrow_is(PyObject *object)
{
    return PyObject_HasAttrString(object, "__arrow_c_array__") || PyObject_HasAttrString(object, "__arrow_c_stream__");
}

void arrow_release(arrow_chunks *c)
{
    PyObject *type, *value, *trace; /* what releases may be Python code, which must not see an exception */
    PyErr_Fetch(&type, &value, &trace);
    for (int64_t i = 0; i < c->n_streamed; i++)
        if (c->streamed[i].release)
            c->streamed[i].release(&c->streamed[i]);
    if (c->of_stream.release)
        c->of_stream.release(&c->of_stream);
    free(c->streamed);
    free(c->chunk);
    Py_XDECREF(c->capsules);
    PyErr_Restore(type, value, trace);
    *c = (arrow_chunks){.n = 0};
}

static bool read_array(module_state *state, PyObject *capsules, const char *name, arrow_chunks *out)
{
    PyObject *schema_capsule, *array_capsule;
    if (!PyTuple_Check(capsules))
        return raise_sentence(state, ATT_ERR_DTYPE, "%s: __arrow_c_array__() is not (schema, array)", name);
    if (!PyArg_ParseTuple(capsules, "OO;__arrow_c_array__() is (schema, array)", &schema_capsule, &array_capsule))
        return false;
    out->schema = PyCapsule_GetPointer(schema_capsule, "arrow_schema");
    const arrow_array *a = out->schema ? PyCapsule_GetPointer(array_capsule, "arrow_array") : NULL;
    out->chunk = a ? malloc(sizeof *out->chunk) : NULL;
    if (!out->chunk)
        return a && PyErr_NoMemory();
    out->chunk[0] = a;
    out->n = 1;
    return true;
}

/* Reads all arrays of a stream into out->streamed. */
static bool read_chunks(module_state *state, arrow_stream *stream, const char *name, arrow_chunks *out)
{
    for (int64_t room = 0;;) {
        if (out->n_streamed == room) {
            room = 2 * room + 4;
            arrow_array *more = realloc(out->streamed, sizeof *more * (size_t)room);
            if (!more)
                return PyErr_NoMemory();
            out->streamed = more;
        }
        arrow_array *next = &out->streamed[out->n_streamed];
        *next = (arrow_array){.release = NULL};
        int error;
        Py_BEGIN_ALLOW_THREADS /* a producer may compute, on threads that use Python */
        error = stream->get_next(stream, next);
        Py_END_ALLOW_THREADS
        if (error) {
            const char *said = stream->get_last_error(stream);
            return raise_sentence(state, ATT_ERR_IO, "%s: the Arrow stream failed: %s", name,
                                  said ? said : strerror(error));
        }
        if (!next->release)
            return true; /* the end */
        out->n_streamed++;
    }
}

static bool read_stream(module_state *state, PyObject *capsule, const char *name, arrow_chunks *out)
{
    arrow_stream *stream = PyCapsule_GetPointer(capsule, "arrow_array_stream");
    if (!stream)
        return false;
    if (stream->get_schema(stream, &out->of_stream))
        return raise_sentence(state, ATT_ERR_IO, "%s: the Arrow stream has no schema", name);
    out->schema = &out->of_stream;
    if (!read_chunks(state, stream, name, out))
        return false;
    out->chunk = malloc(sizeof *out->chunk * (size_t)(out->n_streamed + 1));
    if (!out->chunk)
        return PyErr_NoMemory();
    for (out->n = 0; out->n < out->n_streamed; out->n++)
        out->chunk[out->n] = &out->streamed[out->n];
    return true;
}

bool arrow_read(module_state *state, PyObject *object, const char *name, arrow_chunks *out)
{
    *out = (arrow_chunks){.n = 0};
    const bool array = PyObject_HasAttrString(object, "__arrow_c_array__");
    out->capsules = PyObject_CallMethod(object, array ? "__arrow_c_array__" : "__arrow_c_stream__", NULL);
    if (!out->capsules)
        return false;
    return array ? read_array(state, out->capsules, name, out) : read_stream(state, out->capsules, name, out);
}
