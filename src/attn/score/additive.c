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
 * The factors are neither 0 nor infinite up to |q|, |k| < LIMIT. Other rows, also infinite ones, take the
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
    GROUP = 4,             /* vectors that share a division */
    CHUNK = 128,           /* features that go one way or the other together */
    PIECE = PANEL * CHUNK, /* features of all queries at a time: they stay in the first-level cache */
    LIMIT = 43             /* e^(2 LIMIT) < 2^127 */
};
#define LARGEST 0x1p30f /* that 1 + e^2x may be, so that a group's product is finite; tanh x is 1 by then */

/* Features [first, first + n) of a row, chunk after chunk; n is a multiple of CHUNK but for the last. */
static int in_chunk(int n, int chunk) { return n - chunk * CHUNK < CHUNK ? n - chunk * CHUNK : CHUNK; }

static int chunks_in(int n) { return (n + CHUNK - 1) / CHUNK; }

/* How many features of each query are a piece. */
static int piece_of(const att_tile *t, int64_t first)
{
    const int most = PANEL / t->queries * CHUNK;
    return t->dim - first < most ? (int)(t->dim - first) : most;
}

/* x = e^2x of `vectors` vectors, 1 or GROUP, side by side, |x| < LIMIT; as v_exp: 2^n e^2r, whose coefficients are
 * those of e^r times powers of 2 */
ATT_INLINE void exp_twice(const int vectors, vf *x)
{
    enum { DEGREE = 6 };
    static const float c[] = {1, 2, 0x1.fffffcp0f, 0x1.555494p0f, 0x1.5558bep-1f, 0x1.123856p-2f, 0x1.6a3d0ep-4f};
    vf n[GROUP], r[GROUP];
    ATT_UNROLL (i, vectors) {
        n[i] = v_round(v_mul(x[i], v_set(0x1.715476p1f)));
        r[i] = v_fma(n[i], v_set(-0x1.7f7d1cp-21f), v_fma(n[i], v_set(-0x1.62e4p-2f), x[i]));
        x[i] = v_set(c[DEGREE]);
    }
    ATT_UNROLL (j, DEGREE)
        ATT_UNROLL (i, vectors)
            x[i] = v_fma(x[i], r[i], v_set(c[DEGREE - 1 - j]));
    ATT_UNROLL (i, vectors)
        x[i] = v_ldexp(x[i], n[i]);
}

/* y = e^2x of n numbers, behind them that of 0, in whole vectors; is some |x| not below LIMIT? NaN makes NaN of a score
 * either way. */
ATT_INLINE bool exponentials(int n, const float *x, float *y)
{
    vf top = v_set(0), b[GROUP];
    int a = 0;
    for (; a + GROUP * ATT_LANES <= n; a += GROUP * ATT_LANES) {
        ATT_UNROLL (i, GROUP) {
            b[i] = v_load(x + a + i * ATT_LANES);
            top = v_max(v_abs(b[i]), top);
        }
        exp_twice(GROUP, b);
        ATT_UNROLL (i, GROUP)
            v_store(y + a + i * ATT_LANES, b[i]);
    }
    for (; a < n; a += ATT_LANES) {
        b[0] = v_load_n(x + a, n - a < ATT_LANES ? n - a : ATT_LANES);
        top = v_max(v_abs(b[0]), top);
        exp_twice(1, b);
        v_store(y + a, b[0]);
    }
    return v_top(top) >= LIMIT;
}

/* x [n] to y, behind n zeros up to a whole vector */
static void load(int n, const float *x, float *y)
{
    for (int a = 0; a < n; a += ATT_LANES)
        v_store(y + a, v_load_n(x + a, n - a < ATT_LANES ? n - a : ATT_LANES));
}

/* e^2x of a piece, of up to PANEL chunks; wide: some |x| is not below LIMIT. */
typedef struct exponents {
    _Alignas(64) float e[PIECE]; /* of vectors that cross no line of the cache */
    bool wide[PANEL];
} exponents;

/* Chunk number `at` of p. */
static void load_chunk(int n, const float *x, int at, exponents *p)
{
    p->wide[at] = exponentials(n, x, p->e + at * CHUNK);
}

/* Chunk after chunk, of each all queries. */
static void load_queries(const att_tile *t, int64_t a0, int n, exponents *q)
{
    for (int c = 0; c * CHUNK < n; c++)
        for (int i = 0; i < t->queries; i++)
            load_chunk(in_chunk(n, c), t->query + i * t->query_stride + a0 + c * CHUNK, c * t->queries + i, q);
}

/* Of a key that is made ready: e^2x, and behind that, for each chunk, whether it is wide; both in whole lines of the
 * cache. */
static int64_t in_lines(int64_t n) { return (n + 15) / 16 * 16; }
static int64_t ready_wide(int64_t dim) { return in_lines(dim); }
static int64_t ready_count(int64_t dim) { return ready_wide(dim) + in_lines((dim + CHUNK - 1) / CHUNK); }

