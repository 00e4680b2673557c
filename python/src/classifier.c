/* attend._attend.Classifier: labels of texts and scores of pairs. attend.CrossEncoder (cross_encoder.py) gives it the
 * names that users know. */
#include "attend_text_classifier.h"
#include "model.h"
#include "texts.h"

typedef struct classifier {
    PyObject_HEAD att_text_classifier *m;
    att_text_classifier_info info;
} classifier;

static const char *const activations[] = {[ATT_TEXT_ACTIVATION_MODEL] = "model",
                                          [ATT_TEXT_ACTIVATION_IDENTITY] = "identity",
                                          [ATT_TEXT_ACTIVATION_SIGMOID] = "sigmoid",
                                          [ATT_TEXT_ACTIVATION_SOFTMAX] = "softmax"};

static module_state *state_of(PyObject *self) { return PyType_GetModuleState(Py_TYPE(self)); }

static att_status open_classifier(att_ctx *ctx, const model_arguments *a, PyObject *object)
{
    classifier *self = (classifier *)object;
    self->info.size = sizeof self->info;
    const att_status status = att_text_classifier_open(ctx, a->path.text, &a->options, &self->m);
    return status ? status : att_text_classifier_describe(self->m, &self->info);
}

static PyObject *classifier_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    return model_new(type, args, keywords, open_classifier);
}

static void classifier_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    att_text_classifier_free(((classifier *)self)->m);
    PyObject_Free(self);
    Py_DECREF(type);
}

static bool read_activation(module_state *state, const char *name, att_text_activation *out)
{
    for (int i = 0; i <= ATT_TEXT_ACTIVATION_SOFTMAX; i++)
        if (!strcmp(activations[i], name)) {
            *out = (att_text_activation)i;
            return true;
        }
    return raise_sentence(state, ATT_ERR_ARGUMENT, "activation: \"%s\", must be model, identity, sigmoid or softmax",
                          name);
}

static PyObject *scores_of(classifier *self, module_state *state, const texts *first, const texts *second,
                           att_text_classify_options *options, PyObject *function)
{
    if (second->text && second->n != first->n)
        return raise_sentence(state, ATT_ERR_SHAPE, "pairs: %lld second texts for %lld first ones",
                              (long long)second->n, (long long)first->n);
    array *out = array_new(state, ATT_F32, 2, (int64_t[]){first->n, self->info.labels});
    if (!out)
        return NULL;
    progress p = {.function = function == Py_None ? NULL : function};
    options->progress = progress_call, options->user = &p;
    options->pairs = second->text, options->pair_bytes = second->bytes;
    att_status status;
    LONG_CALL_BEGIN
    status = att_text_classify(self->m, first->n, first->text, first->bytes, options, out->t.data);
    LONG_CALL_END(status)
    return call_result(state, status, (PyObject *)out);
}

/* scores(texts, pairs=None, *, activation="model", max_tokens=0, progress=None): [n, labels] */
static PyObject *scores(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"texts", "pairs", "activation", "max_tokens", "progress", NULL};
    PyObject *given, *pairs = Py_None, *function = Py_None, *result = NULL;
    const char *activation = "model";
    long long max_tokens = 0;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|O$sLO:scores", names, &given, &pairs, &activation, &max_tokens,
                                     &function))
        return NULL;
    module_state *state = state_of(self);
    att_text_classify_options options = {.size = sizeof options, .max_tokens = max_tokens};
    texts first = {.n = 0}, second = {.n = 0};
    if (read_activation(state, activation, &options.activation) && texts_read(state, given, "texts", false, &first) &&
        (pairs == Py_None || texts_read(state, pairs, "pairs", false, &second)))
        result = scores_of((classifier *)self, state, &first, &second, &options, function);
    texts_release(&first);
    texts_release(&second);
    return result;
}

static PyObject *get_info(PyObject *self, void *unused)
{
    (void)unused;
    const classifier *c = (classifier *)self;
    PyObject *labels = PyList_New((Py_ssize_t)c->info.labels);
    for (int64_t i = 0; labels && i < c->info.labels; i++) {
        PyObject *name = PyUnicode_FromString(att_text_classifier_label(c->m, i));
        if (!name || PyList_SetItem(labels, (Py_ssize_t)i, name))
            Py_CLEAR(labels);
    }
    if (!labels)
        return NULL;
    return Py_BuildValue("{s:N,s:L,s:s,s:s}", "labels", labels, "max_tokens", (long long)c->info.max_tokens,
                         "activation", activations[c->info.activation], "probability",
                         activations[c->info.probability]);
}

static PyGetSetDef properties[] = {
    {"info", get_info, NULL, "Labels, sizes and activations", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"scores", (PyCFunction)(void (*)(void))scores, METH_VARARGS | METH_KEYWORDS,
     "scores($self, texts, pairs=None, *, activation='model', max_tokens=0, progress=None)\n--\n\nOf texts or pairs: "
     "[n, labels]."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "A classifier of texts or of pairs of texts."},
    {Py_tp_new, classifier_new},
    {Py_tp_dealloc, classifier_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {0, NULL},
};

PyType_Spec classifier_spec = {"attend._attend.Classifier", sizeof(classifier), 0, Py_TPFLAGS_DEFAULT, slots};
