/* Elementwise operations, broadcasting and sums, of gradients.c. */
#ifndef GRADIENTS_NUMBERS_H
#define GRADIENTS_NUMBERS_H

#include "gradients.h"

/* ---- add, sub, mul of broadcast shapes */

static att_var *add(att_tape *t, const problem *p) { return att_add(t, p->var[0], p->var[1]); }
static att_var *sub(att_tape *t, const problem *p) { return att_sub(t, p->var[0], p->var[1]); }
static att_var *mul(att_tape *t, const problem *p) { return att_mul(t, p->var[0], p->var[1]); }
static att_var *add_itself(att_tape *t, const problem *p) { return att_add(t, p->var[0], p->var[0]); }
static att_var *sub_itself(att_tape *t, const problem *p) { return att_sub(t, p->var[0], p->var[0]); }
static att_var *mul_itself(att_tape *t, const problem *p) { return att_mul(t, p->var[0], p->var[0]); }

static double sum_of(double a, double b) { return a + b; }
static double difference_of(double a, double b) { return a - b; }
static double product_of(double a, double b) { return a * b; }

/* The size of the last dimensions but `from_last`, of a shape that begins with as many 1 as it lacks. */
static int64_t size_at(const leaf *l, int from_last)
{
    return from_last < l->rank ? l->dim[l->rank - 1 - from_last] : 1;
}

/* The element of l at indices of the result, the last first. */
static double element_at(const leaf *l, const int64_t index[4])
{
    int64_t at = 0;
    for (int d = 3; d >= 0; d--)
        at = at * size_at(l, d) + (size_at(l, d) == 1 ? 0 : index[d]);
    return (double)l->x[at];
}

static void broadcast(const problem *p, double *y, double (*f)(double a, double b))
{
    const leaf *a = &p->leaf[0], *b = p->leaf[1].rank ? &p->leaf[1] : a;
    int64_t n[4], i[4];
    for (int d = 0; d < 4; d++)
        n[d] = size_at(a, d) == 1 ? size_at(b, d) : size_at(a, d);
    for (i[3] = 0; i[3] < n[3]; i[3]++)
        for (i[2] = 0; i[2] < n[2]; i[2]++)
            for (i[1] = 0; i[1] < n[1]; i[1]++)
                for (i[0] = 0; i[0] < n[0]; i[0]++)
                    *y++ = f(element_at(a, i), element_at(b, i));
}

static void add_reference(const problem *p, double *y) { broadcast(p, y, sum_of); }
static void sub_reference(const problem *p, double *y) { broadcast(p, y, difference_of); }
static void mul_reference(const problem *p, double *y) { broadcast(p, y, product_of); }

/* Of a result of rank 4 at most */
typedef struct binary_shapes {
    leaf a, b;
    int summed; /* numbers in the longest sum of a gradient */
} binary_shapes;

