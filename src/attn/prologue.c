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
#include "gemm/gemm.h"
#include "tensor/tensor.h"

#include <float.h>

/* ---- the rows of a head */

/* The rows of one head in a tensor of the layout of q: `outer` times `inner` rows. */
typedef struct lines {
    void *at;
    att_dtype dtype;
    int64_t outer, outer_step, inner, step;
} lines;

static void *line_at(const lines *l, int64_t elements)
{
    return (char *)l->at + elements * (int64_t)att_dtype_size(l->dtype);
}

static lines lines_of(const att_call *c, const att_tensor *t, int64_t head)
{
    lines l = {.at = t->data, .dtype = t->dtype};
    l.at = line_at(&l, head * t->stride[1]);
    l.outer = c->ragged ? 1 : t->dim[0];
    l.outer_step = c->ragged ? 0 : t->stride[0];
    l.inner = t->dim[c->ragged ? 0 : 2];
    l.step = t->stride[c->ragged ? 0 : 2];
    if (l.inner == 1) /* one row of each sequence */
        return (lines){l.at, l.dtype, 1, 0, l.outer, l.outer_step};
    return l;
}

/* The same rows of two tensors as one run each, where both allow that. */
static void join(lines *a, lines *b)
{
    if (a->outer == 1 || a->outer_step != a->inner * a->step || b->outer_step != b->inner * b->step)
        return;
    a->inner *= a->outer;
    b->inner *= b->outer;
    a->outer = b->outer = 1;
}

static att_rows row_of(const lines *l, int64_t row)
{
    const int64_t start = l->inner ? row / l->inner * l->outer_step + row % l->inner * l->step : 0;
    return (att_rows){.at = line_at(l, start), .dtype = l->dtype};
}

/* ---- row by row, over all threads */

/* y [n] from x [n], perhaps from u [n], and from itself; f32 where nothing else is said */
typedef void row_function(const att_kernels *k, int64_t n, const att_rows *x, const att_rows *u, const att_rows *y);

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

static bool is_zero(int64_t n, const float *x)
{
    for (int64_t i = 0; i < n; i++)
        if (x[i] != 0)
            return false;
    return true;
}

/* y was the gradient of u = x / |x| and becomes that of x: (y - u (u . y)) / |x|, 0 where y is 0, or x. */
static void unit_back(const att_kernels *k, int64_t n, const att_rows *x, const att_rows *u, const att_rows *y)
{
    const float *unit = u->at;
    float *slope = y->at;
    if (is_zero(n, slope))
        return;
    const float length = k->dot(n, x->at, unit), along = k->dot(n, unit, slope);
    for (int64_t i = 0; i < n; i++)
        slope[i] = length == 0 ? 0 : (slope[i] - unit[i] * along) / length;
}

typedef struct row_job {
    const att_kernels *kernels;
    row_function *f;
    int64_t n, count, tasks;
    lines x, u, y;
} row_job;

static void row_task(void *arg, int i)
{
    const row_job *j = arg;
    for (int64_t r = j->count * i / j->tasks; r < j->count * (i + 1) / j->tasks; r++) {
        const att_rows x = row_of(&j->x, r), u = row_of(&j->u, r), y = row_of(&j->y, r);
        j->f(j->kernels, j->n, &x, &u, &y);
    }
}

static void each_row(const att_call *c, row_function *f, int64_t n, lines x, lines u, lines y)
{
    enum { ROWS_PER_TASK = 64, MOST_TASKS = 1 << 12 };
    row_job j = {.kernels = c->plan->kernels, .f = f, .n = n, .count = y.outer * y.inner, .x = x, .u = u, .y = y};
    j.tasks = (j.count + ROWS_PER_TASK - 1) / ROWS_PER_TASK;
    j.tasks = j.tasks < MOST_TASKS ? j.tasks : MOST_TASKS;
    att_parallel_for(c->plan->ctx, (int)j.tasks, row_task, &j);
}

/* ---- queries, or keys */

/* One side of a call. Head h of its prepared rows is made of head h / group of its rows. */
typedef struct side {
    const att_preparation *how;
    const att_tensor *rows; /* f32 */
    const att_tensor *prepared;
    const att_tensor *param;
    int64_t in, out, heads, group;
} side;

