/* Checks that a modifier's derivative and its versions for tiles agree with its formula. */
#include "attn/verify.h"

#include <stdio.h>
#include <string.h>

static att_modifier_tile modifier_tile_of(const att_verify_check *c, float *s)
{
    att_score_tile t = att_verify_score_tile(c);
    t.s = s;
    return att_modifier_tile_of(&t, c->stage.modifier, c->stage.value, c->operand.param, c->tile.ds);
}

static att_status check_modifier_derivative(const att_verify_check *c)
{
    const att_modifier *m = c->stage.modifier;
    att_status e = ATT_OK;
    char where[64];
    double *const none[ATT_MAX_PARAMS] = {NULL};
    for (att_verify_position p = ATT_VERIFY_BEGIN; !e && att_verify_next_pair(c, &p);) {
        const double s = c->tile.given[p.at];
        const att_pair pair = att_verify_pair(c, c->block.q0 + p.i, c->block.k0 + p.j);
        const double f = m->formula(&pair, s),
                     right = (m->formula(&pair, s + (double)ATT_VERIFY_STEP) - f) / (double)ATT_VERIFY_STEP;
        const double left = (f - m->formula(&pair, s - (double)ATT_VERIFY_STEP)) / (double)ATT_VERIFY_STEP;
        const bool params = p.i == p.j;
        const double slope = params ? att_verify_derivatives_of(c, &pair, s) : m->derivative(&pair, s, 1, none);
        snprintf(where, sizeof where, "query %lld and key %lld", (long long)pair.q, (long long)pair.k);
        if (!att_verify_is_slope(slope, left, right, f))
            return att_verify_differ(c, "derivative", where, slope, "but differences of formula", (left + right) / 2);
        if ((m->flags & ATT_STAGE_ADDITIVE) && slope != 1)
            return att_verify_differ(c, "derivative", where, slope, "but ATT_STAGE_ADDITIVE implies", 1);
        if (params)
            e = att_verify_param_derivative(c, &pair, s);
    }
    return e;
}

static att_status check_modifier_tile(const att_verify_check *c)
{
    const att_modifier_tile t = modifier_tile_of(c, c->tile.s);
    for (att_verify_position p = ATT_VERIFY_BEGIN; att_verify_next_pair(c, &p);) {
        const att_pair pair = att_verify_pair(c, c->block.q0 + p.i, c->block.k0 + p.j);
        c->want.s[p.at] = c->stage.modifier->formula(&pair, (double)c->tile.given[p.at]);
    }
    c->stage.modifier->tile(&t);
    return att_verify_same_tile(c, "tile", c->tile.s, "but formula", c->want.s, true);
}

/* Checks the gradients of the modifier's parameters, added to what was `before`. */
static att_status check_modifier_sums(const att_verify_check *c, const float *grads, double before)
{
    const att_modifier *m = c->stage.modifier;
    const bool additive = m->flags & ATT_STAGE_ADDITIVE;
    const att_modifier_tile t = modifier_tile_of(c, additive ? NULL : c->tile.given);
    memcpy(c->tile.ds, grads, (size_t)(ATT_VERIFY_KEYS * c->block.stride) * sizeof *grads);
    for (int i = 0; i < m->n_params; i++)
        att_verify_fill(c->operand.param[i].count, before, c->operand.param[i].grad);
    m->tile_back(&t);
    att_status e = att_verify_same_tile(c, "tile_back", c->tile.ds, "but derivative", c->want.ds, additive);
    for (int i = 0; !e && i < m->n_params; i++)
        e = att_verify_same_sums(c, m->param[i].name, c->operand.param[i].count, c->operand.param[i].grad, before,
                                 c->want.grad[i]);
    return e;
}

static att_status check_modifier_back(att_verify_check *c)
{
    const att_modifier *m = c->stage.modifier;
    float *grads = att_verify_floats(c, ATT_VERIFY_KEYS * c->block.stride);
    if (!grads)
        return ATT_ERR_MEMORY;
    att_verify_draw_gradients(c, false);
    memcpy(grads, c->tile.ds, (size_t)(ATT_VERIFY_KEYS * c->block.stride) * sizeof *grads);
    for (att_verify_position p = ATT_VERIFY_BEGIN; att_verify_next_pair(c, &p);) {
        const att_pair pair = att_verify_pair(c, c->block.q0 + p.i, c->block.k0 + p.j);
        if (c->tile.ds[p.at] != 0)
            c->want.ds[p.at] = (double)c->tile.ds[p.at] * m->derivative(&pair, (double)c->tile.given[p.at],
                                                                        (double)c->tile.ds[p.at], c->want.grad);
        else
            c->tile.given[p.at] = NAN; /* the score of a pair that does not attend */
    }
    const att_status e = check_modifier_sums(c, grads, 0);
    return e ? e : check_modifier_sums(c, grads, ATT_VERIFY_BEFORE);
}

static att_status accepts(const att_verify_check *c, const att_modifier *m, const double *value, int64_t any)
{
    att_tensor param[ATT_MAX_PARAMS];
    for (int i = 0; i < m->n_params; i++)
        param[i] = (att_tensor){.dtype = ATT_F32, .rank = 2, .dim = {1, any}, .stride = {any, 1}};
    return m->check && m->n_params ? m->check(c->ctx, value, param) : ATT_OK;
}

/* Finds a size for ATT_EXTENT_ANY that the modifier's own check accepts. */
static att_status find_extent(att_verify_check *c, const att_modifier *m, const double *value)
{
    for (c->any = ATT_VERIFY_ANY_EXTENT; c->any > 0; c->any--)
        if (!accepts(c, m, value, c->any))
            return ATT_OK;
    return accepts(c, m, value, ATT_VERIFY_ANY_EXTENT);
}

att_status att_verify_modifier(att_verify_check *c, const att_modifier *m, const double *value)
{
    if (m->flags & ATT_STAGE_SINK)
        return ATT_OK;
    if (find_extent(c, m, value))
        return ATT_ERR_ARGUMENT;
    c->stage.modifier = m;
    c->stage.name = m->name;
    c->stage.user = m->user;
    c->stage.value = value;
    att_verify_make_operands(c);
    for (int i = 0; i < m->n_params; i++)
        att_verify_make_param(c, i, &m->param[i]);
    if (c->out_of_memory)
        return ATT_ERR_MEMORY;
    for (att_verify_position p = ATT_VERIFY_BEGIN; att_verify_next_pair(c, &p);)
        c->tile.s[p.at] = c->tile.given[p.at] = 4 * att_verify_uniform(c);
    att_status e = att_verify_positions(c, m->flags);
    e = e || !m->tile ? e : check_modifier_tile(c);
    if (!e && m->derivative)
        e = check_modifier_derivative(c);
    return e || !m->derivative || !m->tile_back ? e : check_modifier_back(c);
}
