/* s(q, k) = v . tanh(q + k): "additive attention" of Bahdanau et al. 2015. Parameters: v [heads or 1, A], and where
 * spec.score_dim = A is given, Wq [heads or 1, A, head_dim] and Wk [heads or 1, A, key_dim]: then q and k stand for Wq
 * q and Wk k, which is what tiles see.
 *
 *   tanh(q + k) = 1 - 2 r,   r = 1 / (1 + e^2q e^2k)
 *
 * so the exponentials are taken once for a query and once for a key, and a pair costs a multiply-add and a reciprocal
 * for each feature, of which GROUP vectors share one division. A feature's error is absolute. With u = 2^-24 and
 * exponentials good to 1.2 ulp, e^2q e^2k is off by a factor of at most 1 + 5u, so r, whose slope by its logarithm is
 * at most 1/4, by 1.25u; the sum, the division and the products of the group add at most 10 u r. So a tanh is off by
 * less than 23u, usually by 3u; the one of simd/math.h is by 2u.
 *
 * The factors are neither 0 nor infinite up to |q|, |k| < LIMIT. Other rows, also those that are not finite, take the
 * exponential of the sum, pair by pair. A chunk of the features of a pair goes one way or the other by itself, and
 * features are the lanes of vectors: so a score's bits depend on its query and its key alone, and few queries are as
 * fast as many. */
#include "attn/stage.h"
#include "kernel/tile.h"
#include "simd/math.h"

#include <math.h>
#include <string.h>

/* Number a of a row [dim], or of W [A, dim] times it. */
static double projected(const att_operand *w, const float *x, int64_t dim, int64_t a)
{
    double sum = 0;
    for (int64_t i = 0; w->data && i < dim; i++)
        sum += (double)w->data[a * dim + i] * x[i];
    return w->data ? sum : (double)x[a];
}

