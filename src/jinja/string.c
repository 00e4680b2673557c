#include "jinja/string.h"

#include "text/utf8.h"

#include <string.h>
#include <utf8proc.h>

/* ---- building */

static void add_range(att_jinja_builder *b, int64_t begin, int64_t end)
{
    if (b->n > 0 && b->range[b->n - 1].end == begin) {
        b->range[b->n - 1].end = end;
        return;
    }
    b->range = att_jinja_grow(b->s, b->range, b->n, &b->range_room, sizeof *b->range);
    b->range[b->n++] = (att_literal){begin, end};
}

static void add_bytes(att_jinja_builder *b, const char *data, size_t bytes)
{
    if (bytes == 0)
        return;
    if (bytes > b->room - b->bytes) {
        size_t room = 2 * b->room; /* the first part alone has just its room, as most texts have one */
        room = room > b->bytes + bytes ? room : b->bytes + bytes;
        char *p = att_jinja_alloc(b->s, room + 1, 1); /* a zero follows, for messages */
        if (b->bytes > 0)
            memcpy(p, b->data, b->bytes);
        b->data = p;
        b->room = room;
    }
    memcpy(b->data + b->bytes, data, bytes);
    b->bytes += bytes;
}

void att_jinja_add(att_jinja_builder *b, const char *data, size_t bytes, bool message)
{
    if (message && bytes > 0)
        add_range(b, (int64_t)b->bytes, (int64_t)(b->bytes + bytes));
    add_bytes(b, data, bytes);
}

void att_jinja_add_word(att_jinja_builder *b, const char *word) { add_bytes(b, word, strlen(word)); }

void att_jinja_add_part(att_jinja_builder *b, const att_jinja_string *x, size_t begin, size_t end)
{
    const int64_t from = (int64_t)begin, to = (int64_t)end, shift = (int64_t)b->bytes - from;
    for (size_t i = 0; i < x->n && x->range[i].begin < to; i++) {
        const int64_t first = x->range[i].begin > from ? x->range[i].begin : from;
        const int64_t last = x->range[i].end < to ? x->range[i].end : to;
        if (first < last)
            add_range(b, first + shift, last + shift);
    }
    add_bytes(b, x->data + begin, end - begin);
    att_jinja_work(b->s, x->n / 16);
}

void att_jinja_add_string(att_jinja_builder *b, const att_jinja_string *x) { att_jinja_add_part(b, x, 0, x->bytes); }

const att_jinja_string *att_jinja_built(att_jinja_builder *b)
{
    att_jinja_string *x = att_jinja_alloc(b->s, 1, sizeof *x);
    *x = (att_jinja_string){b->data ? b->data : "", b->bytes, b->range, b->n};
    return x;
}

const att_jinja_string *att_jinja_part(att_jinja_state *s, const att_jinja_string *x, size_t begin, size_t end)
{
    att_jinja_builder b = {.s = s};
    if (begin == 0 && end == x->bytes)
        return x;
    att_jinja_add_part(&b, x, begin, end);
    return att_jinja_built(&b);
}

bool att_jinja_is_message(const att_jinja_string *x, size_t at)
{
    size_t low = 0, high = x->n;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (x->range[middle].end <= (int64_t)at)
            low = middle + 1;
        else
            high = middle;
    }
    return low < x->n && x->range[low].begin <= (int64_t)at;
}

/* ---- characters */

static bool begins(char c) { return ((unsigned char)c & 0xC0) != 0x80; }

size_t att_jinja_characters(const att_jinja_string *x)
{
    size_t n = 0;
    for (size_t i = 0; i < x->bytes; i++)
        n += begins(x->data[i]);
    return n;
}

size_t att_jinja_offset(const att_jinja_string *x, size_t character)
{
    size_t at = 0;
    for (; at < x->bytes; at++)
        if (begins(x->data[at]) && character-- == 0)
            break;
    return at;
}

bool att_jinja_starts(const att_jinja_string *x, size_t at, const att_jinja_string *y)
{
    return y->bytes <= x->bytes - at && memcmp(x->data + at, y->data, y->bytes) == 0;
}

