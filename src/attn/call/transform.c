/* Row transforms: a score may transform each row of queries and of keys, once a row, before the tiles see it. The tiles
 * then compute a plain product or sum.
 *
 *   general    q' = q W                   then q' . k
 *   cosine     q' = q / |q|  k' = k / |k|  then q' . k'
 *   additive   q' = Wq q     k' = Wk k     then v . tanh(q' + k')
 *
 * Transformed rows are f32 and take memory linear in the lengths, during a call. A row's bits depend only on that
 * row. */
#include "attn/call/transform.h"
#include "attn/call/scratch.h"
#include "attn/call/operand.h"
#include "gemm/gemm.h"
#include "tensor/tensor.h"

#include <float.h>

/* ---- row by row */

/* Converts x of any other type to f32. */
static void convert(const att_kernels *k, int64_t n, const att_rows *x, const att_rows *u, const att_rows *y)
{
    (void)u;
    att_rows_read(k, x, 0, 1, n, y->at);
}

/* Computes x / |x|; 0 stays 0. */
static void to_unit(const att_kernels *k, int64_t n, const att_rows *x, const att_rows *u, const att_rows *y)
{
    (void)u;
    k->layer.normalize(n, x->at, FLT_TRUE_MIN, y->at);
}

/* ---- queries, or keys */

/* Return the steps in one head of the parameter, from output to output and from input to input. */
static int64_t out_step(const att_qk_operand *x) { return x->how->out_first ? x->in : 1; }
static int64_t in_step(const att_qk_operand *x) { return x->how->out_first ? 1 : x->out; }

/* Multiplies x [rows, k] by one head's packed parameter -> y [rows, n]; f32. */
void att_qk_multiply(const att_call *c, att_strided_rows x, att_strided_rows y, int64_t n, int64_t k,
                     const float *packed)
{
    att_strided_rows_join(&x, &y);
    for (int64_t i = 0; i < x.outer; i++)
        att_gemm(c->plan->ctx, &(const att_gemm_args){.m = x.inner,
                                                      .n = n,
                                                      .k = k,
                                                      .a = att_strided_row_at(&x, i * x.outer_step),
                                                      .lda = x.step,
                                                      .packed = packed,
                                                      .c = att_strided_row_at(&y, i * y.outer_step),
                                                      .ldc = y.step});
}

void att_qk_pack(const att_call *c, const att_qk_operand *x, int64_t head, bool backward, float *packed)
{
    const float *w = (const float *)x->param->data + (att_qk_shares_param(x) ? 0 : head * x->param->stride[0]);
    if (backward)
        att_gemm_pack(c->plan->ctx, x->in, x->out, w, in_step(x), out_step(x), packed);
    else
        att_gemm_pack(c->plan->ctx, x->out, x->in, w, out_step(x), in_step(x), packed);
}

/* Makes a tensor of rows in new memory: those of `like`, but `heads` of them, of dim numbers, `step` apart. */
att_status att_qk_make_rows(const att_call *c, const att_tensor *like, int64_t heads, int64_t dim, int64_t step,
                            float **memory, att_tensor *t)
{
    const int64_t times = like->dim[c->ragged ? 0 : 2], batch = c->ragged ? 1 : like->dim[0];
    const size_t rows = att_size_mul((size_t)(batch * times), (size_t)(heads * step));
    *memory = att_scratch_acquire(c->plan, rows);
    if (!*memory)
        return ATT_ERR_MEMORY;
    const int64_t ragged[] = {heads * step, step, 1}, batched[] = {times * heads * step, step, heads * step, 1};
    if (c->ragged)
        return att_wrap(t, *memory, ATT_F32, ATT_DIMS(times, heads, dim), ragged);
    return att_wrap(t, *memory, ATT_F32, ATT_DIMS(batch, heads, times, dim), batched);
}

/* ---- forward */

/* Finds the wanted heads [*first, *last) of the `heads` heads of q, or of k, and a tensor t of rows for them. If only
 * one head is wanted, t has its rows for every head (stride 0). */
