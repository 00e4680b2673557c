/* Texts in by Arrow's C data interface, in place. */
#include "arrow.h"

#include <stdlib.h>

#include "texts.h"

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

/* ---- layouts of strings */

/* How the strings of an array lie: by 32-bit or 64-bit offsets, as views, or by number in a dictionary of these */
typedef enum layout { LAYOUT_OFFSETS, LAYOUT_LARGE_OFFSETS, LAYOUT_VIEWS } layout;
typedef struct strings_type {
    layout layout;
    char index; /* format of the numbers of a dictionary, or 0: there is none */
} strings_type;

static const char *const layout_formats[] = {
    [LAYOUT_OFFSETS] = "u", [LAYOUT_LARGE_OFFSETS] = "U", [LAYOUT_VIEWS] = "vu"};

static bool read_type(module_state *state, const arrow_schema *s, const char *name, strings_type *out)
{
    const arrow_schema *values = s->dictionary ? s->dictionary : s;
    *out = (strings_type){.index = s->dictionary && s->format && *s->format ? *s->format : 0};
    for (int l = LAYOUT_OFFSETS; values->format && l <= LAYOUT_VIEWS; l++)
        if (!strcmp(values->format, layout_formats[l]) && !values->dictionary) {
            out->layout = (layout)l;
            if (!out->index || strchr("cCsSiIlL", out->index))
                return true;
        }
    const char *why = s->format && !strcmp(s->format, "+s") ? ": it is a table, of which one column is needed" : "";
    return raise_sentence(state, ATT_ERR_DTYPE,
                          "%s: an Arrow array of the format \"%s\"%s; strings (\"u\", \"U\", \"vu\" or a dictionary of "
                          "them) are needed: .cast(\"string\") makes them",
                          name, s->format ? s->format : "", why);
}

typedef struct slice {
    const char *text;
    int64_t bytes;
} slice;

static slice at_offsets(const arrow_array *a, bool large, int64_t i)
{
    const void *offsets = a->buffers[1];
    const char *data = a->buffers[2] ? a->buffers[2] : "";
    int64_t begin = large ? ((const int64_t *)offsets)[i] : ((const int32_t *)offsets)[i];
    int64_t end = large ? ((const int64_t *)offsets)[i + 1] : ((const int32_t *)offsets)[i + 1];
    return begin < 0 ? (slice){.bytes = -1} : (slice){data + begin, end - begin};
}

/* A view: its length, then 12 bytes of text, or 4 of its first bytes, the number of a buffer and the place in that.
 * The last buffer has the sizes of these. */
static slice at_view(const arrow_array *a, int64_t i)
{
    const char *view = (const char *)a->buffers[1] + 16 * i;
    const int64_t *size = a->buffers[a->n_buffers - 1];
    int32_t bytes, place[2]; /* buffer, offset */
    memcpy(&bytes, view, sizeof bytes);
    if (bytes <= 12)
        return (slice){view + 4, bytes};
    memcpy(place, view + 8, sizeof place);
    if (place[0] < 0 || place[0] >= a->n_buffers - 3 || place[1] < 0 || place[1] > size[place[0]] - bytes)
        return (slice){.bytes = -1};
    return (slice){(const char *)a->buffers[2 + place[0]] + place[1], bytes};
}

/* The number in the dictionary, -1 if there is no such number */
static int64_t index_at(const arrow_array *a, char format, int64_t i)
{
    const void *p = a->buffers[1];
    switch (format) {
    case 'c':
        return ((const int8_t *)p)[i];
    case 'C':
        return ((const uint8_t *)p)[i];
    case 's':
        return ((const int16_t *)p)[i];
    case 'S':
        return ((const uint16_t *)p)[i];
    case 'i':
        return ((const int32_t *)p)[i];
    case 'I':
        return ((const uint32_t *)p)[i];
    default:
        return ((const int64_t *)p)[i]; /* an L that does not fit is negative */
    }
}

static bool is_null(const arrow_array *a, int64_t i)
{
    const uint8_t *valid = a->buffers[0];
    return valid && !(valid[i / 8] >> i % 8 & 1);
}

/* The string of row i, after the array's offset; text NULL: a null; bytes -1: the array is damaged */
static slice string_at(const arrow_array *a, strings_type type, int64_t i)
{
    i += a->offset;
    if (is_null(a, i))
        return (slice){NULL, 0};
    if (type.index) {
        const arrow_array *d = a->dictionary;
        int64_t index = index_at(a, type.index, i);
        if (index < 0 || index >= d->length)
            return (slice){.bytes = -1};
        return string_at(d, (strings_type){.layout = type.layout}, index);
    }
    return type.layout == LAYOUT_VIEWS ? at_view(a, i) : at_offsets(a, type.layout == LAYOUT_LARGE_OFFSETS, i);
}

