/* attend._attend.Log: actions of users, from a file, or from columns of a data frame or arrays; and what is held out.
 */
#include <stddef.h>
#include <stdlib.h>
#ifdef __GLIBC__ /* which the headers above define */
#include <malloc.h>
#endif

#include "columns.h"
#include "options.h"
#include "recommender.h"
#include "texts.h"

static module_state *state_of(PyObject *self) { return PyType_GetModuleState(Py_TYPE(self)); }

static const option_field reading[] = {
    OPTION(BOOL, att_interactions_options, drop_duplicates),
    OPTION(INTEGER, att_interactions_options, min_count),
    OPTION(INTEGER, att_interactions_options, skip_bad_lines),
    OPTION(TEXT, att_interactions_options, user),
    OPTION(TEXT, att_interactions_options, item),
    OPTION(TEXT, att_interactions_options, time),
    {NULL, OPTION_BOOL, 0, NULL},
};

static const char *const splits[] = {"leave-one-out", "time", "none", NULL};
static const option_field splitting[] = {
    OPTION_OF(att_holdout_options, kind, splits),         OPTION(INTEGER, att_holdout_options, min_actions),
    OPTION(DOUBLE, att_holdout_options, valid_share),     OPTION(DOUBLE, att_holdout_options, test_share),
    OPTION(DOUBLE, att_holdout_options, valid_from),      OPTION(DOUBLE, att_holdout_options, test_from),
    OPTION(INTEGER, att_holdout_options, held_out_users), {NULL, OPTION_BOOL, 0, NULL},
};

enum { USERS, ITEMS, TIMES, COLUMNS };

static att_status get_action(void *columns, int64_t i, att_byte_view *user, att_byte_view *item, double *time)
{
    column *c = columns;
    att_status status = column_id(&c[USERS], i, user);
    status = status == ATT_OK ? column_id(&c[ITEMS], i, item) : status;
    return status == ATT_OK && c[TIMES].name ? column_time(&c[TIMES], i, time) : status;
}

/* Returns the memory of reading, which is freed, to the system: a training that follows uses larger pieces. */
static void trim_memory(void)
{
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

/* Reads columns (users, items, times or None), with their names in errors. */
static bool read_columns(interaction_log *self, module_state *state, PyObject *given, PyObject *names,
                         const att_interactions_options *options)
{
    column c[COLUMNS] = {{.name = NULL}, {.name = NULL}, {.name = NULL}};
    bool read = true;
    for (int i = 0; read && i < COLUMNS; i++) {
        PyObject *one = PyTuple_GetItem(given, i), *name = PyTuple_GetItem(names, i);
        const char *text = PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, NULL) : "";
        read = text && (one == Py_None || column_open(state, one, text, &c[i]));
        if (read && one != Py_None && c[i].n != c[USERS].n)
            read = raise_sentence(state, ATT_ERR_SHAPE, "%s has %lld rows, but %s has %lld", c[i].name,
                                  (long long)c[i].n, c[USERS].name, (long long)c[USERS].n);
    }
    const att_interaction_source source = {
        .size = sizeof source, .n = c[USERS].n, .timed = c[TIMES].name != NULL, .get = get_action, .user = c};
    att_status status = ATT_OK;
    if (read) {
        LONG_CALL_BEGIN
        status = att_interactions_read(state->ctx, &source, options, &self->log);
        trim_memory();
        LONG_CALL_END(status)
    }
    self->integer_users = column_has_integers(&c[USERS]);
    self->integer_items = column_has_integers(&c[ITEMS]);
    for (int i = 0; i < COLUMNS; i++)
        column_close(&c[i]);
    return read && call_succeeded(state, status);
}

