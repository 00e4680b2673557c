/* Filters of lists and dicts. */
#include "jinja/access.h"
#include "jinja/filters.h"
#include "jinja/string.h"

#include <string.h>

#define FILTER(name)                                                                                                   \
    static att_jinja_value name(att_jinja_state *s, const att_jinja_value *self, const att_jinja_arguments *a)

FILTER(length) { return (void)a, att_jinja_int(att_jinja_length(s, *self)); }

FILTER(or_default)
{
    const att_jinja_value *other = att_jinja_argument(a, 0, "default_value");
    const bool any = att_jinja_argument_truth(a, 1, "boolean", false);
    if (self->type != ATT_JINJA_UNDEFINED && (!any || att_jinja_truth(*self)))
        return *self;
    return other ? *other : att_jinja_text(s, "", 0, false);
}

static att_jinja_value copy(att_jinja_state *s, att_jinja_value v)
{
    const att_jinja_list *from = att_jinja_iterate(s, v).list;
    const att_jinja_value to = att_jinja_list_new(s, ATT_JINJA_LIST);
    for (size_t i = 0; i < from->n; i++)
        att_jinja_push(s, to, from->item[i]);
    return to;
}
FILTER(to_list) { return (void)a, copy(s, *self); }

FILTER(first)
{
    const att_jinja_list *l = att_jinja_iterate(s, *self).list;
    return (void)a, l->n > 0 ? l->item[0] : att_jinja_undefined();
}

FILTER(last)
{
    const att_jinja_list *l = att_jinja_iterate(s, *self).list;
    return (void)a, l->n > 0 ? l->item[l->n - 1] : att_jinja_undefined();
}

FILTER(reversed)
{
    const att_jinja_value none = att_jinja_none(), part[] = {none, none, att_jinja_int(-1)};
    (void)a;
    return att_jinja_slice(s, self->type == ATT_JINJA_STRING ? *self : copy(s, *self), part);
}

FILTER(items)
{
    static const att_jinja_string name = {.data = "items", .bytes = 5};
    const att_jinja_arguments none = {0};
    (void)a;
    if (self->type == ATT_JINJA_UNDEFINED)
        return att_jinja_list_new(s, ATT_JINJA_LIST);
    if (self->type != ATT_JINJA_DICT)
        att_jinja_fail(s, "items of a %s, which is not a dict", att_jinja_type_name(self->type));
    return att_jinja_method(s, *self, &name).callable->call(s, self, &none);
}

/* Returns an attribute of an item; "a.b" is that of an attribute, a number an index. */
static att_jinja_value attribute(att_jinja_state *s, att_jinja_value v, att_jinja_value name)
{
    if (name.type == ATT_JINJA_INT)
        return att_jinja_item(s, v, name);
    if (name.type != ATT_JINJA_STRING)
        att_jinja_fail(s, "the name of an attribute is a %s", att_jinja_type_name(name.type));
    const att_jinja_string *x = name.string;
    for (size_t at = 0, end; at <= x->bytes; at = end + 1) {
        const char *dot = memchr(x->data + at, '.', x->bytes - at);
        end = dot ? (size_t)(dot - x->data) : x->bytes;
        int64_t index = 0;
        bool number = end > at && end - at < 10;
        for (size_t i = at; number && i < end; i++) {
            number = x->data[i] >= '0' && x->data[i] <= '9';
            index = index * 10 + (x->data[i] - '0');
        }
        const att_jinja_value part = att_jinja_string_value(att_jinja_part(s, x, at, end));
        v = att_jinja_item(s, v, number ? att_jinja_int(index) : part);
    }
    return v;
}

FILTER(get_attribute) { return att_jinja_attribute(s, *self, att_jinja_argument_text(s, a, 0, "name", NULL)); }

FILTER(join)
{
    const att_jinja_value *name = att_jinja_argument(a, 1, "attribute");
    const att_jinja_string *between = att_jinja_argument_text(s, a, 0, "d", "");
    const att_jinja_list *l = att_jinja_iterate(s, *self).list;
    att_jinja_builder b = {.s = s};
    for (size_t i = 0; i < l->n; i++) {
        if (i)
            att_jinja_add_string(&b, between);
        att_jinja_add_string(&b, att_jinja_str(s, name ? attribute(s, l->item[i], *name) : l->item[i]));
    }
    return att_jinja_built_value(&b);
}

/* ---- map, select */

/* Returns the arguments after the first n. */
static att_jinja_arguments after(const att_jinja_arguments *a, size_t n)
{
    return (att_jinja_arguments){a->value + n, a->names, a->n - n, a->named};
}

/* Returns the items of a value; none of one that is false, such as None. */
static const att_jinja_list *items_of(att_jinja_state *s, att_jinja_value v)
{
    return att_jinja_iterate(s, att_jinja_truth(v) ? v : att_jinja_undefined()).list;
}

