/* Ragged recurrent layers. One matrix product computes the input's part of the gates for all tokens; then each time
 * step has one product with the states of the sequences that are still running. Sequences are sorted by descending
 * length, so these are the first ones, and nothing is padded. */
#include "tape/recurrent.h"
#include "gemm/gemm.h"

#include <stdlib.h>
#include <string.h>

typedef struct sequence {
    int64_t number; /* index in the caller's order */
    int64_t first;  /* row of its first step */
    int64_t length;
} sequence;

/* Hidden or cell states: after each token, and before the first step. */
typedef struct states {
    const float *row;
    int64_t stride;
    const float *start; /* [n, units], or zeros [units] with stride 0 */
    int64_t start_stride;
} states;

/* Used by forward and backward. */
typedef struct frame {
    const att_cell *cell;
    const sequence *sequence; /* [n], in descending length */
    int64_t n, units;
    int64_t step; /* row distance of consecutive steps: 1 or -1 */
    float *gates; /* [tokens, gates + 1, units] */
    states h, c;
} frame;

/* Returns the state of a sequence before step `at`, [units] */
static const float *before(const frame *f, const states *x, const sequence *s, int64_t at)
{
    return at ? x->row + (s->first + (at - 1) * f->step) * x->stride : x->start + s->number * x->start_stride;
}

static float *gates_of(const frame *f, int64_t row) { return f->gates + row * (f->cell->gates + 1) * f->units; }

/* Returns the number of sequences still running at step `at`; `running`: that of a neighboring step. */
static int64_t running_at(const frame *f, int64_t at, int64_t running)
{
    while (running < f->n && f->sequence[running].length > at)
        running++;
    while (running > 0 && f->sequence[running - 1].length <= at)
        running--;
    return running;
}

/* ---- backward: the gradient of a state is dy plus, through the gates, that of the next step. Gradients of gates are
 * stored for all tokens, so that the gradients of the weights are one product each. */

typedef struct recurrent_backward_job {
    const att_kernels *k;
    const frame *f;
    int64_t at;      /* time step */
    const float *dy; /* [tokens, units] */
    float *h;        /* [tokens, units]: copies of the states before each step */
    float *d;        /* [tokens, gates, units]: gradients by the input's part of the gates */
    float *dproduct; /* [n, gates, units]: gradients by the product of this step */
    float *dh, *dc;  /* [n, units], in the order of f->sequence */
} recurrent_backward_job;

static void back_step(const void *arg, int64_t from, int64_t to)
{
    const recurrent_backward_job *j = arg;
    const frame *f = j->f;
    const int64_t units = f->units, gates = f->cell->gates * units;
    for (int64_t i = from; i < to; i++) {
        const sequence *s = &f->sequence[i];
        const int64_t row = s->first + j->at * f->step;
        const float *h = before(f, &f->h, s, j->at);
        float *dh = j->dh + i * units, *d = j->d + row * gates, *dproduct = j->dproduct + i * gates;
        j->k->vector.add(units, dh, j->dy + row * units, dh);
        if (f->cell->has_cell) {
            const float *c = before(f, &f->c, s, j->at);
            j->k->layer.lstm_back(units, gates_of(f, row), c, dh, j->dc + i * units, d);
            memcpy(dproduct, d, (size_t)gates * sizeof *d);
        } else {
            j->k->layer.gru_back(units, gates_of(f, row), h, dh, d, dproduct);
        }
        memcpy(j->h + row * units, h, (size_t)units * sizeof *h);
    }
}

/* Turns derivatives by the input's part into those by the product: in a GRU the reset gate is between the product and
 * m. */
static void back_to_product(const void *arg, int64_t first, int64_t last)
{
    const recurrent_backward_job *j = arg;
    const int64_t units = j->f->units;
    for (int64_t i = first; i < last; i++) {
        float *dm = j->d + (i * j->f->cell->gates + 2) * units;
        j->k->vector.mul(units, dm, gates_of(j->f, i), dm);
    }
}

