/* attend._attend.Training: a training in a folder, of any kind (training_kinds.c). attend/train.py has the classes of
 * the kinds, with their defaults, and the loop. */
#include "training.h"

#include <stddef.h>

enum { NOTE = 400 };

typedef struct training {
    PyObject_HEAD att_training *t; /* NULL: closed */
    const training_kind *kind;
    PyObject *data; /* what the training uses as long as it is open, */
    void *memory;   /* and this, too; or NULL */
    bool busy;      /* a call is running without the GIL */
    char note[NOTE];
} training;

static module_state *state_of(PyObject *self) { return PyType_GetModuleState(Py_TYPE(self)); }

static const char *const computes[] = {"float32", "bfloat16", "auto", NULL};
static const option_field common_fields[] = {
    OPTION(DOUBLE, att_training_options, beta2),
    OPTION(DOUBLE, att_training_options, weight_decay),
    OPTION(DOUBLE, att_training_options, clip),
    OPTION(INTEGER, att_training_options, accumulate),
    OPTION(INTEGER, att_training_options, shards),
    OPTION(UNSIGNED, att_training_options, seed),
    OPTION(BOOL, att_training_options, resume),
    OPTION(INTEGER, att_training_options, keep),
    OPTION(INTEGER, att_training_options, evaluation_id),
    OPTION_OF(att_training_options, compute, computes),
    {NULL, OPTION_BOOL, 0, NULL},
};

static const char *const schedules[] = {"constant", "inverse-sqrt", "cosine", "linear", NULL};
static const option_field schedule_fields[] = {
    OPTION_OF(att_schedule, kind, schedules), OPTION(DOUBLE, att_schedule, max_rate),
    OPTION(INTEGER, att_schedule, warmup),    OPTION(INTEGER, att_schedule, steps),
    OPTION(DOUBLE, att_schedule, min_rate),   {NULL, OPTION_BOOL, 0, NULL},
};

static const training_kind *find_kind(module_state *state, const char *name)
{
    const training_kind *k = training_kinds;
    while (k->name && strcmp(k->name, name))
        k++;
    return k->name ? k : (const training_kind *)raise_sentence(state, ATT_ERR_ARGUMENT, "%s: no such training", name);
}

/* ---- opening */

/* Patterns of parameters: a tuple of str, whose texts `held` gets */
typedef struct patterns {
    const char **text; /* [n] */
    int64_t n;
} patterns;

static bool read_patterns(PyObject *tuple, PyObject *held, patterns *out)
{
    out->n = PyTuple_Size(tuple);
    out->text = PyMem_Calloc((size_t)out->n + 1, sizeof *out->text);
    if (!out->text)
        return PyErr_NoMemory();
    for (int64_t i = 0; i < out->n; i++) {
        PyObject *bytes = NULL;
        if (!PyUnicode_FSConverter(PyTuple_GetItem(tuple, (Py_ssize_t)i), &bytes))
            return false;
        out->text[i] = PyBytes_AsString(bytes);
        const bool added = PyList_Append(held, bytes) == 0;
        Py_DECREF(bytes);
        if (!added)
            return false;
    }
    return true;
}

typedef struct arguments {
    PyObject *folder, *common, *schedule, *freeze, *options, *data;
} arguments;

static bool open_training(training *self, module_state *state, const arguments *a, void *options, PyObject *held)
{
    att_schedule schedule = {.size = sizeof schedule};
    att_training_options common = {
        .size = sizeof common, .schedule = &schedule, .note = self->note, .note_bytes = NOTE};
    patterns freeze = {.text = NULL};
    const training_kind *kind = self->kind;
    PyObject *folder = NULL;
    bool opened =
        PyUnicode_FSConverter(a->folder, &folder) && options_read(state, a->common, common_fields, &common, held) &&
        options_read(state, a->schedule, schedule_fields, &schedule, held) &&
        options_read(state, a->options, kind->fields, options, held) && read_patterns(a->freeze, held, &freeze) &&
        (!kind->read || kind->read(state, a->data, options, &self->memory));
    common.freeze = freeze.text, common.n_freeze = freeze.n;
    if (opened) {
        att_status status;
        LONG_CALL_BEGIN
        status = kind->open(state->ctx, PyBytes_AsString(folder), &common, options, &self->t);
        LONG_CALL_END(status)
        opened = call_succeeded(state, status);
    }
    PyMem_Free(freeze.text);
    Py_XDECREF(folder);
    return opened;
}