static void check_binary(problem p, att_var *(*itself)(att_tape *t, const problem *p), const char *what)
{
    static const binary_shapes shapes[] = {
        {{.rank = 3, .dim = {3, 5, 7}}, {.rank = 3, .dim = {3, 5, 7}}, 1},
        {{.rank = 3, .dim = {3, 5, 7}}, {.rank = 1, .dim = {7}}, 15},          /* a bias */
        {{.rank = 1, .dim = {7}}, {.rank = 3, .dim = {3, 5, 7}}, 15},          /* on the other side */
        {{.rank = 2, .dim = {5, 7}}, {.rank = 3, .dim = {1, 5, 7}}, 1},        /* another rank, as many elements */
        {{.rank = 2, .dim = {1, 1}}, {.rank = 1, .dim = {1}}, 1},              /* one number */
        {{.rank = 3, .dim = {3, 5, 7}}, {.rank = 1, .dim = {1}}, 105},         /* one number for all */
        {{.rank = 2, .dim = {3, 300}}, {.rank = 2, .dim = {3, 1}}, 300},       /* one for each row */
        {{.rank = 3, .dim = {4, 1, 3}}, {.rank = 2, .dim = {5, 3}}, 5},        /* in the middle, and in front */
        {{.rank = 2, .dim = {131, 1}}, {.rank = 2, .dim = {1, 70}}, 131},      /* an outer product */
        {{.rank = 4, .dim = {2, 1, 4, 1}}, {.rank = 3, .dim = {3, 1, 5}}, 15}, /* by turns */
        {{.rank = 4, .dim = {2, 3, 4, 5}}, {.rank = 4, .dim = {2, 1, 4, 1}}, 15},
        {{.rank = 4, .dim = {2, 3, 1, 5}}, {.rank = 3, .dim = {1, 2, 1}}, 30},
        {{.rank = 2, .dim = {0, 3}}, {.rank = 2, .dim = {1, 3}}, 1}, /* nothing */
    };
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        p.leaf[0] = shapes[i].a;
        p.leaf[1] = shapes[i].b;
        p.tolerance = (1 + shapes[i].summed) * FLT_EPSILON; /* sums of as many numbers below 1, each rounded */
        p.y_tolerance = FLT_EPSILON;
        check_problem(p, what);
    }
    p.build = itself;
    p.leaf[0] = shapes[0].a;
    p.leaf[1].rank = 0;
    p.tolerance = 2 * FLT_EPSILON;
    check_problem(p, what);
}

static void gradients_of_add(void **state)
{
    (void)state;
    check_binary((problem){.build = add, .reference = add_reference}, add_itself, "add");
}
static void gradients_of_sub(void **state)
{
    (void)state;
    check_binary((problem){.build = sub, .reference = sub_reference}, sub_itself, "sub");
}
static void gradients_of_mul(void **state)
{
    (void)state;
    check_binary((problem){.build = mul, .reference = mul_reference}, mul_itself, "mul");
}

/* ---- sum, mean */

static att_var *sum(att_tape *t, const problem *p) { return att_sum(t, p->var[0], p->dim); }
static att_var *mean(att_tape *t, const problem *p) { return att_mean(t, p->var[0], p->dim); }

/* The sums over dimension p->dim; returns over how many */
static int64_t sum_over(const problem *p, double *y)
{
    const leaf *x = &p->leaf[0];
    const int dim = p->dim < 0 ? p->dim + x->rank : p->dim;
    int64_t inner = 1, n = p->dim == ATT_ALL_DIMS ? count_of(x) : x->dim[dim];
    for (int i = dim + 1; i < x->rank && p->dim != ATT_ALL_DIMS; i++)
        inner *= x->dim[i];
    for (int64_t i = 0; n > 0 && i < count_of(x) / n; i++) {
        y[i] = 0;
        for (int64_t j = 0; j < n; j++)
            y[i] += (double)x->x[(i / inner * n + j) * inner + i % inner];
    }
    return n;
}

static void sum_reference(const problem *p, double *y) { sum_over(p, y); }
static void mean_reference(const problem *p, double *y)
{
    const int64_t n = sum_over(p, y);
    for (int64_t i = 0; i < count_of(&p->leaf[0]) / n; i++)
        y[i] /= (double)n;
}

