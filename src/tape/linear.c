/* activation(x weight^T + bias) + residual */
#include "tape/tape.h"

bool att_tape_check_linear(att_tape *t, const char *op, const att_tensor *x, const att_param *weight,
                           const att_param *bias)
{
    const att_tensor *w = weight ? att_param_value(weight) : NULL;
    const att_tensor *b = bias ? att_param_value(bias) : NULL;
    if (!w)
        att_tape_fail(t, ATT_ERR_ARGUMENT, "%s: weight is NULL", op);
    else if (x->rank != 2 || w->rank != 2)
        att_tape_fail(t, ATT_ERR_SHAPE, "%s: x is %s and weight is %s, not matrices", op, att_shape_of(x).text,
                      att_shape_of(w).text);
    else if (x->dim[1] != w->dim[1])
        att_tape_fail(t, ATT_ERR_SHAPE, "%s: x has %lld features but weight is %s", op, (long long)x->dim[1],
                      att_shape_of(w).text);
    else if (b && (b->rank != 1 || b->dim[0] != w->dim[0]))
        att_tape_fail(t, ATT_ERR_SHAPE, "%s: bias is %s but weight is %s: expected [%lld]", op, att_shape_of(b).text,
                      att_shape_of(w).text, (long long)w->dim[0]);
    return !t->status;
}

static bool check(att_tape *t, const att_tensor *x, const att_param *weight, const att_param *bias, att_activation act,
                  const att_tensor *residual)
{
    if (!att_tape_check_linear(t, "linear", x, weight, bias))
        return false;
    const int64_t dim[] = {x->dim[0], att_param_value(weight)->dim[0]};
    if ((unsigned)act > ATT_ACTIVATION_QUICK_GELU)
        att_tape_fail(t, ATT_ERR_ARGUMENT, "linear: %d is not an activation", (int)act);
    else if (residual && (residual->rank != 2 || residual->dim[0] != dim[0] || residual->dim[1] != dim[1]))
        att_tape_fail(t, ATT_ERR_SHAPE, "linear: residual is %s but the result is [%lld, %lld]",
                      att_shape_of(residual).text, (long long)dim[0], (long long)dim[1]);
    return !t->status;
}

/* ---- backward: with z = x W^T + b and dz = dy f'(z): dx = dz W, dW = dz^T x, db = sum of the rows of dz */

typedef struct linear_saved {
    att_activation act;
    const float *z; /* [rows, out]; NULL for the identity; for ReLU it is y, whose sign suffices */
} linear_saved;

att_status att_tape_input_back(att_tape *t, const float *dz, att_var *x, att_param *weight)
{
    const int64_t m = x->value.dim[0], k = x->value.dim[1], n = att_param_value(weight)->dim[0];
    const int64_t block = att_param_block(weight);
    float *rows = att_tape_scratch(t, att_param_block_count(weight));
    if (!rows)
        return ATT_ERR_MEMORY;
    att_matmul_args p = {.m = m, .n = k, .ldc = k, .bf16 = att_tape_in_bf16(t, weight)};
    p.c = att_tape_grad_for_write(x, &p.add);
    att_status e = ATT_OK;
    int64_t first = 0;
    do { /* at least once, to write zeros if n = 0; each block continues the chains of the previous one */
        p.k = att_min(block, n - first);
        p.a = (att_matrix){dz + first, n, 1};
        p.b = (att_matrix){att_param_read_block(weight, first, p.k, rows), k, 1};
        e = att_tape_product(t, &p);
        p.add = true;
        first += block;
    } while (!e && first < n);
    return e;
}

att_status att_tape_weight_back(att_tape *t, int64_t m, const float *dz, const float *x, att_param *weight,
                                att_param *bias)
{
    const int64_t n = att_param_value(weight)->dim[0], k = att_param_value(weight)->dim[1];
    float *db = att_param_partial(bias);
    if (db)
        att_tape_sum_rows(t->ctx, m, n, dz, db);
    att_matmul_args p = {
        .m = n, .n = k, .k = m, .a = {dz, 1, n}, .b = {x, k, 1}, .ldc = k, .bf16 = att_tape_in_bf16(t, weight)};
    p.c = att_param_partial_for_write(weight, &p.add);
    return p.c ? att_tape_product(t, &p) : ATT_OK;
}

