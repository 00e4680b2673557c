/* Checks one stage on one instruction set: random operands, arguments of functions, comparisons. */
#include "attn/verify.h"

#include <stdio.h>
#include <string.h>

enum { SAMPLES = 24 };

/* A version for tiles may be off by this share of the tile's largest number. */
static const double PART = 0x1p-12;

/* ---- memory and random numbers */

static void *room(att_verify_check *c, int64_t count, size_t size)
{
    void *p = att_arena_alloc(&c->memory, (size_t)count * size + 1);
    c->out_of_memory = c->out_of_memory || !p;
    return p ? memset(p, 0, (size_t)count * size) : NULL;
}

float *att_verify_floats(att_verify_check *c, int64_t n) { return room(c, n, sizeof(float)); }
double *att_verify_doubles(att_verify_check *c, int64_t n) { return room(c, n, sizeof(double)); }

float att_verify_uniform(att_verify_check *c)
{
    return (float)(int32_t)(att_verify_random(&c->random) >> 32) * 0x1p-31f;
}

static float *uniforms(att_verify_check *c, int64_t n)
{
    float *x = att_verify_floats(c, n);
    for (int64_t i = 0; x && i < n; i++)
        x[i] = att_verify_uniform(c);
    return x;
}

void att_verify_make_param(att_verify_check *c, int i, const att_param_shape *shape)
{
    const att_attention_spec *a = c->spec;
    const int64_t size[] = {[ATT_EXTENT_NONE] = 1,
                            [ATT_EXTENT_ANY] = c->any,
                            [ATT_EXTENT_HEAD_DIM] = a->head_dim,
                            [ATT_EXTENT_KEY_DIM] = a->key_dim,
                            [ATT_EXTENT_SCORE_DIM] = a->score_dim ? a->score_dim : a->head_dim};
    const bool pairs = shape->kind == ATT_PARAM_PER_PAIR;
    const int64_t count = pairs ? ATT_VERIFY_TQ * ATT_VERIFY_TK : size[shape->rows] * size[shape->columns];
    c->operand.numbers[i] = uniforms(c, count);
    c->want.grad[i] = att_verify_doubles(c, count);
    c->pair.dparam[i] = att_verify_doubles(c, count);
    c->operand.param[i] = (att_param_view){.data = c->operand.numbers[i],
                                           .grad = att_verify_floats(c, count),
                                           .count = count,
                                           .stride = {ATT_VERIFY_TK, 1},
                                           .grad_stride = {ATT_VERIFY_TK, 1}};
}

void att_verify_make_operands(att_verify_check *c)
{
    const int64_t dim = c->spec->head_dim, key_dim = c->spec->key_dim, panel = c->kernels->q_tile;
    c->block.stride = 2 * panel;
    c->operand.query = uniforms(c, ATT_VERIFY_TQ * dim);
    c->operand.key = uniforms(c, ATT_VERIFY_TK * key_dim);
    c->tile.packed_q = att_verify_floats(c, dim * panel);
    c->tile.s = att_verify_floats(c, ATT_VERIFY_KEYS * c->block.stride);
    c->tile.given = att_verify_floats(c, ATT_VERIFY_KEYS * c->block.stride);
    c->tile.ds = att_verify_floats(c, ATT_VERIFY_KEYS * c->block.stride);
    c->tile.dquery = att_verify_floats(c, dim * panel);
    c->tile.dkey = att_verify_floats(c, ATT_VERIFY_KEYS * key_dim);
    c->want.s = att_verify_doubles(c, ATT_VERIFY_KEYS * c->block.stride);
    c->want.ds = att_verify_doubles(c, ATT_VERIFY_KEYS * c->block.stride);
    c->want.dquery = att_verify_doubles(c, dim * panel);
    c->want.dkey = att_verify_doubles(c, ATT_VERIFY_KEYS * key_dim);
    for (int i = 0; i < 2; i++) {
        const int64_t n = i ? ATT_VERIFY_KEYS : panel;
        c->tile.term[i] = att_verify_floats(c, n);
        c->tile.dterm[i] = att_verify_floats(c, n);
        c->want.dterm[i] = att_verify_doubles(c, n);
    }
    c->tile.row = att_verify_floats(c, dim);
    c->pair.dq = att_verify_doubles(c, dim);
    c->pair.dk = att_verify_doubles(c, key_dim);
}

/* ---- what functions are called with */

att_pair att_verify_pair(const att_verify_check *c, int64_t q, int64_t k)
{
    return (att_pair){.size = sizeof(att_pair),
                      .head = &c->block.head,
                      .user = c->stage.user,
                      .value = c->stage.value,
                      .q = q,
                      .k = k,
                      .query = c->stage.score ? c->operand.query + q * c->spec->head_dim : NULL,
                      .key = c->stage.score ? c->operand.key + k * c->spec->key_dim : NULL,
                      .dim = c->stage.score ? c->spec->head_dim : 0,
                      .key_dim = c->stage.score ? c->spec->key_dim : 0,
                      .param = c->operand.param};
}

