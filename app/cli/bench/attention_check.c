/* attend bench attention: checks a sample of the results against plain loops in double, with each stage's own formula.
 *
 * With u = 2^-24 and h the rounding unit of a half type (0 in f32), to which a kernel may round what it multiplies:
 *   a score is off by n u + 2 h times its formula on absolute values, where n is how many numbers go into it and some
 *   more, and by 4 u for each modifier; call that e;
 *   a weight by the factor 2 e + (2 keys + 16) u + h: exp, rescaling, and the chains of the sum and of the products;
 *   ds = p (dp - delta) m', m' the derivative of the modifiers, by twice that and (value_dim + 3) u + 2 h, times
 *   p (|dout| |v| + |delta|);
 *   a sum of n of them by n u more; and what is stored by h;
 *   parameters, which all pairs add to, by 2 sqrt(n) u: the roundings of a sum that long are independent. */
#include "attention.h"
#include "attend_util.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The numbers of a parameter of one head, [count] each: the derivatives of a pair's score by them, those derivatives
 * with absolute values; their gradients, summed over all pairs, and the bounds of the errors of these. */
typedef struct param_gradient {
    int64_t count;
    double *derivative, *magnitude, *sum, *bound;
} param_gradient;

/* Rows are double; formulas take float, which holds f32, f16 and bf16 without rounding. Memory is in one piece. */
typedef struct reference {
    attention_case *c;
    double half, scale, terms; /* h, of scores, n */
    double error;              /* e of the scores so far */
    double worst;
    double *q, *k, *v, *dout, *out; /* a row each */
    double *weight, *dp;            /* [k_len] */
    /* [dim + key_dim]: the derivatives of a score by its query, then by its key; those with absolute values */
    double *derivative, *magnitude;
    double *sum, *bound;                /* the expected row, and its error bounds */
    float *pair[2];                     /* [dim + key_dim]: query and key; absolute values */
    float *param[ATTENTION_MAX_PARAMS]; /* its absolute values, of all heads */
    param_gradient gradient[ATTENTION_MAX_PARAMS];
} reference;

static const double unit = 0x1p-24;

/* Returns the absolute error of a weight. Below 2^-126 it may have any value of that magnitude, as kernels avoid
 * denormals. */
static double error_of(double weight, double relative) { return relative * weight + 0x1p-125; }

/* Returns the dot product; adds that of absolute values to *magnitude. */
static double dot(int64_t n, const double *a, const double *b, double *magnitude)
{
    double sum = 0;
    for (int64_t d = 0; d < n; d++) {
        sum += a[d] * b[d];
        *magnitude += fabs(a[d] * b[d]);
    }
    return sum;
}

/* ---- Scores ----------------------------------------------------------------- */

typedef struct pair {
    int64_t batch, head, q, k;
} pair;

/* Views one head of a parameter [heads or 1, ...], or of one that is broadcast over pairs. */
static att_param_view operand_of(const att_tensor *t, const float *data, bool pairs, int64_t head)
{
    att_param_view o = {0};
    if (!data)
        return o;
    if (pairs)
        return (att_param_view){.data = data + head * t->stride[1], .stride = {t->stride[2], t->stride[3]}};
    o.count = 1;
    for (int i = 1; i < t->rank; i++)
        o.count *= t->dim[i];
    o.data = data + head * o.count;
    return o;
}

/* Views the pair as an argument of formulas: r->q and r->k, or absolute values of these and of the parameters. */
static void view_pair(const reference *r, const pair *p, bool absolute, att_head *at, att_param_view *param,
                      att_pair *out)
{
    const attention_case *c = r->c;
    const int64_t dim = c->set.dim, key_dim = c->set.key_dim;
    float *query = r->pair[absolute];
    for (int64_t d = 0; d < dim; d++)
        query[d] = (float)(absolute ? fabs(r->q[d]) : r->q[d]);
    for (int64_t d = 0; d < key_dim; d++)
        query[dim + d] = (float)(absolute ? fabs(r->k[d]) : r->k[d]);
    for (int i = attention_score_params(c); i < c->spec.score->n_params; i++)
        param[i] = (att_param_view){0};
    for (int i = 0; i < attention_score_params(c); i++) {
        const att_tensor *t = &c->param[i];
        param[i] = operand_of(t, absolute ? r->param[i] : t->data, false, p->head);
    }
    *at = (att_head){.sequence = p->batch,
                     .head = p->head,
                     .tq = c->set.q_len,
                     .tk = attention_key_count(c, p->batch),
                     .position = attention_position(c, p->batch, 0)};
    *out = (att_pair){.size = sizeof *out,
                      .head = at,
                      .user = c->spec.score->user,
                      .q = p->q,
                      .k = p->k,
                      .query = query,
                      .key = query + dim,
                      .dim = dim,
                      .key_dim = key_dim,
                      .param = param};
}

