#include "jinja/access.h"

#include "jinja/string.h"

/* ---- loops */

static att_jinja_value loop_cycle(att_jinja_state *s, const att_jinja_value *self, const att_jinja_arguments *a)
{
    if (a->n == 0)
        att_jinja_fail(s, "loop.cycle has no arguments");
    return a->value[self->loop->at % a->n];
}

static att_jinja_value loop_changed(att_jinja_state *s, const att_jinja_value *self, const att_jinja_arguments *a)
{
    att_jinja_loop *loop = self->loop;
    const att_jinja_value now = att_jinja_list_new(s, ATT_JINJA_LIST);
    for (size_t i = 0; i < a->n; i++)
        att_jinja_push(s, now, a->value[i]);
    const bool changed = !loop->has_changed || !att_jinja_equal(s, loop->changed, now);
    loop->has_changed = true;
    loop->changed = now;
    return att_jinja_bool(changed);
}

static att_jinja_value loop_attribute(att_jinja_state *s, att_jinja_loop *loop, const att_jinja_string *name)
{
    const int64_t n = (int64_t)loop->items->n, at = (int64_t)loop->at;
    const att_jinja_value self = {ATT_JINJA_LOOP, {.loop = loop}}, none = att_jinja_undefined();
    const struct {
        const char *name;
        att_jinja_value value;
    } values[] = {{"index", att_jinja_int(at + 1)},
                  {"index0", att_jinja_int(at)},
                  {"revindex", att_jinja_int(n - at)},
                  {"revindex0", att_jinja_int(n - at - 1)},
                  {"first", att_jinja_bool(at == 0)},
                  {"last", att_jinja_bool(at == n - 1)},
                  {"length", att_jinja_int(n)},
                  {"depth", att_jinja_int(loop->depth)},
                  {"depth0", att_jinja_int(loop->depth - 1)},
                  {"previtem", at > 0 ? loop->items->item[at - 1] : none},
                  {"nextitem", at + 1 < n ? loop->items->item[at + 1] : none}};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (att_jinja_same(name, values[i].name))
            return values[i].value;
    if (att_jinja_same(name, "cycle"))
        return att_jinja_function_value(s, loop_cycle, self);
    return att_jinja_same(name, "changed") ? att_jinja_function_value(s, loop_changed, self) : none;
}

/* ---- items */

static att_jinja_value character(att_jinja_state *s, const att_jinja_string *x, int64_t at)
{
    const size_t begin = att_jinja_offset(x, (size_t)at);
    size_t end = begin + 1;
    while (end < x->bytes && ((unsigned char)x->data[end] & 0xC0) == 0x80)
        end++;
    return att_jinja_string_value(att_jinja_part(s, x, begin, end));
}

static att_jinja_value at_index(att_jinja_state *s, att_jinja_value v, int64_t at)
{
    const int64_t n = att_jinja_length(s, v);
    at += at < 0 ? n : 0;
    if (at < 0 || at >= n)
        return att_jinja_undefined();
    return v.type == ATT_JINJA_STRING ? character(s, v.string, at) : v.list->item[at];
}

static void check_defined(att_jinja_state *s, att_jinja_value v, const att_jinja_string *name)
{
    if (v.type == ATT_JINJA_UNDEFINED)
        att_jinja_fail(s, "%.60s%sis undefined, so it has no \"%.60s\"", v.string ? v.string->data : "a value",
                       v.string ? " " : " ", name ? name->data : "item");
}

att_jinja_value att_jinja_item(att_jinja_state *s, att_jinja_value v, att_jinja_value key)
{
    check_defined(s, v, key.type == ATT_JINJA_STRING ? key.string : NULL);
    if (v.type == ATT_JINJA_DICT) {
        const att_jinja_value *found = att_jinja_find(s, v.dict, key);
        if (found)
            return *found;
    } else if ((key.type == ATT_JINJA_INT || key.type == ATT_JINJA_BOOL) &&
               (v.type == ATT_JINJA_STRING || att_jinja_is_list(v))) {
        return at_index(s, v, att_jinja_integer(s, key, "an index"));
    }
    if (key.type != ATT_JINJA_STRING)
        return att_jinja_undefined();
    if (v.type == ATT_JINJA_NAMESPACE) {
        const att_jinja_value *found = att_jinja_find(s, v.dict, key);
        return found ? *found : att_jinja_undefined();
    }
    return v.type == ATT_JINJA_LOOP ? loop_attribute(s, v.loop, key.string) : att_jinja_method(s, v, key.string);
}

att_jinja_value att_jinja_attribute(att_jinja_state *s, att_jinja_value v, const att_jinja_string *name)
{
    check_defined(s, v, name);
    const att_jinja_value method = att_jinja_method(s, v, name);
    return method.type != ATT_JINJA_UNDEFINED ? method : att_jinja_item(s, v, att_jinja_string_value(name));
}
