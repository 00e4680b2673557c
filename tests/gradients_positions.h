/* Gradients of the operations on positions: part of gradients.c. */
#ifndef GRADIENTS_POSITIONS_H
#define GRADIENTS_POSITIONS_H

#include "gradients.h"

static const int64_t position_offsets[] = {0, 3, 3, 11}, position_starts[] = {0, 7, 1000};
static const att_positions ragged_positions = {
    .size = sizeof ragged_positions, .offsets = position_offsets, .n = 3, .starts = position_starts};

/* Token i of these. */
static inline double position_of(int64_t i) { return i < 3 ? (double)i : (double)(1000 + i - 3); }

static inline double angle_of(int64_t token, int64_t pair, int64_t features)
{
    return position_of(token) / pow(10000, 2 * (double)pair / (double)features);
}

static inline att_var *sinusoidal(att_tape *t, const problem *p)
{
    return att_sinusoidal(t, p->var[0], &ragged_positions, p->options);
}

static inline void sinusoidal_reference(const problem *p, double *y)
{
    const att_sinusoidal_options *s = p->options;
    const int64_t tokens = p->leaf[0].dim[0], in = p->leaf[0].dim[1], out = in + s->append;
    const int64_t features = s->append ? s->append : in, sines = (features + 1) / 2;
    for (int64_t i = 0; i < tokens; i++) {
        for (int64_t d = 0; d < in; d++)
            y[i * out + d] = (double)p->leaf[0].x[i * in + d];
        for (int64_t d = 0; d < features; d++) {
            const bool sine = s->interleaved ? d % 2 == 0 : d < sines;
            const int64_t pair = s->interleaved ? d / 2 : sine ? d : d - sines;
            const double angle = angle_of(i, pair, features), wave = sine ? sin(angle) : cos(angle);
            double *to = y + i * out + (s->append ? in : 0) + d;
            *to = s->append ? wave : *to + wave;
        }
    }
}

static inline void gradients_of_sinusoidal(void **state)
{
    (void)state;
    for (int interleaved = 0; interleaved < 2; interleaved++)
        for (int64_t append = 0; append < 8; append += 7) {
            const att_sinusoidal_options how = {.size = sizeof how, .interleaved = interleaved, .append = append};
            const problem p = {.build = sinusoidal,
                               .reference = sinusoidal_reference,
                               .leaf = {{.rank = 2, .dim = {11, 9}}},
                               .tolerance = FLT_EPSILON, /* that of y itself */
                               .options = &how};
            check_problem(p, "sinusoidal");
        }
}

static inline att_var *rotary(att_tape *t, const problem *p)
{
    return att_rotary(t, p->var[0], &ragged_positions, p->options);
}

static inline void rotary_reference(const problem *p, double *y)
{
    const att_rotary_options *o = p->options;
    const leaf *l = &p->leaf[0];
    const int64_t heads = l->dim[1], dim = l->dim[2], dims = o->dims ? o->dims : dim, pairs = dims / 2;
    for (int64_t i = 0; i < count_of(l); i++)
        y[i] = (double)l->x[i];
    for (int64_t row = 0; row < l->dim[0] * heads; row++)
        for (int64_t pair = 0; pair < pairs; pair++) {
            const int64_t a = row * dim + (o->interleaved ? 2 * pair : pair), b = a + (o->interleaved ? 1 : pairs);
            const double angle =
                o->frequencies ? position_of(row / heads) * o->frequencies[pair] : angle_of(row / heads, pair, dims);
            const double factor = o->factor == 0 ? 1 : o->factor, s = factor * sin(angle), c = factor * cos(angle);
            y[a] = (double)l->x[a] * c - (double)l->x[b] * s;
            y[b] = (double)l->x[a] * s + (double)l->x[b] * c;
        }
}

static inline void gradients_of_rotary(void **state)
{
    (void)state;
    static const double frequencies[19] = {1, 0.5, 3, -0.01, 0, 1e-9, [18] = 2};
    for (int way = 0; way < 8; way++) {
        const att_rotary_options how = {.size = sizeof how,
                                        .interleaved = way & 1,
                                        .dims = way & 2 ? 6 : 0,
                                        .frequencies = way & 4 ? frequencies : NULL,
                                        .factor = way & 4 ? 1.25 : 0};
        const problem p = {.build = rotary,
                           .reference = rotary_reference,
                           .leaf = {{.rank = 3, .dim = {11, 3, 38}}},
                           .tolerance = 4 * FLT_EPSILON, /* two products, whose factors are rounded */
                           .y_tolerance = 4 * FLT_EPSILON,
                           .options = &how};
        check_problem(p, "rotary");
    }
}

#endif