/* Returns the score of r->q and r->k as softmax gets it, and the derivative of the modifiers. */
static double score(reference *r, const pair *p, double *derivative)
{
    const attention_case *c = r->c;
    att_param_view param[ATTENTION_MAX_PARAMS];
    att_head at;
    att_pair view;
    view_pair(r, p, true, &at, param, &view);
    double e = r->scale * fabs(c->spec.score->formula(&view)) * (r->terms * unit + 2 * r->half);
    view_pair(r, p, false, &at, param, &view);
    double s = r->scale * c->spec.score->formula(&view);
    *derivative = 1;
    for (int i = 0; i < c->spec.n_stages; i++) {
        const att_modifier *m = c->stage[i].modifier;
        const att_tensor *t = &c->param[c->first_param[i]];
        double *none[ATTENTION_MAX_PARAMS] = {NULL};
        if (!m || (m->flags & ATT_STAGE_SINK))
            continue;
        if (m->n_params)
            param[0] = operand_of(t, t->data, m->param->kind == ATT_PARAM_PER_PAIR, p->head);
        view.user = m->user;
        view.value = c->stage[i].value;
        if (c->set.pass == PASS_BACKWARD)
            *derivative *= m->derivative(&view, s, 0, none);
        e += 4 * unit * fabs(s);
        s = m->formula(&view, s);
        e += 4 * unit * fabs(s);
    }
    r->error = fmax(r->error, e);
    return s;
}

/* Adds the derivatives of the pair's score by query and key to r->derivative, those by parameters to derivative; those
 * with absolute values to r->magnitude and magnitude. */
static void differentiate(reference *r, const pair *p, double **magnitude, double **derivative)
{
    const attention_case *c = r->c;
    att_param_view param[ATTENTION_MAX_PARAMS];
    att_head at;
    att_pair view;
    view_pair(r, p, true, &at, param, &view);
    c->spec.score->derivative(&view, r->scale, r->magnitude, r->magnitude + c->set.dim, magnitude);
    view_pair(r, p, false, &at, param, &view);
    c->spec.score->derivative(&view, r->scale, r->derivative, r->derivative + c->set.dim, derivative);
}

/* Adds ds times derivative [n] to sum, and the bounds of the errors of that to bound. */
static void accumulate(const reference *r, int64_t n, const double *derivative, const double *magnitude, double ds,
                       double error, double *sum, double *bound)
{
    double max = 0;
    for (int64_t d = 0; d < n; d++)
        max = fmax(max, fmax(fabs(magnitude[d]), fabs(derivative[d])));
    for (int64_t d = 0; d < n; d++) {
        sum[d] += ds * derivative[d];
        bound[d] += error * fmax(fabs(magnitude[d]), fabs(derivative[d])) + r->terms * unit * fabs(ds) * max;
    }
}

/* Adds ds times the score's derivatives, by the query or by the key, to r->sum. */
static void add_score_gradient(reference *r, const pair *p, double ds, double error, bool by_key)
{
    const int64_t dim = r->c->set.dim, key_dim = r->c->set.key_dim, first = by_key ? dim : 0;
    double *none[ATTENTION_MAX_PARAMS] = {NULL};
    /* and r->magnitude, which follows it */
    memset(r->derivative, 0, (size_t)(2 * (dim + key_dim)) * sizeof *r->derivative);
    differentiate(r, p, none, none);
    accumulate(r, by_key ? key_dim : dim, r->derivative + first, r->magnitude + first, ds, error, r->sum, r->bound);
}

/* Returns the score of the sink; -INFINITY: there is none. */
static double sink_score(const reference *r, int64_t head)
{
    const attention_case *c = r->c;
    for (int i = 0; i < c->spec.n_stages; i++)
        if (c->stage[i].modifier && (c->stage[i].modifier->flags & ATT_STAGE_SINK))
            return (double)((const float *)c->param[c->first_param[i]].data)[head];
    return -INFINITY;
}

