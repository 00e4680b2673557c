/* attend._attend.Tokenizer: ids of texts. */
#include "model.h"
#include "attend_text.h"
#include "texts.h"

#include <stdio.h>
#include <sys/stat.h>

typedef struct tokenizer {
    PyObject_HEAD att_tokenizer *t;
} tokenizer;

static module_state *state_of(PyObject *self) { return PyType_GetModuleState(Py_TYPE(self)); }

/* Finds a file, or the folder of a model, whose name may be that of its tokenizer.json. */
static bool tokenizer_path(module_state *state, PyObject *name, att_model_path *out)
{
    PyObject *bytes = NULL;
    struct stat is;
    if (!PyUnicode_FSConverter(name, &bytes))
        return false;
    bool file = !stat(PyBytes_AsString(bytes), &is) && S_ISREG(is.st_mode) &&
                (size_t)snprintf(out->text, sizeof out->text, "%s", PyBytes_AsString(bytes)) < sizeof out->text;
    Py_DECREF(bytes);
    if (!file)
        return model_path(state, name, out);
    char *end = strrchr(out->text, '/');
    if (end && !strcmp(end, "/tokenizer.json"))
        *end = 0; /* beside which tokenizer_config.json is */
    return true;
}

static PyObject *tokenizer_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"path", NULL};
    PyObject *path;
    att_model_path folder;
    module_state *state = PyType_GetModuleState(type);
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O:Tokenizer", names, &path) ||
        !tokenizer_path(state, path, &folder))
        return NULL;
    tokenizer *self = PyObject_New(tokenizer, type);
    if (!self)
        return NULL;
    self->t = NULL;
    att_status status;
    LONG_CALL_BEGIN
    status = att_tokenizer_open(state->ctx, folder.text, &self->t);
    LONG_CALL_END(status)
    return call_result(state, status, (PyObject *)self);
}

static void tokenizer_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    att_tokenizer_free(((tokenizer *)self)->t);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* Number of characters before byte `to` of a text, counted on from *at */
static Py_ssize_t characters_to(const char *text, int64_t to, int64_t *at, Py_ssize_t *count)
{
    if (to < *at)
        *at = 0, *count = 0;
    for (; *at < to; ++*at)
        *count += ((unsigned char)text[*at] & 0xC0) != 0x80;
    return *count;
}

/* [(begin, end)]: in characters, as Python counts them */
static PyObject *offsets_list(const att_tokens *tokens, const char *text)
{
    PyObject *list = PyList_New((Py_ssize_t)tokens->count);
    int64_t at = 0;
    Py_ssize_t count = 0;
    for (int64_t i = 0; list && i < tokens->count; i++) {
        Py_ssize_t begin = characters_to(text, tokens->offsets[2 * i], &at, &count);
        Py_ssize_t end = characters_to(text, tokens->offsets[2 * i + 1], &at, &count);
        PyObject *pair = Py_BuildValue("(nn)", begin, end);
        if (!pair || PyList_SetItem(list, (Py_ssize_t)i, pair))
            Py_CLEAR(list);
    }
    return list;
}

/* encode(texts, add_special_tokens=True, max_tokens=0, offsets=False, target=False): of each text ids, or (ids,
 * offsets) */
