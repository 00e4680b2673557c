/* attend._attend.Stage: a score, modifier or mask whose functions the caller has compiled. attend/stages.py makes them
 * of functions of ctypes, cffi and numba. */
#include "stages.h"

#include <stddef.h>
#include <stdio.h>

/* ---- its fields: addresses of functions, in the order in which stages.py gives them */

typedef void (*any_function)(void);
enum { STAGE_FUNCTIONS = 6 };
#define AT(kind, field) offsetof(own_stage, as) + offsetof(att_##kind, field)
static const struct kind {
    const char *name;
    int n;
    size_t function[STAGE_FUNCTIONS];
} kinds[] = {
    [STAGE_SCORE] = {"a score",
                     6,
                     {AT(score, formula), AT(score, derivative), AT(score, tile), AT(score, tile_back), AT(score, term),
                      AT(score, term_back)}},
    [STAGE_MODIFIER] = {"a modifier",
                        4,
                        {AT(modifier, formula), AT(modifier, derivative), AT(modifier, tile), AT(modifier, tile_back)}},
    [STAGE_MASK] = {"a mask", 5, {AT(mask, keep), AT(mask, span), AT(mask, cover), AT(mask, bits), AT(mask, inspect)}},
};

static bool read_functions(own_stage *self, PyObject *functions)
{
    const struct kind *kind = &kinds[self->kind];
    if (PyTuple_Size(functions) != kind->n) {
        PyErr_Format(PyExc_TypeError, "%s has %d functions", kind->name, kind->n);
        return false;
    }
    for (int i = 0; i < kind->n; i++) {
        void *address = PyLong_AsVoidPtr(PyTuple_GetItem(functions, i));
        if (!address && PyErr_Occurred())
            return false;
        memcpy((char *)self + kind->function[i], &address, sizeof(any_function));
    }
    return true;
}

static bool read_parameter(own_stage *self, int i, PyObject *given)
{
    const char *name;
    int kind, dtype, rows, columns, optional, as_queries;
    if (!PyArg_ParseTuple(given, "siiiipp;a parameter is (name, kind, dtype, rows, columns, optional, as_queries)",
                          &name, &kind, &dtype, &rows, &columns, &optional, &as_queries))
        return false;
    snprintf(self->param_name[i], STAGE_NAME, "%s", name);
    self->param[i] = (att_param_shape){.name = self->param_name[i],
                                       .kind = (att_param_kind)kind,
                                       .dtype = (att_dtype)dtype,
                                       .rows = (att_extent)rows,
                                       .columns = (att_extent)columns,
                                       .optional = optional,
                                       .as_queries = as_queries};
    return true;
}

static bool read_parameters(own_stage *self, PyObject *params, int *n)
{
    *n = (int)PyTuple_Size(params);
    if (*n > STAGE_PARAMETERS) {
        PyErr_Format(PyExc_ValueError, "params: has %d, at most %d are supported", *n, STAGE_PARAMETERS);
        return false;
    }
    for (int i = 0; i < *n; i++)
        if (!read_parameter(self, i, PyTuple_GetItem(params, i)))
            return false;
    return true;
}

/* user: None, an address, or an object with the buffer protocol, which is held */
static bool read_user(own_stage *self, PyObject *user, const void **out)
{
    if (user == Py_None)
        return true;
    if (PyLong_Check(user)) {
        *out = PyLong_AsVoidPtr(user);
        return !PyErr_Occurred();
    }
    if (PyObject_GetBuffer(user, &self->user, PyBUF_SIMPLE))
        return false;
    *out = self->user.buf;
    return true;
}

static void fill(own_stage *self, unsigned flags, int n_params, const void *user)
{
    if (self->kind == STAGE_SCORE) {
        att_score *s = &self->as.score;
        s->size = sizeof *s, s->name = self->name, s->flags = flags, s->user = user;
        s->param = self->param, s->n_params = n_params;
    } else if (self->kind == STAGE_MODIFIER) {
        att_modifier *m = &self->as.modifier;
        m->size = sizeof *m, m->name = self->name, m->flags = flags, m->user = user;
        m->param = self->param, m->n_params = n_params;
    } else {
        att_mask *m = &self->as.mask;
        m->size = sizeof *m, m->name = self->name, m->flags = flags, m->user = user;
        m->param = self->param, m->n_params = n_params;
    }
}

