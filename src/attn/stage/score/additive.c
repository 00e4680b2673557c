/* s(q, k) = v . tanh(q + k): "additive attention" of Bahdanau et al. 2015. Parameters: v [heads or 1, A], and if
 * spec.score_dim = A is given, Wq [heads or 1, A, head_dim] and Wk [heads or 1, A, key_dim]. Then q and k stand for Wq
 * q and Wk k, which tiles see.
 *
 *   tanh(q + k) = 1 - 2 r,   r = 1 / (1 + e^2q e^2k)
 *
 * so exponentials are computed once for each query and once for each key, and a pair costs a multiply-add and a
 * reciprocal for each feature; GROUP vectors share one division. A feature's error is absolute. With u = 2^-24 and
 * exponentials accurate to 1.2 ulp, e^2q e^2k is off by a factor of at most 1 + 5u. The derivative of r by its
 * logarithm is at most 1/4, so r is off by 1.25u; the sum, the division and the products of the group add at most 10 u
 * r. So a tanh is off by less than 23u, usually by 3u; that of simd/math.h is off by 2u.
 *
 * The factors are neither 0 nor infinite for |q|, |k| < LIMIT. For other rows, including infinite ones, the exponential
 * of the sum is computed pair by pair. Each chunk of the features of a pair is computed in one way or the other, and
 * features are the lanes of vectors, so a score's bits depend only on its query and its key, and few queries are as
 * fast as many. */
#include "attn/stage/score/additive.h"

#include <math.h>
#include <string.h>

/* Returns the number a of a row [dim], or of W [A, dim] times it. */
static double projected(const att_param_view *w, const float *x, int64_t dim, int64_t a)
{
    double sum = 0;
    for (int64_t i = 0; w->data && i < dim; i++)
        sum += (double)w->data[a * dim + i] * x[i];
    return w->data ? sum : (double)x[a];
}

/* Adds the derivatives of `projected`, times `slope`, to dx [dim] and dw [A, dim]. */
static void projected_back(const att_param_view *w, const float *x, int64_t dim, int64_t a, double slope, double *dx,
                           double *dw)
{
    if (!w->data)
        dx[a] += slope;
    for (int64_t i = 0; w->data && i < dim; i++) {
        dx[i] += slope * w->data[a * dim + i];
        if (dw)
            dw[a * dim + i] += slope * x[i];
    }
}

static double tanh_of(const att_pair *p, int64_t a)
{
    return tanh(projected(&p->param[1], p->query, p->dim, a) + projected(&p->param[2], p->key, p->key_dim, a));
}

static double formula(const att_pair *p)
{
    double s = 0;
    for (int64_t a = 0; a < p->param[0].count; a++)
        s += p->param[0].data[a] * tanh_of(p, a);
    return s;
}

static void derivative(const att_pair *p, double ds, double *dq, double *dk, double *const *dparam)
{
    for (int64_t a = 0; a < p->param[0].count; a++) {
        const double t = tanh_of(p, a), slope = ds * p->param[0].data[a] * (1 - t * t);
        projected_back(&p->param[1], p->query, p->dim, a, slope, dq, dparam[1]);
        projected_back(&p->param[2], p->key, p->key_dim, a, slope, dk, dparam[2]);
        if (dparam[0])
            dparam[0][a] += ds * t;
    }
}

/* ---- forward */

/* Returns acc + the sum of v tanh over `vectors` vectors of features, 1 or GROUP, with these denominators; v_sum: the
 * sum of these v. */
ATT_INLINE vf add_group(const int vectors, const vf *d, const float *v, vf v_sum, vf acc)
{
    vf w[GROUP];
    ATT_UNROLL (i, vectors)
        w[i] = v_load(v + i * ATT_LANES);
    vf above = w[0], below = d[0];
    if (vectors == GROUP) { /* w0/d0 + w1/d1 = (w0 d1 + w1 d0) / (d0 d1), and so on */
        const vf b01 = v_mul(d[0], d[1]), b23 = v_mul(d[2], d[3]);
        const vf a01 = v_fma(w[0], d[1], v_mul(w[1], d[0])), a23 = v_fma(w[2], d[3], v_mul(w[3], d[2]));
        above = v_fma(a01, b23, v_mul(a23, b01));
        below = v_mul(b01, b23);
    }
    return v_add(acc, v_fma(v_set(-2), v_div(above, below), v_sum));
}