static PyObject *encode(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"texts", "add_special_tokens", "max_tokens", "offsets", "target", NULL};
    module_state *state = state_of(self);
    PyObject *given;
    int special = 1, offsets = 0, target = 0;
    long long max_tokens = 0;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|pLpp:encode", names, &given, &special, &max_tokens, &offsets,
                                     &target))
        return NULL;
    texts t;
    PyObject *result = NULL;
    att_tokens *tokens = NULL;
    if (!texts_read(state, given, "texts", false, &t))
        goto done;
    tokens = PyMem_Calloc((size_t)t.n + 1, sizeof *tokens);
    if (!tokens) {
        PyErr_NoMemory();
        goto done;
    }
    att_status status;
    const att_tokenize_options options = {
        .size = sizeof options, .max_tokens = max_tokens, .no_special = !special, .offsets = offsets, .target = target};
    LONG_CALL_BEGIN
    status = att_tokenize_batch(((tokenizer *)self)->t, t.n, t.text, t.bytes, &options, tokens);
    LONG_CALL_END(status)
    if (status != ATT_OK) {
        raise_status(state, status);
        goto done;
    }
    result = PyList_New((Py_ssize_t)t.n);
    for (int64_t i = 0; i < t.n; i++) {
        PyObject *item = result ? ids_list(tokens[i].ids, tokens[i].count) : NULL;
        if (item && offsets)
            item = Py_BuildValue("(NN)", item, offsets_list(&tokens[i], t.text[i]));
        if (result && (!item || PyList_SetItem(result, (Py_ssize_t)i, item)))
            Py_CLEAR(result);
        att_tokens_free(state->ctx, &tokens[i]);
    }
done:
    PyMem_Free(tokens);
    texts_release(&t);
    return result;
}

/* decode(ids) -> str */
static PyObject *decode(PyObject *self, PyObject *object)
{
    module_state *state = state_of(self);
    token_ids ids;
    if (!ids_read(state, object, "ids", &ids))
        return NULL;
    att_text text;
    att_status status;
    LONG_CALL_BEGIN
    status = att_detokenize(((tokenizer *)self)->t, ids.id, ids.n, &text);
    LONG_CALL_END(status)
    PyMem_Free(ids.id);
    if (status != ATT_OK)
        return raise_status(state, status);
    PyObject *decoded = PyUnicode_DecodeUTF8(text.text, (Py_ssize_t)text.bytes, "replace");
    att_text_free(state->ctx, &text);
    return decoded;
}

static PyObject *token_of(PyObject *self, PyObject *args)
{
    int id;
    if (!PyArg_ParseTuple(args, "i:token", &id))
        return NULL;
    const char *token = att_tokenizer_token(((tokenizer *)self)->t, id);
    if (token)
        return PyUnicode_DecodeUTF8(token, (Py_ssize_t)strlen(token), "replace");
    PyErr_Format(PyExc_IndexError, "the vocabulary has no id %d: it has %lld tokens", id,
                 (long long)att_tokenizer_size(((tokenizer *)self)->t));
    return NULL;
}

static PyObject *id_of(PyObject *self, PyObject *args)
{
    const char *token;
    Py_ssize_t bytes;
    if (!PyArg_ParseTuple(args, "s#:id", &token, &bytes))
        return NULL;
    int32_t id = att_tokenizer_find(((tokenizer *)self)->t, token, (size_t)bytes);
    return id >= 0 ? PyLong_FromLong(id) : Py_NewRef(Py_None);
}

static Py_ssize_t size(PyObject *self) { return (Py_ssize_t)att_tokenizer_size(((tokenizer *)self)->t); }

static PyMethodDef methods[] = {
    {"encode", (PyCFunction)(void (*)(void))encode, METH_VARARGS | METH_KEYWORDS,
     "encode($self, texts, add_special_tokens=True, max_tokens=0, offsets=False, target=False)\n--\n\nOf each text the "
     "ids, or (ids, offsets); target: as a translation."},
    {"decode", decode, METH_O, "decode($self, ids, /)\n--\n\nThe text of ids."},
    {"token", token_of, METH_VARARGS, "token($self, id, /)\n--\n\nThe text of a token."},
    {"id", id_of, METH_VARARGS, "id($self, token, /)\n--\n\nThe id of a token, or None."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "The tokenizer of a model folder or of a tokenizer file."},
    {Py_tp_new, tokenizer_new},
    {Py_tp_dealloc, tokenizer_dealloc},
    {Py_tp_methods, methods},
    {Py_sq_length, size},
    {0, NULL},
};

PyType_Spec tokenizer_spec = {"attend._attend.Tokenizer", sizeof(tokenizer), 0, Py_TPFLAGS_DEFAULT, slots};
