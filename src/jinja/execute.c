/* Executes statements: output, loops, conditions, assignments, macros. */
#include "jinja/access.h"
#include "jinja/evaluate.h"

typedef enum flow { NEXT, BREAK, CONTINUE } flow;

static flow execute(att_jinja_state *s, const att_jinja_body *body);

/* Executes a body, which has no jumps out of it, in a scope. Returns its text. */
static const att_jinja_string *capture(att_jinja_state *s, const att_jinja_body *body, att_jinja_scope *scope)
{
    att_jinja_builder b = {.s = s}, *const out = s->out;
    att_jinja_scope *const before = s->scope;
    s->out = &b;
    s->scope = scope;
    execute(s, body);
    s->out = out;
    s->scope = before;
    return att_jinja_built(&b);
}

/* ---- assignments */

static void assign(att_jinja_state *s, const att_jinja_node *to, att_jinja_value v)
{
    if (to->kind == ATT_JINJA_NAME) {
        att_jinja_put(s, s->scope->variables, att_jinja_string_value(to->text), v);
    } else if (to->kind == ATT_JINJA_ATTRIBUTE) {
        const att_jinja_value object = att_jinja_evaluate(s, to->a);
        if (object.type != ATT_JINJA_NAMESPACE)
            att_jinja_fail(s, "%.60s is not a namespace, so its attributes cannot be set", to->a->text->data);
        att_jinja_put(s, object, att_jinja_string_value(to->text), v);
    } else {
        const att_jinja_list *l = att_jinja_iterate(s, v).list;
        if (l->n != to->list.n)
            att_jinja_fail(s, "%zu values for %zu names", l->n, to->list.n);
        for (size_t i = 0; i < l->n; i++)
            assign(s, to->list.node[i], l->item[i]);
    }
}

/* Returns the text of a block, through its filters. */
static att_jinja_value filtered(att_jinja_state *s, const att_jinja_node *n)
{
    const att_jinja_value before = s->content;
    const att_jinja_string *text = capture(s, &n->body, att_jinja_scope_new(s, s->scope));
    s->content = att_jinja_string_value(text);
    const att_jinja_value v = att_jinja_evaluate(s, n->b);
    s->content = before;
    return v;
}

/* ---- loops */

static att_jinja_value run_loop(att_jinja_state *s, const att_jinja_node *n, att_jinja_value all, int depth);

/* Runs a recursive loop over other items: what loop(items) writes. */
static att_jinja_value recurse(att_jinja_state *s, const att_jinja_value *self, const att_jinja_arguments *a)
{
    const att_jinja_loop *loop = self->loop;
    if (!loop->node)
        att_jinja_fail(s, "the loop is called, but is not recursive");
    if (a->n != 1)
        att_jinja_fail(s, "loop takes one argument");
    att_jinja_builder b = {.s = s}, *const out = s->out;
    att_jinja_scope *const before = s->scope;
    s->out = &b;
    s->scope = loop->scope;
    run_loop(s, loop->node, a->value[0], loop->depth + 1);
    s->out = out;
    s->scope = before;
    return att_jinja_built_value(&b);
}

/* Returns the items for which the condition of a loop is true. */
static att_jinja_value chosen(att_jinja_state *s, const att_jinja_node *n, att_jinja_value items)
{
    const att_jinja_value out = att_jinja_list_new(s, ATT_JINJA_LIST);
    att_jinja_scope *const before = s->scope;
    for (size_t i = 0; i < items.list->n; i++) {
        s->scope = att_jinja_scope_new(s, before);
        assign(s, n->a, items.list->item[i]);
        if (att_jinja_truth(att_jinja_evaluate(s, n->c)))
            att_jinja_push(s, out, items.list->item[i]);
    }
    s->scope = before;
    return out;
}

