/* Row prologues: what a score does to each row of queries, and of keys, by itself. It is done once a row, before the
 * tiles see it, so that they are left with a plain product or sum.
 *
 *   general    q' = q W                   then q' . k
 *   cosine     q' = q / |q|  k' = k / |k|  then q' . k'
 *   additive   q' = Wq q     k' = Wk k     then v . tanh(q' + k')
 *
 * Prepared rows are f32 and take memory linear in the lengths, for the time of a call. A row's bits depend on that row
 * alone.
 * Backward, the tiles leave gradients of prepared rows, which go on from here to those of the rows and, over all rows
 * in ascending order, of the parameters. */
#include "attn/prologue.h"
#include "attn/side.h"
#include "gemm/gemm.h"
#include "tensor/tensor.h"

#include <float.h>

/* ---- row by row */

/* x of any other type to f32 */
static void convert(const att_kernels *k, int64_t n, const att_rows *x, const att_rows *u, const att_rows *y)
{
    (void)u;
    att_rows_read(k, x, 0, 1, n, y->at);
}

/* to y of any type */
static void copy(const att_kernels *k, int64_t n, const att_rows *x, const att_rows *u, const att_rows *y)
{
    (void)u;
    att_rows_write(k, x->at, 0, y, 0, 1, n, false, NULL);
}

/* to y of any type, some numbers at a time */
static void add(const att_kernels *k, int64_t n, const att_rows *x, const att_rows *u, const att_rows *y)
{
    (void)u;
    float some[256];
    const int64_t size = (int64_t)att_dtype_size(y->dtype);
    for (int64_t i = 0; i < n; i += 256) {
        const att_rows part = {.at = (char *)y->at + i * size, .dtype = y->dtype};
        att_rows_write(k, (const float *)x->at + i, 0, &part, 0, 1, n - i < 256 ? n - i : 256, true, some);
    }
}

/* x / |x|; 0 stays */
static void to_unit(const att_kernels *k, int64_t n, const att_rows *x, const att_rows *u, const att_rows *y)
{
    (void)u;
    k->normalize(n, x->at, FLT_TRUE_MIN, y->at);
}

/* y was the gradient of u = x / |x| and becomes that of x: (y - u (u . y)) / |x|, 0 where y is 0, or x. */
static void unit_back(const att_kernels *k, int64_t n, const att_rows *x, const att_rows *u, const att_rows *y)
{
    const float *unit = u->at;
    float *slope = y->at;
    if (att_is_zero(n, slope))
        return;
    const float length = k->dot(n, x->at, unit), along = k->dot(n, unit, slope);
    for (int64_t i = 0; i < n; i++)
        slope[i] = length == 0 ? 0 : (slope[i] - unit[i] * along) / length;
}

/* ---- queries, or keys */

/* Steps in one head of the parameter, from output to output and from input to input. */
static int64_t out_step(const att_side *x) { return x->how->out_first ? x->in : 1; }
static int64_t in_step(const att_side *x) { return x->how->out_first ? 1 : x->out; }

/* y [rows, n] = x [rows, k] times one head's parameter, packed; f32 */
static void multiply(const att_call *c, att_lines x, att_lines y, int64_t n, int64_t k, const float *packed)
{
    att_lines_join(&x, &y);
    for (int64_t i = 0; i < x.outer; i++)
        att_gemm(c->plan->ctx, x.inner, n, k, att_line_at(&x, i * x.outer_step), x.step, packed,
                 att_line_at(&y, i * y.outer_step), y.step, NULL);
}

static void pack(const att_call *c, const att_side *x, int64_t head, bool backward, float *packed)
{
    const float *w = (const float *)x->param->data + (att_side_shares(x) ? 0 : head * x->param->stride[0]);
    if (backward)
        att_gemm_pack(c->plan->ctx, x->in, x->out, w, in_step(x), out_step(x), packed);
    else
        att_gemm_pack(c->plan->ctx, x->out, x->in, w, out_step(x), in_step(x), packed);
}