/* Reorders x [n, units] from the caller's order to that of f->sequence */
static void sort_rows(const frame *f, const float *x, float *y)
{
    for (int64_t i = 0; i < f->n; i++)
        memcpy(y + i * f->units, x + f->sequence[i].number * f->units, (size_t)f->units * sizeof *y);
}

/* Processes all time steps: j->d, j->h, j->dh and j->dc */
static att_status back_steps(att_tape *t, const att_step *s, recurrent_backward_job *j)
{
    const frame *f = j->f;
    const int64_t gates = f->cell->gates * f->units, tokens = s->y->value.dim[0];
    const float *dlast = s->y->grad + tokens * f->units;
    const bool floats = att_param_block_count(s->param[1]) == 0;
    float *packed = att_tape_scratch(t, att_gemm_packed_count(t->ctx, f->units, gates));
    float *w = att_tape_scratch(t, floats ? 0 : (size_t)(gates * f->units));
    if (!w || !packed)
        return ATT_ERR_MEMORY;
    att_gemm_pack(t->ctx, f->units, gates, att_param_read_block(s->param[1], 0, gates, w), 1, f->units, packed);
    sort_rows(f, dlast, j->dh);
    if (f->cell->has_cell)
        sort_rows(f, dlast + f->n * f->units, j->dc);
    int64_t running = 0;
    for (j->at = f->n ? f->sequence[0].length - 1 : -1; j->at >= 0; j->at--) {
        running = running_at(f, j->at, running);
        att_tape_for_rows(t->ctx, running, gates, back_step, j);
        att_gemm(t->ctx, &(const att_gemm_args){.m = running,
                                                .n = f->units,
                                                .k = gates,
                                                .a = j->dproduct,
                                                .lda = gates,
                                                .packed = packed,
                                                .c = j->dh,
                                                .ldc = f->units,
                                                .epilogue = &(const att_epilogue){.add = true}});
    }
    return ATT_OK;
}

static void start_back(const att_kernels *k, const frame *f, att_var *start, const float *d)
{
    float *grad = start ? att_tape_grad(start) : NULL;
    for (int64_t i = 0; grad && i < f->n; i++) {
        float *to = grad + f->sequence[i].number * f->units;
        k->vector.add(f->units, to, d + i * f->units, to);
    }
}

att_status att_recurrent_back(att_tape *t, const att_step *s)
{
    const frame *f = s->saved;
    const att_tensor *x = &s->in[0]->value;
    const int64_t tokens = x->dim[0], units = f->units, gates = f->cell->gates * units;
    const size_t states = att_size_mul((size_t)f->n, (size_t)units);
    recurrent_backward_job j = {.k = att_kernels_of(t->ctx->isa),
                                .f = f,
                                .dy = s->y->grad,
                                .h = att_tape_scratch(t, att_size_mul((size_t)tokens, (size_t)units)),
                                .d = att_tape_scratch(t, att_size_mul((size_t)tokens, (size_t)gates)),
                                .dproduct = att_tape_scratch(t, att_size_mul((size_t)f->n, (size_t)gates)),
                                .dh = att_tape_scratch(t, states),
                                .dc = att_tape_scratch(t, states)};
    if (!j.h || !j.d || !j.dproduct || !j.dh || !j.dc)
        return ATT_ERR_MEMORY;
    att_status e = back_steps(t, s, &j);
    if (!e && s->in[0]->grad)
        e = att_tape_input_back(t, j.d, s->in[0], s->param[0]);
    e = e ? e : att_tape_weight_back(t, tokens, j.d, x->data, s->param[0], s->param[2]);
    if (!e && !f->cell->has_cell)
        att_tape_for_rows(t->ctx, tokens, units, back_to_product, &j);
    e = e ? e : att_tape_weight_back(t, tokens, j.d, j.h, s->param[1], s->param[3]);
    if (e)
        return e;
    start_back(j.k, f, s->in[1], j.dh);
    start_back(j.k, f, s->in[2], j.dc);
    return ATT_OK;
}

