/* Checks that a score's derivative and its versions for tiles, on the product or not, agree with its formula. */
#include "attn/verify.h"

#include <stdio.h>
#include <string.h>

static att_status check_score_derivative(const att_verify_check *c)
{
    enum { PAIRS = 3 };
    att_status e = ATT_OK;
    for (int i = 0; !e && i < PAIRS; i++) {
        const att_pair p = att_verify_pair(c, 7 + 31 * i, 3 + 97 * i);
        att_verify_derivatives_of(c, &p, 0);
        e = att_verify_derivative(c, &p, 0, "query", p.dim, c->operand.query + p.q * p.dim, c->pair.dq);
        e = e ? e : att_verify_derivative(c, &p, 0, "key", p.key_dim, c->operand.key + p.k * p.key_dim, c->pair.dk);
        e = e ? e : att_verify_param_derivative(c, &p, 0);
    }
    return e;
}

/* ---- on the product */

static att_score_row row_of(const att_verify_check *c, const float *x)
{
    return (att_score_row){
        .size = sizeof(att_score_row), .user = c->stage.user, .x = x, .dim = c->spec->head_dim, .vectors = &c->vectors};
}
static const float *query_of(const att_verify_check *c, int i)
{
    return c->operand.query + (c->block.q0 + i) * c->spec->head_dim;
}
static const float *key_of(const att_verify_check *c, int j)
{
    return c->operand.key + (c->block.k0 + j) * c->spec->key_dim;
}

/* Sets the arguments of tile and tile_back of a score on the product: s = q . k, and the terms of rows. */
static void set_products(const att_verify_check *c)
{
    for (att_verify_position p = ATT_VERIFY_BEGIN; att_verify_next_pair(c, &p);) {
        double s = 0;
        for (int64_t d = 0; d < c->spec->head_dim; d++)
            s += (double)query_of(c, p.i)[d] * key_of(c, p.j)[d];
        c->tile.s[p.at] = (float)s;
    }
    for (int i = 0; c->stage.score->term && i < c->block.queries; i++) {
        const att_score_row row = row_of(c, query_of(c, i));
        c->tile.term[0][i] = c->stage.score->term(&row);
    }
    for (int j = 0; c->stage.score->term && j < c->block.keys; j++) {
        const att_score_row row = row_of(c, key_of(c, j));
        c->tile.term[1][j] = c->stage.score->term(&row);
    }
}

/* Checks that term_back agrees with differences of term. */
static att_status check_term(const att_verify_check *c)
{
    char where[64];
    const att_score_row row = row_of(c, c->operand.query);
    if (!c->stage.score->term)
        return ATT_OK;
    const double f = c->stage.score->term(&row);
    att_verify_fill(row.dim, ATT_VERIFY_BEFORE, c->tile.row);
    c->stage.score->term_back(&row, 1, c->tile.row);
    for (int64_t d = 0; d < row.dim; d++) {
        const float x = c->operand.query[d], up = x + ATT_VERIFY_STEP, down = x - ATT_VERIFY_STEP;
        c->operand.query[d] = up;
        const double right = (c->stage.score->term(&row) - f) / ((double)up - (double)x);
        c->operand.query[d] = down;
        const double left = (f - c->stage.score->term(&row)) / ((double)x - (double)down);
        c->operand.query[d] = x;
        const double slope = (double)c->tile.row[d] - ATT_VERIFY_BEFORE;
        if (!att_verify_is_slope(slope, left, right, f)) {
            snprintf(where, sizeof where, "query 0 by x[%lld]", (long long)d);
            const bool over = att_verify_is_slope(c->tile.row[d], left, right, f);
            return att_verify_differ(c, over ? "term_back, which overwrites, but should add," : "term_back", where,
                                     slope, "but differences of term", (left + right) / 2);
        }
    }
    return ATT_OK;
}

/* Writes the gradient of one row to c->tile.row, added to what was `before`: the product's with the rows of the other
 * side, and that of its term. */
