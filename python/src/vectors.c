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

/* float32 [n, dim], contiguous; a vector is one row */
static bool rows(module_state *state, PyObject *object, const char *name, tensor_argument *out)
{
    if (!tensor_read(state, object, name, TENSOR_READ, out))
        return false;
    att_tensor *t = &out->t;
    if (t->rank == 1) {
        t->dim[1] = t->dim[0], t->stride[1] = t->stride[0];
        t->dim[0] = 1, t->stride[0] = t->dim[1], t->rank = 2;
    }
    if (t->rank == 2 && t->dtype == ATT_F32 && t->stride[1] == 1 && (t->stride[0] == t->dim[1] || t->dim[0] < 2))
        return true;
    return raise_sentence(state, ATT_ERR_SHAPE, "%s: contiguous float32 is needed, [n, dim] or [dim]", name);
}

/* ranges(embeddings): [2, dim] */
PyObject *vectors_ranges(PyObject *module, PyObject *embeddings)
{
    module_state *state = PyModule_GetState(module);
    tensor_argument x = {.capsule = NULL};
    array *out = NULL;
    if (rows(state, embeddings, "embeddings", &x)) {
        int64_t n = x.t.dim[0], dim = x.t.dim[1];
        out = array_new(state, ATT_F32, 2, (int64_t[]){2, dim});
        att_status status = out ? att_ranges_begin(dim, out->t.data) : ATT_OK;
        if (out && status == ATT_OK)
            status = att_ranges_add(state->ctx, x.t.data, n, dim, out->t.data);
        if (status != ATT_OK) {
            Py_DECREF((PyObject *)out);
            out = (array *)raise_status(state, status);
        }
    }
    tensor_release(&x);
    return array_like(out, embeddings);
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
    if (read_precision(state, name, &precision) && rows(state, embeddings, "embeddings", &x) &&
        (given == Py_None || rows(state, given, "ranges", &ranges))) {
        int64_t n = x.t.dim[0], dim = x.t.dim[1];
        if (ranges.t.data && (ranges.t.dim[0] != 2 || ranges.t.dim[1] != dim))
            raise_sentence(state, ATT_ERR_SHAPE, "ranges: [2, %lld] is needed, not [%lld, %lld]", (long long)dim,
                           (long long)ranges.t.dim[0], (long long)ranges.t.dim[1]);
        else if (precision == ATT_PRECISION_FLOAT32)
            raise_sentence(state, ATT_ERR_ARGUMENT, "precision: float32 leaves embeddings as they are");
        else
            out = array_new(state, ATT_I8, 2, (int64_t[]){n, att_precision_bytes(precision, dim)});
        if (out) {
            out->type =
                array_type_of(precision == ATT_PRECISION_INT8 || precision == ATT_PRECISION_BINARY ? "I8" : "U8");
            att_status status;
            Py_BEGIN_ALLOW_THREADS status =
                att_vectors_quantize(state->ctx, precision, x.t.data, n, dim, ranges.t.data, out->t.data);
            Py_END_ALLOW_THREADS if (status != ATT_OK)
            {
                Py_DECREF((PyObject *)out);
                out = (array *)raise_status(state, status);
            }
        }
    }
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

static PyObject *search(module_state *state, const att_tensor *queries, const att_tensor *corpus,
                        const att_vector_search_options *options)
{
    int64_t n = queries->dim[0], k = options->k;
    if (queries->dim[1] != corpus->dim[1])
        return raise_sentence(state, ATT_ERR_SHAPE, "query_embeddings have %lld numbers, corpus_embeddings %lld",
                              (long long)queries->dim[1], (long long)corpus->dim[1]);
    att_vector_hit *nearest = k > 0 && k < 1 << 24 ? PyMem_Calloc((size_t)(n * k) + 1, sizeof *nearest) : NULL;
    if (!nearest)
        return k > 0 && k < 1 << 24 ? PyErr_NoMemory()
                                    : raise_sentence(state, ATT_ERR_ARGUMENT, "top_k: %lld", (long long)k);
    const att_vector_corpus in = {.size = sizeof in, .n = corpus->dim[0], .dim = corpus->dim[1], .codes = corpus->data};
    att_status status;
    Py_BEGIN_ALLOW_THREADS status = att_vectors_search(state->ctx, &in, queries->data, n, options, nearest);
    Py_END_ALLOW_THREADS PyObject *found = status == ATT_OK ? PyList_New((Py_ssize_t)n) : raise_status(state, status);
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
    if (rows(state, queries, "query_embeddings", &q) && rows(state, corpus, "corpus_embeddings", &c))
        found = search(state, &q.t, &c.t, ATT_OPTIONS(att_vector_search_options, .k = k, .cosine = cosine));
    tensor_release(&q);
    tensor_release(&c);
    return found;
}
