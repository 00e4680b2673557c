/* attend._attend.Recommender: next items of histories. attend.Recommender (recommender.py) has its interface. */
#include "recommender.h"
#include "model.h"
#include "options.h"

#include <math.h>
#include <stddef.h>

typedef struct recommender {
    PyObject_HEAD att_recommender *m;
    att_recommender_info info;
} recommender;

static module_state *state_of(PyObject *self) { return PyType_GetModuleState(Py_TYPE(self)); }

static att_status open_recommender(att_ctx *ctx, const model_arguments *a, PyObject *object)
{
    recommender *self = (recommender *)object;
    self->info.size = sizeof self->info;
    const att_status status = att_recommender_open(ctx, a->path.text, &a->options, &self->m);
    return status ? status : att_recommender_describe(self->m, &self->info);
}

static PyObject *recommender_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    return model_new(type, args, keywords, open_recommender);
}

static void recommender_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    att_recommender_free(((recommender *)self)->m);
    PyObject_Free(self);
    Py_DECREF(type);
}

const att_recommender *recommender_of(module_state *state, PyObject *object)
{
    if (Py_TYPE(object) == state->recommender)
        return ((recommender *)object)->m;
    return (const att_recommender *)raise_sentence(state, ATT_ERR_DTYPE, "model: a Recommender is needed");
}

/* ---- items and histories of an argument */

typedef struct item_lists {
    int32_t *item; /* [n_items] */
    int64_t n_items, room;
    int64_t *offset; /* [n + 1] */
    int64_t n;
    int64_t ids, texts; /* ids that were given, and those of them that were a str */
} item_lists;

static void lists_free(item_lists *l)
{
    PyMem_Free(l->item);
    PyMem_Free(l->offset);
}

static bool add_item(item_lists *l, int32_t item)
{
    if (l->n_items == l->room) {
        l->room = 2 * l->room + 64;
        int32_t *more = PyMem_Realloc(l->item, sizeof *more * (size_t)l->room);
        if (!more)
            return PyErr_NoMemory();
        l->item = more;
    }
    l->item[l->n_items++] = item;
    return true;
}

/* The number of an id, a str or an integer: -1 there is none; -2: with an exception */
static int64_t number_of(module_state *state, const recommender *r, PyObject *id, const char *name)
{
    PyObject *number = PyUnicode_Check(id) || PyBool_Check(id) ? NULL : PyIndex_Check(id) ? PyNumber_Index(id) : NULL;
    PyObject *text = PyUnicode_Check(id) ? Py_NewRef(id) : number ? PyObject_Str(number) : NULL;
    Py_XDECREF(number);
    if (!text) {
        PyErr_Clear();
        raise_sentence(state, ATT_ERR_DTYPE, "%s: %R is not the id of an item, which is a str or an integer", name, id);
        return -2;
    }
    const char *utf8 = PyUnicode_AsUTF8AndSize(text, NULL);
    const int64_t found = utf8 ? att_recommender_find_item(r->m, utf8) : -2;
    Py_DECREF(text);
    return found;
}

/* Adds the items of a sequence. skip: leave out those that the model does not have */
static bool add_items(module_state *state, const recommender *r, PyObject *ids, const char *name, bool skip,
                      item_lists *out)
{
    PyObject *tuple = PyUnicode_Check(ids) ? NULL : PySequence_Tuple(ids);
    if (!tuple) {
        PyErr_Clear();
        return raise_sentence(state, ATT_ERR_DTYPE, "%s: a sequence of ids is needed, not %R", name, ids);
    }
    bool added = true;
    for (Py_ssize_t i = 0; added && i < PyTuple_Size(tuple); i++) {
        PyObject *id = PyTuple_GetItem(tuple, i);
        out->ids++, out->texts += PyUnicode_Check(id);
        const int64_t item = number_of(state, r, id, name);
        if (item == -1 && !skip)
            raise_sentence(state, ATT_ERR_ARGUMENT, "%s: the model has no item %R", name, id);
        added = item >= 0 ? add_item(out, (int32_t)item) : item == -1 && skip;
    }
    Py_DECREF(tuple);
    return added;
}

