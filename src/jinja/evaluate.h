/* Evaluates a template's tree. */
#ifndef ATT_JINJA_EVALUATE_H
#define ATT_JINJA_EVALUATE_H

#include "jinja/tree.h"

/* Variables by name; a loop, a macro and some blocks have a scope of their own. */
typedef struct att_jinja_scope {
    struct att_jinja_scope *parent;
    att_jinja_value variables; /* a dict */
} att_jinja_scope;
att_jinja_scope *att_jinja_scope_new(att_jinja_state *s, att_jinja_scope *parent);

att_jinja_value att_jinja_evaluate(att_jinja_state *s, const att_jinja_node *n);
/* Calls a value that may not be one that can be called. */
att_jinja_value att_jinja_call(att_jinja_state *s, att_jinja_value f, const att_jinja_arguments *a);
/* Evaluates the arguments of a call, a filter or a test. */
att_jinja_arguments att_jinja_evaluate_arguments(att_jinja_state *s, const att_jinja_node *n);
/* Applies a filter by name. */
att_jinja_value att_jinja_apply_filter(att_jinja_state *s, const att_jinja_string *name, att_jinja_value v,
                                       const att_jinja_arguments *a);

/* Executes statements, which write to s->out. */
void att_jinja_execute(att_jinja_state *s, const att_jinja_body *body);

#endif
