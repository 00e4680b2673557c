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

/* Plans of attention of one context by their spec, the last one used first */
typedef struct module_plans {
    att_ctx *ctx;
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
    PyTypeObject *array, *safetensors, *sentence, *tokenizer, *generator, *session, *classifier, *translator,
        *image_model, *captioner, *stage, *log, *recommender, *training, *image_set, *caption_set;
    module_plans plans; /* of ctx */
    module_plans torch; /* of a context that computes on torch's threads; ctx NULL: not opened */
    int torch_threads;  /* the number of threads of its last call */
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
/* Returns the result of a call of the library, of which it takes the reference; or, if the call failed or a callback
 * has raised, NULL with that exception. result NULL: an exception is set, or the call failed */
PyObject *call_result(module_state *state, att_status status, PyObject *result);
/* Returns whether a call of the library succeeded, and no callback has raised; else false with that exception. */
bool call_succeeded(module_state *state, att_status status);

/* ---- arrays (array.c, dlpack.c, tensor.c) */

/* A type of numbers of arrays, by its names and codes elsewhere */
typedef struct array_type {
    const char *name;   /* NumPy's, or that of ml_dtypes */
    const char *format; /* the buffer protocol's; NULL: it has none */
    uint8_t dlpack, bits;
    att_dtype dtype;
    const char *safetensors;
} array_type;
enum { ARRAY_READ_TYPES = 6 };
extern const array_type array_types[]; /* the first ARRAY_READ_TYPES are those of arguments; the last one has no name */
/* The type of a name in .safetensors files, or NULL: arrays do not have it. */
const array_type *array_type_of(const char *safetensors);

/* attend.Array: numbers that the library has made, or a view of them */
typedef struct array {
    PyObject_HEAD att_tensor t;
    void *memory;   /* to be freed, or NULL */
    PyObject *base; /* whose memory it is, or NULL */
    bool read_only;
    const array_type *type; /* t.dtype is its dtype */
} array;

extern PyType_Spec array_spec;
/* A new one with memory of its own, dense; t.data is not initialized */
array *array_new(module_state *state, att_dtype dtype, int rank, const int64_t *dim);
/* A view of memory that belongs to base */
array *array_view(module_state *state, const att_tensor *t, const array_type *type, bool read_only, PyObject *base);
/* In the type of arrays that the caller uses: a NumPy array or a torch tensor if `like` is one, else the array. Takes
 * the reference. */
PyObject *array_like(array *a, PyObject *like);

/* Pickling (array_pickle.c) */
PyObject *array_reduce(PyObject *self, PyObject *unused);
PyObject *array_of(PyObject *module, PyObject *args);

PyObject *array_dlpack(PyObject *self, PyObject *args, PyObject *keywords);
PyObject *array_dlpack_device(PyObject *self, PyObject *unused);

/* A tensor that an argument gives, with what has to be released after its use */
typedef struct tensor_argument {
    att_tensor t;
    Py_buffer buffer;  /* obj NULL: none */
    PyObject *capsule; /* of DLPack, or NULL */
    void *managed;     /* its DLManagedTensor */
    bool versioned;
    void *copy; /* to be freed, or NULL */
} tensor_argument;
typedef enum tensor_use { TENSOR_READ, TENSOR_WRITE } tensor_use;
/* Reads an object with the buffer protocol or DLPack, without a copy. name: of the argument, for errors. false with an
 * exception set */
bool tensor_read(module_state *state, PyObject *object, const char *name, tensor_use use, tensor_argument *out);
bool tensor_from_dlpack(module_state *state, PyObject *object, const char *name, tensor_use use, tensor_argument *out);
/* Reads embeddings: float32 [n, dim], with any strides; a vector is one row. false with an exception */
bool tensor_read_rows(module_state *state, PyObject *object, const char *name, tensor_argument *out);
/* Makes the numbers of the last n dimensions of an argument that is read follow each other: a copy, where they do not
 * (dense.c) */
bool tensor_make_dense(module_state *state, tensor_argument *a, int n);
void tensor_release(tensor_argument *a);
/* Raises an exception if elements do not begin at multiples of their size, as in a part of a packed record */
bool tensor_is_aligned(module_state *state, const char *name, const att_tensor *t);

/* ---- long calls (interrupt.c, progress.c) */

/* A call between these runs without the GIL, and Ctrl-C cancels it:
 *     LONG_CALL_BEGIN
 *     status = ...;
 *     LONG_CALL_END(status)
 * It may run several times: after a signal that was not to end it. */
#define LONG_CALL_BEGIN                                                                                                \
    {                                                                                                                  \
        long_call call_;                                                                                               \
        long_call_begin(&call_);                                                                                       \
        do {                                                                                                           \
            Py_BEGIN_ALLOW_THREADS
#define LONG_CALL_END(status)                                                                                          \
    Py_END_ALLOW_THREADS                                                                                               \
    }                                                                                                                  \
    while (long_call_again(&call_, status))                                                                            \
        ;                                                                                                              \
    }
typedef struct long_call {
    bool is_main;
    const volatile int *before; /* the thread's flag */
} long_call;
void long_call_begin(long_call *call);
/* Ends a call, perhaps with KeyboardInterrupt set; true: the signal was not to end it, it must be made again. */
bool long_call_again(long_call *call, att_status status);

typedef struct progress {
    PyObject *function; /* called with the share of the work that is done; or NULL */
} progress;
/* An att_progress_fn whose user is a progress */
bool progress_call(void *user, double share);

/* similarity(a, b, name, pairwise): [n, m] or [n] (similarity.c) */
PyObject *similarity(PyObject *module, PyObject *args);

/* ---- embeddings in fewer bits (vectors.c) */

PyObject *vectors_ranges(PyObject *module, PyObject *embeddings);
PyObject *vectors_quantize(PyObject *module, PyObject *args);
PyObject *vectors_search(PyObject *module, PyObject *args);

/* bleu(hypotheses, references, tokenize, effective_order): what scores of a corpus are, and come from (metrics.c) */
PyObject *metrics_bleu(PyObject *module, PyObject *args);

PyObject *tool(PyObject *module, PyObject *args); /* tool.c */

/* A view of a tensor of a .safetensors file (safetensors.c) */
extern PyType_Spec safetensors_spec;

/* ---- models (sentence.c, tokenizer.c, generator.c, classifier.c, translator.c, vision.c,
 * captioner.c) */

extern PyType_Spec sentence_spec, tokenizer_spec, generator_spec, session_spec, classifier_spec, translator_spec,
    recommender_spec, image_model_spec, captioner_spec;

/* ---- logs of actions, trainings, sets of images (log.c, recommender.c, training.c, image_set.c, caption_set.c) */

extern PyType_Spec log_spec, training_spec, image_set_spec, caption_set_spec;
PyObject *recommender_fit(PyObject *module, PyObject *args);

/* ---- attention (attention.c, attention_arguments.c, plans.c) */

PyObject *attention_forward(PyObject *module, PyObject *args, PyObject *keywords);
PyObject *attention_backward(PyObject *module, PyObject *args, PyObject *keywords);
PyObject *verify_attention(PyObject *module, PyObject *args, PyObject *keywords);
/* What attend.torch calls (torch.c) */
PyObject *torch_open(PyObject *module, PyObject *args);
PyObject *torch_forward(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *torch_backward(PyObject *module, PyObject *const *args, Py_ssize_t n);
extern const char torch_open_doc[], torch_forward_doc[], torch_backward_doc[];
extern const char attention_forward_doc[], attention_backward_doc[], verify_attention_doc[];
/* Scores, modifiers and masks of the caller's (stages.c) */
extern PyType_Spec stage_spec;

#endif