att_score_tile att_verify_score_tile(const att_verify_check *c)
{
    const bool product = c->stage.score && (c->stage.score->flags & ATT_STAGE_PRODUCT),
               has_term = c->stage.score && c->stage.score->term;
    return (att_score_tile){.size = sizeof(att_score_tile),
                            .head = &c->block.head,
                            .user = c->stage.user,
                            .q = c->block.q0,
                            .k = c->block.k0,
                            .queries = c->block.queries,
                            .keys = c->block.keys,
                            .columns = c->kernels->q_tile,
                            .query = c->tile.packed_q,
                            .dim = c->spec->head_dim,
                            .key = c->operand.key + c->block.k0 * c->spec->key_dim,
                            .key_dim = c->spec->key_dim,
                            .key_stride = c->spec->key_dim,
                            .param = c->operand.param,
                            .s = c->tile.s,
                            .ds = c->tile.ds,
                            .stride = c->block.stride,
                            .dquery = product ? NULL : c->tile.dquery,
                            .dkey = product ? NULL : c->tile.dkey,
                            .dkey_stride = c->spec->key_dim,
                            .vectors = &c->vectors,
                            .query_term = has_term ? c->tile.term[0] : NULL,
                            .key_term = has_term ? c->tile.term[1] : NULL,
                            .dquery_term = has_term ? c->tile.dterm[0] : NULL,
                            .dkey_term = has_term ? c->tile.dterm[1] : NULL};
}

/* ---- comparing */

att_status att_verify_differ(const att_verify_check *c, const char *what, const char *where, double got,
                             const char *than, double want)
{
    return att_fail(c->ctx, ATT_ERR_ARGUMENT,
                    "\"%s\" (%s), %d queries from %d by %d keys from %d: %s gives %.9g for %s, %s %.9g", c->stage.name,
                    c->isa, c->block.queries, c->block.q0, c->block.keys, c->block.k0, what, got, where, than, want);
}

/* Compares got [n] with want. Where `before` was added to every other number, that is subtracted; the error sentence
 * has the index. */
att_status att_verify_same_sums(const att_verify_check *c, const char *name, int64_t n, const float *got, double before,
                                const double *want)
{
    const double limit = PART * fmax(att_verify_largest(n, want), before + c->terms);
    char where[64];
    for (int64_t i = 0; i < n; i++)
        if (!att_verify_agree(got[i] - before, want[i], limit)) {
            snprintf(where, sizeof where, "%s[%lld]", name, (long long)i);
            const char *what =
                att_verify_agree(got[i], want[i], limit) ? "tile_back, which overwrites, but should add," : "tile_back";
            return att_verify_differ(c, what, where, got[i], "but derivatives", before + want[i]);
        }
    return ATT_OK;
}

/* Compares the numbers of the pairs of a tile; zeros: also where nothing is wanted. */
att_status att_verify_same_tile(const att_verify_check *c, const char *what, const float *got, const char *than,
                                const double *want, bool zeros)
{
    const double limit = PART * att_verify_largest(ATT_VERIFY_KEYS * c->block.stride, want);
    char where[64];
    for (att_verify_position p = ATT_VERIFY_BEGIN; att_verify_next_pair(c, &p);)
        if (!att_verify_agree(got[p.at], want[p.at], limit) && (zeros || want[p.at] != 0)) {
            snprintf(where, sizeof where, "query %d and key %d", c->block.q0 + p.i, c->block.k0 + p.j);
            return att_verify_differ(c, what, where, got[p.at], than, want[p.at]);
        }
    return ATT_OK;
}

/* ---- derivatives */

static double value_of(const att_verify_check *c, const att_pair *p, double s)
{
    return c->stage.score ? c->stage.score->formula(p) : c->stage.modifier->formula(p, s);
}

static void add(int64_t n, double x, double *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] += x;
}

/* Sets everything that a pair's derivative adds to. */
static void add_to_pair(const att_verify_check *c, double x)
{
    add(c->spec->head_dim, x, c->pair.dq);
    add(c->spec->key_dim, x, c->pair.dk);
    for (int i = 0; i < ATT_MAX_PARAMS && c->pair.dparam[i]; i++)
        add(c->operand.param[i].count, x, c->pair.dparam[i]);
}

