#include "columns.h"

#include <math.h>
#include <stdio.h>

#include "attend_recommend.h"

/* ---- opening */

static bool refuse_type(const column *c, const char *what)
{
    return raise_sentence(c->state, ATT_ERR_DTYPE,
                          "%s: is of %s; texts, integers, and for times also floats and dates, are needed", c->name,
                          what);
}

/* Units of dates: what makes seconds of them */
static bool find_unit(column *c, const char *unit)
{
    static const struct {
        const char *name;
        double multiply, divide;
    } units[] = {{"s", 1, 1},  {"ms", 1, 1e3}, {"us", 1, 1e6}, {"ns", 1, 1e9},
                 {"m", 60, 1}, {"h", 3600, 1}, {"D", 86400, 1}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (!strcmp(units[i].name, unit)) {
            c->multiply = units[i].multiply, c->divide = units[i].divide, c->is_date = true;
            return true;
        }
    return raise_sentence(c->state, ATT_ERR_UNSUPPORTED,
                          "%s: has dates in units of \"%s\"; s, ms, us, ns, m, h and D are supported", c->name, unit);
}

/* Arrow's dates and timestamps, which lie as integers */
static bool read_date_format(column *c, const char *format)
{
    static const struct {
        const char *format, *unit;
        char number;
    } dates[] = {{"tss:", "s", 'l'},  {"tsm:", "ms", 'l'}, {"tsu:", "us", 'l'},
                 {"tsn:", "ns", 'l'}, {"tdD", "D", 'i'},   {"tdm", "ms", 'l'}};
    for (size_t i = 0; i < sizeof dates / sizeof *dates; i++)
        if (!strncmp(format, dates[i].format, strlen(dates[i].format))) {
            c->format = dates[i].number;
            return find_unit(c, dates[i].unit);
        }
    return refuse_type(c, format[0] == '+' ? "a nested type of Arrow" : "another type of Arrow");
}

static bool is_number(const char *format) { return *format && !format[1] && strchr("cCsSiIlLfg", *format); }

static bool open_arrow(column *c, PyObject *object)
{
    if (!arrow_read(c->state, object, c->name, &c->arrow))
        return false;
    const char *format = c->arrow.schema->format ? c->arrow.schema->format : "";
    if (arrow_strings_of(c->arrow.schema, &c->strings))
        c->kind = COLUMN_STRINGS;
    else if (c->arrow.schema->dictionary)
        return refuse_type(c, "a dictionary of Arrow whose values are not texts");
    else if (is_number(format))
        c->kind = COLUMN_NUMBERS, c->format = *format;
    else if (c->kind = COLUMN_NUMBERS, !read_date_format(c, format))
        return false;
    for (int64_t i = 0; i < c->arrow.n; i++) {
        const arrow_array *a = c->arrow.chunk[i];
        const bool sound = c->kind == COLUMN_STRINGS ? arrow_is_sound(a, c->strings)
                                                     : a->length >= 0 && a->offset >= 0 &&
                                                           (a->length == 0 || (a->n_buffers == 2 && a->buffers[1]));
        if (!sound || a->length > (INT64_MAX >> 8) - c->n)
            return raise_sentence(c->state, ATT_ERR_FORMAT, "%s: an Arrow array of %lld rows and %lld buffers", c->name,
                                  (long long)a->length, (long long)a->n_buffers);
        c->n += a->length;
    }
    return true;
}

/* The letter of Arrow for a format of the buffer protocol; 0: there is none */
static char letter_of(const char *format, Py_ssize_t bytes)
{
    if (*format == '@' || *format == '=' || *format == '<')
        format++;
    if (!*format || format[1])
        return 0;
    if (strchr("bhilq", *format))
        return bytes == 1 ? 'c' : bytes == 2 ? 's' : bytes == 4 ? 'i' : 'l';
    if (strchr("BHILQ", *format))
        return bytes == 1 ? 'C' : bytes == 2 ? 'S' : bytes == 4 ? 'I' : 'L';
    return *format == 'f' ? 'f' : *format == 'd' ? 'g' : 0;
}

/* Opens a buffer of numbers. *is: whether it is one; another kind of buffer is read as a sequence. */
static bool open_buffer(column *c, PyObject *object, bool *is)
{
    *is = false;
    if (!PyObject_CheckBuffer(object) || PyObject_GetBuffer(object, &c->buffer, PyBUF_STRIDES | PyBUF_FORMAT)) {
        PyErr_Clear(); /* as of NumPy's dates and texts */
        c->buffer.obj = NULL;
        return true;
    }
    c->format = letter_of(c->buffer.format ? c->buffer.format : "B", c->buffer.itemsize);
    *is = c->format != 0;
    if (!*is) {
        PyBuffer_Release(&c->buffer);
        c->buffer.obj = NULL;
        return true;
    }
    if (c->buffer.ndim != 1)
        return raise_sentence(c->state, ATT_ERR_SHAPE, "%s: has %d dimensions, a column has one", c->name,
                              c->buffer.ndim);
    c->kind = COLUMN_NUMBERS;
    c->n = c->buffer.shape[0];
    return true;
}

static bool open_sequence(column *c, PyObject *object)
{
    Py_ssize_t n = -1;
    if (!PyUnicode_Check(object) && !PyBytes_Check(object) && PySequence_Check(object))
        n = PySequence_Size(object);
    if (n < 0) {
        PyErr_Clear();
        PyObject *type = PyType_GetQualName(Py_TYPE(object));
        raise_sentence(c->state, ATT_ERR_DTYPE,
                       "%s: an array, a column of a data frame or a sequence is needed, not %S", c->name,
                       type ? type : Py_None);
        Py_XDECREF(type);
        return false;
    }
    c->kind = COLUMN_OBJECTS;
    c->objects = Py_NewRef(object);
    c->n = n;
    return true;
}

bool column_open(module_state *state, PyObject *object, const char *name, column *out)
{
    *out = (column){.state = state, .name = name, .multiply = 1, .divide = 1};
    if (PyTuple_Check(object) && PyTuple_Size(object) == 2 && PyUnicode_Check(PyTuple_GetItem(object, 1))) {
        const char *unit = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(object, 1), NULL);
        if (!unit || !find_unit(out, unit))
            return false;
        object = PyTuple_GetItem(object, 0);
    }
    if (arrow_is(object))
        return open_arrow(out, object);
    bool is;
    return open_buffer(out, object, &is) && (is || open_sequence(out, object));
}