static side side_of(const att_call *c, bool of_keys)
{
    const att_attention_spec *s = &c->plan->spec;
    side x = {.how = of_keys ? &c->plan->prologue->k : &c->plan->prologue->q,
              .rows = &c->floats[of_keys],
              .prepared = of_keys ? &c->k_rows : &c->q_rows,
              .in = of_keys ? s->key_dim : s->head_dim,
              .out = of_keys ? c->plan->k_dim : c->plan->q_dim,
              .heads = of_keys && !c->keys_per_head ? s->kv_heads : s->heads,
              .group = of_keys && c->keys_per_head ? s->heads / s->kv_heads : 1};
    if (x.how->kind == ATT_ROW_PROJECTED)
        x.param = &c->args.score_param[x.how->param];
    return x;
}

static bool param_is_shared(const side *x) { return x->param->dim[0] == 1; }

/* Steps in one head of the parameter, from output to output and from input to input. */
static int64_t out_step(const side *x) { return x->how->out_first ? x->in : 1; }
static int64_t in_step(const side *x) { return x->how->out_first ? 1 : x->out; }

/* y [rows, n] = x [rows, k] times one head's parameter, packed; f32 */
static void multiply(const att_call *c, lines x, lines y, int64_t n, int64_t k, const float *packed)
{
    join(&x, &y);
    for (int64_t i = 0; i < x.outer; i++)
        att_gemm(c->plan->ctx, x.inner, n, k, line_at(&x, i * x.outer_step), x.step, packed,
                 line_at(&y, i * y.outer_step), y.step, NULL);
}

static void pack(const att_call *c, const side *x, int64_t head, bool backward, float *packed)
{
    const float *w = (const float *)x->param->data + (param_is_shared(x) ? 0 : head * x->param->stride[0]);
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
static att_status to_floats(att_call *c, const side *x, bool of_keys)
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
        each_row(c, convert, x->in, lines_of(c, from, h), lines_of(c, from, h), lines_of(c, to, h));
    return e;
}

static att_status prepare(att_call *c, const side *x, bool of_keys)
{
    att_ctx *ctx = c->plan->ctx;
    att_tensor *to = of_keys ? &c->k_rows : &c->q_rows;
    if (x->how->kind == ATT_ROW_AS_IT_IS)
        return ATT_OK;
    int64_t first, last;
    att_status e = to_floats(c, x, of_keys);
    e = e ? e : make_wanted(c, x->rows, x->heads, x->out, &c->prepared[of_keys], to, &first, &last);
    const bool project = x->how->kind == ATT_ROW_PROJECTED;
    float *packed = e || !project ? NULL : att_alloc(ctx, att_gemm_packed_count(ctx, x->out, x->in), sizeof *packed);
    if (e || (project && !packed))
        return ATT_ERR_MEMORY;
    for (int64_t h = first; h < last; h++) {
        const lines a = lines_of(c, x->rows, h / x->group), b = lines_of(c, to, h);
        if (project) {
            if (h == first || !param_is_shared(x))
                pack(c, x, h, false, packed);
            multiply(c, a, b, x->out, x->in, packed);
        } else {
            each_row(c, to_unit, x->out, a, a, b);
        }
    }
    att_free(ctx, packed);
    return ATT_OK;
}

att_status att_prologue_begin(att_call *c)
{
    att_status e = ATT_OK;
    for (int of_keys = 0; !e && c->plan->prologue && of_keys < 2; of_keys++) {
        const side x = side_of(c, of_keys);
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
        const side x = side_of(c, of_keys);
        const int64_t converted = rows_of(c, of_keys)->dtype == ATT_F32 ? 0 : x.heads / x.group * x.in;
        if (x.how->kind == ATT_ROW_AS_IT_IS)
            continue;
        floats += (size_t)(count_of(c, of_keys) * (x.heads * x.out + converted));
        spares += converted ? 2 : 1;
    }
    return floats * sizeof(float) + spares * ATT_SPARE_BYTES;
}

/* ---- backward */

static const att_tensor *param_gradient(const side *x, const att_attention_grads *g)
{
    const bool wanted = x->how->kind == ATT_ROW_PROJECTED && att_given(&g->dscore_param[x->how->param]);
    return wanted ? &g->dscore_param[x->how->param] : NULL;
}

