/* attend._attend.Generator: a language model with its tokenizer and chat template; Session: texts that it generates
 * side by side. attend/generator.py makes the interface of both. */
#include "attend_language.h"
#include "model.h"
#include "texts.h"

typedef struct generator {
    PyObject_HEAD att_text_generator *g;
    att_chat_template *chat; /* or NULL */
    att_status chat_status;  /* if chat is NULL: why, */
    PyObject *no_chat;       /* and its sentence */
} generator;

typedef struct session {
    PyObject_HEAD att_generation *s;
    PyObject *generator;
    PyObject *pieces; /* of the step that runs: [(number, text)] */
} session;

static module_state *state_of(PyObject *self) { return PyType_GetModuleState(Py_TYPE(self)); }

/* ---- the model */

/* Opens the model's chat template. If attend does not know it, or there is none, chat_ids states why. */
static bool open_chat(generator *self, module_state *state, const char *folder)
{
    self->chat_status = att_chat_template_open(state->ctx, folder, NULL, NULL, &self->chat);
    if (self->chat_status == ATT_OK)
        return true;
    const char *said = att_error(state->ctx);
    self->no_chat = PyUnicode_DecodeUTF8(said, (Py_ssize_t)strlen(said), "replace");
    return self->no_chat != NULL;
}

static PyObject *generator_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    module_state *state = PyType_GetModuleState(type);
    model_arguments a;
    if (!model_arguments_read(state, args, keywords, &a))
        return NULL;
    generator *self = PyObject_New(generator, type);
    if (!self)
        return NULL;
    self->g = NULL, self->chat = NULL, self->no_chat = NULL;
    att_status status;
    LONG_CALL_BEGIN
    status = att_text_generator_open(state->ctx, a.path.text, &a.options, &self->g);
    LONG_CALL_END(status)
    PyObject *opened = call_result(state, status, (PyObject *)self);
    if (opened && !open_chat(self, state, a.path.text))
        Py_CLEAR(opened);
    return opened;
}

static void generator_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    generator *g = (generator *)self;
    att_chat_template_free(g->chat);
    att_text_generator_free(g->g);
    Py_XDECREF(g->no_chat);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* The list of ids that a call has made, or its exception */
static PyObject *tokens_list(module_state *state, att_status status, att_tokens *tokens)
{
    if (status != ATT_OK)
        return raise_status(state, status);
    PyObject *list = ids_list(tokens->ids, tokens->count);
    att_tokens_free(state->ctx, tokens);
    return list;
}

/* The ids of a text that is to be continued */
static PyObject *tokenize(PyObject *self, PyObject *args)
{
    const char *text;
    Py_ssize_t bytes;
    if (!PyArg_ParseTuple(args, "s#:tokenize", &text, &bytes))
        return NULL;
    const att_tokenizer *tokenizer = att_text_generator_tokenizer(((generator *)self)->g);
    att_tokens tokens;
    att_status status;
    LONG_CALL_BEGIN
    status = att_tokenize(tokenizer, text, (size_t)bytes, NULL, &tokens);
    LONG_CALL_END(status)
    return tokens_list(state_of(self), status, &tokens);
}

/* Reads messages [(role, text, JSON or None)] of a tuple, which holds their characters. NULL with an exception */
static att_chat_message *messages_read(PyObject *tuple)
{
    Py_ssize_t n = PyTuple_Size(tuple);
    att_chat_message *m = PyMem_Calloc((size_t)n + 1, sizeof *m);
    if (!m)
        return (att_chat_message *)PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PyTuple_GetItem(tuple, i);
        Py_ssize_t bytes = 0;
        if (!PyTuple_Check(item))
            PyErr_SetString(PyExc_TypeError, "messages are tuples (role, text, JSON or None)");
        else if (PyArg_ParseTuple(item, "ss#z;messages are tuples (role, text, JSON or None)", &m[i].role, &m[i].text,
                                  &bytes, &m[i].more))
            m[i].size = sizeof *m, m[i].bytes = (size_t)bytes;
        if (PyErr_Occurred()) {
            PyMem_Free(m);
            return NULL;
        }
    }
    return m;
}

/* messages: [(role, text, JSON or None)]; tools, documents, variables: JSON or None -> ids that end where the answer
 * begins */
static PyObject *chat_ids(PyObject *self, PyObject *args)
{
    module_state *state = state_of(self);
    const generator *g = (generator *)self;
    att_chat_options options = {.size = sizeof options, .reply = true};
    PyObject *messages;
    if (!PyArg_ParseTuple(args, "Ozzz:chat_ids", &messages, &options.tools, &options.documents, &options.variables))
        return NULL;
    if (!g->chat)
        return raise_sentence(state, g->chat_status, "%U", g->no_chat);
    PyObject *tuple = PySequence_Tuple(messages);
    att_chat_message *m = tuple ? messages_read(tuple) : NULL;
    if (!m) {
        Py_XDECREF(tuple);
        return NULL;
    }
    int64_t n = PyTuple_Size(tuple);
    att_tokens tokens;
    att_status status;
    LONG_CALL_BEGIN
    status = att_chat_tokenize(g->chat, att_text_generator_tokenizer(g->g), m, n, &options, &tokens);
    LONG_CALL_END(status)
    PyMem_Free(m);
    Py_DECREF(tuple);
    return tokens_list(state, status, &tokens);
}

static PyObject *get_chat_end(PyObject *self, void *unused)
{
    (void)unused;
    const char *end = att_chat_template_end(((generator *)self)->chat);
    return PyUnicode_FromString(end ? end : "");
}