void column_close(column *c)
{
    arrow_release(&c->arrow);
    if (c->buffer.obj)
        PyBuffer_Release(&c->buffer);
    c->buffer.obj = NULL;
    Py_CLEAR(c->objects);
    Py_CLEAR(c->held);
}

/* ---- cells */

static att_status refuse(const column *c, int64_t row, const char *why)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    raise_sentence(c->state, ATT_ERR_ARGUMENT, "%s[%lld]: %s", c->name, (long long)row, why);
    PyGILState_Release(gil);
    return ATT_ERR_ARGUMENT;
}

/* The chunk that has a row, which becomes an index of it */
static const arrow_array *chunk_of(column *c, int64_t *row)
{
    if (*row < c->first)
        c->chunk = c->first = 0;
    while (*row - c->first >= c->arrow.chunk[c->chunk]->length)
        c->first += c->arrow.chunk[c->chunk++]->length;
    *row -= c->first;
    return c->arrow.chunk[c->chunk];
}

static int64_t bytes_of(char format)
{
    return strchr("cC", format) ? 1 : strchr("sS", format) ? 2 : strchr("iIf", format) ? 4 : 8;
}

/* Copies a number, which need not be aligned, to 8 bytes that are. Returns whether there is one. */
static bool number_at(column *c, int64_t row, void *out)
{
    if (c->buffer.obj) {
        memcpy(out, (const char *)c->buffer.buf + row * c->buffer.strides[0], (size_t)bytes_of(c->format));
        return true;
    }
    const arrow_array *a = chunk_of(c, &row);
    row += a->offset;
    memcpy(out, (const char *)a->buffers[1] + bytes_of(c->format) * row, (size_t)bytes_of(c->format));
    return !arrow_is_null(a, row);
}