static att_status backward(att_tape *t, const att_step *s)
{
    const linear_saved *saved = s->saved;
    const int64_t m = s->y->value.dim[0], n = s->y->value.dim[1];
    const float *dz = s->y->grad;
    if (saved->z) {
        float *to = att_tape_scratch(t, (size_t)(m * n));
        if (!to)
            return ATT_ERR_MEMORY;
        att_tape_activate_back(t->ctx, (int)saved->act, m * n, saved->z, dz, to);
        dz = to;
    }
    att_tape_add_grad(t, s->in[1], s->y->grad);
    const att_status e = s->in[0]->grad ? att_tape_input_back(t, dz, s->in[0], s->param[0]) : ATT_OK;
    return e ? e : att_tape_weight_back(t, m, dz, s->in[0]->value.data, s->param[0], s->param[1]);
}

const att_operation att_operation_linear = {.name = "linear", .backward = backward, .ignores_y = true, .ignores_in = 2};
static const att_operation linear_relu = {.name = "linear", .backward = backward, .ignores_in = 2};

/* ---- forward */

typedef struct finish_job {
    const att_kernels *k;
    int activation;
    const float *z, *residual;
    float *y; /* all [count] */
} finish_job;

static void finish(const void *arg, int64_t first, int64_t last)
{
    const finish_job *j = arg;
    j->k->layer.activate(j->activation, last - first, j->z + first, j->y + first);
    if (j->residual)
        j->k->vector.add(last - first, j->y + first, j->residual + first, j->y + first);
}

/* Returns whether a product of m rows packs its weights into memory of its own. During training, trained weights are
 * packed again after each step, and a permanent packed copy doubles their memory. So if packing is cheap compared with
 * the product, a temporary copy is made. */
static bool packs_anew(const att_tape *t, const att_param *weight, int64_t m)
{
    enum { MANY = 512 };
    return t->record && m >= MANY && !att_param_frozen(weight);
}

/* Returns the packed weights for a product of m rows. */
static const float *packed_for(att_tape *t, att_param *weight, int64_t m)
{
    if (!packs_anew(t, weight, m))
        return att_param_packed(weight);
    float *y = att_tape_scratch(t, att_param_packed_count(weight));
    return y && att_param_pack(weight, y) ? y : NULL;
}

static const float *pairs_for(att_tape *t, att_param *weight, int64_t m)
{
    if (!packs_anew(t, weight, m))
        return att_param_packed_pairs(weight);
    float *y = att_tape_scratch(t, att_param_pairs_count(weight));
    return y && att_param_pack_pairs(weight, y) ? y : NULL;
}

/* Sets the packed weights of a product of p->m rows; false: out of memory. */
static bool set_packed(att_tape *t, att_param *weight, att_gemm_args *p)
{
    const att_dtype type = att_param_value(weight)->dtype;
    if (type == ATT_F32)
        p->packed = packed_for(t, weight, p->m);
    else
        p->codes = att_param_packed_codes(weight);
    p->bf16 = type == ATT_BF16;
    return p->packed || p->codes;
}

/* Computes y [m, n] = e(x [m, k] weight^T), with a quantized weight [n, k] (linear.c); false: out of memory. */
static bool multiply_quantized(att_tape *t, const att_tensor *x, const att_param *weight, const att_epilogue *e,
                               float *y)
{
    const att_tensor *w = att_param_value(weight);
    const int64_t m = x->dim[0], k = x->dim[1];
    const size_t mark = att_arena_mark(&t->arena);
    float *scratch = att_tape_scratch(t, att_quantized_scratch(m, k));
    if (!scratch)
        return false;
    att_quantized_multiply(t->ctx,
                           &(const att_quantized_product){.m = m,
                                                          .n = w->dim[0],
                                                          .k = k,
                                                          .a = x->data,
                                                          .type = (int)w->dtype,
                                                          .b = w->data,
                                                          .row_bytes = att_dtype_bytes(w->dtype, w->stride[0]),
                                                          .c = y,
                                                          .ldc = w->dim[0],
                                                          .epilogue = e},
                           scratch);
    att_arena_release(&t->arena, mark);
    return true;
}

/* Computes the product of quantized weights, or of i8, as if they were f32, in blocks of rows, which are columns of the
 * product. */
static bool multiply_dequantized(att_tape *t, att_param *weight, const att_gemm_args *product)
{
    const int64_t block = att_param_block(weight);
    float *rows = att_tape_scratch(t, att_param_block_count(weight));
    float *packed = att_tape_scratch(t, att_gemm_packed_count(t->ctx, block, product->k));
    if (!rows || !packed)
        return false;
    for (int64_t first = 0; first < product->n; first += block) {
        att_gemm_args p = *product;
        att_epilogue e = *p.epilogue;
        p.n = att_min(block, product->n - first);
        p.c += first;
        e.bias = e.bias ? e.bias + first : NULL;
        e.residual = e.residual ? e.residual + first : NULL;
        p.epilogue = &e;
        p.packed = packed;
        att_gemm_pack(t->ctx, p.n, p.k, att_param_read_block(weight, first, p.n, rows), p.k, 1, packed);
        att_gemm(t->ctx, &p);
    }
    return true;
}

