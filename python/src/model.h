/* What the types of models share. */
#ifndef ATT_PYTHON_MODEL_H
#define ATT_PYTHON_MODEL_H

#include "attend_model.h"
#include "module.h"

/* Finds a model: str or os.PathLike -> the path of its folder. false with an exception */
bool model_path(module_state *state, PyObject *name, att_model_path *out);
/* dtype: None or the name of a type of weights, "int8". false with an exception */
bool model_options_read(module_state *state, PyObject *dtype, att_model_options *out);

/* identify(path): (what a model of its kind is called, "model_type", architecture) */
PyObject *model_identify(PyObject *module, PyObject *name);

#endif