static bool read_file(interaction_log *self, module_state *state, PyObject *path,
                      const att_interactions_options *options)
{
    PyObject *bytes = NULL;
    if (!PyUnicode_FSConverter(path, &bytes))
        return false;
    att_status status;
    LONG_CALL_BEGIN
    status = att_interactions_open(state->ctx, PyBytes_AsString(bytes), options, &self->log);
    LONG_CALL_END(status)
    Py_DECREF(bytes);
    return call_succeeded(state, status);
}

static bool hold_out(interaction_log *self, module_state *state, PyObject *split, PyObject *held)
{
    att_holdout_options options = {.size = sizeof options};
    if (!options_read(state, split, splitting, &options, held))
        return false;
    att_status status = att_interactions_describe(self->log, &self->info);
    status = status == ATT_OK ? att_holdout_new(self->log, &options, &self->holdout) : status;
    status = status == ATT_OK ? att_holdout_describe(self->holdout, &self->held) : status;
    return status == ATT_OK || raise_status(state, status);
}

/* Has a log begin with the items of a model, if there is one, and then those of `more`: *ids [n], to be freed. */
static bool begin_with(module_state *state, PyObject *model, const texts *more, const char ***ids, int64_t *n)
{
    const att_recommender *m = model == Py_None ? NULL : recommender_of(state, model);
    att_recommender_info info = {.size = sizeof info};
    if ((model != Py_None && !m) || (m && att_recommender_describe(m, &info) != ATT_OK))
        return false;
    *n = info.items + more->n;
    *ids = malloc(sizeof **ids * (size_t)(*n + 1));
    if (!*ids)
        return PyErr_NoMemory();
    for (int64_t i = 0; i < *n; i++)
        (*ids)[i] = i < info.items ? att_recommender_item(m, i) : more->text[i - info.items];
    return true;
}

/* Log(data, names, read, split, model=None, items=(), progress=None). data: a path, or (users, items, times or None).
 * The first items are those of the model, and then `items`, a sequence of str. */
static PyObject *log_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"data", "names", "read", "split", "model", "items", "progress", NULL};
    module_state *state = PyType_GetModuleState(type);
    PyObject *data, *columns, *read, *split, *model = Py_None, *more = NULL, *function = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO!O!O!|OOO", names, &data, &PyTuple_Type, &columns, &PyDict_Type,
                                     &read, &PyDict_Type, &split, &model, &more, &function))
        return NULL;
    progress p = {.function = function == Py_None ? NULL : function};
    att_interactions_options options = {.size = sizeof options, .progress = progress_call, .progress_user = &p};
    PyObject *held = PyList_New(0);
    interaction_log *self = held ? PyObject_New(interaction_log, type) : NULL;
    if (!self) {
        Py_XDECREF(held);
        return NULL;
    }
    self->log = NULL, self->holdout = NULL;
    self->integer_users = self->integer_items = false;
    self->info = (att_interactions_info){.size = sizeof self->info};
    self->held = (att_holdout_info){.size = sizeof self->held};
    const char **ids = NULL;
    texts first = {.n = 0};
    const bool is_file = !PyTuple_Check(data);
    bool made = options_read(state, read, reading, &options, held) &&
                (!more || texts_read(state, more, "items", false, &first)) &&
                begin_with(state, model, &first, &ids, &options.n_items);
    options.items = ids;
    if (made && !is_file && (PyTuple_Size(data) != COLUMNS || PyTuple_Size(columns) != COLUMNS))
        made = raise_sentence(state, ATT_ERR_ARGUMENT, "data: (users, items, times) and their names are needed");
    made = made &&
           (is_file ? read_file(self, state, data, &options) : read_columns(self, state, data, columns, &options)) &&
           hold_out(self, state, split, held);
    free(ids);
    texts_release(&first);
    Py_DECREF(held);
    if (!made)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static void log_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    att_holdout_free(((interaction_log *)self)->holdout);
    att_interactions_free(((interaction_log *)self)->log);
    PyObject_Free(self);
    Py_DECREF(type);
}

