/* Methods of texts, lists and dicts, as Python has them, except those that change their object. */
#include "jinja/access.h"
#include "jinja/string.h"

#include "text/utf8.h"

#include <utf8proc.h>

typedef const att_jinja_string *text;
#define METHOD(name)                                                                                                   \
    static att_jinja_value name(att_jinja_state *s, const att_jinja_value *self, const att_jinja_arguments *a)

/* ---- of texts */

static att_jinja_value strip(att_jinja_state *s, const att_jinja_value *self, const att_jinja_arguments *a, bool left,
                             bool right)
{
    const att_jinja_value *characters = att_jinja_argument(a, 0, NULL);
    const bool given = characters && characters->type != ATT_JINJA_NONE;
    return att_jinja_string_value(
        att_jinja_strip(s, self->string, given ? att_jinja_argument_text(s, a, 0, NULL, NULL) : NULL, left, right));
}
METHOD(str_strip) { return strip(s, self, a, true, true); }
METHOD(str_lstrip) { return strip(s, self, a, true, false); }
METHOD(str_rstrip) { return strip(s, self, a, false, true); }

static att_jinja_value change_case(att_jinja_state *s, const att_jinja_value *self, att_jinja_case to)
{
    return att_jinja_string_value(att_jinja_change_case(s, self->string, to));
}
METHOD(str_upper) { return (void)a, change_case(s, self, ATT_JINJA_UPPER); }
METHOD(str_lower) { return (void)a, change_case(s, self, ATT_JINJA_LOWER); }
METHOD(str_title) { return (void)a, change_case(s, self, ATT_JINJA_TITLE); }
METHOD(str_capitalize) { return (void)a, change_case(s, self, ATT_JINJA_CAPITALIZE); }

/* Returns whether the text begins or ends with the argument, or with one of a tuple. */
static att_jinja_value has_affix(att_jinja_state *s, text x, const att_jinja_arguments *a, bool end)
{
    const att_jinja_value *affix = att_jinja_argument(a, 0, NULL);
    const bool several = affix && affix->type == ATT_JINJA_TUPLE;
    bool has = false;
    for (size_t i = 0; !has && i < (several ? affix->list->n : 1); i++) {
        const att_jinja_arguments one = {.value = several ? &affix->list->item[i] : a->value, .n = several ? 1 : a->n};
        const text y = att_jinja_argument_text(s, &one, 0, NULL, NULL);
        has = y->bytes <= x->bytes && att_jinja_starts(x, end ? x->bytes - y->bytes : 0, y);
    }
    return att_jinja_bool(has);
}
METHOD(str_startswith) { return has_affix(s, self->string, a, false); }
METHOD(str_endswith) { return has_affix(s, self->string, a, true); }

static att_jinja_value remove_affix(att_jinja_state *s, text x, const att_jinja_arguments *a, bool end)
{
    const text y = att_jinja_argument_text(s, a, 0, NULL, NULL);
    const bool has = y->bytes <= x->bytes && att_jinja_starts(x, end ? x->bytes - y->bytes : 0, y);
    const size_t n = has ? y->bytes : 0;
    return att_jinja_string_value(att_jinja_part(s, x, end ? 0 : n, end ? x->bytes - n : x->bytes));
}
METHOD(str_removeprefix) { return remove_affix(s, self->string, a, false); }
METHOD(str_removesuffix) { return remove_affix(s, self->string, a, true); }

static void push_part(att_jinja_state *s, att_jinja_value list, text x, size_t begin, size_t end)
{
    att_jinja_push(s, list, att_jinja_string_value(att_jinja_part(s, x, begin, end)));
}

static size_t space_at(text x, size_t at)
{
    uint32_t c;
    const size_t n = att_utf8_decode(x->data + at, x->bytes - at, &c);
    return att_jinja_is_space(c) ? n : 0;
}

/* Finds the next word: text [*at, *end) between white space. Returns false if there is none. */
static bool next_word(text x, size_t *at, size_t *end)
{
    for (size_t n; *at < x->bytes && (n = space_at(x, *at)); *at += n)
        ;
    *end = *at;
    while (*end < x->bytes && !space_at(x, *end))
        (*end)++;
    return *end > *at;
}

/* Splits at white space, from the left or the right. What is not split keeps the white space at the end of the text
 * that it has. */
