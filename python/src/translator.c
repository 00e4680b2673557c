/* attend._attend.Translator: translations of texts and of tokens. attend.Translator (translator.py) gives it the names
 * and defaults that users know. */
#include "attend_translate.h"
#include "model.h"
#include "texts.h"

typedef struct translator {
    PyObject_HEAD att_translator *m;
    att_encoder_decoder_info info;
} translator;

static module_state *state_of(PyObject *self) { return PyType_GetModuleState(Py_TYPE(self)); }

static att_status open_translator(att_ctx *ctx, const model_arguments *a, PyObject *object)
{
    translator *self = (translator *)object;
    self->info.size = sizeof self->info;
    const att_status status = att_translator_open(ctx, a->path.text, &a->options, &self->m);
    return status ? status : att_encoder_decoder_describe(att_translator_model(self->m), &self->info);
}

static PyObject *translator_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    return model_new(type, args, keywords, open_translator);
}

static void translator_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    att_translator_free(((translator *)self)->m);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* ---- texts and tokens of a call */

/* Sequences of ids, concatenated: those of sequence i are ids [offsets[i], offsets[i + 1]) */
typedef struct id_rows {
    int32_t *ids;     /* [offsets[n]] */
    int64_t *offsets; /* [n + 1] */
    int64_t n;
} id_rows;

static void id_rows_release(id_rows *r)
{
    PyMem_Free(r->ids);
    PyMem_Free(r->offsets);
    *r = (id_rows){.n = 0};
}

/* Appends the ids of a sequence to row i. */
static bool append_row(module_state *state, PyObject *object, const char *name, int64_t i, id_rows *out)
{
    token_ids row;
    if (!ids_read(state, object, name, &row))
        return false;
    const int64_t begin = out->offsets[i], end = begin + row.n;
    int32_t *ids = PyMem_Realloc(out->ids, sizeof *ids * (size_t)(end + 1));
    if (ids) {
        memcpy(ids + begin, row.id, sizeof *ids * (size_t)row.n);
        out->ids = ids, out->offsets[i + 1] = end;
    }
    PyMem_Free(row.id);
    return ids || PyErr_NoMemory();
}

/* Reads a sequence of sequences of ids. false with an exception */
static bool id_rows_read(module_state *state, PyObject *object, const char *name, id_rows *out)
{
    *out = (id_rows){.n = 0};
    PyObject *tuple = PySequence_Tuple(object);
    if (!tuple)
        return false;
    out->n = PyTuple_Size(tuple);
    out->offsets = PyMem_Calloc((size_t)out->n + 1, sizeof *out->offsets);
    bool read = out->offsets || PyErr_NoMemory();
    for (int64_t i = 0; read && i < out->n; i++)
        read = append_row(state, PyTuple_GetItem(tuple, (Py_ssize_t)i), name, i, out);
    Py_DECREF(tuple);
    return read;
}

/* ---- translations */

typedef struct translate_arguments {
    PyObject *texts, *ids, *prefixes, *length_penalty, *function;
    int split, scores;
} translate_arguments;

/* (text, ids, score) of each translation that was found; the score is None if none was computed. */
static PyObject *translations_list(const att_translation *t, int64_t n, bool scores)
{
    PyObject *list = PyList_New(0);
    for (int64_t i = 0; list && i < n && t[i].text.text; i++) {
        PyObject *one =
            Py_BuildValue("(NNN)", PyUnicode_DecodeUTF8(t[i].text.text, (Py_ssize_t)t[i].text.bytes, "replace"),
                          ids_list(t[i].tokens.ids, t[i].tokens.count),
                          scores ? PyFloat_FromDouble((double)t[i].score) : Py_NewRef(Py_None));
        if (!one || PyList_Append(list, one))
            Py_CLEAR(list);
        Py_XDECREF(one);
    }
    return list;
}

/* Translates n texts or rows of ids: of each the list of its translations. */
static PyObject *run(translator *self, module_state *state, int64_t n, const texts *t, att_translate_options *options)
{
    const int64_t best = options->n_best ? options->n_best : 1;
    att_translation *out = PyMem_Calloc((size_t)(n * best) + 1, sizeof *out);
    if (!out)
        return PyErr_NoMemory();
    att_status status;
    LONG_CALL_BEGIN
    status = att_translate(self->m, n, t->text, t->bytes, options, out);
    LONG_CALL_END(status)
    PyObject *list = status == ATT_OK ? PyList_New((Py_ssize_t)n) : NULL;
    for (int64_t i = 0; list && i < n; i++) {
        PyObject *of_text = translations_list(out + i * best, best, !options->no_scores);
        if (!of_text || PyList_SetItem(list, (Py_ssize_t)i, of_text))
            Py_CLEAR(list);
    }
    for (int64_t i = 0; status == ATT_OK && i < n * best; i++)
        att_translation_free(state->ctx, &out[i]);
    PyMem_Free(out);
    return call_result(state, status, list);
}

static bool read_penalty(PyObject *given, float *value, const float **out)
{
    if (given == Py_None)
        return true;
    *value = (float)PyFloat_AsDouble(given), *out = value;
    return !PyErr_Occurred();
}

