/* Values: making, comparing and counting them. */
#include "jinja/value.h"

#include "jinja/string.h"

#include <string.h>

att_jinja_value att_jinja_text(att_jinja_state *s, const char *data, size_t bytes, bool message)
{
    att_jinja_builder b = {.s = s};
    att_jinja_add(&b, data, bytes, message);
    return att_jinja_built_value(&b);
}

att_jinja_value att_jinja_list_new(att_jinja_state *s, att_jinja_type type)
{
    return (att_jinja_value){type, {.list = att_jinja_alloc(s, 1, sizeof(att_jinja_list))}};
}

void att_jinja_push(att_jinja_state *s, att_jinja_value list, att_jinja_value item)
{
    att_jinja_list *l = list.list;
    l->item = att_jinja_grow(s, l->item, l->n, &l->room, sizeof *l->item);
    l->item[l->n++] = item;
}

att_jinja_value att_jinja_dict_new(att_jinja_state *s, att_jinja_type type)
{
    return (att_jinja_value){type, {.dict = att_jinja_alloc(s, 1, sizeof(att_jinja_dict))}};
}

const att_jinja_value *att_jinja_find(att_jinja_state *s, const att_jinja_dict *dict, att_jinja_value key)
{
    if (key.type == ATT_JINJA_LIST || key.type == ATT_JINJA_DICT)
        att_jinja_fail(s, "a %s cannot be the key of a dict", att_jinja_type_name(key.type));
    att_jinja_work(s, 1 + dict->n / 4);
    for (size_t i = 0; i < dict->n; i++)
        if (att_jinja_equal(s, dict->key[i], key))
            return &dict->value[i];
    return NULL;
}

void att_jinja_put(att_jinja_state *s, att_jinja_value dict, att_jinja_value key, att_jinja_value value)
{
    att_jinja_dict *d = dict.dict;
    att_jinja_value *known = (att_jinja_value *)(uintptr_t)att_jinja_find(s, d, key);
    if (known) {
        *known = value;
        return;
    }
    size_t room = d->room;
    d->key = att_jinja_grow(s, d->key, d->n, &room, sizeof *d->key);
    d->value = att_jinja_grow(s, d->value, d->n, &d->room, sizeof *d->value);
    d->key[d->n] = key;
    d->value[d->n++] = value;
}

void att_jinja_put_named(att_jinja_state *s, att_jinja_value dict, const char *key, att_jinja_value value)
{
    att_jinja_put(s, dict, att_jinja_text(s, key, strlen(key), false), value);
}

att_jinja_value att_jinja_function_value(att_jinja_state *s, att_jinja_function *call, att_jinja_value self)
{
    att_jinja_callable *c = att_jinja_alloc(s, 1, sizeof *c);
    *c = (att_jinja_callable){.call = call, .self = self};
    return (att_jinja_value){ATT_JINJA_CALLABLE, {.callable = c}};
}

/* ---- questions */

const char *att_jinja_type_name(att_jinja_type type)
{
    static const char *const names[] = {"undefined value", "None", "bool",      "int",  "float",   "str", "list",
                                        "tuple",           "dict", "namespace", "loop", "function"};
    return names[type];
}

bool att_jinja_same(const att_jinja_string *s, const char *text)
{
    return strlen(text) == s->bytes && memcmp(s->data, text, s->bytes) == 0;
}

bool att_jinja_truth(att_jinja_value v)
{
    switch (v.type) {
    case ATT_JINJA_UNDEFINED:
    case ATT_JINJA_NONE:
        return false;
    case ATT_JINJA_BOOL:
        return v.truth;
    case ATT_JINJA_INT:
        return v.number != 0;
    case ATT_JINJA_FLOAT:
        return v.real != 0;
    case ATT_JINJA_STRING:
        return v.string->bytes > 0;
    case ATT_JINJA_LIST:
    case ATT_JINJA_TUPLE:
        return v.list->n > 0;
    case ATT_JINJA_DICT:
        return v.dict->n > 0;
    default:
        return true;
    }
}