static void add_row(att_verify_check *c, bool of_keys, int n, double before)
{
    const int64_t dim = c->spec->head_dim;
    const float dterm = c->tile.dterm[of_keys][n] - (float)before;
    for (int64_t d = 0; d < dim; d++) {
        double sum = 0, terms = 0;
        for (int other = 0; other < (of_keys ? c->block.queries : c->block.keys); other++) {
            const int64_t at = of_keys ? n * c->block.stride + other : other * c->block.stride + n;
            const double ds = c->tile.ds[at], x = (of_keys ? query_of(c, other) : key_of(c, other))[d];
            sum += ds == 0 ? 0 : ds * x; /* the key with NaN */
            terms += fabs(ds * x);
        }
        c->tile.row[d] = (float)(before + sum);
        c->terms = fmax(c->terms, terms);
    }
    const att_score_row row = row_of(c, of_keys ? key_of(c, n) : query_of(c, n));
    if (c->stage.score->term && dterm != 0)
        c->stage.score->term_back(&row, dterm, c->tile.row);
}

/* Calls tile_back and computes from its results the gradients of queries and keys, as the library does. */
static att_status product_back(att_verify_check *c, const att_score_tile *t, double before)
{
    const int64_t dim = c->spec->head_dim, panel = c->kernels->q_tile;
    const int count[2] = {c->block.queries, c->block.keys};
    static const char *const name[2] = {"dquery_term", "dkey_term"};
    att_status e = ATT_OK;
    set_products(c);
    for (att_verify_position p = ATT_VERIFY_BEGIN; att_verify_next_pair(c, &p);)
        c->tile.s[p.at] = c->tile.given[p.at] == 0 ? 0 : c->tile.s[p.at];
    for (int i = 0; i < 2; i++)
        for (int n = 0; n < count[i]; n++)
            c->tile.term[i][n] = isfinite(c->tile.term[i][n]) ? c->tile.term[i][n] : 0;
    memcpy(c->tile.ds, c->tile.given, (size_t)(ATT_VERIFY_KEYS * c->block.stride) * sizeof *c->tile.ds);
    for (int i = 0; i < 2; i++)
        att_verify_fill(i ? ATT_VERIFY_KEYS : panel, before, c->tile.dterm[i]);
    c->stage.score->tile_back(t);
    for (int of_keys = 0; of_keys < 2; of_keys++)
        for (int n = 0; n < count[of_keys]; n++) {
            add_row(c, of_keys, n, before);
            for (int64_t d = 0; d < dim; d++)
                (of_keys ? c->tile.dkey + n * dim : c->tile.dquery + n)[of_keys ? d : d * panel] = c->tile.row[d];
            if (before == 0)
                c->want.dterm[of_keys][n] = c->tile.dterm[of_keys][n];
        }
    for (int i = 0; !e && before != 0 && i < 2; i++)
        e = att_verify_same_sums(c, name[i], count[i], c->tile.dterm[i], before, c->want.dterm[i]);
    return e;
}

/* ---- tiles */

static att_status check_score_tile(const att_verify_check *c)
{
    const att_score_tile t = att_verify_score_tile(c);
    for (att_verify_position p = ATT_VERIFY_BEGIN; att_verify_next_pair(c, &p);) {
        const att_pair pair = att_verify_pair(c, c->block.q0 + p.i, c->block.k0 + p.j);
        c->want.s[p.at] = (double)c->tile.scale * c->stage.score->formula(&pair);
    }
    att_verify_fill(ATT_VERIFY_KEYS * c->block.stride, (double)NAN,
                    c->tile.s); /* s is overwritten, whatever is there */
    if (c->stage.score->flags & ATT_STAGE_PRODUCT)
        set_products(c);
    c->stage.score->tile(&t);
    return att_verify_same_tile(c, "tile", c->tile.s,
                                c->tile.scale == 1 ? "but formula" : "which is bilinear, but formula, scaled,",
                                c->want.s, true);
}