static att_status make_wanted(const att_call *c, const att_tensor *like, int64_t heads, int64_t dim, float **memory,
                              att_tensor *t, int64_t *first, int64_t *last)
{
    *first = c->heads.first * heads / c->plan->spec.heads;
    *last = (c->heads.last - 1) * heads / c->plan->spec.heads + 1;
    const att_status e = att_qk_make_rows(c, like, *last - *first, dim, dim, memory, t);
    if (*last - *first < heads)
        t->stride[1] = 0;
    return e;
}

/* Returns the caller's rows as f32: in place if they have that type, otherwise converted. */
static att_status to_floats(att_call *c, const att_qk_operand *x, bool of_keys)
{
    const att_tensor *from = of_keys ? &c->args.k : &c->args.q;
    att_tensor *to = &c->floats[of_keys];
    const int64_t heads = x->heads / x->group;
    *to = *from;
    if (from->dtype == ATT_F32)
        return ATT_OK;
    int64_t first, last;
    const att_status e = make_wanted(c, from, heads, x->in, &c->memory[of_keys].converted, to, &first, &last);
    for (int64_t h = first; !e && h < last; h++)
        att_for_each_row(c, convert, x->in, att_strided_rows_of(c, from, h), att_strided_rows_of(c, from, h),
                         att_strided_rows_of(c, to, h));
    return e;
}

static att_status prepare(att_call *c, const att_qk_operand *x, bool of_keys)
{
    att_ctx *ctx = c->plan->ctx;
    att_tensor *to = of_keys ? &c->k_rows : &c->q_rows;
    if (x->how->kind == ATT_TRANSFORM_NONE)
        return ATT_OK;
    int64_t first = 0, last = x->heads;
    att_status e = to_floats(c, x, of_keys);
    e = e ? e : make_wanted(c, x->rows, x->heads, x->out, &c->memory[of_keys].transformed, to, &first, &last);
    const bool project = x->how->kind == ATT_TRANSFORM_PROJECT;
    float *packed = e || !project ? NULL : att_alloc(ctx, att_gemm_packed_count(ctx, x->out, x->in), sizeof *packed);
    if (e || (project && !packed))
        return ATT_ERR_MEMORY;
    for (int64_t h = first; h < last; h++) {
        const att_strided_rows a = att_strided_rows_of(c, x->rows, h / x->group), b = att_strided_rows_of(c, to, h);
        if (project) {
            if (h == first || !att_qk_shares_param(x))
                att_qk_pack(c, x, h, false, packed);
            att_qk_multiply(c, a, b, x->out, x->in, packed);
        } else {
            att_for_each_row(c, to_unit, x->out, a, a, b);
        }
    }
    att_free(ctx, packed);
    return ATT_OK;
}

att_status att_transform_begin(att_call *c)
{
    att_status e = ATT_OK;
    for (int of_keys = 0; !e && c->plan->transforms && of_keys < 2; of_keys++) {
        const att_qk_operand x = att_qk_operand_of(c, of_keys);
        e = prepare(c, &x, of_keys);
    }
    if (e)
        att_transform_end(c);
    return e;
}

void att_transform_end(att_call *c)
{
    for (int i = 0; i < 2; i++) {
        att_scratch_release(c->plan, c->memory[i].transformed);
        att_scratch_release(c->plan, c->memory[i].converted);
    }
}

bool att_transform_uses_param(const att_plan *p, int n)
{
    const att_row_transforms *o = p->builtin->transforms;
    return o && ((o->q.kind == ATT_TRANSFORM_PROJECT && o->q.param == n) ||
                 (o->k.kind == ATT_TRANSFORM_PROJECT && o->k.param == n));
}

size_t att_transform_workspace(const att_call *c)
{
    size_t floats = 0, headers = 0;
    for (int of_keys = 0; c->plan->transforms && of_keys < 2; of_keys++) {
        const att_qk_operand x = att_qk_operand_of(c, of_keys);
        const int64_t converted = att_qk_rows(c, of_keys)->dtype == ATT_F32 ? 0 : x.heads / x.group * x.in;
        if (x.how->kind == ATT_TRANSFORM_NONE)
            continue;
        floats += (size_t)(att_qk_count(c, of_keys) * (x.heads * x.out + converted));
        headers += (size_t)(1 + (converted > 0));
    }
    return floats * sizeof(float) + headers * ATT_SCRATCH_HEADER;
}
