/* Names and options of models, and ids of tokens. */
#include "model.h"

bool model_path(module_state *state, PyObject *name, att_model_path *out)
{
    PyObject *bytes = NULL;
    if (!PyUnicode_FSConverter(name, &bytes))
        return false;
    att_status status = att_model_find(PyBytes_AsString(bytes), out);
    Py_DECREF(bytes);
    return status == ATT_OK || (status == ATT_ERR_IO ? raise_not_found(state) : raise_status(state, status));
}

/* Returns the index of a name among names [n]; -1: it is none of them. */
static int find_name(PyObject *given, int n, const char *const *names)
{
    for (int i = 0; i < n; i++)
        if (PyUnicode_Check(given) && PyUnicode_CompareWithASCIIString(given, names[i]) == 0)
            return i;
    return -1;
}

static bool read_weights(module_state *state, PyObject *dtype, att_weight_type *out)
{
    static const char *const names[] = {
        [ATT_WEIGHT_TYPE_STORED] = "stored", [ATT_WEIGHT_TYPE_F32] = "float32", [ATT_WEIGHT_TYPE_F16] = "float16",
        [ATT_WEIGHT_TYPE_BF16] = "bfloat16", [ATT_WEIGHT_TYPE_INT8] = "int8",   [ATT_WEIGHT_TYPE_INT4] = "int4"};
    const int found = dtype == Py_None ? ATT_WEIGHT_TYPE_STORED : find_name(dtype, ATT_WEIGHT_TYPE_INT4 + 1, names);
    *out = (att_weight_type)found;
    return found >= 0 ||
           raise_sentence(state, ATT_ERR_ARGUMENT,
                          "dtype: %R, must be None or one of stored, float32, float16, bfloat16, int8, int4", dtype);
}

static bool read_compute(module_state *state, PyObject *compute, att_compute *out)
{
    static const char *const names[] = {
        [ATT_COMPUTE_F32] = "float32", [ATT_COMPUTE_BF16] = "bfloat16", [ATT_COMPUTE_AUTO] = "auto"};
    const int found = compute == Py_None ? ATT_COMPUTE_F32 : find_name(compute, ATT_COMPUTE_AUTO + 1, names);
    *out = (att_compute)found;
    return found >= 0 || raise_sentence(state, ATT_ERR_ARGUMENT,
                                        "compute: %R, must be None or one of float32, bfloat16, auto", compute);
}

PyObject *model_identify(PyObject *module, PyObject *name)
{
    module_state *state = PyModule_GetState(module);
    att_model_path path;
    if (!model_path(state, name, &path))
        return NULL;
    att_model_identity id = {.size = sizeof id};
    att_status status = att_model_identify(state->ctx, path.text, &id);
    return status == ATT_OK ? Py_BuildValue("(sss)", att_subject_name(id.subject), id.type, id.architecture)
                            : raise_status(state, status);
}

bool model_arguments_read(module_state *state, PyObject *args, PyObject *keywords, model_arguments *out)
{
    static char *names[] = {"path", "dtype", "compute", NULL};
    PyObject *path, *dtype = Py_None, *compute = Py_None;
    out->progress = (progress){.function = NULL};
    out->options = (att_model_options){.size = sizeof out->options, .progress = progress_call, .user = &out->progress};
    return PyArg_ParseTupleAndKeywords(args, keywords, "O|$OO", names, &path, &dtype, &compute) &&
           model_path(state, path, &out->path) && read_weights(state, dtype, &out->options.weights) &&
           read_compute(state, compute, &out->options.compute);
}

PyObject *model_new(PyTypeObject *type, PyObject *args, PyObject *keywords,
                    att_status (*open)(att_ctx *ctx, const model_arguments *a, PyObject *self))
{
    module_state *state = PyType_GetModuleState(type);
    model_arguments a;
    PyObject *self = model_arguments_read(state, args, keywords, &a) ? PyType_GenericAlloc(type, 0) : NULL;
    if (!self)
        return NULL;
    att_status status;
    LONG_CALL_BEGIN
    status = open(state->ctx, &a, self);
    LONG_CALL_END(status)
    return call_result(state, status, self);
}

/* ---- ids of tokens */

static bool read_id(module_state *state, PyObject *object, const char *name, int64_t at, int32_t *out)
{
    long long id = PyLong_AsLongLong(object);
    if (id == -1 && PyErr_Occurred())
        return false;
    *out = (int32_t)id;
    return (id >= 0 && id <= INT32_MAX) ||
           raise_sentence(state, ATT_ERR_ARGUMENT, "%s[%lld]: %lld is not in the vocabulary", name, (long long)at, id);
}

bool ids_read(module_state *state, PyObject *object, const char *name, token_ids *out)
{
    *out = (token_ids){.id = NULL};
    PyObject *tuple = PySequence_Tuple(object);
    if (!tuple)
        return false;
    int64_t n = PyTuple_Size(tuple);
    int32_t *id = PyMem_Calloc((size_t)n + 1, sizeof *id);
    bool read = id || PyErr_NoMemory();
    for (int64_t i = 0; read && i < n; i++)
        read = read_id(state, PyTuple_GetItem(tuple, (Py_ssize_t)i), name, i, &id[i]);
    Py_DECREF(tuple);
    if (read)
        *out = (token_ids){id, n};
    else
        PyMem_Free(id);
    return read;
}

PyObject *ids_list(const int32_t *ids, int64_t n)
{
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (int64_t i = 0; list && i < n; i++) {
        PyObject *id = PyLong_FromLong(ids[i]);
        if (!id || PyList_SetItem(list, (Py_ssize_t)i, id))
            Py_CLEAR(list);
    }
    return list;
}

/* ---- attention */

PyObject *trace_weights(module_state *state, const att_trace *t, att_trace_side side, long long layer, long long head)
{
    const int64_t at = att_trace_find(t, side, layer);
    att_trace_attention_info info = {.size = sizeof info};
    if (at < 0) {
        att_trace_info all = {.size = sizeof all};
        att_trace_describe(t, &all);
        return raise_sentence(state, ATT_ERR_ARGUMENT, "layer: %lld, the model has %lld", layer,
                              (long long)all.layers[side]);
    }
    att_status status = att_trace_attention(t, at, &info);
    array *out = status == ATT_OK ? array_new(state, ATT_F32, 2, (int64_t[]){info.queries, info.keys}) : NULL;
    if (out)
        status = att_trace_weights(t, at, head, 0, info.queries, out->t.data);
    return call_result(state, status, (PyObject *)out);
}
