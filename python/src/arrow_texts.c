/* Texts in by Arrow's C data interface, in place. */
#include "arrow.h"

#include <stdlib.h>

#include "texts.h"

void texts_arrow_release(struct arrow_chunks *arrow)
{
    arrow_release(arrow);
    free(arrow);
}

static bool read_type(module_state *state, const arrow_schema *s, const char *name, arrow_strings *out)
{
    if (arrow_strings_of(s, out))
        return true;
    const char *why = s->format && !strcmp(s->format, "+s") ? ": it is a table, of which one column is needed" : "";
    return raise_sentence(state, ATT_ERR_DTYPE,
                          "%s: an Arrow array of the format \"%s\"%s; strings (\"u\", \"U\", \"vu\" or a dictionary of "
                          "them) are needed: .cast(\"string\") makes them",
                          name, s->format ? s->format : "", why);
}

/* Adds the strings of an array, which are from `at` on in the texts. */
static bool add_strings(module_state *state, const arrow_array *a, arrow_strings type, const char *name, bool nulls,
                        int64_t at, texts *out)
{
    for (int64_t i = 0; i < a->length; i++) {
        arrow_slice s = arrow_string_at(a, type, i);
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

static bool add_all(module_state *state, const arrow_array *const *chunk, int64_t chunks, arrow_strings type,
                    const char *name, bool nulls, texts *out)
{
    int64_t n = 0;
    for (int64_t i = 0; i < chunks; i++) {
        if (!arrow_is_sound(chunk[i], type) || chunk[i]->length > (INT64_MAX >> 8) - n)
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

bool texts_from_arrow(module_state *state, PyObject *object, const char *name, bool nulls, texts *out)
{
    out->arrow = calloc(1, sizeof *out->arrow);
    if (!out->arrow)
        return PyErr_NoMemory();
    arrow_strings type;
    return arrow_read(state, object, name, out->arrow) && read_type(state, out->arrow->schema, name, &type) &&
           add_all(state, out->arrow->chunk, out->arrow->n, type, name, nulls, out);
}