/* ---- the type */

static PyObject *stage_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"kind", "name", "functions", "flags", "params", "user", "held", NULL};
    int kind, n_params = 0;
    unsigned flags;
    const char *name;
    const void *address = NULL;
    PyObject *functions, *params, *user, *held;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "isO!IO!OO:Stage", names, &kind, &name, &PyTuple_Type, &functions,
                                     &flags, &PyTuple_Type, &params, &user, &held))
        return NULL;
    if (kind < 0 || kind >= STAGE_KINDS) {
        PyErr_Format(PyExc_ValueError, "kind: %d", kind);
        return NULL;
    }
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    own_stage *self = (own_stage *)allocate(type, 0); /* zeros */
    if (!self)
        return NULL;
    self->kind = (stage_kind)kind, self->held = Py_NewRef(held);
    snprintf(self->name, sizeof self->name, "%s", name);
    if (read_functions(self, functions) && read_parameters(self, params, &n_params) &&
        read_user(self, user, &address)) {
        fill(self, flags, n_params, address);
        return (PyObject *)self;
    }
    Py_DECREF((PyObject *)self);
    return NULL;
}

static int stage_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((own_stage *)self)->held);
    Py_VISIT(((own_stage *)self)->user.obj);
    return 0;
}

/* What the functions need stays until the stage is deallocated: a plan may run them. */
static void stage_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Py_CLEAR(((own_stage *)self)->held);
    if (((own_stage *)self)->user.obj)
        PyBuffer_Release(&((own_stage *)self)->user);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyObject *stage_reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyErr_Format(PyExc_TypeError, "%s of compiled functions cannot be pickled", kinds[((own_stage *)self)->kind].name);
    return NULL;
}

static PyMethodDef methods[] = {
    {"__reduce__", stage_reduce, METH_NOARGS, "Raises TypeError: addresses are those of this process alone."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_methods, methods},         {Py_tp_doc, "A score, modifier or mask of one's own."},
    {Py_tp_new, stage_new},           {Py_tp_dealloc, stage_dealloc},
    {Py_tp_traverse, stage_traverse}, {0, NULL},
};

PyType_Spec stage_spec = {"attend._attend.Stage", sizeof(own_stage), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};

/* ---- in the arguments of attention */

/* The Stage that an object is, or NULL */
static own_stage *stage_of(module_state *state, PyObject *object)
{
    return PyObject_TypeCheck(object, state->stage) ? (own_stage *)object : NULL;
}

bool stage_read_score(module_state *state, PyObject *object, const att_score **out, PyObject **own)
{
    own_stage *stage = stage_of(state, object);
    if (stage && stage->kind != STAGE_SCORE)
        return raise_sentence(state, ATT_ERR_DTYPE, "score: is %s, it belongs into stages", kinds[stage->kind].name);
    if (stage) {
        *own = object, *out = &stage->as.score;
        return true;
    }
    PyObject *name = PyUnicode_Check(object) ? PyUnicode_AsUTF8String(object) : NULL;
    if (!name)
        return PyErr_Occurred() ? false
                                : raise_sentence(state, ATT_ERR_DTYPE, "score: a name or an attend.Score is needed");
    att_status status = att_score_find(PyBytes_AsString(name), out);
    Py_DECREF(name);
    return status == ATT_OK || raise_status(state, status);
}

bool stage_read(module_state *state, PyObject *object, att_stage *out, PyObject **own)
{
    own_stage *stage = stage_of(state, object);
    if (stage && stage->kind == STAGE_SCORE)
        return raise_sentence(state, ATT_ERR_DTYPE, "stages: an attend.Score is given by score=");
    if (stage) {
        *own = object;
        if (stage->kind == STAGE_MODIFIER)
            out->modifier = &stage->as.modifier;
        else
            out->mask = &stage->as.mask;
        return true;
    }
    PyObject *name = PyUnicode_Check(object) ? PyUnicode_AsUTF8String(object) : NULL;
    if (!name)
        return PyErr_Occurred() ? false
                                : raise_sentence(state, ATT_ERR_DTYPE,
                                                 "stages: each is (stage, number or array, ...), where stage is a "
                                                 "name, an attend.Modifier or an attend.Mask");
    att_status status = att_stage_find(PyBytes_AsString(name), out);
    Py_DECREF(name);
    return status == ATT_OK || raise_status(state, status);
}
