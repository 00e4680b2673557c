/* Tensors of arguments, without a copy: by the buffer protocol, which NumPy and array.array have, or by DLPack, which
 * torch and JAX have. */

#include <stdlib.h>

#include "dlpack.h"
#include "module.h"

static bool dtype_of(const char *format, Py_ssize_t item, att_dtype *out)
{
    static const struct {
        const char *codes;
        Py_ssize_t item;
        att_dtype dtype;
    } known[] = {{"f", 4, ATT_F32}, {"e", 2, ATT_F16}, {"il", 4, ATT_I32}, {"lq", 8, ATT_I64}, {"?", 1, ATT_BOOL}};
    if (*format == '@' || *format == '=' || *format == '<')
        format++; /* native, or little-endian as all that runs this */
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (*format && !format[1] && strchr(known[i].codes, *format) && item == known[i].item) {
            *out = known[i].dtype;
            return true;
        }
    return false;
}

bool tensor_is_aligned(module_state *state, const char *name, const att_tensor *t)
{
    uintptr_t item = att_dtype_size(t->dtype);
    return (uintptr_t)t->data % item == 0 ||
           raise_sentence(state, ATT_ERR_ARGUMENT,
                          "%s: its numbers of %d bytes do not begin at multiples of %d: a copy does", name, (int)item,
                          (int)item);
}

static bool wrap(module_state *state, const Py_buffer *b, const char *name, att_tensor *out)
{
    att_dtype dtype;
    if (!dtype_of(b->format ? b->format : "B", b->itemsize, &dtype))
        return raise_sentence(state, ATT_ERR_DTYPE,
                              "%s: its numbers have the format \"%s\" (%zd bytes each); float32, float16, int32, int64 "
                              "and bool are supported, and bfloat16 by DLPack",
                              name, b->format ? b->format : "B", b->itemsize);
    if (b->ndim > ATT_MAX_RANK)
        return raise_sentence(state, ATT_ERR_SHAPE, "%s: has %d dimensions, at most %d are supported", name, b->ndim,
                              ATT_MAX_RANK);
    int64_t dim[ATT_MAX_RANK], stride[ATT_MAX_RANK];
    for (int i = 0; i < b->ndim; i++) {
        if (b->strides[i] % b->itemsize)
            return raise_sentence(state, ATT_ERR_ARGUMENT,
                                  "%s: stride %d is %zd bytes, which are not whole elements of %zd", name, i,
                                  b->strides[i], b->itemsize);
        dim[i] = b->shape[i], stride[i] = b->strides[i] / b->itemsize;
    }
    att_status status = att_wrap(out, b->buf, dtype, b->ndim, dim, stride);
    if (status != ATT_OK)
        return raise_status(state, status);
    return tensor_is_aligned(state, name, out);
}

bool tensor_read(module_state *state, PyObject *object, const char *name, tensor_use use, tensor_argument *out)
{
    *out = (tensor_argument){.capsule = NULL};
    int flags = PyBUF_STRIDES | PyBUF_FORMAT | (use == TENSOR_WRITE ? PyBUF_WRITABLE : 0);
    if (PyObject_CheckBuffer(object)) {
        if (PyObject_GetBuffer(object, &out->buffer, flags) == 0)
            return wrap(state, &out->buffer, name, &out->t);
        out->buffer.obj = NULL;
        PyObject *type, *value, *trace; /* why not, for the sentence: "... is read-only" */
        PyErr_Fetch(&type, &value, &trace);
        bool refused = use == TENSOR_WRITE || !PyObject_HasAttrString(object, "__dlpack__");
        if (refused)
            raise_sentence(state, ATT_ERR_ARGUMENT, "%s: %S", name, value ? value : Py_None);
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(trace);
        if (refused)
            return false;
    }
    if (PyObject_HasAttrString(object, "__dlpack__"))
        return tensor_from_dlpack(state, object, name, use, out);
    PyObject *type = PyType_GetQualName(Py_TYPE(object));
    if (type)
        raise_sentence(state, ATT_ERR_DTYPE, "%s: an array with the buffer protocol or DLPack is needed, not %S", name,
                       type);
    Py_XDECREF(type);
    return false;
}

bool tensor_read_rows(module_state *state, PyObject *object, const char *name, tensor_argument *out)
{
    if (!tensor_read(state, object, name, TENSOR_READ, out))
        return false;
    att_tensor *t = &out->t;
    if (t->rank == 1) {
        t->dim[1] = t->dim[0], t->stride[1] = t->stride[0];
        t->dim[0] = 1, t->stride[0] = t->dim[1], t->rank = 2;
    }
    if (t->dtype != ATT_F32)
        return raise_sentence(state, ATT_ERR_DTYPE, "%s: is %s, embeddings are float32", name,
                              att_dtype_name(t->dtype));
    return t->rank == 2 || raise_sentence(state, ATT_ERR_SHAPE,
                                          "%s: has %d dimensions, embeddings are [n, dim] or [dim]", name, t->rank);
}

void tensor_release(tensor_argument *a)
{
    if (a->buffer.obj)
        PyBuffer_Release(&a->buffer);
    PyObject *type, *value, *trace; /* a deleter may be Python code, which must not see an exception */
    PyErr_Fetch(&type, &value, &trace);
    if (a->managed && a->versioned) {
        dlpack_versioned *v = a->managed;
        if (v->deleter)
            v->deleter(v);
    } else if (a->managed) {
        dlpack_managed *m = a->managed;
        if (m->deleter)
            m->deleter(m);
    }
    PyErr_Restore(type, value, trace);
    Py_CLEAR(a->capsule);
    free(a->copy);
    a->copy = NULL;
    a->managed = NULL;
}
