/* The arguments of attention, as PyTorch names them and beyond, to a spec and arguments of the library. */
#include <stdlib.h>

#include "attention.h"
#include "stages.h"

static bool given(PyObject *o) { return o && o != Py_None; }

/* ---- operands */

/* Puts a dimension of 1 before dimension `at`. */
static void insert_dimension(att_tensor *t, int at)
{
    size_t after = sizeof(int64_t) * (size_t)(t->rank - at);
    memmove(t->dim + at + 1, t->dim + at, after);
    memmove(t->stride + at + 1, t->stride + at, after);
    t->dim[at] = 1, t->stride[at] = 0;
    t->rank++;
}

/* [L, E] and [B, L, E] become [B, 1, L, E]; of lse [L] and [B, L] become [B, 1, L]. */
static void to_full_rank(att_tensor *t, int rank)
{
    if (t->rank == rank - 2)
        insert_dimension(t, 0);
    if (t->rank == rank - 1)
        insert_dimension(t, 1);
}

bool attention_operand(module_state *state, PyObject *object, const char *name, tensor_use use,
                       const attention_call *call, bool lse, tensor_argument *out)
{
    if (!tensor_read(state, object, name, use, out))
        return false;
    int rank = call->rank - lse;
    if (out->t.rank != rank)
        return raise_sentence(state, ATT_ERR_SHAPE, "%s: has %d dimensions, of query follow %d", name, out->t.rank,
                              rank);
    to_full_rank(&out->t, 4 - lse);
    return use == TENSOR_WRITE || tensor_make_dense(state, out, 1);
}

static bool read_operands(module_state *state, PyObject *const operands[3], attention_call *call)
{
    static const char *const names[] = {"query", "key", "value"};
    tensor_argument *to[] = {&call->q, &call->k, &call->v};
    for (int i = 0; i < 3; i++) {
        if (!tensor_read(state, operands[i], names[i], TENSOR_READ, to[i]))
            return false;
        int rank = to[i]->t.rank;
        if (i == 0)
            call->rank = rank;
        if (rank < 2 || rank > 4 || rank != call->rank)
            return raise_sentence(
                state, ATT_ERR_SHAPE,
                "%s: has %d dimensions, query %d; all have [time, dim], [batch, time, dim] or [batch, "
                "heads, time, dim]",
                names[i], rank, call->rank);
    }
    for (int i = 0; i < 3; i++) {
        to_full_rank(&to[i]->t, 4);
        if (!tensor_make_dense(state, to[i], 1))
            return false;
    }
    call->args.q = call->q.t, call->args.k = call->k.t, call->args.v = call->v.t;
    return true;
}

/* ---- stages */

static att_stage *stage_add(module_state *state, attention_call *call)
{
    att_attention_spec *spec = &call->key.spec;
    if (spec->n_stages == ATTENTION_STAGES)
        return (att_stage *)raise_sentence(state, ATT_ERR_ARGUMENT, "stages: more than %d", ATTENTION_STAGES);
    return &call->key.stage[spec->n_stages++];
}

/* One more parameter of the score or of a stage */
static tensor_argument *parameter_add(module_state *state, attention_call *call, PyObject *object, const char *name)
{
    if (call->n_given == ATTENTION_PARAMETERS)
        return (tensor_argument *)raise_sentence(state, ATT_ERR_ARGUMENT, "%s: more than %d parameters", name,
                                                 ATTENTION_PARAMETERS);
    tensor_argument *a = &call->given[call->n_given++]; /* released from here on */
    return tensor_read(state, object, name, TENSOR_READ, a) ? a : NULL;
}

/* A mask of booleans, or numbers that are added to scores; [L, S] up to [B, heads, L, S], as PyTorch broadcasts them */
static bool add_attn_mask(module_state *state, PyObject *mask, attention_call *call)
{
    att_stage *stage = stage_add(state, call);
    tensor_argument *a = stage ? parameter_add(state, call, mask, "attn_mask") : NULL;
    if (!a)
        return false;
    if (a->t.rank > call->rank)
        return raise_sentence(state, ATT_ERR_SHAPE, "attn_mask: has %d dimensions, query %d", a->t.rank, call->rank);
    if (call->rank == 3 && a->t.rank == 3)
        insert_dimension(&a->t, 1); /* [B, L, S] */
    while (a->t.rank < 4)
        insert_dimension(&a->t, 0);
    if (a->t.dtype == ATT_BOOL)
        stage->mask = att_mask_boolean;
    else
        stage->modifier = att_modifier_bias;
    return true;
}

