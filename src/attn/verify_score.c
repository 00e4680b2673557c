/* Does a score agree with its formula: its derivative, its versions for tiles, on the product or not? */
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
        e = att_verify_derivative(c, &p, 0, "query", p.dim, c->query + p.q * p.dim, c->dq);
        e = e ? e : att_verify_derivative(c, &p, 0, "key", p.key_dim, c->key + p.k * p.key_dim, c->dk);
        e = e ? e : att_verify_param_derivative(c, &p, 0);
    }
    return e;
}

/* ---- on the product */

static att_score_row row_of(const att_verify_check *c, const float *x)
{
    return (att_score_row){
        .size = sizeof(att_score_row), .user = c->user, .x = x, .dim = c->spec->head_dim, .vectors = &c->vectors};
}
static const float *query_of(const att_verify_check *c, int i) { return c->query + (c->q0 + i) * c->spec->head_dim; }
static const float *key_of(const att_verify_check *c, int j) { return c->key + (c->k0 + j) * c->spec->key_dim; }

/* What tile and tile_back of a score on the product are given: s = q . k, and the numbers of rows. */
static void set_products(const att_verify_check *c)
{
    for (att_verify_position p = ATT_VERIFY_BEGIN; att_verify_next_pair(c, &p);) {
        double s = 0;
        for (int64_t d = 0; d < c->spec->head_dim; d++)
            s += (double)query_of(c, p.i)[d] * key_of(c, p.j)[d];
        c->s[p.at] = (float)s;
    }
    for (int i = 0; c->score->number && i < c->queries; i++) {
        const att_score_row row = row_of(c, query_of(c, i));
        c->number[0][i] = c->score->number(&row);
    }
    for (int j = 0; c->score->number && j < c->keys; j++) {
        const att_score_row row = row_of(c, key_of(c, j));
        c->number[1][j] = c->score->number(&row);
    }
}

/* Does number_back agree with differences of number? */
static att_status check_number(const att_verify_check *c)
{
    char where[64];
    const att_score_row row = row_of(c, c->query);
    if (!c->score->number)
        return ATT_OK;
    const double f = c->score->number(&row);
    att_verify_fill(row.dim, ATT_VERIFY_BEFORE, c->row);
    c->score->number_back(&row, 1, c->row);
    for (int64_t d = 0; d < row.dim; d++) {
        const float x = c->query[d], up = x + ATT_VERIFY_STEP, down = x - ATT_VERIFY_STEP;
        c->query[d] = up;
        const double right = (c->score->number(&row) - f) / ((double)up - (double)x);
        c->query[d] = down;
        const double left = (f - c->score->number(&row)) / ((double)x - (double)down);
        c->query[d] = x;
        const double slope = (double)c->row[d] - ATT_VERIFY_BEFORE;
        if (!att_verify_is_slope(slope, left, right, f)) {
            snprintf(where, sizeof where, "query 0 by x[%lld]", (long long)d);
            const bool over = att_verify_is_slope(c->row[d], left, right, f);
            return att_verify_differ(c, over ? "number_back, which writes over what it should add to," : "number_back",
                                     where, slope, "but differences of number", (left + right) / 2);
        }
    }
    return ATT_OK;
}

/* The gradient of one row into c->row, added to what was `before`: the products' with the rows of the other side, and
 * that of its number. */
static void add_row(att_verify_check *c, bool of_keys, int n, double before)
{
    const int64_t dim = c->spec->head_dim;
    const float dnumber = c->dnumber[of_keys][n] - (float)before;
    for (int64_t d = 0; d < dim; d++) {
        double sum = 0, terms = 0;
        for (int other = 0; other < (of_keys ? c->queries : c->keys); other++) {
            const int64_t at = of_keys ? n * c->stride + other : other * c->stride + n;
            const double ds = c->ds[at], x = (of_keys ? query_of(c, other) : key_of(c, other))[d];
            sum += ds == 0 ? 0 : ds * x; /* of the key of NaN */
            terms += fabs(ds * x);
        }
        c->row[d] = (float)(before + sum);
        c->terms = fmax(c->terms, terms);
    }
    const att_score_row row = row_of(c, of_keys ? key_of(c, n) : query_of(c, n));
    if (c->score->number && dnumber != 0)
        c->score->number_back(&row, dnumber, c->row);
}

/* Calls tile_back and computes from its results the gradients of queries and keys, as the library does. */
static att_status product_back(att_verify_check *c, const att_score_tile *t, double before)
{
    const int64_t dim = c->spec->head_dim, panel = c->kernels->q_tile;
    const int count[2] = {c->queries, c->keys};
    static const char *const name[2] = {"dquery_number", "dkey_number"};
    att_status e = ATT_OK;
    set_products(c);
    for (att_verify_position p = ATT_VERIFY_BEGIN; att_verify_next_pair(c, &p);)
        c->s[p.at] = c->given[p.at] == 0 ? 0 : c->s[p.at];
    for (int i = 0; i < 2; i++)
        for (int n = 0; n < count[i]; n++)
            c->number[i][n] = isfinite(c->number[i][n]) ? c->number[i][n] : 0;
    memcpy(c->ds, c->given, (size_t)(ATT_VERIFY_KEYS * c->stride) * sizeof *c->ds);
    for (int i = 0; i < 2; i++)
        att_verify_fill(i ? ATT_VERIFY_KEYS : panel, before, c->dnumber[i]);
    c->score->tile_back(t);
    for (int of_keys = 0; of_keys < 2; of_keys++)
        for (int n = 0; n < count[of_keys]; n++) {
            add_row(c, of_keys, n, before);
            for (int64_t d = 0; d < dim; d++)
                (of_keys ? c->dkey + n * dim : c->dquery + n)[of_keys ? d : d * panel] = c->row[d];
            if (before == 0)
                c->want_dnumber[of_keys][n] = c->dnumber[of_keys][n];
        }
    for (int i = 0; !e && before != 0 && i < 2; i++)
        e = att_verify_sums(c, name[i], count[i], c->dnumber[i], before, c->want_dnumber[i]);
    return e;
}