static att_jinja_value split_space(att_jinja_state *s, text x, int64_t max, bool last)
{
    const att_jinja_value list = att_jinja_list_new(s, ATT_JINJA_LIST);
    int64_t words = 0, i = 0;
    size_t at = 0, end, whole = 0; /* whole: the end of what is not split */
    for (; next_word(x, &at, &end); at = end, words++)
        ;
    const int64_t first = last && max >= 0 && words > max ? words - max : 0; /* words that are not split */
    at = 0;
    for (; next_word(x, &at, &end); at = end, i++) {
        if (!last && max >= 0 && i == max) {
            push_part(s, list, x, at, x->bytes);
            return list;
        }
        whole = i < first ? end : whole;
        if (i + 1 == first)
            push_part(s, list, x, 0, whole);
        else if (i >= first)
            push_part(s, list, x, at, end);
    }
    return list;
}

static void reverse(att_jinja_list *l)
{
    for (size_t i = 0; i < l->n / 2; i++) {
        const att_jinja_value v = l->item[i];
        l->item[i] = l->item[l->n - 1 - i];
        l->item[l->n - 1 - i] = v;
    }
}

static att_jinja_value split(att_jinja_state *s, text x, const att_jinja_arguments *a, bool last)
{
    const att_jinja_value *sep = att_jinja_argument(a, 0, "sep");
    const int64_t max = att_jinja_argument_int(s, a, 1, "maxsplit", -1);
    if (!sep || sep->type == ATT_JINJA_NONE)
        return split_space(s, x, max, last);
    const text y = att_jinja_argument_text(s, a, 0, "sep", NULL);
    const att_jinja_value list = att_jinja_list_new(s, ATT_JINJA_LIST);
    size_t begin = 0, end = x->bytes;
    if (y->bytes == 0)
        att_jinja_fail(s, "the separator of split is empty");
    for (int64_t n = 0; max < 0 || n < max; n++) {
        const size_t found = last ? att_jinja_search_last(x, begin, end, y) : att_jinja_search(x, begin, end, y);
        if (found == SIZE_MAX)
            break;
        push_part(s, list, x, last ? found + y->bytes : begin, last ? end : found);
        end = last ? found : end;
        begin = last ? begin : found + y->bytes;
    }
    push_part(s, list, x, begin, end);
    if (last)
        reverse(list.list);
    return list;
}
METHOD(str_split) { return split(s, self->string, a, false); }
METHOD(str_rsplit) { return split(s, self->string, a, true); }