static void make_ready(int64_t dim, const float *x, float *y)
{
    for (int64_t a = 0; a < dim; a += CHUNK)
        y[ready_wide(dim) + a / CHUNK] = exponentials(dim - a < CHUNK ? (int)(dim - a) : CHUNK, x + a, y + a);
}

/* Keys at a time: as many as fit, so that none waits for what has just been written. */
static int keys_of(int n) { return PANEL / chunks_in(n); }

/* Key after key, of each all chunks, from key `first` on; none where they are ready. */
static void load_keys(const att_tile *t, int64_t a0, int n, int first, exponents *k)
{
    const int chunks = chunks_in(n);
    for (int j = first; !t->ready && j < t->keys && j < first + keys_of(n); j++)
        for (int c = 0; c < chunks; c++)
            load_chunk(in_chunk(n, c), t->key + j * t->key_stride + a0 + c * CHUNK, (j - first) * chunks + c, k);
}

/* A chunk of a key. */
typedef struct chunk {
    const float *x, *e;
    bool wide;
} chunk;

/* Features from a on of key j, which are ready or else chunk number `at` of k. */
static chunk chunk_of(const att_tile *t, int64_t a, int j, const exponents *k, int at)
{
    const float *x = t->key + j * t->key_stride + a;
    if (!t->ready)
        return (chunk){x, k->e + at * CHUNK, k->wide[at]};
    const float *ready = t->ready + j * t->ready_stride;
    return (chunk){x, ready + a, ready[ready_wide(t->dim) + a / CHUNK] > 0};
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

/* acc + sum of v tanh over `vectors` vectors of features, 1 or GROUP, of these denominators; v_sum: the sum of these
 * v */
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

/* Of a chunk; v and its groups' sums. */
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

/* The same of whole groups of a key x that only one query asks for: its exponentials stay in registers. top: the
 * largest |x|. */
ATT_INLINE float score_once(int n, const float *q, const float *x, const float *v, const float *sum, vf *top)
{
    vf acc = v_set(0), k[GROUP], d[GROUP];
    for (int a = 0; a < n; a += GROUP * ATT_LANES) {
        ATT_UNROLL (i, GROUP) {
            k[i] = v_load(x + a + i * ATT_LANES);
            *top = v_max(v_abs(k[i]), *top);
        }
        exp_twice(GROUP, k);
        ATT_UNROLL (i, GROUP)
            d[i] = denominator(false, v_load(q + a + i * ATT_LANES), k[i]);
        acc = add_group(GROUP, d, v + a, v_load(sum + a / GROUP), acc);
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

/* A chunk of one key by all queries, chunk number c of the piece, from feature a of the row on. */
static void score_chunk(const att_tile *t, int64_t a, int c, int n, const exponents *q, chunk k, const weights *w,
                        float *s)
{
    const float *e = q->e + c * t->queries * CHUNK, *v = w->v + c * CHUNK, *sum = w->sum + c * CHUNK / GROUP;
    const bool *wide = q->wide + c * t->queries;
    for (int i = 0; i < t->queries; i++, e += CHUNK) {
        const float x = k.wide || wide[i] ? wide_score(n, t->query + i * t->query_stride + a, k.x, v, sum)
                                          : score(false, n, e, k.e, v, sum);
        s[i] = a ? s[i] + x : x;
    }
}

static void score_piece(const att_tile *t, int64_t a0, int n, const exponents *q, const weights *w)
{
    exponents k;
    for (int j = 0, first = 0; j < t->keys; j++) {
        if (j % keys_of(n) == 0)
            load_keys(t, a0, n, first = j, &k);
        for (int c = 0, at = (j - first) * chunks_in(n); c * CHUNK < n; c++, at++) {
            const chunk of = chunk_of(t, a0 + c * CHUNK, j, &k, at);
            score_chunk(t, a0 + c * CHUNK, c, in_chunk(n, c), q, of, w, t->s + j * t->stride);
        }
    }
}

/* The same of a single query and whole groups: keys with nothing wide at once. */
static void score_single(const att_tile *t, int64_t a0, int n, const exponents *q, const weights *w)
{
    bool wide = false;
    for (int c = 0; c < chunks_in(n); c++)
        wide = wide || q->wide[c];
    for (int j = 0; j < t->keys; j++) {
        att_tile one = *t;
        one.keys = 1;
        one.key += j * t->key_stride;
        one.s += j * t->stride;
        vf top = v_set(0);
        float s = a0 ? one.s[0] : 0;
        for (int c = 0; !wide && c < chunks_in(n); c++) {
            const int a = c * CHUNK;
            const float of = score_once(in_chunk(n, c), q->e + a, one.key + a0 + a, w->v + a, w->sum + a / GROUP, &top);
            s = a0 + a ? s + of : of;
        }
        if (wide || v_top(top) >= LIMIT)
            score_piece(&one, a0, n, q, w);
        else
            one.s[0] = s;
    }
}

static void tile(const att_tile *t)
{
    exponents q;
    weights w;
    for (int64_t a0 = 0; a0 < t->dim; a0 += piece_of(t, a0)) {
        load_weights(t, a0, piece_of(t, a0), &w);
        load_queries(t, a0, piece_of(t, a0), &q);
        const bool single = t->queries == 1 && !t->ready && piece_of(t, a0) % (GROUP * ATT_LANES) == 0;
        (single ? score_single : score_piece)(t, a0, piece_of(t, a0), &q, &w);
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

/* Sums over the keys in a piece: of ds r (1 - r), chunk after chunk, of each all queries; and of ds r, over these. */
typedef struct sums {
    _Alignas(64) float query[PIECE], all[PIECE];
} sums;

/* What a run is given, and adds to: numbers [queries][CHUNK], of one query [n], or [n]. */
typedef struct slope {
    int n;
    const float *q, *k, *v, *ds;
    float *query, *all, *dkey;
} slope;

/* y [n] += 4 v x, of n at most a vector */
ATT_INLINE void add_scaled(int n, const float *v, vf x, float *y)
{
    const vf w = v_mul(v_set(4), v_load(v));
    if (n >= ATT_LANES)
        v_store(y, v_fma(w, x, v_load(y)));
    else
        v_store_n(y, v_fma(w, x, v_load_n(y, n)), n);
}

/* `vectors` vectors of features from a on, of one key and the queries of a list, which has `count`. */
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

/* The same of pairs that are wide, of x [queries], a chunk of each a stride apart, and k->x. */
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

/* A run of key j, from chunk number c of the piece and feature a of the row on; pairs without a gradient are left out,
 * whatever they are. */
static void back_key(const att_tile *t, int64_t a, int c, int n, int j, const exponents *q, const chunk *k,
                     const float *v, sums *to)
{
    const int first = c * t->queries;
    const slope s = {.n = n,
                     .q = q->e + first * CHUNK,
                     .k = k->e,
                     .v = v + c * CHUNK,
                     .ds = t->ds + j * t->stride,
                     .query = to->query + first * CHUNK,
                     .all = to->all + c * CHUNK,
                     .dkey = t->dkey + j * t->dkey_stride + a};
    active narrow = {0}, wide = {0};
    for (int i = 0; i < t->queries; i++) {
        active *list = k->wide || q->wide[first + i] ? &wide : &narrow;
        list->query[list->count] = (uint8_t)i;
        list->count += s.ds[i] != 0;
    }
    if (narrow.count == 1)
        back_list(false, 1, &narrow, &s);
    else if (narrow.count)
        back_list(false, narrow.count, &narrow, &s);
    if (wide.count)
        back_wide(&wide, t->query + a, t->query_stride, k, &s);
}

/* Features of key j that are done at once: a chunk, or the piece of a single query where nothing is wide, since that
 * lies in one row; `at` is the key's first chunk in k. */
static int run_of(const att_tile *t, int64_t a0, int n, int j, const exponents *q, const exponents *k, int at)
{
    bool narrow = t->queries == 1;
    for (int c = 0; narrow && c < chunks_in(n); c++)
        narrow = !q->wide[c] && !chunk_of(t, a0 + c * CHUNK, j, k, at + c).wide;
    return narrow ? n : CHUNK;
}

static void back_piece(const att_tile *t, int64_t a0, int n, const exponents *q, const float *v, sums *to)
{
    exponents k;
    for (int j = 0, first = 0; j < t->keys; j++) {
        if (j % keys_of(n) == 0)
            load_keys(t, a0, n, first = j, &k);
        const int at = (j - first) * chunks_in(n), run = run_of(t, a0, n, j, q, &k, at);
        for (int a = 0; a < n; a += run) {
            const chunk of = chunk_of(t, a0 + a, j, &k, at + a / CHUNK);
            back_key(t, a0 + a, a / CHUNK, n - a < run ? n - a : run, j, q, &of, v, to);
        }
    }
}

/* What a piece has gathered for the queries and for v; all: the sum of ds. */
static void add_sums(const att_tile *t, int64_t a0, int n, const float *v, const sums *from, float all)
{
    for (int c = 0; c * CHUNK < n; c++)
        for (int i = 0; i < t->queries; i++)
            for (int a = 0; a < in_chunk(n, c); a += ATT_LANES)
                add_scaled(in_chunk(n, c) - a, v + c * CHUNK + a,
                           v_load(from->query + (c * t->queries + i) * CHUNK + a),
                           t->dquery + i * t->dquery_stride + a0 + c * CHUNK + a);
    for (int a = 0; t->param[0].grad && a < n; a += ATT_LANES) {
        float *y = t->param[0].grad + a0 + a;
        const int some = n - a < ATT_LANES ? n - a : ATT_LANES;
        v_store_n(y, v_add(v_load_n(y, some), v_fma(v_set(-2), v_load(from->all + a), v_set(all))), some);
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

static const att_prologue prologue = {.q = {.kind = ATT_ROW_PROJECTED, .param = 1, .out_first = true},
                                      .k = {.kind = ATT_ROW_PROJECTED, .param = 2, .out_first = true},
                                      .optional = true,
                                      .rows = true,
                                      .ready_count = ready_count,
                                      .make_ready = make_ready};

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
