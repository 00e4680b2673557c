/* From gradients of the rows that tiles see (call/transform.c) to those of the caller's rows and, over all rows in
 * ascending order, of the parameters. */
#include "attn/backward/transform_back.h"
#include "attn/call/scratch.h"
#include "gemm/gemm.h"

/* Adds to y of any type, some numbers at a time. */
static void add(const att_kernels *k, int64_t n, const att_rows *x, const att_rows *u, const att_rows *y)
{
    (void)u;
    float some[256];
    const int64_t size = (int64_t)att_dtype_size(y->dtype);
    for (int64_t i = 0; i < n; i += 256) {
        const att_rows part = {.at = (char *)y->at + i * size, .dtype = y->dtype};
        att_rows_write(k, (att_floats){(const float *)x->at + i, 0}, &part, 0, 1, n - i < 256 ? n - i : 256, true,
                       some);
    }
}

/* Copies to y of any type. */
static void copy(const att_kernels *k, int64_t n, const att_rows *x, const att_rows *u, const att_rows *y)
{
    (void)u;
    att_rows_write(k, (att_floats){x->at, 0}, y, 0, 1, n, false, NULL);
}

/* Replaces y, the gradient of u = x / |x|, by that of x: (y - u (u . y)) / |x|, or 0 if y or x is 0. */
static void unit_back(const att_kernels *k, int64_t n, const att_rows *x, const att_rows *u, const att_rows *y)
{
    const float *unit = u->at;
    float *slope = y->at;
    if (att_is_zero(n, slope))
        return;
    const float length = k->vector.dot(n, x->at, unit), along = k->vector.dot(n, unit, slope);
    for (int64_t i = 0; i < n; i++)
        slope[i] = length == 0 ? 0 : (slope[i] - unit[i] * along) / length;
}

static const att_tensor *param_gradient(const att_qk_operand *x, const att_attention_grads *g)
{
    const bool wanted = x->how->kind == ATT_TRANSFORM_PROJECT && att_given(&g->dparam[x->how->param]);
    return wanted ? &g->dparam[x->how->param] : NULL;
}

/* Returns whether the gradient of rows can be written to its tensor directly; false: it must be added up, or rounded,
 * first. */
static bool in_place(const att_qk_operand *x, const att_tensor *to, bool accumulate)
{
    return !accumulate && x->group == 1 && to->dtype == ATT_F32;
}

/* Adds what one side needs to turn the gradients of transformed rows into those of rows: a packed matrix, and rows to
 * add up in, if there are not yet as many. */
static void need_back(const att_call *c, const att_qk_operand *x, bool of_keys, bool accumulate, size_t *packed,
                      size_t *sums)
{
    if (x->how->kind != ATT_TRANSFORM_PROJECT)
        return;
    const size_t matrix = att_gemm_packed_count(c->plan->ctx, x->in, x->out);
    const size_t rows = in_place(x, att_qk_rows(c, of_keys), accumulate)
                            ? 0
                            : att_size_mul(2, att_size_mul((size_t)att_qk_count(c, of_keys), (size_t)x->in));
    *packed = matrix > *packed ? matrix : *packed;
    *sums = rows > *sums ? rows : *sums;
}

/* Lays out a packed matrix, rows to add up in, and what parameters' gradients are gathered in, from p on: how many
 * floats. */
static size_t lay_out_back(float *p, size_t packed, size_t sums, size_t param, att_row_grads *r)
{
    const att_scratch_part parts[] = {{&r->packed, att_scratch_count(packed, 1)},
                                      {&r->sums, att_scratch_count(sums, 1)},
                                      {&r->param, att_scratch_count(param, 1)}};
    return att_scratch_lay_out(p, sizeof parts / sizeof parts[0], parts);
}

size_t att_transform_back_workspace(const att_call *c)
{
    size_t floats = 0, headers = 0, packed = 0, sums = 0;
    att_row_grads r;
    for (int of_keys = 0; c->plan->transforms && of_keys < 2; of_keys++) {
        const att_qk_operand x = att_qk_operand_of(c, of_keys);
        if (x.how->kind == ATT_TRANSFORM_NONE)
            continue;
        floats += (size_t)(att_qk_count(c, of_keys) * x.heads * att_round_up(x.out, c->plan->kernels->q_tile));
        headers += 2;
        need_back(c, &x, of_keys, false, &packed, &sums);
    }
    return (floats + lay_out_back(NULL, packed, sums, 0, &r)) * sizeof(float) + headers * ATT_SCRATCH_HEADER;
}

