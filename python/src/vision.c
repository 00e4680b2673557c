/* attend._attend.ImageModel: a vision Transformer with its preprocessing. attend.ImageClassifier (image_classifier.py)
 * gives it the names that users know. */
#include "images.h"
#include "model.h"

typedef struct image_model {
    PyObject_HEAD att_image_model *m;
    att_vit_info info;
} image_model;

static module_state *state_of(PyObject *self) { return PyType_GetModuleState(Py_TYPE(self)); }

static att_status open_image_model(att_ctx *ctx, const model_arguments *a, PyObject *object)
{
    image_model *self = (image_model *)object;
    self->info.size = sizeof self->info;
    const att_status status = att_image_model_open(ctx, a->path.text, &a->options, &self->m);
    return status ? status : att_vit_describe(att_image_model_vit(self->m), &self->info);
}

static PyObject *image_model_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    return model_new(type, args, keywords, open_image_model);
}

static void image_model_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    att_image_model_free(((image_model *)self)->m);
    PyObject_Free(self);
    Py_DECREF(type);
}

typedef att_status (*rows_function)(const att_image_model *m, int64_t n, const att_image *image,
                                    const att_call_options *options, float *out);

/* (images, first): a row of `columns` numbers of each image, by att_image_classify or att_image_embed */
static PyObject *rows_of(PyObject *self, PyObject *args, rows_function function, int64_t columns)
{
    module_state *state = state_of(self);
    const image_model *m = (image_model *)self;
    PyObject *given;
    long long first = 0;
    images i;
    array *out = NULL;
    if (!PyArg_ParseTuple(args, "O|L", &given, &first))
        return NULL;
    progress p = {.function = NULL};
    const att_call_options options = {.size = sizeof options, .progress = progress_call, .user = &p};
    att_status status = ATT_OK;
    if (images_read(state, given, first, &i))
        out = array_new(state, ATT_F32, 2, (int64_t[]){i.n, columns});
    if (out) {
        LONG_CALL_BEGIN
        status = function(m->m, i.n, i.image, &options, out->t.data);
        LONG_CALL_END(status)
    }
    images_release(state, &i);
    return call_result(state, status, (PyObject *)out);
}

/* classify(images, first=0): probabilities [n, classes] */
static PyObject *classify(PyObject *self, PyObject *args)
{
    return rows_of(self, args, att_image_classify, att_image_model_classes(((image_model *)self)->m));
}

/* embed(images, first=0): [n, dim] */
static PyObject *embed(PyObject *self, PyObject *args)
{
    return rows_of(self, args, att_image_embed, att_image_model_dim(((image_model *)self)->m));
}

/* attention(image, layer=-1, head=-1): (weights [tokens, tokens], rows, columns, tokens before the patches) */
static PyObject *attention(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"image", "layer", "head", NULL};
    module_state *state = state_of(self);
    PyObject *image, *result = NULL;
    long long layer = -1, head = -1;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|LL:attention", names, &image, &layer, &head))
        return NULL;
    PyObject *one = PyTuple_Pack(1, image);
    images i = {.n = 0};
    if (one && images_read(state, one, 0, &i)) {
        att_trace *t = NULL;
        att_trace_info info = {.size = sizeof info};
        att_status status;
        LONG_CALL_BEGIN
        status = att_image_trace(((image_model *)self)->m, i.image, NULL, &t);
        LONG_CALL_END(status)
        status = status == ATT_OK ? att_trace_describe(t, &info) : status;
        PyObject *weights = status == ATT_OK ? trace_weights(state, t, ATT_TRACE_SIDE_ENCODER, layer, head)
                                             : call_result(state, status, NULL);
        result = weights ? Py_BuildValue("(NLLL)", weights, (long long)info.grid[0], (long long)info.grid[1],
                                         (long long)info.prefix)
                         : NULL;
        att_trace_free(t);
    }
    images_release(state, &i);
    Py_XDECREF(one);
    return result;
}

static PyObject *get_info(PyObject *self, void *unused)
{
    (void)unused;
    const image_model *m = (image_model *)self;
    const int64_t n = att_image_model_classes(m->m);
    PyObject *labels = PyList_New((Py_ssize_t)n);
    for (int64_t i = 0; labels && i < n; i++) {
        const char *label = att_image_model_label(m->m, i);
        PyObject *name = PyUnicode_DecodeUTF8(label, (Py_ssize_t)strlen(label), "replace");
        if (!name || PyList_SetItem(labels, (Py_ssize_t)i, name))
            Py_CLEAR(labels);
    }
    if (!labels)
        return NULL;
    return Py_BuildValue("{s:N,s:L,s:s,s:L,s:L,s:L,s:L,s:O}", "labels", labels, "dim",
                         (long long)att_image_model_dim(m->m), "type", m->info.type, "layers",
                         (long long)m->info.layers, "heads", (long long)m->info.heads, "height",
                         (long long)m->info.image[0], "width", (long long)m->info.image[1], "multi_label",
                         m->info.multi_label ? Py_True : Py_False);
}

static PyGetSetDef properties[] = {
    {"info", get_info, NULL, "Labels, sizes and the model's type", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"classify", classify, METH_VARARGS, "classify($self, images, first=0, /)\n--\n\nProbabilities [n, classes]."},
    {"embed", embed, METH_VARARGS, "embed($self, images, first=0, /)\n--\n\nEmbeddings [n, dim]."},
    {"attention", (PyCFunction)(void (*)(void))attention, METH_VARARGS | METH_KEYWORDS,
     "attention($self, image, layer=-1, head=-1)\n--\n\n(weights [tokens, tokens], rows, columns, tokens before the "
     "patches); head -1: the mean of all."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "A vision Transformer with its preprocessing."},
    {Py_tp_new, image_model_new},
    {Py_tp_dealloc, image_model_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {0, NULL},
};

PyType_Spec image_model_spec = {"attend._attend.ImageModel", sizeof(image_model), 0, Py_TPFLAGS_DEFAULT, slots};