/* A piece of v: the numbers, and the sums of groups. */
typedef struct weights {
    _Alignas(64) float v[PIECE], sum[PIECE / GROUP];
} weights;

static void load_weights(const att_score_tile *t, int64_t a0, int n, weights *w)
{
    load(n, t->param[0].data + a0, w->v);
    for (int a = 0; a + GROUP * ATT_LANES <= n; a += GROUP * ATT_LANES) {
        vf x[GROUP];
        ATT_UNROLL (i, GROUP)
            x[i] = v_load(w->v + a + i * ATT_LANES);
        v_store(w->sum + a / GROUP, v_add(v_add(x[0], x[1]), v_add(x[2], x[3])));
    }
}

/* Returns the score of a pair over the n features of a chunk; v [n], sum: the sums of its groups. */
ATT_INLINE float score(const bool wide, int n, const float *q, const float *k, const float *v, const float *sum)
{
    vf acc = v_set(0), d[GROUP];
    int a = 0;
    for (; a + GROUP * ATT_LANES <= n; a += GROUP * ATT_LANES) {
        ATT_UNROLL (i, GROUP)
            d[i] = denominator(wide, v_load(q + a + i * ATT_LANES), v_load(k + a + i * ATT_LANES));
        acc = add_group(GROUP, d, v + a, v_load(sum + a / GROUP), acc);
    }
    for (; a < n; a += ATT_LANES) {
        d[0] = denominator(wide, v_load(q + a), v_load(k + a));
        acc = add_group(1, d, v + a, v_load(v + a), acc);
    }
    return v_sum(acc);
}

static float wide_score(int n, const float *q, const float *k, const float *v, const float *sum)
{
    float x[CHUNK], y[CHUNK];
    load(n, q, x);
    load(n, k, y);
    return score(true, n, x, y, v, sum);
}

/* Scores a chunk of one key by all queries. */
static void score_chunk(const att_score_tile *t, position p, const exponents *q, chunk k, const weights *w, float *s)
{
    const float *e = q->e + p.c * t->queries * CHUNK, *v = w->v + p.c * CHUNK, *sum = w->sum + p.c * CHUNK / GROUP;
    const bool *wide = q->wide + p.c * t->queries;
    for (int i = 0; i < t->queries; i++, e += CHUNK) {
        const float x = k.wide || wide[i]
                            ? wide_score(p.n, t->query + i * att_builtin_tile_of(t)->query_stride + p.a, k.x, v, sum)
                            : score(false, p.n, e, k.e, v, sum);
        s[i] = p.a ? s[i] + x : x;
    }
}

static void score_piece(const att_score_tile *t, int64_t a0, int n, const exponents *q, const weights *w)
{
    exponents k;
    for (int j = 0, first = 0; j < t->keys; j++) {
        if (j % keys_of(n) == 0)
            load_keys(t, a0, n, first = j, &k);
        for (int c = 0, at = (j - first) * chunks_in(n); c * CHUNK < n; c++, at++) {
            const position p = position_of(a0, n, c);
            score_chunk(t, p, q, chunk_of(t, p.a, j, &k, at), w, t->s + j * t->stride);
        }
    }
}

static void tile(const att_score_tile *t)
{
    exponents q;
    weights w;
    for (int64_t a0 = 0; a0 < t->dim; a0 += piece_of(t, a0)) {
        const int n = piece_of(t, a0);
        load_weights(t, a0, n, &w);
        load_queries(t, a0, n, &q);
        score_piece(t, a0, n, &q, &w);
    }
}

/* ---- backward: with r = (1 - t) / 2, ds v (1 - t^2) = 4 v ds r (1 - r) and ds t = ds - 2 ds r */

/* Queries that have a gradient for a key. */
typedef struct active {
    int count;
    uint8_t query[PANEL];
} active;

/* Sums over the keys in a piece: of ds r (1 - r), chunk after chunk, each for all queries; and of ds r, over the
 * queries. */
typedef struct sums {
    _Alignas(64) float query[PIECE], all[PIECE];
} sums;