/* Training(kind, folder, common, schedule, freeze, options, data) */
static PyObject *training_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"kind", "folder", "common", "schedule", "freeze", "options", "data", NULL};
    module_state *state = PyType_GetModuleState(type);
    const char *name;
    arguments a;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "sOO!O!O!O!O", names, &name, &a.folder, &PyDict_Type, &a.common,
                                     &PyDict_Type, &a.schedule, &PyTuple_Type, &a.freeze, &PyDict_Type, &a.options,
                                     &a.data))
        return NULL;
    const training_kind *kind = find_kind(state, name);
    training *self = kind ? PyObject_New(training, type) : NULL;
    if (!self)
        return NULL;
    self->t = NULL, self->kind = kind, self->data = Py_NewRef(a.data), self->memory = NULL;
    self->busy = false;
    self->note[0] = 0;
    PyObject *held = PyList_New(0);
    void *options = held ? PyMem_Calloc(1, kind->bytes) : NULL;
    if (options)
        *(size_t *)options = kind->bytes;
    else if (held)
        PyErr_NoMemory();
    const bool opened = options && open_training(self, state, &a, options, held);
    PyMem_Free(options);
    Py_XDECREF(held);
    if (!opened)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static void close_training(training *t)
{
    att_training_free(t->t);
    t->t = NULL;
    if (t->memory)
        t->kind->release(t->memory);
    t->memory = NULL;
    Py_CLEAR(t->data);
}

static void training_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    close_training((training *)self);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* ---- calls */

static bool is_idle(training *t)
{
    if (!t->t)
        raise_sentence(state_of((PyObject *)t), ATT_ERR_ARGUMENT, "the training is closed");
    else if (t->busy)
        raise_sentence(state_of((PyObject *)t), ATT_ERR_BUSY, "another thread is in a call of this training");
    return t->t && !t->busy;
}

/* step(): makes one step: its report */
static PyObject *step(PyObject *self, PyObject *unused)
{
    (void)unused;
    training *t = (training *)self;
    if (!is_idle(t))
        return NULL;
    att_training_report r = {.size = sizeof r};
    att_status status;
    t->busy = true;
    LONG_CALL_BEGIN
    status = att_training_step(t->t, &r);
    LONG_CALL_END(status)
    t->busy = false;
    if (status != ATT_OK) /* an interruption after the step raises, too, but the step is made: see run in train.py */
        return call_result(state_of(self), status, NULL);
    return Py_BuildValue("{s:L,s:L,s:L,s:L,s:L,s:L,s:d,s:d,s:d}", "step", (long long)r.step, "epoch",
                         (long long)r.epoch, "steps_left", (long long)r.steps_left, "examples", (long long)r.examples,
                         "sources", (long long)r.sources, "targets", (long long)r.targets, "loss", r.loss, "norm",
                         r.norm, "rate", r.rate);
}

/* What save, pause and write have in common */
typedef enum task { TASK_SAVE, TASK_PAUSE, TASK_WRITE, TASK_KEEP, TASK_KEEP_BEST, TASK_KEEP_FIRST } task;
typedef struct task_arguments {
    int64_t n;
    double score;
    att_dtype dtype;
} task_arguments;

static att_status run_task(att_training *t, task what, const task_arguments *a)
{
    switch (what) {
    case TASK_SAVE:
        return att_training_save(t);
    case TASK_PAUSE:
        return att_training_pause(t);
    case TASK_WRITE:
        return att_training_write(t, a->n, a->dtype);
    case TASK_KEEP:
        return att_training_keep(t, a->n);
    case TASK_KEEP_BEST:
        return att_training_keep_best(t, a->score, a->dtype);
    default:
        return att_training_keep_first(t, a->score);
    }
}

static PyObject *perform(PyObject *self, task what, const task_arguments *a)
{
    training *t = (training *)self;
    if (!is_idle(t))
        return NULL;
    att_status status;
    t->busy = true;
    LONG_CALL_BEGIN
    status = run_task(t->t, what, a);
    LONG_CALL_END(status)
    t->busy = false;
    return call_result(state_of(self), status, Py_NewRef(Py_None));
}

/* save(note) and pause(note): a checkpoint, which keeps the note */
static PyObject *save_as(PyObject *self, PyObject *args, task what)
{
    const char *note;
    if (!PyArg_ParseTuple(args, "s", &note) || !is_idle((training *)self))
        return NULL;
    if (strlen(note) >= NOTE)
        return raise_sentence(state_of(self), ATT_ERR_ARGUMENT, "note: has more than %d bytes", NOTE - 1);
    strcpy(((training *)self)->note, note);
    return perform(self, what, &(task_arguments){.n = 0});
}

static PyObject *save(PyObject *self, PyObject *args) { return save_as(self, args, TASK_SAVE); }
static PyObject *pause_(PyObject *self, PyObject *args) { return save_as(self, args, TASK_PAUSE); }