/* ---- tiles */

static att_status check_score_tile(const att_verify_check *c)
{
    const att_score_tile t = att_verify_score_tile(c);
    for (att_verify_position p = ATT_VERIFY_BEGIN; att_verify_next_pair(c, &p);) {
        const att_pair pair = att_verify_pair(c, c->q0 + p.i, c->k0 + p.j);
        c->want_s[p.at] = (double)c->scale * c->score->formula(&pair);
    }
    att_verify_fill(ATT_VERIFY_KEYS * c->stride, (double)NAN, c->s); /* which is written, whatever is there */
    if (c->score->flags & ATT_PRODUCT)
        set_products(c);
    c->score->tile(&t);
    return att_verify_tile(c, "tile", c->s, c->scale == 1 ? "but formula" : "which is bilinear, but formula, scaled,",
                           c->want_s, true);
}

/* What the derivatives of the tile's pairs add up to; of folded queries c q what arrives is dq / c. */
static void add_up(const att_verify_check *c)
{
    const int64_t dim = c->spec->head_dim, key_dim = c->spec->key_dim;
    for (att_verify_position p = ATT_VERIFY_BEGIN; att_verify_next_pair(c, &p);) {
        const att_pair pair = att_verify_pair(c, c->q0 + p.i, c->k0 + p.j);
        if (c->ds[p.at] == 0)
            continue;
        att_verify_clear_pair(c);
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

/* Added to what was `before`. */
static att_status check_score_sums(att_verify_check *c, double before)
{
    const int64_t dim = c->spec->head_dim, key_dim = c->spec->key_dim, panel = c->kernels->q_tile;
    const bool product = c->score->flags & ATT_PRODUCT;
    const att_score_tile t = att_verify_score_tile(c);
    att_status e = ATT_OK;
    att_verify_fill(dim * panel, before, c->dquery);
    att_verify_fill(c->keys * key_dim, before, c->dkey);
    for (int i = 0; i < ATT_MAX_PARAMS && c->dparam[i]; i++)
        att_verify_fill(c->param[i].count, before, c->param[i].grad);
    if (product)
        e = product_back(c, &t, before);
    else
        c->score->tile_back(&t);
    for (int64_t d = 0; d < dim; d++) /* columns after the queries may be given any value */
        att_verify_fill(panel - c->queries, before, c->dquery + d * panel + c->queries);
    e = e ? e : att_verify_sums(c, "dquery", dim * panel, c->dquery, before, c->want_dquery);
    e = e ? e : att_verify_sums(c, "dkey", c->keys * key_dim, c->dkey, before, c->want_dkey);
    for (int i = 0; !e && i < ATT_MAX_PARAMS && c->dparam[i]; i++)
        e = att_verify_sums(c, c->score->param[i].name, c->param[i].count, c->param[i].grad, before, c->want_grad[i]);
    return e;
}

static att_status check_score_back(att_verify_check *c)
{
    att_verify_draw_gradients(c, true);
    memcpy(c->given, c->ds, (size_t)(ATT_VERIFY_KEYS * c->stride) * sizeof *c->ds);
    add_up(c);
    const att_status e = check_score_sums(c, 0);
    return e ? e : check_score_sums(c, ATT_VERIFY_BEFORE);
}

/* The tiles of one with a transforms see other rows than its formula. */
att_status att_verify_score(att_verify_check *c, const att_score *s, bool transforms)
{
    c->score = s;
    c->stage = s->name;
    c->user = s->user;
    c->scale = (s->flags & ATT_BILINEAR) && s->tile && !(s->flags & ATT_PRODUCT) ? 0.75f : 1;
    att_verify_make_operands(c);
    for (int i = 0; i < s->n_params; i++)
        att_verify_make_param(c, i, &s->param[i]);
    if (c->out_of_memory)
        return ATT_ERR_MEMORY;
    const int64_t dim = c->spec->head_dim;
    c->kernels->attend.pack(c->queries, dim, c->query + c->q0 * dim, dim, c->scale, c->packed_q);
    att_status e = att_verify_positions(c, s->flags);
    e = e || !s->tile || transforms ? e : check_score_tile(c);
    if (!e && s->derivative)
        e = check_score_derivative(c);
    if (!e && s->derivative)
        e = check_number(c);
    return e || !s->derivative || !s->tile_back || transforms ? e : check_score_back(c);
}
