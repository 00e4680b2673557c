/* Evaluates expressions. */
#include "jinja/evaluate.h"

#include "jinja/access.h"
#include "jinja/filters.h"

#include <math.h>
#include <string.h>

att_jinja_scope *att_jinja_scope_new(att_jinja_state *s, att_jinja_scope *parent)
{
    att_jinja_scope *scope = att_jinja_alloc(s, 1, sizeof *scope);
    *scope = (att_jinja_scope){parent, att_jinja_dict_new(s, ATT_JINJA_DICT)};
    return scope;
}

static att_jinja_value variable(att_jinja_state *s, const att_jinja_string *name)
{
    const att_jinja_value key = att_jinja_string_value(name);
    for (const att_jinja_scope *scope = s->scope; scope; scope = scope->parent) {
        const att_jinja_value *found = att_jinja_find(s, scope->variables.dict, key);
        if (found)
            return *found;
    }
    for (const att_jinja_filter *f = att_jinja_globals; f->name; f++)
        if (att_jinja_same(name, f->name))
            return att_jinja_function_value(s, f->call, att_jinja_undefined());
    return (att_jinja_value){ATT_JINJA_UNDEFINED, {.string = name}};
}

/* ---- calls, filters */

att_jinja_arguments att_jinja_evaluate_arguments(att_jinja_state *s, const att_jinja_node *n)
{
    att_jinja_value *values = att_jinja_alloc(s, n->list.n + 1, sizeof *values);
    for (size_t i = 0; i < n->list.n; i++)
        values[i] = att_jinja_evaluate(s, n->list.node[i]);
    return (att_jinja_arguments){values, n->names, n->list.n - n->named, n->named};
}

att_jinja_value att_jinja_call(att_jinja_state *s, att_jinja_value f, const att_jinja_arguments *a)
{
    if (f.type == ATT_JINJA_LOOP)
        return f.loop->recurse(s, &f, a);
    if (f.type == ATT_JINJA_UNDEFINED)
        att_jinja_fail(s, "%.60s is undefined, so it cannot be called", f.string ? f.string->data : "what is called");
    if (f.type != ATT_JINJA_CALLABLE)
        att_jinja_fail(s, "a %s cannot be called", att_jinja_type_name(f.type));
    att_jinja_work(s, 1);
    const att_jinja_value self = {ATT_JINJA_CALLABLE, {.callable = f.callable}};
    return f.callable->call(s, f.callable->node ? &self : &f.callable->self, a);
}

att_jinja_value att_jinja_apply_filter(att_jinja_state *s, const att_jinja_string *name, att_jinja_value v,
                                       const att_jinja_arguments *a)
{
    const att_jinja_filter *const all[] = {att_jinja_text_filters, att_jinja_list_filters};
    for (int i = 0; i < 2; i++)
        for (const att_jinja_filter *f = all[i]; f->name; f++)
            if (att_jinja_same(name, f->name))
                return f->call(s, &v, a);
    att_jinja_fail(s, "there is no filter \"%.60s\"", name->data);
}

/* ---- operators */

static int64_t check_overflow(att_jinja_state *s, bool overflow, int64_t x)
{
    if (overflow)
        att_jinja_fail(s, "an integer is too large");
    return x;
}

static int64_t power(att_jinja_state *s, int64_t x, int64_t n)
{
    int64_t all = 1;
    bool overflow = n > 1000;
    for (int64_t i = 0; !overflow && i < n; i++)
        overflow = __builtin_mul_overflow(all, x, &all);
    return check_overflow(s, overflow, all);
}

static att_jinja_value of_integers(att_jinja_state *s, const char *o, int64_t a, int64_t b)
{
    int64_t x = 0;
    bool overflow = false;
    if (*o == '+')
        overflow = __builtin_add_overflow(a, b, &x);
    else if (*o == '-')
        overflow = __builtin_sub_overflow(a, b, &x);
    else if (strcmp(o, "*") == 0)
        overflow = __builtin_mul_overflow(a, b, &x);
    else if (strcmp(o, "**") == 0)
        x = power(s, a, b);
    else if (b == -1)
        overflow = *o == '/' && __builtin_sub_overflow(0, a, &x);
    else if (*o == '/')
        x = a / b - (a % b != 0 && (a < 0) != (b < 0));
    else
        x = a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0);
    return att_jinja_int(check_overflow(s, overflow, x));
}

