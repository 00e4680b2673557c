/* Attributes, items, slices and methods of values. */
#ifndef ATT_JINJA_ACCESS_H
#define ATT_JINJA_ACCESS_H

#include "jinja/value.h"

/* Returns value.name: a method first, then an item. */
att_jinja_value att_jinja_attribute(att_jinja_state *s, att_jinja_value v, const att_jinja_string *name);
/* Returns value[key]: an item first, then a method. Undefined if there is neither. */
att_jinja_value att_jinja_item(att_jinja_state *s, att_jinja_value v, att_jinja_value key);
/* Returns value[part[0]:part[1]:part[2]]; None: left out. */
att_jinja_value att_jinja_slice(att_jinja_state *s, att_jinja_value v, const att_jinja_value part[3]);
/* Returns a method of a text, a list or a dict, or undefined. */
att_jinja_value att_jinja_method(att_jinja_state *s, att_jinja_value v, const att_jinja_string *name);

struct att_jinja_loop {
    const att_jinja_list *items;
    size_t at;
    int depth;
    bool has_changed;
    att_jinja_value changed; /* a list: the last arguments of loop.changed */
    const void *node;        /* of a recursive loop; NULL: it is not */
    struct att_jinja_scope *scope;
    att_jinja_function *recurse; /* runs it over other items */
};

#endif