/* ---- Dropout: as attend.h lays it out ------------------------------------------- */

/* Returns the factor of the pair's weight: 0, or 1 / (1 - p). */
static double dropout_factor(const attention_case *c, const pair *p)
{
    const double share = (double)c->spec.dropout;
    const uint32_t counter[] = {(uint32_t)attention_position(c, p->batch, p->q), (uint32_t)p->k / 4, (uint32_t)p->head,
                                c->ids[p->batch]};
    uint32_t words[4];
    if (share <= 0)
        return 1;
    att_random(c->args.dropout_seed, counter, words);
    return words[p->k % 4] >= (uint32_t)(share * 0x1p32 + 0.5) ? 1 / (1 - share) : 0;
}

/* ---- Rows of the results -------------------------------------------------------- */

static void read_key(reference *r, const pair *p)
{
    const attention_settings *s = &r->c->set;
    const int64_t head = p->head / (s->heads / s->kv_heads);
    attention_read(r->c, &r->c->args.k, p->batch, head, p->k, r->k);
    attention_read(r->c, &r->c->args.v, p->batch, head, p->k, r->v);
}

/* Compares row [n] of the library's tensor with r->sum, within r->bound and the rounding to the tensor's type. */
static int compare(reference *r, const char *name, const att_tensor *x, int64_t b, int64_t head, int64_t i, int64_t n)
{
    double *row = r->out;
    attention_read(r->c, x, b, head, i, row);
    for (int64_t d = 0; d < n; d++) {
        double e = bench_error(row[d], r->sum[d], r->bound[d] + (r->half + unit) * fabs(r->sum[d]));
        if (e > 1)
            return cli_fail("%sbench attention: %s[%lld][%lld][%lld][%lld] is %.9g, but must be %.9g", r->c->line, name,
                            (long long)b, (long long)head, (long long)i, (long long)d, row[d], r->sum[d]);
        r->worst = fmax(r->worst, e);
    }
    return CLI_DONE;
}

/* Computes r->weight, the weights of a query, which are 0 for keys without attention. Returns the relative error that
 * rounding allows. */
static double weights(reference *r, pair p, int64_t *first, int64_t *last)
{
    const double extra = sink_score(r, p.head);
    double max = extra, derivative;
    r->error = 0;
    attention_keys(r->c, p.batch, p.q, first, last);
    attention_read(r->c, &r->c->args.q, p.batch, p.head, p.q, r->q);
    for (p.k = *first; p.k < *last; p.k++) {
        r->weight[p.k] = -INFINITY;
        if (!attention_allows(r->c, p.q, p.k))
            continue;
        read_key(r, &p);
        r->weight[p.k] = score(r, &p, &derivative);
        max = fmax(max, r->weight[p.k]);
    }
    double sum = isinf(extra) ? 0 : exp(extra - max);
    for (int64_t j = *first; j < *last; j++)
        sum += r->weight[j] = isinf(r->weight[j]) ? 0 : exp(r->weight[j] - max);
    for (int64_t j = *first; j < *last; j++)
        r->weight[j] /= sum > 0 ? sum : 1;
    return 2 * r->error + (2 * (double)(*last - *first) + 16) * unit + r->half;
}

static int check_out(reference *r, pair p)
{
    const int64_t n = r->c->set.value_dim;
    int64_t first, last;
    double relative = weights(r, p, &first, &last);
    memset(r->sum, 0, (size_t)n * sizeof *r->sum);
    memset(r->bound, 0, (size_t)n * sizeof *r->bound);
    for (p.k = first; p.k < last; p.k++) {
        if (r->weight[p.k] == 0) /* values that are not attended to may be NaN */
            continue;
        read_key(r, &p);
        const double weight = r->weight[p.k] * dropout_factor(r->c, &p);
        for (int64_t d = 0; d < n; d++) {
            r->sum[d] += weight * r->v[d];
            r->bound[d] += error_of(weight, relative) * fabs(r->v[d]);
        }
    }
    return compare(r, "out", &r->c->args.out, p.batch, p.head, p.q, n);
}

