/* attend._attend.Generator: a language model with its tokenizer and chat template; Session: texts that it generates
 * side by side. attend/generator.py makes the interface of both. */
#include <stdio.h>

#include "attend_language.h"
#include "model.h"

typedef struct generator {
    PyObject_HEAD att_text_generator *g;
    att_chat_template *chat; /* or NULL: the model has none */
    char end[64];            /* the token that ends a message, or "" */
} generator;

typedef struct session {
    PyObject_HEAD att_generation *s;
    PyObject *generator;
    PyObject *pieces; /* of the step that runs: [(number, text)] */
} session;

static module_state *state_of(PyObject *self) { return PyType_GetModuleState(Py_TYPE(self)); }

/* ---- the model */

static PyObject *generator_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"path", "dtype", NULL};
    PyObject *path, *dtype = Py_None;
    att_model_path folder;
    att_model_options options;
    module_state *state = PyType_GetModuleState(type);
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|$O:Generator", names, &path, &dtype))
        return NULL;
    if (!model_path(state, path, &folder) || !model_options_read(state, dtype, &options))
        return NULL;
    generator *self = PyObject_New(generator, type);
    if (!self)
        return NULL;
    self->g = NULL, self->chat = NULL, self->end[0] = 0;
    progress p = {.function = NULL};
    options.progress = progress_call, options.user = &p;
    att_status status;
    Py_BEGIN_ALLOW_THREADS status = att_text_generator_open(state->ctx, folder.text, &options, &self->g);
    if (status == ATT_OK && att_chat_template_open(state->ctx, folder.text, NULL, NULL, &self->chat) == ATT_OK &&
        att_chat_template_end(self->chat))
        snprintf(self->end, sizeof self->end, "%s", att_chat_template_end(self->chat));
    Py_END_ALLOW_THREADS return progress_result(state, status, (PyObject *)self);
}

static void generator_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    att_chat_template_free(((generator *)self)->chat);
    att_text_generator_free(((generator *)self)->g);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *ids_list(const att_tokens *tokens)
{
    PyObject *list = PyList_New((Py_ssize_t)tokens->count);
    for (int64_t i = 0; list && i < tokens->count; i++) {
        PyObject *id = PyLong_FromLong(tokens->ids[i]);
        if (!id || PyList_SetItem(list, (Py_ssize_t)i, id))
            Py_CLEAR(list);
    }
    return list;
}

/* The ids of a text that is to be continued */
static PyObject *tokenize(PyObject *self, PyObject *args)
{
    const char *text;
    Py_ssize_t bytes;
    module_state *state = state_of(self);
    if (!PyArg_ParseTuple(args, "s#:tokenize", &text, &bytes))
        return NULL;
    att_tokens tokens;
    att_status status =
        att_tokenize(att_text_generator_tokenizer(((generator *)self)->g), text, (size_t)bytes, NULL, &tokens);
    if (status != ATT_OK)
        return raise_status(state, status);
    PyObject *list = ids_list(&tokens);
    att_tokens_free(state->ctx, &tokens);
    return list;
}

/* messages: [(role, text)] -> ids that end where the answer begins */
static PyObject *chat_ids(PyObject *self, PyObject *messages)
{
    module_state *state = state_of(self);
    const generator *g = (generator *)self;
    if (!g->chat)
        return raise_sentence(state, ATT_ERR_UNSUPPORTED, "the model has no chat template that attend knows");
    PyObject *tuple = PySequence_Tuple(messages), *list = NULL;
    if (!tuple)
        return NULL;
    Py_ssize_t n = PyTuple_Size(tuple);
    att_chat_message *m = PyMem_Calloc((size_t)n + 1, sizeof *m);
    if (!m)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; m && i < n && !PyErr_Occurred(); i++) {
        Py_ssize_t bytes = 0;
        m[i].size = sizeof *m;
        if (PyArg_ParseTuple(PyTuple_GetItem(tuple, i), "ss#;messages are (role, text)", &m[i].role, &m[i].text,
                             &bytes))
            m[i].bytes = (size_t)bytes;
    }
    if (m && !PyErr_Occurred()) {
        att_tokens tokens;
        att_status status = att_chat_tokenize(g->chat, att_text_generator_tokenizer(g->g), m, n,
                                              ATT_OPTIONS(att_chat_options, .reply = true), &tokens);
        list = status == ATT_OK ? ids_list(&tokens) : raise_status(state, status);
        if (status == ATT_OK)
            att_tokens_free(state->ctx, &tokens);
    }
    PyMem_Free(m);
    Py_DECREF(tuple);
    return list;
}