static void check_sums(problem p, const char *what)
{
    static const leaf shapes[] = {{.rank = 1, .dim = {1}},         {.rank = 1, .dim = {9001}},
                                  {.rank = 2, .dim = {131, 70}},   {.rank = 2, .dim = {2, 300}},
                                  {.rank = 3, .dim = {3, 5, 7}},   {.rank = 3, .dim = {2, 131, 3}},
                                  {.rank = 4, .dim = {2, 3, 4, 5}}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (int dim = -shapes[i].rank - 1; dim < shapes[i].rank; dim++) {
            p.leaf[0] = shapes[i];
            p.dim = dim < -shapes[i].rank ? ATT_ALL_DIMS : dim;
            const int64_t n =
                p.dim == ATT_ALL_DIMS ? count_of(&shapes[i]) : shapes[i].dim[dim < 0 ? dim + shapes[i].rank : dim];
            p.tolerance = 2 * FLT_EPSILON; /* a quotient */
            /* numbers below 1: an error of a chain of 64 numbers is at most 64 roundings of half a unit of 64, and
             * so on; as independent ones their sum is far less */
            p.y_tolerance = (double)(n + 1) * FLT_EPSILON;
            check_problem(p, what);
        }
}

static void gradients_of_sum(void **state)
{
    (void)state;
    check_sums((problem){.build = sum, .reference = sum_reference}, "sum");
}
static void gradients_of_mean(void **state)
{
    (void)state;
    check_sums((problem){.build = mean, .reference = mean_reference}, "mean");
}

/* ---- exp, log */

static att_var *exponential(att_tape *t, const problem *p) { return att_exp(t, p->var[0]); }

/* log(1 + e^x), as numbers of a problem are of both signs */
static att_var *softplus(att_tape *t, const problem *p)
{
    static const float one = 1;
    const att_tensor v = view((void *)(uintptr_t)&one, ATT_F32, ATT_DIMS(1));
    return att_log(t, att_add(t, att_exp(t, p->var[0]), att_constant(t, &v)));
}

static void exponential_reference(const problem *p, double *y)
{
    for (int64_t i = 0; i < count_of(&p->leaf[0]); i++)
        y[i] = exp((double)p->leaf[0].x[i]);
}

static void softplus_reference(const problem *p, double *y)
{
    for (int64_t i = 0; i < count_of(&p->leaf[0]); i++)
        y[i] = log1p(exp((double)p->leaf[0].x[i]));
}

static void gradients_of_exp(void **state)
{
    (void)state;
    const problem p = {.build = exponential,
                       .reference = exponential_reference,
                       .leaf = {{.rank = 2, .dim = {41, 7}}},
                       .spread = 2,
                       .tolerance = 8 * 4 * FLT_EPSILON, /* numbers below e^2 to two units, and a product */
                       .y_tolerance = 8 * 2 * FLT_EPSILON};
    check_problem(p, "exp");
}

static void gradients_of_log(void **state)
{
    (void)state;
    const problem p = {.build = softplus,
                       .reference = softplus_reference,
                       .leaf = {{.rank = 2, .dim = {41, 7}}},
                       .spread = 2,
                       .tolerance = 4 * FLT_EPSILON,    /* slopes below 1: of exp, the sum, a quotient and a product */
                       .y_tolerance = 8 * FLT_EPSILON}; /* below 2.2 to two units; and what 1 + e is off by */
    check_problem(p, "softplus");
}

/* ---- mean_squared_error */

static att_var *mean_squared_error(att_tape *t, const problem *p)
{
    return att_mean_squared_error(t, p->var[0], p->var[1], p->n);
}
static att_var *error_of_itself(att_tape *t, const problem *p)
{
    return att_mean_squared_error(t, p->var[0], p->var[0], p->n);
}

static void mean_squared_error_reference(const problem *p, double *y)
{
    const leaf *a = &p->leaf[0], *b = p->leaf[1].rank ? &p->leaf[1] : a;
    y[0] = 0;
    for (int64_t i = 0; i < count_of(a); i++)
        y[0] += pow((double)a->x[i] - (double)b->x[i], 2);
    y[0] /= p->n ? 1 : (double)count_of(a);
}

static void gradients_of_mean_squared_error(void **state)
{
    (void)state;
    for (int64_t sum = 0; sum < 2; sum++) {
        problem p = {.build = mean_squared_error,
                     .reference = mean_squared_error_reference,
                     .leaf = {{.rank = 3, .dim = {3, 5, 7}}, {.rank = 3, .dim = {3, 5, 7}}},
                     .n = sum,
                     .tolerance = 4 * 2 * FLT_EPSILON,      /* numbers below 4: a difference and a product */
                     .y_tolerance = 105 * 4 * FLT_EPSILON}; /* squares below 4 */
        check_problem(p, "mean_squared_error");
        p.build = error_of_itself;
        p.leaf[1].rank = 0;
        check_problem(p, "mean_squared_error of a variable with itself");
    }
}

#endif
