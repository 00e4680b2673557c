/* Do the functions of a stage agree? Its formula is the definition: what there is beside it is held against it, on
 * random tiles of odd sizes, with every instruction set of this machine. */
#include "attn/verify.h"
#include "simd/isa.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_KEYS = 37, ANY_EXTENT = 13, SAMPLES = 24 };

/* A version for tiles may be off by this share of the tile's largest number. */
static const double PART = 0x1p-12;
/* What there is already where a gradient is added to; a number that has been written over shows. */
static const double BEFORE = 3;
static const float STEP = 0x1p-10f; /* of differences */

/* One stage on one instruction set: its operands, what the version for tiles gives, and what it should give. */
typedef struct check {
    att_ctx *ctx;
    const att_attention_spec *spec;
    const att_kernels *kernels;
    att_vectors vectors;
    const char *stage, *isa;
    const att_score *score;       /* one of both */
    const att_modifier *modifier; /* is NULL */
    const void *user;
    const double *value; /* [2] */
    float scale;         /* of the packed queries */
    att_head at;
    int64_t any; /* what ATT_ANY is */
    uint64_t random;
    att_arena memory;
    bool out_of_memory;
    int q0, queries, k0, keys; /* the tile */
    int64_t stride;            /* of its rows */

    float *query, *key; /* [ATT_VERIFY_TQ, head_dim] [ATT_VERIFY_TK, key_dim] */
    float *numbers[ATT_MAX_PARAMS];
    att_param_view param[ATT_MAX_PARAMS];
    float *packed_q, *s, *given, *ds, *dquery, *dkey;   /* as in the tiles; given: s before */
    double *want_s, *want_ds, *want_dquery, *want_dkey; /* laid the same way */
    double *want_grad[ATT_MAX_PARAMS];                  /* as param[].grad */
    double *dq, *dk, *dparam[ATT_MAX_PARAMS];           /* one pair's */
} check;

/* ---- memory and random numbers */

static void *room(check *c, int64_t count, size_t size)
{
    void *p = att_arena_alloc(&c->memory, (size_t)count * size + 1);
    c->out_of_memory = c->out_of_memory || !p;
    return p ? memset(p, 0, (size_t)count * size) : NULL;
}

static float *floats(check *c, int64_t n) { return room(c, n, sizeof(float)); }
static double *doubles(check *c, int64_t n) { return room(c, n, sizeof(double)); }

static float uniform(check *c) { return (float)(int32_t)(att_verify_random(&c->random) >> 32) * 0x1p-31f; }

static float *uniforms(check *c, int64_t n)
{
    float *x = floats(c, n);
    for (int64_t i = 0; x && i < n; i++)
        x[i] = uniform(c);
    return x;
}

static void make_param(check *c, int i, const att_param_shape *shape)
{
    const att_attention_spec *a = c->spec;
    const int64_t size[] = {[ATT_NONE] = 1,
                            [ATT_ANY] = c->any,
                            [ATT_HEAD_DIM] = a->head_dim,
                            [ATT_KEY_DIM] = a->key_dim,
                            [ATT_SCORE_DIM] = a->score_dim ? a->score_dim : a->head_dim};
    const bool pairs = shape->kind == ATT_PER_PAIR;
    const int64_t count = pairs ? ATT_VERIFY_TQ * ATT_VERIFY_TK : size[shape->rows] * size[shape->columns];
    c->numbers[i] = uniforms(c, count);
    c->want_grad[i] = doubles(c, count);
    c->dparam[i] = doubles(c, count);
    c->param[i] = (att_param_view){.data = c->numbers[i],
                                   .grad = floats(c, count),
                                   .count = count,
                                   .stride = {ATT_VERIFY_TK, 1},
                                   .grad_stride = {ATT_VERIFY_TK, 1}};
}

static void make_operands(check *c)
{
    const int64_t dim = c->spec->head_dim, key_dim = c->spec->key_dim, panel = c->kernels->q_tile;
    c->stride = 2 * panel;
    c->query = uniforms(c, ATT_VERIFY_TQ * dim);
    c->key = uniforms(c, ATT_VERIFY_TK * key_dim);
    c->packed_q = floats(c, dim * panel);
    c->s = floats(c, MOST_KEYS * c->stride);
    c->given = floats(c, MOST_KEYS * c->stride);
    c->ds = floats(c, MOST_KEYS * c->stride);
    c->dquery = floats(c, dim * panel);
    c->dkey = floats(c, MOST_KEYS * key_dim);
    c->want_s = doubles(c, MOST_KEYS * c->stride);
    c->want_ds = doubles(c, MOST_KEYS * c->stride);
    c->want_dquery = doubles(c, dim * panel);
    c->want_dkey = doubles(c, MOST_KEYS * key_dim);
    c->dq = doubles(c, dim);
    c->dk = doubles(c, key_dim);
}

