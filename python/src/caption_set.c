#include "caption_set.h"
#include "options.h"

#include <stddef.h>

typedef struct caption_set {
    PyObject_HEAD att_caption_set *s;
} caption_set;

static const option_field fields[] = {
    OPTION(TEXT, att_caption_set_options, images),
    OPTION(TEXT, att_caption_set_options, list),
    OPTION(INTEGER, att_caption_set_options, skip_bad_lines),
    OPTION(TEXT, att_caption_set_options, image_column),
    OPTION(TEXT, att_caption_set_options, caption_column),
    {NULL, OPTION_BOOL, 0, NULL},
};

att_caption_set *caption_set_of(module_state *state, PyObject *object)
{
    if (Py_TYPE(object) == state->caption_set)
        return ((caption_set *)object)->s;
    return (att_caption_set *)raise_sentence(state, ATT_ERR_DTYPE, "a set of captions is needed");
}

/* CaptionSet(path, options) */
static PyObject *set_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"path", "options", NULL};
    module_state *state = PyType_GetModuleState(type);
    PyObject *path, *given, *bytes = NULL;
    att_caption_set_options options = {.size = sizeof options};
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO!", names, &path, &PyDict_Type, &given))
        return NULL;
    PyObject *held = PyList_New(0);
    caption_set *self = NULL;
    if (held && PyUnicode_FSConverter(path, &bytes) && options_read(state, given, fields, &options, held))
        self = PyObject_New(caption_set, type);
    if (self) {
        self->s = NULL;
        att_status status;
        LONG_CALL_BEGIN
        status = att_caption_set_open(state->ctx, PyBytes_AsString(bytes), &options, &self->s);
        LONG_CALL_END(status)
        self = (caption_set *)call_result(state, status, (PyObject *)self);
    }
    Py_XDECREF(bytes);
    Py_XDECREF(held);
    return (PyObject *)self;
}

static void set_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    att_caption_set_free(((caption_set *)self)->s);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *get_info(PyObject *self, void *unused)
{
    (void)unused;
    att_caption_set_info i = {.size = sizeof i};
    att_caption_set_describe(((caption_set *)self)->s, &i);
    return Py_BuildValue("{s:s,s:L,s:L,s:L,s:L,s:L}", "format", i.format, "images", (long long)i.images, "captions",
                         (long long)i.captions, "empty", (long long)i.empty, "missing", (long long)i.missing,
                         "uncaptioned", (long long)i.uncaptioned);
}

/* Paths of the images */
static PyObject *get_paths(PyObject *self, void *unused)
{
    (void)unused;
    const att_caption_set *s = ((caption_set *)self)->s;
    PyObject *list = PyList_New(0);
    const char *path;
    for (int64_t i = 0; list && (path = att_caption_set_path(s, i)); i++) {
        PyObject *one = PyUnicode_DecodeFSDefault(path);
        if (!one || PyList_Append(list, one))
            Py_CLEAR(list);
        Py_XDECREF(one);
    }
    return list;
}

static PyGetSetDef properties[] = {
    {"info", get_info, NULL, "Counts", NULL},
    {"paths", get_paths, NULL, "Paths of the images", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Images with captions."},
    {Py_tp_new, set_new},
    {Py_tp_dealloc, set_dealloc},
    {Py_tp_getset, properties},
    {0, NULL},
};

PyType_Spec caption_set_spec = {"attend._attend.CaptionSet", sizeof(caption_set), 0, Py_TPFLAGS_DEFAULT, slots};
