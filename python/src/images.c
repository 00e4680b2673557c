/* Images of an argument: files by path or in memory, and arrays of pixels. */
#include "images.h"

/* As att_image_options.max_pixels */
static const int64_t max_pixels = (int64_t)1 << 27;

void images_release(module_state *state, images *i)
{
    for (int64_t k = 0; k < i->n; k++)
        att_image_free(state->ctx, &i->image[k]);
    PyMem_Free(i->image);
    *i = (images){.n = 0};
}

/* false with an exception */
static bool succeeded(module_state *state, att_status status)
{
    PyObject *none = call_result(state, status, Py_NewRef(Py_None));
    Py_XDECREF(none);
    return none != NULL;
}

static bool read_file(module_state *state, PyObject *path, att_image *out)
{
    PyObject *bytes = NULL;
    if (!PyUnicode_FSConverter(path, &bytes))
        return false;
    const char *name = PyBytes_AsString(bytes);
    att_status status;
    LONG_CALL_BEGIN
    status = att_image_open(state->ctx, name, NULL, out);
    LONG_CALL_END(status)
    Py_DECREF(bytes);
    return succeeded(state, status);
}

static bool decode(module_state *state, const char *label, const Py_buffer *b, att_image *out)
{
    att_status status;
    LONG_CALL_BEGIN
    status = att_image_decode(state->ctx, label, b->buf, (size_t)b->len, NULL, out);
    LONG_CALL_END(status)
    return succeeded(state, status);
}

/* Checks what a buffer of pixels is; the library copies an image, so one whose memory is the caller's is converted. */
static bool check_pixels(module_state *state, const char *label, const Py_buffer *b, att_image *out)
{
    if (b->itemsize != 1 || (b->format && strcmp(b->format, "B") != 0))
        return raise_sentence(state, ATT_ERR_DTYPE,
                              "%s: its numbers have the format \"%s\" (%zd bytes each), pixels are uint8 from 0 to 255",
                              label, b->format ? b->format : "B", b->itemsize);
    *out = (att_image){.height = b->shape[0], .width = b->shape[1], .channels = b->ndim == 3 ? b->shape[2] : 1};
    if (out->channels != 1 && out->channels != 3)
        return raise_sentence(state, ATT_ERR_SHAPE,
                              "%s: has %lld channels, must be [height, width, 3] of red, green and blue, or gray "
                              "[height, width]",
                              label, (long long)out->channels);
    if (out->height < 1 || out->width < 1 || out->height > max_pixels / out->width)
        return raise_sentence(state, ATT_ERR_SHAPE, "%s: has %lld x %lld pixels, must be from 1 to %lld", label,
                              (long long)out->height, (long long)out->width, (long long)max_pixels);
    return true;
}

static bool copy_pixels(module_state *state, const char *label, const Py_buffer *b, att_image *out)
{
    att_image view;
    if (!check_pixels(state, label, b, &view))
        return false;
    view.pixels = PyMem_Malloc((size_t)b->len);
    if (!view.pixels)
        return PyErr_NoMemory();
    att_status status = ATT_ERR_ARGUMENT;
    if (PyBuffer_ToContiguous(view.pixels, b, b->len, 'C') == 0)
        status = att_image_convert(state->ctx, &view, view.channels, out);
    PyMem_Free(view.pixels);
    return succeeded(state, status);
}

static bool read_buffer(module_state *state, PyObject *object, const char *label, att_image *out)
{
    Py_buffer b;
    if (PyObject_GetBuffer(object, &b, PyBUF_FULL_RO))
        return false;
    bool read = false;
    if (b.ndim == 1)
        read = decode(state, label, &b, out);
    else if (b.ndim == 2 || b.ndim == 3)
        read = copy_pixels(state, label, &b, out);
    else
        raise_sentence(state, ATT_ERR_SHAPE,
                       "%s: has %d dimensions, an image has [height, width] or [height, width, channels], a file in "
                       "memory one",
                       label, b.ndim);
    PyBuffer_Release(&b);
    return read;
}

static bool read_image(module_state *state, PyObject *object, long long number, att_image *out)
{
    char label[48];
    PyOS_snprintf(label, sizeof label, "images[%lld]", number);
    if (PyObject_CheckBuffer(object))
        return read_buffer(state, object, label, out);
    if (PyUnicode_Check(object) || PyObject_HasAttrString(object, "__fspath__"))
        return read_file(state, object, out);
    PyObject *type = PyType_GetQualName(Py_TYPE(object));
    if (type)
        raise_sentence(state, ATT_ERR_DTYPE,
                       "%s: a path, the bytes of a file, an image of Pillow or an array uint8 [height, width, 3] is "
                       "needed, not %S",
                       label, type);
    Py_XDECREF(type);
    return false;
}

bool images_read(module_state *state, PyObject *object, long long first, images *out)
{
    *out = (images){.n = 0};
    PyObject *tuple = PySequence_Tuple(object);
    if (!tuple)
        return false;
    const int64_t n = PyTuple_Size(tuple);
    out->image = PyMem_Calloc((size_t)n + 1, sizeof *out->image);
    bool read = out->image || PyErr_NoMemory();
    out->n = read ? n : 0;
    for (int64_t i = 0; read && i < n; i++)
        read = read_image(state, PyTuple_GetItem(tuple, (Py_ssize_t)i), first + i, &out->image[i]);
    Py_DECREF(tuple);
    return read;
}
