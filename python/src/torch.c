/* What attend.torch calls: attention on tensors of torch, given as addresses, shapes and strides, on torch's threads.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "attention.h"

const char torch_open_doc[] =
    "torch_open(parallel, threads, /)\n--\n\n"
    "Opens the context of the next two functions. parallel: the address of GOMP_parallel of the OpenMP runtime that "
    "torch\n"
    "uses, 0: threads of its own.";
#define TENSORS "Each tensor is (address, shape, stride) or None. Addresses are not checked.\n"
const char torch_forward_doc[] =
    "torch_forward(threads, dtype, query, key, value, out, lse, bias, mask, lengths, seed, causal, start, before, "
    "after,\n"
    "              softcap, scale, dropout, /)\n--\n\nAttention on memory of others. " TENSORS;
const char torch_backward_doc[] =
    "torch_backward(threads, dtype, query, key, value, out, lse, bias, mask, lengths, seed, causal, start, before, "
    "after,\n"
    "               softcap, scale, dropout, dout, dquery, dkey, dvalue, dbias, /)\n--\n\nIts gradients. " TENSORS;

/* ---- torch's threads */

/* As GNU's runtime declares it, and those of LLVM and Intel for programs compiled by gcc. n_threads 0: as many as
 * torch.set_num_threads says */
typedef void (*gomp_parallel)(void (*body)(void *data), void *data, unsigned n_threads, unsigned flags);

typedef struct team_work {
    void (*body)(void *arg, int i);
    void *arg;
    int n;
    atomic_int next;
} team_work;

static void team_member(void *data)
{
    team_work *w = data;
    for (int i; (i = atomic_fetch_add(&w->next, 1)) < w->n;)
        w->body(w->arg, i);
}

/* Runs bodies on the OpenMP team of the calling thread. It is always the whole team: its runtime ends threads that a
 * smaller one would not need, and starts them again for torch's next operation. */
static void on_torch_threads(void *user, int n, void (*body)(void *arg, int i), void *arg)
{
    team_work w = {.body = body, .arg = arg, .n = n};
    ((gomp_parallel)user)(team_member, &w, 0, 0);
}

PyObject *torch_open(PyObject *module, PyObject *args)
{
    module_state *state = PyModule_GetState(module);
    unsigned long long parallel;
    int threads;
    if (!PyArg_ParseTuple(args, "Ki:torch_open", &parallel, &threads))
        return NULL;
    if (state->torch.ctx)
        return raise_sentence(state, ATT_ERR_ARGUMENT, "torch_open: the context is open");
    att_config config = {.size = sizeof config, .n_threads = threads};
    if (parallel)
        config.parallel_for = on_torch_threads, config.parallel_user = (void *)(uintptr_t)parallel;
    att_status status = att_open(&state->torch.ctx, &config);
    state->torch_threads = threads;
    return status == ATT_OK ? Py_NewRef(Py_None) : raise_status(state, status);
}

/* ---- arguments */

enum {
    THREADS,
    DTYPE,
    QUERY,
    KEY,
    VALUE,
    OUT,
    LSE,
    BIAS,
    MASK,
    LENGTHS,
    SEED,
    CAUSAL,
    START,
    BEFORE,
    AFTER,
    SOFTCAP,
    SCALE,
    DROPOUT,
    FORWARD_ARGUMENTS,
    DOUT = FORWARD_ARGUMENTS,
    DQUERY,
    DKEY,
    DVALUE,
    DBIAS,
    BACKWARD_ARGUMENTS
};