/* Can the gradient of rows be written where it belongs at once, or must it be added up, or rounded, afterwards? */
static bool in_place(const side *x, const att_tensor *to, bool accumulate)
{
    return !accumulate && x->group == 1 && to->dtype == ATT_F32;
}

/* What one side needs to get from the gradients of prepared rows to those of rows: a matrix, packed, and rows to add up
 * in, if not yet as many. */
static void need_back(const att_call *c, const side *x, bool of_keys, bool accumulate, size_t *packed, size_t *spare)
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

size_t att_prologue_bytes_back(const att_call *c)
{
    size_t floats = 0, spares = 0, packed = 0, spare = 0;
    for (int of_keys = 0; c->plan->prologue && of_keys < 2; of_keys++) {
        const side x = side_of(c, of_keys);
        if (x.how->kind == ATT_ROW_AS_IT_IS)
            continue;
        floats += (size_t)(count_of(c, of_keys) * x.heads * att_whole(x.out, c->plan->kernels->panel));
        spares++;
        need_back(c, &x, of_keys, false, &packed, &spare);
    }
    return (floats + packed + spare) * sizeof(float) + spares * ATT_SPARE_BYTES;
}

att_status att_prologue_begin_back(const att_call *c, const att_attention_grads *g, att_row_grads *r)
{
    size_t packed = 0, spare = 0;
    att_status e = ATT_OK;
    *r = (att_row_grads){.dq = g->dq, .dk = g->dk, .add_dq = g->accumulate, .add_dk = g->accumulate};
    for (int of_keys = 0; !e && c->plan->prologue && of_keys < 2; of_keys++) {
        const side x = side_of(c, of_keys);
        const att_tensor *to = of_keys ? &g->dk : &g->dq;
        att_tensor *t = of_keys ? &r->dk : &r->dq;
        if (x.how->kind == ATT_ROW_AS_IT_IS || !(att_given(to) || param_gradient(&x, g)))
            continue;
        *(of_keys ? &r->add_dk : &r->add_dq) = false;
        e = make_rows(c, x.rows, x.heads, x.out, att_whole(x.out, c->plan->kernels->panel), &r->memory[of_keys], t);
        if (!e && att_given(to))
            need_back(c, &x, of_keys, g->accumulate, &packed, &spare);
    }
    r->packed = e ? NULL : att_alloc(c->plan->ctx, packed, sizeof *r->packed);
    r->spare = e ? NULL : att_alloc(c->plan->ctx, spare, sizeof *r->spare);
    return r->packed && r->spare ? ATT_OK : ATT_ERR_MEMORY;
}

void att_prologue_end_back(const att_call *c, att_row_grads *r)
{
    att_scratch_give(c->plan, r->memory[0]);
    att_scratch_give(c->plan, r->memory[1]);
    att_free(c->plan->ctx, r->packed);
    att_free(c->plan->ctx, r->spare);
}

/* dx = W^T dx' of projected rows, summed over the heads that were made of the same ones */
static void rows_back(const att_call *c, const side *x, const att_tensor *from, const att_tensor *to, bool accumulate,
                      const att_row_grads *r)
{
    for (int64_t h = 0; h < x->heads; h++) {
        const lines a = lines_of(c, from, h), b = lines_of(c, to, h / x->group);
        const lines sum = {r->spare, ATT_F32, a.outer, a.inner * x->in, a.inner, x->in};
        lines next = sum;
        next.at = line_at(&sum, a.outer * a.inner * x->in);
        if (h == 0 || !param_is_shared(x))
            pack(c, x, h, true, r->packed);
        if (in_place(x, to, accumulate)) {
            multiply(c, a, b, x->in, x->out, r->packed);
            continue;
        }
        const bool first = h % x->group == 0, last = (h + 1) % x->group == 0;
        multiply(c, a, first ? sum : next, x->in, x->out, r->packed);
        if (!first)
            each_row(c, add, x->in, next, next, sum);
        if (last)
            each_row(c, accumulate ? add : copy, x->in, sum, sum, b);
    }
}

/* The gradient of a parameter is dealt out in blocks of some inputs by a panel of outputs, each summed over all rows.
 */
enum { BLOCK = 64 };

