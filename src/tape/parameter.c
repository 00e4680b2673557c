/* Makes a variable from a parameter: a view if it is f32 and dense, otherwise a copy. */
#include "tape/tape.h"

/* ---- backward */

static att_status backward(att_tape *t, const att_step *s)
{
    float *grad = att_param_partial(s->param[0]);
    if (grad)
        att_tape_sum(t->ctx, att_count(&s->y->value), s->y->grad, grad);
    return ATT_OK;
}

const att_operation att_operation_parameter = {.name = "parameter", .backward = backward};

/* ---- forward */

att_var *att_parameter(att_tape *t, att_param *p)
{
    if (!att_tape_ready(t))
        return NULL;
    if (!p)
        return att_tape_fail(t, ATT_ERR_ARGUMENT, "use: p is NULL");
    const att_tensor *value = att_param_value(p);
    const float *x = att_param_floats(p);
    if (!x && att_count(value) > 0)
        return att_tape_fail(t, ATT_ERR_MEMORY, "use: %s", att_error(t->ctx));
    att_tensor floats;
    att_wrap(&floats, (void *)(uintptr_t)x, ATT_F32, value->rank, value->dim,
             NULL); /* cannot fail: the sizes of value */
    att_var *y = att_constant(t, &floats);
    const att_step step = {.op = &att_operation_parameter, .y = y, .param = &p, .n_param = 1};
    return y ? att_tape_done(t, &step, NULL, NULL) : NULL;
}