/* Reads histories, a sequence of sequences of ids. */
static bool read_histories(module_state *state, const recommender *r, PyObject *histories, bool skip, item_lists *out)
{
    PyObject *tuple = PySequence_Tuple(histories);
    *out = (item_lists){.n = tuple ? PyTuple_Size(tuple) : 0};
    out->offset = tuple ? PyMem_Calloc((size_t)out->n + 1, sizeof *out->offset) : NULL;
    bool read = out->offset || (tuple && PyErr_NoMemory());
    for (int64_t i = 0; read && i < out->n; i++) {
        char name[48];
        PyOS_snprintf(name, sizeof name, "histories[%lld]", (long long)i);
        read = add_items(state, r, PyTuple_GetItem(tuple, (Py_ssize_t)i), name, skip, out);
        out->offset[i + 1] = out->n_items;
    }
    Py_XDECREF(tuple);
    return read;
}

/* ---- lists */

PyObject *id_object(const char *id, bool integer)
{
    const char *first = id + (*id == '-');
    if (integer && (*first != '0' || !id[1]) && *first && !first[strspn(first, "0123456789")])
        return PyLong_FromString(id, NULL, 10);
    return PyUnicode_FromString(id);
}

/* Ids of a list, up to where it ends */
static PyObject *ids_of(const recommender *r, const int32_t *items, int64_t k, bool integers)
{
    PyObject *list = PyList_New(0);
    for (int64_t i = 0; list && i < k && items[i] >= 0; i++) {
        PyObject *id = id_object(att_recommender_item(r->m, items[i]), integers);
        if (!id || PyList_Append(list, id))
            Py_CLEAR(list);
        Py_XDECREF(id);
    }
    return list;
}

/* ([ids of each list], scores [n, k]), where a list that ends before k has NaN */
static PyObject *lists_result(module_state *state, const recommender *r, const att_recommendation *found, bool integers)
{
    const int64_t k = found->k;
    array *scores = array_new(state, ATT_F32, 2, (int64_t[]){found->n, k});
    PyObject *ids = scores ? PyList_New((Py_ssize_t)found->n) : NULL;
    for (int64_t i = 0; ids && i < found->n; i++) {
        float *row = (float *)scores->t.data + i * k;
        for (int64_t j = 0; j < k; j++)
            row[j] = found->items[i * k + j] < 0 ? NAN : found->scores[i * k + j];
        PyObject *list = ids_of(r, found->items + i * k, k, integers);
        if (!list || PyList_SetItem(ids, (Py_ssize_t)i, list))
            Py_CLEAR(ids);
    }
    if (ids)
        return Py_BuildValue("(NN)", ids, scores);
    Py_XDECREF((PyObject *)scores);
    return NULL;
}

static const option_field listing[] = {
    OPTION(INTEGER, att_recommend_options, k),        OPTION(BOOL, att_recommend_options, exclude_seen),
    OPTION(DOUBLE, att_recommend_options, diversity), OPTION(INTEGER, att_recommend_options, diversity_pool),
    OPTION(DOUBLE, att_recommend_options, new_share), {NULL, OPTION_BOOL, 0, NULL},
};

typedef struct list_call {
    item_lists of, allow, deny;
    att_recommend_options options;
    progress progress;
} list_call;

static void list_call_end(list_call *c)
{
    lists_free(&c->of);
    lists_free(&c->allow);
    lists_free(&c->deny);
}

/* Reads what is beside the histories: options, (allow or None, deny or None), a function of progress. */
static bool list_call_begin(module_state *state, const recommender *r, PyObject *options, PyObject *allow,
                            PyObject *deny, PyObject *function, list_call *c)
{
    *c = (list_call){.options = {.size = sizeof c->options, .progress = progress_call, .user = &c->progress},
                     .progress = {.function = function == Py_None ? NULL : function}};
    PyObject *held = PyList_New(0);
    const bool read = held && options_read(state, options, listing, &c->options, held) &&
                      (allow == Py_None || add_items(state, r, allow, "allow", false, &c->allow)) &&
                      (deny == Py_None || add_items(state, r, deny, "deny", true, &c->deny));
    Py_XDECREF(held);
    if (read && allow != Py_None && c->allow.n_items == 0)
        return raise_sentence(state, ATT_ERR_ARGUMENT, "allow: has no item; None allows all");
    c->options.allow = c->allow.item, c->options.n_allow = c->allow.n_items;
    c->options.deny = c->deny.item, c->options.n_deny = c->deny.n_items;
    if (c->options.k > r->info.items)
        c->options.k = r->info.items;
    return read;
}