static PyObject *get_chat_end(PyObject *self, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(((generator *)self)->end);
}

static PyGetSetDef generator_properties[] = {
    {"chat_end", get_chat_end, NULL, "The token that ends a message of a chat, or ''", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef generator_methods[] = {
    {"tokenize", tokenize, METH_VARARGS, "tokenize($self, text, /)\n--\n\nIts ids."},
    {"chat_ids", chat_ids, METH_O,
     "chat_ids($self, messages, /)\n--\n\nIds of messages [(role, text)], up to the answer."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot generator_slots[] = {
    {Py_tp_doc, "A language model with its tokenizer and chat template."},
    {Py_tp_new, generator_new},
    {Py_tp_dealloc, generator_dealloc},
    {Py_tp_methods, generator_methods},
    {Py_tp_getset, generator_properties},
    {0, NULL},
};

PyType_Spec generator_spec = {"attend._attend.Generator", sizeof(generator), 0, Py_TPFLAGS_DEFAULT, generator_slots};

/* ---- a session */

static PyObject *session_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"generator", "max_sequences", NULL};
    module_state *state = PyType_GetModuleState(type);
    PyObject *of;
    long long max_sequences = 0;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!|L:Session", names, state->generator, &of, &max_sequences))
        return NULL;
    session *self = PyObject_New(session, type);
    if (!self)
        return NULL;
    self->generator = Py_NewRef(of), self->pieces = NULL;
    att_status status = att_generation_new(
        ((generator *)of)->g, ATT_OPTIONS(att_generation_options, .max_sequences = max_sequences), &self->s);
    if (status == ATT_OK)
        return (PyObject *)self;
    Py_DECREF((PyObject *)self);
    return raise_status(state, status);
}

static void session_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    att_generation_free(((session *)self)->s);
    Py_DECREF(((session *)self)->generator);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* During a step: adds what a token completed to the pieces. */
static bool add_piece(void *user, const att_generated_token *token)
{
    session *self = user;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *piece =
        Py_BuildValue("(LNO)", (long long)token->sequence,
                      PyUnicode_DecodeUTF8(token->text ? token->text : "", (Py_ssize_t)token->bytes, "replace"),
                      token->last ? Py_True : Py_False);
    bool added = piece && PyList_Append(self->pieces, piece) == 0;
    Py_XDECREF(piece);
    PyGILState_Release(gil);
    return added;
}

/* Texts of a sequence; false with an exception. The bytes that hold them are in `owner`, a new list. */
static bool stop_texts(PyObject *stop, const char ***out, int64_t *n, PyObject **owner)
{
    PyObject *tuple = PySequence_Tuple(stop);
    *owner = NULL;
    if (!tuple)
        return false;
    *n = PyTuple_Size(tuple);
    *out = PyMem_Calloc((size_t)*n + 1, sizeof **out);
    if (!*out)
        PyErr_NoMemory();
    for (int64_t i = 0; *out && i < *n && !PyErr_Occurred(); i++) {
        PyObject *text = PyTuple_GetItem(tuple, (Py_ssize_t)i);
        Py_ssize_t bytes;
        (*out)[i] = PyUnicode_AsUTF8AndSize(text, &bytes);
        if ((*out)[i] && strlen((*out)[i]) != (size_t)bytes)
            PyErr_SetString(PyExc_ValueError, "stop: a zero byte");
    }
    *owner = tuple;
    return *out && !PyErr_Occurred();
}

/* The folder's settings where the call has none. temperature None and top_k None: of the folder */
static bool read_sampling(const generator *g, PyObject *const given[4], att_sampling *out)
{
    *out = (att_sampling){.size = sizeof *out};
    if (att_text_generator_sampling(g->g, out) != ATT_OK)
        return false;
    if (given[0] != Py_None) {
        out->temperature = (float)PyFloat_AsDouble(given[0]);
        out->sample = out->temperature > 0;
    }
    if (given[1] != Py_None)
        out->top_k = PyLong_AsLongLong(given[1]);
    if (given[2] != Py_None)
        out->top_p = (float)PyFloat_AsDouble(given[2]);
    if (given[3] != Py_None)
        out->repetition_penalty = (float)PyFloat_AsDouble(given[3]);
    return !PyErr_Occurred();
}

/* add(ids, *, max_new_tokens, temperature, top_k, top_p, repetition_penalty, seed, stop, lookup) -> number */
static PyObject *session_add(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"ids",  "max_new_tokens", "temperature", "top_k", "top_p", "repetition_penalty",
                            "seed", "stop",           "lookup",      NULL};
    module_state *state = state_of(self);
    session *s = (session *)self;
    PyObject *given, *stop = NULL, *sampling_given[4] = {Py_None, Py_None, Py_None, Py_None}, *owner = NULL;
    att_generate_options options = {.size = sizeof options, .token = add_piece, .user = s};
    unsigned long long seed = 0;
    long long max_tokens = 0, lookup = 0, number = -1;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|$LOOOOKOL:add", names, &given, &max_tokens, &sampling_given[0],
                                     &sampling_given[1], &sampling_given[2], &sampling_given[3], &seed, &stop, &lookup))
        return NULL;
    PyObject *tuple = PySequence_Tuple(given);
    if (!tuple)
        return NULL;
    Py_ssize_t n = PyTuple_Size(tuple);
    int32_t *ids = PyMem_Calloc((size_t)n + 1, sizeof *ids);
    if (!ids)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; ids && i < n && !PyErr_Occurred(); i++) {
        long long id = PyLong_AsLongLong(PyTuple_GetItem(tuple, i));
        ids[i] = id < 0 || id > INT32_MAX ? -1 : (int32_t)id; /* the library refuses it */
    }
    att_sampling sampling;
    const char **texts = NULL;
    if (ids && !PyErr_Occurred() && read_sampling((generator *)s->generator, sampling_given, &sampling) &&
        (!stop || stop_texts(stop, &texts, &options.n_stop, &owner))) {
        options.max_tokens = max_tokens, options.seed = seed, options.lookup = lookup, options.stop = texts;
        options.sampling = &sampling;
        int64_t added;
        att_status status = att_generation_add(s->s, ids, n, &options, &added);
        if (status != ATT_OK)
            raise_status(state, status);
        number = added;
    }
    PyMem_Free(ids);
    PyMem_Free(texts);
    Py_XDECREF(owner);
    Py_DECREF(tuple);
    return PyErr_Occurred() ? NULL : PyLong_FromLongLong(number);
}