static att_jinja_value of_numbers(att_jinja_state *s, const char *o, att_jinja_value a, att_jinja_value b)
{
    const double x = att_jinja_real(a), y = att_jinja_real(b);
    if ((*o == '/' || *o == '%') && y == 0)
        att_jinja_fail(s, "division by zero");
    const bool integers = a.type != ATT_JINJA_FLOAT && b.type != ATT_JINJA_FLOAT;
    if (integers && strcmp(o, "/") != 0 && !(strcmp(o, "**") == 0 && y < 0))
        return of_integers(s, o, att_jinja_integer(s, a, "a number"), att_jinja_integer(s, b, "a number"));
    if (*o == '+')
        return att_jinja_float(x + y);
    if (*o == '-')
        return att_jinja_float(x - y);
    if (*o == '/')
        return att_jinja_float(o[1] ? floor(x / y) : x / y);
    if (*o == '%')
        return att_jinja_float(x - y * floor(x / y));
    return att_jinja_float(o[1] ? pow(x, y) : x * y);
}

/* Repeats a text or a list. */
static att_jinja_value repeat(att_jinja_state *s, att_jinja_value v, int64_t n)
{
    att_jinja_builder b = {.s = s};
    const att_jinja_value list = att_jinja_list_new(s, v.type == ATT_JINJA_STRING ? ATT_JINJA_LIST : v.type);
    for (int64_t i = 0; i < n; i++) {
        att_jinja_work(s, 1);
        if (v.type == ATT_JINJA_STRING)
            att_jinja_add_string(&b, v.string);
        for (size_t k = 0; v.type != ATT_JINJA_STRING && k < v.list->n; k++)
            att_jinja_push(s, list, v.list->item[k]);
    }
    return v.type == ATT_JINJA_STRING ? att_jinja_built_value(&b) : list;
}

static att_jinja_value join(att_jinja_state *s, const att_jinja_string *x, const att_jinja_string *y)
{
    att_jinja_builder b = {.s = s};
    att_jinja_add_string(&b, x);
    att_jinja_add_string(&b, y);
    return att_jinja_built_value(&b);
}

static att_jinja_value binary(att_jinja_state *s, const char *o, att_jinja_value a, att_jinja_value b)
{
    if (*o == '~')
        return join(s, att_jinja_str(s, a), att_jinja_str(s, b));
    if (att_jinja_is_number(a) && att_jinja_is_number(b))
        return of_numbers(s, o, a, b);
    if (*o == '+' && a.type == b.type && a.type == ATT_JINJA_STRING)
        return join(s, a.string, b.string);
    if (*o == '+' && a.type == b.type && att_jinja_is_list(a)) {
        const att_jinja_value list = repeat(s, a, 1);
        for (size_t i = 0; i < b.list->n; i++)
            att_jinja_push(s, list, b.list->item[i]);
        return list;
    }
    if (*o == '%' && a.type == ATT_JINJA_STRING)
        return b.type == ATT_JINJA_TUPLE ? att_jinja_format(s, a.string, b.list->item, b.list->n)
                                         : att_jinja_format(s, a.string, &b, 1);
    const bool text = a.type == ATT_JINJA_STRING || att_jinja_is_list(a);
    if (strcmp(o, "*") == 0 && (text ? b.type : a.type) == ATT_JINJA_INT &&
        (text || b.type == ATT_JINJA_STRING || att_jinja_is_list(b)))
        return repeat(s, text ? a : b, text ? b.number : a.number);
    const att_jinja_string *unknown = a.type == ATT_JINJA_UNDEFINED   ? a.string
                                      : b.type == ATT_JINJA_UNDEFINED ? b.string
                                                                      : NULL;
    att_jinja_fail(s, "%s%s %s %s is not possible%s%.60s%s", "a ", att_jinja_type_name(a.type), o,
                   att_jinja_type_name(b.type), unknown ? ": " : "", unknown ? unknown->data : "",
                   unknown ? " is undefined" : "");
}

static bool compare(att_jinja_state *s, const att_jinja_string *o, att_jinja_value a, att_jinja_value b)
{
    switch (o->data[0]) {
    case 'i':
        return att_jinja_contains(s, b, a);
    case 'n':
        return !att_jinja_contains(s, b, a);
    case '=':
        return att_jinja_equal(s, a, b);
    case '!':
        return !att_jinja_equal(s, a, b);
    case '<':
        return o->bytes > 1 ? att_jinja_compare(s, a, b) <= 0 : att_jinja_compare(s, a, b) < 0;
    default:
        return o->bytes > 1 ? att_jinja_compare(s, a, b) >= 0 : att_jinja_compare(s, a, b) > 0;
    }
}

static att_jinja_value comparison(att_jinja_state *s, const att_jinja_node *n)
{
    att_jinja_value left = att_jinja_evaluate(s, n->a);
    bool all = true;
    for (size_t i = 0; all && i < n->list.n; i++) {
        const att_jinja_value right = att_jinja_evaluate(s, n->list.node[i]);
        all = compare(s, n->names[i], left, right);
        left = right;
    }
    return att_jinja_bool(all);
}