/* of: what was asked, of whose kind the ids of the result are */
static PyObject *list_result(module_state *state, const recommender *r, const item_lists *of, att_status status,
                             att_recommendation *found)
{
    PyObject *result = NULL;
    if (status == ATT_OK) {
        result = lists_result(state, r, found, of->ids && !of->texts);
        att_recommendation_free(state->ctx, found);
    }
    return call_result(state, status, result);
}

/* recommend(histories, options, *, allow, deny, skip_unknown, progress): ([ids], scores [n, k]) */
static PyObject *recommend(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"histories", "options", "allow", "deny", "skip_unknown", "progress", NULL};
    PyObject *histories, *options, *allow = Py_None, *deny = Py_None, *function = Py_None, *result = NULL;
    int skip = 0;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO!|$OOpO:recommend", names, &histories, &PyDict_Type, &options,
                                     &allow, &deny, &skip, &function))
        return NULL;
    module_state *state = state_of(self);
    const recommender *r = (recommender *)self;
    list_call c;
    if (list_call_begin(state, r, options, allow, deny, function, &c) &&
        read_histories(state, r, histories, skip, &c.of)) {
        att_recommendation found;
        att_status status;
        LONG_CALL_BEGIN
        status = att_recommend(r->m, c.of.n, c.of.item, c.of.offset, &c.options, &found);
        LONG_CALL_END(status)
        result = list_result(state, r, &c.of, status, &found);
    }
    list_call_end(&c);
    return result;
}

/* similar(items, options, *, allow, deny, progress): ([ids], scores [n, k]) */
static PyObject *similar(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"items", "options", "allow", "deny", "progress", NULL};
    PyObject *items, *options, *allow = Py_None, *deny = Py_None, *function = Py_None, *result = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO!|$OOO:similar", names, &items, &PyDict_Type, &options, &allow,
                                     &deny, &function))
        return NULL;
    module_state *state = state_of(self);
    const recommender *r = (recommender *)self;
    list_call c;
    if (list_call_begin(state, r, options, allow, deny, function, &c) &&
        add_items(state, r, items, "items", false, &c.of)) {
        att_recommendation found;
        att_status status;
        LONG_CALL_BEGIN
        status = att_recommender_similar_items(r->m, c.of.n_items, c.of.item, &c.options, &found);
        LONG_CALL_END(status)
        result = list_result(state, r, &c.of, status, &found);
    }
    list_call_end(&c);
    return result;
}

/* ---- vectors and measures */

static PyObject *vectors(PyObject *self, PyObject *unused)
{
    (void)unused;
    module_state *state = state_of(self);
    const recommender *r = (recommender *)self;
    array *out = array_new(state, ATT_F32, 2, (int64_t[]){r->info.items, r->info.hidden});
    if (!out)
        return NULL;
    att_status status;
    LONG_CALL_BEGIN
    status = att_recommender_vectors(r->m, out->t.data);
    LONG_CALL_END(status)
    return call_result(state, status, (PyObject *)out);
}

/* embed(histories, skip_unknown, progress): vectors [n, hidden] */
static PyObject *embed(PyObject *self, PyObject *args)
{
    PyObject *histories, *function = Py_None;
    int skip = 0;
    if (!PyArg_ParseTuple(args, "O|pO:embed", &histories, &skip, &function))
        return NULL;
    module_state *state = state_of(self);
    const recommender *r = (recommender *)self;
    progress p = {.function = function == Py_None ? NULL : function};
    const att_call_options options = {.size = sizeof options, .progress = progress_call, .user = &p};
    item_lists of;
    array *out = NULL;
    if (read_histories(state, r, histories, skip, &of))
        out = array_new(state, ATT_F32, 2, (int64_t[]){of.n, r->info.hidden});
    if (out) {
        att_status status;
        LONG_CALL_BEGIN
        status = att_recommender_embed(r->m, of.n, of.item, of.offset, &options, out->t.data);
        LONG_CALL_END(status)
        out = (array *)call_result(state, status, (PyObject *)out);
    }
    lists_free(&of);
    return (PyObject *)out;
}