/* window: n keys before and after, or (before, after), -1: all */
static bool add_window(module_state *state, PyObject *window, attention_call *call)
{
    long before, after;
    if (PyIndex_Check(window))
        before = after = PyLong_AsLong(window);
    else if (!PyTuple_Check(window))
        PyErr_SetString(PyExc_TypeError, "window: n or (before, after) is needed");
    else
        PyArg_ParseTuple(window, "ll;window is n or (before, after)", &before, &after);
    if (PyErr_Occurred())
        return false;
    att_stage *stage = stage_add(state, call);
    if (stage)
        *stage = (att_stage){.mask = att_mask_window, .value = {(double)before, (double)after}};
    return stage != NULL;
}

static bool add_number(module_state *state, PyObject *number, const att_modifier *modifier, attention_call *call)
{
    double value = PyFloat_AsDouble(number);
    att_stage *stage = PyErr_Occurred() ? NULL : stage_add(state, call);
    if (stage)
        *stage = (att_stage){.modifier = modifier, .value = {value}};
    return stage != NULL;
}

static bool add_alibi(module_state *state, PyObject *slopes, attention_call *call)
{
    att_stage *stage = stage_add(state, call);
    if (stage)
        stage->modifier = att_modifier_alibi;
    return stage && parameter_add(state, call, slopes, "alibi");
}

/* (name or own stage, number or array, ...): numbers are the stage's values, arrays its parameters */
static bool add_item(module_state *state, PyObject *item, attention_call *call)
{
    Py_ssize_t n = PyTuple_Check(item) ? PyTuple_Size(item) : 0;
    if (!n)
        return raise_sentence(state, ATT_ERR_DTYPE, "stages: each is (stage, number or array, ...), not %R", item);
    att_stage *stage = stage_add(state, call);
    if (!stage || !stage_read(state, PyTuple_GetItem(item, 0), stage, &call->own[call->key.spec.n_stages]))
        return false;
    int values = 0;
    for (Py_ssize_t i = 1; i < n; i++) {
        PyObject *o = PyTuple_GetItem(item, i);
        if (PyFloat_Check(o) || PyLong_Check(o)) {
            if (values == 2)
                return raise_sentence(state, ATT_ERR_ARGUMENT, "stages: a stage has at most two numbers");
            stage->value[values++] = PyFloat_AsDouble(o);
            if (PyErr_Occurred())
                return false;
        } else if (!parameter_add(state, call, o, "stages")) {
            return false;
        }
    }
    return true;
}

static bool add_all(module_state *state, PyObject *stages, attention_call *call)
{
    Py_ssize_t n = PySequence_Size(stages);
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PySequence_GetItem(stages, i);
        bool added = item && add_item(state, item, call);
        Py_XDECREF(item);
        if (!added)
            return false;
    }
    return n >= 0;
}

/* ---- the score, alignment, lengths */

static bool read_score(module_state *state, const attention_options *o, attention_call *call)
{
    att_attention_spec *spec = &call->key.spec;
    if (given(o->score) && !stage_read_score(state, o->score, &spec->score, &call->own[0]))
        return false;
    if (given(o->score_dim))
        spec->score_dim = PyLong_AsLongLong(o->score_dim);
    if (given(o->scale)) {
        spec->scale = (float)PyFloat_AsDouble(o->scale);
        if (!PyErr_Occurred() && spec->scale == 0)
            raise_sentence(state, ATT_ERR_ARGUMENT, "scale: is 0, which would make all scores equal");
    }
    Py_ssize_t n = given(o->score_params) ? PySequence_Size(o->score_params) : 0;
    for (Py_ssize_t i = 0; i < n && !PyErr_Occurred(); i++) {
        PyObject *item = PySequence_GetItem(o->score_params, i);
        if (item)
            parameter_add(state, call, item, "score_params");
        Py_XDECREF(item); /* its buffer or capsule holds it */
    }
    return !PyErr_Occurred();
}

static bool read_align(module_state *state, PyObject *align, attention_call *call)
{
    att_attention_spec *spec = &call->key.spec;
    if (!given(align)) {
        if (call->args.q.dim[2] == call->args.k.dim[2])
            spec->align = ATT_ALIGN_TOP_LEFT; /* both are the same */
        return true;                          /* what depends on it says so */
    }
    const char *const names[] = {[ATT_ALIGN_TOP_LEFT] = "top_left", [ATT_ALIGN_BOTTOM_RIGHT] = "bottom_right"};
    for (int i = ATT_ALIGN_TOP_LEFT; i <= ATT_ALIGN_BOTTOM_RIGHT; i++)
        if (PyUnicode_Check(align) && PyUnicode_CompareWithASCIIString(align, names[i]) == 0) {
            spec->align = (att_align)i;
            return true;
        }
    return raise_sentence(
        state, ATT_ERR_ARGUMENT,
        "align: %R, must be \"top_left\", where query i stands at key i, or \"bottom_right\", where the "
        "last query stands at the last key",
        align);
}

