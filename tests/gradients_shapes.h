/* Operations on numbers and shapes, of gradients.c. */
#ifndef GRADIENTS_SHAPES_H
#define GRADIENTS_SHAPES_H

#include "gradients.h"

/* ---- dot */

static att_var *dot(att_tape *t, const problem *p) { return att_dot(t, p->var[0], p->var[1]); }
static att_var *squares(att_tape *t, const problem *p) { return att_dot(t, p->var[0], p->var[0]); }

static void dot_reference(const problem *p, double *y)
{
    const leaf *a = &p->leaf[0], *b = p->leaf[1].rank ? &p->leaf[1] : a;
    const int64_t f = a->dim[a->rank - 1];
    for (int64_t i = 0; i < count_of(a) / f; i++) {
        y[i] = 0;
        for (int64_t d = i * f; d < (i + 1) * f; d++)
            y[i] += (double)a->x[d] * (double)b->x[d];
    }
}

static void gradients_of_dot(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {{1, 1, 1}, {3, 5, 7}, {2, 1, 129}};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
        for (int rank = 1; rank <= 3; rank++) { /* of the last dimensions */
            leaf l = {.rank = rank};
            memcpy(l.dim, shapes[s] + 3 - rank, (size_t)rank * sizeof *l.dim);
            problem p = {.build = dot,
                         .reference = dot_reference,
                         .leaf = {l, l},
                         .tolerance = 2 * FLT_EPSILON,                       /* two products at most, below 1 */
                         .y_tolerance = (double)shapes[s][2] * FLT_EPSILON}; /* a sum of them */
            check_problem(p, "dot");
            p.build = squares;
            p.leaf[1].rank = 0;
            check_problem(p, "a . a");
        }
}

/* ---- scale */

static att_var *scale(att_tape *t, const problem *p) { return att_scale(t, p->var[0], 1.75f); }

static void scale_reference(const problem *p, double *y)
{
    for (int64_t i = 0; i < count_of(&p->leaf[0]); i++)
        y[i] = 1.75 * (double)p->leaf[0].x[i];
}

static void gradients_of_scale(void **state)
{
    (void)state;
    const problem p = {.build = scale,
                       .reference = scale_reference,
                       .leaf = {{.rank = 2, .dim = {5, 7}}},
                       .tolerance = FLT_EPSILON, /* half a unit of numbers below 2 */
                       .y_tolerance = FLT_EPSILON};
    check_problem(p, "scale");
}

/* ---- matmul */

static att_var *matmul(att_tape *t, const problem *p)
{
    return att_matmul(t, p->var[0], p->var[1], p->turned[0], p->turned[1]);
}
static att_var *gram(att_tape *t, const problem *p) { return att_matmul(t, p->var[0], p->var[0], true, false); }

static void matmul_reference(const problem *p, double *y)
{
    const leaf *a = &p->leaf[0], *b = p->leaf[1].rank ? &p->leaf[1] : a;
    const int64_t m = a->dim[p->turned[0]], k = a->dim[!p->turned[0]], n = b->dim[!p->turned[1]];
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            y[i * n + j] = 0;
            for (int64_t d = 0; d < k; d++)
                y[i * n + j] += (double)a->x[p->turned[0] ? d * m + i : i * k + d] *
                                (double)b->x[p->turned[1] ? j * k + d : d * n + j];
        }
}

static void gradients_of_matmul(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {{1, 1, 1}, {7, 1, 5}, {17, 31, 33}, {1, 65, 3}};
    for (int s = 0; s < 16; s++) {
        const int64_t m = shapes[s / 4][0], k = shapes[s / 4][1], n = shapes[s / 4][2];
        const bool ta = s & 1, tb = s & 2;
        const problem p = {
            .build = matmul,
            .reference = matmul_reference,
            .leaf = {{.rank = 2, .dim = {ta ? k : m, ta ? m : k}}, {.rank = 2, .dim = {tb ? n : k, tb ? k : n}}},
            .turned = {ta, tb},
            /* sums of up to n, m or k products below 1, each rounded as it is added */
            .tolerance = (double)(m > n ? m : n) * FLT_EPSILON,
            .y_tolerance = (double)k * FLT_EPSILON};
        check_problem(p, "matmul");
    }
    const problem p = {.build = gram,
                       .reference = matmul_reference,
                       .leaf = {{.rank = 2, .dim = {9, 5}}},
                       .turned = {true, false},
                       .tolerance = 2 * 5 * FLT_EPSILON, /* two sums of 5 */
                       .y_tolerance = 9 * FLT_EPSILON};
    check_problem(p, "matmul of one variable with itself");
}

/* ---- concat, slice, gather: numbers at other places */

static att_var *concat(att_tape *t, const problem *p) { return att_concat(t, 3, p->var, p->dim); }
static att_var *slice_it(att_tape *t, const problem *p) { return att_slice(t, p->var[0], p->dim, p->first, p->n); }
static att_var *gather(att_tape *t, const problem *p) { return att_gather(t, p->var[0], p->ids, p->n); }