static PyObject *write_(PyObject *self, PyObject *args)
{
    long long n;
    int half;
    if (!PyArg_ParseTuple(args, "Lp:write", &n, &half))
        return NULL;
    return perform(self, TASK_WRITE, &(task_arguments){.n = n, .dtype = half ? ATT_F16 : ATT_F32});
}

static PyObject *keep(PyObject *self, PyObject *args)
{
    long long n;
    if (!PyArg_ParseTuple(args, "L:keep", &n))
        return NULL;
    return perform(self, TASK_KEEP, &(task_arguments){.n = n});
}

static PyObject *keep_best(PyObject *self, PyObject *args)
{
    double score;
    int half, first = 0;
    if (!PyArg_ParseTuple(args, "dp|p:keep_best", &score, &half, &first))
        return NULL;
    return perform(self, first ? TASK_KEEP_FIRST : TASK_KEEP_BEST,
                   &(task_arguments){.score = score, .dtype = half ? ATT_F16 : ATT_F32});
}

/* evaluate(options): measures of the current weights */
static PyObject *evaluate(PyObject *self, PyObject *args)
{
    training *t = (training *)self;
    PyObject *options;
    if (!PyArg_ParseTuple(args, "O!:evaluate", &PyDict_Type, &options) || !is_idle(t))
        return NULL;
    if (!t->kind->evaluate)
        return raise_sentence(state_of(self), ATT_ERR_UNSUPPORTED, "trainings of %s have no measure", t->kind->name);
    t->busy = true;
    PyObject *result = t->kind->evaluate(state_of(self), t->t, t->data, options);
    t->busy = false;
    return result;
}

static PyObject *close_(PyObject *self, PyObject *unused)
{
    (void)unused;
    training *t = (training *)self;
    if (t->t && !is_idle(t))
        return NULL;
    close_training(t);
    return Py_NewRef(Py_None);
}

static PyObject *get_info(PyObject *self, void *unused)
{
    (void)unused;
    training *t = (training *)self;
    if (!is_idle(t))
        return NULL;
    att_training_info i = {.size = sizeof i};
    att_status status = att_training_describe(t->t, &i);
    if (status != ATT_OK)
        return raise_status(state_of(self), status);
    return Py_BuildValue("{s:L,s:L,s:L,s:d,s:L,s:L,s:L,s:L,s:L,s:L,s:L,s:L}", "steps",
                         (long long)att_training_steps(t->t), "evaluated", (long long)i.evaluated, "best_step",
                         (long long)i.best_step, "best", i.best, "examples", (long long)i.examples, "skipped_empty",
                         (long long)i.skipped_empty, "skipped_invalid", (long long)i.skipped_invalid, "skipped_long",
                         (long long)i.skipped_long, "truncated", (long long)i.truncated, "vocabulary",
                         (long long)i.vocabulary, "parameters", (long long)i.parameters, "frozen", (long long)i.frozen);
}

static PyObject *get_note(PyObject *self, void *unused)
{
    (void)unused;
    const char *note = ((training *)self)->note;
    return PyUnicode_DecodeUTF8(note, (Py_ssize_t)strlen(note), "replace");
}

static PyGetSetDef properties[] = {
    {"info", get_info, NULL, "Steps so far, the best score, and what is trained on what", NULL},
    {"note", get_note, NULL, "The note of the checkpoint", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"step", step, METH_NOARGS, "step($self, /)\n--\n\nMakes one step: its report."},
    {"save", save, METH_VARARGS, "save($self, note, /)\n--\n\nSaves a checkpoint."},
    {"pause", pause_, METH_VARARGS, "pause($self, note, /)\n--\n\nSaves one that the next replaces."},
    {"write", write_, METH_VARARGS, "write($self, n, half, /)\n--\n\nWrites the model: the mean of n checkpoints."},
    {"keep", keep, METH_VARARGS, "keep($self, n, /)\n--\n\nDeletes all but the newest n checkpoints."},
    {"keep_best", keep_best, METH_VARARGS,
     "keep_best($self, score, half, first=False, /)\n--\n\nWrites the model if its score is the best."},
    {"evaluate", evaluate, METH_VARARGS, "evaluate($self, options, /)\n--\n\nMeasures of the current weights."},
    {"close", close_, METH_NOARGS, "close($self, /)\n--\n\nUnlocks the folder."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "A training in a folder."},
    {Py_tp_new, training_new},
    {Py_tp_dealloc, training_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {0, NULL},
};

PyType_Spec training_spec = {"attend._attend.Training", sizeof(training), 0, Py_TPFLAGS_DEFAULT, slots};
