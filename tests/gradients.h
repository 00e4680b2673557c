/* Gradients of what is made on a tape, against central differences of a reference in double, on every instruction set.
 */
#ifndef GRADIENTS_H
#define GRADIENTS_H

#include "fail_alloc.h"
#include "tape_help.h"

/* Numbers are multiples of this, so that x + STEP and x - STEP are floats. The references are of order 1 to 100 and
 * exact to some 1e-15, so a difference over 2 STEP is to 1e-8, less than one rounding of a float of order 1; what it
 * cuts off is STEP^2 / 6 times a third derivative of at most 1000 (layer_norm): 3e-9. */
#define STEP 0x1p-18f

enum { MOST = 10 };

/* What a number may be changed in: a variable or, `param`, a parameter. */
typedef struct leaf {
    int rank;
    int64_t dim[4];
    bool param;
    float *x;
    double *expected; /* its gradient */
} leaf;

typedef struct problem problem;
struct problem {
    att_var *(*build)(att_tape *t, const problem *p);
    void (*reference)(const problem *p, double *y);
    leaf leaf[MOST]; /* up to one of rank 0 */
    float spread;    /* numbers in [-spread, spread); 0: 1 */
    double tolerance;
    double y_tolerance; /* of what it computes; 0: that is tested elsewhere */
    /* what the operation is given beside them */
    att_activation act;
    att_pooling kind;
    float eps;
    const int64_t *offsets;
    const int32_t *ids;
    int64_t n;
    const void *options; /* of the operation's own type */
    int dim;
    int64_t first;
    bool turned[2];
    const att_cross_entropy_options *entropy;
    const float *targets;
    const att_attention_spec *spec;
    const att_plan *plan;
    const att_attention_args *args;
    /* in a run */
    att_var *var[MOST];
    att_param *weight[MOST];
};

static inline int64_t count_of(const leaf *l)
{
    int64_t n = 1;
    for (int i = 0; i < l->rank; i++)
        n *= l->dim[i];
    return n;
}

static inline att_tensor view_of(const leaf *l) { return view(l->x, ATT_F32, l->rank, l->dim); }

/* Numbers, and those of the loss: sum of slope times y. */
static inline void fill(problem *p)
{
    const float spread = p->spread ? p->spread : 1;
    for (int i = 0; i < MOST && p->leaf[i].rank; i++) {
        leaf *l = &p->leaf[i];
        const int64_t n = count_of(l);
        l->x = check_numbers(n, (uint64_t)i + 1);
        l->expected = malloc((size_t)(n + 1) * sizeof *l->expected);
        for (int64_t j = 0; j < n; j++)
            l->x[j] = roundf(l->x[j] * spread / STEP) * STEP;
    }
}

static inline void drop_problem(problem *p)
{
    for (int i = 0; i < MOST && p->leaf[i].rank; i++)
        free(p->leaf[i].x), free(p->leaf[i].expected);
}

static inline float slope(int64_t i) { return check_uniform(99, (uint64_t)i); }

/* Of large leaves only some numbers. */
static inline int64_t stride_of(const leaf *l)
{
    const int64_t some = 150 / check_step(10);
    return count_of(l) > 2 * some ? count_of(l) / some : 1;
}

static inline void differences(problem *p, int64_t n_y)
{
    double *above = malloc((size_t)(n_y + 1) * sizeof *above), *below = malloc((size_t)(n_y + 1) * sizeof *below);
    for (int i = 0; i < MOST && p->leaf[i].rank; i++) {
        leaf *l = &p->leaf[i];
        for (int64_t j = 0; j < count_of(l); j += stride_of(l)) {
            const float x = l->x[j];
            l->x[j] = x + STEP;
            p->reference(p, above);
            l->x[j] = x - STEP;
            p->reference(p, below);
            l->x[j] = x;
            double sum = 0;
            for (int64_t o = 0; o < n_y; o++)
                sum += (double)slope(o) * (above[o] - below[o]);
            l->expected[j] = sum / (2 * (double)STEP);
        }
    }
    free(above), free(below);
}

/* Its variables and parameters on a tape */
static inline void give_leaves(att_ctx *ctx, att_tape *t, problem *p)
{
    for (int i = 0; i < MOST && p->leaf[i].rank; i++) {
        const att_tensor x = view_of(&p->leaf[i]);
        if (p->leaf[i].param)
            assert_int_equal(att_param_new(ctx, &x, &p->weight[i]), ATT_OK);
        else
            p->var[i] = att_input(t, &x);
    }
}

/* and what is made of them. */
static inline att_var *build(att_ctx *ctx, att_tape *t, problem *p)
{
    give_leaves(ctx, t, p);
    return p->build(t, p);
}

static inline void check_leaf(att_ctx *ctx, att_tape *t, const problem *p, int i, int times, const char *what)
{
    const leaf *l = &p->leaf[i];
    att_tensor grad;
    if (l->param)
        grad = *att_param_grad(p->weight[i]);
    else if (att_var_grad(t, p->var[i], &grad))
        fail_msg("%s", att_error(ctx));
    assert_int_equal(grad.rank, l->rank);
    assert_memory_equal(grad.dim, l->dim, (size_t)l->rank * sizeof *l->dim);
    for (int64_t j = 0; j < count_of(l); j += stride_of(l))
        check_near(times * l->expected[j], ((const float *)grad.data)[j], times * times * p->tolerance,
                   "%s %s, %d times: gradient [%d] of leaf %d", att_isa(ctx), what, times, (int)j, i);
}

