/* DLPack both ways. A capsule is given away once: who takes it renames it, and calls its deleter when done. */
#include "dlpack.h"

#include <stdlib.h>

#include "module.h"

static const char legacy_name[] = "dltensor", versioned_name[] = "dltensor_versioned";

/* ---- export */

/* What a capsule's tensor lives in */
typedef struct exported {
    union {
        dlpack_versioned versioned;
        dlpack_managed legacy;
    } as;
    PyObject *owner;
    int64_t shape[ATT_MAX_RANK], strides[ATT_MAX_RANK];
} exported;

/* Consumers may call a deleter without the GIL, and at exit. */
static void delete_exported(exported *e)
{
    if (Py_IsInitialized()) {
        PyGILState_STATE gil = PyGILState_Ensure();
        Py_DECREF(e->owner);
        PyGILState_Release(gil);
    }
    free(e);
}

static void delete_legacy(dlpack_managed *self) { delete_exported(self->manager); }

static void delete_versioned(dlpack_versioned *self) { delete_exported(self->manager); }

/* Nobody has taken the tensor. */
static void capsule_destructor(PyObject *capsule)
{
    for (int versioned = 0; versioned < 2; versioned++) {
        const char *name = versioned ? versioned_name : legacy_name;
        if (!PyCapsule_IsValid(capsule, name))
            continue;
        void *managed = PyCapsule_GetPointer(capsule, name);
        delete_exported(versioned ? ((dlpack_versioned *)managed)->manager : ((dlpack_managed *)managed)->manager);
    }
}

static void fill(dlpack_tensor *out, exported *e, const array *a)
{
    bool empty = false;
    for (int i = 0; i < a->t.rank; i++) {
        e->shape[i] = a->t.dim[i], e->strides[i] = a->t.stride[i];
        empty |= a->t.dim[i] == 0;
    }
    *out = (dlpack_tensor){.data = empty ? NULL : a->t.data, /* as dlpack.h asks for */
                           .device = {DLPACK_CPU, 0},
                           .rank = a->t.rank,
                           .dtype = {a->type->dlpack, a->type->bits, 1},
                           .shape = e->shape,
                           .strides = e->strides};
}

static PyObject *export_capsule(array *a, bool versioned)
{
    exported *e = calloc(1, sizeof *e);
    if (!e)
        return PyErr_NoMemory();
    fill(versioned ? &e->as.versioned.tensor : &e->as.legacy.tensor, e, a);
    if (versioned) {
        e->as.versioned.version.major = DLPACK_MAJOR, e->as.versioned.version.minor = DLPACK_MINOR;
        e->as.versioned.manager = e, e->as.versioned.deleter = delete_versioned;
        e->as.versioned.flags = a->read_only ? DLPACK_READ_ONLY : 0;
    } else {
        e->as.legacy.manager = e, e->as.legacy.deleter = delete_legacy;
    }
    e->owner = Py_NewRef((PyObject *)a);
    PyObject *capsule = PyCapsule_New(&e->as, versioned ? versioned_name : legacy_name, capsule_destructor);
    if (!capsule)
        delete_exported(e);
    return capsule;
}

static bool read_pair(PyObject *tuple, const char *what, int *first, int *second)
{
    if (PyTuple_Check(tuple) && PyArg_ParseTuple(tuple, "ii", first, second))
        return true;
    PyErr_SetString(PyExc_TypeError, what);
    return false;
}

PyObject *array_dlpack(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
    PyObject *stream = Py_None, *max_version = Py_None, *device = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|$OOOO:__dlpack__", names, &stream, &max_version, &device, &copy))
        return NULL;
    array *a = (array *)self;
    int type = DLPACK_CPU, id = 0, major = 0, minor = 0;
    if ((max_version != Py_None && !read_pair(max_version, "max_version is (major, minor)", &major, &minor)) ||
        (device != Py_None && !read_pair(device, "dl_device is (type, id)", &type, &id)))
        return NULL;
    if (stream != Py_None)
        PyErr_SetString(PyExc_BufferError, "stream is for devices, and this array is in the CPU's memory");
    else if (type != DLPACK_CPU || id)
        PyErr_Format(PyExc_BufferError, "dl_device is (%d, %d), and this array is on (1, 0), the CPU", type, id);
    else if (copy == Py_True)
        PyErr_SetString(PyExc_BufferError, "copy=True is not offered: copy what from_dlpack returns");
    else if (major < DLPACK_MAJOR && a->read_only)
        PyErr_SetString(PyExc_BufferError, "a read-only array needs DLPack 1.0 or later: max_version=(1, 0)");
    return PyErr_Occurred() ? NULL : export_capsule(a, major >= DLPACK_MAJOR);
}

