/* attend._attend.Captioner: captions of images. attend.Captioner (captioner.py) makes its interface. */
#include "attend_caption.h"
#include "images.h"
#include "model.h"

typedef struct captioner {
    PyObject_HEAD att_caption_model *m;
    att_caption_model_info info;
} captioner;

static module_state *state_of(PyObject *self) { return PyType_GetModuleState(Py_TYPE(self)); }

static att_status open_captioner(att_ctx *ctx, const model_arguments *a, PyObject *object)
{
    captioner *self = (captioner *)object;
    self->info.size = sizeof self->info;
    const att_status status = att_caption_model_open(ctx, a->path.text, &a->options, &self->m);
    return status ? status : att_caption_model_describe(self->m, &self->info);
}

static PyObject *captioner_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    return model_new(type, args, keywords, open_captioner);
}

static void captioner_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    att_caption_model_free(((captioner *)self)->m);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* ---- captions */

/* [(text, ids, score)] of an image's captions that were found */
static PyObject *captions_list(const att_image_caption *c, int64_t n)
{
    PyObject *list = PyList_New(0);
    for (int64_t i = 0; list && i < n && c[i].text; i++) {
        PyObject *one =
            Py_BuildValue("(NNd)", PyUnicode_DecodeUTF8(c[i].text, (Py_ssize_t)strlen(c[i].text), "replace"),
                          ids_list(c[i].ids, c[i].count), (double)c[i].score);
        if (!one || PyList_Append(list, one))
            Py_CLEAR(list);
        Py_XDECREF(one);
    }
    return list;
}

static PyObject *run(captioner *self, module_state *state, const images *i, const att_caption_options *options)
{
    const int64_t best = options->n_best;
    att_image_caption *out = PyMem_Calloc((size_t)(i->n * best) + 1, sizeof *out);
    if (!out)
        return PyErr_NoMemory();
    att_status status;
    LONG_CALL_BEGIN
    status = att_caption(self->m, i->n, i->image, options, out);
    LONG_CALL_END(status)
    PyObject *list = status == ATT_OK ? PyList_New((Py_ssize_t)i->n) : NULL;
    for (int64_t k = 0; list && k < i->n; k++) {
        PyObject *of_image = captions_list(out + k * best, best);
        if (!of_image || PyList_SetItem(list, (Py_ssize_t)k, of_image))
            Py_CLEAR(list);
    }
    for (int64_t k = 0; status == ATT_OK && k < i->n * best; k++)
        att_image_caption_free(state->ctx, &out[k]);
    PyMem_Free(out);
    return call_result(state, status, list);
}

/* caption(images, first=0, *, beam=0, n_best=1, max_words=0, length_penalty=1): of each image [(text, ids, score)] */
static PyObject *caption(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"images", "first", "beam", "n_best", "max_words", "length_penalty", NULL};
    module_state *state = state_of(self);
    PyObject *given;
    long long first = 0, beam = 0, n_best = 1, max_words = 0;
    float penalty = 1;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|L$LLLf:caption", names, &given, &first, &beam, &n_best,
                                     &max_words, &penalty))
        return NULL;
    if (n_best < 1 || n_best > 1024)
        return raise_sentence(state, ATT_ERR_ARGUMENT, "num_captions: %lld, must be from 1 to the beam size", n_best);
    progress p = {.function = NULL};
    const att_caption_options options = {.size = sizeof options,
                                         .beam = beam,
                                         .n_best = n_best,
                                         .max_words = max_words,
                                         .length_penalty = &penalty,
                                         .progress = progress_call,
                                         .user = &p};
    images i;
    PyObject *list = images_read(state, given, first, &i) ? run((captioner *)self, state, &i, &options) : NULL;
    images_release(state, &i);
    return list;
}

/* ---- attention */