/* step() -> [(number, text, last)]: what one pass has added to all texts */
static PyObject *session_step(PyObject *self, PyObject *unused)
{
    (void)unused;
    session *s = (session *)self;
    if (s->pieces) {
        PyErr_SetString(PyExc_RuntimeError, "another thread is in a step of this session");
        return NULL;
    }
    s->pieces = PyList_New(0);
    if (!s->pieces)
        return NULL;
    int64_t active;
    att_status status;
    Py_BEGIN_ALLOW_THREADS status = att_generation_step(s->s, &active);
    Py_END_ALLOW_THREADS PyObject *pieces = s->pieces;
    s->pieces = NULL;
    return progress_result(state_of(self), status, pieces);
}

/* finish(number) -> (text, ids, why it ended) */
static PyObject *session_finish(PyObject *self, PyObject *args)
{
    static const char *const ends[] = {
        [ATT_GENERATION_EOS] = "eos",           [ATT_GENERATION_STOP] = "stop",
        [ATT_GENERATION_LENGTH] = "length",     [ATT_GENERATION_CONTEXT] = "context",
        [ATT_GENERATION_CALLBACK] = "callback", [ATT_GENERATION_CANCELLED] = "cancelled"};
    long long number;
    module_state *state = state_of(self);
    if (!PyArg_ParseTuple(args, "L:finish", &number))
        return NULL;
    att_generated out;
    att_status status = att_generation_finish(((session *)self)->s, number, &out);
    if (status != ATT_OK)
        return raise_status(state, status);
    PyObject *result =
        Py_BuildValue("(NNs)", PyUnicode_DecodeUTF8(out.text.text, (Py_ssize_t)out.text.bytes, "replace"),
                      ids_list(&out.tokens), ends[out.end]);
    att_generated_free(state->ctx, &out);
    return result;
}

static PyMethodDef session_methods[] = {
    {"add", (PyCFunction)(void (*)(void))session_add, METH_VARARGS | METH_KEYWORDS,
     "Adds a prompt, and returns its number."},
    {"step", session_step, METH_NOARGS, "Computes what all texts need next: [(number, text, last)]."},
    {"finish", session_finish, METH_VARARGS, "Takes a text out: (text, ids, why it ended)."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot session_slots[] = {
    {Py_tp_doc, "Texts that a model generates side by side."},
    {Py_tp_new, session_new},
    {Py_tp_dealloc, session_dealloc},
    {Py_tp_methods, session_methods},
    {0, NULL},
};

PyType_Spec session_spec = {"attend._attend.Session", sizeof(session), 0, Py_TPFLAGS_DEFAULT, session_slots};