METHOD(str_splitlines)
{
    const text x = self->string;
    const bool keep = att_jinja_argument_truth(a, 0, "keepends", false);
    const att_jinja_value list = att_jinja_list_new(s, ATT_JINJA_LIST);
    size_t begin = 0;
    for (size_t at = 0, n; at < x->bytes; at += n) {
        uint32_t c;
        n = att_utf8_decode(x->data + at, x->bytes - at, &c);
        if (!((c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029))
            continue;
        n += c == '\r' && at + 1 < x->bytes && x->data[at + 1] == '\n';
        push_part(s, list, x, begin, keep ? at + n : at);
        begin = at + n;
    }
    if (begin < x->bytes)
        push_part(s, list, x, begin, x->bytes);
    return list;
}

static att_jinja_value partition(att_jinja_state *s, text x, const att_jinja_arguments *a, bool last)
{
    const text y = att_jinja_argument_text(s, a, 0, NULL, NULL);
    const att_jinja_value out = att_jinja_list_new(s, ATT_JINJA_TUPLE);
    const size_t at = last ? att_jinja_search_last(x, 0, x->bytes, y) : att_jinja_search(x, 0, x->bytes, y);
    const size_t begin = at != SIZE_MAX ? at : last ? 0 : x->bytes, end = at != SIZE_MAX ? at + y->bytes : begin;
    if (y->bytes == 0)
        att_jinja_fail(s, "the separator of partition is empty");
    push_part(s, out, x, 0, begin);
    push_part(s, out, x, begin, end);
    push_part(s, out, x, end, x->bytes);
    return out;
}
METHOD(str_partition) { return partition(s, self->string, a, false); }
METHOD(str_rpartition) { return partition(s, self->string, a, true); }

METHOD(str_replace)
{
    const text from = att_jinja_argument_text(s, a, 0, "old", NULL), to = att_jinja_argument_text(s, a, 1, "new", NULL);
    return att_jinja_string_value(
        att_jinja_replace(s, self->string, from, to, att_jinja_argument_int(s, a, 2, "count", -1)));
}

METHOD(str_join)
{
    att_jinja_builder b = {.s = s};
    if (a->n != 1)
        att_jinja_fail(s, "join takes one argument");
    const att_jinja_list *l = att_jinja_iterate(s, a->value[0]).list;
    for (size_t i = 0; i < l->n; i++) {
        if (l->item[i].type != ATT_JINJA_STRING)
            att_jinja_fail(s, "item %zu of join is a %s, not a text", i, att_jinja_type_name(l->item[i].type));
        if (i)
            att_jinja_add_string(&b, self->string);
        att_jinja_add_string(&b, l->item[i].string);
    }
    return att_jinja_built_value(&b);
}

static att_jinja_value find(att_jinja_state *s, text x, const att_jinja_arguments *a, bool last, bool must)
{
    const att_jinja_value none = att_jinja_none();
    const att_jinja_value *begin = att_jinja_argument(a, 1, NULL), *end = att_jinja_argument(a, 2, NULL);
    const att_jinja_value part[] = {begin ? *begin : none, end ? *end : none, none};
    const text y = att_jinja_argument_text(s, a, 0, NULL, NULL);
    const text in = att_jinja_slice(s, att_jinja_string_value(x), part).string;
    const size_t at = last ? att_jinja_search_last(in, 0, in->bytes, y) : att_jinja_search(in, 0, in->bytes, y);
    if (at == SIZE_MAX && must)
        att_jinja_fail(s, "the text to find is missing");
    if (at == SIZE_MAX)
        return att_jinja_int(-1);
    int64_t from = begin ? att_jinja_integer(s, *begin, "start") : 0;
    from += from < 0 ? (int64_t)att_jinja_characters(x) : 0;
    const att_jinja_string before = {.data = in->data, .bytes = at};
    return att_jinja_int((from > 0 ? from : 0) + (int64_t)att_jinja_characters(&before));
}
METHOD(str_find) { return find(s, self->string, a, false, false); }
METHOD(str_rfind) { return find(s, self->string, a, true, false); }
METHOD(str_index) { return find(s, self->string, a, false, true); }
METHOD(str_rindex) { return find(s, self->string, a, true, true); }

METHOD(str_count)
{
    const text x = self->string, y = att_jinja_argument_text(s, a, 0, NULL, NULL);
    int64_t n = 0;
    if (y->bytes == 0)
        return att_jinja_int((int64_t)att_jinja_characters(x) + 1);
    for (size_t at = 0; (at = att_jinja_search(x, at, x->bytes, y)) != SIZE_MAX; at += y->bytes)
        n++;
    return att_jinja_int(n);
}

/* Returns whether there are characters, and all are of a kind. */
static att_jinja_value all_are(text x, bool (*is)(uint32_t c))
{
    bool all = x->bytes > 0;
    for (size_t at = 0; all && at < x->bytes;) {
        uint32_t c;
        at += att_utf8_decode(x->data + at, x->bytes - at, &c);
        all = is(c);
    }
    return att_jinja_bool(all);
}
static bool is_digit(uint32_t c) { return utf8proc_category((utf8proc_int32_t)c) == UTF8PROC_CATEGORY_ND; }
static bool is_alpha(uint32_t c)
{
    const utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)c);
    return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}
static bool is_alnum(uint32_t c)
{
    const utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)c);
    return is_alpha(c) || (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO);
}
METHOD(str_isdigit) { return (void)s, (void)a, all_are(self->string, is_digit); }
METHOD(str_isalpha) { return (void)s, (void)a, all_are(self->string, is_alpha); }
METHOD(str_isalnum) { return (void)s, (void)a, all_are(self->string, is_alnum); }
METHOD(str_isspace) { return (void)s, (void)a, all_are(self->string, att_jinja_is_space); }

static att_jinja_value is_case(att_jinja_state *s, const att_jinja_value *self, att_jinja_case to, att_jinja_case other)
{
    const att_jinja_value same = change_case(s, self, to), changed = change_case(s, self, other);
    return att_jinja_bool(att_jinja_equal(s, *self, same) && !att_jinja_equal(s, same, changed));
}
METHOD(str_isupper) { return (void)a, is_case(s, self, ATT_JINJA_UPPER, ATT_JINJA_LOWER); }
METHOD(str_islower) { return (void)a, is_case(s, self, ATT_JINJA_LOWER, ATT_JINJA_UPPER); }

/* ---- of lists and dicts */

METHOD(list_index)
{
    for (size_t i = 0; a->n > 0 && i < self->list->n; i++)
        if (att_jinja_equal(s, self->list->item[i], a->value[0]))
            return att_jinja_int((int64_t)i);
    att_jinja_fail(s, "the item to find is not in the list");
}

