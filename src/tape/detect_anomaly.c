/* Which operation made the first number that is not finite: of a tape with att_tape_config.detect_anomaly. */
#include "tape/tape.h"

#include <math.h>

/* The place of the first number of x [n] that is not finite; n: there is none. */
static int64_t first_odd(int64_t n, const float *x)
{
    int64_t i = 0;
    while (i < n && isfinite(x[i]))
        i++;
    return i;
}

/* Where such a number was found, for a sentence. */
typedef struct odd {
    const att_tensor *of; /* NULL: nowhere */
    float x;
    int64_t at;
} odd;

static odd look(const att_tensor *of, const float *x)
{
    const int64_t n = att_count(of), i = first_odd(n, x);
    return i < n ? (odd){of, isnan(x[i]) ? NAN : x[i], i} : (odd){0}; /* without the sign that a NaN may have */
}

/* What a step was given: an input of the caller's, or a parameter. */
static odd look_at_given(const att_step *s, const char **what, int *which)
{
    odd o = {0};
    *what = "input";
    for (*which = 0; *which < s->n_in; ++*which)
        if (s->in[*which] && (o = look(&s->in[*which]->value, s->in[*which]->value.data)).of)
            return o;
    *what = "parameter";
    for (*which = 0; *which < s->n_param; ++*which) {
        const att_tensor *x = s->param[*which] ? att_param_value(s->param[*which]) : NULL;
        if (x && x->dtype == ATT_F32 && att_is_dense(x) && (o = look(x, x->data)).of)
            return o;
    }
    return o;
}

bool att_tape_made_finite(att_tape *t, const att_step *s)
{
    const odd made = look(&s->y->value, s->y->value.data);
    const char *what;
    int which;
    if (!made.of)
        return true;
    const odd given = look_at_given(s, &what, &which);
    if (given.of)
        att_tape_fail(t, ATT_ERR_ARGUMENT, "%s was given %g: number %lld of its %s %d, %s", s->op->name,
                      (double)given.x, (long long)given.at, what, which, att_shape_of(given.of).text);
    else
        att_tape_fail(t, ATT_ERR_ARGUMENT, "%s made %g of finite numbers: number %lld of its result, %s", s->op->name,
                      (double)made.x, (long long)made.at, att_shape_of(made.of).text);
    return false;
}

static att_status back_made(const att_tape *t, const att_step *s, const odd *o, const char *what, int which)
{
    return att_fail(t->ctx, ATT_ERR_ARGUMENT,
                    "%s%s%s, backward, made %g of finite numbers: number %lld of the gradient of its %s %d, %s",
                    s->scope, *s->scope ? ": " : "", s->op->name, (double)o->x, (long long)o->at, what, which,
                    att_shape_of(o->of).text);
}

att_status att_tape_back_finite(const att_tape *t, const att_step *s)
{
    odd o;
    for (int i = 0; i < s->n_in; i++)
        if (s->in[i] && s->in[i]->grad && att_tape_begun(s->in[i]) && (o = look(&s->in[i]->value, s->in[i]->grad)).of)
            return back_made(t, s, &o, "input", i);
    for (int i = 0; i < s->n_param; i++)
        if (s->param[i] && (o = look(att_param_value(s->param[i]), att_param_part(s->param[i]))).of)
            return back_made(t, s, &o, "parameter", i);
    return ATT_OK;
}