typedef void add_gradient(reference *r, const pair *p, double ds, double error);

/* Calls add(r, pair, ds, error) for each key that query p.q attends to: ds is the gradient of the pair's score, error
 * the bound of its error; `chain` is the relative error of the sum that it is added to. */
static void each_score_gradient(reference *r, pair p, double chain, add_gradient *add)
{
    const attention_settings *s = &r->c->set;
    int64_t first, last;
    const double relative = weights(r, p, &first, &last);
    double delta = 0, delta_magnitude = 0;
    attention_read(r->c, &r->c->grads.dout, p.batch, p.head, p.q, r->dout);
    for (p.k = first; p.k < last; p.k++) {
        double magnitude = 0;
        if (r->weight[p.k] == 0)
            continue;
        read_key(r, &p);
        const double factor = dropout_factor(r->c, &p);
        r->dp[p.k] = factor * dot(s->value_dim, r->dout, r->v, &magnitude);
        delta += r->weight[p.k] * r->dp[p.k];
        delta_magnitude += r->weight[p.k] * factor * magnitude;
    }
    for (p.k = first; p.k < last; p.k++) {
        double derivative, magnitude = 0;
        if (r->weight[p.k] == 0)
            continue;
        read_key(r, &p);
        score(r, &p, &derivative);
        dot(s->value_dim, r->dout, r->v, &magnitude);
        magnitude *= dropout_factor(r->c, &p);
        const double products = 2 * relative + (double)(s->value_dim + 3) * unit + 2 * r->half;
        add(r, &p, derivative * r->weight[p.k] * (r->dp[p.k] - delta),
            error_of(r->weight[p.k], products + chain) * (magnitude + delta_magnitude));
    }
}

static void add_to_dq(reference *r, const pair *p, double ds, double error)
{
    add_score_gradient(r, p, ds, error, false);
}

static int check_dq(reference *r, pair p)
{
    const int64_t dim = r->c->set.dim;
    int64_t first, last;
    attention_keys(r->c, p.batch, p.q, &first, &last);
    memset(r->sum, 0, (size_t)dim * sizeof *r->sum);
    memset(r->bound, 0, (size_t)dim * sizeof *r->bound);
    each_score_gradient(r, p, (double)(last - first + 3) * unit, add_to_dq);
    return compare(r, "dq", &r->c->grads.dq, p.batch, p.head, p.q, dim);
}

/* Adds to r->sum the contribution of query p.q of head p.head to dv, or to dk, of key p.k, whose rows are r->k and
 * r->v. It is computed from the library's lse and out, which have been checked. */
static void add_query(reference *r, const pair *p, bool value)
{
    const attention_settings *s = &r->c->set;
    double lse, derivative, magnitude = 0, delta_magnitude = 0;
    attention_read(r->c, &r->c->args.lse, p->batch, p->head, p->q, &lse);
    attention_read(r->c, &r->c->args.q, p->batch, p->head, p->q, r->q);
    attention_read(r->c, &r->c->grads.dout, p->batch, p->head, p->q, r->dout);
    r->error = 0;
    const double weight = exp(score(r, p, &derivative) - lse);
    const double relative =
        2 * r->error + (2 * (double)s->k_len + 16 + 2 * fabs(lse)) * unit + r->half + (double)s->q_len * unit;
    const double factor = dropout_factor(r->c, p);
    if (value) {
        for (int64_t d = 0; d < s->value_dim; d++) {
            r->sum[d] += weight * factor * r->dout[d];
            r->bound[d] += error_of(weight * factor, relative) * fabs(r->dout[d]);
        }
        return;
    }
    attention_read(r->c, &r->c->args.out, p->batch, p->head, p->q, r->out);
    const double dp = factor * dot(s->value_dim, r->dout, r->v, &magnitude);
    const double delta = dot(s->value_dim, r->dout, r->out, &delta_magnitude);
    add_score_gradient(r, p, derivative * weight * (dp - delta),
                       error_of(weight, 2 * relative + (double)(s->value_dim + 3) * unit + 2 * r->half) *
                           (factor * magnitude + delta_magnitude),
                       true);
}