/* The index in a tensor of that shape of its element (i, j, d). */
static int64_t at(const int64_t *dim, int64_t i, int64_t j, int64_t d) { return (i * dim[1] + j) * dim[2] + d; }

static void concat_reference(const problem *p, double *y)
{
    const int dim = p->dim < 0 ? p->dim + 3 : p->dim;
    int64_t all[3], from[3] = {0};
    memcpy(all, p->leaf[0].dim, sizeof all);
    all[dim] += p->leaf[1].dim[dim] + p->leaf[2].dim[dim];
    for (const leaf *l = p->leaf; l < p->leaf + 3; from[dim] += l->dim[dim], l++)
        for (int64_t i = 0; i < l->dim[0]; i++)
            for (int64_t j = 0; j < l->dim[1]; j++)
                for (int64_t d = 0; d < l->dim[2]; d++)
                    y[at(all, from[0] + i, from[1] + j, from[2] + d)] = (double)l->x[at(l->dim, i, j, d)];
}

static void slice_reference(const problem *p, double *y)
{
    const int dim = p->dim < 0 ? p->dim + 3 : p->dim;
    int64_t part[3], from[3] = {0};
    memcpy(part, p->leaf[0].dim, sizeof part);
    part[dim] = p->n;
    from[dim] = p->first;
    for (int64_t i = 0; i < part[0]; i++)
        for (int64_t j = 0; j < part[1]; j++)
            for (int64_t d = 0; d < part[2]; d++)
                y[at(part, i, j, d)] = (double)p->leaf[0].x[at(p->leaf[0].dim, from[0] + i, from[1] + j, from[2] + d)];
}

static void gather_reference(const problem *p, double *y)
{
    const int64_t f = count_of(&p->leaf[0]) / p->leaf[0].dim[0];
    for (int64_t i = 0; i < p->n * f; i++)
        y[i] = (double)p->leaf[0].x[p->ids[i / f] * f + i % f];
}

static void gradients_of_concat(void **state)
{
    (void)state;
    for (int dim = -3; dim < 3; dim++) {
        problem p = {
            .build = concat,
            .reference = concat_reference,
            .leaf = {{.rank = 3, .dim = {3, 4, 5}}, {.rank = 3, .dim = {3, 4, 5}}, {.rank = 3, .dim = {3, 4, 5}}},
            .dim = dim,
            .tolerance = FLT_EPSILON,
            .y_tolerance = FLT_EPSILON};
        p.leaf[1].dim[(dim + 3) % 3] = 1;
        p.leaf[2].dim[(dim + 3) % 3] = 0;
        check_problem(p, "concat");
    }
}

static void gradients_of_slice(void **state)
{
    (void)state;
    for (int dim = -3; dim < 3; dim++)
        for (int64_t first = 0; first < 3; first++) {
            const problem p = {.build = slice_it,
                               .reference = slice_reference,
                               .leaf = {{.rank = 3, .dim = {3, 4, 5}}},
                               .dim = dim,
                               .first = first,
                               .n = 3 - first,
                               .tolerance = FLT_EPSILON,
                               .y_tolerance = FLT_EPSILON};
            check_problem(p, "slice");
        }
}

static void gradients_of_gather(void **state)
{
    (void)state;
    static const int32_t ids[] = {4, 0, 4, 2, 4, 4, 0}; /* 1 and 3 are not there */
    const problem p = {.build = gather,
                       .reference = gather_reference,
                       .leaf = {{.rank = 3, .dim = {5, 3, 23}}},
                       .tolerance = 8 * FLT_EPSILON, /* sums of 4 */
                       .y_tolerance = FLT_EPSILON,
                       .ids = ids,
                       .n = 7};
    check_problem(p, "gather");
}

/* ---- heads */

static att_var *split_heads(att_tape *t, const problem *p) { return att_split_heads(t, p->var[0], 3); }
static att_var *merge_heads(att_tape *t, const problem *p) { return att_merge_heads(t, p->var[0]); }

/* A variable that is used beside a view of it. */
static att_var *heads_and_variable(att_tape *t, const problem *p)
{
    att_var *merged = att_merge_heads(t, att_split_heads(t, p->var[0], 3));
    return att_add(t, att_activate(t, merged, ATT_TANH), p->var[0]);
}

static void same_reference(const problem *p, double *y)
{
    for (int64_t i = 0; i < count_of(&p->leaf[0]); i++)
        y[i] = (double)p->leaf[0].x[i];
}

static void view_and_variable_reference(const problem *p, double *y)
{
    for (int64_t i = 0; i < count_of(&p->leaf[0]); i++)
        y[i] = tanh((double)p->leaf[0].x[i]) + (double)p->leaf[0].x[i];
}