/* Its derivatives, times `slope`, are added to dx [dim] and dw [A, dim]. */
static void projected_back(const att_operand *w, const float *x, int64_t dim, int64_t a, double slope, double *dx,
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

enum {
    GROUP = 4,   /* vectors that share a division */
    CHUNK = 128, /* features at a time: those of a panel of queries stay in the first-level cache */
    LIMIT = 43   /* e^(2 LIMIT) < 2^127 */
};
#define LARGEST 0x1p30f /* that 1 + e^2x may be, so that a group's product is finite; tanh x is 1 by then */

/* A chunk of one row: as it is, and e^2x; wide: some |x| is not below LIMIT. Behind the row's end it is 0. */
typedef struct part {
    _Alignas(64) float x[CHUNK], e[CHUNK]; /* of vectors that cross no line of the cache */
    bool wide;
} part;

/* e^2x for |x| < LIMIT, as v_exp: 2^n e^2r, whose coefficients are those of e^r times powers of 2 */
ATT_INLINE vf exp_twice(vf x)
{
    static const float c[] = {1, 2, 0x1.fffffcp0f, 0x1.555494p0f, 0x1.5558bep-1f, 0x1.123856p-2f, 0x1.6a3d0ep-4f};
    const vf n = v_round(v_mul(x, v_set(0x1.715476p1f)));
    const vf r = v_fma(n, v_set(-0x1.7f7d1cp-21f), v_fma(n, v_set(-0x1.62e4p-2f), x));
    return v_ldexp(v_polynomial(c, 6, r), n);
}

/* e^2x of n numbers, in whole vectors */
static void exponentials(int n, part *p)
{
    vf wide = v_set(0);
    for (int a = 0; a < n; a += ATT_LANES) {
        const vf x = v_load(p->x + a);
        wide = v_select(v_lt(v_abs(x), v_set(LIMIT)), wide, v_set(1));
        v_store(p->e + a, exp_twice(x));
    }
    p->wide = v_top(wide) > 0;
}

/* x [n] to a part, behind n zeros up to a whole vector */
static void load(int n, const float *x, float *y)
{
    for (int a = 0; a < n; a += ATT_LANES)
        v_store(y + a, v_load_n(x + a, n - a < ATT_LANES ? n - a : ATT_LANES));
}

/* Features [a0, a0 + n) of all queries, turned back to rows. */
static void load_queries(const att_tile *t, int64_t a0, int n, part *q)
{
    for (int a = 0; a < n; a += ATT_LANES)
        for (int i = 0; i < t->queries; i += ATT_LANES) {
            vf x[ATT_LANES];
            ATT_UNROLL (r, ATT_LANES)
                x[r] = a + r < n ? v_load(t->query + (a0 + a + r) * t->columns + i) : v_set(0);
            v_transpose(x);
            for (int r = 0; r < ATT_LANES && i + r < t->queries; r++)
                v_store(q[i + r].x + a, x[r]);
        }
    for (int i = 0; i < t->queries; i++)
        exponentials(n, &q[i]);
}

static void load_key(const att_tile *t, int64_t a0, int n, int j, part *k)
{
    load(n, t->key + j * t->key_stride + a0, k->x);
    exponentials(n, k);
}

/* 1 + e^2(q + k), of q and k themselves (wide) or of their exponentials */
ATT_INLINE vf denominator(const bool wide, vf q, vf k)
{
    if (!wide)
        return v_min(v_set(LARGEST), v_fma(q, k, v_set(1)));
    const vf x = v_add(q, k);
    return v_add(v_exp(v_min(v_set(20.8f), v_add(x, x))), v_set(1)); /* NaN stays */
}

/* ---- forward */

/* acc + sum of v tanh over `vectors` vectors of features, 1 or GROUP; v_sum: the sum of these v */
ATT_INLINE vf add_group(const int vectors, const bool wide, const float *q, const float *k, const float *v, vf v_sum,
                        vf acc)
{
    vf d[GROUP], w[GROUP];
    ATT_UNROLL (i, vectors) {
        d[i] = denominator(wide, v_load(q + i * ATT_LANES), v_load(k + i * ATT_LANES));
        w[i] = v_load(v + i * ATT_LANES);
    }
    vf above = w[0], below = d[0];
    if (vectors == GROUP) { /* w0/d0 + w1/d1 = (w0 d1 + w1 d0) / (d0 d1), and so on */
        const vf b01 = v_mul(d[0], d[1]), b23 = v_mul(d[2], d[3]);
        const vf a01 = v_fma(w[0], d[1], v_mul(w[1], d[0])), a23 = v_fma(w[2], d[3], v_mul(w[3], d[2]));
        above = v_fma(a01, b23, v_mul(a23, b01));
        below = v_mul(b01, b23);
    }
    return v_add(acc, v_fma(v_set(-2), v_div(above, below), v_sum));
}

/* One chunk of v: the numbers, and the sums of groups. */
typedef struct weights {
    _Alignas(64) float v[CHUNK], sum[CHUNK / GROUP];
} weights;

static void load_weights(const att_tile *t, int64_t a0, int n, weights *w)
{
    load(n, t->param[0].data + a0, w->v);
    for (int a = 0; a + GROUP * ATT_LANES <= n; a += GROUP * ATT_LANES) {
        vf x[GROUP];
        ATT_UNROLL (i, GROUP)
            x[i] = v_load(w->v + a + i * ATT_LANES);
        v_store(w->sum + a / GROUP, v_add(v_add(x[0], x[1]), v_add(x[2], x[3])));
    }
}

ATT_INLINE float score(const bool wide, int n, const float *q, const float *k, const weights *w)
{
    vf acc = v_set(0);
    int a = 0;
    for (; a + GROUP * ATT_LANES <= n; a += GROUP * ATT_LANES)
        acc = add_group(GROUP, wide, q + a, k + a, w->v + a, v_load(w->sum + a / GROUP), acc);
    for (; a < n; a += ATT_LANES)
        acc = add_group(1, wide, q + a, k + a, w->v + a, v_load(w->v + a), acc);
    return v_sum(acc);
}

static void tile(const att_tile *t)
{
    part q[PANEL], k;
    weights w;
    for (int64_t a0 = 0; a0 < t->dim; a0 += CHUNK) {
        const int n = (int)(t->dim - a0 < CHUNK ? t->dim - a0 : CHUNK);
        load_weights(t, a0, n, &w);
        load_queries(t, a0, n, q);
        for (int j = 0; j < t->keys; j++) {
            float *s = t->s + j * t->stride;
            load_key(t, a0, n, j, &k);
            for (int i = 0; i < t->queries; i++) {
                const bool wide = k.wide || q[i].wide;
                const float x = wide ? score(true, n, q[i].x, k.x, &w) : score(false, n, q[i].e, k.e, &w);
                s[i] = a0 ? s[i] + x : x;
            }
        }
    }
}

/* ---- backward: with r = (1 - t) / 2, ds v (1 - t^2) = 4 v ds r (1 - r) and ds t = ds - 2 ds r */

/* r = 1 / d of `vectors` vectors, by one division */
ATT_INLINE void reciprocals(const int vectors, const vf *d, vf *r)
{
    if (vectors == 1) {
        r[0] = v_div(v_set(1), d[0]);
        return;
    }
    const vf b01 = v_mul(d[0], d[1]), b23 = v_mul(d[2], d[3]), all = v_div(v_set(1), v_mul(b01, b23));
    const vf r01 = v_mul(all, b23), r23 = v_mul(all, b01);
    r[0] = v_mul(r01, d[1]);
    r[1] = v_mul(r01, d[0]);
    r[2] = v_mul(r23, d[3]);
    r[3] = v_mul(r23, d[2]);
}

/* Queries that have a gradient to pass on to a key. */
typedef struct active {
    int count;
    uint8_t query[PANEL];
} active;

/* Sums of ds r (1 - r): of each query over the keys, of this key over the queries; and of ds r, over all. */
typedef struct sums {
    _Alignas(64) float query[PANEL][CHUNK], key[CHUNK], all[CHUNK];
} sums;

/* One key, `vectors` vectors of features from a on, and the queries of a list. */
ATT_INLINE void back_group(const int vectors, const bool wide, const active *list, const part *q, const part *k,
                           const float *ds, int a, sums *to)
{
    vf key[GROUP], to_key[GROUP], to_all[GROUP];
    ATT_UNROLL (i, vectors) {
        key[i] = v_load((wide ? k->x : k->e) + a + i * ATT_LANES);
        to_key[i] = v_load(to->key + a + i * ATT_LANES);
        to_all[i] = v_load(to->all + a + i * ATT_LANES);
    }
    for (int n = 0; n < list->count; n++) {
        const int query = list->query[n];
        const float *x = (wide ? q[query].x : q[query].e) + a;
        const vf slope = v_set(ds[query]);
        vf d[GROUP], r[GROUP];
        ATT_UNROLL (i, vectors)
            d[i] = denominator(wide, v_load(x + i * ATT_LANES), key[i]);
        reciprocals(vectors, d, r);
        ATT_UNROLL (i, vectors) {
            float *to_query = to->query[query] + a + i * ATT_LANES;
            const vf h = v_mul(slope, r[i]), g = v_fma(v_sub(v_set(0), h), r[i], h);
            v_store(to_query, v_add(v_load(to_query), g));
            to_key[i] = v_add(to_key[i], g);
            to_all[i] = v_add(to_all[i], h);
        }
    }
    ATT_UNROLL (i, vectors) {
        v_store(to->key + a + i * ATT_LANES, to_key[i]);
        v_store(to->all + a + i * ATT_LANES, to_all[i]);
    }
}

ATT_INLINE void back_list(const bool wide, int n, const active *list, const part *q, const part *k, const float *ds,
                          sums *to)
{
    int a = 0;
    if (list->count == 0)
        return;
    for (; a + GROUP * ATT_LANES <= n; a += GROUP * ATT_LANES)
        back_group(GROUP, wide, list, q, k, ds, a, to);
    for (; a < n; a += ATT_LANES)
        back_group(1, wide, list, q, k, ds, a, to);
}

/* One key: ds [queries]; pairs without a gradient are left out, whatever they are. */
static void back_key(int n, int queries, const part *q, const part *k, const float *ds, sums *to)
{
    active narrow = {0}, wide = {0};
    for (int i = 0; i < queries; i++) {
        active *list = k->wide || q[i].wide ? &wide : &narrow;
        list->query[list->count] = (uint8_t)i;
        list->count += ds[i] != 0;
    }
    memset(to->key, 0, sizeof to->key);
    back_list(false, n, &narrow, q, k, ds, to);
    back_list(true, n, &wide, q, k, ds, to);
}

/* y [n] += scale v x */
static void add_scaled(int n, float scale, const float *v, const float *x, float *y)
{
    for (int a = 0; a < n; a += ATT_LANES) {
        const int count = n - a < ATT_LANES ? n - a : ATT_LANES;
        const vf w = v_mul(v_set(scale), v_load(v + a));
        v_store_n(y + a, v_fma(w, v_load(x + a), v_load_n(y + a, count)), count);
    }
}

/* The queries' sums, turned and times 4 v, to dquery. */
static void add_queries(const att_tile *t, int64_t a0, int n, const float *v, const sums *from)
{
    for (int a = 0; a < n; a += ATT_LANES)
        for (int i = 0; i < t->queries; i += ATT_LANES) {
            vf x[ATT_LANES];
            ATT_UNROLL (r, ATT_LANES)
                x[r] = i + r < t->queries ? v_load(from->query[i + r] + a) : v_set(0);
            v_transpose(x);
            for (int r = 0; r < ATT_LANES && a + r < n; r++) {
                float *y = t->dquery + (a0 + a + r) * t->columns + i;
                v_store(y, v_fma(v_set(4 * v[a + r]), x[r], v_load(y)));
            }
        }
}

/* sum of ds over the tile */
static float total(const att_tile *t)
{
    vf sum = v_set(0);
    for (int j = 0; j < t->keys; j++)
        for (int i = 0; i < t->queries; i += ATT_LANES)
            sum = v_add(sum,
                        v_load_n(t->ds + j * t->stride + i, t->queries - i < ATT_LANES ? t->queries - i : ATT_LANES));
    return v_sum(sum);
}

static void tile_back(const att_tile *t)
{
    part q[PANEL], k;
    sums to;
    float v[CHUNK];
    const float all = total(t);
    for (int64_t a0 = 0; a0 < t->dim; a0 += CHUNK) {
        const int n = (int)(t->dim - a0 < CHUNK ? t->dim - a0 : CHUNK);
        load(n, t->param[0].data + a0, v);
        load_queries(t, a0, n, q);
        memset(&to, 0, sizeof to);
        for (int j = 0; j < t->keys; j++) {
            load_key(t, a0, n, j, &k);
            back_key(n, t->queries, q, &k, t->ds + j * t->stride, &to);
            add_scaled(n, 4, v, to.key, t->dkey + j * t->dkey_stride + a0);
        }
        add_queries(t, a0, n, v, &to);
        for (int a = 0; t->param[0].grad && a < n; a++)
            t->param[0].grad[a0 + a] += all - 2 * to.all[a];
    }
}

static const att_prologue prologue = {.q = {.kind = ATT_ROW_PROJECTED, .param = 1, .out_first = true},
                                      .k = {.kind = ATT_ROW_PROJECTED, .param = 2, .out_first = true},
                                      .optional = true};

extern const att_score ATT_ISA(att_score_additive);
const att_score ATT_ISA(att_score_additive) = {.name = "additive",
                                               .param = {{.name = "v", .extent = {ATT_SCORE_DIM}},
                                                         {.name = "Wq", .extent = {ATT_SCORE_DIM, ATT_HEAD_DIM}},
                                                         {.name = "Wk", .extent = {ATT_SCORE_DIM, ATT_KEY_DIM}}},
                                               .formula = formula,
                                               .derivative = derivative,
                                               .tile = tile,
                                               .tile_back = tile_back,
                                               .prologue = &prologue};