static bool read_lengths(module_state *state, PyObject *lengths, attention_call *call)
{
    Py_ssize_t n = PySequence_Size(lengths);
    if (n < 0)
        return false;
    if (n != call->args.q.dim[0])
        return raise_sentence(state, ATT_ERR_SHAPE, "lengths: has %zd numbers, the batch is %lld", n,
                              (long long)call->args.q.dim[0]);
    call->lengths = malloc(sizeof(int64_t) * (size_t)(n + 1));
    if (!call->lengths)
        return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PySequence_GetItem(lengths, i), *index = item ? PyNumber_Index(item) : NULL;
        call->lengths[i] = index ? PyLong_AsLongLong(index) : 0;
        Py_XDECREF(item);
        Py_XDECREF(index);
        if (PyErr_Occurred())
            return false;
    }
    call->args.k_lengths = call->lengths;
    return true;
}

static bool read_dropout(module_state *state, const attention_options *o, attention_call *call)
{
    call->key.spec.dropout = (float)o->dropout_p;
    if (o->dropout_p == 0)
        return true;
    if (!given(o->seed))
        return raise_sentence(
            state, ATT_ERR_ARGUMENT,
            "dropout_p is not 0: seed says which weights are dropped, the same again for the backward");
    call->args.dropout_seed = PyLong_AsUnsignedLongLong(o->seed);
    int64_t n = call->args.q.dim[0];
    call->ids = PyErr_Occurred() ? NULL : malloc(sizeof(uint32_t) * (size_t)(n + 1));
    if (!call->ids)
        return !PyErr_Occurred() && PyErr_NoMemory();
    for (int64_t i = 0; i < n; i++)
        call->ids[i] = (uint32_t)i;
    call->args.sequence_ids = call->ids;
    return true;
}

bool attention_call_read(module_state *state, PyObject *const operands[3], const attention_options *o,
                         attention_call *call)
{
    memset(call, 0, sizeof *call);
    call->args.size = sizeof call->args;
    if (!read_operands(state, operands, call))
        return false;
    const att_attention_args *a = &call->args;
    att_attention_spec *spec = &call->key.spec;
    spec->size = sizeof *spec;
    spec->heads = a->q.dim[1], spec->kv_heads = a->k.dim[1];
    spec->head_dim = a->q.dim[3], spec->key_dim = a->k.dim[3], spec->value_dim = a->v.dim[3];
    spec->dtype = a->q.dtype;
    if (spec->heads != spec->kv_heads && !o->enable_gqa)
        return raise_sentence(state, ATT_ERR_SHAPE,
                              "query has %lld heads, key %lld: enable_gqa=True lets queries share heads of keys",
                              (long long)spec->heads, (long long)spec->kv_heads);
    if (!read_score(state, o, call) || !read_align(state, o->align, call) || !read_dropout(state, o, call))
        return false;
    if (given(o->lengths) && !read_lengths(state, o->lengths, call))
        return false;
    if (given(o->stages) && !add_all(state, o->stages, call))
        return false;
    if (given(o->softcap) && !add_number(state, o->softcap, att_modifier_softcap, call))
        return false;
    if (given(o->alibi) && !add_alibi(state, o->alibi, call))
        return false;
    if (given(o->attn_mask) && !add_attn_mask(state, o->attn_mask, call))
        return false;
    if (o->is_causal) {
        att_stage *stage = stage_add(state, call);
        if (!stage)
            return false;
        stage->mask = att_mask_causal;
    }
    if (given(o->window) && !add_window(state, o->window, call))
        return false;
    for (int i = 0; i < call->n_given; i++)
        call->param[i] = call->given[i].t;
    call->args.param = call->param, call->args.n_params = call->n_given;
    return true;
}

void attention_call_release(attention_call *call)
{
    tensor_release(&call->q);
    tensor_release(&call->k);
    tensor_release(&call->v);
    for (int i = 0; i < call->n_given; i++)
        tensor_release(&call->given[i]);
    free(call->lengths);
    free(call->ids);
}