static PyGetSetDef generator_properties[] = {
    {"chat_end", get_chat_end, NULL, "The token that ends a message of a chat, or ''", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef generator_methods[] = {
    {"tokenize", tokenize, METH_VARARGS, "tokenize($self, text, /)\n--\n\nIts ids."},
    {"chat_ids", chat_ids, METH_VARARGS,
     "chat_ids($self, messages, tools, documents, variables, /)\n--\n\nIds of messages [(role, text, JSON or None)], "
     "up "
     "to the answer."},
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
    self->generator = Py_NewRef(of), self->pieces = NULL, self->s = NULL;
    att_status status = att_generation_new(
        ((generator *)of)->g, ATT_OPTIONS(att_generation_options, .max_sequences = max_sequences), &self->s);
    return call_result(state, status, (PyObject *)self);
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

/* During a step, which has released the GIL, another thread may not use the session. */
static bool is_idle(const session *s)
{
    if (s->pieces)
        PyErr_SetString(PyExc_RuntimeError, "another thread is in a step of this session");
    return !s->pieces;
}

/* Reads texts that end in a zero byte, as all str do. false with an exception */
static bool stop_read(module_state *state, PyObject *stop, texts *out)
{
    if (!texts_read(state, stop, "stop", false, out))
        return false;
    if (out->arrow)
        return raise_sentence(state, ATT_ERR_DTYPE, "stop: a str or a sequence of str is needed");
    for (int64_t i = 0; i < out->n; i++)
        if (strlen(out->text[i]) != out->bytes[i])
            return raise_sentence(state, ATT_ERR_ARGUMENT, "stop[%lld]: has a zero byte", (long long)i);
    return true;
}

/* What a call gives instead of the folder's settings, or None */
typedef struct sampling_arguments {
    PyObject *temperature, *top_k, *top_p, *repetition_penalty;
} sampling_arguments;

static bool read_float(PyObject *given, float *out)
{
    if (given == Py_None)
        return true;
    *out = (float)PyFloat_AsDouble(given);
    return !PyErr_Occurred();
}

static bool read_sampling(module_state *state, const generator *g, const sampling_arguments *a, att_sampling *out)
{
    *out = (att_sampling){.size = sizeof *out};
    att_status status = att_text_generator_sampling(g->g, out);
    if (status != ATT_OK)
        return raise_status(state, status);
    if (a->top_k != Py_None)
        out->top_k = PyLong_AsLongLong(a->top_k);
    if (PyErr_Occurred() || !read_float(a->temperature, &out->temperature) || !read_float(a->top_p, &out->top_p) ||
        !read_float(a->repetition_penalty, &out->repetition_penalty))
        return false;
    if (a->temperature != Py_None)
        out->sample = out->temperature > 0;
    return true;
}

/* An integer of 64 bits: a converter of PyArg_Parse, whose own do not check the range */
static int read_seed(PyObject *object, void *out)
{
    unsigned long long seed = PyLong_AsUnsignedLongLong(object);
    *(uint64_t *)out = seed;
    return !PyErr_Occurred();
}

/* add(ids, *, max_new_tokens, temperature, top_k, top_p, repetition_penalty, seed, stop, lookup) -> number */
static PyObject *session_add(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"ids",  "max_new_tokens", "temperature", "top_k", "top_p", "repetition_penalty",
                            "seed", "stop",           "lookup",      NULL};
    module_state *state = state_of(self);
    session *s = (session *)self;
    PyObject *prompt, *stop = Py_None, *number = NULL;
    sampling_arguments given = {Py_None, Py_None, Py_None, Py_None};
    att_generate_options options = {.size = sizeof options, .token = add_piece, .user = s};
    long long max_tokens = 0, lookup = 0;
    if (!is_idle(s) ||
        !PyArg_ParseTupleAndKeywords(args, keywords, "O|$LOOOOO&OL:add", names, &prompt, &max_tokens,
                                     &given.temperature, &given.top_k, &given.top_p, &given.repetition_penalty,
                                     read_seed, &options.seed, &stop, &lookup))
        return NULL;
    token_ids ids = {.id = NULL};
    texts stops = {.n = 0};
    att_sampling sampling;
    if (ids_read(state, prompt, "ids", &ids) && (stop == Py_None || stop_read(state, stop, &stops)) &&
        read_sampling(state, (generator *)s->generator, &given, &sampling)) {
        options.max_tokens = max_tokens, options.lookup = lookup, options.sampling = &sampling;
        options.stop = stops.text, options.n_stop = stops.n;
        int64_t added;
        att_status status = att_generation_add(s->s, ids.id, ids.n, &options, &added);
        number = status == ATT_OK ? PyLong_FromLongLong(added) : raise_status(state, status);
    }
    PyMem_Free(ids.id);
    texts_release(&stops);
    return number;
}

/* step() -> [(number, text, last)]: what one pass has added to all texts */
static PyObject *session_step(PyObject *self, PyObject *unused)
{
    (void)unused;
    session *s = (session *)self;
    if (!is_idle(s))
        return NULL;
    s->pieces = PyList_New(0);
    if (!s->pieces)
        return NULL;
    int64_t active;
    att_status status;
    LONG_CALL_BEGIN
    status = att_generation_step(s->s, &active);
    LONG_CALL_END(status)
    PyObject *pieces = s->pieces;
    s->pieces = NULL;
    return call_result(state_of(self), status, pieces);
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
    if (!is_idle((session *)self) || !PyArg_ParseTuple(args, "L:finish", &number))
        return NULL;
    att_generated out;
    att_status status = att_generation_finish(((session *)self)->s, number, &out);
    if (status != ATT_OK)
        return raise_status(state, status);
    PyObject *result =
        Py_BuildValue("(NNs)", PyUnicode_DecodeUTF8(out.text.text, (Py_ssize_t)out.text.bytes, "replace"),
                      ids_list(out.tokens.ids, out.tokens.count), ends[out.end]);
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
