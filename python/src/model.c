/* Names and options of models. */
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

bool model_options_read(module_state *state, PyObject *dtype, att_model_options *out)
{
    static const char *const names[] = {
        [ATT_WEIGHT_TYPE_STORED] = "stored", [ATT_WEIGHT_TYPE_F32] = "float32", [ATT_WEIGHT_TYPE_F16] = "float16",
        [ATT_WEIGHT_TYPE_BF16] = "bfloat16", [ATT_WEIGHT_TYPE_INT8] = "int8",   [ATT_WEIGHT_TYPE_INT4] = "int4"};
    *out = (att_model_options){.size = sizeof *out};
    if (dtype == Py_None)
        return true;
    for (int i = 0; i <= ATT_WEIGHT_TYPE_INT4; i++)
        if (PyUnicode_Check(dtype) && PyUnicode_CompareWithASCIIString(dtype, names[i]) == 0) {
            out->weights = (att_weight_type)i;
            return true;
        }
    return raise_sentence(state, ATT_ERR_ARGUMENT,
                          "dtype: %R, must be None or one of stored, float32, float16, bfloat16, int8, int4", dtype);
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