FILTER(map)
{
    const att_jinja_value *name = a->n ? NULL : att_jinja_argument(a, 0, "attribute");
    const att_jinja_value *other = a->n ? NULL : att_jinja_argument(a, 1, "default");
    const att_jinja_value out = att_jinja_list_new(s, ATT_JINJA_LIST);
    const att_jinja_list *l = items_of(s, *self);
    const att_jinja_string *filter = name ? NULL : att_jinja_argument_text(s, a, 0, NULL, NULL);
    const att_jinja_arguments rest = name ? *a : after(a, 1);
    for (size_t i = 0; i < l->n; i++) {
        att_jinja_value v = name ? attribute(s, l->item[i], *name) : s->filter(s, filter, l->item[i], &rest);
        if (name && other && v.type == ATT_JINJA_UNDEFINED)
            v = *other;
        att_jinja_push(s, out, v);
    }
    return out;
}

/* Keeps the items for which a test is `wanted`. attributes: the test is of an attribute, the first argument. */
static att_jinja_value choose(att_jinja_state *s, att_jinja_value v, const att_jinja_arguments *a, bool wanted,
                              bool attributes)
{
    const att_jinja_value out = att_jinja_list_new(s, ATT_JINJA_LIST);
    const att_jinja_list *l = items_of(s, v);
    if (a->n < attributes)
        att_jinja_fail(s, "selectattr and rejectattr have no attribute");
    const bool tested = a->n > attributes;
    const att_jinja_string *test = tested ? att_jinja_argument_text(s, a, attributes, NULL, NULL) : NULL;
    const att_jinja_arguments rest = tested ? after(a, 1 + attributes) : (att_jinja_arguments){0};
    for (size_t i = 0; i < l->n; i++) {
        const att_jinja_value x = attributes ? attribute(s, l->item[i], a->value[0]) : l->item[i];
        if ((tested ? att_jinja_test(s, test, x, &rest) : att_jinja_truth(x)) == wanted)
            att_jinja_push(s, out, l->item[i]);
    }
    return out;
}
FILTER(select) { return choose(s, *self, a, true, false); }
FILTER(reject) { return choose(s, *self, a, false, false); }
FILTER(selectattr) { return choose(s, *self, a, true, true); }
FILTER(rejectattr) { return choose(s, *self, a, false, true); }

/* ---- order */

/* Returns what an item is compared by: an attribute, and without case. */
static att_jinja_value sort_key(att_jinja_state *s, att_jinja_value v, const att_jinja_value *name, bool cased)
{
    if (name && name->type != ATT_JINJA_NONE)
        v = attribute(s, v, *name);
    if (v.type == ATT_JINJA_STRING && !cased)
        v = att_jinja_string_value(att_jinja_change_case(s, v.string, ATT_JINJA_LOWER));
    return v;
}

/* Sorts a list by keys, which are sorted with it. Equal items keep their order. */
static void sort_by(att_jinja_state *s, att_jinja_list *l, att_jinja_list *key, bool reverse)
{
    for (size_t i = 1; i < l->n; i++) {
        const att_jinja_value item = l->item[i], k = key->item[i];
        size_t at = i;
        for (; at > 0; at--) {
            const int order = att_jinja_compare(s, k, key->item[at - 1]);
            att_jinja_work(s, 1);
            if (reverse ? order <= 0 : order >= 0)
                break;
            l->item[at] = l->item[at - 1];
            key->item[at] = key->item[at - 1];
        }
        l->item[at] = item;
        key->item[at] = k;
    }
}

static att_jinja_value keys_of(att_jinja_state *s, const att_jinja_list *l, const att_jinja_value *name, bool cased)
{
    const att_jinja_value keys = att_jinja_list_new(s, ATT_JINJA_LIST);
    for (size_t i = 0; i < l->n; i++)
        att_jinja_push(s, keys, sort_key(s, l->item[i], name, cased));
    return keys;
}

FILTER(sort)
{
    const att_jinja_value out = copy(s, *self);
    const bool cased = att_jinja_argument_truth(a, 1, "case_sensitive", false);
    const att_jinja_value keys = keys_of(s, out.list, att_jinja_argument(a, 2, "attribute"), cased);
    sort_by(s, out.list, keys.list, att_jinja_argument_truth(a, 0, "reverse", false));
    return out;
}

FILTER(dictsort)
{
    const att_jinja_value out = items(s, self, a);
    const att_jinja_string *by = att_jinja_argument_text(s, a, 1, "by", "key");
    const att_jinja_value index = att_jinja_int(att_jinja_same(by, "value"));
    const att_jinja_value keys = keys_of(s, out.list, &index, att_jinja_argument_truth(a, 0, "case_sensitive", false));
    sort_by(s, out.list, keys.list, att_jinja_argument_truth(a, 2, "reverse", false));
    return out;
}

