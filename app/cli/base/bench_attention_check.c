/* attend bench attention: a sample of the results against plain loops in double.
 *
 * With u = 2^-24 and h the rounding unit of a half type (0 in f32), to which a kernel may round what it multiplies:
 *   a score is off by (dim + 3) u + 2 h times its absolute products, and 4 u a modifier; call that e;
 *   a weight by the factor 2 e + (2 keys + 16) u + h: exp, rescaling, and the chains of the sum and of the products;
 *   ds = p (dp - delta) slope by twice that and (value_dim + 3) u + 2 h, times p (|dout| |v| + |delta|);
 *   what is summed of them by (keys + 3) u more, or (queries + 3) u; and what is stored by h. */
#include "bench_attention.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct reference {
    attention_case *c;
    double half;                    /* h */
    double scale;                   /* of scores */
    double error;                   /* e of the rows' scores so far */
    double *q, *k, *v, *dout, *out; /* one row each */
    double *s, *dp;                 /* [k_len] scores and, backward, their gradients before softmax */
    double *sum, *bound;            /* [dim, value_dim], both at once */
    double worst;
} reference;

static const double unit = 0x1p-24;

static double dot(int64_t n, const double *a, const double *b, double *size)
{
    double sum = 0;
    for (int64_t d = 0; d < n; d++) {
        sum += a[d] * b[d];
        *size += fabs(a[d] * b[d]);
    }
    return sum;
}

/* The score of r->q and r->k as softmax gets it, and the modifiers' slope. */
static double score(reference *r, const attention_pair *p, double *slope)
{
    const attention_case *c = r->c;
    double size = 0, s = r->scale * dot(c->set.dim, r->q, r->k, &size);
    double e = r->scale * size * ((double)(c->set.dim + 3) * unit + 2 * r->half);
    *slope = 1;
    for (int i = 0; i < ATT_MAX_STAGES && c->modifier[i]; i++) {
        const attention_modifier *m = c->modifier[i];
        *slope *= m->slope ? m->slope(c, i, p, s) : 1;
        e += 4 * unit * fabs(s);
        s = m->apply(c, i, p, s);
        e += 4 * unit * fabs(s);
    }
    r->error = fmax(r->error, e);
    return s;
}

static void read_key(reference *r, const attention_pair *p)
{
    const attention_settings *s = &r->c->set;
    const int64_t head = p->head / (s->heads / s->kv_heads);
    attention_read(&r->c->args.k, p->batch, head, p->k, r->k);
    attention_read(&r->c->args.v, p->batch, head, p->k, r->v);
}

/* Compares row [n] of the library's tensor with r->sum, within r->bound and the rounding to the tensor's type. */
static int compare(reference *r, const char *name, const att_tensor *x, int64_t b, int64_t head, int64_t i, int64_t n)
{
    double *row = r->out;
    attention_read(x, b, head, i, row);
    for (int64_t d = 0; d < n; d++) {
        double e = bench_error(row[d], r->sum[d], r->bound[d] + (r->half + unit) * fabs(r->sum[d]));
        if (e > 1)
            return cli_fail("%sbench attention: %s[%lld][%lld][%lld][%lld] is %.9g, but must be %.9g", r->c->line, name,
                            (long long)b, (long long)head, (long long)i, (long long)d, row[d], r->sum[d]);
        r->worst = fmax(r->worst, e);
    }
    return cli_signal ? CLI_INTERRUPTED : CLI_DONE;
}

/* r->s: the weights of a query, 0 where it does not attend. The relative error that rounding allows them. */
static double weights(reference *r, attention_pair p, int64_t *first, int64_t *last)
{
    double most = -INFINITY, sum = 0, slope;
    r->error = 0;
    attention_keys(r->c, p.batch, p.q, first, last);
    attention_read(&r->c->args.q, p.batch, p.head, p.q, r->q);
    for (p.k = *first; p.k < *last; p.k++) {
        r->s[p.k] = -INFINITY;
        if (!attention_allows(r->c, p.q, p.k))
            continue;
        read_key(r, &p);
        r->s[p.k] = score(r, &p, &slope);
        most = fmax(most, r->s[p.k]);
    }
    for (int64_t j = *first; j < *last; j++)
        sum += r->s[j] = isinf(r->s[j]) ? 0 : exp(r->s[j] - most);
    for (int64_t j = *first; j < *last; j++)
        r->s[j] /= sum > 0 ? sum : 1;
    return 2 * r->error + (2 * (double)(*last - *first) + 16) * unit + r->half;
}

static int check_out(reference *r, attention_pair p)
{
    const int64_t n = r->c->set.value_dim;
    int64_t first, last;
    double relative = weights(r, p, &first, &last);
    memset(r->sum, 0, (size_t)n * sizeof *r->sum);
    memset(r->bound, 0, (size_t)n * sizeof *r->bound);
    for (p.k = first; p.k < last; p.k++) {
        if (r->s[p.k] == 0) /* what does not attend counts for nothing, whatever its value is */
            continue;
        read_key(r, &p);
        for (int64_t d = 0; d < n; d++) {
            r->sum[d] += r->s[p.k] * r->v[d];
            r->bound[d] += relative * r->s[p.k] * fabs(r->v[d]);
        }
    }
    return compare(r, "out", &r->c->args.out, p.batch, p.head, p.q, n);
}

/* Adds ds times the slopes of the score to r->sum [dim]; `row` is the other side, k of a query or q of a key. */
static void add_slope(reference *r, double ds, double error, const double *row)
{
    for (int64_t d = 0; d < r->c->set.dim; d++) {
        r->sum[d] += r->scale * ds * row[d];
        r->bound[d] += r->scale * error * fabs(row[d]);
    }
}

