/* Elementwise operations on two operands whose shapes are broadcast, and the sums of their backward */
#include "tape/tape.h"

#include <string.h>

/* Returns dimension i of y in x, whose shape is aligned from the last dimension; 1 if x has no such dimension. */
static int64_t dim_in(const att_tensor *x, const att_tensor *y, int i)
{
    const int at = i - (y->rank - x->rank);
    return at < 0 ? 1 : x->dim[at];
}

/* Finds the shape of a result of a and b, in y; false: the shapes do not fit. */
static bool broadcast_shape(const att_tensor *a, const att_tensor *b, att_tensor *y)
{
    bool fits = true;
    y->rank = a->rank > b->rank ? a->rank : b->rank;
    for (int i = 0; i < y->rank; i++) {
        const int64_t in_a = dim_in(a, y, i), in_b = dim_in(b, y, i);
        fits = fits && (in_a == in_b || in_a == 1 || in_b == 1);
        y->dim[i] = in_a == 1 ? in_b : in_a;
    }
    return fits;
}

/* ---- y = f(a, b) */

void att_binary_add(const att_kernels *k, int64_t n, const float *a, const float *b, float *y)
{
    k->vector.add(n, a, b, y);
}
void att_binary_sub(const att_kernels *k, int64_t n, const float *a, const float *b, float *y)
{
    k->vector.sub(n, a, b, y);
}
void att_binary_mul(const att_kernels *k, int64_t n, const float *a, const float *b, float *y)
{
    k->vector.mul(n, a, b, y);
}
void att_binary_div(const att_kernels *k, int64_t n, const float *a, const float *b, float *y)
{
    k->vector.div(n, a, b, y);
}

typedef struct binary_job {
    const att_kernels *k;
    att_binary *f;
    const float *x[2]; /* a and b */
    float *y;
    /* The dimensions of y from the last to the first; adjacent ones are merged if the same operands are broadcast in
     * them. */
    int rank;
    int64_t dim[ATT_MAX_RANK];
    int64_t stride[ATT_MAX_RANK][2]; /* of a and b; 0: broadcast */
} binary_job;

static void add_dim(binary_job *j, int64_t n, const int64_t stride[2])
{
    const int last = j->rank - 1;
    if (last >= 0 && !stride[0] == !j->stride[last][0] && !stride[1] == !j->stride[last][1]) {
        j->dim[last] *= n;
        return;
    }
    j->dim[j->rank] = n;
    memcpy(j->stride[j->rank++], stride, sizeof *j->stride);
}

static void set_dims(binary_job *j, const att_tensor *a, const att_tensor *b, const att_tensor *y)
{
    int64_t dense[] = {1, 1};
    for (int i = y->rank - 1; i >= 0; i--) {
        const int64_t n = y->dim[i], in[] = {dim_in(a, y, i), dim_in(b, y, i)};
        if (n != 1)
            add_dim(j, n, (const int64_t[]){in[0] == n ? dense[0] : 0, in[1] == n ? dense[1] : 0});
        dense[0] *= in[0];
        dense[1] *= in[1];
    }
    if (j->rank == 0)
        add_dim(j, 1, dense);
}

/* Applies f to n numbers of y. An operand has n numbers or, if broadcast, one, which is copied. */
static void apply(const binary_job *j, int64_t n, const float *const x[2], float *y)
{
    enum { COPIES = 256 };
    float copies[2][COPIES];
    const float *from[] = {x[0], x[1]};
    const bool broadcast[] = {!j->stride[0][0], !j->stride[0][1]};
    const int64_t at_once = broadcast[0] || broadcast[1] ? COPIES : n;
    for (int i = 0; i < 2; i++) {
        for (int64_t c = 0; broadcast[i] && c < att_min(n, COPIES); c++)
            copies[i][c] = *x[i];
        from[i] = broadcast[i] ? copies[i] : x[i];
    }
    for (int64_t i = 0; i < n; i += at_once)
        j->f(j->k, att_min(n - i, at_once), from[0] + (broadcast[0] ? 0 : i), from[1] + (broadcast[1] ? 0 : i), y + i);
}

/* An element of y: its index in each dimension, and its offsets in a and b */
typedef struct position {
    int64_t index[ATT_MAX_RANK], offset[2];
} position;

static position position_of(const binary_job *j, int64_t i)
{
    position p = {.offset = {0, 0}};
    for (int d = 0; d < j->rank; d++) {
        p.index[d] = i % j->dim[d];
        p.offset[0] += p.index[d] * j->stride[d][0];
        p.offset[1] += p.index[d] * j->stride[d][1];
        i /= j->dim[d];
    }
    return p;
}

