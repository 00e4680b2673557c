#include "image_set.h"

typedef struct image_set {
    PyObject_HEAD att_image_set *s;
} image_set;

static module_state *state_of(PyObject *self) { return PyType_GetModuleState(Py_TYPE(self)); }

att_image_set *image_set_of(module_state *state, PyObject *object)
{
    if (Py_TYPE(object) == state->image_set)
        return ((image_set *)object)->s;
    return (att_image_set *)raise_sentence(state, ATT_ERR_DTYPE, "a set of images is needed");
}

/* Reads names, a tuple of str, or none. *out [n], to be freed by PyMem_Free */
static bool read_names(PyObject *names, const char ***out, int64_t *n)
{
    *n = PyTuple_Size(names);
    *out = PyMem_Calloc((size_t)*n + 1, sizeof **out);
    if (!*out)
        return PyErr_NoMemory();
    for (int64_t i = 0; i < *n; i++) {
        PyObject *one = PyTuple_GetItem(names, (Py_ssize_t)i);
        (*out)[i] = PyUnicode_Check(one) ? PyUnicode_AsUTF8AndSize(one, NULL) : NULL;
        if (!(*out)[i]) {
            if (!PyErr_Occurred())
                PyErr_Format(PyExc_TypeError, "labels: %R is not a str", one);
            return false;
        }
    }
    return true;
}

/* ImageSet(path, test, labels): labels () has those of the data */
static PyObject *set_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *keys[] = {"path", "test", "labels", NULL};
    module_state *state = PyType_GetModuleState(type);
    PyObject *path, *labels, *bytes = NULL;
    int test;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OpO!", keys, &path, &test, &PyTuple_Type, &labels))
        return NULL;
    const char **names = NULL;
    int64_t n;
    image_set *self = NULL;
    if (PyUnicode_FSConverter(path, &bytes) && read_names(labels, &names, &n) &&
        (self = PyObject_New(image_set, type))) {
        self->s = NULL;
        att_status status;
        LONG_CALL_BEGIN
        status = att_image_set_open(state->ctx, PyBytes_AsString(bytes),
                                    test ? ATT_IMAGE_SPLIT_TEST : ATT_IMAGE_SPLIT_TRAIN, n ? names : NULL, n, &self->s);
        LONG_CALL_END(status)
        self = (image_set *)call_result(state, status, (PyObject *)self);
    }
    PyMem_Free(names);
    Py_XDECREF(bytes);
    return (PyObject *)self;
}

static void set_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    att_image_set_free(((image_set *)self)->s);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* hold_out(share, seed): a set of that share of each class's images, which are removed */
static PyObject *hold_out(PyObject *self, PyObject *args)
{
    double share;
    unsigned long long seed;
    if (!PyArg_ParseTuple(args, "dK:hold_out", &share, &seed))
        return NULL;
    image_set *held = PyObject_New(image_set, Py_TYPE(self));
    if (!held)
        return NULL;
    held->s = NULL;
    const att_status status = att_image_set_hold_out(((image_set *)self)->s, share, seed, &held->s);
    return call_result(state_of(self), status, (PyObject *)held);
}

/* group(pattern): the number of images that are alone */
static PyObject *group(PyObject *self, PyObject *args)
{
    const char *pattern;
    int64_t alone;
    if (!PyArg_ParseTuple(args, "s:group", &pattern))
        return NULL;
    const att_status status = att_image_set_group(((image_set *)self)->s, pattern, &alone);
    return call_result(state_of(self), status, PyLong_FromLongLong(alone));
}

static PyObject *get_info(PyObject *self, void *unused)
{
    (void)unused;
    const att_image_set *s = ((image_set *)self)->s;
    att_image_set_info i = {.size = sizeof i};
    att_image_set_describe(s, &i);
    PyObject *labels = PyList_New((Py_ssize_t)i.classes);
    for (int64_t k = 0; labels && k < i.classes; k++) {
        const char *label = att_image_set_label(s, k);
        PyObject *text = PyUnicode_DecodeUTF8(label, (Py_ssize_t)strlen(label), "replace");
        if (!text || PyList_SetItem(labels, (Py_ssize_t)k, text))
            Py_CLEAR(labels);
    }
    if (!labels)
        return NULL;
    return Py_BuildValue("{s:s,s:L,s:L,s:L,s:L,s:s,s:N}", "format", i.format, "images", (long long)i.images, "classes",
                         (long long)i.classes, "height", (long long)i.height, "ignored", (long long)i.ignored,
                         "passed_over", i.passed_over, "labels", labels);
}

static PyGetSetDef properties[] = {
    {"info", get_info, NULL, "Counts and names", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"hold_out", hold_out, METH_VARARGS, "hold_out($self, share, seed, /)\n--\n\nA set of a share of the images."},
    {"group", group, METH_VARARGS, "group($self, pattern, /)\n--\n\nKeeps images together that are not independent."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Images with classes."}, {Py_tp_new, set_new},
    {Py_tp_dealloc, set_dealloc},        {Py_tp_methods, methods},
    {Py_tp_getset, properties},          {0, NULL},
};

PyType_Spec image_set_spec = {"attend._attend.ImageSet", sizeof(image_set), 0, Py_TPFLAGS_DEFAULT, slots};