static att_jinja_value run_loop(att_jinja_state *s, const att_jinja_node *n, att_jinja_value all, int depth)
{
    att_jinja_scope *const before = s->scope;
    att_jinja_value items = att_jinja_iterate(s, all);
    flow f = NEXT;
    att_jinja_enter(s);
    if (n->c)
        items = chosen(s, n, items);
    att_jinja_loop *loop = att_jinja_alloc(s, 1, sizeof *loop);
    *loop = (att_jinja_loop){.items = items.list, .depth = depth, .node = n->flag ? n : NULL, .scope = before};
    loop->recurse = recurse;
    for (; f != BREAK && loop->at < items.list->n; loop->at++) {
        s->scope = att_jinja_scope_new(s, before);
        att_jinja_put_named(s, s->scope->variables, "loop", (att_jinja_value){ATT_JINJA_LOOP, {.loop = loop}});
        assign(s, n->a, items.list->item[loop->at]);
        f = execute(s, &n->body);
    }
    s->scope = before;
    att_jinja_leave(s);
    return items;
}

static flow execute_for(att_jinja_state *s, const att_jinja_node *n)
{
    const att_jinja_value items = run_loop(s, n, att_jinja_evaluate(s, n->b), 1);
    if (items.list->n > 0 || n->other.n == 0)
        return NEXT;
    att_jinja_scope *const before = s->scope;
    s->scope = att_jinja_scope_new(s, before);
    const flow f = execute(s, &n->other);
    s->scope = before;
    return f;
}

/* ---- macros */

static bool is_parameter(const att_jinja_node *n, const att_jinja_string *name)
{
    bool is = false;
    for (size_t i = 0; !is && i < n->named; i++)
        is = att_jinja_same(n->names[i], name->data);
    return is;
}

/* Sets varargs, kwargs and caller: the arguments that are not parameters. Fails if the macro does not use them. */
static void bind_extra(att_jinja_state *s, const att_jinja_node *n, const att_jinja_arguments *a,
                       att_jinja_scope *scope)
{
    const att_jinja_value more = att_jinja_list_new(s, ATT_JINJA_TUPLE), named = att_jinja_dict_new(s, ATT_JINJA_DICT);
    att_jinja_value caller = att_jinja_undefined();
    for (size_t i = n->named; i < a->n; i++)
        att_jinja_push(s, more, a->value[i]);
    for (size_t i = 0; i < a->named; i++) {
        if (att_jinja_same(a->names[i], "caller") && (n->extra & ATT_JINJA_CALLER))
            caller = a->value[a->n + i];
        else if (!is_parameter(n, a->names[i]))
            att_jinja_put(s, named, att_jinja_string_value(a->names[i]), a->value[a->n + i]);
    }
    if (more.list->n > 0 && !(n->extra & ATT_JINJA_VARARGS))
        att_jinja_fail(s, "a macro with %zu parameters has %zu arguments", n->named, a->n);
    if (named.dict->n > 0 && !(n->extra & ATT_JINJA_KWARGS))
        att_jinja_fail(s, "a macro has no parameter \"%.60s\"", named.dict->key[0].string->data);
    const att_jinja_value values[] = {more, named, caller};
    static const char *const names[] = {"varargs", "kwargs", "caller"};
    for (int i = 0; i < 3; i++)
        if (n->extra & 1 << i)
            att_jinja_put_named(s, scope->variables, names[i], values[i]);
}

/* Sets the parameters of a macro. */
static void bind(att_jinja_state *s, const att_jinja_node *n, const att_jinja_arguments *a, att_jinja_scope *scope)
{
    bind_extra(s, n, a, scope);
    for (size_t i = 0; i < n->named; i++) {
        const att_jinja_value *given = att_jinja_argument(a, i, n->names[i]->data);
        att_jinja_value v = {ATT_JINJA_UNDEFINED, {.string = n->names[i]}};
        if (given)
            v = *given;
        else if (n->list.node[i])
            v = att_jinja_evaluate(s, n->list.node[i]);
        att_jinja_put(s, scope->variables, att_jinja_string_value(n->names[i]), v);
    }
}

static att_jinja_value call_macro(att_jinja_state *s, const att_jinja_value *self, const att_jinja_arguments *a)
{
    const att_jinja_node *n = self->callable->node;
    att_jinja_scope *const before = s->scope, *const scope = att_jinja_scope_new(s, self->callable->scope);
    const int line = s->line;
    att_jinja_enter(s);
    s->scope = scope;
    bind(s, n, a, scope);
    s->scope = before;
    const att_jinja_value v = att_jinja_string_value(capture(s, &n->body, scope));
    att_jinja_leave(s);
    s->line = line;
    return v;
}