/* A tensor of rows in new memory: those of `like`, but `heads` of them, of dim numbers, `step` apart. */
static att_status make_rows(const att_call *c, const att_tensor *like, int64_t heads, int64_t dim, int64_t step,
                            float **memory, att_tensor *t)
{
    const int64_t times = like->dim[c->ragged ? 0 : 2], batch = c->ragged ? 1 : like->dim[0];
    const size_t rows = att_size_mul((size_t)(batch * times), (size_t)(heads * step));
    *memory = att_scratch_take(c->plan, rows);
    if (!*memory)
        return ATT_ERR_MEMORY;
    const int64_t ragged[] = {heads * step, step, 1}, batched[] = {times * heads * step, step, heads * step, 1};
    if (c->ragged)
        return att_wrap(t, *memory, ATT_F32, ATT_DIMS(times, heads, dim), ragged);
    return att_wrap(t, *memory, ATT_F32, ATT_DIMS(batch, heads, times, dim), batched);
}

/* ---- forward */

/* Which of so many heads of q, or of k, are wanted, and rows for them: for one only, which is then found under every
 * number, or for all. */
static att_status make_wanted(const att_call *c, const att_tensor *like, int64_t heads, int64_t dim, float **memory,
                              att_tensor *t, int64_t *first, int64_t *last)
{
    *first = c->first_head * heads / c->plan->spec.heads;
    *last = (c->last_head - 1) * heads / c->plan->spec.heads + 1;
    const att_status e = make_rows(c, like, *last - *first, dim, dim, memory, t);
    if (*last - *first < heads)
        t->stride[1] = 0;
    return e;
}

/* The caller's rows as f32, in place where they are. */
static att_status to_floats(att_call *c, const att_side *x, bool of_keys)
{
    const att_tensor *from = of_keys ? &c->args.k : &c->args.q;
    att_tensor *to = &c->floats[of_keys];
    const int64_t heads = x->heads / x->group;
    *to = *from;
    if (from->dtype == ATT_F32)
        return ATT_OK;
    int64_t first, last;
    const att_status e = make_wanted(c, from, heads, x->in, &c->converted[of_keys], to, &first, &last);
    for (int64_t h = first; !e && h < last; h++)
        att_each_line(c, convert, x->in, att_lines_of(c, from, h), att_lines_of(c, from, h), att_lines_of(c, to, h));
    return e;
}

static att_status prepare(att_call *c, const att_side *x, bool of_keys)
{
    att_ctx *ctx = c->plan->ctx;
    att_tensor *to = of_keys ? &c->k_rows : &c->q_rows;
    if (x->how->kind == ATT_ROW_AS_IT_IS)
        return ATT_OK;
    int64_t first = 0, last = x->heads;
    att_status e = to_floats(c, x, of_keys);
    e = e ? e : make_wanted(c, x->rows, x->heads, x->out, &c->prepared[of_keys], to, &first, &last);
    const bool project = x->how->kind == ATT_ROW_PROJECTED;
    float *packed = e || !project ? NULL : att_alloc(ctx, att_gemm_packed_count(ctx, x->out, x->in), sizeof *packed);
    if (e || (project && !packed))
        return ATT_ERR_MEMORY;
    for (int64_t h = first; h < last; h++) {
        const att_lines a = att_lines_of(c, x->rows, h / x->group), b = att_lines_of(c, to, h);
        if (project) {
            if (h == first || !att_side_shares(x))
                pack(c, x, h, false, packed);
            multiply(c, a, b, x->out, x->in, packed);
        } else {
            att_each_line(c, to_unit, x->out, a, a, b);
        }
    }
    att_free(ctx, packed);
    return ATT_OK;
}

att_status att_prologue_begin(att_call *c)
{
    att_status e = ATT_OK;
    for (int of_keys = 0; !e && c->plan->prologue && of_keys < 2; of_keys++) {
        const att_side x = att_side_of(c, of_keys);
        e = prepare(c, &x, of_keys);
    }
    if (e)
        att_prologue_end(c);
    return e;
}

void att_prologue_end(att_call *c)
{
    for (int i = 0; i < 2; i++) {
        att_scratch_give(c->plan, c->prepared[i]);
        att_scratch_give(c->plan, c->converted[i]);
    }
}