size_t att_jinja_search(const att_jinja_string *x, size_t begin, size_t end, const att_jinja_string *y)
{
    if (begin > end || y->bytes > end - begin)
        return SIZE_MAX;
    if (y->bytes == 0)
        return begin;
    const char *p = memmem(x->data + begin, end - begin, y->data, y->bytes);
    return p ? (size_t)(p - x->data) : SIZE_MAX;
}

size_t att_jinja_search_last(const att_jinja_string *x, size_t begin, size_t end, const att_jinja_string *y)
{
    if (begin > end || y->bytes > end - begin)
        return SIZE_MAX;
    for (size_t at = end - y->bytes + 1; at > begin; at--)
        if (memcmp(x->data + at - 1, y->data, y->bytes) == 0)
            return at - 1;
    return SIZE_MAX;
}

bool att_jinja_is_space(uint32_t c)
{
    return (c >= 9 && c <= 13) || (c >= 28 && c <= 32) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

static bool is_stripped(const att_jinja_string *characters, const char *at, size_t bytes)
{
    uint32_t c;
    if (characters) {
        const att_jinja_string one = {.data = at, .bytes = bytes};
        return att_jinja_search(characters, 0, characters->bytes, &one) != SIZE_MAX;
    }
    att_utf8_decode(at, bytes, &c);
    return att_jinja_is_space(c);
}

const att_jinja_string *att_jinja_strip(att_jinja_state *s, const att_jinja_string *x,
                                        const att_jinja_string *characters, bool left, bool right)
{
    size_t begin = 0, end = x->bytes;
    while (left && begin < end) {
        size_t n = 1;
        while (begin + n < end && !begins(x->data[begin + n]))
            n++;
        if (!is_stripped(characters, x->data + begin, n))
            break;
        begin += n;
    }
    while (right && begin < end) {
        size_t at = end - 1;
        while (at > begin && !begins(x->data[at]))
            at--;
        if (!is_stripped(characters, x->data + at, end - at))
            break;
        end = at;
    }
    return att_jinja_part(s, x, begin, end);
}

const att_jinja_string *att_jinja_replace(att_jinja_state *s, const att_jinja_string *x, const att_jinja_string *from,
                                          const att_jinja_string *to, int64_t max)
{
    att_jinja_builder b = {.s = s};
    size_t at = 0;
    for (int64_t i = 0; max < 0 || i < max; i++) {
        const size_t found = att_jinja_search(x, at, x->bytes, from);
        if (found == SIZE_MAX)
            break;
        att_jinja_add_part(&b, x, at, found);
        att_jinja_add_string(&b, to);
        at = found + from->bytes;
        if (from->bytes == 0) { /* before each character, and at the end */
            if (at >= x->bytes)
                break;
            const size_t begin = at++;
            while (at < x->bytes && !begins(x->data[at]))
                at++;
            att_jinja_add_part(&b, x, begin, at);
        }
        att_jinja_work(s, 1);
    }
    att_jinja_add_part(&b, x, at, x->bytes);
    return att_jinja_built(&b);
}

const att_jinja_string *att_jinja_change_case(att_jinja_state *s, const att_jinja_string *x, att_jinja_case to)
{
    att_jinja_builder b = {.s = s};
    bool first = true;
    for (size_t at = 0, n; at < x->bytes; at += n) {
        uint32_t c;
        utf8proc_uint8_t out[4];
        n = att_utf8_decode(x->data + at, x->bytes - at, &c);
        const bool cased = utf8proc_toupper((utf8proc_int32_t)c) != (utf8proc_int32_t)c ||
                           utf8proc_tolower((utf8proc_int32_t)c) != (utf8proc_int32_t)c;
        const bool upper = to == ATT_JINJA_UPPER || (to != ATT_JINJA_LOWER && first);
        const utf8proc_int32_t change =
            upper ? utf8proc_toupper((utf8proc_int32_t)c) : utf8proc_tolower((utf8proc_int32_t)c);
        const utf8proc_ssize_t bytes = utf8proc_encode_char(change, out);
        att_jinja_add(&b, (const char *)out, (size_t)bytes, att_jinja_is_message(x, at));
        first = to == ATT_JINJA_TITLE && !cased;
    }
    return att_jinja_built(&b);
}