att_status att_transform_back_begin(const att_call *c, const att_attention_grads *g, att_row_grads *r)
{
    size_t packed = 0, sums = 0, param = 0;
    att_status e = ATT_OK;
    *r = (att_row_grads){.dq = g->dq, .dk = g->dk, .add_dq = g->accumulate, .add_dk = g->accumulate};
    for (int of_keys = 0; !e && c->plan->transforms && of_keys < 2; of_keys++) {
        const att_qk_operand x = att_qk_operand_of(c, of_keys);
        const att_tensor *to = of_keys ? &g->dk : &g->dq;
        att_tensor *t = of_keys ? &r->dk : &r->dq;
        if (x.how->kind == ATT_TRANSFORM_NONE || !(att_given(to) || param_gradient(&x, g)))
            continue;
        *(of_keys ? &r->add_dk : &r->add_dq) = false;
        e = att_qk_make_rows(c, x.rows, x.heads, x.out, att_round_up(x.out, c->plan->kernels->q_tile),
                             &r->memory[of_keys], t);
        if (!e && att_given(to))
            need_back(c, &x, of_keys, g->accumulate, &packed, &sums);
        const size_t count = param_gradient(&x, g) ? att_projection_back_workspace(c, &x) : 0;
        param = count > param ? count : param;
    }
    r->memory[2] = e ? NULL : att_scratch_acquire(c->plan, lay_out_back(NULL, packed, sums, param, r));
    lay_out_back(r->memory[2], packed, sums, param, r);
    return r->memory[2] ? ATT_OK : ATT_ERR_MEMORY;
}

void att_transform_back_end(const att_call *c, att_row_grads *r)
{
    for (int i = 0; i < 3; i++)
        att_scratch_release(c->plan, r->memory[i]);
}

/* Computes dx = W^T dx' of projected rows, summed over the heads that were projected from the same rows. */
static void rows_back(const att_call *c, const att_qk_operand *x, const att_tensor *from, const att_tensor *to,
                      bool accumulate, const att_row_grads *r)
{
    for (int64_t h = 0; h < x->heads; h++) {
        const att_strided_rows a = att_strided_rows_of(c, from, h), b = att_strided_rows_of(c, to, h / x->group);
        const att_strided_rows sum = {r->sums, ATT_F32, a.outer, a.inner * x->in, a.inner, x->in};
        att_strided_rows next = sum;
        next.at = att_strided_row_at(&sum, a.outer * a.inner * x->in);
        if (h == 0 || !att_qk_shares_param(x))
            att_qk_pack(c, x, h, true, r->packed);
        if (in_place(x, to, accumulate)) {
            att_qk_multiply(c, a, b, x->in, x->out, r->packed);
            continue;
        }
        const bool first = h % x->group == 0, last = (h + 1) % x->group == 0;
        att_qk_multiply(c, a, first ? sum : next, x->in, x->out, r->packed);
        if (!first)
            att_for_each_row(c, add, x->in, next, next, sum);
        if (last)
            att_for_each_row(c, accumulate ? add : copy, x->in, sum, sum, b);
    }
}

static void unit_rows_back(const att_call *c, const att_qk_operand *x, const att_tensor *from, const att_tensor *to,
                           bool accumulate)
{
    for (int64_t h = 0; h < x->heads; h++) {
        const att_strided_rows grads = att_strided_rows_of(c, from, h);
        att_for_each_row(c, unit_back, x->in, att_strided_rows_of(c, x->rows, h),
                         att_strided_rows_of(c, x->transformed, h), grads);
        att_for_each_row(c, accumulate ? add : copy, x->in, grads, grads, att_strided_rows_of(c, to, h));
    }
}

void att_transform_back(const att_call *c, const att_attention_grads *g, const att_row_grads *r)
{
    for (int of_keys = 0; c->plan->transforms && of_keys < 2; of_keys++) {
        const att_qk_operand x = att_qk_operand_of(c, of_keys);
        const att_tensor *from = of_keys ? &r->dk : &r->dq, *to = of_keys ? &g->dk : &g->dq;
        if (param_gradient(&x, g))
            att_projection_back(c, &x, from, param_gradient(&x, g), g->accumulate, r->param);
        if (x.how->kind == ATT_TRANSFORM_PROJECT && att_given(to))
            rows_back(c, &x, from, to, g->accumulate, r);
        if (x.how->kind == ATT_TRANSFORM_NORMALIZE && att_given(to))
            unit_rows_back(c, &x, from, to, g->accumulate);
    }
}
