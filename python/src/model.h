/* What the types of models share. */
#ifndef ATT_PYTHON_MODEL_H
#define ATT_PYTHON_MODEL_H

#include "attend_model.h"
#include "attend_trace.h"
#include "module.h"

/* Finds a model: str or os.PathLike -> the path of its folder. false with an exception */
bool model_path(module_state *state, PyObject *name, att_model_path *out);

/* The arguments of a constructor: (path, *, dtype=None, compute=None). options.user is the progress, so a struct is not
 * copied. */
typedef struct model_arguments {
    att_model_path path;
    att_model_options options;
    progress progress;
} model_arguments;
/* dtype: None or the name of a type of weights, "int8"; compute: None or what products compute, "bfloat16". false with
 * an exception */
bool model_arguments_read(module_state *state, PyObject *args, PyObject *keywords, model_arguments *out);
/* Makes an object of a model, whose members are zeros until `open`, which runs without the GIL, has opened it. NULL
 * with an exception */
PyObject *model_new(PyTypeObject *type, PyObject *args, PyObject *keywords,
                    att_status (*open)(att_ctx *ctx, const model_arguments *a, PyObject *self));

/* Ids of tokens from an argument */
typedef struct token_ids {
    int32_t *id; /* [n], freed by PyMem_Free */
    int64_t n;
} token_ids;
/* Reads a sequence of integers. false with an exception, and out->id is NULL */
bool ids_read(module_state *state, PyObject *object, const char *name, token_ids *out);
PyObject *ids_list(const int32_t *ids, int64_t n);

/* Weights of a layer's head of a trace: [queries, keys]; layer -1: the last one of its side, head -1: the mean of all.
 * Returns NULL with an exception. */
PyObject *trace_weights(module_state *state, const att_trace *t, att_trace_side side, long long layer, long long head);

/* identify(path): (what a model of its kind is called, "model_type", architecture) */
PyObject *model_identify(PyObject *module, PyObject *name);

#endif