/* The states after the last steps are views of the variable that also has the outputs. */
const att_operation att_operation_last_states = {.name = "last_states"};

/* ---- forward */

typedef struct step_job {
    const att_kernels *k;
    const frame *f;
    int64_t at;     /* time step */
    float *product; /* [n, gates, units], in the order of f->sequence */
    float *now;     /* [n, units]: the left operand of the product: states */
    float *y;       /* [tokens, units] */
} step_job;

static void one_step(const void *arg, int64_t from, int64_t to)
{
    const step_job *j = arg;
    const frame *f = j->f;
    const int64_t units = f->units;
    for (int64_t i = from; i < to; i++) {
        const sequence *s = &f->sequence[i];
        const int64_t row = s->first + j->at * f->step;
        float *y = j->y + row * units;
        const float *product = j->product + i * f->cell->gates * units;
        if (f->cell->has_cell)
            j->k->layer.lstm(units, product, before(f, &f->c, s, j->at), gates_of(f, row), y);
        else
            j->k->layer.gru(units, product, before(f, &f->h, s, j->at), gates_of(f, row), y);
        memcpy(j->now + i * units, y, (size_t)units * sizeof *y);
    }
}

/* Computes y [tokens, units] from gates, which have the input's part; weight is packed, bias may be NULL. */
static void all_steps(att_tape *t, step_job *j, const float *weight, const float *bias)
{
    const frame *f = j->f;
    const int64_t units = f->units, gates = f->cell->gates * units;
    for (int64_t i = 0; i < f->n; i++)
        memcpy(j->now + i * units, before(f, &f->h, &f->sequence[i], 0), (size_t)units * sizeof *j->now);
    int64_t running = f->n;
    for (j->at = 0; (running = running_at(f, j->at, running)) > 0; j->at++) {
        att_gemm(t->ctx, &(const att_gemm_args){.m = running,
                                                .n = gates,
                                                .k = units,
                                                .a = j->now,
                                                .lda = units,
                                                .packed = weight,
                                                .c = j->product,
                                                .ldc = gates,
                                                .epilogue = &(const att_epilogue){.bias = bias}});
        att_tape_for_rows(t->ctx, running, gates, one_step, j);
    }
}

/* Copies the states after the last steps to y [n, units], in the caller's order */
static void copy_last(const frame *f, const states *x, float *y)
{
    for (int64_t i = 0; i < f->n; i++) {
        const sequence *s = &f->sequence[i];
        memcpy(y + s->number * f->units, before(f, x, s, s->length), (size_t)f->units * sizeof *y);
    }
}

static int longest_first(const void *a, const void *b)
{
    const sequence *s = a, *r = b;
    return s->length != r->length ? (s->length < r->length) - (s->length > r->length)
                                  : (s->number > r->number) - (s->number < r->number);
}

static const sequence *sort_sequences(att_tape *t, const int64_t *offsets, int64_t n, bool reverse)
{
    sequence *s = att_arena_alloc(&t->arena, att_size_mul((size_t)n, sizeof *s));
    for (int64_t i = 0; s && i < n; i++)
        s[i] = (sequence){i, reverse ? offsets[i + 1] - 1 : offsets[i], offsets[i + 1] - offsets[i]};
    if (s)
        qsort(s, (size_t)n, sizeof *s, longest_first);
    return s;
}

static bool has_shape(att_tape *t, const att_cell *cell, const char *name, const att_tensor *x, int rank,
                      const int64_t *dim)
{
    att_tensor expected;
    att_wrap(&expected, NULL, ATT_F32, rank, dim, NULL);
    if (x && !att_same_shape(x, &expected))
        att_tape_fail(t, ATT_ERR_SHAPE, "%s: %s is %s, not %s", cell->op->name, name, att_shape_of(x).text,
                      att_shape_of(&expected).text);
    return !t->status;
}

