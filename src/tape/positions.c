/* Positions of tokens, and tables of sinusoids. */
#include "tape/tape.h"
#include "base/math.h"

/* ---- positions */

bool att_tape_check_positions(att_tape *t, const char *op, const att_tensor *x, const att_positions *p)
{
    const int64_t tokens = x->dim[0];
    if (!p->position_ids == !p->offsets)
        att_tape_fail(t, ATT_ERR_ARGUMENT, "%s: positions are given %s", op,
                      p->position_ids ? "one by one and by offsets" : "neither one by one nor by offsets");
    else if (p->offsets)
        att_tape_check_offsets(t, op, x, p->offsets, p->n);
    for (int64_t b = 0; !t->status && p->offsets && p->starts && b < p->n; b++)
        if (p->starts[b] < 0 || p->starts[b] > INT64_MAX - tokens)
            att_tape_fail(t, ATT_ERR_ARGUMENT, "%s: starts[%lld] = %lld is not a position", op, (long long)b,
                          (long long)p->starts[b]);
    for (int64_t i = 0; !t->status && p->position_ids && i < tokens; i++)
        if (p->position_ids[i] < 0)
            att_tape_fail(t, ATT_ERR_ARGUMENT, "%s: the position of token %lld is %lld", op, (long long)i,
                          (long long)p->position_ids[i]);
    return !t->status;
}

const int64_t *att_tape_positions(att_tape *t, const char *op, const att_tensor *x, const att_positions *at)
{
    const int64_t tokens = x->dim[0];
    att_positions p;
    if (!at) {
        att_tape_fail(t, ATT_ERR_ARGUMENT, "%s: at is NULL", op);
        return NULL;
    }
    if (!att_tape_options_read(t, op, &p, sizeof p, at, "att_positions") || !att_tape_check_positions(t, op, x, &p))
        return NULL;
    int64_t *position = att_arena_alloc(&t->arena, att_size_mul((size_t)tokens, sizeof *position));
    if (!position) {
        att_tape_fail(t, ATT_ERR_MEMORY, "%s: %s", op, att_error(t->ctx));
        return NULL;
    }
    for (int64_t i = 0; p.position_ids && i < tokens; i++)
        position[i] = p.position_ids[i];
    for (int64_t b = 0; p.offsets && b < p.n; b++)
        for (int64_t i = p.offsets[b]; i < p.offsets[b + 1]; i++)
            position[i] = (p.starts ? p.starts[b] : 0) + i - p.offsets[b];
    return position;
}

/* ---- sinusoids */

typedef struct positions_job {
    const int64_t *position; /* [rows], or NULL: first, first + 1, ... */
    int64_t first, pairs, sine_step, cosine_at;
    const double *frequency; /* [pairs] */
    double factor;
    float *table; /* [rows, 2 pairs] */
} positions_job;

/* Fills rows in double: at position 10^6 the angle is accurate to 10^-10. */
static void fill_rows(const void *arg, int64_t from, int64_t to)
{
    const positions_job *j = arg;
    for (int64_t r = from; r < to; r++) {
        const double position = (double)(j->position ? j->position[r] : j->first + r);
        float *sine = j->table + r * 2 * j->pairs, *cosine = sine + j->cosine_at;
        for (int64_t i = 0; i < j->pairs; i++) {
            double s, c;
            att_f64_sin_cos(position * j->frequency[i], &s, &c);
            sine[i * j->sine_step] = (float)(j->factor * s);
            cosine[i * j->sine_step] = (float)(j->factor * c);
        }
    }
}

/* Returns the frequencies by the base, unless they are given; NULL: error set. */
static const double *frequencies_of(att_tape *t, const att_sinusoid_table *w, int64_t pairs)
{
    if (w->frequencies)
        return w->frequencies;
    double *frequency = att_arena_alloc(&t->arena, att_size_mul((size_t)pairs, sizeof *frequency));
    for (int64_t i = 0; frequency && i < pairs; i++)
        frequency[i] = att_f64_power(w->base, -2 * (double)i, (double)w->features);
    return frequency;
}

/* Returns a table over the range of positions, unless it would be much larger than one row per token. */
const float *const *att_tape_sinusoids(att_tape *t, const char *op, const int64_t *position, int64_t tokens,
                                       const att_sinusoid_table *w)
{
    enum { COST = 16 }; /* of a sine, in additions */
    int64_t first = INT64_MAX, last = 0;
    for (int64_t i = 0; i < tokens; i++) {
        first = position[i] < first ? position[i] : first;
        last = position[i] > last ? position[i] : last;
    }
    const bool range = tokens > 0 && last - first < 2 * tokens;
    const int64_t rows = range ? last - first + 1 : tokens, pairs = (w->features + 1) / 2;
    const size_t numbers = att_size_mul((size_t)rows, 2 * (size_t)pairs);
    const double *frequency = frequencies_of(t, w, pairs);
    const float **row = att_arena_alloc(&t->arena, att_size_mul((size_t)tokens, sizeof *row));
    float *table = att_arena_alloc(&t->arena, att_size_mul(numbers, sizeof *table));
    if (!frequency || !row || !table) {
        att_tape_fail(t, ATT_ERR_MEMORY, "%s: %s", op, att_error(t->ctx));
        return NULL;
    }
    for (int64_t i = 0; i < tokens; i++)
        row[i] = table + 2 * pairs * (range ? position[i] - first : i);
    const positions_job j = {.position = range ? NULL : position,
                             .first = first,
                             .pairs = pairs,
                             .sine_step = w->interleaved ? 2 : 1,
                             .cosine_at = w->interleaved ? 1 : pairs,
                             .frequency = frequency,
                             .factor = w->factor,
                             .table = table};
    att_tape_for_rows(t->ctx, rows, 2 * COST * pairs, fill_rows, &j);
    return row;
}

/* ---- learned positions: a row of an embedding table is added to each token */

att_var *att_learned_positions(att_tape *t, att_var *x, att_param *table, const att_positions *at)
{
    if (!x || !att_tape_ready(t))
        return NULL;
    if (!table)
        return att_tape_fail(t, ATT_ERR_ARGUMENT, "learned_positions: table is NULL");
    const int64_t tokens = x->value.dim[0], max_positions = att_param_value(table)->dim[0];
    const int64_t *position = att_tape_positions(t, "learned_positions", &x->value, at);
    int32_t *ids = position ? att_arena_alloc(&t->arena, att_size_mul((size_t)tokens, sizeof *ids)) : NULL;
    if (position && !ids)
        return att_tape_fail(t, ATT_ERR_MEMORY, "learned_positions: %s", att_error(t->ctx));
    for (int64_t i = 0; ids && i < tokens; i++) {
        if (position[i] >= max_positions)
            return att_tape_fail(t, ATT_ERR_ARGUMENT,
                                 "learned_positions: token %lld is at position %lld but the table has %lld rows",
                                 (long long)i, (long long)position[i], (long long)max_positions);
        ids[i] = (int32_t)position[i];
    }
    return ids ? att_add(t, x, att_embedding(t, table, ids, tokens)) : NULL;
}
