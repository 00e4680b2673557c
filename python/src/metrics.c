/* BLEU and chrF of texts. attend/metrics.py gives them the names of sacrebleu. */
#include "attend_metric.h"
#include "module.h"
#include "texts.h"

static bool read_tokenizer(module_state *state, const char *name, att_bleu_tokenizer *out)
{
    static const char *const names[] = {
        [ATT_BLEU_TOKENIZER_13A] = "13a", [ATT_BLEU_TOKENIZER_CHAR] = "char", [ATT_BLEU_TOKENIZER_NONE] = "none"};
    for (int i = 0; i <= ATT_BLEU_TOKENIZER_NONE; i++)
        if (!strcmp(names[i], name)) {
            *out = (att_bleu_tokenizer)i;
            return true;
        }
    return raise_sentence(state, ATT_ERR_ARGUMENT, "tokenize: \"%s\", must be 13a, char or none", name);
}

/* Texts of several streams: stream r has a reference of each sentence, or texts_null */
typedef struct streams {
    texts *stream; /* [n] */
    int64_t n;
} streams;

static void streams_release(streams *s)
{
    for (int64_t r = 0; r < s->n; r++)
        texts_release(&s->stream[r]);
    PyMem_Free(s->stream);
}

/* Reads references [streams][sentences] for n sentences. false with an exception */
static bool streams_read(module_state *state, PyObject *object, int64_t n, streams *out)
{
    *out = (streams){.n = 0};
    PyObject *tuple = PySequence_Tuple(object);
    if (!tuple)
        return false;
    const int64_t count = PyTuple_Size(tuple);
    out->stream = PyMem_Calloc((size_t)count + 1, sizeof *out->stream);
    bool read = out->stream || PyErr_NoMemory();
    if (read && !count)
        read = raise_sentence(state, ATT_ERR_ARGUMENT, "references: is empty, at least one list of them is needed");
    for (int64_t r = 0; read && r < count; r++) {
        texts *t = &out->stream[out->n++];
        read = texts_read(state, PyTuple_GetItem(tuple, (Py_ssize_t)r), "references", true, t);
        if (read && t->single)
            read =
                raise_sentence(state, ATT_ERR_DTYPE, "references: lists of lists of str are needed, not a list of str");
        if (read && t->n != n)
            read = raise_sentence(state, ATT_ERR_SHAPE, "references[%lld]: %lld references for %lld hypotheses",
                                  (long long)r, (long long)t->n, (long long)n);
    }
    Py_DECREF(tuple);
    return read;
}

/* What the scores of a corpus come from */
typedef struct corpus {
    att_bleu_tokenizer tokenizer;
    att_bleu_counts sum;
    int64_t references; /* of each sentence; -1: they differ */
} corpus;

/* Adds the statistics of sentence i; text [references], bytes [references]: room for its references */
static att_status add_sentence(att_ctx *ctx, const texts *hypotheses, const streams *s, int64_t i, const char **text,
                               size_t *bytes, corpus *c)
{
    int64_t n = 0;
    for (int64_t r = 0; r < s->n; r++)
        if (s->stream[r].text[i] != texts_null)
            text[n] = s->stream[r].text[i], bytes[n++] = s->stream[r].bytes[i];
    c->references = i == 0 || c->references == n ? n : -1;
    att_bleu_counts one;
    att_status status =
        att_bleu_count(ctx, c->tokenizer, hypotheses->text[i], hypotheses->bytes[i], text, bytes, n, &one);
    if (status == ATT_OK)
        att_bleu_add(&c->sum, &one);
    return status;
}

static bool count(module_state *state, const texts *hypotheses, const streams *s, corpus *c)
{
    const char **text = PyMem_Calloc((size_t)s->n + 1, sizeof *text);
    size_t *bytes = PyMem_Calloc((size_t)s->n + 1, sizeof *bytes);
    bool counted = (text && bytes) || PyErr_NoMemory();
    if (counted) {
        const att_bleu_tokenizer tokenizer = c->tokenizer;
        att_status status;
        LONG_CALL_BEGIN
        *c = (corpus){.tokenizer = tokenizer};
        status = ATT_OK;
        for (int64_t i = 0; status == ATT_OK && i < hypotheses->n; i++)
            status = add_sentence(state->ctx, hypotheses, s, i, text, bytes, c);
        LONG_CALL_END(status)
        PyObject *none = call_result(state, status, Py_NewRef(Py_None));
        Py_XDECREF(none);
        counted = none != NULL;
    }
    PyMem_Free(text);
    PyMem_Free(bytes);
    return counted;
}

static PyObject *integers(const int64_t *x, int n)
{
    PyObject *list = PyList_New(n);
    for (int i = 0; list && i < n; i++) {
        PyObject *one = PyLong_FromLongLong(x[i]);
        if (!one || PyList_SetItem(list, i, one))
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *numbers(const double *x, int n)
{
    PyObject *list = PyList_New(n);
    for (int i = 0; list && i < n; i++) {
        PyObject *one = PyFloat_FromDouble(x[i]);
        if (!one || PyList_SetItem(list, i, one))
            Py_CLEAR(list);
    }
    return list;
}

/* bleu(hypotheses, references, tokenize='13a', effective_order=False): what the scores are, and come from */
PyObject *metrics_bleu(PyObject *module, PyObject *args)
{
    module_state *state = PyModule_GetState(module);
    PyObject *given, *references, *result = NULL;
    const char *name = "13a";
    int effective = 0;
    corpus c = {.references = 0};
    if (!PyArg_ParseTuple(args, "OO|sp:bleu", &given, &references, &name, &effective) ||
        !read_tokenizer(state, name, &c.tokenizer))
        return NULL;
    texts hypotheses;
    streams s = {.n = 0};
    if (texts_read(state, given, "hypotheses", false, &hypotheses) &&
        streams_read(state, references, hypotheses.n, &s) && count(state, &hypotheses, &s, &c)) {
        att_bleu_info info = {.size = sizeof info};
        att_status status =
            att_bleu_describe(&c.sum, ATT_OPTIONS(att_bleu_options, .effective_order = effective), &info);
        result = status == ATT_OK ? Py_BuildValue("{s:N,s:d,s:N,s:d,s:N,s:N,s:L,s:L,s:L}", "bleu_of",
                                                  numbers(info.bleu_of, ATT_BLEU_ORDER), "chrf", info.chrf,
                                                  "precisions", numbers(info.precision, ATT_BLEU_ORDER), "bp",
                                                  info.brevity, "counts", integers(c.sum.token_matches, ATT_BLEU_ORDER),
                                                  "totals", integers(c.sum.token_ngrams, ATT_BLEU_ORDER), "sys_len",
                                                  (long long)c.sum.tokens, "ref_len", (long long)c.sum.reference_tokens,
                                                  "references", (long long)c.references)
                                  : raise_status(state, status);
    }
    texts_release(&hypotheses);
    streams_release(&s);
    return result;
}
