/* Arrow's C data interface: texts in, embeddings out, both in place. The structs are those of its specification (Apache
 * Arrow, "The Arrow C data interface"), which fixes their layout. */
#include <stdio.h>
#include <stdlib.h>

#include "texts.h"

enum { ARROW_NULLABLE = 2 }; /* a flag */
typedef struct arrow_schema {
    const char *format, *name, *metadata;
    int64_t flags, n_children;
    struct arrow_schema **children, *dictionary;
    void (*release)(struct arrow_schema *self); /* NULL: released */
    void *manager;
} arrow_schema;

typedef struct arrow_array {
    int64_t length, null_count, offset, n_buffers, n_children;
    const void **buffers;
    struct arrow_array **children, *dictionary;
    void (*release)(struct arrow_array *self); /* NULL: released */
    void *manager;
} arrow_array;

typedef struct arrow_stream {
    int (*get_schema)(struct arrow_stream *self, arrow_schema *out);
    int (*get_next)(struct arrow_stream *self, arrow_array *out);
    const char *(*get_last_error)(struct arrow_stream *self);
    void (*release)(struct arrow_stream *self);
    void *manager;
} arrow_stream;

/* ---- texts in */

/* The chunks of a stream, or one array; and the capsules that own what is not ours */
struct texts_arrow {
    arrow_array *chunk; /* [n] of a stream, which we release */
    int64_t n;
    PyObject *capsules;
};

static void release_schema(arrow_schema *s)
{
    if (s->release)
        s->release(s);
}

void texts_arrow_release(struct texts_arrow *arrow)
{
    for (int64_t i = 0; i < arrow->n; i++)
        if (arrow->chunk[i].release)
            arrow->chunk[i].release(&arrow->chunk[i]);
    free(arrow->chunk);
    Py_XDECREF(arrow->capsules);
    free(arrow);
}

static bool check_format(module_state *state, const arrow_schema *s, const char *name, bool *large)
{
    *large = s->format && !strcmp(s->format, "U");
    if (!s->dictionary && s->format && (*large || !strcmp(s->format, "u")))
        return true;
    return raise_sentence(state, ATT_ERR_DTYPE,
                          "%s: an Arrow array of the format \"%s\"%s; strings (\"u\" or \"U\") are needed: "
                          ".cast(\"string\") makes them",
                          name, s->format ? s->format : "", s->dictionary ? ", a dictionary" : "");
}

static int64_t offset_at(const void *offsets, bool large, int64_t i)
{
    return large ? ((const int64_t *)offsets)[i] : ((const int32_t *)offsets)[i];
}

/* Adds the strings of an array, which are from `at` on in the texts. */
static bool add_strings(module_state *state, const arrow_array *a, bool large, const char *name, bool nulls_empty,
                        int64_t at, texts *out)
{
    if (a->n_buffers != 3)
        return raise_sentence(state, ATT_ERR_FORMAT, "%s: an Arrow array of strings has 3 buffers", name);
    const uint8_t *valid = a->buffers[0];
    const char *data = a->buffers[2] ? a->buffers[2] : "";
    for (int64_t j = 0; j < a->length; j++) {
        int64_t i = a->offset + j;
        bool null = valid && !(valid[i / 8] >> i % 8 & 1);
        if (null && !nulls_empty)
            return raise_sentence(state, ATT_ERR_ARGUMENT,
                                  "%s[%lld]: is null; nulls=\"empty\" takes it as an empty text", name,
                                  (long long)(at + j));
        int64_t begin = null ? 0 : offset_at(a->buffers[1], large, i);
        int64_t end = null ? 0 : offset_at(a->buffers[1], large, i + 1);
        if (begin < 0 || end < begin)
            return raise_sentence(state, ATT_ERR_FORMAT, "%s[%lld]: its offsets do not ascend", name,
                                  (long long)(at + j));
        out->text[at + j] = data + begin;
        out->bytes[at + j] = (size_t)(end - begin);
    }
    return true;
}

