/* attend._attend.Safetensors: a mapped .safetensors file, of whose tensors attend.load_safetensors makes arrays. */
#include "attend_model.h"
#include "module.h"

typedef struct safetensors {
    PyObject_HEAD att_safetensors *f;
} safetensors;

static module_state *state_of(PyObject *self) { return PyType_GetModuleState(Py_TYPE(self)); }

static PyObject *safetensors_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"path", NULL};
    PyObject *path;
    module_state *state = PyType_GetModuleState(type);
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O&:Safetensors", names, PyUnicode_FSConverter, &path))
        return NULL;
    safetensors *self = PyObject_New(safetensors, type);
    if (self) {
        const char *text = PyBytes_AsString(path);
        att_status status;
        self->f = NULL;
        Py_BEGIN_ALLOW_THREADS
        status = att_safetensors_open(state->ctx, text, &self->f);
        Py_END_ALLOW_THREADS
        self = (safetensors *)call_result(state, status, (PyObject *)self);
    }
    Py_DECREF(path);
    return (PyObject *)self;
}

static void safetensors_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    att_safetensors_free(((safetensors *)self)->f);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* names() -> [str], in the file's order */
static PyObject *names(PyObject *self, PyObject *unused)
{
    (void)unused;
    const att_safetensors *f = ((safetensors *)self)->f;
    PyObject *list = PyList_New((Py_ssize_t)att_safetensors_count(f));
    for (int64_t i = 0; list && i < att_safetensors_count(f); i++) {
        PyObject *name = PyUnicode_FromString(att_safetensors_name(f, i));
        if (!name || PyList_SetItem(list, (Py_ssize_t)i, name))
            Py_CLEAR(list);
    }
    return list;
}

/* tensor(name) -> Array, read-only, which holds the file */
static PyObject *tensor(PyObject *self, PyObject *args)
{
    const char *name;
    module_state *state = state_of(self);
    if (!PyArg_ParseTuple(args, "s:tensor", &name))
        return NULL;
    att_safetensors_data data = {.size = sizeof data};
    att_status status = att_safetensors_get_data(((safetensors *)self)->f, name, &data);
    if (status != ATT_OK)
        return raise_status(state, status);
    const array_type *type = array_type_of(data.type);
    if (!type)
        return raise_sentence(state, ATT_ERR_UNSUPPORTED, "tensor \"%s\" is %s, which attend.Array does not have", name,
                              data.type);
    att_tensor t;
    status = att_wrap(&t, (void *)(uintptr_t)data.bytes, type->dtype, data.rank, data.dim, NULL);
    return status == ATT_OK ? (PyObject *)array_view(state, &t, type, true, self) : raise_status(state, status);
}

static PyObject *get_metadata(PyObject *self, void *unused)
{
    (void)unused;
    const att_safetensors *f = ((safetensors *)self)->f;
    PyObject *dict = PyDict_New();
    const char *key;
    for (int64_t i = 0; dict && (key = att_safetensors_metadata_key(f, i)); i++) {
        PyObject *value = PyUnicode_FromString(att_safetensors_metadata(f, key));
        if (!value || PyDict_SetItemString(dict, key, value))
            Py_CLEAR(dict);
        Py_XDECREF(value);
    }
    return dict;
}

static PyGetSetDef properties[] = {
    {"metadata", get_metadata, NULL, "Texts of the header by key", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"names", names, METH_NOARGS, "names($self, /)\n--\n\nNames of the tensors."},
    {"tensor", tensor, METH_VARARGS, "tensor($self, name, /)\n--\n\nA view of a tensor."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "A .safetensors file, mapped into memory."},
    {Py_tp_new, safetensors_new},
    {Py_tp_dealloc, safetensors_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {0, NULL},
};

PyType_Spec safetensors_spec = {"attend._attend.Safetensors", sizeof(safetensors), 0, Py_TPFLAGS_DEFAULT, slots};