/* The inputs of a chunk, and the sums that it adds to: numbers [queries][CHUNK], of one query [n], or [n]. */
typedef struct slope {
    int n;
    const float *q, *k, *v, *ds;
    float *query, *all, *dkey;
} slope;

/* Adds 4 v x to y [n], where n is at most a vector. */
ATT_INLINE void add_scaled(int n, const float *v, vf x, float *y)
{
    const vf w = v_mul(v_set(4), v_load(v));
    if (n >= ATT_LANES)
        v_store(y, v_fma(w, x, v_load(y)));
    else
        v_store_n(y, v_fma(w, x, v_load_n(y, n)), n);
}

/* Computes the backward of `vectors` vectors of features from a on, for one key and the `count` queries of a list. */
ATT_INLINE void back_group(const int vectors, const bool wide, const int count, const active *list, const slope *s,
                           int a)
{
    vf key[GROUP], to_key[GROUP], to_all[GROUP];
    ATT_UNROLL (i, vectors) {
        key[i] = v_load(s->k + a + i * ATT_LANES);
        to_key[i] = v_set(0);
        to_all[i] = v_load(s->all + a + i * ATT_LANES);
    }
    for (int n = 0; n < count; n++) {
        const int query = list->query[n] * CHUNK + a;
        const vf slope = v_set(s->ds[list->query[n]]);
        vf d[GROUP], r[GROUP];
        ATT_UNROLL (i, vectors)
            d[i] = denominator(wide, v_load(s->q + query + i * ATT_LANES), key[i]);
        reciprocals(vectors, d, r);
        ATT_UNROLL (i, vectors) {
            float *to = s->query + query + i * ATT_LANES;
            const vf h = v_mul(slope, r[i]), g = v_fma(v_sub(v_set(0), h), r[i], h);
            v_store(to, v_add(v_load(to), g));
            to_key[i] = v_add(to_key[i], g);
            to_all[i] = v_add(to_all[i], h);
        }
    }
    ATT_UNROLL (i, vectors) {
        const int at = a + i * ATT_LANES;
        add_scaled(vectors > 1 ? ATT_LANES : s->n - at, s->v + at, to_key[i], s->dkey + at);
        v_store(s->all + at, to_all[i]);
    }
}

ATT_INLINE void back_list(const bool wide, const int count, const active *list, const slope *s)
{
    int a = 0;
    for (; a + GROUP * ATT_LANES <= s->n; a += GROUP * ATT_LANES)
        back_group(GROUP, wide, count, list, s, a);
    for (; a < s->n; a += ATT_LANES)
        back_group(1, wide, count, list, s, a);
}

/* Computes the backward of pairs whose exponentials overflow: recomputes them from x [queries], whose chunks are
 * `stride` apart, and k->x. */
static void back_wide(const active *list, const float *x, int64_t stride, const chunk *k, const slope *s)
{
    float queries[PIECE], key[CHUNK];
    slope of = *s;
    of.q = queries;
    of.k = key;
    load(s->n, k->x, key);
    for (int i = 0; i < list->count; i++)
        load(s->n, x + list->query[i] * stride, queries + list->query[i] * CHUNK);
    back_list(true, list->count, list, &of);
}

/* Computes the backward of a chunk of key j, without pairs that have no gradient. */
__attribute__((noinline)) /* it would take back_group's registers */
static void
back_key(const att_score_tile *t, position p, int j, const exponents *q, const chunk *k, const float *v, sums *to)
{
    const int first = p.c * t->queries;
    const slope s = {.n = p.n,
                     .q = q->e + first * CHUNK,
                     .k = k->e,
                     .v = v + p.c * CHUNK,
                     .ds = t->ds + j * t->stride,
                     .query = to->query + first * CHUNK,
                     .all = to->all + p.c * CHUNK,
                     .dkey = t->dkey + j * t->dkey_stride + p.a};
    active narrow = {0}, wide = {0};
    for (int i = 0; i < t->queries; i++) {
        active *list = k->wide || q->wide[first + i] ? &wide : &narrow;
        list->query[list->count] = (uint8_t)i;
        list->count += s.ds[i] != 0;
    }
    if (narrow.count)
        back_list(false, narrow.count, &narrow, &s);
    if (wide.count)
        back_wide(&wide, t->query + p.a, att_builtin_tile_of(t)->query_stride, k, &s);
}