double att_jinja_real(att_jinja_value v)
{
    return v.type == ATT_JINJA_FLOAT ? v.real : v.type == ATT_JINJA_BOOL ? v.truth : (double)v.number;
}

static bool equal_dicts(att_jinja_state *s, const att_jinja_dict *a, const att_jinja_dict *b)
{
    bool equal = a->n == b->n;
    for (size_t i = 0; equal && i < a->n; i++) {
        const att_jinja_value *other = att_jinja_find(s, b, a->key[i]);
        equal = other && att_jinja_equal(s, a->value[i], *other);
    }
    return equal;
}

bool att_jinja_equal(att_jinja_state *s, att_jinja_value a, att_jinja_value b)
{
    if (att_jinja_is_number(a) && att_jinja_is_number(b))
        return a.type == ATT_JINJA_INT && b.type == ATT_JINJA_INT ? a.number == b.number
                                                                  : att_jinja_real(a) == att_jinja_real(b);
    if (a.type != b.type)
        return false;
    if (a.type == ATT_JINJA_STRING)
        return a.string->bytes == b.string->bytes && memcmp(a.string->data, b.string->data, a.string->bytes) == 0;
    if (a.type == ATT_JINJA_UNDEFINED || a.type == ATT_JINJA_NONE)
        return true;
    bool equal;
    att_jinja_enter(s);
    if (att_jinja_is_list(a)) {
        equal = a.list->n == b.list->n;
        for (size_t i = 0; equal && i < a.list->n; i++)
            equal = att_jinja_equal(s, a.list->item[i], b.list->item[i]);
    } else if (a.type == ATT_JINJA_DICT) {
        equal = equal_dicts(s, a.dict, b.dict);
    } else {
        equal = a.dict == b.dict;
    }
    att_jinja_leave(s);
    return equal;
}

static int compare_lists(att_jinja_state *s, const att_jinja_list *a, const att_jinja_list *b)
{
    int order = 0;
    size_t i = 0;
    att_jinja_enter(s);
    for (; order == 0 && i < a->n && i < b->n; i++)
        if (!att_jinja_equal(s, a->item[i], b->item[i]))
            order = att_jinja_compare(s, a->item[i], b->item[i]);
    att_jinja_leave(s);
    return order ? order : (a->n > b->n) - (a->n < b->n);
}

int att_jinja_compare(att_jinja_state *s, att_jinja_value a, att_jinja_value b)
{
    if (a.type == ATT_JINJA_INT && b.type == ATT_JINJA_INT)
        return (a.number > b.number) - (a.number < b.number);
    if (att_jinja_is_number(a) && att_jinja_is_number(b))
        return (att_jinja_real(a) > att_jinja_real(b)) - (att_jinja_real(a) < att_jinja_real(b));
    if (a.type == ATT_JINJA_STRING && b.type == ATT_JINJA_STRING) {
        const size_t n = a.string->bytes < b.string->bytes ? a.string->bytes : b.string->bytes;
        const int order = memcmp(a.string->data, b.string->data, n);
        return order ? order : (a.string->bytes > b.string->bytes) - (a.string->bytes < b.string->bytes);
    }
    if (a.type != b.type || !att_jinja_is_list(a))
        att_jinja_fail(s, "a %s and a %s have no order", att_jinja_type_name(a.type), att_jinja_type_name(b.type));
    return compare_lists(s, a.list, b.list);
}

