/* Arrays to other processes: what pickle makes of one, and makes it from. */
#include "module.h"

static int64_t bytes_of(const att_tensor *t)
{
    int64_t n = (int64_t)att_dtype_size(t->dtype);
    for (int i = 0; i < t->rank; i++)
        n *= t->dim[i];
    return n;
}

/* The numbers, dense */
static PyObject *dense_bytes(module_state *state, const att_tensor *t)
{
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)bytes_of(t));
    if (!bytes || PyBytes_Size(bytes) == 0)
        return bytes;
    att_tensor out;
    att_status status = att_wrap(&out, PyBytes_AsString(bytes), t->dtype, t->rank, t->dim, NULL);
    if (status == ATT_OK)
        status = att_tensor_convert(state->ctx, t, &out);
    if (status == ATT_OK)
        return bytes;
    Py_DECREF(bytes);
    return raise_status(state, status);
}

/* __reduce__() -> (array_of, (dtype, shape, bytes)) */
PyObject *array_reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    module_state *state = PyType_GetModuleState(Py_TYPE(self));
    PyObject *module = PyType_GetModule(Py_TYPE(self));
    PyObject *make = module ? PyObject_GetAttrString(module, "array_of") : NULL;
    PyObject *shape = make ? PyObject_GetAttrString(self, "shape") : NULL;
    PyObject *bytes = shape ? dense_bytes(state, &((array *)self)->t) : NULL;
    if (bytes)
        return Py_BuildValue("N(sNN)", make, ((array *)self)->type->name, shape, bytes);
    Py_XDECREF(make);
    Py_XDECREF(shape);
    return NULL;
}

static int read_shape(PyObject *shape, int64_t dim[ATT_MAX_RANK])
{
    Py_ssize_t rank = PyTuple_Size(shape);
    for (Py_ssize_t i = 0; i < rank && i < ATT_MAX_RANK && !PyErr_Occurred(); i++)
        dim[i] = PyLong_AsLongLong(PyTuple_GetItem(shape, i));
    if (rank > ATT_MAX_RANK)
        PyErr_Format(PyExc_ValueError, "shape: has %zd dimensions, at most %d are supported", rank, ATT_MAX_RANK);
    return PyErr_Occurred() ? -1 : (int)rank;
}

/* array_of(dtype, shape, bytes) */
PyObject *array_of(PyObject *module, PyObject *args)
{
    const char *name, *bytes;
    Py_ssize_t n;
    PyObject *shape;
    int64_t dim[ATT_MAX_RANK];
    module_state *state = PyModule_GetState(module);
    if (!PyArg_ParseTuple(args, "sO!y#:array_of", &name, &PyTuple_Type, &shape, &bytes, &n))
        return NULL;
    const array_type *type = array_types;
    while (type->name && strcmp(type->name, name))
        type++;
    if (!type->name)
        return PyErr_Format(PyExc_ValueError, "dtype: \"%s\" is not a type of arrays", name);
    int rank = read_shape(shape, dim);
    array *a = rank < 0 ? NULL : array_new(state, type->dtype, rank, dim);
    if (!a)
        return NULL;
    a->type = type;
    if (bytes_of(&a->t) != n) {
        PyErr_Format(PyExc_ValueError, "bytes: has %zd, of shape and dtype follow %lld", n, (long long)bytes_of(&a->t));
        Py_DECREF((PyObject *)a);
        return NULL;
    }
    memcpy(a->t.data, bytes, (size_t)n);
    return (PyObject *)a;
}