FILTER(unique)
{
    const att_jinja_list *l = att_jinja_iterate(s, *self).list;
    const bool cased = att_jinja_argument_truth(a, 0, "case_sensitive", false);
    const att_jinja_value keys = keys_of(s, l, att_jinja_argument(a, 1, "attribute"), cased);
    const att_jinja_value seen = att_jinja_list_new(s, ATT_JINJA_LIST), out = att_jinja_list_new(s, ATT_JINJA_LIST);
    for (size_t i = 0; i < l->n; i++) {
        if (att_jinja_contains(s, seen, keys.list->item[i]))
            continue;
        att_jinja_push(s, seen, keys.list->item[i]);
        att_jinja_push(s, out, l->item[i]);
    }
    return out;
}

static att_jinja_value best(att_jinja_state *s, const att_jinja_value *self, const att_jinja_arguments *a, int sign)
{
    const att_jinja_list *l = att_jinja_iterate(s, *self).list;
    const bool cased = att_jinja_argument_truth(a, 0, "case_sensitive", false);
    const att_jinja_list *keys = keys_of(s, l, att_jinja_argument(a, 1, "attribute"), cased).list;
    size_t at = 0;
    for (size_t i = 1; i < l->n; i++)
        if (att_jinja_compare(s, keys->item[i], keys->item[at]) * sign > 0)
            at = i;
    return l->n > 0 ? l->item[at] : att_jinja_undefined();
}
FILTER(maximum) { return best(s, self, a, 1); }
FILTER(minimum) { return best(s, self, a, -1); }

FILTER(sum)
{
    const att_jinja_value *name = att_jinja_argument(a, 0, "attribute"), *start = att_jinja_argument(a, 1, "start");
    const att_jinja_list *l = att_jinja_iterate(s, *self).list;
    att_jinja_value all = start ? *start : att_jinja_int(0);
    for (size_t i = 0; i < l->n; i++) {
        const att_jinja_value v = name && name->type != ATT_JINJA_NONE ? attribute(s, l->item[i], *name) : l->item[i];
        if (!att_jinja_is_number(v) || !att_jinja_is_number(all))
            att_jinja_fail(s, "sum of a %s", att_jinja_type_name(v.type));
        if (v.type == ATT_JINJA_FLOAT || all.type == ATT_JINJA_FLOAT)
            all = att_jinja_float(att_jinja_real(all) + att_jinja_real(v));
        else if (__builtin_add_overflow(all.number, att_jinja_integer(s, v, "a number"), &all.number))
            att_jinja_fail(s, "a sum is too large");
    }
    return all;
}

/* ---- groups */

FILTER(batch)
{
    const att_jinja_list *l = att_jinja_iterate(s, *self).list;
    const int64_t n = att_jinja_argument_int(s, a, 0, "linecount", 0);
    const att_jinja_value *fill = att_jinja_argument(a, 1, "fill_with"), out = att_jinja_list_new(s, ATT_JINJA_LIST);
    att_jinja_value row = out;
    if (n < 1 || n > 100000)
        att_jinja_fail(s, "batch of %lld items", (long long)n);
    for (size_t i = 0; i < l->n; i++) {
        if (i % (size_t)n == 0)
            att_jinja_push(s, out, row = att_jinja_list_new(s, ATT_JINJA_LIST));
        att_jinja_push(s, row, l->item[i]);
    }
    while (fill && fill->type != ATT_JINJA_NONE && l->n > 0 && row.list->n < (size_t)n)
        att_jinja_push(s, row, *fill);
    return out;
}

FILTER(groupby)
{
    const att_jinja_value *name = att_jinja_argument(a, 0, "attribute"), out = att_jinja_list_new(s, ATT_JINJA_LIST);
    const att_jinja_value sorted = copy(s, *self), keys = keys_of(s, sorted.list, name, false);
    att_jinja_value group = out;
    sort_by(s, sorted.list, keys.list, false);
    for (size_t i = 0; name && i < sorted.list->n; i++) {
        if (i == 0 || !att_jinja_equal(s, keys.list->item[i], keys.list->item[i - 1])) {
            const att_jinja_value pair = att_jinja_list_new(s, ATT_JINJA_TUPLE);
            group = att_jinja_list_new(s, ATT_JINJA_LIST);
            att_jinja_push(s, pair, attribute(s, sorted.list->item[i], *name));
            att_jinja_push(s, pair, group);
            att_jinja_push(s, out, pair);
        }
        att_jinja_push(s, group, sorted.list->item[i]);
    }
    return out;
}

const att_jinja_filter att_jinja_list_filters[] = {{"length", length},
                                                   {"count", length},
                                                   {"default", or_default},
                                                   {"d", or_default},
                                                   {"list", to_list},
                                                   {"first", first},
                                                   {"last", last},
                                                   {"reverse", reversed},
                                                   {"items", items},
                                                   {"attr", get_attribute},
                                                   {"join", join},
                                                   {"map", map},
                                                   {"select", select},
                                                   {"reject", reject},
                                                   {"selectattr", selectattr},
                                                   {"rejectattr", rejectattr},
                                                   {"sort", sort},
                                                   {"dictsort", dictsort},
                                                   {"unique", unique},
                                                   {"max", maximum},
                                                   {"min", minimum},
                                                   {"sum", sum},
                                                   {"batch", batch},
                                                   {"groupby", groupby},
                                                   {0}};