static att_jinja_value make_macro(att_jinja_state *s, const att_jinja_node *n)
{
    att_jinja_callable *c = att_jinja_alloc(s, 1, sizeof *c);
    *c = (att_jinja_callable){.call = call_macro, .node = n, .scope = s->scope};
    return (att_jinja_value){ATT_JINJA_CALLABLE, {.callable = c}};
}

/* Calls a macro with a body, which it calls by the name "caller". */
static att_jinja_value call_block(att_jinja_state *s, const att_jinja_node *n)
{
    static const att_jinja_string caller = {.data = "caller", .bytes = 6};
    const att_jinja_arguments a = att_jinja_evaluate_arguments(s, n->a);
    const size_t all = a.n + a.named;
    att_jinja_value *values = att_jinja_alloc(s, all + 1, sizeof *values);
    const att_jinja_string **names = att_jinja_alloc(s, a.named + 1, sizeof *names);
    for (size_t i = 0; i < all; i++)
        values[i] = a.value[i];
    for (size_t i = 0; i < a.named; i++)
        names[i] = a.names[i];
    values[all] = make_macro(s, n);
    names[a.named] = &caller;
    const att_jinja_arguments more = {values, names, a.n, a.named + 1};
    return att_jinja_call(s, att_jinja_evaluate(s, n->a->a), &more);
}

/* ---- statements */

static void print(att_jinja_state *s, att_jinja_value v) { att_jinja_add_string(s->out, att_jinja_str(s, v)); }

static flow execute_scope(att_jinja_state *s, const att_jinja_node *n)
{
    att_jinja_scope *const before = s->scope, *const scope = att_jinja_scope_new(s, before);
    for (size_t i = 0; i < n->list.n; i++) {
        const att_jinja_node *set = n->list.node[i];
        att_jinja_put(s, scope->variables, att_jinja_string_value(set->a->text), att_jinja_evaluate(s, set->b));
    }
    s->scope = scope;
    const flow f = execute(s, &n->body);
    s->scope = before;
    return f;
}

static flow execute_if(att_jinja_state *s, const att_jinja_node *n)
{
    while (!att_jinja_truth(att_jinja_evaluate(s, n->a))) {
        if (!n->c)
            return execute(s, &n->other);
        n = n->c;
    }
    return execute(s, &n->body);
}

static flow execute_one(att_jinja_state *s, const att_jinja_node *n)
{
    s->line = n->line;
    switch (n->kind) {
    case ATT_JINJA_DATA:
        att_jinja_add_string(s->out, n->value.string);
        break;
    case ATT_JINJA_PRINT:
        print(s, att_jinja_evaluate(s, n->a));
        break;
    case ATT_JINJA_FOR:
        return execute_for(s, n);
    case ATT_JINJA_IF:
        return execute_if(s, n);
    case ATT_JINJA_SET:
        assign(s, n->a, att_jinja_evaluate(s, n->b));
        break;
    case ATT_JINJA_SET_BLOCK:
        assign(s, n->a, filtered(s, n));
        break;
    case ATT_JINJA_FILTER_BLOCK:
        print(s, filtered(s, n));
        break;
    case ATT_JINJA_MACRO:
        att_jinja_put(s, s->scope->variables, att_jinja_string_value(n->text), make_macro(s, n));
        break;
    case ATT_JINJA_CALL_BLOCK:
        print(s, call_block(s, n));
        break;
    case ATT_JINJA_SCOPE:
        return execute_scope(s, n);
    case ATT_JINJA_BREAK:
        return BREAK;
    case ATT_JINJA_CONTINUE:
        return CONTINUE;
    default:
        att_jinja_fail(s, "the tree of the template is wrong");
    }
    return NEXT;
}

static flow execute(att_jinja_state *s, const att_jinja_body *body)
{
    flow f = NEXT;
    att_jinja_enter(s);
    for (size_t i = 0; f == NEXT && i < body->n; i++) {
        att_jinja_work(s, 1);
        f = execute_one(s, body->node[i]);
    }
    att_jinja_leave(s);
    return f;
}

void att_jinja_execute(att_jinja_state *s, const att_jinja_body *body) { execute(s, body); }