static void gradients_of_split_heads(void **state)
{
    (void)state;
    problem p = {.build = split_heads,
                 .reference = same_reference,
                 .leaf = {{.rank = 2, .dim = {5, 21}}},
                 .tolerance = FLT_EPSILON};
    check_problem(p, "split_heads");
    p.build = heads_and_variable;
    p.reference = view_and_variable_reference;
    p.tolerance = 8 * FLT_EPSILON;
    check_problem(p, "a variable and its view");
}

static void gradients_of_merge_heads(void **state)
{
    (void)state;
    const problem p = {.build = merge_heads,
                       .reference = same_reference,
                       .leaf = {{.rank = 3, .dim = {5, 3, 7}}},
                       .tolerance = FLT_EPSILON};
    check_problem(p, "merge_heads");
}

/* ---- reshape, transpose */

static att_var *reshape(att_tape *t, const problem *p) { return att_reshape(t, p->var[0], 3, (int64_t[]){3, -1, 7}); }

/* A variable that is used beside a view of it, of another shape. */
static att_var *view_and_variable(att_tape *t, const problem *p)
{
    att_var *y = att_activate(t, att_reshape(t, p->var[0], 1, (int64_t[]){-1}), ATT_TANH);
    return att_add(t, att_reshape(t, y, 2, p->leaf[0].dim), p->var[0]);
}

static att_var *transpose(att_tape *t, const problem *p) { return att_transpose(t, p->var[0], p->dim, (int)p->first); }

static void transpose_reference(const problem *p, double *y)
{
    const leaf *x = &p->leaf[0];
    const int rank = x->rank, a = (p->dim + rank) % rank, b = ((int)p->first + rank) % rank;
    int64_t dim[4], stride[4], step = 1;
    for (int d = rank - 1; d >= 0; step *= x->dim[d--]) {
        const int to = d == a ? b : d == b ? a : d; /* the dimension of y that is d of x */
        dim[to] = x->dim[d];
        stride[to] = step;
    }
    for (int64_t i = 0; i < count_of(x); i++) {
        int64_t at = 0;
        for (int64_t d = rank - 1, rest = i; d >= 0; rest /= dim[d--])
            at += rest % dim[d] * stride[d];
        y[i] = (double)x->x[at];
    }
}

static void gradients_of_reshape(void **state)
{
    (void)state;
    problem p = {.build = reshape,
                 .reference = same_reference,
                 .leaf = {{.rank = 2, .dim = {5, 21}}},
                 .tolerance = FLT_EPSILON,
                 .y_tolerance = FLT_EPSILON};
    check_problem(p, "reshape");
    p.build = view_and_variable;
    p.reference = view_and_variable_reference;
    p.tolerance = 8 * FLT_EPSILON;
    p.y_tolerance = 4 * FLT_EPSILON;
    check_problem(p, "a variable and its view");
}

static void gradients_of_transpose(void **state)
{
    (void)state;
    static const leaf shapes[] = {{.rank = 1, .dim = {5}},
                                  {.rank = 2, .dim = {67, 130}},
                                  {.rank = 3, .dim = {3, 4, 5}},
                                  {.rank = 4, .dim = {2, 3, 4, 5}},
                                  {.rank = 3, .dim = {3, 0, 5}}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (int dim = -1; dim < shapes[i].rank; dim++)
            for (int64_t first = -1; first < shapes[i].rank; first++) {
                const problem p = {.build = transpose,
                                   .reference = transpose_reference,
                                   .leaf = {shapes[i]},
                                   .dim = dim,
                                   .first = first,
                                   .tolerance = FLT_EPSILON,
                                   .y_tolerance = FLT_EPSILON};
                check_problem(p, "transpose");
            }
}

/* ---- use */

static att_var *use(att_tape *t, const problem *p) { return att_parameter(t, p->weight[0]); }

/* As it is, and in a product with itself: one gradient from two uses. */
static att_var *use_twice(att_tape *t, const problem *p)
{
    return att_linear(t, att_parameter(t, p->weight[0]), p->weight[0], NULL, ATT_IDENTITY,
                      att_parameter(t, p->weight[0]));
}

static void use_twice_reference(const problem *p, double *y)
{
    const int64_t n = p->leaf[0].dim[0];
    const float *x = p->leaf[0].x;
    const att_epilogue e = {.residual = x, .residual_stride = n};
    att_ref_gemm(
        &(const att_ref_gemm_args){
            .m = n, .n = n, .k = n, .a = x, .lda = n, .b = x, .stride_n = n, .stride_k = 1, .epilogue = &e},
        y, n);
}

static void gradients_of_parameter(void **state)
{
    (void)state;
    problem p = {.build = use,
                 .reference = same_reference,
                 .leaf = {{.rank = 4, .dim = {2, 3, 1, 5}, .param = true}},
                 .tolerance = FLT_EPSILON};
    check_problem(p, "use");
    p.build = use_twice;
    p.reference = use_twice_reference;
    p.leaf[0] = (leaf){.rank = 2, .dim = {7, 7}, .param = true};
    p.tolerance = 2 * (7 + 8) * FLT_EPSILON; /* two sums of 7 */
    check_problem(p, "use, twice");
}

#endif
