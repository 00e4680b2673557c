/* activation(x weight^T + bias) + residual */
#include "tape/tape.h"
#include "gemm/gemm.h"

static bool check(att_tape *t, const att_tensor *x, const att_param *weight, const att_param *bias, att_activation act,
                  const att_tensor *residual)
{
    const att_tensor *w = weight ? att_param_value(weight) : NULL;
    const att_tensor *b = bias ? att_param_value(bias) : NULL;
    if (!w)
        att_tape_fail(t, ATT_ERR_ARGUMENT, "linear: weight is NULL");
    else if ((unsigned)act > ATT_SIGMOID)
        att_tape_fail(t, ATT_ERR_ARGUMENT, "linear: %d is no activation", (int)act);
    else if (x->rank != 2 || w->rank != 2)
        att_tape_fail(t, ATT_ERR_SHAPE, "linear: x is %s and weight is %s, not matrices", att_shape_of(x).text,
                      att_shape_of(w).text);
    else if (x->dim[1] != w->dim[1])
        att_tape_fail(t, ATT_ERR_SHAPE, "linear: x has %lld features but weight is %s", (long long)x->dim[1],
                      att_shape_of(w).text);
    else if (b && (b->rank != 1 || b->dim[0] != w->dim[0]))
        att_tape_fail(t, ATT_ERR_SHAPE, "linear: bias is %s but weight is %s", att_shape_of(b).text,
                      att_shape_of(w).text);
    else if (residual && (residual->rank != 2 || residual->dim[0] != x->dim[0] || residual->dim[1] != w->dim[0]))
        att_tape_fail(t, ATT_ERR_SHAPE, "linear: residual is %s but the result is [%lld, %lld]",
                      att_shape_of(residual).text, (long long)x->dim[0], (long long)w->dim[0]);
    else
        return true;
    return false;
}

/* ---- backward: with z = x W^T + b and dz = dy f'(z), dx = dz W, dW = dz^T x, db = the sum of dz's rows */

typedef struct kept {
    att_activation act;
    const float *z; /* [rows, out], NULL where the activation is the identity; of ReLU, y, which tells the sign */
} kept;

att_status att_tape_input_back(att_tape *t, const float *dz, att_var *x, att_param *weight)
{
    const int64_t m = x->value.dim[0], k = x->value.dim[1], n = att_param_value(weight)->dim[0];
    const float *w = att_param_floats(weight);
    bool add;
    float *dx = att_tape_grad_put(x, &add);
    return w ? att_tape_product(t, m, k, n, (att_matrix){dz, n, 1}, (att_matrix){w, k, 1}, add, dx) : ATT_ERR_MEMORY;
}

att_status att_tape_weight_back(att_tape *t, int64_t m, const float *dz, const float *x, att_param *weight,
                                att_param *bias)
{
    const int64_t n = att_param_value(weight)->dim[0], k = att_param_value(weight)->dim[1];
    if (bias)
        att_tape_sum_rows(t->ctx, m, n, dz, att_param_part(bias));
    bool add;
    float *dw = att_param_part_put(weight, &add);
    return att_tape_product(t, n, k, m, (att_matrix){dz, 1, n}, (att_matrix){x, k, 1}, add, dw);
}

static att_status backward(att_tape *t, const att_step *s)
{
    const kept *kept = s->kept;
    const int64_t m = s->y->value.dim[0], n = s->y->value.dim[1];
    const float *dz = s->y->grad;
    if (kept->z) {
        float *to = att_tape_scratch(t, (size_t)(m * n));
        if (!to)
            return ATT_ERR_MEMORY;
        att_tape_activate_back(t->ctx, (int)kept->act, m * n, kept->z, dz, to);
        dz = to;
    }
    att_tape_give(t, s->in[1], s->y->grad);
    const att_status e = s->in[0]->grad ? att_tape_input_back(t, dz, s->in[0], s->param[0]) : ATT_OK;
    return e ? e : att_tape_weight_back(t, m, dz, s->in[0]->value.data, s->param[0], s->param[1]);
}

const att_operation att_operation_linear = {.name = "linear", .backward = backward, .forgets_y = true, .forgets_in = 2};
static const att_operation linear_relu = {.name = "linear", .backward = backward, .forgets_in = 2};

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
    j->k->activate(j->activation, last - first, j->z + first, j->y + first);
    if (j->residual)
        j->k->add(last - first, j->y + first, j->residual + first, j->y + first);
}

att_var *att_linear(att_tape *t, att_var *x, att_param *weight, att_param *bias, att_activation act, att_var *residual)
{
    if (!x || !att_tape_ready(t) || !check(t, &x->value, weight, bias, act, residual ? &residual->value : NULL))
        return NULL;
    const int64_t m = x->value.dim[0], k = x->value.dim[1], n = att_param_value(weight)->dim[0];
    const float *packed = att_param_packed(weight);
    const float *b = bias ? att_param_floats(bias) : NULL;
    if (!packed || (bias && !b))
        return att_tape_fail(t, ATT_ERR_MEMORY, "linear: %s", att_error(t->ctx));
    att_var *y = att_tape_var(t, 2, (const int64_t[]){m, n});
    if (!y)
        return NULL;
    const float *r = residual ? residual->value.data : NULL;
    const bool relu = act == ATT_RELU && !r;
    att_var *z = relu ? y : NULL; /* what a backward needs, and the epilogue would overwrite */
    if (t->record && act != ATT_IDENTITY && !relu) {
        z = att_tape_var(t, 2, y->value.dim);
        if (!z)
            return NULL;
        att_gemm(t->ctx, m, n, k, x->value.data, k, packed, z->value.data, n, &(const att_epilogue){.bias = b});
        const finish_job j = {att_kernels_of(t->ctx->isa), (int)act, z->value.data, r, y->value.data};
        att_tape_for_rows(t->ctx, m * n, 1, finish, &j);
    } else {
        const att_epilogue e = {.bias = b, .residual = r, .residual_stride = n, .activation = (int)act};
        att_gemm(t->ctx, m, n, k, x->value.data, k, packed, y->value.data, n, &e);
    }
    const kept kept = {act, z ? z->value.data : NULL};
    const att_step step = {.op = relu ? &linear_relu : &att_operation_linear,
                           .y = y,
                           .in = (att_var *[]){x, residual},
                           .n_in = 2,
                           .param = (att_param *[]){weight, bias},
                           .n_param = 2,
                           .kept = &kept,
                           .kept_bytes = sizeof kept};
    return att_tape_done(t, &step, NULL, NULL);
}