/* Adds up the derivatives of the tile's pairs; for folded queries c q the gradient that arrives is dq / c. */
static void add_up(const att_verify_check *c)
{
    const int64_t dim = c->spec->head_dim, key_dim = c->spec->key_dim;
    for (att_verify_position p = ATT_VERIFY_BEGIN; att_verify_next_pair(c, &p);) {
        const att_pair pair = att_verify_pair(c, c->block.q0 + p.i, c->block.k0 + p.j);
        if (c->tile.ds[p.at] == 0)
            continue;
        att_verify_clear_pair(c);
        c->stage.score->derivative(&pair, (double)c->tile.ds[p.at], c->pair.dq, c->pair.dk, c->pair.dparam);
        for (int64_t d = 0; d < dim; d++)
            c->want.dquery[d * c->kernels->q_tile + p.i] += c->pair.dq[d];
        for (int64_t d = 0; d < key_dim; d++)
            c->want.dkey[p.j * key_dim + d] += (double)c->tile.scale * c->pair.dk[d];
        for (int i = 0; i < ATT_MAX_PARAMS && c->pair.dparam[i]; i++)
            for (int64_t n = 0; n < c->operand.param[i].count; n++)
                c->want.grad[i][n] += (double)c->tile.scale * c->pair.dparam[i][n];
    }
}

/* Checks sums of a score that are added to what was `before`. */
static att_status check_score_sums(att_verify_check *c, double before)
{
    const int64_t dim = c->spec->head_dim, key_dim = c->spec->key_dim, panel = c->kernels->q_tile;
    const bool product = c->stage.score->flags & ATT_STAGE_PRODUCT;
    const att_score_tile t = att_verify_score_tile(c);
    att_status e = ATT_OK;
    att_verify_fill(dim * panel, before, c->tile.dquery);
    att_verify_fill(c->block.keys * key_dim, before, c->tile.dkey);
    for (int i = 0; i < ATT_MAX_PARAMS && c->pair.dparam[i]; i++)
        att_verify_fill(c->operand.param[i].count, before, c->operand.param[i].grad);
    if (product)
        e = product_back(c, &t, before);
    else
        c->stage.score->tile_back(&t);
    for (int64_t d = 0; d < dim; d++) /* columns after the queries may have any value */
        att_verify_fill(panel - c->block.queries, before, c->tile.dquery + d * panel + c->block.queries);
    e = e ? e : att_verify_same_sums(c, "dquery", dim * panel, c->tile.dquery, before, c->want.dquery);
    e = e ? e : att_verify_same_sums(c, "dkey", c->block.keys * key_dim, c->tile.dkey, before, c->want.dkey);
    for (int i = 0; !e && i < ATT_MAX_PARAMS && c->pair.dparam[i]; i++)
        e = att_verify_same_sums(c, c->stage.score->param[i].name, c->operand.param[i].count, c->operand.param[i].grad,
                                 before, c->want.grad[i]);
    return e;
}

static att_status check_score_back(att_verify_check *c)
{
    att_verify_draw_gradients(c, true);
    memcpy(c->tile.given, c->tile.ds, (size_t)(ATT_VERIFY_KEYS * c->block.stride) * sizeof *c->tile.ds);
    add_up(c);
    const att_status e = check_score_sums(c, 0);
    return e ? e : check_score_sums(c, ATT_VERIFY_BEFORE);
}

/* Checks a score. If it has transforms, its tiles see other rows than its formula. */
att_status att_verify_score(att_verify_check *c, const att_score *s, bool transforms)
{
    c->stage.score = s;
    c->stage.name = s->name;
    c->stage.user = s->user;
    c->tile.scale = (s->flags & ATT_STAGE_BILINEAR) && s->tile && !(s->flags & ATT_STAGE_PRODUCT) ? 0.75f : 1;
    att_verify_make_operands(c);
    for (int i = 0; i < s->n_params; i++)
        att_verify_make_param(c, i, &s->param[i]);
    if (c->out_of_memory)
        return ATT_ERR_MEMORY;
    const int64_t dim = c->spec->head_dim;
    c->kernels->attend.pack(c->block.queries, dim, c->operand.query + c->block.q0 * dim, dim, c->tile.scale,
                            c->tile.packed_q);
    att_status e = att_verify_positions(c, s->flags);
    e = e || !s->tile || transforms ? e : check_score_tile(c);
    if (!e && s->derivative)
        e = check_score_derivative(c);
    if (!e && s->derivative)
        e = check_term(c);
    return e || !s->derivative || !s->tile_back || transforms ? e : check_score_back(c);
}