interaction_log *log_of(module_state *state, PyObject *object)
{
    if (Py_TYPE(object) == state->log)
        return (interaction_log *)object;
    return (interaction_log *)raise_sentence(state, ATT_ERR_DTYPE, "a log is needed");
}

/* ---- what it has */

static PyObject *get_info(PyObject *self, void *unused)
{
    (void)unused;
    const att_interactions_info *i = &((interaction_log *)self)->info;
    const att_holdout_info *h = &((interaction_log *)self)->held;
    return Py_BuildValue(
        "{s:L,s:L,s:L,s:L,s:O,s:L,s:L,s:L,s:L,s:L,s:L,s:L}", "users", (long long)i->users, "items", (long long)i->items,
        "actions", (long long)i->actions, "longest", (long long)i->longest, "timed", i->timed ? Py_True : Py_False,
        "unsorted", (long long)i->unsorted, "duplicates", (long long)i->duplicates, "guests", (long long)i->guests,
        "skipped", (long long)i->skipped, "train_actions", (long long)h->actions, "valid_cases",
        (long long)h->cases[ATT_HOLDOUT_PART_VALID], "test_cases", (long long)h->cases[ATT_HOLDOUT_PART_TEST]);
}

/* The number of users with two or more actions for training */
static PyObject *get_histories(PyObject *self, void *unused)
{
    (void)unused;
    const interaction_log *l = (interaction_log *)self;
    int64_t n = 0;
    for (int64_t u = 0; u < l->info.users; u++)
        n += att_holdout_train(l->holdout, u).count > 1;
    return PyLong_FromLongLong(n);
}

/* A checksum of what is held out for validation */
static PyObject *get_valid_checksum(PyObject *self, void *unused)
{
    (void)unused;
    const interaction_log *l = (interaction_log *)self;
    uint64_t sum = UINT64_C(14695981039346656037); /* FNV-1a of numbers */
    att_holdout_case c;
    for (int64_t i = 0; i < l->held.cases[ATT_HOLDOUT_PART_VALID]; i++)
        if (att_holdout_get(l->holdout, ATT_HOLDOUT_PART_VALID, i, &c) == ATT_OK) {
            sum = (sum ^ (uint64_t)c.user) * UINT64_C(1099511628211);
            sum = (sum ^ (uint64_t)c.target) * UINT64_C(1099511628211);
        }
    return PyLong_FromLongLong((long long)(sum >> 1));
}

static PyObject *get_integer_items(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(((interaction_log *)self)->integer_items);
}

/* history(user): ids of the items of a user, all actions */
static PyObject *history(PyObject *self, PyObject *user)
{
    const interaction_log *l = (interaction_log *)self;
    PyObject *text = PyObject_Str(user);
    const char *id = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    const int64_t number = id ? att_interactions_find_user(l->log, id) : -1;
    Py_XDECREF(text);
    if (!id)
        return NULL;
    if (number < 0)
        return raise_sentence(state_of(self), ATT_ERR_ARGUMENT, "%R: the log has no such user", user);
    const att_history h = att_interactions_history(l->log, number);
    PyObject *list = PyList_New((Py_ssize_t)h.count);
    for (int64_t i = 0; list && i < h.count; i++) {
        PyObject *item = id_object(att_interactions_item(l->log, h.items[i]), l->integer_items);
        if (!item || PyList_SetItem(list, (Py_ssize_t)i, item))
            Py_CLEAR(list);
    }
    return list;
}

/* items(first): the ids of all items from number `first` on, texts */
static PyObject *items(PyObject *self, PyObject *args)
{
    const interaction_log *l = (interaction_log *)self;
    long long first;
    if (!PyArg_ParseTuple(args, "L:items", &first))
        return NULL;
    PyObject *list = PyList_New(0);
    for (int64_t i = first; list && i < l->info.items; i++) {
        PyObject *id = id_object(att_interactions_item(l->log, i), false);
        if (!id || PyList_Append(list, id))
            Py_CLEAR(list);
        Py_XDECREF(id);
    }
    return list;
}

