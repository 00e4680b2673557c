/* attend.Array: numbers with a shape and strides. NumPy and memoryview read them in place by the buffer protocol, other
 * libraries by DLPack (dlpack.c). */
#include "module.h"

#include <stdlib.h>

#include "dlpack.h"
#include "texts.h"

const array_type array_types[] = {
    {"float32", "f", DLPACK_FLOAT, 32, ATT_F32, "F32"},
    {"float16", "e", DLPACK_FLOAT, 16, ATT_F16, "F16"},
    {"bfloat16", NULL, DLPACK_BFLOAT, 16, ATT_BF16, "BF16"},
    {"int32", "i", DLPACK_INT, 32, ATT_I32, "I32"},
    {"int64", "q", DLPACK_INT, 64, ATT_I64, "I64"},
    {"bool", "?", DLPACK_BOOL, 8, ATT_BOOL, "BOOL"},
    {"int8", "b", DLPACK_INT, 8, ATT_I8, "I8"},
    /* types that att_tensor does not have, in one of the same size */
    {"uint8", "B", DLPACK_UINT, 8, ATT_I8, "U8"},
    {"int16", "h", DLPACK_INT, 16, ATT_F16, "I16"},
    {"uint16", "H", DLPACK_UINT, 16, ATT_F16, "U16"},
    {"uint32", "I", DLPACK_UINT, 32, ATT_I32, "U32"},
    {"uint64", "Q", DLPACK_UINT, 64, ATT_I64, "U64"},
    {"float64", "d", DLPACK_FLOAT, 64, ATT_I64, "F64"},
    {"complex64", "Zf", DLPACK_COMPLEX, 64, ATT_I64, "C64"},
    {"float8_e4m3fn", NULL, DLPACK_FLOAT8_E4M3FN, 8, ATT_I8, "F8_E4M3"},
    {"float8_e4m3fnuz", NULL, DLPACK_FLOAT8_E4M3FNUZ, 8, ATT_I8, "F8_E4M3FNUZ"},
    {"float8_e5m2", NULL, DLPACK_FLOAT8_E5M2, 8, ATT_I8, "F8_E5M2"},
    {"float8_e5m2fnuz", NULL, DLPACK_FLOAT8_E5M2FNUZ, 8, ATT_I8, "F8_E5M2FNUZ"},
    {"float8_e8m0fnu", NULL, DLPACK_FLOAT8_E8M0FNU, 8, ATT_I8, "F8_E8M0"},
    {NULL, NULL, 0, 0, 0, NULL},
};

const array_type *array_type_of(const char *safetensors)
{
    const array_type *type = array_types;
    while (type->name && strcmp(type->safetensors, safetensors))
        type++;
    return type->name ? type : NULL;
}

static const array_type *type_of_dtype(att_dtype dtype)
{
    const array_type *type = array_types;
    while (type->name && type->dtype != dtype)
        type++;
    return type;
}

static int64_t count(const att_tensor *t)
{
    int64_t n = 1;
    for (int i = 0; i < t->rank; i++)
        n *= t->dim[i];
    return n;
}

array *array_new(module_state *state, att_dtype dtype, int rank, const int64_t *dim)
{
    array *a = PyObject_New(array, state->array);
    if (!a)
        return NULL;
    a->memory = NULL, a->base = NULL, a->read_only = false, a->type = type_of_dtype(dtype);
    att_status status = att_wrap(&a->t, NULL, dtype, rank, dim, NULL);
    if (status != ATT_OK) {
        Py_DECREF((PyObject *)a);
        return (array *)raise_status(state, status);
    }
    size_t bytes = (size_t)count(&a->t) * att_dtype_size(dtype);
    a->memory = aligned_alloc(64, (bytes / 64 + 1) * 64);
    a->t.data = a->memory;
    if (a->memory)
        return a;
    Py_DECREF((PyObject *)a);
    return (array *)PyErr_NoMemory();
}

array *array_view(module_state *state, const att_tensor *t, const array_type *type, bool read_only, PyObject *base)
{
    array *view = PyObject_New(array, state->array);
    if (view)
        *view =
            (array){.ob_base = view->ob_base, .t = *t, .base = Py_NewRef(base), .read_only = read_only, .type = type};
    return view;
}

