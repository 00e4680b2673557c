/* The features of additive attention's rows: their exponentials, in pieces that stay in the first-level cache, and how
 * a pair uses them. See additive.c. */
#ifndef ATT_ATTN_SCORE_ADDITIVE_H
#define ATT_ATTN_SCORE_ADDITIVE_H

#include "attn/stage/stage.h"
#include "kernel/tile.h"
#include "simd/math.h"

enum {
    GROUP = 4,             /* vectors that share a division */
    CHUNK = 128,           /* features that are computed in the same way */
    PIECE = PANEL * CHUNK, /* features of all queries at a time: they stay in the first-level cache */
    LIMIT = 43             /* e^(2 LIMIT) < 2^127 */
};
#define LARGEST 0x1p30f /* maximum of 1 + e^2x, so that a group's product is finite; tanh x is then 1 */

/* Returns the features of a chunk: a row's features [first, first + n) are divided into chunks of CHUNK; the last may
 * be shorter. */
static int in_chunk(int n, int chunk) { return n - chunk * CHUNK < CHUNK ? n - chunk * CHUNK : CHUNK; }

static int chunks_in(int n) { return (n + CHUNK - 1) / CHUNK; }

/* The position of a chunk: number c of its piece, and n features of a row from feature a on. */
typedef struct position {
    int64_t a;
    int c, n;
} position;

/* Returns the position of chunk c in a piece of n features from a0 on. */
static position position_of(int64_t a0, int n, int c) { return (position){a0 + c * CHUNK, c, in_chunk(n, c)}; }

/* Returns how many features of each query are a piece. */
static int piece_of(const att_score_tile *t, int64_t first)
{
    const int max = PANEL / t->queries * CHUNK;
    return t->dim - first < max ? (int)(t->dim - first) : max;
}

/* Replaces x by e^2x, for `vectors` vectors, 1 or GROUP, side by side, |x| < LIMIT. It computes 2^n e^2r as v_exp does,
 * with the coefficients of e^r times powers of 2. */
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

/* Computes y = e^2x of n numbers, followed by that of 0 up to a whole vector. Returns whether some |x| is not below
 * LIMIT; NaN makes the score NaN in either case. */
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

/* Copies x [n] to y, followed by zeros up to a whole vector. */
static void load(int n, const float *x, float *y)
{
    for (int a = 0; a < n; a += ATT_LANES)
        v_store(y + a, v_load_n(x + a, n - a < ATT_LANES ? n - a : ATT_LANES));
}

/* e^2x of a piece, of up to PANEL chunks; wide: some |x| is not below LIMIT. */
typedef struct exponents {
    _Alignas(64) float e[PIECE]; /* aligned so that vectors do not cross cache lines */
    bool wide[PANEL];
} exponents;

/* Loads chunk number `at` of p. */
static void load_chunk(int n, const float *x, int at, exponents *p)
{
    p->wide[at] = exponentials(n, x, p->e + at * CHUNK);
}

/* Loads queries: chunk after chunk, each for all queries. */
static void load_queries(const att_score_tile *t, int64_t a0, int n, exponents *q)
{
    for (int c = 0; c * CHUNK < n; c++)
        for (int i = 0; i < t->queries; i++)
            load_chunk(in_chunk(n, c), t->query + i * att_builtin_tile_of(t)->query_stride + a0 + c * CHUNK,
                       c * t->queries + i, q);
}

/* Rounds n up to whole cache lines. A precomputed key is e^2x, followed by whether each chunk is wide; both in whole
 * lines. */
static int64_t in_lines(int64_t n) { return (n + 15) / 16 * 16; }
static int64_t ready_wide(int64_t dim) { return in_lines(dim); }
static int64_t precomputed_count(int64_t dim) { return ready_wide(dim) + in_lines((dim + CHUNK - 1) / CHUNK); }

static void precompute(int64_t dim, const float *x, float *y)
{
    for (int64_t a = 0; a < dim; a += CHUNK)
        y[ready_wide(dim) + a / CHUNK] = exponentials(dim - a < CHUNK ? (int)(dim - a) : CHUNK, x + a, y + a);
}

/* Returns the number of keys at a time: as many as fit, so that none waits for what has just been written. */
static int keys_of(int n) { return PANEL / chunks_in(n); }

/* Loads all chunks of key after key, from key `first` on, unless they are precomputed. */
static void load_keys(const att_score_tile *t, int64_t a0, int n, int first, exponents *k)
{
    const int chunks = chunks_in(n);
    for (int j = first; !att_builtin_tile_of(t)->precomputed && j < t->keys && j < first + keys_of(n); j++)
        for (int c = 0; c < chunks; c++)
            load_chunk(in_chunk(n, c), t->key + j * t->key_stride + a0 + c * CHUNK, (j - first) * chunks + c, k);
}

/* A chunk of a key. */
typedef struct chunk {
    const float *x, *e;
    bool wide;
} chunk;

/* Returns the features from a on of key j: precomputed, or otherwise chunk number `at` of k. */
static chunk chunk_of(const att_score_tile *t, int64_t a, int j, const exponents *k, int at)
{
    const float *x = t->key + j * t->key_stride + a;
    if (!att_builtin_tile_of(t)->precomputed)
        return (chunk){x, k->e + at * CHUNK, k->wide[at]};
    const float *precomputed = att_builtin_tile_of(t)->precomputed + j * att_builtin_tile_of(t)->precomputed_stride;
    return (chunk){x, precomputed + a, precomputed[ready_wide(t->dim) + a / CHUNK] > 0};
}

/* Returns 1 + e^2(q + k), from q and k themselves (wide) or from their exponentials. */
ATT_INLINE vf denominator(const bool wide, vf q, vf k)
{
    if (!wide)
        return v_min(v_set(LARGEST), v_fma(q, k, v_set(1)));
    const vf x = v_add(q, k);
    return v_add(v_exp(v_min(v_set(20.8f), v_add(x, x))), v_set(1)); /* NaN stays */
}

/* Computes r = 1 / d of `vectors` vectors by one division. */
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

#endif