PyObject *array_dlpack_device(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    return Py_BuildValue("(ii)", DLPACK_CPU, 0);
}

/* ---- import */

/* object.__dlpack__(max_version=(1, 0)), or without it where a producer is older */
static PyObject *ask(PyObject *object)
{
    PyObject *method = PyObject_GetAttrString(object, "__dlpack__");
    PyObject *none = method ? PyTuple_New(0) : NULL;
    PyObject *keywords = none ? Py_BuildValue("{s:(ii)}", "max_version", DLPACK_MAJOR, DLPACK_MINOR) : NULL;
    PyObject *capsule = keywords ? PyObject_Call(method, none, keywords) : NULL;
    if (keywords && !capsule && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
        capsule = PyObject_CallNoArgs(method);
    }
    Py_XDECREF(method);
    Py_XDECREF(none);
    Py_XDECREF(keywords);
    return capsule;
}

static bool refuse_device(module_state *state, const char *name, int type)
{
    return raise_sentence(state, ATT_ERR_ARGUMENT, "%s: is on a device (DLPack type %d), attend computes on the CPU",
                          name, type);
}

static bool wrap(module_state *state, const dlpack_tensor *in, const char *name, att_tensor *out)
{
    const array_type *type = array_types, *end = array_types + ARRAY_READ_TYPES;
    while (type < end && (type->dlpack != in->dtype.code || type->bits != in->dtype.bits || in->dtype.lanes != 1))
        type++;
    if (in->device.type != DLPACK_CPU)
        return refuse_device(state, name, in->device.type);
    if (type == end)
        return raise_sentence(state, ATT_ERR_DTYPE,
                              "%s: its numbers are of a type that is not supported (DLPack code %d, %d bits); float32, "
                              "float16, bfloat16, int32, int64 and bool are",
                              name, in->dtype.code, in->dtype.bits);
    if (in->rank < 0 || in->rank > ATT_MAX_RANK)
        return raise_sentence(state, ATT_ERR_SHAPE, "%s: has %d dimensions, at most %d are supported", name,
                              (int)in->rank, ATT_MAX_RANK);
    for (int i = 0; i < in->rank; i++)
        if (in->shape[i] < 0)
            return raise_sentence(state, ATT_ERR_SHAPE, "%s: dimension %d is %lld", name, i, (long long)in->shape[i]);
    att_status status = att_wrap(out, in->data ? (char *)in->data + in->byte_offset : NULL, type->dtype, in->rank,
                                 in->shape, in->strides);
    if (status != ATT_OK)
        return raise_status(state, status);
    return tensor_is_aligned(state, name, out);
}

bool tensor_from_dlpack(module_state *state, PyObject *object, const char *name, tensor_use use, tensor_argument *out)
{
    PyObject *device = PyObject_CallMethod(object, "__dlpack_device__", NULL);
    int type, id;
    bool known = device && read_pair(device, "__dlpack_device__() is (type, id)", &type, &id);
    Py_XDECREF(device);
    if (!known)
        return false;
    if (type != DLPACK_CPU)
        return refuse_device(state, name, type);
    PyObject *capsule = ask(object);
    if (!capsule)
        return false;
    out->versioned = PyCapsule_IsValid(capsule, versioned_name);
    const char *capsule_name = out->versioned ? versioned_name : legacy_name;
    void *managed = PyCapsule_GetPointer(capsule, capsule_name);
    if (!managed || PyCapsule_SetName(capsule, out->versioned ? "used_dltensor_versioned" : "used_dltensor")) {
        Py_DECREF(capsule);
        return false;
    }
    out->capsule = capsule, out->managed = managed;
    const dlpack_versioned *v = managed;
    if (out->versioned && v->version.major != DLPACK_MAJOR)
        return raise_sentence(state, ATT_ERR_UNSUPPORTED, "%s: is of DLPack %u, attend has %d", name, v->version.major,
                              DLPACK_MAJOR);
    if (use == TENSOR_WRITE && out->versioned && (v->flags & DLPACK_READ_ONLY))
        return raise_sentence(state, ATT_ERR_ARGUMENT, "%s: is read-only", name);
    return wrap(state, out->versioned ? &v->tensor : &((dlpack_managed *)managed)->tensor, name, &out->t);
}
