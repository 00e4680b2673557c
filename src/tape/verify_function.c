/* Checks a function of att_apply: its backward against differences of its forward. */
#include "tape/tape.h"
#include "base/math.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SAMPLES = 48 }; /* numbers of an input that are changed, at most */

/* Gradients are added to this; a number that has been overwritten shows. */
static const float BEFORE = 3;
static const float STEP = 0x1p-8f; /* of differences, times max(1, |x|) */

typedef struct function_check {
    att_ctx *ctx;
    att_arena memory;
    const att_function *f;
    const void *user;
    int n;
    att_tensor *x;         /* [n]: copies of the inputs */
    att_tensor *dx, *want; /* [n]: gradients, and those of a first backward */
    att_tensor *asked;     /* [n]: either of them, as given to backward */
    att_tensor y, dy, moved;
} function_check;

/* ---- memory */

/* Makes a tensor of its own in the shape of `like`; false: error set. */
static bool copy_shape(function_check *c, const att_tensor *like, att_tensor *out)
{
    float *data = att_arena_alloc(&c->memory, att_size_mul((size_t)att_count(like), sizeof *data));
    return data && !att_wrap(out, data, ATT_F32, like->rank, like->dim, NULL);
}

static float *floats(const att_tensor *x) { return x->data; }

static void fill(const att_tensor *x, float value)
{
    for (int64_t i = 0; i < att_count(x); i++)
        floats(x)[i] = value;
}

/* Numbers in [-1, 1) */
static void fill_random(const att_tensor *x)
{
    for (int64_t i = 0; i < att_count(x); i++) {
        uint32_t words[4];
        att_random(1, (const uint32_t[]){(uint32_t)i, (uint32_t)(i >> 32), 0, 0}, words);
        floats(x)[i] = (float)(int32_t)words[0] * 0x1p-31f;
    }
}

static bool allocate(function_check *c, const att_tensor *x, const att_tensor *y)
{
    const size_t bytes = (size_t)c->n * sizeof(att_tensor);
    c->x = att_arena_alloc(&c->memory, bytes);
    c->dx = att_arena_alloc(&c->memory, bytes);
    c->want = att_arena_alloc(&c->memory, bytes);
    c->asked = att_arena_alloc(&c->memory, bytes);
    bool good = c->x && c->dx && c->want && c->asked && copy_shape(c, y, &c->y) && copy_shape(c, y, &c->dy) &&
                copy_shape(c, y, &c->moved);
    for (int i = 0; good && i < c->n; i++) {
        good = copy_shape(c, &x[i], &c->x[i]) && copy_shape(c, &x[i], &c->dx[i]) && copy_shape(c, &x[i], &c->want[i]);
        if (good && att_count(&x[i]) > 0)
            memcpy(c->x[i].data, x[i].data, (size_t)att_count(&x[i]) * sizeof(float));
    }
    return good;
}

/* ---- forward */

/* Returns the index of the first number in which a and b differ; their count: none. NaN equals NaN. */
static int64_t first_difference(const att_tensor *a, const att_tensor *b)
{
    const float *x = a->data, *y = b->data;
    int64_t i = 0;
    while (i < att_count(a) && (x[i] == y[i] || (isnan(x[i]) && isnan(y[i]))))
        i++;
    return i;
}

static att_status check_forward(const function_check *c)
{
    fill(&c->y, NAN);
    fill(&c->moved, 0);
    att_status s = att_function_forward(c->ctx, c->f, c->user, c->x, &c->y);
    s = s ? s : att_function_forward(c->ctx, c->f, c->user, c->x, &c->moved);
    const int64_t i = s ? 0 : first_difference(&c->y, &c->moved);
    if (s || i == att_count(&c->y))
        return s;
    return att_fail(c->ctx, ATT_ERR_ARGUMENT,
                    "%s: forward gives %.9g for y[%lld], then %.9g: it does not write it, or not the same", c->f->name,
                    (double)floats(&c->y)[i], (long long)i, (double)floats(&c->moved)[i]);
}

/* ---- backward */

/* Gradients in dx [n], added to `before`: all of them, or only the one that is wanted (-1: all). */
static att_status run_backward(const function_check *c, const att_tensor *dx, float before, int wanted)
{
    for (int i = 0; i < c->n; i++) {
        fill(&dx[i], before);
        c->asked[i] = dx[i];
        if (wanted >= 0 && i != wanted)
            c->asked[i].data = NULL;
    }
    return att_function_backward(c->ctx, c->f, c->user, c->x, &c->y, &c->dy, c->asked);
}

static bool agree(double a, double b, double limit) { return fabs(a - b) <= limit || (isnan(a) && isnan(b)); }

/* Checks that backward adds the same to BEFORE as to 0. */
static att_status check_sums(const function_check *c, int input)
{
    const float *got = floats(&c->dx[input]), *want = floats(&c->want[input]);
    double largest = (double)BEFORE;
    for (int64_t i = 0; i < att_count(&c->dx[input]); i++)
        largest = isfinite(want[i]) ? att_fmax(fabs((double)want[i]), largest) : largest;
    for (int64_t i = 0; i < att_count(&c->dx[input]); i++) {
        const double limit = 0x1p-12 * largest, sum = (double)BEFORE + (double)want[i];
        if (!agree((double)got[i], sum, limit))
            return att_fail(c->ctx, ATT_ERR_ARGUMENT, "%s: backward%s gives %.9g for dx[%d][%lld], but %.9g + %.9g",
                            c->f->name,
                            agree((double)got[i], (double)want[i], limit) ? ", which overwrites, but should add," : "",
                            (double)got[i], input, (long long)i, (double)BEFORE, (double)want[i]);
    }
    return ATT_OK;
}

