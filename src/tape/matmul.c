/* Matrix product, either operand optionally transposed */
#include "tape/tape.h"

typedef struct matmul_saved {
    bool transpose_a, transpose_b;
} matmul_saved;

static att_matrix matrix_of(const float *x, int64_t columns, bool transposed)
{
    return transposed ? (att_matrix){x, 1, columns} : (att_matrix){x, columns, 1};
}
static att_matrix transposed_of(att_matrix a) { return (att_matrix){a.x, a.column, a.row}; }

/* ---- backward: for C = A B, dA = dC B^T and dB = A^T dC; for a transposed operand, the transpose of that */

/* Adds a b [m, n] to the gradient of x, or if x is transposed, (a b)^T = b^T a^T. */
static att_status operand_back(att_tape *t, att_var *x, bool transposed, att_matmul_args p)
{
    p.c = att_tape_grad_for_write(x, &p.add);
    if (!p.c)
        return ATT_OK;
    if (transposed)
        p = (att_matmul_args){.m = p.n,
                              .n = p.m,
                              .k = p.k,
                              .a = transposed_of(p.b),
                              .b = transposed_of(p.a),
                              .add = p.add,
                              .c = p.c,
                              .ldc = p.m};
    return att_tape_product(t, &p);
}

static att_status backward(att_tape *t, const att_step *s)
{
    const matmul_saved *how = s->saved;
    att_var *a = s->in[0], *b = s->in[1];
    const int64_t m = s->y->value.dim[0], n = s->y->value.dim[1], k = a->value.dim[how->transpose_a ? 0 : 1];
    const att_matrix dc = {s->y->grad, n, 1}, left = matrix_of(a->value.data, a->value.dim[1], how->transpose_a),
                     right = matrix_of(b->value.data, b->value.dim[1], how->transpose_b);
    const att_matmul_args da = {.m = m, .n = k, .k = n, .a = dc, .b = transposed_of(right), .ldc = k};
    const att_matmul_args db = {.m = k, .n = n, .k = m, .a = transposed_of(left), .b = dc, .ldc = n};
    const att_status e = operand_back(t, a, how->transpose_a, da);
    return e ? e : operand_back(t, b, how->transpose_b, db);
}

const att_operation att_operation_matmul = {.name = "matmul", .backward = backward};

/* ---- forward */

att_var *att_matmul(att_tape *t, att_var *a, att_var *b, const att_matmul_options *options)
{
    att_matmul_options o;
    if (!a || !b || !att_tape_ready(t) ||
        !att_tape_options_read(t, "matmul", &o, sizeof o, options, "att_matmul_options"))
        return NULL;
    const bool transpose_a = o.transpose_a, transpose_b = o.transpose_b;
    const att_tensor *av = &a->value, *bv = &b->value;
    if (av->rank != 2 || bv->rank != 2)
        return att_tape_fail(t, ATT_ERR_SHAPE, "matmul: a is %s and b is %s, not matrices", att_shape_of(av).text,
                             att_shape_of(bv).text);
    const int64_t m = av->dim[transpose_a], k = av->dim[!transpose_a], n = bv->dim[!transpose_b];
    if (bv->dim[transpose_b] != k)
        return att_tape_fail(t, ATT_ERR_SHAPE, "matmul: a%s is %s but b%s is %s", transpose_a ? ", transposed," : "",
                             att_shape_of(av).text, transpose_b ? ", transposed," : "", att_shape_of(bv).text);
    att_var *y = att_tape_var(t, 2, (const int64_t[]){m, n});
    if (!y)
        return NULL;
    const att_matmul_args product = {.m = m,
                                     .n = n,
                                     .k = k,
                                     .a = matrix_of(av->data, av->dim[1], transpose_a),
                                     .b = matrix_of(bv->data, bv->dim[1], transpose_b),
                                     .c = y->value.data,
                                     .ldc = n};
    if (att_tape_product(t, &product))
        return att_tape_fail(t, ATT_ERR_MEMORY, "matmul: %s", att_error(t->ctx));
    const matmul_saved how = {transpose_a, transpose_b};
    return att_tape_end(t, &att_operation_matmul, y, (att_var *[]){a, b}, 2, &how, sizeof how);
}
