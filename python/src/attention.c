/* attend.scaled_dot_product_attention and its backward: PyTorch's arguments, and those of plans beyond them. */
#include "attention.h"
#include "attend_extend.h"

const char attention_forward_doc[] =
    "scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None,\n"
    "                             enable_gqa=False, *, window=None, alibi=None, softcap=None, lengths=None, "
    "align=None,\n"
    "                             seed=None, score='dot', score_params=None, score_dim=None, stages=None, out=None,\n"
    "                             return_lse=False)\n--\n\n"
    "softmax(query key^T scale + bias, masked) value, in memory linear in the lengths. Operands are arrays of "
    "float32,\n"
    "float16 or bfloat16 in the CPU's memory, [batch, heads, time, dim], [batch, time, dim] or [time, dim].";
const char attention_backward_doc[] =
    "attention_backward(dout, query, key, value, out, lse, attn_mask=None, dropout_p=0.0, ...)\n--\n\n"
    "Gradients (dquery, dkey, dvalue) of sum(dout * out). The other arguments are those of the forward call, which\n"
    "returned out and lse with return_lse=True.";

const char verify_attention_doc[] =
    "verify_attention(query, key, value, attn_mask=None, dropout_p=0.0, ...)\n--\n\n"
    "Checks the functions of a call's score, modifiers and masks against their formulas, with numbers of its own: "
    "those\n"
    "for tiles, and derivatives by differences. It takes seconds, and raises ArgumentError where two disagree.";

#define OPTION_NAMES                                                                                                   \
    "attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa", "window", "alibi", "softcap", "lengths", "align",    \
        "seed", "score", "score_params", "score_dim", "stages"
#define OPTION_FORMAT "OdpOp$OOOOOOOOOO"
#define OPTION_ADDRESSES(o)                                                                                            \
    &(o).attn_mask, &(o).dropout_p, &(o).is_causal, &(o).scale, &(o).enable_gqa, &(o).window, &(o).alibi,              \
        &(o).softcap, &(o).lengths, &(o).align, &(o).seed, &(o).score, &(o).score_params, &(o).score_dim, &(o).stages

/* The first n of [B, heads, L, D] with the dimensions that the operands have */
static array *new_result(module_state *state, const attention_call *call, att_dtype dtype, const att_tensor *like,
                         int64_t last)
{
    int64_t dim[4];
    int n = 0, full = last ? 4 : 3;
    for (int i = 0; i < full; i++) {
        bool missing = (call->rank == 2 && i < 2) || (call->rank == 3 && i == 1);
        if (!missing)
            dim[n++] = i == 3 ? last : like->dim[i];
    }
    return array_new(state, dtype, n, dim);
}

/* The tensor of a new result, in full rank */
static att_tensor full_tensor(const array *a, const att_tensor *like, int64_t last)
{
    att_tensor t;
    int rank = last ? 4 : 3;
    int64_t dim[4] = {like->dim[0], like->dim[1], like->dim[2], last};
    return att_wrap(&t, a->t.data, a->t.dtype, rank, dim, NULL) == ATT_OK ? t : (att_tensor){.data = NULL};
}

/* Does a call take so long that somebody might end it? Others do not pay for that. */
static bool is_long(const attention_call *call)
{
    const int64_t *q = call->args.q.dim, keys = call->args.k.dim[2];
    return (double)q[0] * (double)q[1] * (double)q[2] * (double)q[3] * (double)keys > 1e7;
}

bool attention_run_forward(module_state *state, module_plans *plans, attention_call *call)
{
    plan_of_spec *plan = plans_enter(state, plans, call);
    if (!plan)
        return false;
    att_status status;
    long_call running = {.is_main = false};
    if (is_long(call))
        long_call_begin(&running);
    do {
        Py_BEGIN_ALLOW_THREADS
        status = att_forward(plan->plan, &call->args);
        Py_END_ALLOW_THREADS
    } while (long_call_again(&running, status));
    plans_leave(plans, plan);
    return status == ATT_OK || raise_status(state, status);
}

PyObject *attention_forward(PyObject *module, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"query", "key", "value", OPTION_NAMES, "out", "return_lse", NULL};
    module_state *state = PyModule_GetState(module);
    PyObject *operands[3], *out = Py_None;
    int return_lse = 0;
    attention_options o = {.dropout_p = 0};
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OOO|" OPTION_FORMAT "Op:scaled_dot_product_attention", names,
                                     &operands[0], &operands[1], &operands[2], OPTION_ADDRESSES(o), &out, &return_lse))
        return NULL;
    attention_call call;
    tensor_argument written = {.capsule = NULL};
    array *result = NULL, *lse = NULL;
    PyObject *returned = NULL;
    if (!attention_call_read(state, operands, &o, &call))
        goto done;
    const att_tensor *q = &call.args.q;
    int64_t value_dim = call.key.spec.value_dim;
    if (out != Py_None) {
        if (!attention_operand(state, out, "out", TENSOR_WRITE, &call, false, &written))
            goto done;
        call.args.out = written.t;
    } else {
        result = new_result(state, &call, q->dtype, q, value_dim);
        if (!result)
            goto done;
        call.args.out = full_tensor(result, q, value_dim);
    }
    if (return_lse) {
        lse = new_result(state, &call, ATT_F32, q, 0);
        if (!lse)
            goto done;
        call.args.lse = full_tensor(lse, q, 0);
    }
    if (!attention_run_forward(state, &state->plans, &call))
        goto done;
    returned = out != Py_None ? Py_NewRef(out) : array_like(result, operands[0]);
    result = NULL;
    if (returned && return_lse) {
        PyObject *second = array_like(lse, operands[0]);
        lse = NULL;
        returned = Py_BuildValue("(NN)", returned, second); /* NULL if one is */
    }