/* Has it the buffers of its type? Those of an array without rows may be missing. */
static bool is_sound(const arrow_array *a, strings_type type)
{
    if (a->length < 0 || a->offset < 0)
        return false;
    if (a->length > 0 && (a->n_buffers < 2 || !a->buffers || !a->buffers[1]))
        return false;
    if (type.index)
        return a->dictionary && is_sound(a->dictionary, (strings_type){.layout = type.layout});
    if (a->length == 0 || a->n_buffers == 3)
        return true;
    return type.layout == LAYOUT_VIEWS && a->n_buffers > 3 && a->buffers[a->n_buffers - 1];
}

/* ---- texts of arrays */

/* Adds the strings of an array, which are from `at` on in the texts. */
static bool add_strings(module_state *state, const arrow_array *a, strings_type type, const char *name, bool nulls,
                        int64_t at, texts *out)
{
    for (int64_t i = 0; i < a->length; i++) {
        slice s = string_at(a, type, i);
        if (s.bytes < 0)
            return raise_sentence(state, ATT_ERR_FORMAT, "%s[%lld]: its offsets do not ascend, or lead outside", name,
                                  (long long)(at + i));
        if (!s.text && !nulls)
            return texts_refuse_null(state, name, at + i);
        out->text[at + i] = s.text ? s.text : texts_null;
        out->bytes[at + i] = (size_t)s.bytes;
    }
    return true;
}

static bool add_all(module_state *state, arrow_array *const *chunk, int64_t chunks, strings_type type, const char *name,
                    bool nulls, texts *out)
{
    int64_t n = 0;
    for (int64_t i = 0; i < chunks; i++) {
        if (!is_sound(chunk[i], type) || chunk[i]->length > (INT64_MAX >> 8) - n)
            return raise_sentence(state, ATT_ERR_FORMAT, "%s: an Arrow array of %lld strings and %lld buffers", name,
                                  (long long)chunk[i]->length, (long long)chunk[i]->n_buffers);
        n += chunk[i]->length;
    }
    if (!texts_reserve(n, out))
        return false;
    for (int64_t i = 0, at = 0; i < chunks; at += chunk[i++]->length)
        if (!add_strings(state, chunk[i], type, name, nulls, at, out))
            return false;
    return true;
}

static bool read_array(module_state *state, PyObject *capsules, const char *name, bool nulls, texts *out)
{
    PyObject *schema_capsule, *array_capsule;
    if (!PyTuple_Check(capsules))
        return raise_sentence(state, ATT_ERR_DTYPE, "%s: __arrow_c_array__() is not (schema, array)", name);
    if (!PyArg_ParseTuple(capsules, "OO;__arrow_c_array__() is (schema, array)", &schema_capsule, &array_capsule))
        return false;
    arrow_schema *schema = PyCapsule_GetPointer(schema_capsule, "arrow_schema");
    arrow_array *a = schema ? PyCapsule_GetPointer(array_capsule, "arrow_array") : NULL;
    strings_type type;
    return a && read_type(state, schema, name, &type) && add_all(state, &a, 1, type, name, nulls, out);
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
        int error;
        Py_BEGIN_ALLOW_THREADS /* a producer may compute, on threads that use Python */
        error = stream->get_next(stream, next);
        Py_END_ALLOW_THREADS
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

static bool read_stream(module_state *state, PyObject *capsule, const char *name, bool nulls, texts *out)
{
    arrow_stream *stream = PyCapsule_GetPointer(capsule, "arrow_array_stream");
    arrow_schema schema = {.release = NULL};
    if (!stream)
        return false;
    if (stream->get_schema(stream, &schema))
        return raise_sentence(state, ATT_ERR_IO, "%s: the Arrow stream has no schema", name);
    strings_type type;
    bool read = read_type(state, &schema, name, &type) && read_chunks(state, stream, name, out->arrow);
    release_schema(&schema);
    arrow_array **chunk = read ? malloc(sizeof(arrow_array *) * (size_t)(out->arrow->n + 1)) : NULL;
    if (read && !chunk)
        PyErr_NoMemory();
    if (!chunk)
        return false;
    for (int64_t i = 0; i < out->arrow->n; i++)
        chunk[i] = &out->arrow->chunk[i];
    read = add_all(state, chunk, out->arrow->n, type, name, nulls, out);
    free(chunk);
    return read;
}

bool texts_from_arrow(module_state *state, PyObject *object, const char *name, bool nulls, texts *out)
{
    out->arrow = calloc(1, sizeof *out->arrow);
    if (!out->arrow)
        return PyErr_NoMemory();
    bool array = PyObject_HasAttrString(object, "__arrow_c_array__");
    PyObject *capsules = PyObject_CallMethod(object, array ? "__arrow_c_array__" : "__arrow_c_stream__", NULL);
    if (!capsules)
        return false;
    out->arrow->capsules = capsules;
    return array ? read_array(state, capsules, name, nulls, out) : read_stream(state, capsules, name, nulls, out);
}