typedef struct param_job {
    const att_call *call;
    const side *side;
    const att_tensor *slopes, *gradient;
    bool add;
    int64_t blocks, panels;
} param_job;

/* Is the row left out? One whose gradient is 0 counts as 0, whatever is in it. */
static bool left_out(const att_kernels *k, int64_t n, const float *x, int64_t m, const float *slope)
{
    return !k->all_finite(n, x) && is_zero(m, slope);
}

/* c [n][panel] += x [rows, n]^T slope [rows, m] */
static void add_lines(const att_kernels *k, int64_t n, lines x, int64_t m, lines slope, float *c)
{
    for (int64_t i = 0; i < x.outer; i++) {
        const float *a = line_at(&x, i * x.outer_step), *b = line_at(&slope, i * slope.outer_step);
        for (int64_t first = 0, last; first < x.inner; first = last + 1) {
            for (last = first; last < x.inner; last++)
                if (left_out(k, n, a + last * x.step, m, b + last * slope.step))
                    break;
            k->over_keys(true, n, last - first, a + first * x.step, x.step, b + first * slope.step, slope.step, c,
                         NULL);
        }
    }
}

static void param_task(void *arg, int task)
{
    const param_job *j = arg;
    const side *x = j->side;
    const int64_t panel = j->call->plan->kernels->panel, shared = param_is_shared(x);
    const int64_t head = task / (j->blocks * j->panels), o0 = task / j->blocks % j->panels * panel,
                  i0 = task % j->blocks * BLOCK;
    const int64_t n = x->in - i0 < BLOCK ? x->in - i0 : BLOCK, m = x->out - o0 < panel ? x->out - o0 : panel;
    float sum[BLOCK * ATT_MAX_PANEL] = {0};
    for (int64_t h = shared ? 0 : head; h < (shared ? x->heads : head + 1); h++) {
        lines rows = lines_of(j->call, x->rows, h / x->group), slopes = lines_of(j->call, j->slopes, h);
        rows.at = line_at(&rows, i0);
        slopes.at = line_at(&slopes, o0);
        add_lines(j->call->plan->kernels, n, rows, m, slopes, sum);
    }
    float *to = (float *)j->gradient->data + head * j->gradient->stride[0];
    for (int64_t i = 0; i < n; i++)
        for (int64_t o = 0; o < m; o++) {
            float *y = to + (i0 + i) * in_step(x) + (o0 + o) * out_step(x);
            *y = (j->add ? *y : 0) + sum[i * panel + o];
        }
}

static void param_back(const att_call *c, const side *x, const att_tensor *slopes, const att_tensor *gradient, bool add)
{
    const int64_t panel = c->plan->kernels->panel;
    param_job j = {.call = c, .side = x, .slopes = slopes, .gradient = gradient, .add = add};
    j.blocks = (x->in + BLOCK - 1) / BLOCK;
    j.panels = (x->out + panel - 1) / panel;
    att_parallel_for(c->plan->ctx, (int)(gradient->dim[0] * j.blocks * j.panels), param_task, &j);
}

static void unit_rows_back(const att_call *c, const side *x, const att_tensor *from, const att_tensor *to,
                           bool accumulate)
{
    for (int64_t h = 0; h < x->heads; h++) {
        const lines slopes = lines_of(c, from, h);
        each_row(c, unit_back, x->in, lines_of(c, x->rows, h), lines_of(c, x->prepared, h), slopes);
        each_row(c, accumulate ? add : copy, x->in, slopes, slopes, lines_of(c, to, h));
    }
}

void att_prologue_back(const att_call *c, const att_attention_grads *g, const att_row_grads *r)
{
    for (int of_keys = 0; c->plan->prologue && of_keys < 2; of_keys++) {
        const side x = side_of(c, of_keys);
        const att_tensor *from = of_keys ? &r->dk : &r->dq, *to = of_keys ? &g->dk : &g->dq;
        if (param_gradient(&x, g))
            param_back(c, &x, from, param_gradient(&x, g), g->accumulate);
        if (x.how->kind == ATT_ROW_PROJECTED && att_given(to))
            rows_back(c, &x, from, to, g->accumulate, r);
        if (x.how->kind == ATT_ROW_UNIT && att_given(to))
            unit_rows_back(c, &x, from, to, g->accumulate);
    }
}