static att_status string_id(column *c, int64_t row, att_byte_view *out)
{
    int64_t at = row;
    const arrow_array *a = chunk_of(c, &at);
    const arrow_slice s = arrow_string_at(a, c->strings, at);
    if (s.bytes < 0)
        return refuse(c, row, "its offsets do not ascend, or lead outside");
    if (!s.text)
        return refuse(c, row, "is null");
    *out = (att_byte_view){s.text, (size_t)s.bytes};
    return ATT_OK;
}

static att_status number_id(column *c, int64_t row, att_byte_view *out)
{
    int64_t number = 0;
    if (strchr("fg", c->format) || c->is_date)
        return refuse(c, row,
                      c->is_date ? "is a date; an id is a text or an integer"
                                 : "is a float; an id is a text or an integer: .astype(\"int64\") makes integers");
    if (!number_at(c, row, &number))
        return refuse(c, row, "is null");
    const int n = c->format == 'L'
                      ? snprintf(c->text, sizeof c->text, "%llu", (unsigned long long)number)
                      : snprintf(c->text, sizeof c->text, "%lld", (long long)arrow_integer(&number, c->format));
    *out = (att_byte_view){c->text, (size_t)n};
    return ATT_OK;
}

/* The object of a row, held until the next one */
static PyObject *object_at(column *c, int64_t row)
{
    Py_XDECREF(c->held);
    c->held = PySequence_GetItem(c->objects, (Py_ssize_t)row);
    return c->held;
}

/* Is it None, or different from itself, as NaN, NaT and, without a truth, pandas.NA are? */
static bool is_missing(PyObject *object)
{
    PyObject *differs = object == Py_None ? NULL : PyObject_RichCompare(object, object, Py_NE);
    const int truth = differs ? PyObject_IsTrue(differs) : 1;
    Py_XDECREF(differs);
    PyErr_Clear();
    return truth != 0;
}

static att_status object_id(column *c, int64_t row, att_byte_view *out)
{
    PyObject *object = object_at(c, row);
    if (!object)
        return ATT_ERR_ARGUMENT;
    const bool is_text = PyUnicode_Check(object);
    if (!is_text && PyIndex_Check(object) && !PyBool_Check(object)) {
        PyObject *number = PyNumber_Index(object);
        PyObject *text = number ? PyObject_Str(number) : NULL;
        Py_XDECREF(number);
        if (!text)
            return ATT_ERR_ARGUMENT;
        Py_DECREF(object);
        object = c->held = text;
    }
    Py_ssize_t bytes;
    const char *text = PyUnicode_Check(object) ? PyUnicode_AsUTF8AndSize(object, &bytes) : NULL;
    if (text) {
        c->has_texts |= is_text;
        *out = (att_byte_view){text, (size_t)bytes};
        return ATT_OK;
    }
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return refuse(c, row, "is not valid Unicode: it has a lone surrogate");
    }
    if (is_missing(object))
        return refuse(c, row, "is null");
    PyObject *type = PyType_GetQualName(Py_TYPE(object));
    raise_sentence(c->state, ATT_ERR_DTYPE, "%s[%lld]: is of the type %S; an id is a text or an integer", c->name,
                   (long long)row, type ? type : Py_None);
    Py_XDECREF(type);
    return ATT_ERR_DTYPE;
}

att_status column_id(column *c, int64_t row, att_byte_view *out)
{
    att_status status;
    if (c->kind == COLUMN_OBJECTS) {
        PyGILState_STATE gil = PyGILState_Ensure();
        status = object_id(c, row, out);
        PyGILState_Release(gil);
    } else
        status = c->kind == COLUMN_STRINGS ? string_id(c, row, out) : number_id(c, row, out);
    return status == ATT_OK && out->bytes == 0 ? refuse(c, row, "is empty; an id is needed") : status;
}

bool column_has_integers(const column *c)
{
    return c->n > 0 && (c->kind == COLUMN_NUMBERS || (c->kind == COLUMN_OBJECTS && !c->has_texts));
}

/* ---- times */