static bool check(att_tape *t, const att_cell *cell, const att_tensor *x, const int64_t *offsets, int64_t n,
                  const att_recurrent *o)
{
    const char *op = cell->op->name;
    const att_tensor *w = o->weight_hh ? att_param_value(o->weight_hh) : NULL;
    if (!o->weight_ih || !w)
        att_tape_fail(t, ATT_ERR_ARGUMENT, "%s: %s is NULL", op, w ? "weight_ih" : "weight_hh");
    else if (x->rank != 2)
        att_tape_fail(t, ATT_ERR_SHAPE, "%s: x is %s, not [tokens, features]", op, att_shape_of(x).text);
    else if (w->rank != 2)
        att_tape_fail(t, ATT_ERR_SHAPE, "%s: weight_hh is %s, not a matrix", op, att_shape_of(w).text);
    else if (o->initial.cell && !cell->has_cell)
        att_tape_fail(t, ATT_ERR_ARGUMENT, "%s: initial.cell is given, but there are no cells", op);
    if (t->status || !att_tape_check_offsets(t, op, x, offsets, n))
        return false;
    const int64_t units = w->dim[1], gates = cell->gates * units;
    const att_tensor *b_ih = o->bias_ih ? att_param_value(o->bias_ih) : NULL;
    const att_tensor *b_hh = o->bias_hh ? att_param_value(o->bias_hh) : NULL;
    const att_tensor *h = o->initial.hidden ? &o->initial.hidden->value : NULL;
    const att_tensor *c = o->initial.cell ? &o->initial.cell->value : NULL;
    return has_shape(t, cell, "weight_hh", w, 2, (const int64_t[]){gates, units}) &&
           has_shape(t, cell, "weight_ih", att_param_value(o->weight_ih), 2, (const int64_t[]){gates, x->dim[1]}) &&
           has_shape(t, cell, "bias_ih", b_ih, 1, &gates) && has_shape(t, cell, "bias_hh", b_hh, 1, &gates) &&
           has_shape(t, cell, "initial.hidden", h, 2, (const int64_t[]){n, units}) &&
           has_shape(t, cell, "initial.cell", c, 2, (const int64_t[]){n, units});
}

/* Fills the frame; f->cell and f->n are set already. */
static bool make_frame(att_tape *t, frame *f, const int64_t *offsets, bool reverse, const att_var *y,
                       const att_recurrent_state *start)
{
    const int64_t units = f->units = y->value.dim[1], width = (f->cell->gates + 1) * units;
    f->step = reverse ? -1 : 1;
    f->sequence = sort_sequences(t, offsets, f->n, reverse);
    f->gates = att_tape_scratch(t, att_size_mul((size_t)y->value.dim[0], (size_t)width));
    float *zeros = att_tape_scratch(t, (size_t)units);
    if (!f->sequence || !f->gates || !zeros)
        return false;
    memset(zeros, 0, (size_t)units * sizeof *zeros);
    const float *h = start->hidden ? start->hidden->value.data : zeros;
    const float *c = start->cell ? start->cell->value.data : zeros;
    f->h = (states){y->value.data, units, h, h == zeros ? 0 : units};
    f->c = (states){f->gates + width - units, width, c, c == zeros ? 0 : units};
    return true;
}