/* ---- what functions are called with */

static att_pair pair_at(const check *c, int64_t q, int64_t k)
{
    return (att_pair){.size = sizeof(att_pair),
                      .head = &c->at,
                      .user = c->user,
                      .value = c->value,
                      .q = q,
                      .k = k,
                      .query = c->score ? c->query + q * c->spec->head_dim : NULL,
                      .key = c->score ? c->key + k * c->spec->key_dim : NULL,
                      .dim = c->score ? c->spec->head_dim : 0,
                      .key_dim = c->score ? c->spec->key_dim : 0,
                      .param = c->param};
}

static att_score_tile score_tile_of(const check *c)
{
    return (att_score_tile){.size = sizeof(att_score_tile),
                            .head = &c->at,
                            .user = c->user,
                            .q = c->q0,
                            .k = c->k0,
                            .queries = c->queries,
                            .keys = c->keys,
                            .columns = c->kernels->q_tile,
                            .query = c->packed_q,
                            .dim = c->spec->head_dim,
                            .key = c->key + c->k0 * c->spec->key_dim,
                            .key_dim = c->spec->key_dim,
                            .key_stride = c->spec->key_dim,
                            .param = c->param,
                            .s = c->s,
                            .ds = c->ds,
                            .stride = c->stride,
                            .dquery = c->dquery,
                            .dkey = c->dkey,
                            .dkey_stride = c->spec->key_dim,
                            .vectors = &c->vectors};
}

static att_modifier_tile modifier_tile_of(const check *c, float *s)
{
    att_score_tile t = score_tile_of(c);
    t.s = s;
    return att_modifier_tile_of(&t, c->modifier, c->value, c->param, c->ds);
}

/* A pair of the tile, in the order of its numbers. */
typedef struct work_item {
    int i, j;
    int64_t at; /* in s and ds */
} work_item;

static bool next_pair(const check *c, work_item *p)
{
    if (++p->i >= c->queries) {
        p->i = 0;
        p->j++;
    }
    p->at = p->j * c->stride + p->i;
    return p->j < c->keys;
}
static const work_item BEFORE_FIRST = {.i = -1};

/* ---- comparing */

static att_status differ(const check *c, const char *what, const char *where, double got, const char *than, double want)
{
    return att_fail(c->ctx, ATT_ERR_ARGUMENT,
                    "\"%s\" (%s), %d queries from %d by %d keys from %d: %s gives %.9g for %s, %s %.9g", c->stage,
                    c->isa, c->queries, c->q0, c->keys, c->k0, what, got, where, than, want);
}

/* Compares got [n] with want. Where `before` was added to every other number, that is subtracted; the error sentence
 * has the index. */
static att_status compare(const check *c, const char *name, int64_t n, const float *got, double before,
                          const double *want)
{
    const double limit = PART * fmax(att_verify_largest(n, want), before);
    char where[64];
    for (int64_t i = 0; i < n; i++)
        if (!att_verify_agree(got[i] - before, want[i], limit)) {
            snprintf(where, sizeof where, "%s[%lld]", name, (long long)i);
            const char *what = att_verify_agree(got[i], want[i], limit)
                                   ? "tile_back, which writes over what it should add to,"
                                   : "tile_back";
            return differ(c, what, where, got[i], "but derivatives", before + want[i]);
        }
    return ATT_OK;
}

/* The same for the pairs of a tile; zeros: also where nothing is wanted. */
static att_status compare_tile(const check *c, const char *what, const float *got, const char *than, const double *want,
                               bool zeros)
{
    const double limit = PART * att_verify_largest(MOST_KEYS * c->stride, want);
    char where[64];
    for (work_item p = BEFORE_FIRST; next_pair(c, &p);)
        if (!att_verify_agree(got[p.at], want[p.at], limit) && (zeros || want[p.at] != 0)) {
            snprintf(where, sizeof where, "query %d and key %d", c->q0 + p.i, c->k0 + p.j);
            return differ(c, what, where, got[p.at], than, want[p.at]);
        }
    return ATT_OK;
}