static att_status check_alone(const function_check *c, int input)
{
    const att_status s = run_backward(c, c->dx, 0, input);
    const int64_t i = s ? 0 : first_difference(&c->dx[input], &c->want[input]);
    if (s || i == att_count(&c->dx[input]))
        return s;
    return att_fail(c->ctx, ATT_ERR_ARGUMENT,
                    "%s: backward gives %.9g for dx[%d][%lld] if only dx[%d] is wanted, but %.9g beside others",
                    c->f->name, (double)floats(&c->dx[input])[i], input, (long long)i, input,
                    (double)floats(&c->want[input])[i]);
}

/* ---- differences */

/* *sum = the change of sum(dy y) since c->y, *size = the sum of |dy y| of those that have changed */
static att_status find_change(const function_check *c, double *sum, double *size)
{
    const float *y = floats(&c->y), *moved = floats(&c->moved), *dy = floats(&c->dy);
    const att_status s = att_function_forward(c->ctx, c->f, c->user, c->x, &c->moved);
    *sum = 0;
    for (int64_t i = 0; !s && i < att_count(&c->y); i++)
        if (moved[i] != y[i]) {
            *sum += (double)dy[i] * ((double)moved[i] - (double)y[i]);
            *size += fabs((double)dy[i] * (double)y[i]);
        }
    return s;
}

/* A derivative lies between the differences to the left and to the right, also at a bend; to first order in the step,
 * and as far as the rounding of y, of this size, allows. */
static bool is_slope(double slope, double left, double right, double size)
{
    const double largest = att_fmax(fabs(slope), att_fmax(fabs(left), fabs(right))),
                 limit = 0x1p-9 * largest + 0x1p-13 * size + 0x1p-20;
    return slope >= att_fmin(left, right) - limit && slope <= att_fmax(left, right) + limit;
}

static att_status check_slope(const function_check *c, int input, int64_t i)
{
    float *x = &floats(&c->x[input])[i];
    const float before = *x, step = STEP * (float)att_fmax(1, fabs((double)before)), up = before + step,
                down = before - step;
    double right, left, size = 0;
    *x = up;
    att_status s = find_change(c, &right, &size);
    *x = down;
    s = s ? s : find_change(c, &left, &size);
    *x = before;
    if (s)
        return s;
    right /= (double)up - (double)before;
    left /= (double)down - (double)before;
    const double slope = (double)floats(&c->want[input])[i];
    if (is_slope(slope, left, right, size))
        return ATT_OK;
    return att_fail(c->ctx, ATT_ERR_ARGUMENT,
                    "%s: backward gives %.9g for dx[%d][%lld], but differences of forward %.9g", c->f->name, slope,
                    input, (long long)i, (left + right) / 2);
}

/* ---- all of it */

static att_status check_all(function_check *c)
{
    att_status s = check_forward(c);
    fill_random(&c->dy);
    s = s ? s : run_backward(c, c->want, 0, -1);
    for (int input = 0; !s && input < c->n; input++) {
        const int64_t count = att_count(&c->x[input]), step = count / SAMPLES + 1;
        for (int64_t i = count % step / 2; !s && i < count; i += step)
            s = check_slope(c, input, i);
    }
    s = s ? s : run_backward(c, c->dx, BEFORE, -1);
    for (int input = 0; !s && input < c->n; input++)
        s = check_sums(c, input);
    for (int input = 0; !s && input < c->n; input++)
        s = check_alone(c, input);
    return s;
}

static att_status check_inputs(att_ctx *ctx, const att_tensor *x, int n)
{
    char name[32];
    if (n < 1)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "verify_function: n is %d, less than 1", n);
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "verify_function: x[%d]", i);
        const att_status s = att_check(ctx, name, &x[i], ATT_F32, x[i].rank);
        if (s)
            return s;
        if (x[i].rank < 1 || !att_is_dense(&x[i]))
            return att_fail(ctx, ATT_ERR_SHAPE, "%s is %s: not dense, or of rank 0", name, att_shape_of(&x[i]).text);
    }
    return ATT_OK;
}

att_status att_verify_function(att_ctx *ctx, const att_function *function, const void *user, const att_tensor *x, int n,
                               int rank, const int64_t *dim)
{
    att_function f;
    att_tensor y;
    att_status s = att_require("verify_function", ATT_NAMED({"ctx", ctx}, {"x", x}, {"dim", dim}));
    s = s ? s : att_function_read(function, "verify_function", &f);
    s = s ? s : check_inputs(ctx, x, n);
    s = s || rank > 0 ? s : att_fail(ctx, ATT_ERR_ARGUMENT, "verify_function: rank is %d, less than 1", rank);
    s = s ? s : att_wrap(&y, NULL, ATT_F32, rank, dim, NULL);
    if (s)
        return s;
    function_check c = {.ctx = ctx, .f = &f, .user = user, .n = n};
    att_arena_init(&c.memory, ctx);
    s = allocate(&c, x, &y) ? check_all(&c) : ATT_ERR_MEMORY;
    att_arena_free(&c.memory);
    return s;
}
