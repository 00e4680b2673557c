/* attend._attend: the extension module. */
#include "module.h"

#include <stddef.h>
#include <stdlib.h>

#include "attention.h"
#include "model.h"

static PyObject *set_threads(PyObject *module, PyObject *args)
{
    int n;
    module_state *state = PyModule_GetState(module);
    if (!PyArg_ParseTuple(args, "i:set_threads", &n))
        return NULL;
    att_status status = att_set_threads(state->ctx, n);
    return status == ATT_OK ? Py_NewRef(Py_None) : raise_status(state, status);
}

static PyObject *config(PyObject *module, PyObject *unused)
{
    (void)unused;
    module_state *state = PyModule_GetState(module);
    return Py_BuildValue("{s:s,s:s,s:i}", "version", att_version(), "isa", att_isa(state->ctx), "threads",
                         att_threads(state->ctx));
}

static PyObject *find_model(PyObject *module, PyObject *name)
{
    att_model_path path;
    return model_path(PyModule_GetState(module), name, &path) ? PyUnicode_DecodeFSDefault(path.text) : NULL;
}

static PyObject *find_snapshot(PyObject *module, PyObject *args)
{
    module_state *state = PyModule_GetState(module);
    const char *name;
    PyObject *folder, *cache = NULL;
    int weights;
    att_model_path path;
    if (!PyArg_ParseTuple(args, "sOp:find_snapshot", &name, &folder, &weights) ||
        (folder != Py_None && !PyUnicode_FSConverter(folder, &cache)))
        return NULL;
    const att_hub_options options = {
        .size = sizeof options, .cache = cache ? PyBytes_AsString(cache) : NULL, .incomplete = !weights};
    att_status status = att_hub_find(name, &options, &path);
    Py_XDECREF(cache);
    if (status == ATT_ERR_IO)
        return raise_not_found(state);
    return status == ATT_OK ? PyUnicode_DecodeFSDefault(path.text) : raise_status(state, status);
}

static PyMethodDef functions[] = {
    {"set_threads", set_threads, METH_VARARGS,
     "set_threads(n, /)\n--\n\nHas later calls use n threads; 0: all with which the module began."},
    {"config", config, METH_NOARGS, "config()\n--\n\nThe library's version, its instruction set and its threads."},
    {"scaled_dot_product_attention", (PyCFunction)(void (*)(void))attention_forward, METH_VARARGS | METH_KEYWORDS,
     attention_forward_doc},
    {"attention_backward", (PyCFunction)(void (*)(void))attention_backward, METH_VARARGS | METH_KEYWORDS,
     attention_backward_doc},
    {"array_of", array_of, METH_VARARGS, "array_of(dtype, shape, bytes, /)\n--\n\nAn array, as pickle makes it."},
    {"verify_attention", (PyCFunction)(void (*)(void))verify_attention, METH_VARARGS | METH_KEYWORDS,
     verify_attention_doc},
    {"torch_open", torch_open, METH_VARARGS, torch_open_doc},
    {"torch_forward", (PyCFunction)(void (*)(void))torch_forward, METH_FASTCALL, torch_forward_doc},
    {"torch_backward", (PyCFunction)(void (*)(void))torch_backward, METH_FASTCALL, torch_backward_doc},
    {"identify", model_identify, METH_O, "identify(path, /)\n--\n\nWhat a model is: (kind, model_type, architecture)."},
    {"find_model", find_model, METH_O,
     "find_model(name, /)\n--\n\nThe path of a model: of a folder, or of a name in the models folder."},
    {"find_snapshot", find_snapshot, METH_VARARGS,
     "find_snapshot(name, cache, weights, /)\n--\n\nThe path of OWNER/NAME[@REVISION] in a cache of the Hub."},
    {"similarity", similarity, METH_VARARGS,
     "similarity(a, b, name='cosine', pairwise=False, /)\n--\n\nOf each row of a [n, dim] with each of b [m, dim]: "
     "[n, m]; or, pairwise, with the row of the same number: [n]."},
    {"ranges", vectors_ranges, METH_O,
     "ranges(embeddings, /)\n--\n\nOf each dimension the lowest and the highest number."},
    {"quantize", vectors_quantize, METH_VARARGS,
     "quantize(embeddings, precision, ranges=None, /)\n--\n\nCodes of embeddings."},
    {"search", vectors_search, METH_VARARGS,
     "search(queries, corpus, k, cosine, /)\n--\n\nOf each query [(row, score)]."},
    {"recommender_fit", recommender_fit, METH_VARARGS,
     "recommender_fit(log, settings, folder, half, progress, /)\n--\n\nMakes a model that counts, and writes it."},
    {"bleu", metrics_bleu, METH_VARARGS,
     "bleu(hypotheses, references, tokenize='13a', effective_order=False, /)\n--\n\nWhat BLEU and chrF of a corpus "
     "are, and come from."},
    {"tool", tool, METH_VARARGS,
     "tool(arguments, python, /)\n--\n\nRuns the command-line tool, and returns its exit code."},
    {NULL, NULL, 0, NULL},
};