/* evaluate(log, options): measures of what is held out */
static PyObject *evaluate(PyObject *self, PyObject *args)
{
    PyObject *log, *options;
    if (!PyArg_ParseTuple(args, "OO!:evaluate", &log, &PyDict_Type, &options))
        return NULL;
    module_state *state = state_of(self);
    const interaction_log *l = log_of(state, log);
    const att_scorer scorer = att_recommender_scorer(((recommender *)self)->m);
    return l ? log_rank(state, l, &scorer, options) : NULL;
}

static PyObject *get_info(PyObject *self, void *unused)
{
    (void)unused;
    const att_recommender_info *i = &((recommender *)self)->info;
    return Py_BuildValue("{s:s,s:L,s:L,s:L,s:L,s:L,s:L}", "type", i->type, "items", (long long)i->items, "hidden",
                         (long long)i->hidden, "layers", (long long)i->layers, "heads", (long long)i->heads,
                         "max_positions", (long long)i->max_positions, "content_width", (long long)i->content_width);
}

/* items(integers): ids of all items, as integers or texts */
static PyObject *items(PyObject *self, PyObject *integers)
{
    const recommender *r = (recommender *)self;
    const bool as_integers = integers == Py_True;
    PyObject *list = PyList_New((Py_ssize_t)r->info.items);
    for (int64_t i = 0; list && i < r->info.items; i++) {
        PyObject *id = id_object(att_recommender_item(r->m, i), as_integers);
        if (!id || PyList_SetItem(list, (Py_ssize_t)i, id))
            Py_CLEAR(list);
    }
    return list;
}

/* recommender_fit(log, settings, folder, half, progress): makes a model that counts, and writes it. */
PyObject *recommender_fit(PyObject *module, PyObject *args)
{
    module_state *state = PyModule_GetState(module);
    PyObject *log, *folder, *function;
    const char *settings;
    int half;
    if (!PyArg_ParseTuple(args, "OsOpO:recommender_fit", &log, &settings, &folder, &half, &function))
        return NULL;
    const interaction_log *l = log_of(state, log);
    PyObject *path = NULL;
    if (!l || !PyUnicode_FSConverter(folder, &path))
        return NULL;
    progress p = {.function = function == Py_None ? NULL : function};
    const att_call_options options = {.size = sizeof options, .progress = progress_call, .user = &p};
    att_recommender *m = NULL;
    att_status status;
    LONG_CALL_BEGIN
    status = att_recommender_fit(l->holdout, settings, &options, &m);
    if (status == ATT_OK)
        status = att_recommender_write(m, PyBytes_AsString(path), half ? ATT_F16 : ATT_F32);
    att_recommender_free(m);
    LONG_CALL_END(status)
    Py_DECREF(path);
    return call_result(state, status, Py_NewRef(Py_None));
}

static PyGetSetDef properties[] = {
    {"info", get_info, NULL, "The type and the sizes of the model", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"items", items, METH_O, "items($self, integers, /)\n--\n\nIds of all items, as integers if True."},
    {"recommend", (PyCFunction)(void (*)(void))recommend, METH_VARARGS | METH_KEYWORDS,
     "recommend($self, histories, options, *, allow=None, deny=None, skip_unknown=False, progress=None)\n--\n\n"
     "([ids of each list], scores [n, k])."},
    {"similar", (PyCFunction)(void (*)(void))similar, METH_VARARGS | METH_KEYWORDS,
     "similar($self, items, options, *, allow=None, deny=None, progress=None)\n--\n\n([ids of each list], scores [n, "
     "k])."},
    {"vectors", vectors, METH_NOARGS, "vectors($self, /)\n--\n\nOf all items [items, hidden]."},
    {"embed", embed, METH_VARARGS,
     "embed($self, histories, skip_unknown=False, progress=None, /)\n--\n\nVectors [n, hidden] of histories."},
    {"evaluate", evaluate, METH_VARARGS,
     "evaluate($self, log, options, /)\n--\n\nMeasures of what is held out of a log."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "A model of next items."},
    {Py_tp_new, recommender_new},
    {Py_tp_dealloc, recommender_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {0, NULL},
};

PyType_Spec recommender_spec = {"attend._attend.Recommender", sizeof(recommender), 0, Py_TPFLAGS_DEFAULT, slots};