bool att_prologue_has(const att_plan *p, int n)
{
    const att_prologue *o = p->score->prologue;
    return o &&
           ((o->q.kind == ATT_ROW_PROJECTED && o->q.param == n) || (o->k.kind == ATT_ROW_PROJECTED && o->k.param == n));
}

static const att_tensor *rows_of(const att_call *c, bool of_keys) { return of_keys ? &c->args.k : &c->args.q; }

/* Rows of one head, of all sequences. */
static int64_t count_of(const att_call *c, bool of_keys)
{
    const att_tensor *t = rows_of(c, of_keys);
    return t->dim[c->ragged ? 0 : 2] * (c->ragged ? 1 : t->dim[0]);
}

size_t att_prologue_bytes(const att_call *c)
{
    size_t floats = 0, spares = 0;
    for (int of_keys = 0; c->plan->prologue && of_keys < 2; of_keys++) {
        const att_side x = att_side_of(c, of_keys);
        const int64_t converted = rows_of(c, of_keys)->dtype == ATT_F32 ? 0 : x.heads / x.group * x.in;
        if (x.how->kind == ATT_ROW_AS_IT_IS)
            continue;
        floats += (size_t)(count_of(c, of_keys) * (x.heads * x.out + converted));
        spares += (size_t)(1 + (converted > 0));
    }
    return floats * sizeof(float) + spares * ATT_SPARE_BYTES;
}

/* ---- backward */

static const att_tensor *param_gradient(const att_side *x, const att_attention_grads *g)
{
    const bool wanted = x->how->kind == ATT_ROW_PROJECTED && att_given(&g->dscore_param[x->how->param]);
    return wanted ? &g->dscore_param[x->how->param] : NULL;
}

/* Can the gradient of rows be written where it belongs at once, or must it be added up, or rounded, afterwards? */
static bool in_place(const att_side *x, const att_tensor *to, bool accumulate)
{
    return !accumulate && x->group == 1 && to->dtype == ATT_F32;
}

/* What one side needs to get from the gradients of prepared rows to those of rows: a matrix, packed, and rows to add up
 * in, if not yet as many. */
static void need_back(const att_call *c, const att_side *x, bool of_keys, bool accumulate, size_t *packed,
                      size_t *spare)
{
    if (x->how->kind != ATT_ROW_PROJECTED)
        return;
    const size_t matrix = att_gemm_packed_count(c->plan->ctx, x->in, x->out);
    const size_t rows = in_place(x, rows_of(c, of_keys), accumulate)
                            ? 0
                            : att_size_mul(2, att_size_mul((size_t)count_of(c, of_keys), (size_t)x->in));
    *packed = matrix > *packed ? matrix : *packed;
    *spare = rows > *spare ? rows : *spare;
}

/* A packed matrix, rows to add up in, and what parameters' gradients are gathered in, from p on: how many floats. */
static size_t lay_out_back(float *p, size_t packed, size_t spare, size_t param, att_row_grads *r)
{
    const att_part parts[] = {{&r->packed, att_part_count(packed, 1)},
                              {&r->spare, att_part_count(spare, 1)},
                              {&r->param, att_part_count(param, 1)}};
    return att_lay_out(p, sizeof parts / sizeof parts[0], parts);
}

size_t att_prologue_bytes_back(const att_call *c)
{
    size_t floats = 0, spares = 0, packed = 0, spare = 0;
    att_row_grads r;
    for (int of_keys = 0; c->plan->prologue && of_keys < 2; of_keys++) {
        const att_side x = att_side_of(c, of_keys);
        if (x.how->kind == ATT_ROW_AS_IT_IS)
            continue;
        floats += (size_t)(count_of(c, of_keys) * x.heads * att_round_up(x.out, c->plan->kernels->panel));
        spares += 2;
        need_back(c, &x, of_keys, false, &packed, &spare);
    }
    return (floats + lay_out_back(NULL, packed, spare, 0, &r)) * sizeof(float) + spares * ATT_SPARE_BYTES;
}