static void back_piece(const att_score_tile *t, int64_t a0, int n, const exponents *q, const float *v, sums *to)
{
    exponents k;
    for (int j = 0, first = 0; j < t->keys; j++) {
        if (j % keys_of(n) == 0)
            load_keys(t, a0, n, first = j, &k);
        for (int c = 0, at = (j - first) * chunks_in(n); c * CHUNK < n; c++, at++) {
            const position p = position_of(a0, n, c);
            const chunk of = chunk_of(t, p.a, j, &k, at);
            back_key(t, p, j, q, &of, v, to);
        }
    }
}

/* Adds the sums of a piece for the queries and for v; all: the sum of ds. */
static void add_sums(const att_score_tile *t, int64_t a0, int n, const float *v, const sums *from, float all)
{
    for (int c = 0; c * CHUNK < n; c++)
        for (int i = 0; i < t->queries; i++)
            for (int a = 0; a < in_chunk(n, c); a += ATT_LANES)
                add_scaled(in_chunk(n, c) - a, v + c * CHUNK + a,
                           v_load(from->query + (c * t->queries + i) * CHUNK + a),
                           t->dquery + i * att_builtin_tile_of(t)->dquery_stride + a0 + c * CHUNK + a);
    for (int a = 0; t->param[0].grad && a < n; a += ATT_LANES) {
        float *y = t->param[0].grad + a0 + a;
        const int some = n - a < ATT_LANES ? n - a : ATT_LANES;
        v_store_n(y, v_add(v_load_n(y, some), v_fma(v_set(-2), v_load(from->all + a), v_set(all))), some);
    }
}

/* Returns the sum of ds over the tile. */
static float total(const att_score_tile *t)
{
    vf sum = v_set(0);
    for (int j = 0; j < t->keys; j++)
        for (int i = 0; i < t->queries; i += ATT_LANES)
            sum = v_add(sum,
                        v_load_n(t->ds + j * t->stride + i, t->queries - i < ATT_LANES ? t->queries - i : ATT_LANES));
    return v_sum(sum);
}

static void tile_back(const att_score_tile *t)
{
    exponents q;
    sums to;
    float v[PIECE];
    const float all = total(t);
    for (int64_t a0 = 0, n; a0 < t->dim; a0 += n) {
        n = piece_of(t, a0);
        load((int)n, t->param[0].data + a0, v);
        load_queries(t, a0, (int)n, &q);
        memset(to.query, 0, (size_t)(t->queries * chunks_in((int)n) * CHUNK) * sizeof *to.query);
        memset(to.all, 0, (size_t)(chunks_in((int)n) * CHUNK) * sizeof *to.all);
        back_piece(t, a0, (int)n, &q, v, &to);
        add_sums(t, a0, (int)n, v, &to, all);
    }
}

static const att_row_transforms transforms = {.q = {.kind = ATT_TRANSFORM_PROJECT, .param = 1, .out_first = true},
                                              .k = {.kind = ATT_TRANSFORM_PROJECT, .param = 2, .out_first = true},
                                              .optional = true,
                                              .rows = true,
                                              .precomputed_count = precomputed_count,
                                              .precompute = precompute};

static const att_param_shape params[] = {{.name = "v", .rows = ATT_EXTENT_SCORE_DIM},
                                         {.name = "Wq", .rows = ATT_EXTENT_SCORE_DIM, .columns = ATT_EXTENT_HEAD_DIM},
                                         {.name = "Wk", .rows = ATT_EXTENT_SCORE_DIM, .columns = ATT_EXTENT_KEY_DIM}};

extern const att_builtin_score ATTEND_ISA(att_score_additive);
const att_builtin_score ATTEND_ISA(att_score_additive) = {.score = {.size = sizeof(att_score),
                                                                    .name = "additive",
                                                                    .param = params,
                                                                    .n_params = 3,
                                                                    .formula = formula,
                                                                    .derivative = derivative,
                                                                    .tile = tile,
                                                                    .tile_back = tile_back},
                                                          .transforms = &transforms};