static bool add_all(module_state *state, arrow_array *const *chunk, int64_t chunks, bool large, const char *name,
                    bool nulls_empty, texts *out)
{
    int64_t n = 0;
    for (int64_t i = 0; i < chunks; i++) {
        const arrow_array *a = chunk[i];
        if (a->length < 0 || a->offset < 0 || a->length > (INT64_MAX >> 8) - n)
            return raise_sentence(state, ATT_ERR_FORMAT, "%s: an Arrow array of %lld strings", name,
                                  (long long)a->length);
        n += a->length;
    }
    out->text = malloc(sizeof *out->text * (size_t)(n + 1));
    out->bytes = malloc(sizeof *out->bytes * (size_t)(n + 1));
    if (!out->text || !out->bytes)
        return PyErr_NoMemory();
    out->n = n;
    for (int64_t i = 0, at = 0; i < chunks; at += chunk[i++]->length)
        if (!add_strings(state, chunk[i], large, name, nulls_empty, at, out))
            return false;
    return true;
}

static bool read_array(module_state *state, PyObject *capsules, const char *name, bool nulls_empty, texts *out)
{
    PyObject *schema_capsule, *array_capsule;
    if (!PyArg_ParseTuple(capsules, "OO;__arrow_c_array__() is (schema, array)", &schema_capsule, &array_capsule))
        return false;
    arrow_schema *schema = PyCapsule_GetPointer(schema_capsule, "arrow_schema");
    arrow_array *a = schema ? PyCapsule_GetPointer(array_capsule, "arrow_array") : NULL;
    bool large;
    return a && check_format(state, schema, name, &large) && add_all(state, &a, 1, large, name, nulls_empty, out);
}

/* Reads all arrays of a stream into arrow->chunk. */
static bool read_chunks(module_state *state, arrow_stream *stream, const char *name, struct texts_arrow *arrow)
{
    for (int64_t room = 0;;) {
        if (arrow->n == room) {
            room = 2 * room + 4;
            arrow_array *more = realloc(arrow->chunk, sizeof *more * (size_t)room);
            if (!more)
                return PyErr_NoMemory();
            arrow->chunk = more;
        }
        arrow_array *next = &arrow->chunk[arrow->n];
        *next = (arrow_array){.release = NULL};
        int error = stream->get_next(stream, next);
        if (error) {
            const char *said = stream->get_last_error(stream);
            return raise_sentence(state, ATT_ERR_IO, "%s: the Arrow stream failed: %s", name,
                                  said ? said : strerror(error));
        }
        if (!next->release)
            return true; /* the end */
        arrow->n++;
    }
}

static bool read_stream(module_state *state, PyObject *capsule, const char *name, bool nulls_empty, texts *out)
{
    arrow_stream *stream = PyCapsule_GetPointer(capsule, "arrow_array_stream");
    arrow_schema schema = {.release = NULL};
    if (!stream)
        return false;
    if (stream->get_schema(stream, &schema))
        return raise_sentence(state, ATT_ERR_IO, "%s: the Arrow stream has no schema", name);
    bool large, read = check_format(state, &schema, name, &large) && read_chunks(state, stream, name, out->arrow);
    release_schema(&schema);
    arrow_array **chunk = read ? malloc(sizeof(arrow_array *) * (size_t)(out->arrow->n + 1)) : NULL;
    if (read && !chunk)
        PyErr_NoMemory();
    if (!chunk)
        return false;
    for (int64_t i = 0; i < out->arrow->n; i++)
        chunk[i] = &out->arrow->chunk[i];
    read = add_all(state, chunk, out->arrow->n, large, name, nulls_empty, out);
    free(chunk);
    return read;
}

bool texts_from_arrow(module_state *state, PyObject *object, const char *name, bool nulls_empty, texts *out)
{
    out->arrow = calloc(1, sizeof *out->arrow);
    if (!out->arrow)
        return PyErr_NoMemory();
    bool array = PyObject_HasAttrString(object, "__arrow_c_array__");
    PyObject *capsules = PyObject_CallMethod(object, array ? "__arrow_c_array__" : "__arrow_c_stream__", NULL);
    if (!capsules)
        return false;
    out->arrow->capsules = capsules;
    return array ? read_array(state, capsules, name, nulls_empty, out)
                 : read_stream(state, capsules, name, nulls_empty, out);
}