bool att_jinja_contains(att_jinja_state *s, att_jinja_value all, att_jinja_value item)
{
    if (all.type == ATT_JINJA_STRING && item.type == ATT_JINJA_STRING)
        return att_jinja_search(all.string, 0, all.string->bytes, item.string) != SIZE_MAX;
    if (all.type == ATT_JINJA_DICT)
        return att_jinja_find(s, all.dict, item) != NULL;
    if (att_jinja_is_list(all)) {
        att_jinja_work(s, all.list->n / 4);
        for (size_t i = 0; i < all.list->n; i++)
            if (att_jinja_equal(s, all.list->item[i], item))
                return true;
        return false;
    }
    if (all.type == ATT_JINJA_UNDEFINED)
        return false;
    att_jinja_fail(s, "a %s cannot be in a %s", att_jinja_type_name(item.type), att_jinja_type_name(all.type));
}

att_jinja_value att_jinja_iterate(att_jinja_state *s, att_jinja_value v)
{
    if (att_jinja_is_list(v))
        return v;
    const att_jinja_value out = att_jinja_list_new(s, ATT_JINJA_LIST);
    if (v.type == ATT_JINJA_DICT) {
        for (size_t i = 0; i < v.dict->n; i++)
            att_jinja_push(s, out, v.dict->key[i]);
    } else if (v.type == ATT_JINJA_STRING) {
        for (size_t at = 0, end; at < v.string->bytes; at = end) {
            end = at + 1;
            while (end < v.string->bytes && ((unsigned char)v.string->data[end] & 0xC0) == 0x80)
                end++;
            att_jinja_push(s, out, att_jinja_string_value(att_jinja_part(s, v.string, at, end)));
        }
    } else if (v.type != ATT_JINJA_UNDEFINED) {
        att_jinja_fail(s, "a %s has no items", att_jinja_type_name(v.type));
    }
    return out;
}

int64_t att_jinja_length(att_jinja_state *s, att_jinja_value v)
{
    if (att_jinja_is_list(v))
        return (int64_t)v.list->n;
    if (v.type == ATT_JINJA_DICT)
        return (int64_t)v.dict->n;
    if (v.type == ATT_JINJA_STRING)
        return (int64_t)att_jinja_characters(v.string);
    if (v.type == ATT_JINJA_UNDEFINED)
        return 0;
    att_jinja_fail(s, "a %s has no length", att_jinja_type_name(v.type));
}

/* ---- arguments */

const att_jinja_value *att_jinja_argument(const att_jinja_arguments *a, size_t at, const char *name)
{
    if (at < a->n)
        return &a->value[at];
    for (size_t i = 0; name && i < a->named; i++)
        if (att_jinja_same(a->names[i], name))
            return &a->value[a->n + i];
    return NULL;
}

const att_jinja_string *att_jinja_argument_text(att_jinja_state *s, const att_jinja_arguments *a, size_t at,
                                                const char *name, const char *missing)
{
    const att_jinja_value *v = att_jinja_argument(a, at, name);
    if (v && v->type == ATT_JINJA_STRING)
        return v->string;
    if ((v && v->type != ATT_JINJA_NONE) || !missing)
        att_jinja_fail(s, "argument %zu%s%s is not a text", at + 1, name ? ", " : "", name ? name : "");
    return att_jinja_text(s, missing, strlen(missing), false).string;
}

int64_t att_jinja_integer(att_jinja_state *s, att_jinja_value v, const char *what)
{
    if (v.type == ATT_JINJA_BOOL)
        return v.truth;
    if (v.type != ATT_JINJA_INT)
        att_jinja_fail(s, "%s is a %s, not an integer", what, att_jinja_type_name(v.type));
    return v.number;
}

int64_t att_jinja_argument_int(att_jinja_state *s, const att_jinja_arguments *a, size_t at, const char *name,
                               int64_t missing)
{
    const att_jinja_value *v = att_jinja_argument(a, at, name);
    return v ? att_jinja_integer(s, *v, name ? name : "an argument") : missing;
}

bool att_jinja_argument_truth(const att_jinja_arguments *a, size_t at, const char *name, bool missing)
{
    const att_jinja_value *v = att_jinja_argument(a, at, name);
    return v ? att_jinja_truth(*v) : missing;
}