static void array_dealloc(PyObject *self)
{
    array *a = (array *)self;
    PyTypeObject *type = Py_TYPE(self);
    free(a->memory);
    Py_XDECREF(a->base);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* ---- the buffer protocol */

static bool has_flags(int flags, int wanted) { return (flags & wanted) == wanted; }

/* Is the order of elements in memory one that the consumer can use? Without strides it expects C's order. */
static bool is_as_requested(const Py_buffer *view, int flags)
{
    if (has_flags(flags, PyBUF_C_CONTIGUOUS) || !has_flags(flags, PyBUF_STRIDES))
        return PyBuffer_IsContiguous(view, 'C');
    if (has_flags(flags, PyBUF_F_CONTIGUOUS))
        return PyBuffer_IsContiguous(view, 'F');
    return !has_flags(flags, PyBUF_ANY_CONTIGUOUS) || PyBuffer_IsContiguous(view, 'A');
}

static int array_get_buffer(PyObject *self, Py_buffer *view, int flags)
{
    array *a = (array *)self;
    const char *format = a->type->format;
    view->obj = NULL;
    if (!format) {
        PyErr_Format(PyExc_BufferError, "%s has no format in the buffer protocol: DLPack takes it", a->type->name);
        return -1;
    }
    if (a->read_only && (flags & PyBUF_WRITABLE)) {
        PyErr_SetString(PyExc_BufferError, "the array is read-only");
        return -1;
    }
    Py_ssize_t *sizes = malloc(sizeof *sizes * 2 * ATT_MAX_RANK), *strides = sizes ? sizes + ATT_MAX_RANK : NULL;
    if (!sizes) {
        PyErr_NoMemory();
        return -1;
    }
    Py_ssize_t item = (Py_ssize_t)att_dtype_size(a->t.dtype);
    for (int i = 0; i < a->t.rank; i++)
        sizes[i] = (Py_ssize_t)a->t.dim[i], strides[i] = (Py_ssize_t)a->t.stride[i] * item;
    *view = (Py_buffer){.buf = a->t.data,
                        .obj = Py_NewRef(self),
                        .len = (Py_ssize_t)count(&a->t) * item,
                        .itemsize = item,
                        .readonly = a->read_only,
                        .ndim = a->t.rank,
                        .internal = sizes,
                        .format = flags & PyBUF_FORMAT ? (char *)format : NULL,
                        .shape = sizes,
                        .strides = strides};
    if (!is_as_requested(view, flags)) {
        free(sizes);
        Py_CLEAR(view->obj);
        PyErr_SetString(PyExc_BufferError, "the array is not contiguous");
        return -1;
    }
    if (!has_flags(flags, PyBUF_STRIDES))
        view->strides = NULL;
    if (!has_flags(flags, PyBUF_ND))
        view->shape = NULL;
    return 0;
}

static void array_release_buffer(PyObject *self, Py_buffer *view)
{
    (void)self;
    free(view->internal);
}

/* ---- what Python code asks of it */

static PyObject *sizes_tuple(const int64_t *values, int n, int64_t factor)
{
    PyObject *tuple = PyTuple_New(n);
    for (int i = 0; tuple && i < n; i++) {
        PyObject *value = PyLong_FromLongLong(values[i] * factor);
        if (!value || PyTuple_SetItem(tuple, i, value))
            Py_CLEAR(tuple);
    }
    return tuple;
}

static PyObject *get_shape(PyObject *self, void *unused)
{
    (void)unused;
    return sizes_tuple(((array *)self)->t.dim, ((array *)self)->t.rank, 1);
}

static PyObject *get_strides(PyObject *self, void *unused)
{
    (void)unused;
    const att_tensor *t = &((array *)self)->t;
    return sizes_tuple(t->stride, t->rank, (int64_t)att_dtype_size(t->dtype));
}

static PyObject *get_dtype(PyObject *self, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(((array *)self)->type->name);
}

static PyObject *get_ndim(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromLong(((array *)self)->t.rank);
}

static Py_ssize_t array_length(PyObject *self)
{
    const att_tensor *t = &((array *)self)->t;
    if (t->rank)
        return (Py_ssize_t)t->dim[0];
    PyErr_SetString(PyExc_TypeError, "an array without dimensions has no length");
    return -1;
}

/* A view of the array at index i of dimension `dim`, which the view does not have */
static PyObject *view_at(PyObject *self, int dim, Py_ssize_t i)
{
    array *a = (array *)self;
    Py_ssize_t size = dim < a->t.rank ? (Py_ssize_t)a->t.dim[dim] : 0;
    if (i < 0 || i >= size) {
        PyErr_Format(PyExc_IndexError, "index %zd is out of range: dimension %d has %zd", i, dim, size);
        return NULL;
    }
    array *view = array_view(PyType_GetModuleState(Py_TYPE(self)), &a->t, a->type, a->read_only, self);
    if (!view)
        return NULL;
    view->t.data = (char *)a->t.data + i * a->t.stride[dim] * (int64_t)att_dtype_size(a->t.dtype);
    size_t after = sizeof(int64_t) * (size_t)(a->t.rank - dim - 1);
    memmove(view->t.dim + dim, a->t.dim + dim + 1, after);
    memmove(view->t.stride + dim, a->t.stride + dim + 1, after);
    view->t.rank--;
    return (PyObject *)view;
}

/* Row i, for array[i] and iteration */
static PyObject *array_item(PyObject *self, Py_ssize_t i) { return view_at(self, 0, i); }

/* Column i of [n, m]: [n] */
static PyObject *column(PyObject *self, PyObject *args)
{
    Py_ssize_t i;
    return PyArg_ParseTuple(args, "n:column", &i) ? view_at(self, 1, i) : NULL;
}

static PyObject *to_list(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyObject *view = PyMemoryView_FromObject(self);
    PyObject *list = view ? PyObject_CallMethod(view, "tolist", NULL) : NULL;
    Py_XDECREF(view);
    return list;
}

/* numpy.asarray(self), or torch.from_dlpack(self) */
static PyObject *call_module(const char *module_name, const char *function, PyObject *self)
{
    PyObject *module = PyImport_ImportModule(module_name);
    PyObject *result = module ? PyObject_CallMethod(module, function, "O", self) : NULL;
    Py_XDECREF(module);
    return result;
}

static PyObject *to_numpy(PyObject *self, PyObject *unused)
{
    (void)unused;
    return call_module("numpy", "asarray", self);
}

static PyObject *array_repr(PyObject *self)
{
    PyObject *shape = get_shape(self, NULL);
    PyObject *text =
        shape ? PyUnicode_FromFormat("attend.Array(shape=%R, dtype=%s)", shape, ((array *)self)->type->name) : NULL;
    Py_XDECREF(shape);
    return text;
}

/* Is it an object of the class `name` of a module that has been imported? */
static bool is_of(PyObject *object, const char *module_name, const char *name)
{
    PyObject *modules = PySys_GetObject("modules"); /* borrowed */
    PyObject *module = modules ? PyDict_GetItemString(modules, module_name) : NULL;
    PyObject *class = module ? PyObject_GetAttrString(module, name) : NULL;
    bool is = class && PyObject_IsInstance(object, class) > 0;
    Py_XDECREF(class);
    PyErr_Clear();
    return is;
}

PyObject *array_like(array *a, PyObject *like)
{
    if (!a)
        return NULL;
    PyObject *result = (PyObject *)a;
    if (is_of(like, "numpy", "ndarray") && a->type->format)
        result = call_module("numpy", "asarray", (PyObject *)a);
    else if (is_of(like, "torch", "Tensor"))
        result = call_module("torch", "from_dlpack", (PyObject *)a);
    else
        return result;
    Py_DECREF((PyObject *)a);
    return result;
}

static PyGetSetDef properties[] = {
    {"shape", get_shape, NULL, "Sizes of the dimensions", NULL},
    {"strides", get_strides, NULL, "Bytes from one element of a dimension to the next", NULL},
    {"dtype", get_dtype, NULL, "Name of the type of its numbers, as NumPy has it", NULL},
    {"ndim", get_ndim, NULL, "Number of dimensions", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"tolist", to_list, METH_NOARGS, "Its numbers as nested lists"},
    {"column", column, METH_VARARGS, "column($self, i, /)\n--\n\nA view of column i of an array [n, m]"},
    {"numpy", to_numpy, METH_NOARGS, "A NumPy array of the same memory"},
    {"__reduce__", array_reduce, METH_NOARGS, "What pickle makes the array from"},
    {"__arrow_c_array__", array_arrow, METH_VARARGS, "Capsules of Arrow: a fixed-size list for each row"},
    {"__dlpack__", (PyCFunction)(void (*)(void))array_dlpack, METH_VARARGS | METH_KEYWORDS, "A capsule of DLPack"},
    {"__dlpack_device__", array_dlpack_device, METH_NOARGS, "(1, 0): the CPU"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Numbers in the library's memory, of which NumPy, torch and others make views."},
    {Py_tp_dealloc, array_dealloc},
    {Py_tp_repr, array_repr},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {Py_sq_length, array_length},
    {Py_sq_item, array_item},
    {Py_bf_getbuffer, array_get_buffer},
    {Py_bf_releasebuffer, array_release_buffer},
    {0, NULL},
};

PyType_Spec array_spec = {"attend.Array", sizeof(array), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                          slots};