/* ---- derivatives */

static double value_of(const check *c, const att_pair *p, double s)
{
    return c->score ? c->score->formula(p) : c->modifier->formula(p, s);
}

static void add(int64_t n, double x, double *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] += x;
}

/* To all that a pair's derivative adds to. */
static void add_to_pair(const check *c, double x)
{
    add(c->spec->head_dim, x, c->dq);
    add(c->spec->key_dim, x, c->dk);
    for (int i = 0; i < ATT_MAX_PARAMS && c->dparam[i]; i++)
        add(c->param[i].count, x, c->dparam[i]);
}

static void clear_pair(const check *c)
{
    memset(c->dq, 0, (size_t)c->spec->head_dim * sizeof *c->dq);
    memset(c->dk, 0, (size_t)c->spec->key_dim * sizeof *c->dk);
    for (int i = 0; i < ATT_MAX_PARAMS && c->dparam[i]; i++)
        memset(c->dparam[i], 0, (size_t)c->param[i].count * sizeof(double));
}

/* The pair's derivatives, as what they add to other numbers; returns a modifier's slope. */
static double derivatives_of(const check *c, const att_pair *p, double s)
{
    double slope = 0;
    clear_pair(c);
    add_to_pair(c, BEFORE);
    if (c->score)
        c->score->derivative(p, 1, c->dq, c->dk, c->dparam);
    else
        slope = c->modifier->derivative(p, s, 1, c->dparam);
    add_to_pair(c, -BEFORE);
    return slope;
}

/* gradient [n] says how the formula depends on x [n], which the pair is made of: is it so, for some of them? */
static att_status check_derivative(const check *c, const att_pair *p, double s, const char *by, int64_t n, float *x,
                                   const double *gradient)
{
    const double f = value_of(c, p, s);
    char where[96];
    for (int64_t step = n / SAMPLES + 1, i = n % step / 2; i < n; i += step) {
        const float before = x[i], up = before + STEP, down = before - STEP;
        x[i] = up;
        const double right = (value_of(c, p, s) - f) / ((double)up - (double)before);
        x[i] = down;
        const double left = (f - value_of(c, p, s)) / ((double)before - (double)down);
        x[i] = before;
        if (!att_verify_is_slope(gradient[i], left, right, f)) {
            snprintf(where, sizeof where, "query %lld and key %lld by %s[%lld]", (long long)p->q, (long long)p->k, by,
                     (long long)i);
            const bool over = att_verify_is_slope(gradient[i] + BEFORE, left, right, f);
            return differ(c, over ? "derivative, which writes over what it should add to," : "derivative", where,
                          gradient[i], "but differences of formula", (left + right) / 2);
        }
    }
    return ATT_OK;
}

static att_status check_param_derivative(const check *c, const att_pair *p, double s)
{
    const att_param_shape *shape = c->score ? c->score->param : c->modifier->param;
    att_status e = ATT_OK;
    for (int i = 0; !e && i < ATT_MAX_PARAMS && c->dparam[i]; i++) {
        const bool pairs = shape[i].kind == ATT_PER_PAIR;
        const int64_t first = pairs ? p->q * ATT_VERIFY_TK + p->k : 0;
        e = check_derivative(c, p, s, shape[i].name, pairs ? 1 : c->param[i].count, c->numbers[i] + first,
                             c->dparam[i] + first);
    }
    return e;
}

/* Who does not say that it uses positions gives the same at all of them. */
static att_status check_positions(const check *c, unsigned flags)
{
    att_head other = c->at;
    char where[128];
    other.position = 0;
    for (work_item p = BEFORE_FIRST; !(flags & ATT_NEEDS_ALIGN) && next_pair(c, &p);) {
        const double s = c->score ? 0 : (double)c->given[p.at];
        const att_pair here = pair_at(c, c->q0 + p.i, c->k0 + p.j);
        att_pair there = here;
        there.head = &other;
        const double got = value_of(c, &here, s), want = value_of(c, &there, s);
        if (!att_verify_agree(got, want, 0)) {
            snprintf(where, sizeof where, "query %d and key %d at position %lld, without ATT_NEEDS_ALIGN", c->q0 + p.i,
                     c->k0 + p.j, (long long)c->at.position);
            return differ(c, "formula", where, got, "but at position 0", want);
        }
    }
    return ATT_OK;
}

/* ---- scores */

