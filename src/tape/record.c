/* The end of an operation: its values are checked, its step is recorded for backward, the hook is called. */
#include "tape/tape.h"

static bool any_learns(const att_step *s)
{
    bool does = false;
    for (int i = 0; i < s->n_param; i++)
        does |= s->param[i] && !att_param_frozen(s->param[i]);
    return does;
}

bool att_tape_learns(const att_tape *t, const att_step *step)
{
    bool does = any_learns(step) || (step->op == &att_operation_recompute && t->learns);
    for (int i = 0; i < step->n_in; i++)
        does |= step->in[i] && step->in[i]->requires_grad;
    return t->record && does;
}

/* Notes that a backward needs the value of x, or of its base if x is a view. */
static void need_value(att_var *x)
{
    x->value_needed = true;
    if (x->base)
        x->base->value_needed = true;
}

/* Records a step for backward. */
static bool record(att_tape *t, const att_step *step)
{
    att_step s = *step;
    if (!att_tape_learns(t, step)) {
        s.y->unrecorded = true;
        return true;
    }
    for (int i = 0; i < s.n_in; i++)
        if (s.in[i]) {
            s.in[i]->readers++;
            if (!(s.op->ignores_in >> i & 1))
                need_value(s.in[i]);
        }
    s.in = att_tape_save(t, s.in, (size_t)s.n_in * sizeof(att_var *));
    s.param = att_tape_save(t, s.param, (size_t)s.n_param * sizeof(att_param *));
    s.saved = att_tape_save(t, s.saved, s.saved_bytes);
    s.scope = att_tape_scope_path(t);
    s.y->step = t->status ? NULL : att_tape_save(t, &s, sizeof s);
    s.y->requires_grad = true;
    return s.y->step;
}

/* Checks that a recomputed function uses only its own inputs: when it runs again, it reads the values of its original
 * call. */
static bool own_inputs(att_tape *t, const att_step *step)
{
    for (int i = 0; i < step->n_in; i++)
        if (step->in[i] && step->in[i]->made <= t->own_mark)
            att_tape_fail(t, ATT_ERR_ARGUMENT, "%s: recompute's function uses a variable that it was not given",
                          step->op->name);
    return !t->status;
}

att_var *att_tape_done(att_tape *t, const att_step *step, const att_plan *plan, const att_attention_args *args)
{
    if (t->own_mark && !own_inputs(t, step))
        return NULL;
    if (t->status || (t->detect_anomaly && !att_tape_check_finite(t, step)) || (t->record && !record(t, step)))
        return NULL;
    t->learns |= any_learns(step);
    att_tape_tell(t, step->op->name, &step->y->value, plan, args);
    return step->y;
}

att_var *att_tape_end(att_tape *t, const att_operation *op, att_var *y, att_var *const *in, int n_in, const void *saved,
                      size_t saved_bytes)
{
    const att_step step = {.op = op, .y = y, .in = in, .n_in = n_in, .saved = saved, .saved_bytes = saved_bytes};
    return y ? att_tape_done(t, &step, NULL, NULL) : NULL;
}