att_status att_prologue_begin_back(const att_call *c, const att_attention_grads *g, att_row_grads *r)
{
    size_t packed = 0, spare = 0, param = 0;
    att_status e = ATT_OK;
    *r = (att_row_grads){.dq = g->dq, .dk = g->dk, .add_dq = g->accumulate, .add_dk = g->accumulate};
    for (int of_keys = 0; !e && c->plan->prologue && of_keys < 2; of_keys++) {
        const att_side x = att_side_of(c, of_keys);
        const att_tensor *to = of_keys ? &g->dk : &g->dq;
        att_tensor *t = of_keys ? &r->dk : &r->dq;
        if (x.how->kind == ATT_ROW_AS_IT_IS || !(att_given(to) || param_gradient(&x, g)))
            continue;
        *(of_keys ? &r->add_dk : &r->add_dq) = false;
        e = make_rows(c, x.rows, x.heads, x.out, att_round_up(x.out, c->plan->kernels->panel), &r->memory[of_keys], t);
        if (!e && att_given(to))
            need_back(c, &x, of_keys, g->accumulate, &packed, &spare);
        const size_t count = param_gradient(&x, g) ? att_side_param_count(c, &x) : 0;
        param = count > param ? count : param;
    }
    r->memory[2] = e ? NULL : att_scratch_take(c->plan, lay_out_back(NULL, packed, spare, param, r));
    lay_out_back(r->memory[2], packed, spare, param, r);
    return r->memory[2] ? ATT_OK : ATT_ERR_MEMORY;
}

void att_prologue_end_back(const att_call *c, att_row_grads *r)
{
    for (int i = 0; i < 3; i++)
        att_scratch_give(c->plan, r->memory[i]);
}

/* dx = W^T dx' of projected rows, summed over the heads that were made of the same ones */
static void rows_back(const att_call *c, const att_side *x, const att_tensor *from, const att_tensor *to,
                      bool accumulate, const att_row_grads *r)
{
    for (int64_t h = 0; h < x->heads; h++) {
        const att_lines a = att_lines_of(c, from, h), b = att_lines_of(c, to, h / x->group);
        const att_lines sum = {r->spare, ATT_F32, a.outer, a.inner * x->in, a.inner, x->in};
        att_lines next = sum;
        next.at = att_line_at(&sum, a.outer * a.inner * x->in);
        if (h == 0 || !att_side_shares(x))
            pack(c, x, h, true, r->packed);
        if (in_place(x, to, accumulate)) {
            multiply(c, a, b, x->in, x->out, r->packed);
            continue;
        }
        const bool first = h % x->group == 0, last = (h + 1) % x->group == 0;
        multiply(c, a, first ? sum : next, x->in, x->out, r->packed);
        if (!first)
            att_each_line(c, add, x->in, next, next, sum);
        if (last)
            att_each_line(c, accumulate ? add : copy, x->in, sum, sum, b);
    }
}

static void unit_rows_back(const att_call *c, const att_side *x, const att_tensor *from, const att_tensor *to,
                           bool accumulate)
{
    for (int64_t h = 0; h < x->heads; h++) {
        const att_lines slopes = att_lines_of(c, from, h);
        att_each_line(c, unit_back, x->in, att_lines_of(c, x->rows, h), att_lines_of(c, x->prepared, h), slopes);
        att_each_line(c, accumulate ? add : copy, x->in, slopes, slopes, att_lines_of(c, to, h));
    }
}

void att_prologue_back(const att_call *c, const att_attention_grads *g, const att_row_grads *r)
{
    for (int of_keys = 0; c->plan->prologue && of_keys < 2; of_keys++) {
        const att_side x = att_side_of(c, of_keys);
        const att_tensor *from = of_keys ? &r->dk : &r->dq, *to = of_keys ? &g->dk : &g->dq;
        if (param_gradient(&x, g))
            att_side_param_back(c, &x, from, param_gradient(&x, g), g->accumulate, r->param);
        if (x.how->kind == ATT_ROW_PROJECTED && att_given(to))
            rows_back(c, &x, from, to, g->accumulate, r);
        if (x.how->kind == ATT_ROW_UNIT && att_given(to))
            unit_rows_back(c, &x, from, to, g->accumulate);
    }
}