static att_status check_score_derivative(const check *c)
{
    enum { PAIRS = 3 };
    att_status e = ATT_OK;
    for (int i = 0; !e && i < PAIRS; i++) {
        const att_pair p = pair_at(c, 7 + 31 * i, 3 + 97 * i);
        derivatives_of(c, &p, 0);
        e = check_derivative(c, &p, 0, "query", p.dim, c->query + p.q * p.dim, c->dq);
        e = e ? e : check_derivative(c, &p, 0, "key", p.key_dim, c->key + p.k * p.key_dim, c->dk);
        e = e ? e : check_param_derivative(c, &p, 0);
    }
    return e;
}

static att_status check_score_tile(const check *c)
{
    const att_score_tile t = score_tile_of(c);
    for (work_item p = BEFORE_FIRST; next_pair(c, &p);) {
        const att_pair pair = pair_at(c, c->q0 + p.i, c->k0 + p.j);
        c->want_s[p.at] = (double)c->scale * c->score->formula(&pair);
    }
    att_verify_fill(MOST_KEYS * c->stride, (double)NAN, c->s); /* which is written, whatever is there */
    c->score->tile(&t);
    return compare_tile(c, "tile", c->s, c->scale == 1 ? "but formula" : "which is bilinear, but formula, scaled,",
                        c->want_s, true);
}

/* What the derivatives of the tile's pairs add up to; of folded queries c q what arrives is dq / c. */
static void add_up(const check *c)
{
    const int64_t dim = c->spec->head_dim, key_dim = c->spec->key_dim;
    for (work_item p = BEFORE_FIRST; next_pair(c, &p);) {
        const att_pair pair = pair_at(c, c->q0 + p.i, c->k0 + p.j);
        if (c->ds[p.at] == 0)
            continue;
        clear_pair(c);
        c->score->derivative(&pair, (double)c->ds[p.at], c->dq, c->dk, c->dparam);
        for (int64_t d = 0; d < dim; d++)
            c->want_dquery[d * c->kernels->q_tile + p.i] += c->dq[d];
        for (int64_t d = 0; d < key_dim; d++)
            c->want_dkey[p.j * key_dim + d] += (double)c->scale * c->dk[d];
        for (int i = 0; i < ATT_MAX_PARAMS && c->dparam[i]; i++)
            for (int64_t n = 0; n < c->param[i].count; n++)
                c->want_grad[i][n] += (double)c->scale * c->dparam[i][n];
    }
}

/* Random gradients ds. Some are 0, and all of one key, whose row is NaN. */
static void draw_gradients(check *c, bool spoil_key)
{
    for (work_item p = BEFORE_FIRST; next_pair(c, &p);)
        c->ds[p.at] = att_verify_random(&c->random) % 4 == 0 || (spoil_key && p.j == c->keys / 2) ? 0 : uniform(c);
    for (int64_t d = 0; spoil_key && d < c->spec->key_dim; d++)
        c->key[(c->k0 + c->keys / 2) * c->spec->key_dim + d] = NAN;
}

/* Added to what was `before`. */
static att_status check_score_sums(const check *c, double before)
{
    const int64_t dim = c->spec->head_dim, key_dim = c->spec->key_dim, panel = c->kernels->q_tile;
    const att_score_tile t = score_tile_of(c);
    att_verify_fill(dim * panel, before, c->dquery);
    att_verify_fill(c->keys * key_dim, before, c->dkey);
    for (int i = 0; i < ATT_MAX_PARAMS && c->dparam[i]; i++)
        att_verify_fill(c->param[i].count, before, c->param[i].grad);
    c->score->tile_back(&t);
    for (int64_t d = 0; d < dim; d++) /* columns after the queries may be given any value */
        att_verify_fill(panel - c->queries, before, c->dquery + d * panel + c->queries);
    att_status e = compare(c, "dquery", dim * panel, c->dquery, before, c->want_dquery);
    e = e ? e : compare(c, "dkey", c->keys * key_dim, c->dkey, before, c->want_dkey);
    for (int i = 0; !e && i < ATT_MAX_PARAMS && c->dparam[i]; i++)
        e = compare(c, c->score->param[i].name, c->param[i].count, c->param[i].grad, before, c->want_grad[i]);
    return e;
}

static att_status check_score_back(check *c)
{
    draw_gradients(c, true);
    add_up(c);
    const att_status e = check_score_sums(c, 0);
    return e ? e : check_score_sums(c, BEFORE);
}

