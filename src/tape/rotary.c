/* Rotary position encoding: pairs of a head's features are rotated by angles proportional to the position */
#include "tape/tape.h"

#include <math.h>
#include <string.h>

typedef struct rotary_saved {
    const float *const *row; /* [tokens]: sines, then cosines [pairs] */
    int64_t pairs;
    bool interleaved;
} rotary_saved;

typedef struct rotary_job {
    rotary_saved at;
    const att_kernels *k;
    const float *x;
    float *y; /* both [tokens, heads, dim] */
    int64_t heads, dim;
    float sign; /* 1: forward, -1: inverse rotation */
} rotary_job;

static void rotary(const void *arg, int64_t first, int64_t last)
{
    const rotary_job *j = arg;
    const int64_t pairs = j->at.pairs, rest = j->dim - 2 * pairs;
    void (*const rotate)(int64_t, float, const float *, const float *, const float *, float *) =
        j->at.interleaved ? j->k->layer.rotate_pairs : j->k->layer.rotate_halves;
    for (int64_t i = first; i < last; i++) {
        const float *sine = j->at.row[i], *x = j->x + i * j->heads * j->dim;
        float *y = j->y + i * j->heads * j->dim;
        for (int64_t h = 0; h < j->heads; h++, x += j->dim, y += j->dim) {
            rotate(pairs, j->sign, x, sine, sine + pairs, y);
            memcpy(y + 2 * pairs, x + 2 * pairs, (size_t)rest * sizeof *y);
        }
    }
}

static void rotate_rows(att_ctx *ctx, const rotary_saved *at, const att_tensor *x, float sign, const float *from,
                        float *to)
{
    const rotary_job j = {*at, att_kernels_of(ctx->isa), from, to, x->dim[1], x->dim[2], sign};
    att_tape_for_rows(ctx, x->dim[0], x->dim[1] * x->dim[2], rotary, &j);
}

/* ---- backward: the inverse rotation, by the same sines and cosines and so with the same factor */

static att_status backward(att_tape *t, const att_step *s)
{
    const att_tensor *x = &s->in[0]->value;
    float *dx = att_tape_dx(t, s->in[0]);
    if (!dx)
        return ATT_ERR_MEMORY;
    rotate_rows(t->ctx, s->saved, x, -1, s->y->grad, dx);
    att_tape_dx_end(t, s->in[0], dx);
    return ATT_OK;
}

const att_operation att_operation_rotary = {.name = "rotary", .backward = backward};

/* ---- forward */

static bool check(att_tape *t, const att_tensor *x, const att_rotary_options *o)
{
    if (x->rank != 3)
        att_tape_fail(t, ATT_ERR_SHAPE, "rotary: x is %s, not [tokens, heads, dim]", att_shape_of(x).text);
    else if (o->dims < 0 || o->dims > x->dim[2] || o->dims % 2)
        att_tape_fail(t, ATT_ERR_SHAPE, "rotary: dims = %lld, not an even part of x, %s", (long long)o->dims,
                      att_shape_of(x).text);
    else if (!(o->base > 0 && isfinite(o->base)))
        att_tape_fail(t, ATT_ERR_ARGUMENT, "rotary: base is %g, not above 0", o->base);
    else if (!(o->factor > 0 && isfinite(o->factor)))
        att_tape_fail(t, ATT_ERR_ARGUMENT, "rotary: factor is %g, not above 0", o->factor);
    for (int64_t i = 0; !t->status && o->frequencies && i < o->dims / 2; i++)
        if (!isfinite(o->frequencies[i]))
            att_tape_fail(t, ATT_ERR_ARGUMENT, "rotary: frequencies[%lld] is %g", (long long)i, o->frequencies[i]);
    return !t->status;
}

att_var *att_rotary(att_tape *t, att_var *x, const att_positions *at, const att_rotary_options *options)
{
    if (!x || !att_tape_ready(t))
        return NULL;
    att_rotary_options o;
    if (!att_tape_options_read(t, "rotary", &o, sizeof o, options, "att_rotary_options"))
        return NULL;
    o.dims = o.dims == 0 && x->value.rank == 3 ? x->value.dim[2] : o.dims;
    o.base = o.base == 0 ? 10000 : o.base;
    o.factor = o.factor == 0 ? 1 : o.factor;
    if (!check(t, &x->value, &o))
        return NULL;
    const int64_t tokens = x->value.dim[0];
    att_var *y = att_tape_var(t, 3, x->value.dim);
    const int64_t *position = y ? att_tape_positions(t, "rotary", &x->value, at) : NULL;
    const att_sinusoid_table table = {
        .features = o.dims, .base = o.base, .frequencies = o.frequencies, .factor = o.factor};
    const rotary_saved saved = {.row = position ? att_tape_sinusoids(t, "rotary", position, tokens, &table) : NULL,
                                .pairs = o.dims / 2,
                                .interleaved = o.interleaved};
    if (!saved.row)
        return NULL;
    rotate_rows(t->ctx, &saved, &x->value, 1, x->value.data, y->value.data);
    return att_tape_end(t, &att_operation_rotary, y, &x, 1, &saved, sizeof saved);
}