static bool compute(att_tape *t, const frame *f, const att_tensor *x, const att_recurrent *o, float *y)
{
    const int64_t gates = f->cell->gates * f->units, in = x->dim[1];
    const float *weight_ih = att_param_packed(o->weight_ih), *weight_hh = att_param_packed(o->weight_hh);
    const float *bias_ih = o->bias_ih ? att_param_floats(o->bias_ih) : NULL;
    const float *bias_hh = o->bias_hh ? att_param_floats(o->bias_hh) : NULL;
    step_job j = {.k = att_kernels_of(t->ctx->isa),
                  .f = f,
                  .product = att_tape_scratch(t, att_size_mul((size_t)f->n, (size_t)gates)),
                  .now = att_tape_scratch(t, att_size_mul((size_t)f->n, (size_t)f->units)),
                  .y = y};
    if (!weight_ih || !weight_hh || (o->bias_ih && !bias_ih) || (o->bias_hh && !bias_hh) || !j.product || !j.now)
        return false;
    att_gemm(t->ctx, &(const att_gemm_args){.m = x->dim[0],
                                            .n = gates,
                                            .k = in,
                                            .a = x->data,
                                            .lda = in,
                                            .packed = weight_ih,
                                            .c = f->gates,
                                            .ldc = gates + f->units,
                                            .epilogue = &(const att_epilogue){.bias = bias_ih}});
    all_steps(t, &j, weight_hh, bias_hh);
    return true;
}

/* Returns view number `part` of those after the outputs, [n, units]. */
static att_var *last_state(att_tape *t, att_var *all, att_var *y, int64_t n, int part)
{
    const int64_t units = y->value.dim[1], at = (y->value.dim[0] + part * n) * units;
    att_var *last = att_tape_part(t, all, at, 2, (const int64_t[]){n, units});
    return att_tape_end(t, &att_operation_last_states, last, &y, 1, NULL, 0);
}

static att_var *apply(att_tape *t, const att_cell *cell, att_var *x, const int64_t *offsets, int64_t n,
                      const att_recurrent *o, att_recurrent_state *last)
{
    const int64_t tokens = x->value.dim[0], units = att_param_value(o->weight_hh)->dim[1];
    att_var *all = att_tape_var(t, 2, (const int64_t[]){tokens + (cell->has_cell ? 2 : 1) * n, units});
    att_var *y = all ? att_tape_part(t, all, 0, 2, (const int64_t[]){tokens, units}) : NULL;
    if (!y)
        return NULL;
    frame f = {.cell = cell, .n = n};
    float *to = all->value.data, *last_states = to + tokens * units;
    const size_t mark = att_arena_mark(&t->arena);
    bool good = make_frame(t, &f, offsets, o->reverse, y, &o->initial);
    const size_t scratch = att_arena_mark(&t->arena);
    good = good && compute(t, &f, &x->value, o, to);
    if (!good)
        return att_tape_fail(t, ATT_ERR_MEMORY, "%s: %s", cell->op->name, att_error(t->ctx));
    copy_last(&f, &f.h, last_states);
    if (cell->has_cell)
        copy_last(&f, &f.c, last_states + n * units);
    const att_step step = {.op = cell->op,
                           .y = y,
                           .in = (att_var *[]){x, o->initial.hidden, o->initial.cell},
                           .n_in = 3,
                           .param = (att_param *[]){o->weight_ih, o->weight_hh, o->bias_ih, o->bias_hh},
                           .n_param = 4,
                           .saved = &f,
                           .saved_bytes = sizeof f};
    att_arena_release(&t->arena, att_tape_learns(t, &step) ? scratch : mark);
    y = att_tape_done(t, &step, NULL, NULL);
    if (last && y)
        *last = (att_recurrent_state){last_state(t, all, y, n, 0), cell->has_cell ? last_state(t, all, y, n, 1) : NULL};
    return t->status ? NULL : y;
}

att_var *att_recurrent_apply(att_tape *t, const att_cell *cell, att_var *x, const int64_t *offsets, int64_t n,
                             const att_recurrent *options, att_recurrent_state *last)
{
    att_recurrent o;
    if (last)
        *last = (att_recurrent_state){0};
    if (!x || !att_tape_ready(t))
        return NULL;
    if (!options)
        return att_tape_fail(t, ATT_ERR_ARGUMENT, "%s: options is NULL", cell->op->name);
    const bool good = att_tape_options_read(t, cell->op->name, &o, sizeof o, options, "att_recurrent");
    return good && check(t, cell, &x->value, offsets, n, &o) ? apply(t, cell, x, offsets, n, &o, last) : NULL;
}