/* Computes the product p in bf16. */
static bool multiply_bf16(att_tape *t, att_param *weight, att_gemm_args *p)
{
    p->packed = pairs_for(t, weight, p->m);
    float *scratch = att_tape_scratch(t, att_bf16_scratch(t->ctx, p->m, p->k));
    if (p->packed && scratch)
        att_bf16_multiply(t->ctx, p, 1, scratch);
    return p->packed && scratch;
}

/* Computes the product p, after setting its weights. */
static bool multiply_by(att_tape *t, att_param *weight, att_gemm_args *p)
{
    const att_dtype type = att_param_value(weight)->dtype;
    if (att_is_quantized(type) || type == ATT_I8)
        return multiply_dequantized(t, weight, p);
    if (att_tape_in_bf16(t, weight))
        return multiply_bf16(t, weight, p);
    if (!set_packed(t, weight, p))
        return false;
    att_gemm(t->ctx, p);
    return true;
}

/* Computes y = activation(z) + residual, z = x weight^T + bias; z is stored unless NULL. */
static bool multiply(att_tape *t, const att_tensor *x, att_param *weight, att_param *bias, att_activation act,
                     const float *residual, float *z, const att_tensor *y)
{
    const int64_t m = x->dim[0], k = x->dim[1], n = y->dim[1];
    const size_t mark = att_arena_mark(&t->arena);
    const float *b = bias ? att_param_floats(bias) : NULL;
    if (att_is_quantized(att_param_value(weight)->dtype) && !t->for_backward) {
        const att_epilogue e = {.bias = b, .residual = residual, .residual_stride = n, .activation = (int)act};
        return (!bias || b) && multiply_quantized(t, x, weight, &e, y->data);
    }
    att_gemm_args p = {.m = m, .n = n, .k = k, .a = x->data, .lda = k, .ldc = n};
    if (bias && !b)
        return false;
    bool good;
    if (z) {
        p.c = z;
        p.epilogue = &(const att_epilogue){.bias = b};
        good = multiply_by(t, weight, &p);
        const finish_job j = {att_kernels_of(t->ctx->isa), (int)act, z, residual, y->data};
        if (good)
            att_tape_for_rows(t->ctx, m * n, 1, finish, &j);
    } else {
        p.c = y->data;
        p.epilogue =
            &(const att_epilogue){.bias = b, .residual = residual, .residual_stride = n, .activation = (int)act};
        good = multiply_by(t, weight, &p);
    }
    att_arena_release(&t->arena, mark);
    return good;
}

att_var *att_linear(att_tape *t, att_var *x, att_param *weight, att_param *bias, att_activation act, att_var *residual)
{
    if (!x || !att_tape_ready(t) || !check(t, &x->value, weight, bias, act, residual ? &residual->value : NULL))
        return NULL;
    /* Backward needs z, which the fused epilogue would overwrite; for ReLU y suffices. */
    att_step step = {.op = &att_operation_linear,
                     .in = (att_var *[]){x, residual},
                     .n_in = 2,
                     .param = (att_param *[]){weight, bias},
                     .n_param = 2};
    const bool relu = act == ATT_ACTIVATION_RELU && !residual,
               apart = att_tape_learns(t, &step) && act != ATT_ACTIVATION_IDENTITY && !relu;
    const int64_t dim[] = {x->value.dim[0], att_param_value(weight)->dim[0]};
    att_var *y = att_tape_var(t, 2, dim), *z = apart ? att_tape_var(t, 2, dim) : NULL;
    if (!y || (apart && !z))
        return NULL;
    if (!multiply(t, &x->value, weight, bias, act, residual ? residual->value.data : NULL, z ? z->value.data : NULL,
                  &y->value))
        return att_tape_fail(t, ATT_ERR_MEMORY, "linear: %s", att_error(t->ctx));
    const linear_saved saved = {act, z ? z->value.data : relu ? y->value.data : NULL};
    step.op = relu ? &linear_relu : step.op;
    step.y = y;
    step.saved = &saved;
    step.saved_bytes = sizeof saved;
    return att_tape_done(t, &step, NULL, NULL);
}