void att_verify_clear_pair(const att_verify_check *c)
{
    memset(c->pair.dq, 0, (size_t)c->spec->head_dim * sizeof *c->pair.dq);
    memset(c->pair.dk, 0, (size_t)c->spec->key_dim * sizeof *c->pair.dk);
    for (int i = 0; i < ATT_MAX_PARAMS && c->pair.dparam[i]; i++)
        memset(c->pair.dparam[i], 0, (size_t)c->operand.param[i].count * sizeof(double));
}

/* Computes the pair's derivatives, by what they add to other numbers; returns a modifier's derivative by s. */
double att_verify_derivatives_of(const att_verify_check *c, const att_pair *p, double s)
{
    double slope = 0;
    att_verify_clear_pair(c);
    add_to_pair(c, ATT_VERIFY_BEFORE);
    if (c->stage.score)
        c->stage.score->derivative(p, 1, c->pair.dq, c->pair.dk, c->pair.dparam);
    else
        slope = c->stage.modifier->derivative(p, s, 1, c->pair.dparam);
    add_to_pair(c, -ATT_VERIFY_BEFORE);
    return slope;
}

/* Checks gradient [n], the derivatives of the formula by x [n], operands of the pair, for some of them. */
att_status att_verify_derivative(const att_verify_check *c, const att_pair *p, double s, const char *by, int64_t n,
                                 float *x, const double *gradient)
{
    const double f = value_of(c, p, s);
    char where[96];
    for (int64_t step = n / SAMPLES + 1, i = n % step / 2; i < n; i += step) {
        const float before = x[i], up = before + ATT_VERIFY_STEP, down = before - ATT_VERIFY_STEP;
        x[i] = up;
        const double right = (value_of(c, p, s) - f) / ((double)up - (double)before);
        x[i] = down;
        const double left = (f - value_of(c, p, s)) / ((double)before - (double)down);
        x[i] = before;
        if (!att_verify_is_slope(gradient[i], left, right, f)) {
            snprintf(where, sizeof where, "query %lld and key %lld by %s[%lld]", (long long)p->q, (long long)p->k, by,
                     (long long)i);
            const bool over = att_verify_is_slope(gradient[i] + ATT_VERIFY_BEFORE, left, right, f);
            return att_verify_differ(c, over ? "derivative, which overwrites, but should add," : "derivative", where,
                                     gradient[i], "but differences of formula", (left + right) / 2);
        }
    }
    return ATT_OK;
}

att_status att_verify_param_derivative(const att_verify_check *c, const att_pair *p, double s)
{
    const att_param_shape *shape = c->stage.score ? c->stage.score->param : c->stage.modifier->param;
    att_status e = ATT_OK;
    for (int i = 0; !e && i < ATT_MAX_PARAMS && c->pair.dparam[i]; i++) {
        const bool pairs = shape[i].kind == ATT_PARAM_PER_PAIR;
        const int64_t first = pairs ? p->q * ATT_VERIFY_TK + p->k : 0;
        e = att_verify_derivative(c, p, s, shape[i].name, pairs ? 1 : c->operand.param[i].count,
                                  c->operand.numbers[i] + first, c->pair.dparam[i] + first);
    }
    return e;
}

/* Checks that a stage that does not state that it uses positions has the same results at all positions. */
att_status att_verify_positions(const att_verify_check *c, unsigned flags)
{
    att_head other = c->block.head;
    char where[128];
    other.position = 0;
    for (att_verify_position p = ATT_VERIFY_BEGIN; !(flags & ATT_STAGE_NEEDS_ALIGN) && att_verify_next_pair(c, &p);) {
        const double s = c->stage.score ? 0 : (double)c->tile.given[p.at];
        const att_pair here = att_verify_pair(c, c->block.q0 + p.i, c->block.k0 + p.j);
        att_pair there = here;
        there.head = &other;
        const double got = value_of(c, &here, s), want = value_of(c, &there, s);
        if (!att_verify_agree(got, want, 0)) {
            snprintf(where, sizeof where, "query %d and key %d at position %lld, without ATT_STAGE_NEEDS_ALIGN",
                     c->block.q0 + p.i, c->block.k0 + p.j, (long long)c->block.head.position);
            return att_verify_differ(c, "formula", where, got, "but at position 0", want);
        }
    }
    return ATT_OK;
}

/* Draws random gradients ds. Some are 0, as are all of one key, whose row is NaN. */
void att_verify_draw_gradients(att_verify_check *c, bool spoil_key)
{
    for (att_verify_position p = ATT_VERIFY_BEGIN; att_verify_next_pair(c, &p);)
        c->tile.ds[p.at] = att_verify_random(&c->random) % 4 == 0 || (spoil_key && p.j == c->block.keys / 2)
                               ? 0
                               : att_verify_uniform(c);
    for (int64_t d = 0; spoil_key && d < c->spec->key_dim; d++)
        c->operand.key[(c->block.k0 + c->block.keys / 2) * c->spec->key_dim + d] = NAN;
}