/* The tiles of one with a transforms see other rows than its formula. */
static att_status check_score(check *c, const att_score *s, bool transforms)
{
    c->score = s;
    c->stage = s->name;
    c->user = s->user;
    c->scale = (s->flags & ATT_BILINEAR) && s->tile ? 0.75f : 1;
    make_operands(c);
    for (int i = 0; i < s->n_params; i++)
        make_param(c, i, &s->param[i]);
    if (c->out_of_memory)
        return ATT_ERR_MEMORY;
    const int64_t dim = c->spec->head_dim;
    c->kernels->attend.pack(c->queries, dim, c->query + c->q0 * dim, dim, c->scale, c->packed_q);
    att_status e = check_positions(c, s->flags);
    e = e || !s->tile || transforms ? e : check_score_tile(c);
    if (!e && s->derivative)
        e = check_score_derivative(c);
    return e || !s->derivative || !s->tile_back || transforms ? e : check_score_back(c);
}

/* ---- modifiers */

static att_status check_modifier_derivative(const check *c)
{
    const att_modifier *m = c->modifier;
    att_status e = ATT_OK;
    char where[64];
    double *const none[ATT_MAX_PARAMS] = {NULL};
    for (work_item p = BEFORE_FIRST; !e && next_pair(c, &p);) {
        const double s = c->given[p.at];
        const att_pair pair = pair_at(c, c->q0 + p.i, c->k0 + p.j);
        const double f = m->formula(&pair, s), right = (m->formula(&pair, s + (double)STEP) - f) / (double)STEP;
        const double left = (f - m->formula(&pair, s - (double)STEP)) / (double)STEP;
        const bool params = p.i == p.j;
        const double slope = params ? derivatives_of(c, &pair, s) : m->derivative(&pair, s, 1, none);
        snprintf(where, sizeof where, "query %lld and key %lld", (long long)pair.q, (long long)pair.k);
        if (!att_verify_is_slope(slope, left, right, f))
            return differ(c, "derivative", where, slope, "but differences of formula", (left + right) / 2);
        if ((m->flags & ATT_ADDITIVE) && slope != 1)
            return differ(c, "derivative", where, slope, "but ATT_ADDITIVE says", 1);
        if (params)
            e = check_param_derivative(c, &pair, s);
    }
    return e;
}

static att_status check_modifier_tile(const check *c)
{
    const att_modifier_tile t = modifier_tile_of(c, c->s);
    for (work_item p = BEFORE_FIRST; next_pair(c, &p);) {
        const att_pair pair = pair_at(c, c->q0 + p.i, c->k0 + p.j);
        c->want_s[p.at] = c->modifier->formula(&pair, (double)c->given[p.at]);
    }
    c->modifier->tile(&t);
    return compare_tile(c, "tile", c->s, "but formula", c->want_s, true);
}

/* From these gradients, those of its parameters added to what was `before`. */
static att_status check_modifier_sums(const check *c, const float *grads, double before)
{
    const att_modifier *m = c->modifier;
    const bool additive = m->flags & ATT_ADDITIVE;
    const att_modifier_tile t = modifier_tile_of(c, additive ? NULL : c->given);
    memcpy(c->ds, grads, (size_t)(MOST_KEYS * c->stride) * sizeof *grads);
    for (int i = 0; i < m->n_params; i++)
        att_verify_fill(c->param[i].count, before, c->param[i].grad);
    m->tile_back(&t);
    att_status e = compare_tile(c, "tile_back", c->ds, "but derivative", c->want_ds, additive);
    for (int i = 0; !e && i < m->n_params; i++)
        e = compare(c, m->param[i].name, c->param[i].count, c->param[i].grad, before, c->want_grad[i]);
    return e;
}

static att_status check_modifier_back(check *c)
{
    const att_modifier *m = c->modifier;
    float *grads = floats(c, MOST_KEYS * c->stride);
    if (!grads)
        return ATT_ERR_MEMORY;
    draw_gradients(c, false);
    memcpy(grads, c->ds, (size_t)(MOST_KEYS * c->stride) * sizeof *grads);
    for (work_item p = BEFORE_FIRST; next_pair(c, &p);) {
        const att_pair pair = pair_at(c, c->q0 + p.i, c->k0 + p.j);
        if (c->ds[p.at] != 0)
            c->want_ds[p.at] =
                (double)c->ds[p.at] * m->derivative(&pair, (double)c->given[p.at], (double)c->ds[p.at], c->want_grad);
        else
            c->given[p.at] = NAN; /* of a pair that does not attend */
    }
    const att_status e = check_modifier_sums(c, grads, 0);
    return e ? e : check_modifier_sums(c, grads, BEFORE);
}