static PyObject *weights_of(const captioner *c, module_state *state, const att_image *image, const token_ids *words,
                            long long layer, long long head)
{
    att_trace *t = NULL;
    att_trace_info info = {.size = sizeof info};
    att_status status;
    LONG_CALL_BEGIN
    status = att_caption_trace(c->m, image, words->id, words->n, NULL, &t);
    LONG_CALL_END(status)
    status = status == ATT_OK ? att_trace_describe(t, &info) : status;
    PyObject *weights = status == ATT_OK ? trace_weights(state, t, ATT_TRACE_SIDE_CROSS, layer, head)
                                         : call_result(state, status, NULL);
    att_trace_free(t);
    return weights ? Py_BuildValue("(NLL)", weights, (long long)info.grid[0], (long long)info.grid[1]) : NULL;
}

/* attention(image, ids, layer=-1, head=-1): (weights [words, locations], rows, columns) */
static PyObject *attention(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"image", "ids", "layer", "head", NULL};
    module_state *state = state_of(self);
    PyObject *image, *ids, *result = NULL;
    long long layer = -1, head = -1;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO|LL:attention", names, &image, &ids, &layer, &head))
        return NULL;
    token_ids words = {.id = NULL};
    images i = {.n = 0};
    PyObject *one = PyTuple_Pack(1, image);
    if (one && ids_read(state, ids, "ids", &words) && images_read(state, one, 0, &i))
        result = weights_of((captioner *)self, state, i.image, &words, layer, head);
    images_release(state, &i);
    PyMem_Free(words.id);
    Py_XDECREF(one);
    return result;
}

/* ---- what it is */

static PyObject *words(PyObject *self, PyObject *object)
{
    module_state *state = state_of(self);
    token_ids ids;
    if (!ids_read(state, object, "ids", &ids))
        return NULL;
    PyObject *list = PyList_New((Py_ssize_t)ids.n);
    for (int64_t i = 0; list && i < ids.n; i++) {
        const char *word = att_caption_model_word(((captioner *)self)->m, ids.id[i]);
        PyObject *text =
            word ? PyUnicode_DecodeUTF8(word, (Py_ssize_t)strlen(word), "replace")
                 : raise_sentence(state, ATT_ERR_ARGUMENT, "ids[%lld]: %d is not a word of the model, which has %lld",
                                  (long long)i, (int)ids.id[i], (long long)((captioner *)self)->info.words);
        if (!text || PyList_SetItem(list, (Py_ssize_t)i, text))
            Py_CLEAR(list);
    }
    PyMem_Free(ids.id);
    return list;
}

static PyObject *get_info(PyObject *self, void *unused)
{
    (void)unused;
    const att_caption_model_info *c = &((captioner *)self)->info;
    return Py_BuildValue("{s:s,s:s,s:s,s:L,s:L,s:L,s:L,s:L,s:L}", "encoder", c->encoder, "decoder", c->decoder,
                         "attention", c->attention, "height", (long long)c->image[0], "width", (long long)c->image[1],
                         "rows", (long long)c->grid[0], "columns", (long long)c->grid[1], "words", (long long)c->words,
                         "max_words", (long long)c->max_words);
}

static PyGetSetDef properties[] = {
    {"info", get_info, NULL, "Encoder, decoder, attention and sizes", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"caption", (PyCFunction)(void (*)(void))caption, METH_VARARGS | METH_KEYWORDS,
     "caption($self, images, first=0, *, beam=0, n_best=1, max_words=0, length_penalty=1)\n--\n\nOf each image [(text, "
     "ids, score)], the best first."},
    {"attention", (PyCFunction)(void (*)(void))attention, METH_VARARGS | METH_KEYWORDS,
     "attention($self, image, ids, layer=-1, head=-1)\n--\n\n(weights [words, locations], rows, columns); head "
     "-1: the mean of all."},
    {"words", words, METH_O, "words($self, ids, /)\n--\n\nThe words of ids."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "A captioner: an encoder of images and a decoder of words."},
    {Py_tp_new, captioner_new},
    {Py_tp_dealloc, captioner_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {0, NULL},
};

PyType_Spec captioner_spec = {"attend._attend.Captioner", sizeof(captioner), 0, Py_TPFLAGS_DEFAULT, slots};