/* Checks a row of dv, or of dk; p.head is a head of the keys. */
static int check_key(reference *r, pair p, bool value)
{
    const attention_settings *s = &r->c->set;
    const int64_t group = s->heads / s->kv_heads, n = value ? s->value_dim : s->key_dim, head = p.head;
    memset(r->sum, 0, (size_t)n * sizeof *r->sum);
    memset(r->bound, 0, (size_t)n * sizeof *r->bound);
    p.head = head * group;
    read_key(r, &p);
    for (; p.head < (head + 1) * group; p.head++)
        for (p.q = 0; p.q < s->q_len; p.q++) {
            int64_t first, last;
            attention_keys(r->c, p.batch, p.q, &first, &last);
            if (p.k >= first && p.k < last && attention_allows(r->c, p.q, p.k))
                add_query(r, &p, value);
        }
    return compare(r, value ? "dv" : "dk", value ? &r->c->grads.dv : &r->c->grads.dk, p.batch, head, p.k, n);
}

static int check_dk(reference *r, pair p) { return check_key(r, p, false); }
static int check_dv(reference *r, pair p) { return check_key(r, p, true); }

/* Checks up to `max_rows` of the rows [batch, heads, time], spread evenly, the first and the last among them. */
static int sample(reference *r, int64_t max_rows, int64_t heads, int64_t time, int (*check)(reference *, pair))
{
    const int64_t all = r->c->set.batch * heads * time, rows = all < max_rows ? all : max_rows;
    int code = CLI_DONE;
    for (int64_t i = 0; !code && i < rows; i++) {
        int64_t at = rows > 1 ? (int64_t)((double)i * (double)(all - 1) / (double)(rows - 1)) : 0;
        code = check(r, (pair){at / time / heads, at / time % heads, at % time, at % time});
    }
    return code;
}

/* ---- Gradients of the score's parameters: of a call with fewer queries, since all pairs add to each ------- */

static void add_to_params(reference *r, const pair *p, double ds, double error)
{
    double *derivative[ATTENTION_MAX_PARAMS] = {NULL}, *magnitude[ATTENTION_MAX_PARAMS] = {NULL};
    for (int i = 0; i < attention_score_params(r->c); i++) {
        const param_gradient *o = &r->gradient[i];
        derivative[i] = o->count ? memset(o->derivative, 0, (size_t)o->count * sizeof *o->derivative) : NULL;
        magnitude[i] = o->count ? memset(o->magnitude, 0, (size_t)o->count * sizeof *o->magnitude) : NULL;
    }
    differentiate(r, p, magnitude, derivative);
    for (int i = 0; i < attention_score_params(r->c); i++) {
        const param_gradient *o = &r->gradient[i];
        accumulate(r, o->count, o->derivative, o->magnitude, ds, error, o->sum, o->bound);
    }
}

/* Checks the gradients of the last head's parameters. */
static int check_params(reference *r)
{
    const attention_settings *s = &r->c->set;
    const int64_t head = s->heads - 1;
    const double chain = (2 * sqrt((double)s->q_len * (double)s->k_len) + 8) * unit;
    for (int64_t q = 0; q < s->q_len; q++)
        each_score_gradient(r, (pair){.head = head, .q = q}, chain, add_to_params);
    for (int i = 0; i < attention_score_params(r->c); i++) {
        const param_gradient *o = &r->gradient[i];
        const float *row = (const float *)r->c->dparam[i].data + head * o->count;
        for (int64_t e = 0; e < o->count; e++) {
            const double off = bench_error((double)row[e], o->sum[e], o->bound[e] + unit * fabs(o->sum[e]));
            if (off > 1)
                return cli_fail("%sbench attention: number %lld of head %lld of dparam[%d] is %.9g, but must be "
                                "%.9g, for %lld queries",
                                r->c->line, (long long)e, (long long)head, i, (double)row[e], o->sum[e],
                                (long long)s->q_len);
            r->worst = fmax(r->worst, off);
        }
    }
    return CLI_DONE;
}

