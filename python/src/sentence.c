/* attend._attend.Sentence: sentence embeddings. attend.SentenceTransformer (sentence_transformer.py) gives it the names
 * and defaults that users know. */
#include "model.h"
#include "attend_sentence.h"
#include "texts.h"

#include <math.h>

typedef struct sentence {
    PyObject_HEAD att_sentence *m;
    att_sentence_info info;
} sentence;

static module_state *state_of(PyObject *self) { return PyType_GetModuleState(Py_TYPE(self)); }

static att_status open_sentence(att_ctx *ctx, const model_arguments *a, PyObject *object)
{
    sentence *self = (sentence *)object;
    self->info.size = sizeof self->info;
    const att_status status = att_sentence_open(ctx, a->path.text, &a->options, &self->m);
    return status ? status : att_sentence_describe(self->m, &self->info);
}

static PyObject *sentence_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    return model_new(type, args, keywords, open_sentence);
}

static void sentence_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    att_sentence_free(((sentence *)self)->m);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* ---- embeddings */

/* Divides each row [n, dim] by its norm, in double; a zero row stays. */
static void normalize(float *rows, int64_t n, int64_t dim)
{
    for (int64_t i = 0; i < n; i++, rows += dim) {
        double sum = 0;
        for (int64_t j = 0; j < dim; j++)
            sum += (double)rows[j] * rows[j];
        float factor = sum > 0 ? (float)(1 / sqrt(sum)) : 1;
        for (int64_t j = 0; j < dim; j++)
            rows[j] *= factor;
    }
}

/* The rows of nulls [n, dim] */
static void zero_nulls(const texts *t, float *rows, int64_t dim)
{
    for (int64_t i = 0; i < t->n; i++)
        if (t->text[i] == texts_null)
            memset(rows + i * dim, 0, sizeof(float) * (size_t)dim);
}

typedef struct encode_arguments {
    PyObject *texts, *out, *function;
    const char *prompt, *prompt_name;
    long long dims;
    int normalize, nulls_zero;
} encode_arguments;

/* Where the rows go: out's memory, or that of a new array. NULL with an exception */
static float *rows_of(module_state *state, const encode_arguments *a, int64_t n, int64_t dim, tensor_argument *written,
                      array **made)
{
    if (a->out == Py_None) {
        *made = array_new(state, ATT_F32, 2, (int64_t[]){n, dim});
        return *made ? (*made)->t.data : NULL;
    }
    if (!tensor_read(state, a->out, "out", TENSOR_WRITE, written))
        return NULL;
    const att_tensor *t = &written->t;
    if (t->rank == 2 && t->dtype == ATT_F32 && t->dim[0] == n && t->dim[1] == dim && t->stride[1] == 1 &&
        t->stride[0] == dim)
        return t->data;
    return (float *)raise_sentence(state, ATT_ERR_SHAPE, "out: float32 [%lld, %lld], contiguous, is needed",
                                   (long long)n, (long long)dim);
}

static PyObject *embed(sentence *self, module_state *state, const encode_arguments *a, const texts *t)
{
    int64_t dim = a->dims ? a->dims : self->info.dim;
    if (dim < 1 || dim > self->info.full_dim)
        return raise_sentence(state, ATT_ERR_ARGUMENT, "truncate_dim: %lld is not from 1 to %lld, the model's",
                              (long long)dim, (long long)self->info.full_dim);
    tensor_argument written = {.capsule = NULL};
    array *made = NULL;
    float *rows = rows_of(state, a, t->n, dim, &written, &made);
    if (!rows) {
        tensor_release(&written);
        return NULL;
    }
    progress p = {.function = a->function == Py_None ? NULL : a->function};
    const att_embed_options options = {.size = sizeof options,
                                       .progress = progress_call,
                                       .user = &p,
                                       .prompt = a->prompt,
                                       .prompt_name = a->prompt_name,
                                       .dims = a->dims};
    att_status status;
    LONG_CALL_BEGIN
    status = att_sentence_embed(self->m, t->n, t->text, t->bytes, &options, rows);
    if (status == ATT_OK && a->normalize && !self->info.normalized)
        normalize(rows, t->n, dim);
    if (status == ATT_OK)
        zero_nulls(t, rows, dim);
    LONG_CALL_END(status)
    tensor_release(&written);
    return call_result(state, status, made ? (PyObject *)made : Py_NewRef(a->out));
}

/* encode(texts, *, prompt=None, prompt_name=None, dims=0, normalize=False, nulls_zero=False, out=None, progress=None)
 */
static PyObject *encode(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"texts",      "prompt", "prompt_name", "dims", "normalize",
                            "nulls_zero", "out",    "progress",    NULL};
    encode_arguments a = {.out = Py_None, .function = Py_None};
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|$zzLppOO:encode", names, &a.texts, &a.prompt, &a.prompt_name,
                                     &a.dims, &a.normalize, &a.nulls_zero, &a.out, &a.function))
        return NULL;
    module_state *state = state_of(self);
    texts t;
    PyObject *result = NULL;
    if (texts_read(state, a.texts, "inputs", a.nulls_zero, &t))
        result = embed((sentence *)self, state, &a, &t);
    texts_release(&t);
    return result;
}

/* Of each text an array [tokens, dim], copied from e */
static PyObject *vectors_of_tokens(module_state *state, const att_token_embeddings *e, int64_t n, int64_t dim)
{
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (int64_t i = 0; list && i < n; i++) {
        int64_t rows = e->offsets[i + 1] - e->offsets[i];
        array *one = array_new(state, ATT_F32, 2, (int64_t[]){rows, dim});
        if (one && rows > 0)
            memcpy(one->t.data, e->vectors + e->offsets[i] * dim, sizeof(float) * (size_t)(rows * dim));
        if (!one || PyList_SetItem(list, (Py_ssize_t)i, (PyObject *)one))
            Py_CLEAR(list);
    }
    return list;
}

