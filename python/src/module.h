/* What the files of the extension module attend._attend share. It uses Python's limited API of 3.11 alone, so that one
 * file serves all later versions. */
#ifndef ATT_PYTHON_MODULE_H
#define ATT_PYTHON_MODULE_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include <stdbool.h>
#include <string.h>

#include "attend.h"

enum { MODULE_STATUSES = ATT_ERR_BUSY + 1, MODULE_PLANS = 32 };

/* Plans of attention by their spec, the last one used first */
typedef struct module_plans {
    struct plan_of_spec *first;
    int n;
} module_plans;

/* What each interpreter has of its own. The context and its objects are closed when the last object is gone, as each
 * holds its type, which holds the module. */
typedef struct module_state {
    att_ctx *ctx;
    PyObject *error;                     /* attend.Error */
    PyObject *error_of[MODULE_STATUSES]; /* its subclass of a status */
    PyObject *file_not_found;
    PyTypeObject *array, *sentence, *tokenizer, *generator, *session, *classifier;
    module_plans plans;
} module_state;

/* ---- errors (errors.c) */

/* Makes the exceptions and adds them to the module. -1 with an exception set */
int errors_add(PyObject *module, module_state *state);
/* Raises what the last call of this thread with the library said. Returns NULL, for `return raise_status(...)`. */
PyObject *raise_status(module_state *state, att_status status);
/* Raises it of ATT_ERR_IO as an exception that is a FileNotFoundError, too: a file or model is not there */
PyObject *raise_not_found(module_state *state);
/* Raises the exception of a status with a sentence in PyErr_Format's format */
PyObject *raise_sentence(module_state *state, att_status status, const char *format, ...);

/* ---- arrays (array.c, dlpack.c, tensor.c) */

/* attend.Array: numbers that the library has made, or a view of them */
typedef struct array {
    PyObject_HEAD att_tensor t;
    void *memory;   /* to be freed, or NULL */
    PyObject *base; /* whose memory it is, or NULL */
    bool read_only;
    char byte_format; /* 'b' or 'B': its numbers are bytes, as t.dtype does not have them; 0: as t.dtype */
} array;

extern PyType_Spec array_spec;
/* A new one with memory of its own, dense; t.data is not initialized */
array *array_new(module_state *state, att_dtype dtype, int rank, const int64_t *dim);
/* In the type of arrays that the caller uses: a NumPy array or a torch tensor if `like` is one, else the array. Takes
 * the reference. */
PyObject *array_like(array *a, PyObject *like);

PyObject *array_dlpack(PyObject *self, PyObject *args, PyObject *keywords);
PyObject *array_dlpack_device(PyObject *self, PyObject *unused);

/* A tensor that an argument gives, with what has to be released after its use */
typedef struct tensor_argument {
    att_tensor t;
    Py_buffer buffer;  /* obj NULL: none */
    PyObject *capsule; /* of DLPack, or NULL */
    void *managed;     /* its DLManagedTensor */
    bool versioned;
} tensor_argument;
typedef enum tensor_use { TENSOR_READ, TENSOR_WRITE } tensor_use;
/* Reads an object with the buffer protocol or DLPack, without a copy. name: of the argument, for errors. false with an
 * exception set */
bool tensor_read(module_state *state, PyObject *object, const char *name, tensor_use use, tensor_argument *out);
bool tensor_from_dlpack(module_state *state, PyObject *object, const char *name, tensor_use use, tensor_argument *out);
void tensor_release(tensor_argument *a);

/* ---- long calls (progress.c) */

typedef struct progress {
    PyObject *function; /* called with the share of the work that is done; or NULL */
} progress;
/* An att_progress_fn whose user is a progress */
bool progress_call(void *user, double share);
/* The result of a call that had progress_call, or NULL with the exception that ended it */
PyObject *progress_result(module_state *state, att_status status, PyObject *result);

/* similarity(a, b, name): [n, m] (similarity.c) */
PyObject *similarity(PyObject *module, PyObject *args);

/* ---- embeddings in fewer bits (vectors.c) */

PyObject *vectors_ranges(PyObject *module, PyObject *embeddings);
PyObject *vectors_quantize(PyObject *module, PyObject *args);
PyObject *vectors_search(PyObject *module, PyObject *args);

/* ---- models (sentence.c, tokenizer.c, generator.c, classifier.c) */

extern PyType_Spec sentence_spec, tokenizer_spec, generator_spec, session_spec, classifier_spec;

/* ---- attention (attention.c, attention_arguments.c, plans.c) */

PyObject *attention_forward(PyObject *module, PyObject *args, PyObject *keywords);
PyObject *attention_backward(PyObject *module, PyObject *args, PyObject *keywords);
extern const char attention_forward_doc[], attention_backward_doc[];

#endif