static att_status check_modifier(check *c, const att_modifier *m, const double *value)
{
    if (m->flags & ATT_SINK)
        return ATT_OK;
    c->modifier = m;
    c->stage = m->name;
    c->user = m->user;
    c->value = value;
    make_operands(c);
    for (int i = 0; i < m->n_params; i++)
        make_param(c, i, &m->param[i]);
    if (c->out_of_memory)
        return ATT_ERR_MEMORY;
    for (work_item p = BEFORE_FIRST; next_pair(c, &p);)
        c->s[p.at] = c->given[p.at] = 4 * uniform(c);
    att_status e = check_positions(c, m->flags);
    e = e || !m->tile ? e : check_modifier_tile(c);
    if (!e && m->derivative)
        e = check_modifier_derivative(c);
    return e || !m->derivative || !m->tile_back ? e : check_modifier_back(c);
}

static att_status accepts(const check *c, const att_modifier *m, const double *value, int64_t any)
{
    att_tensor param[ATT_MAX_PARAMS];
    for (int i = 0; i < m->n_params; i++)
        param[i] = (att_tensor){.dtype = ATT_F32, .rank = 2, .dim = {1, any}, .stride = {any, 1}};
    return m->check && m->n_params ? m->check(c->ctx, value, param) : ATT_OK;
}

/* How many numbers ATT_ANY may be, as far as the modifier's own check says. */
static att_status find_extent(check *c, const att_modifier *m, const double *value)
{
    for (c->any = ANY_EXTENT; c->any > 0; c->any--)
        if (!accepts(c, m, value, c->any))
            return ATT_OK;
    return accepts(c, m, value, ANY_EXTENT);
}

/* ---- all stages of a spec */

/* The n-th tile of a set with this size of a query tile. */
static void place_tile(check *c, int n)
{
    const int panel = c->kernels->q_tile;
    const struct {
        int q0, queries, k0, keys;
    } tiles[] = {{3, panel - 1, 41, MOST_KEYS}, {0, 1, 0, 1}, {19, panel, 256, 8}, {55, 2, 17, 32}};
    c->q0 = tiles[n].q0;
    c->queries = tiles[n].queries;
    c->k0 = tiles[n].k0;
    c->keys = tiles[n].keys;
}
enum { TILES = 4 };

/* Stage i, 0 is the score, on one tile. */
static att_status check_stage(const att_plan *plan, int isa, int i, int tile)
{
    const att_kernels *k = att_kernels_of(isa);
    check c = {.ctx = plan->ctx,
               .spec = &plan->spec,
               .kernels = k,
               .isa = att_isa_name(isa),
               .any = ANY_EXTENT,
               .random = (uint64_t)tile};
    att_status e = ATT_OK;
    c.vectors = att_vectors_of(k);
    c.at = att_verify_place(&plan->spec, tile % 2);
    place_tile(&c, tile);
    att_arena_init(&c.memory, plan->ctx);
    if (i == 0) {
        const att_builtin_score *builtin =
            att_builtin_score_of(plan->spec.score ? plan->spec.score : att_score_dot, isa);
        e = check_score(&c, builtin ? &builtin->score : &plan->score, builtin && builtin->transforms);
    } else {
        const att_plan_modifier *of = &plan->modifier[i - 1];
        const att_modifier *builtin = att_builtin_modifier_of(of->given, isa), *m = builtin ? builtin : &of->stage;
        e = find_extent(&c, m, of->value);
        e = e ? e : check_modifier(&c, m, of->value);
    }
    att_arena_free(&c.memory);
    return e;
}

att_status att_verify(att_ctx *ctx, const att_attention_spec *spec)
{
    att_plan *plan;
    att_status e = att_plan_new(ctx, spec, &plan);
    if (e)
        return e;
    for (int i = 0; !e && i <= plan->n_modifiers; i++)
        for (int isa = 0; !e && isa < att_isa_count(); isa++)
            for (int tile = 0; !e && tile < TILES && att_isa_usable(isa); tile++)
                e = check_stage(plan, isa, i, tile);
    for (int i = 0; !e && i < plan->n_masks; i++)
        e = att_verify_mask(plan, i);
    att_plan_free(plan);
    return e;
}