/* Runs what the arguments ask for: texts, or ids, with prefixes. */
static PyObject *translate_all(translator *self, module_state *state, const translate_arguments *a,
                               att_translate_options *options)
{
    texts t = {.n = 0};
    id_rows ids = {.n = 0}, prefixes = {.n = 0};
    PyObject *result = NULL;
    const bool is_text = a->ids == Py_None;
    if (is_text ? !texts_read(state, a->texts, "texts", false, &t) : !id_rows_read(state, a->ids, "source", &ids))
        goto done;
    const int64_t n = is_text ? t.n : ids.n;
    options->ids = ids.ids, options->offsets = ids.offsets;
    if (a->prefixes != Py_None) {
        if (!id_rows_read(state, a->prefixes, "target_prefix", &prefixes))
            goto done;
        if (prefixes.n != n) {
            raise_sentence(state, ATT_ERR_SHAPE, "target_prefix: %lld prefixes for %lld texts", (long long)prefixes.n,
                           (long long)n);
            goto done;
        }
        options->prefix_ids = prefixes.ids, options->prefix_offsets = prefixes.offsets;
    }
    result = run(self, state, n, &t, options);
done:
    texts_release(&t);
    id_rows_release(&ids);
    id_rows_release(&prefixes);
    return result;
}

/* translate(texts=None, *, ids=None, prefixes=None, beam=0, n_best=1, max_tokens=0, min_tokens=0, length_penalty=None,
 * split=False, scores=True, progress=None): of each text [(text, ids, score)] */
static PyObject *translate(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"texts",          "ids",   "prefixes", "beam",     "n_best", "max_tokens", "min_tokens",
                            "length_penalty", "split", "scores",   "progress", NULL};
    module_state *state = state_of(self);
    translate_arguments a = {Py_None, Py_None, Py_None, Py_None, Py_None, 0, 1};
    long long beam = 0, n_best = 1, max_tokens = 0, min_tokens = 0;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|O$OOLLLLOppO:translate", names, &a.texts, &a.ids, &a.prefixes,
                                     &beam, &n_best, &max_tokens, &min_tokens, &a.length_penalty, &a.split, &a.scores,
                                     &a.function))
        return NULL;
    const int64_t most = beam ? beam : att_translator_beam(((translator *)self)->m);
    if (n_best < 1 || n_best > most)
        return raise_sentence(state, ATT_ERR_ARGUMENT, "num_hypotheses: %lld, must be from 1 to the beam size, %lld",
                              n_best, (long long)most);
    progress p = {.function = a.function == Py_None ? NULL : a.function};
    float penalty;
    att_translate_options options = {.size = sizeof options,
                                     .beam = beam,
                                     .n_best = n_best,
                                     .max_tokens = max_tokens,
                                     .min_tokens = min_tokens,
                                     .split = a.split,
                                     .no_scores = !a.scores,
                                     .progress = progress_call,
                                     .user = &p};
    if (!read_penalty(a.length_penalty, &penalty, &options.length_penalty))
        return NULL;
    return translate_all((translator *)self, state, &a, &options);
}

/* ---- attention */

/* attention(ids, target, layer=-1, head=-1): weights [targets and eos, sources]; head -1: the mean of all */
static PyObject *attention(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"ids", "target", "layer", "head", NULL};
    module_state *state = state_of(self);
    const translator *t = (translator *)self;
    PyObject *source, *target, *result = NULL;
    long long layer = -1, head = -1;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO|LL:attention", names, &source, &target, &layer, &head))
        return NULL;
    token_ids ids = {.id = NULL}, to = {.id = NULL};
    if (ids_read(state, source, "source", &ids) && ids_read(state, target, "target", &to)) {
        const att_trace_options options = {
            .size = sizeof options, .ids = ids.id, .n_ids = ids.n, .layers = NULL, .n_layers = 0};
        att_trace *trace = NULL;
        att_status status;
        LONG_CALL_BEGIN
        status = att_translator_trace(t->m, NULL, 0, to.id, to.n, &options, &trace);
        LONG_CALL_END(status)
        result = status == ATT_OK ? trace_weights(state, trace, ATT_TRACE_SIDE_CROSS, layer, head)
                                  : call_result(state, status, NULL);
        att_trace_free(trace);
    }
    PyMem_Free(ids.id);
    PyMem_Free(to.id);
    return result;
}

/* ---- what it is */

static PyObject *get_info(PyObject *self, void *unused)
{
    (void)unused;
    const translator *t = (translator *)self;
    return Py_BuildValue("{s:s,s:L,s:L,s:L,s:L,s:L,s:L,s:L,s:i}", "architecture", t->info.architecture,
                         "source_vocabulary", (long long)t->info.source_vocabulary, "target_vocabulary",
                         (long long)t->info.target_vocabulary, "max_tokens", (long long)t->info.max_positions, "layers",
                         (long long)t->info.attention_layers, "heads", (long long)t->info.attention_heads, "beam",
                         (long long)att_translator_beam(t->m), "eos", (long long)t->info.eos, "unk",
                         (int)att_tokenizer_special(att_translator_tokenizer(t->m), ATT_TOKEN_UNK));
}

static PyGetSetDef properties[] = {
    {"info", get_info, NULL, "Architecture, sizes and the beam size of its settings", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"translate", (PyCFunction)(void (*)(void))translate, METH_VARARGS | METH_KEYWORDS,
     "translate($self, texts=None, *, ids=None, prefixes=None, beam=0, n_best=1, max_tokens=0, min_tokens=0,\n"
     "          length_penalty=None, split=False, scores=True, progress=None)\n--\n\nOf each text [(text, ids, "
     "score)], the best first."},
    {"attention", (PyCFunction)(void (*)(void))attention, METH_VARARGS | METH_KEYWORDS,
     "attention($self, ids, target, layer=-1, head=-1)\n--\n\nWeights of source tokens for each target token and eos; "
     "head -1: the mean of all."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "A translator: an encoder-decoder and its tokenizer."},
    {Py_tp_new, translator_new},
    {Py_tp_dealloc, translator_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {0, NULL},
};

PyType_Spec translator_spec = {"attend._attend.Translator", sizeof(translator), 0, Py_TPFLAGS_DEFAULT, slots};