/* ATTEND_THREADS, or 0: what the process may use. What is not a number is a warning, not an exception, so that the
 * tool, which imports the module, reports it in its own words. -1 with an exception: of a warning that is to be one */
static int threads_of_environment(void)
{
    const char *text = getenv("ATTEND_THREADS");
    if (!text || !*text)
        return 0;
    char *end;
    long n = strtol(text, &end, 10);
    if (!*end && n >= 0 && n <= 1 << 16)
        return (int)n;
    PyObject *given = PyUnicode_DecodeFSDefault(text); /* %A escapes its control characters */
    int failed =
        given
            ? PyErr_WarnFormat(PyExc_RuntimeWarning, 1,
                               "ATTEND_THREADS=%A is not a number of threads: attend uses all that the process may use",
                               given)
            : -1;
    Py_XDECREF(given);
    return failed;
}

static const struct {
    PyType_Spec *spec;
    size_t offset;
} types[] = {
    {&stage_spec, offsetof(module_state, stage)},
    {&array_spec, offsetof(module_state, array)},
    {&safetensors_spec, offsetof(module_state, safetensors)},
    {&sentence_spec, offsetof(module_state, sentence)},
    {&tokenizer_spec, offsetof(module_state, tokenizer)},
    {&generator_spec, offsetof(module_state, generator)},
    {&session_spec, offsetof(module_state, session)},
    {&classifier_spec, offsetof(module_state, classifier)},
    {&translator_spec, offsetof(module_state, translator)},
    {&log_spec, offsetof(module_state, log)},
    {&recommender_spec, offsetof(module_state, recommender)},
    {&training_spec, offsetof(module_state, training)},
    {&image_model_spec, offsetof(module_state, image_model)},
    {&captioner_spec, offsetof(module_state, captioner)},
    {&image_set_spec, offsetof(module_state, image_set)},
    {&caption_set_spec, offsetof(module_state, caption_set)},
};
enum { TYPES = sizeof types / sizeof *types };

static PyTypeObject **type_at(module_state *state, int i) { return (PyTypeObject **)((char *)state + types[i].offset); }

static bool type_add(PyObject *module, PyType_Spec *spec, PyTypeObject **out)
{
    *out = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
    return *out && PyModule_AddType(module, *out) == 0;
}

static int module_exec(PyObject *module)
{
    module_state *state = PyModule_GetState(module);
    int n = threads_of_environment();
    if (n < 0 || errors_add(module, state))
        return -1;
    att_status status = att_open(&state->ctx, ATT_OPTIONS(att_config, .n_threads = n));
    if (status != ATT_OK) {
        raise_status(state, status);
        return -1;
    }
    state->plans.ctx = state->ctx;
    for (int i = 0; i < TYPES; i++)
        if (!type_add(module, types[i].spec, type_at(state, i)))
            return -1;
    return PyModule_AddStringConstant(module, "__version__", att_version());
}

static int module_traverse(PyObject *module, visitproc visit, void *arg)
{
    module_state *state = PyModule_GetState(module);
    Py_VISIT(state->error);
    for (int i = 0; i < MODULE_STATUSES; i++)
        Py_VISIT(state->error_of[i]);
    Py_VISIT(state->file_not_found);
    for (int i = 0; i < TYPES; i++)
        Py_VISIT(*type_at(state, i));
    return plans_traverse(&state->plans, visit, arg);
}

static int module_clear(PyObject *module)
{
    module_state *state = PyModule_GetState(module);
    Py_CLEAR(state->error);
    for (int i = 0; i < MODULE_STATUSES; i++)
        Py_CLEAR(state->error_of[i]);
    Py_CLEAR(state->file_not_found);
    plans_free(&state->plans);
    plans_free(&state->torch);
    for (int i = 0; i < TYPES; i++)
        Py_CLEAR(*type_at(state, i));
    return 0;
}

static void module_free(void *module)
{
    module_state *state = PyModule_GetState(module);
    module_clear(module);
    att_close(state->torch.ctx);
    att_close(state->ctx);
    state->ctx = state->plans.ctx = state->torch.ctx = NULL;
}

static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, module_exec}, {0, NULL}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "attend._attend", "Attention and Transformers in C",
                                 sizeof(module_state),  functions,        module_slots,
                                 module_traverse,       module_clear,     module_free};

PyMODINIT_FUNC PyInit__attend(void) { return PyModuleDef_Init(&definition); }