static int check_dq(reference *r, attention_pair p)
{
    const attention_settings *s = &r->c->set;
    int64_t first, last;
    const double relative = weights(r, p, &first, &last);
    double delta = 0, delta_size = 0;
    memset(r->sum, 0, (size_t)s->dim * sizeof *r->sum);
    memset(r->bound, 0, (size_t)s->dim * sizeof *r->bound);
    attention_read(&r->c->grads.dout, p.batch, p.head, p.q, r->dout);
    for (p.k = first; p.k < last; p.k++) {
        double size = 0;
        if (r->s[p.k] == 0)
            continue;
        read_key(r, &p);
        r->dp[p.k] = dot(s->value_dim, r->dout, r->v, &size);
        delta += r->s[p.k] * r->dp[p.k];
        delta_size += r->s[p.k] * size;
    }
    for (p.k = first; p.k < last; p.k++) {
        double slope, size = 0;
        if (r->s[p.k] == 0)
            continue;
        read_key(r, &p);
        score(r, &p, &slope);
        dot(s->value_dim, r->dout, r->v, &size);
        double products = 2 * relative + (double)(s->value_dim + 3) * unit + 2 * r->half;
        double chain = (double)(last - first + 3) * unit;
        add_slope(r, slope * r->s[p.k] * (r->dp[p.k] - delta), (products + chain) * r->s[p.k] * (size + delta_size),
                  r->k);
    }
    return compare(r, "dq", &r->c->grads.dq, p.batch, p.head, p.q, s->dim);
}

/* What query p.q of head p.head adds to dk, or to dv, of key p.k: from the library's lse and out, which are checked
 * beforehand. r->k and r->v are the key's. */
static void add_query(reference *r, const attention_pair *p, bool value)
{
    const attention_settings *s = &r->c->set;
    double lse, slope, size = 0, delta_size = 0;
    attention_read(&r->c->args.lse, p->batch, p->head, p->q, &lse);
    attention_read(&r->c->args.q, p->batch, p->head, p->q, r->q);
    attention_read(&r->c->grads.dout, p->batch, p->head, p->q, r->dout);
    r->error = 0;
    const double weight = exp(score(r, p, &slope) - lse);
    const double relative =
        2 * r->error + (2 * (double)s->k_len + 16 + 2 * fabs(lse)) * unit + r->half + (double)s->q_len * unit;
    if (value) {
        for (int64_t d = 0; d < s->value_dim; d++) {
            r->sum[d] += weight * r->dout[d];
            r->bound[d] += relative * weight * fabs(r->dout[d]);
        }
        return;
    }
    attention_read(&r->c->args.out, p->batch, p->head, p->q, r->out);
    const double dp = dot(s->value_dim, r->dout, r->v, &size);
    const double delta = dot(s->value_dim, r->dout, r->out, &delta_size);
    add_slope(r, slope * weight * (dp - delta),
              (2 * relative + (double)(s->value_dim + 3) * unit + 2 * r->half) * weight * (size + delta_size), r->q);
}

/* p.head is a head of the keys. */
static int check_key(reference *r, attention_pair p, bool value)
{
    const attention_settings *s = &r->c->set;
    const int64_t group = s->heads / s->kv_heads, n = value ? s->value_dim : s->dim, head = p.head;
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

static int check_dk(reference *r, attention_pair p) { return check_key(r, p, false); }
static int check_dv(reference *r, attention_pair p) { return check_key(r, p, true); }

/* Up to `most` of the rows [batch, heads, time], spread evenly, the first and the last among them. */
static int sample(reference *r, int64_t most, int64_t heads, int64_t time, int (*check)(reference *, attention_pair))
{
    const int64_t all = r->c->set.batch * heads * time, rows = all < most ? all : most;
    int code = CLI_DONE;
    for (int64_t i = 0; !code && i < rows; i++) {
        int64_t at = rows > 1 ? (int64_t)((double)i * (double)(all - 1) / (double)(rows - 1)) : 0;
        code = check(r, (attention_pair){at / time / heads, at / time % heads, at % time, at % time});
    }
    return code;
}

int attention_verify(attention_case *c, double *worst)
{
    const attention_settings *s = &c->set;
    const size_t dim = (size_t)s->dim, vdim = (size_t)s->value_dim, k_len = (size_t)s->k_len, most = dim + vdim;
    double *memory = calloc(2 * dim + 2 * vdim + 3 * most + 2 * k_len, sizeof *memory);
    reference r = {
        .c = c,
        .half = c->spec.dtype == ATT_F32   ? 0
                : c->spec.dtype == ATT_F16 ? 0x1p-11
                                           : 0x1p-8,
        .scale = c->spec.scale != 0 ? (double)c->spec.scale : 1 / sqrt((double)s->dim),
        .q = memory,
    };
    if (!memory)
        return cli_fail_memory();
    r.k = r.q + dim;
    r.v = r.k + dim;
    r.dout = r.v + vdim;
    r.out = r.dout + vdim;
    r.sum = r.out + most;
    r.bound = r.sum + most;
    r.s = r.bound + most;
    r.dp = r.s + k_len;
    int code = attention_once(c);
    if (!code)
        code = sample(&r, 24, s->heads, s->q_len, check_out);
    if (!code && s->pass == PASS_BACKWARD)
        code = sample(&r, 8, s->heads, s->q_len, check_dq);
    if (!code && s->pass == PASS_BACKWARD)
        code = sample(&r, 8, s->kv_heads, s->k_len, check_dk);
    if (!code && s->pass == PASS_BACKWARD)
        code = sample(&r, 8, s->kv_heads, s->k_len, check_dv);
    free(memory);
    *worst = r.worst;
    return code;
}