/* encode_tokens(texts, *, prompt, prompt_name): of each text [tokens, token_dim] */
static PyObject *encode_tokens(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"texts", "prompt", "prompt_name", NULL};
    PyObject *given;
    progress p = {.function = NULL};
    att_embed_options options = {.size = sizeof options, .progress = progress_call, .user = &p};
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|$zz:encode_tokens", names, &given, &options.prompt,
                                     &options.prompt_name))
        return NULL;
    module_state *state = state_of(self);
    const sentence *s = (sentence *)self;
    texts t;
    PyObject *list = NULL;
    if (texts_read(state, given, "inputs", false, &t)) {
        att_token_embeddings e;
        att_status status;
        LONG_CALL_BEGIN
        status = att_sentence_embed_tokens(s->m, t.n, t.text, t.bytes, &options, &e);
        LONG_CALL_END(status)
        if (status == ATT_OK) {
            list = vectors_of_tokens(state, &e, t.n, s->info.token_dim);
            att_token_embeddings_free(state->ctx, &e);
        }
        list = call_result(state, status, list);
    }
    texts_release(&t);
    return list;
}

/* ---- attention */

static PyObject *tokens_of(const att_tokenizer *t, const int32_t *ids, int64_t n)
{
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (int64_t i = 0; list && i < n; i++) {
        const char *token = att_tokenizer_token(t, ids[i]);
        PyObject *text = PyUnicode_DecodeUTF8(token, (Py_ssize_t)strlen(token), "replace");
        if (!text || PyList_SetItem(list, (Py_ssize_t)i, text))
            Py_CLEAR(list);
    }
    return list;
}

/* (weights [n, n] of a head, tokens) of a trace; layer -1: the last, head -1: the mean of all */
static PyObject *weights_of(sentence *self, module_state *state, const att_trace *t, long long layer, long long head)
{
    att_trace_info info = {.size = sizeof info};
    att_trace_describe(t, &info);
    const att_trace_side side = info.source ? ATT_TRACE_SIDE_ENCODER : ATT_TRACE_SIDE_DECODER;
    PyObject *weights = trace_weights(state, t, side, layer, head);
    const int32_t *ids = info.source ? info.source_ids : info.target_ids;
    const int64_t n = info.source ? info.source : info.target;
    return weights ? Py_BuildValue("(NN)", weights, tokens_of(att_sentence_tokenizer(self->m), ids, n)) : NULL;
}

/* attention(text, layer=-1, head=-1, prompt=None): (weights, tokens) */
static PyObject *attention(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"text", "layer", "head", "prompt", NULL};
    const char *text, *prompt = NULL;
    Py_ssize_t bytes;
    long long layer = -1, head = -1;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "s#|LLz:attention", names, &text, &bytes, &layer, &head, &prompt))
        return NULL;
    module_state *state = state_of(self);
    sentence *s = (sentence *)self;
    att_trace *t;
    att_status status;
    LONG_CALL_BEGIN
    status = att_sentence_trace(s->m, text, (size_t)bytes, prompt, NULL, &t);
    LONG_CALL_END(status)
    if (status != ATT_OK)
        return raise_status(state, status);
    PyObject *result = weights_of(s, state, t, layer, head);
    att_trace_free(t);
    return result;
}

/* ---- what it is */

static PyObject *get_info(PyObject *self, void *unused)
{
    (void)unused;
    static const char *const similarities[] = {"cosine", "dot", "euclidean", "manhattan"};
    const sentence *s = (sentence *)self;
    PyObject *prompts = PyDict_New();
    for (int64_t i = 0; prompts && i < s->info.prompts; i++) {
        const char *name, *text = att_sentence_prompt_at(s->m, i, &name);
        PyObject *value = PyUnicode_FromString(text);
        if (!value || PyDict_SetItemString(prompts, name, value))
            Py_CLEAR(prompts);
        Py_XDECREF(value);
    }
    if (!prompts)
        return NULL;
    return Py_BuildValue("{s:L,s:L,s:L,s:O,s:s,s:N,s:z}", "dim", (long long)s->info.dim, "full_dim",
                         (long long)s->info.full_dim, "max_tokens", (long long)s->info.max_tokens, "normalized",
                         s->info.normalized ? Py_True : Py_False, "similarity", similarities[s->info.similarity],
                         "prompts", prompts, "default_prompt", s->info.default_prompt);
}

static PyGetSetDef properties[] = {
    {"info", get_info, NULL, "Sizes, prompts and the measure of similarity", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"encode", (PyCFunction)(void (*)(void))encode, METH_VARARGS | METH_KEYWORDS,
     "encode($self, texts, *, prompt=None, prompt_name=None, dims=0, normalize=False, nulls_zero=False, out=None,\n"
     "       progress=None)\n--\n\nEmbeddings [n, dim]."},
    {"encode_tokens", (PyCFunction)(void (*)(void))encode_tokens, METH_VARARGS | METH_KEYWORDS,
     "encode_tokens($self, texts, *, prompt=None, prompt_name=None)\n--\n\nOf each text the vectors of its tokens."},
    {"attention", (PyCFunction)(void (*)(void))attention, METH_VARARGS | METH_KEYWORDS,
     "attention($self, text, layer=-1, head=-1, prompt=None)\n--\n\n(weights [n, n], tokens); head -1: the mean of "
     "all."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "A sentence embedding model."},
    {Py_tp_new, sentence_new},
    {Py_tp_dealloc, sentence_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {0, NULL},
};

PyType_Spec sentence_spec = {"attend._attend.Sentence", sizeof(sentence), 0, Py_TPFLAGS_DEFAULT, slots};