/* Lays out the rows in *memory, which the caller frees. */
static int open_reference(reference *r, double **memory)
{
    const attention_case *c = r->c;
    const attention_settings *s = &c->set;
    const size_t dim = (size_t)s->dim, key_dim = (size_t)s->key_dim, vdim = (size_t)s->value_dim;
    const size_t k_len = (size_t)s->k_len, both = dim + key_dim, longest = both + vdim;
    size_t count[ATTENTION_MAX_PARAMS] = {0}, params = 0;
    for (int i = 0; i < attention_score_params(c); i++) {
        const att_tensor *t = &c->param[i];
        count[i] = t->data ? 1 : 0;
        for (int n = 0; n < t->rank; n++)
            count[i] *= (size_t)t->dim[n];
        r->gradient[i].count = t->data ? (int64_t)count[i] / t->dim[0] : 0;
        params += count[i] + 4 * (size_t)r->gradient[i].count;
    }
    double *at = *memory = calloc(3 * both + 2 * vdim + 2 * k_len + 3 * longest + both + params, sizeof *at);
    if (!at)
        return cli_fail_memory();
    struct {
        double **row;
        size_t n;
    } rows[] = {{&r->q, dim},        {&r->k, key_dim},   {&r->v, vdim},          {&r->dout, vdim},
                {&r->weight, k_len}, {&r->dp, k_len},    {&r->derivative, both}, {&r->magnitude, both},
                {&r->out, longest},  {&r->sum, longest}, {&r->bound, longest}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; at += rows[i++].n)
        *rows[i].row = at;
    for (int i = 0; i < ATTENTION_MAX_PARAMS; i++) {
        param_gradient *o = &r->gradient[i];
        double **const part[] = {&o->derivative, &o->magnitude, &o->sum, &o->bound};
        for (int n = 0; n < 4; n++, at += o->count)
            *part[n] = at;
    }
    float *next = (float *)at;
    for (int i = 0; i < 2; i++, next += both)
        r->pair[i] = next;
    for (int i = 0; i < ATTENTION_MAX_PARAMS; next += count[i++]) {
        r->param[i] = count[i] ? next : NULL;
        for (size_t n = 0; n < count[i]; n++)
            next[n] = fabsf(((const float *)c->param[i].data)[n]);
    }
    return CLI_DONE;
}

/* Returns the scale and the rounding units of the case; no memory yet. */
static reference reference_of(attention_case *c)
{
    const attention_settings *s = &c->set;
    const bool dot_product = c->spec.score == att_score_dot;
    return (reference){
        .c = c,
        .half = c->spec.dtype == ATT_F32   ? 0
                : c->spec.dtype == ATT_F16 ? 0x1p-11
                                           : 0x1p-8,
        .scale = c->spec.scale != 0 ? (double)c->spec.scale
                 : dot_product      ? 1 / sqrt((double)s->dim)
                                    : 1,
        .terms = (double)(s->dim + (dot_product ? 3 : s->key_dim + s->score_dim + 16)),
    };
}

/* Checks the gradients of parameters on one sequence with few queries and some blocks of keys, so that an error is not
 * lost in the sum; with all keys if the mask has lengths. */
static int verify_params(const attention_case *whole, double *worst)
{
    enum { QUERIES = 4, KEYS = 600 };
    attention_settings set = whole->set;
    attention_case c;
    double *memory = NULL;
    set.batch = 1;
    set.q_len = set.q_len < QUERIES ? set.q_len : QUERIES;
    set.k_len = set.k_len < KEYS || whole->args.k_lengths ? set.k_len : KEYS;
    int code = attention_open(&c, &set, whole->line);
    reference r = reference_of(&c);
    if (!code)
        code = open_reference(&r, &memory);
    if (!code)
        code = attention_once(&c);
    if (!code)
        code = check_params(&r);
    *worst = fmax(*worst, r.worst);
    free(memory);
    attention_close(&c);
    return code;
}

int attention_verify(attention_case *c, double *worst)
{
    const attention_settings *s = &c->set;
    const bool backward = s->pass == PASS_BACKWARD;
    reference r = reference_of(c);
    double *memory;
    int code = open_reference(&r, &memory);
    if (!code)
        code = attention_once(c);
    if (!code)
        code = sample(&r, 24, s->heads, s->q_len, check_out);
    if (!code && backward)
        code = sample(&r, 8, s->heads, s->q_len, check_dq);
    if (!code && backward)
        code = sample(&r, 8, s->kv_heads, s->k_len, check_dk);
    if (!code && backward)
        code = sample(&r, 8, s->kv_heads, s->k_len, check_dv);
    free(memory);
    if (!code && backward && attention_score_params(c))
        code = verify_params(c, &r.worst);
    *worst = r.worst;
    return code;
}