/* Moves n elements forward, at most to the end of the last dimension, from which it continues in the next row. */
static void advance(const binary_job *j, position *p, int64_t n)
{
    int64_t *index = p->index;
    index[0] += n;
    p->offset[0] += n * j->stride[0][0];
    p->offset[1] += n * j->stride[0][1];
    for (int d = 0; d + 1 < j->rank && index[d] == j->dim[d]; d++) {
        for (int i = 0; i < 2; i++)
            p->offset[i] += j->stride[d + 1][i] - j->dim[d] * j->stride[d][i];
        index[d] = 0;
        index[d + 1]++;
    }
}

static void binary(const void *arg, int64_t first, int64_t last)
{
    const binary_job *j = arg;
    position p = position_of(j, first);
    for (int64_t i = first, n; i < last; i += n, advance(j, &p, n)) {
        n = att_min(j->dim[0] - p.index[0], last - i);
        apply(j, n, (const float *[]){j->x[0] + p.offset[0], j->x[1] + p.offset[1]}, j->y + i);
    }
}

void att_tape_binary(att_ctx *ctx, att_binary *f, const att_tensor *a, const att_tensor *b, const att_tensor *y)
{
    binary_job j = {.k = att_kernels_of(ctx->isa), .f = f, .x = {a->data, b->data}, .y = y->data};
    set_dims(&j, a, b, y);
    att_tape_for_rows(ctx, att_count(y), 1, binary, &j);
}

/* ---- backward */

/* Returns whether the gradient of x is summed over dimension i of y. */
static bool is_summed(const att_tensor *x, const att_tensor *y, int i) { return dim_in(x, y, i) == 1; }

/* Computes dx, in the shape of x: the sums of dy over the dimensions in which x is broadcast, the first ones first, and
 * adjacent ones at once. False: error set. */
static bool sum_dims(att_tape *t, const att_tensor *y, const float *dy, const att_tensor *x, float *dx)
{
    int64_t outer = 1;
    for (int i = 0; i < y->rank; i++) {
        int64_t n = y->dim[i], inner = 1;
        if (!is_summed(x, y, i)) {
            outer *= n;
            continue;
        }
        while (i + 1 < y->rank && is_summed(x, y, i + 1))
            n *= y->dim[++i];
        if (n == 1)
            continue;
        for (int d = i + 1; d < y->rank; d++)
            inner *= y->dim[d];
        float *to = outer * inner == att_count(x) ? dx : att_tape_scratch(t, (size_t)(outer * inner));
        if (!to)
            return false;
        att_tape_sum_dim(t->ctx, outer, n, inner, 1, dy, to);
        dy = to;
    }
    return true;
}

att_status att_tape_broadcast_back(att_tape *t, const att_tensor *y, const float *dy, att_var *x)
{
    if (!x->grad)
        return ATT_OK;
    if (att_count(&x->value) == att_count(y)) {
        att_tape_add_grad(t, x, dy);
        return ATT_OK;
    }
    float *dx = att_tape_dx(t, x);
    if (!dx || !sum_dims(t, y, dy, &x->value, dx))
        return ATT_ERR_MEMORY;
    att_tape_dx_end(t, x, dx);
    return ATT_OK;
}

att_status att_tape_binary_back(att_tape *t, const att_var *y, att_binary *f, const att_tensor *z, att_var *x)
{
    if (!x->grad)
        return ATT_OK;
    const bool whole = att_count(&x->value) == att_count(&y->value);
    att_tensor dy = y->value, g = y->value;
    dy.data = y->grad;
    g.data = whole ? att_tape_dx(t, x) : att_tape_scratch(t, (size_t)att_count(&g));
    if (!g.data)
        return ATT_ERR_MEMORY;
    att_tape_binary(t->ctx, f, &dy, z, &g);
    if (!whole)
        return att_tape_broadcast_back(t, &y->value, g.data, x);
    att_tape_dx_end(t, x, g.data);
    return ATT_OK;
}

/* ---- forward */

att_var *att_tape_binary_operation(att_tape *t, const att_operation *op, att_binary *f, att_var *a, att_var *b)
{
    if (!a || !b || !att_tape_ready(t))
        return NULL;
    att_tensor shape;
    if (!broadcast_shape(&a->value, &b->value, &shape))
        return att_tape_fail(t, ATT_ERR_SHAPE, "%s: a is %s but b is %s", op->name, att_shape_of(&a->value).text,
                             att_shape_of(&b->value).text);
    att_var *y = att_tape_var(t, shape.rank, shape.dim);
    if (y)
        att_tape_binary(t->ctx, f, &a->value, &b->value, &y->value);
    return att_tape_end(t, op, y, (att_var *[]){a, b}, 2, NULL, 0);
}