/* ---- nodes */

static att_jinja_value new_list(att_jinja_state *s, const att_jinja_node *n, att_jinja_type type)
{
    const att_jinja_value list = att_jinja_list_new(s, type);
    for (size_t i = 0; i < n->list.n; i++)
        att_jinja_push(s, list, att_jinja_evaluate(s, n->list.node[i]));
    return list;
}

static att_jinja_value new_dict(att_jinja_state *s, const att_jinja_node *n)
{
    const att_jinja_value dict = att_jinja_dict_new(s, ATT_JINJA_DICT);
    for (size_t i = 0; i + 1 < n->list.n; i += 2) {
        const att_jinja_value key = att_jinja_evaluate(s, n->list.node[i]);
        att_jinja_put(s, dict, key, att_jinja_evaluate(s, n->list.node[i + 1]));
    }
    return dict;
}

static att_jinja_value slice(att_jinja_state *s, const att_jinja_node *n)
{
    att_jinja_value part[3];
    const att_jinja_value v = att_jinja_evaluate(s, n->a);
    for (int i = 0; i < 3; i++)
        part[i] = n->list.node[i] ? att_jinja_evaluate(s, n->list.node[i]) : att_jinja_none();
    return att_jinja_slice(s, v, part);
}

static att_jinja_value sign(att_jinja_state *s, const att_jinja_node *n)
{
    const att_jinja_value v = att_jinja_evaluate(s, n->a);
    if (!att_jinja_is_number(v))
        att_jinja_fail(s, "a %s has no sign", att_jinja_type_name(v.type));
    return binary(s, n->text->data, att_jinja_int(0), v);
}

/* Evaluates what needs several values or has effects. */
static att_jinja_value apply(att_jinja_state *s, const att_jinja_node *n)
{
    const att_jinja_value v = att_jinja_evaluate(s, n->a);
    if (n->kind == ATT_JINJA_ATTRIBUTE)
        return att_jinja_attribute(s, v, n->text);
    if (n->kind == ATT_JINJA_ITEM)
        return att_jinja_item(s, v, att_jinja_evaluate(s, n->b));
    if (n->kind == ATT_JINJA_BINARY)
        return binary(s, n->text->data, v, att_jinja_evaluate(s, n->b));
    const att_jinja_arguments a = att_jinja_evaluate_arguments(s, n);
    s->line = n->line;
    if (n->kind == ATT_JINJA_TEST)
        return att_jinja_bool(att_jinja_test(s, n->text, v, &a));
    return n->kind == ATT_JINJA_FILTER ? att_jinja_apply_filter(s, n->text, v, &a) : att_jinja_call(s, v, &a);
}

static att_jinja_value evaluate(att_jinja_state *s, const att_jinja_node *n)
{
    att_jinja_value v;
    switch (n->kind) {
    case ATT_JINJA_CONSTANT:
        return n->value;
    case ATT_JINJA_NAME:
        return variable(s, n->text);
    case ATT_JINJA_CONTENT:
        return s->content;
    case ATT_JINJA_NEW_LIST:
        return new_list(s, n, ATT_JINJA_LIST);
    case ATT_JINJA_NEW_TUPLE:
        return new_list(s, n, ATT_JINJA_TUPLE);
    case ATT_JINJA_NEW_DICT:
        return new_dict(s, n);
    case ATT_JINJA_SLICE:
        return slice(s, n);
    case ATT_JINJA_SIGN:
        return sign(s, n);
    case ATT_JINJA_COMPARE:
        return comparison(s, n);
    case ATT_JINJA_NOT:
        return att_jinja_bool(!att_jinja_truth(att_jinja_evaluate(s, n->a)));
    case ATT_JINJA_AND:
        v = att_jinja_evaluate(s, n->a);
        return att_jinja_truth(v) ? att_jinja_evaluate(s, n->b) : v;
    case ATT_JINJA_OR:
        v = att_jinja_evaluate(s, n->a);
        return att_jinja_truth(v) ? v : att_jinja_evaluate(s, n->b);
    case ATT_JINJA_IF_ELSE:
        if (att_jinja_truth(att_jinja_evaluate(s, n->a)))
            return att_jinja_evaluate(s, n->b);
        return n->c ? att_jinja_evaluate(s, n->c) : att_jinja_undefined();
    default:
        return apply(s, n);
    }
}

att_jinja_value att_jinja_evaluate(att_jinja_state *s, const att_jinja_node *n)
{
    att_jinja_enter(s);
    s->line = n->line;
    const att_jinja_value v = evaluate(s, n);
    att_jinja_leave(s);
    return v;
}