/* users(): the ids of all users */
static PyObject *users(PyObject *self, PyObject *unused)
{
    (void)unused;
    const interaction_log *l = (interaction_log *)self;
    PyObject *list = PyList_New((Py_ssize_t)l->info.users);
    for (int64_t i = 0; list && i < l->info.users; i++) {
        PyObject *id = id_object(att_interactions_user(l->log, i), l->integer_users);
        if (!id || PyList_SetItem(list, (Py_ssize_t)i, id))
            Py_CLEAR(list);
    }
    return list;
}

/* ---- ranking */

static const char *const parts[] = {"valid", "test", NULL};
static const char *const candidates[] = {"all", "outside-training", "outside-history", "popularity", NULL};
static const option_field ranking[] = {
    OPTION_OF(att_ranking_options, part, parts),
    OPTION(INTEGER, att_ranking_options, k),
    OPTION(BOOL, att_ranking_options, exclude_seen),
    OPTION(BOOL, att_ranking_options, leave_out_unseen),
    OPTION_OF(att_ranking_options, candidates, candidates),
    OPTION(INTEGER, att_ranking_options, negatives),
    OPTION(INTEGER, att_ranking_options, draws),
    OPTION(UNSIGNED, att_ranking_options, seed),
    {NULL, OPTION_BOOL, 0, NULL},
};

static PyObject *measures(const att_ranking *r)
{
    return Py_BuildValue("{s:d,s:d,s:d,s:(dd),s:(dd),s:(dd),s:d,s:d,s:L,s:L,s:L,s:L,s:L}", "ndcg", r->ndcg.mean, "hr",
                         r->hr.mean, "mrr", r->mrr.mean, "ndcg_interval", r->ndcg.low, r->ndcg.high, "hr_interval",
                         r->hr.low, r->hr.high, "mrr_interval", r->mrr.low, r->mrr.high, "coverage", r->coverage,
                         "popularity", r->popularity, "cases", (long long)r->cases, "unseen", (long long)r->unseen,
                         "repeats", (long long)r->repeats, "k", (long long)r->k, "candidates",
                         (long long)r->candidates);
}

PyObject *log_rank(module_state *state, const interaction_log *l, const att_scorer *scorer, PyObject *given)
{
    progress p = {.function = NULL};
    att_ranking_options options = {.size = sizeof options, .progress = progress_call, .user = &p};
    PyObject *held = PyList_New(0);
    const bool read = held && options_read(state, given, ranking, &options, held);
    Py_XDECREF(held);
    if (!read)
        return NULL;
    att_ranking r = {.size = sizeof r};
    att_status status;
    LONG_CALL_BEGIN
    status = att_rank(l->holdout, scorer, &options, &r);
    LONG_CALL_END(status)
    return status == ATT_OK ? call_result(state, status, measures(&r)) : call_result(state, status, NULL);
}

static PyGetSetDef properties[] = {
    {"info", get_info, NULL, "Counts", NULL},
    {"histories", get_histories, NULL, "Users with two or more actions for training", NULL},
    {"integer_items", get_integer_items, NULL, "Are the ids of items integers?", NULL},
    {"valid_checksum", get_valid_checksum, NULL, "Of what is held out for validation", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"history", history, METH_O, "history($self, user, /)\n--\n\nIds of a user's items, oldest first."},
    {"items", items, METH_VARARGS, "items($self, first, /)\n--\n\nIds of all items from number first on, texts."},
    {"users", users, METH_NOARGS, "users($self, /)\n--\n\nIds of all users."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Actions of users with items."},
    {Py_tp_new, log_new},
    {Py_tp_dealloc, log_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {0, NULL},
};

PyType_Spec log_spec = {"attend._attend.Log", sizeof(interaction_log), 0, Py_TPFLAGS_DEFAULT, slots};
