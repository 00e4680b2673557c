/* Finds the operation that produced the first value that is not finite (att_tape_config.detect_anomaly). */
#include "tape/tape.h"

#include <math.h>

/* Returns the index of the first value of x [n] that is not finite; n: none. */
static int64_t first_not_finite(int64_t n, const float *x)
{
    int64_t i = 0;
    while (i < n && isfinite(x[i]))
        i++;
    return i;
}

/* A value that is not finite, and its position. */
typedef struct anomaly {
    const att_tensor *of; /* NULL: none */
    float x;
    int64_t at;
} anomaly;

static anomaly find_anomaly(const att_tensor *of, const float *x)
{
    const int64_t n = att_count(of), i = first_not_finite(n, x);
    return i < n ? (anomaly){of, isnan(x[i]) ? NAN : x[i], i} : (anomaly){0}; /* NaN without its sign */
}

/* Checks the inputs of a step: the caller's data and parameters. */
static anomaly check_inputs(const att_step *s, const char **what, int *which)
{
    anomaly o = {0};
    *what = "input";
    for (*which = 0; *which < s->n_in; ++*which)
        if (s->in[*which] && (o = find_anomaly(&s->in[*which]->value, s->in[*which]->value.data)).of)
            return o;
    *what = "parameter";
    for (*which = 0; *which < s->n_param; ++*which) {
        const att_tensor *x = s->param[*which] ? att_param_value(s->param[*which]) : NULL;
        if (x && x->dtype == ATT_F32 && att_is_dense(x) && (o = find_anomaly(x, x->data)).of)
            return o;
    }
    return o;
}

bool att_tape_check_finite(att_tape *t, const att_step *s)
{
    const anomaly made = find_anomaly(&s->y->value, s->y->value.data);
    const char *what;
    int which;
    if (!made.of)
        return true;
    const anomaly given = check_inputs(s, &what, &which);
    if (given.of)
        att_tape_fail(t, ATT_ERR_ARGUMENT, "%s was given %g: number %lld of its %s %d, %s", s->op->name,
                      (double)given.x, (long long)given.at, what, which, att_shape_of(given.of).text);
    else
        att_tape_fail(t, ATT_ERR_ARGUMENT, "%s made %g from finite numbers: number %lld of its result, %s", s->op->name,
                      (double)made.x, (long long)made.at, att_shape_of(made.of).text);
    return false;
}

static att_status back_made(const att_tape *t, const att_step *s, const anomaly *o, const char *what, int which)
{
    return att_fail(t->ctx, ATT_ERR_ARGUMENT,
                    "%s%s%s, backward, made %g from finite numbers: number %lld of the gradient of its %s %d, %s",
                    s->scope, *s->scope ? ": " : "", s->op->name, (double)o->x, (long long)o->at, what, which,
                    att_shape_of(o->of).text);
}

att_status att_tape_check_finite_grads(const att_tape *t, const att_step *s)
{
    anomaly o;
    for (int i = 0; i < s->n_in; i++)
        if (s->in[i] && s->in[i]->grad && att_tape_begun(s->in[i]) &&
            (o = find_anomaly(&s->in[i]->value, s->in[i]->grad)).of)
            return back_made(t, s, &o, "input", i);
    for (int i = 0; i < s->n_param; i++) {
        const float *grad = att_param_partial(s->param[i]);
        if (grad && (o = find_anomaly(att_param_value(s->param[i]), grad)).of)
            return back_made(t, s, &o, "parameter", i);
    }
    return ATT_OK;
}