METHOD(list_count)
{
    int64_t n = 0;
    for (size_t i = 0; a->n > 0 && i < self->list->n; i++)
        n += att_jinja_equal(s, self->list->item[i], a->value[0]);
    return att_jinja_int(n);
}

METHOD(list_copy)
{
    const att_jinja_value list = att_jinja_list_new(s, ATT_JINJA_LIST);
    (void)a;
    for (size_t i = 0; i < self->list->n; i++)
        att_jinja_push(s, list, self->list->item[i]);
    return list;
}

METHOD(dict_get)
{
    if (a->n == 0)
        att_jinja_fail(s, "get has no key");
    const att_jinja_value *found = att_jinja_find(s, self->dict, a->value[0]);
    const att_jinja_value *other = att_jinja_argument(a, 1, "default");
    return found ? *found : other ? *other : att_jinja_none();
}

METHOD(dict_items)
{
    const att_jinja_value list = att_jinja_list_new(s, ATT_JINJA_LIST);
    (void)a;
    for (size_t i = 0; i < self->dict->n; i++) {
        const att_jinja_value pair = att_jinja_list_new(s, ATT_JINJA_TUPLE);
        att_jinja_push(s, pair, self->dict->key[i]);
        att_jinja_push(s, pair, self->dict->value[i]);
        att_jinja_push(s, list, pair);
    }
    return list;
}

METHOD(dict_keys) { return (void)a, att_jinja_iterate(s, *self); }

METHOD(dict_values)
{
    const att_jinja_value list = att_jinja_list_new(s, ATT_JINJA_LIST);
    (void)a;
    for (size_t i = 0; i < self->dict->n; i++)
        att_jinja_push(s, list, self->dict->value[i]);
    return list;
}

METHOD(dict_copy)
{
    const att_jinja_value dict = att_jinja_dict_new(s, ATT_JINJA_DICT);
    (void)a;
    for (size_t i = 0; i < self->dict->n; i++)
        att_jinja_put(s, dict, self->dict->key[i], self->dict->value[i]);
    return dict;
}

/* ---- the tables */

typedef struct method {
    const char *name;
    att_jinja_function *call;
} method;

static const method of_text[] = {{"strip", str_strip},
                                 {"lstrip", str_lstrip},
                                 {"rstrip", str_rstrip},
                                 {"upper", str_upper},
                                 {"lower", str_lower},
                                 {"title", str_title},
                                 {"capitalize", str_capitalize},
                                 {"startswith", str_startswith},
                                 {"endswith", str_endswith},
                                 {"removeprefix", str_removeprefix},
                                 {"removesuffix", str_removesuffix},
                                 {"split", str_split},
                                 {"rsplit", str_rsplit},
                                 {"splitlines", str_splitlines},
                                 {"partition", str_partition},
                                 {"rpartition", str_rpartition},
                                 {"replace", str_replace},
                                 {"join", str_join},
                                 {"find", str_find},
                                 {"rfind", str_rfind},
                                 {"index", str_index},
                                 {"rindex", str_rindex},
                                 {"count", str_count},
                                 {"isdigit", str_isdigit},
                                 {"isalpha", str_isalpha},
                                 {"isalnum", str_isalnum},
                                 {"isspace", str_isspace},
                                 {"isupper", str_isupper},
                                 {"islower", str_islower},
                                 {0}};
static const method of_list[] = {{"index", list_index}, {"count", list_count}, {"copy", list_copy}, {0}};
static const method of_tuple[] = {{"index", list_index}, {"count", list_count}, {0}};
static const method of_dict[] = {{"get", dict_get},       {"items", dict_items}, {"keys", dict_keys},
                                 {"values", dict_values}, {"copy", dict_copy},   {0}};

att_jinja_value att_jinja_method(att_jinja_state *s, att_jinja_value v, const att_jinja_string *name)
{
    static const method none[] = {{0}};
    const method *m = v.type == ATT_JINJA_STRING  ? of_text
                      : v.type == ATT_JINJA_LIST  ? of_list
                      : v.type == ATT_JINJA_TUPLE ? of_tuple
                      : v.type == ATT_JINJA_DICT  ? of_dict
                                                  : none;
    while (m->name && !att_jinja_same(name, m->name))
        m++;
    return m->name ? att_jinja_function_value(s, m->call, v) : att_jinja_undefined();
}