/* ---- embeddings out: [n, dim] of float32 as a fixed-size list */

typedef struct exported {
    arrow_array list, items, *child;
    const void *list_buffers[1], *item_buffers[2];
    PyObject *owner;
} exported;

static void release_child(arrow_array *self) { self->release = NULL; }

static void release_array(arrow_array *self)
{
    exported *e = self->manager;
    if (e->items.release)
        e->items.release(&e->items);
    if (Py_IsInitialized()) {
        PyGILState_STATE gil = PyGILState_Ensure();
        Py_DECREF(e->owner);
        PyGILState_Release(gil);
    }
    self->release = NULL;
    free(e);
}

typedef struct exported_schema {
    arrow_schema items, *child;
    char format[32];
} exported_schema;

static void release_child_schema(arrow_schema *self) { self->release = NULL; }

static void release_list_schema(arrow_schema *self)
{
    exported_schema *e = self->manager;
    if (e->items.release)
        e->items.release(&e->items);
    self->release = NULL;
    free(e);
}

static void schema_capsule_destructor(PyObject *capsule)
{
    arrow_schema *s = PyCapsule_GetPointer(capsule, "arrow_schema");
    if (s && s->release)
        s->release(s);
    free(s);
}

static void array_capsule_destructor(PyObject *capsule)
{
    arrow_array *a = PyCapsule_GetPointer(capsule, "arrow_array");
    if (a && a->release)
        a->release(a);
    free(a);
}

static PyObject *schema_capsule(int64_t dim)
{
    arrow_schema *list = calloc(1, sizeof *list);
    exported_schema *e = calloc(1, sizeof *e);
    if (!list || !e) {
        free(list);
        free(e);
        return PyErr_NoMemory();
    }
    snprintf(e->format, sizeof e->format, "+w:%lld", (long long)dim);
    e->items = (arrow_schema){.format = "f", .name = "item", .flags = ARROW_NULLABLE, .release = release_child_schema};
    e->child = &e->items;
    *list = (arrow_schema){.format = e->format,
                           .name = "",
                           .n_children = 1,
                           .children = &e->child,
                           .release = release_list_schema,
                           .manager = e};
    PyObject *capsule = PyCapsule_New(list, "arrow_schema", schema_capsule_destructor);
    if (!capsule) {
        release_list_schema(list);
        free(list);
    }
    return capsule;
}

static PyObject *array_capsule(const array *a)
{
    arrow_array *list = calloc(1, sizeof *list);
    exported *e = calloc(1, sizeof *e);
    if (!list || !e) {
        free(list);
        free(e);
        return PyErr_NoMemory();
    }
    e->owner = Py_NewRef((PyObject *)a);
    e->item_buffers[1] = a->t.data;
    e->items = (arrow_array){
        .length = a->t.dim[0] * a->t.dim[1], .n_buffers = 2, .buffers = e->item_buffers, .release = release_child};
    e->child = &e->items;
    *list = (arrow_array){.length = a->t.dim[0],
                          .n_buffers = 1,
                          .n_children = 1,
                          .buffers = e->list_buffers,
                          .children = &e->child,
                          .release = release_array,
                          .manager = e};
    PyObject *capsule = PyCapsule_New(list, "arrow_array", array_capsule_destructor);
    if (!capsule) {
        release_array(list);
        free(list);
    }
    return capsule;
}

PyObject *array_arrow(PyObject *self, PyObject *args)
{
    PyObject *requested = Py_None; /* a schema, which may be left aside */
    if (!PyArg_ParseTuple(args, "|O:__arrow_c_array__", &requested))
        return NULL;
    const array *a = (array *)self;
    const att_tensor *t = &a->t;
    if (t->rank != 2 || t->dtype != ATT_F32 || t->stride[1] != 1 || t->stride[0] != t->dim[1]) {
        PyErr_SetString(PyExc_BufferError, "Arrow takes arrays of float32 with two dimensions, contiguous ones");
        return NULL;
    }
    PyObject *schema = schema_capsule(t->dim[1]), *array = schema ? array_capsule(a) : NULL;
    if (array)
        return Py_BuildValue("(NN)", schema, array);
    Py_XDECREF(schema);
    return NULL;
}
