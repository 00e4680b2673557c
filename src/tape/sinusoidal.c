/* Sinusoidal positions, added or appended to x */
#include "tape/tape.h"

#include <math.h>
#include <string.h>

typedef struct sinusoidal_job {
    const att_kernels *k;
    const float *x;          /* [tokens, in] */
    const float *const *row; /* [tokens] */
    float *y;                /* [tokens, out] */
    int64_t in, out, append;
} sinusoidal_job;

static void sinusoidal(const void *arg, int64_t first, int64_t last)
{
    const sinusoidal_job *j = arg;
    for (int64_t i = first; i < last; i++) {
        const float *x = j->x + i * j->in;
        float *y = j->y + i * j->out;
        if (j->append) {
            memcpy(y, x, (size_t)j->in * sizeof *y);
            memcpy(y + j->in, j->row[i], (size_t)j->append * sizeof *y);
        } else {
            j->k->vector.add(j->in, x, j->row[i], y);
        }
    }
}

/* ---- backward: the part of dy that belongs to x */

static att_status backward(att_tape *t, const att_step *s)
{
    const int64_t tokens = s->y->value.dim[0], out = s->y->value.dim[1], in = s->in[0]->value.dim[1];
    if (in == out)
        att_tape_add_grad(t, s->in[0], s->y->grad);
    else
        att_tape_blocks(t->ctx, tokens, in, s->y->grad, out, att_tape_grad(s->in[0]), in, true);
    return ATT_OK;
}

const att_operation att_operation_sinusoidal = {
    .name = "sinusoidal", .backward = backward, .ignores_y = true, .ignores_in = 1};

/* ---- forward */

static bool check(att_tape *t, const att_tensor *x, const att_sinusoidal_options *s)
{
    if (x->rank != 2)
        att_tape_fail(t, ATT_ERR_SHAPE, "sinusoidal: x is %s, not [tokens, features]", att_shape_of(x).text);
    else if (s->append < 0 || s->append > INT64_MAX - x->dim[1])
        att_tape_fail(t, ATT_ERR_ARGUMENT, "sinusoidal: append = %lld features cannot follow those of x, %s",
                      (long long)s->append, att_shape_of(x).text);
    else if (!(s->base > 0 && isfinite(s->base)))
        att_tape_fail(t, ATT_ERR_ARGUMENT, "sinusoidal: base is %g, not above 0", s->base);
    return !t->status;
}

att_var *att_sinusoidal(att_tape *t, att_var *x, const att_positions *at, const att_sinusoidal_options *options)
{
    if (!x || !att_tape_ready(t))
        return NULL;
    att_sinusoidal_options s;
    if (!att_tape_options_read(t, "sinusoidal", &s, sizeof s, options, "att_sinusoidal_options"))
        return NULL;
    s.base = s.base == 0 ? 10000 : s.base;
    if (!check(t, &x->value, &s))
        return NULL;
    const int64_t tokens = x->value.dim[0], in = x->value.dim[1], out = in + s.append;
    att_var *y = att_tape_var(t, 2, (const int64_t[]){tokens, out});
    const int64_t *position = y ? att_tape_positions(t, "sinusoidal", &x->value, at) : NULL;
    const att_sinusoid_table table = {
        .features = s.append ? s.append : in, .base = s.base, .factor = 1, .interleaved = s.interleaved};
    const float *const *row = position ? att_tape_sinusoids(t, "sinusoidal", position, tokens, &table) : NULL;
    if (!row)
        return NULL;
    const sinusoidal_job j = {.k = att_kernels_of(t->ctx->isa),
                              .x = x->value.data,
                              .row = row,
                              .y = y->value.data,
                              .in = in,
                              .out = out,
                              .append = s.append};
    att_tape_for_rows(t->ctx, tokens, out, sinusoidal, &j);
    return att_tape_end(t, &att_operation_sinusoidal, y, &x, 1, NULL, 0);
}
