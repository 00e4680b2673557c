/* Embeddings in fewer bits, and search: what attend.quantize_embeddings and attend.semantic_search call. */
#include "attend_vectors.h"
#include "module.h"

static bool read_precision(module_state *state, const char *name, att_precision *out)
{
    for (int p = 0; att_precision_name((att_precision)p); p++)
        if (!strcmp(att_precision_name((att_precision)p), name)) {
            *out = (att_precision)p;
            return true;
        }
    return raise_sentence(state, ATT_ERR_ARGUMENT, "precision: \"%s\", must be float32, int8, uint8, binary or ubinary",
                          name);
}

/* Reads rows that follow each other in memory, or copies them. */
static bool dense_rows(module_state *state, PyObject *object, const char *name, tensor_argument *out)
{
    return tensor_read_rows(state, object, name, out) && tensor_make_dense(state, out, 2);
}

/* ranges(embeddings): [2, dim] */
PyObject *vectors_ranges(PyObject *module, PyObject *embeddings)
{
    module_state *state = PyModule_GetState(module);
    tensor_argument x = {.capsule = NULL};
    array *out = NULL;
    if (dense_rows(state, embeddings, "embeddings", &x))
        out = array_new(state, ATT_F32, 2, (int64_t[]){2, x.t.dim[1]});
    if (out) {
        att_status status;
        LONG_CALL_BEGIN
        status = att_ranges_begin(x.t.dim[1], out->t.data);
        if (status == ATT_OK)
            status = att_ranges_add(state->ctx, x.t.data, x.t.dim[0], x.t.dim[1], out->t.data);
        LONG_CALL_END(status)
        out = (array *)call_result(state, status, (PyObject *)out);
    }
    tensor_release(&x);
    return array_like(out, embeddings);
}

/* The codes of x, as yet an array. ranges: [2, dim], or its data is NULL */
static array *codes_of(module_state *state, att_precision precision, const att_tensor *x, const att_tensor *ranges)
{
    int64_t n = x->dim[0], dim = x->dim[1];
    if (ranges->data && (ranges->dim[0] != 2 || ranges->dim[1] != dim))
        return (array *)raise_sentence(state, ATT_ERR_SHAPE, "ranges: [2, %lld] is needed, not [%lld, %lld]",
                                       (long long)dim, (long long)ranges->dim[0], (long long)ranges->dim[1]);
    if (precision == ATT_PRECISION_FLOAT32)
        return (array *)raise_sentence(state, ATT_ERR_ARGUMENT, "precision: float32 leaves embeddings as they are");
    array *out = array_new(state, ATT_I8, 2, (int64_t[]){n, att_precision_bytes(precision, dim)});
    if (!out)
        return NULL;
    bool is_signed = precision == ATT_PRECISION_INT8 || precision == ATT_PRECISION_BINARY;
    out->type = array_type_of(is_signed ? "I8" : "U8");
    att_status status;
    LONG_CALL_BEGIN
    status = att_vectors_quantize(state->ctx, precision, x->data, n, dim, ranges->data, out->t.data);
    LONG_CALL_END(status)
    return (array *)call_result(state, status, (PyObject *)out);
}

/* quantize(embeddings, precision, ranges=None): codes [n, bytes], int8 or uint8 */
PyObject *vectors_quantize(PyObject *module, PyObject *args)
{
    module_state *state = PyModule_GetState(module);
    PyObject *embeddings, *given = Py_None;
    const char *name;
    att_precision precision = ATT_PRECISION_FLOAT32;
    if (!PyArg_ParseTuple(args, "Os|O:quantize", &embeddings, &name, &given))
        return NULL;
    tensor_argument x = {.capsule = NULL}, ranges = {.capsule = NULL};
    array *out = NULL;
    if (read_precision(state, name, &precision) && dense_rows(state, embeddings, "embeddings", &x) &&
        (given == Py_None || dense_rows(state, given, "ranges", &ranges)))
        out = codes_of(state, precision, &x.t, &ranges.t);
    tensor_release(&x);
    tensor_release(&ranges);
    return array_like(out, embeddings);
}

/* [(row, score)] of a query */
static PyObject *hits_of(const att_vector_hit *hit, int64_t k)
{
    PyObject *list = PyList_New(0);
    for (int64_t i = 0; list && i < k && hit[i].row >= 0; i++) {
        PyObject *pair = Py_BuildValue("(Ld)", (long long)hit[i].row, hit[i].score);
        if (!pair || PyList_Append(list, pair))
            Py_CLEAR(list);
        Py_XDECREF(pair);
    }
    return list;
}

static PyObject *search(module_state *state, const att_tensor *queries, const att_tensor *corpus, int64_t k,
                        bool cosine)
{
    int64_t n = queries->dim[0], rows = corpus->dim[0];
    if (queries->dim[1] != corpus->dim[1])
        return raise_sentence(state, ATT_ERR_SHAPE, "query_embeddings have %lld numbers, corpus_embeddings %lld",
                              (long long)queries->dim[1], (long long)corpus->dim[1]);
    if (k < 1)
        return raise_sentence(state, ATT_ERR_ARGUMENT, "top_k: %lld, must be from 1 on", (long long)k);
    if (k > rows)
        k = rows > 0 ? rows : 1;
    att_vector_hit *nearest = n > INT64_MAX / k ? NULL : PyMem_Calloc((size_t)(n * k) + 1, sizeof *nearest);
    if (!nearest)
        return PyErr_NoMemory();
    const att_vector_corpus in = {.size = sizeof in, .n = rows, .dim = corpus->dim[1], .codes = corpus->data};
    const att_vector_search_options options = {.size = sizeof options, .k = k, .cosine = cosine};
    att_status status;
    LONG_CALL_BEGIN
    status = att_vectors_search(state->ctx, &in, queries->data, n, &options, nearest);
    LONG_CALL_END(status)
    PyObject *found = status == ATT_OK ? PyList_New((Py_ssize_t)n) : raise_status(state, status);
    for (int64_t i = 0; found && i < n; i++) {
        PyObject *hits = hits_of(nearest + i * k, k);
        if (!hits || PyList_SetItem(found, (Py_ssize_t)i, hits))
            Py_CLEAR(found);
    }
    PyMem_Free(nearest);
    return found;
}

/* search(queries, corpus, k, cosine): of each query [(row, score)] */
PyObject *vectors_search(PyObject *module, PyObject *args)
{
    module_state *state = PyModule_GetState(module);
    PyObject *queries, *corpus, *found = NULL;
    long long k;
    int cosine;
    if (!PyArg_ParseTuple(args, "OOLp:search", &queries, &corpus, &k, &cosine))
        return NULL;
    tensor_argument q = {.capsule = NULL}, c = {.capsule = NULL};
    if (dense_rows(state, queries, "query_embeddings", &q) && dense_rows(state, corpus, "corpus_embeddings", &c))
        found = search(state, &q.t, &c.t, k, cosine);
    tensor_release(&q);
    tensor_release(&c);
    return found;
}