/* (address, shape, stride) of the rank; None: a tensor of zeros */
static bool read_tensor(module_state *state, PyObject *given, att_dtype dtype, int rank, att_tensor *out)
{
    *out = (att_tensor){.data = NULL};
    if (given == Py_None)
        return true;
    PyObject *shape = PyTuple_GetItem(given, 1), *stride = shape ? PyTuple_GetItem(given, 2) : NULL;
    if (!stride)
        return false;
    if (PyTuple_Size(shape) != rank || PyTuple_Size(stride) != rank)
        return raise_sentence(state, ATT_ERR_SHAPE, "attend.torch: a tensor has %zd dimensions, %d are needed",
                              PyTuple_Size(shape), rank);
    int64_t dim[ATT_MAX_RANK], step[ATT_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        dim[i] = PyLong_AsLongLong(PyTuple_GetItem(shape, i));
        step[i] = dim[i] == 1 ? 1 : PyLong_AsLongLong(PyTuple_GetItem(stride, i)); /* torch leaves those of 1 open */
    }
    void *data = PyLong_AsVoidPtr(PyTuple_GetItem(given, 0));
    if (PyErr_Occurred())
        return false;
    att_status status = att_wrap(out, data, dtype, rank, dim, step);
    return status == ATT_OK || raise_status(state, status);
}

static bool read_operands(module_state *state, PyObject *const *args, attention_call *call)
{
    att_attention_args *a = &call->args;
    att_attention_spec *spec = &call->key.spec;
    spec->size = sizeof *spec, a->size = sizeof *a;
    spec->dtype = (att_dtype)PyLong_AsLong(args[DTYPE]);
    if (!read_tensor(state, args[QUERY], spec->dtype, 4, &a->q) ||
        !read_tensor(state, args[KEY], spec->dtype, 4, &a->k) ||
        !read_tensor(state, args[VALUE], spec->dtype, 4, &a->v) ||
        !read_tensor(state, args[OUT], spec->dtype, 4, &a->out) || !read_tensor(state, args[LSE], ATT_F32, 3, &a->lse))
        return false;
    spec->heads = a->q.dim[1], spec->kv_heads = a->k.dim[1];
    spec->head_dim = a->q.dim[3], spec->key_dim = a->k.dim[3], spec->value_dim = a->v.dim[3];
    spec->scale = (float)PyFloat_AsDouble(args[SCALE]);
    return !PyErr_Occurred();
}

static att_stage *stage_add(attention_call *call) { return &call->key.stage[call->key.spec.n_stages++]; }

static bool read_stages(module_state *state, PyObject *const *args, attention_call *call)
{
    double softcap = PyFloat_AsDouble(args[SOFTCAP]);
    if (softcap != 0)
        *stage_add(call) = (att_stage){.modifier = att_modifier_softcap, .value = {softcap}};
    static const struct {
        int argument;
        att_dtype dtype;
    } parameters[] = {{BIAS, ATT_F32}, {MASK, ATT_BOOL}};
    for (int i = 0; i < 2; i++) {
        PyObject *given = args[parameters[i].argument];
        if (given == Py_None)
            continue;
        if (!read_tensor(state, given, parameters[i].dtype, 4, &call->param[call->args.n_params++]))
            return false;
        att_stage *stage = stage_add(call);
        if (parameters[i].argument == BIAS)
            stage->modifier = att_modifier_bias;
        else
            stage->mask = att_mask_boolean;
    }
    call->args.param = call->param;
    if (PyObject_IsTrue(args[CAUSAL]))
        stage_add(call)->mask = att_mask_causal;
    double before = PyFloat_AsDouble(args[BEFORE]), after = PyFloat_AsDouble(args[AFTER]);
    if (before >= 0 || after >= 0)
        *stage_add(call) = (att_stage){.mask = att_mask_window, .value = {before, after}};
    return !PyErr_Occurred();
}