/* Reads a time as the files of logs have it. */
static att_status time_of_text(column *c, int64_t row, att_byte_view text, double *out)
{
    char copy[64];
    bool is_date;
    snprintf(copy, sizeof copy, "%.*s", (int)(text.bytes < sizeof copy ? text.bytes : sizeof copy - 1), text.data);
    const att_status status = att_interactions_time(copy, 1, out, &is_date);
    if (status == ATT_OK && row == 0)
        c->texts_are_dates = is_date;
    if (status == ATT_OK)
        return is_date == c->texts_are_dates
                   ? ATT_OK
                   : refuse(c, row,
                            is_date ? "is a date, but the first is a number" : "is a number, but the first is a date");
    PyGILState_STATE gil = PyGILState_Ensure();
    raise_sentence(c->state, status, "%s[%lld]: %s", c->name, (long long)row, att_error(c->state->ctx));
    PyGILState_Release(gil);
    return status;
}

static att_status time_of_number(column *c, int64_t row, double *out)
{
    union {
        int64_t integer;
        double g;
        float f;
    } number = {0};
    if (!number_at(c, row, &number))
        return refuse(c, row, "is null");
    if (strchr("fg", c->format)) {
        *out = c->format == 'f' ? (double)number.f : number.g;
        return ATT_OK;
    }
    const int64_t x = arrow_integer(&number, c->format);
    if (c->is_date && x == INT64_MIN && c->format == 'l')
        return refuse(c, row, "is null");                                       /* NumPy's NaT */
    if (!c->is_date && (x > INT64_C(1) << 53 || (c->format == 'L' && x < 0))) { /* perhaps more than a double holds */
        const int n = snprintf(c->text, sizeof c->text, "%llu", (unsigned long long)x);
        return time_of_text(c, row, (att_byte_view){c->text, (size_t)n}, out);
    }
    const int64_t whole = (int64_t)c->divide; /* so that fractions of seconds are correctly rounded */
    *out = c->divide > 1 ? (double)(x / whole) + (double)(x % whole) / c->divide : (double)x * c->multiply;
    return ATT_OK;
}

/* The time of a datetime.date or datetime.datetime, by its text, so that it is the time that the same text has */
static att_status time_of_date(column *c, int64_t row, double *out)
{
    PyObject *text = PyObject_CallMethod(c->held, "isoformat", NULL);
    Py_ssize_t bytes;
    const char *utf8 = text && PyUnicode_Check(text) ? PyUnicode_AsUTF8AndSize(text, &bytes) : NULL;
    const att_status status = utf8 ? time_of_text(c, row, (att_byte_view){utf8, (size_t)bytes}, out) : ATT_ERR_ARGUMENT;
    Py_XDECREF(text);
    return utf8 || PyErr_Occurred() ? status : refuse(c, row, "has an isoformat that is not a text");
}

static att_status time_of_object(column *c, int64_t row, double *out)
{
    PyObject *object = object_at(c, row);
    if (!object)
        return ATT_ERR_ARGUMENT;
    if (is_missing(object))
        return refuse(c, row, "is null");
    if (PyUnicode_Check(object)) {
        att_byte_view text;
        const att_status status = object_id(c, row, &text);
        return status == ATT_OK ? time_of_text(c, row, text, out) : status;
    }
    if (PyObject_HasAttrString(object, "isoformat"))
        return time_of_date(c, row, out);
    *out = PyFloat_AsDouble(object);
    if (!PyErr_Occurred())
        return ATT_OK;
    PyErr_Clear();
    return refuse(c, row, "is neither a number, nor a date, nor a text");
}

att_status column_time(column *c, int64_t row, double *out)
{
    att_status status;
    att_byte_view text;
    if (c->kind == COLUMN_OBJECTS) {
        PyGILState_STATE gil = PyGILState_Ensure();
        status = time_of_object(c, row, out);
        PyGILState_Release(gil);
    } else if (c->kind == COLUMN_NUMBERS)
        status = time_of_number(c, row, out);
    else {
        status = string_id(c, row, &text);
        status = status == ATT_OK ? time_of_text(c, row, text, out) : status;
    }
    if (status == ATT_OK && !isfinite(*out))
        return refuse(c, row, isnan(*out) ? "is null (NaN)" : "is infinite");
    return status == ATT_OK && *out < 0 ? refuse(c, row, "is negative; times begin with 1970") : status;
}
