/* Strings and integers of Arrow's arrays. */
#include "arrow.h"

static const char *const layout_formats[] = {[ARROW_OFFSETS] = "u", [ARROW_LARGE_OFFSETS] = "U", [ARROW_VIEWS] = "vu"};

bool arrow_strings_of(const arrow_schema *s, arrow_strings *out)
{
    const arrow_schema *values = s->dictionary ? s->dictionary : s;
    *out = (arrow_strings){.index = s->dictionary && s->format && *s->format ? *s->format : 0};
    for (int l = ARROW_OFFSETS; values->format && l <= ARROW_VIEWS; l++)
        if (!strcmp(values->format, layout_formats[l]) && !values->dictionary) {
            out->layout = (arrow_layout)l;
            if (!out->index || strchr("cCsSiIlL", out->index))
                return true;
        }
    return false;
}

static arrow_slice at_offsets(const arrow_array *a, bool large, int64_t i)
{
    const void *offsets = a->buffers[1];
    const char *data = a->buffers[2] ? a->buffers[2] : "";
    int64_t begin = large ? ((const int64_t *)offsets)[i] : ((const int32_t *)offsets)[i];
    int64_t end = large ? ((const int64_t *)offsets)[i + 1] : ((const int32_t *)offsets)[i + 1];
    return begin < 0 ? (arrow_slice){.bytes = -1} : (arrow_slice){data + begin, end - begin};
}

/* A view: its length, then 12 bytes of text, or 4 of its first bytes, the number of a buffer and the place in that.
 * The last buffer has the sizes of these. */
static arrow_slice at_view(const arrow_array *a, int64_t i)
{
    const char *view = (const char *)a->buffers[1] + 16 * i;
    const int64_t *size = a->buffers[a->n_buffers - 1];
    int32_t bytes, place[2]; /* buffer, offset */
    memcpy(&bytes, view, sizeof bytes);
    if (bytes <= 12)
        return (arrow_slice){view + 4, bytes};
    memcpy(place, view + 8, sizeof place);
    if (place[0] < 0 || place[0] >= a->n_buffers - 3 || place[1] < 0 || place[1] > size[place[0]] - bytes)
        return (arrow_slice){.bytes = -1};
    return (arrow_slice){(const char *)a->buffers[2 + place[0]] + place[1], bytes};
}

int64_t arrow_integer(const void *p, char format)
{
    switch (format) {
    case 'c':
        return *(const int8_t *)p;
    case 'C':
        return *(const uint8_t *)p;
    case 's':
        return *(const int16_t *)p;
    case 'S':
        return *(const uint16_t *)p;
    case 'i':
        return *(const int32_t *)p;
    case 'I':
        return *(const uint32_t *)p;
    default:
        return *(const int64_t *)p;
    }
}

static int64_t index_at(const arrow_array *a, char format, int64_t i)
{
    const int64_t bytes = strchr("cC", format) ? 1 : strchr("sS", format) ? 2 : strchr("iI", format) ? 4 : 8;
    return arrow_integer((const char *)a->buffers[1] + bytes * i, format);
}

bool arrow_is_null(const arrow_array *a, int64_t i)
{
    const uint8_t *valid = a->buffers[0];
    return valid && !(valid[i / 8] >> i % 8 & 1);
}

arrow_slice arrow_string_at(const arrow_array *a, arrow_strings type, int64_t i)
{
    i += a->offset;
    if (arrow_is_null(a, i))
        return (arrow_slice){NULL, 0};
    if (type.index) {
        const arrow_array *d = a->dictionary;
        int64_t index = index_at(a, type.index, i);
        if (index < 0 || index >= d->length)
            return (arrow_slice){.bytes = -1};
        return arrow_string_at(d, (arrow_strings){.layout = type.layout}, index);
    }
    return type.layout == ARROW_VIEWS ? at_view(a, i) : at_offsets(a, type.layout == ARROW_LARGE_OFFSETS, i);
}

bool arrow_is_sound(const arrow_array *a, arrow_strings type)
{
    if (a->length < 0 || a->offset < 0)
        return false;
    if (a->length > 0 && (a->n_buffers < 2 || !a->buffers || !a->buffers[1]))
        return false;
    if (type.index)
        return a->dictionary && arrow_is_sound(a->dictionary, (arrow_strings){.layout = type.layout});
    if (a->length == 0 || a->n_buffers == 3)
        return true;
    return type.layout == ARROW_VIEWS && a->n_buffers > 3 && a->buffers[a->n_buffers - 1];
}