done:
    Py_XDECREF((PyObject *)result);
    Py_XDECREF((PyObject *)lse);
    tensor_release(&written);
    attention_call_release(&call);
    return returned;
}

/* ---- backward */

typedef struct backward_operands {
    tensor_argument dout, out, lse;
    array *gradient[3];
} backward_operands;

bool attention_run_backward(module_state *state, module_plans *plans, attention_call *call,
                            const att_attention_grads *grads)
{
    plan_of_spec *plan = plans_enter(state, plans, call);
    if (!plan)
        return false;
    att_status status;
    LONG_CALL_BEGIN
    status = att_backward(plan->plan, &call->args, grads);
    LONG_CALL_END(status)
    plans_leave(plans, plan);
    return status == ATT_OK || raise_status(state, status);
}

static bool run_backward(module_state *state, attention_call *call, backward_operands *b)
{
    const att_tensor *like[] = {&call->args.q, &call->args.k, &call->args.v};
    att_attention_grads grads = {.size = sizeof grads, .dout = b->dout.t};
    att_tensor *to[] = {&grads.dq, &grads.dk, &grads.dv};
    for (int i = 0; i < 3; i++) {
        b->gradient[i] = new_result(state, call, like[i]->dtype, like[i], like[i]->dim[3]);
        if (!b->gradient[i])
            return false;
        *to[i] = full_tensor(b->gradient[i], like[i], like[i]->dim[3]);
    }
    call->args.out = b->out.t, call->args.lse = b->lse.t;
    return attention_run_backward(state, &state->plans, call, &grads);
}

PyObject *attention_backward(PyObject *module, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"dout", "query", "key", "value", "out", "lse", OPTION_NAMES, NULL};
    module_state *state = PyModule_GetState(module);
    PyObject *operands[3], *dout, *out, *lse, *returned = NULL;
    attention_options o = {.dropout_p = 0};
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OOOOOO|" OPTION_FORMAT ":attention_backward", names, &dout,
                                     &operands[0], &operands[1], &operands[2], &out, &lse, OPTION_ADDRESSES(o)))
        return NULL;
    attention_call call;
    backward_operands b = {.gradient = {NULL}};
    if (attention_call_read(state, operands, &o, &call) &&
        attention_operand(state, dout, "dout", TENSOR_READ, &call, false, &b.dout) &&
        attention_operand(state, out, "out", TENSOR_READ, &call, false, &b.out) &&
        attention_operand(state, lse, "lse", TENSOR_READ, &call, true, &b.lse) && run_backward(state, &call, &b)) {
        returned = PyTuple_New(3);
        for (int i = 0; returned && i < 3; i++) {
            PyObject *gradient = array_like(b.gradient[i], operands[i]);
            b.gradient[i] = NULL;
            if (!gradient || PyTuple_SetItem(returned, i, gradient))
                Py_CLEAR(returned);
        }
    }
    for (int i = 0; i < 3; i++)
        Py_XDECREF((PyObject *)b.gradient[i]);
    tensor_release(&b.dout);
    tensor_release(&b.out);
    tensor_release(&b.lse);
    attention_call_release(&call);
    return returned;
}

/* ---- what checks stages */

PyObject *verify_attention(PyObject *module, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"query", "key", "value", OPTION_NAMES, NULL};
    module_state *state = PyModule_GetState(module);
    PyObject *operands[3];
    attention_options o = {.dropout_p = 0};
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OOO|" OPTION_FORMAT ":verify_attention", names, &operands[0],
                                     &operands[1], &operands[2], OPTION_ADDRESSES(o)))
        return NULL;
    attention_call call;
    PyObject *held[ATTENTION_STAGES + 1];
    bool read = attention_call_read(state, operands, &o, &call);
    att_status status = ATT_OK;
    if (read) {
        for (int i = 0; i <= ATTENTION_STAGES; i++)
            held[i] = Py_XNewRef(call.own[i]);
        call.key.spec.stage = call.key.stage;
        LONG_CALL_BEGIN
        status = att_verify(state->ctx, &call.key.spec);
        LONG_CALL_END(status)
        if (status != ATT_OK)
            raise_status(state, status);
        for (int i = 0; i <= ATTENTION_STAGES; i++)
            Py_XDECREF(held[i]);
    }
    attention_call_release(&call);
    return read && status == ATT_OK ? Py_NewRef(Py_None) : NULL;
}