static inline void drop_params(problem *p)
{
    for (int i = 0; i < MOST && p->leaf[i].rank; i++)
        att_param_free(p->weight[i]);
}

/* What it computes, with or without recording, is its reference's. */
static inline void check_value(att_ctx *ctx, problem *p, const att_tensor *value, const char *what)
{
    att_tape *t = new_tape(ctx);
    att_tensor without;
    const int64_t n = att_count(value);
    assert_int_equal(att_var_value(t, build(ctx, t, p), &without), ATT_OK);
    assert_memory_equal(without.data, value->data, (size_t)n * sizeof(float));
    double *y = malloc((size_t)(n + 1) * sizeof *y);
    p->reference(p, y);
    for (int64_t i = 0; i < n && p->y_tolerance; i++)
        check_near(y[i], ((const float *)value->data)[i], p->y_tolerance, "%s %s: [%d]", att_isa(ctx), what, (int)i);
    free(y);
    drop_params(p);
    att_tape_free(t);
}

/* Numbers that no backward is said to read become NaN: those of results in their place, those of the caller by others,
 * which the result is. */
static inline float *spoil_numbers(att_tape *t)
{
    int64_t most = 1;
    for (const att_var *v = t->last; v; v = v->before)
        most = att_count(&v->value) > most ? att_count(&v->value) : most;
    float *none = malloc((size_t)most * sizeof *none);
    for (int64_t i = 0; i < most; i++)
        none[i] = NAN;
    for (att_var *v = t->last; v; v = v->before)
        if (!v->value_needed && !v->base && v->data_made == 0)
            v->value.data = none;
        else if (!v->value_needed && !v->base && v->step && v->step->op->ignores_y)
            memcpy(v->value.data, none, (size_t)att_count(&v->value) * sizeof *none);
    return none;
}

/* Done twice with the same leaves and added up: gradients are added to, too. */
static inline void check_gradients(att_ctx *ctx, problem *p, int times, const char *what)
{
    att_tape *t = recording_tape(ctx);
    att_var *y = build(ctx, t, p);
    if (times == 2)
        y = att_add(t, y, p->build(t, p));
    att_tensor dy;
    if (att_var_value(t, y, &dy))
        fail_msg("%s", att_error(ctx));
    dy.data = check_numbers(att_count(&dy), 99);
    float *none = spoil_numbers(t);
    if (att_tape_backward(t, y, &dy))
        fail_msg("%s", att_error(ctx));
    for (int i = 0; i < MOST && p->leaf[i].rank; i++)
        check_leaf(ctx, t, p, i, times, what);
    drop_params(p);
    att_tape_free(t);
    free(none);
    free(dy.data);
}

/* Forward and backward where the n-th allocation from the operation's first on fails. */
static inline att_status without_memory(problem *p, long n, const char *what)
{
    fail_alloc f = {0};
    att_ctx *ctx = fail_open(&f);
    att_plan *plan = NULL;
    att_tape *t = recording_tape(ctx);
    att_tensor y;
    if (p->spec)
        assert_int_equal(att_plan_new(ctx, p->spec, &plan), ATT_OK);
    p->plan = plan;
    t->arena.tight = true;
    give_leaves(ctx, t, p);
    f.fail_at = f.calls + n;
    att_var *v = p->build(t, p);
    att_status s = att_var_value(t, v, &y);
    s = s ? s : att_tape_backward(t, v, NULL);
    if (s && s != ATT_ERR_MEMORY)
        fail_msg("%s, allocation %ld: %s", what, n, att_error(ctx));
    for (int i = 0; s && i < MOST && p->leaf[i].rank; i++)
        assert_true(!p->leaf[i].param || !att_param_grad(p->weight[i])->data);
    drop_params(p);
    att_tape_free(t);
    att_plan_free(plan);
    att_close(ctx);
    assert_int_equal(f.live, 0);
    return s;
}

/* Whichever fails, it is an error, no parameter has a gradient, and all is given back. */
static inline void check_without_memory(problem *p, const char *what)
{
    enum { SMALL = 500 };
    for (int i = 0; i < MOST && p->leaf[i].rank; i++)
        if (count_of(&p->leaf[i]) > SMALL)
            return;
    for (long n = 1; without_memory(p, n, what); n++)
        ;
}

static inline void check_on(att_ctx *ctx, problem *p, const char *what, bool first)
{
    att_tape *t = recording_tape(ctx);
    att_plan *plan = NULL;
    if (p->spec && att_plan_new(ctx, p->spec, &plan))
        fail_msg("%s", att_error(ctx));
    p->plan = plan;
    att_tensor value;
    if (att_var_value(t, build(ctx, t, p), &value))
        fail_msg("%s", att_error(ctx));
    drop_params(p);
    if (first)
        differences(p, att_count(&value));
    check_value(ctx, p, &value, what);
    check_gradients(ctx, p, 1, what);
    check_gradients(ctx, p, 2, what);
    att_tape_free(t);
    att_plan_free(plan);
}

static inline void check_problem(problem p, const char *what)
{
    fill(&p);
    bool first = true; /* the reference is the same for all sets */
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2); first = false)
        check_on(ctx, &p, what, first);
    check_without_memory(&p, what);
    drop_problem(&p);
}

#endif