/* Positions and ids of sequences: arrays of the batch, only for what uses them */
static bool read_sequences(module_state *state, PyObject *const *args, attention_call *call)
{
    att_attention_spec *spec = &call->key.spec;
    att_attention_args *a = &call->args;
    att_tensor t;
    size_t n = (size_t)a->q.dim[0];
    if (!read_tensor(state, args[LENGTHS], ATT_I64, 1, &t))
        return false;
    if (t.data && t.dim[0] != a->q.dim[0])
        return raise_sentence(state, ATT_ERR_SHAPE, "lengths: has %lld numbers, the batch is %lld", (long long)t.dim[0],
                              (long long)a->q.dim[0]);
    a->k_lengths = t.data;
    int64_t start = PyLong_AsLongLong(args[START]);
    if (PyObject_IsTrue(args[CAUSAL]) || PyFloat_AsDouble(args[BEFORE]) >= 0 || PyFloat_AsDouble(args[AFTER]) >= 0) {
        spec->align = ATT_ALIGN_STARTS;
        call->lengths = malloc(sizeof(int64_t) * (n + 1)); /* its name: the other caller keeps lengths in it */
        if (!call->lengths)
            return PyErr_NoMemory();
        for (size_t i = 0; i < n; i++)
            call->lengths[i] = start;
        a->q_starts = call->lengths;
    }
    spec->dropout = (float)PyFloat_AsDouble(args[DROPOUT]);
    if (spec->dropout != 0) {
        if (!read_tensor(state, args[SEED], ATT_I64, 1, &t))
            return false;
        if (!t.data)
            return raise_sentence(state, ATT_ERR_ARGUMENT, "seed: is None, but dropout is %S", args[DROPOUT]);
        a->dropout_seed = (uint64_t) * (const int64_t *)t.data;
        call->ids = malloc(sizeof(uint32_t) * (n + 1));
        if (!call->ids)
            return PyErr_NoMemory();
        for (size_t i = 0; i < n; i++)
            call->ids[i] = (uint32_t)i;
        a->sequence_ids = call->ids;
    }
    return !PyErr_Occurred();
}

/* Has the context use as many threads as torch. */
static bool follow_threads(module_state *state, PyObject *threads)
{
    int n = (int)PyLong_AsLong(threads);
    if (!state->torch.ctx)
        return raise_sentence(state, ATT_ERR_ARGUMENT, "torch_open was not called");
    if (n == state->torch_threads || PyErr_Occurred())
        return !PyErr_Occurred();
    state->torch_threads = n;
    if (att_set_threads(state->torch.ctx, n) != ATT_OK)
        att_set_threads(state->torch.ctx, 0); /* more than there are processors: all */
    return true;
}

static bool read_call(module_state *state, PyObject *const *args, Py_ssize_t n, Py_ssize_t needed, attention_call *call)
{
    if (n != needed)
        return raise_sentence(state, ATT_ERR_ARGUMENT, "attend.torch: %zd arguments, %zd are needed", n, needed);
    memset(call, 0, sizeof *call);
    return follow_threads(state, args[THREADS]) && read_operands(state, args, call) && read_stages(state, args, call) &&
           read_sequences(state, args, call);
}

/* ---- calls */

PyObject *torch_forward(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    module_state *state = PyModule_GetState(module);
    attention_call call = {.lengths = NULL};
    bool done =
        read_call(state, args, n, FORWARD_ARGUMENTS, &call) && attention_run_forward(state, &state->torch, &call);
    attention_call_release(&call);
    return done ? Py_NewRef(Py_None) : NULL;
}

static bool read_gradients(module_state *state, PyObject *const *args, const attention_call *call,
                           att_attention_grads *grads, att_tensor *dbias)
{
    const att_dtype dtype = call->key.spec.dtype;
    *grads = (att_attention_grads){.size = sizeof *grads};
    if (!read_tensor(state, args[DOUT], dtype, 4, &grads->dout) ||
        !read_tensor(state, args[DQUERY], dtype, 4, &grads->dq) ||
        !read_tensor(state, args[DKEY], dtype, 4, &grads->dk) ||
        !read_tensor(state, args[DVALUE], dtype, 4, &grads->dv) || !read_tensor(state, args[DBIAS], ATT_F32, 4, dbias))
        return false;
    if (dbias->data)
        grads->dparam = dbias, grads->n_dparams = 1;
    return true;
}

PyObject *torch_backward(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    module_state *state = PyModule_GetState(module);
    attention_call call = {.lengths = NULL};
    att_attention_grads grads;
    att_tensor dbias;
    bool done = read_call(state, args, n, BACKWARD_ARGUMENTS, &call) &&
                read_gradients(state, args, &call, &grads, &dbias) &&
                attention_run_backward(state, &state->torch, &call, &grads);
    attention_call_release(&call);
    return done ? Py_NewRef(Py_None) : NULL;
}
