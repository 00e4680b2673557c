/* Gradients of recurrent layers: part of gradients.c. */
#ifndef GRADIENTS_RECURRENT_H
#define GRADIENTS_RECURRENT_H

#include "gradients.h"

enum { RECURRENT_SEQUENCES = 5, RECURRENT_TOKENS = 11, RECURRENT_UNITS = 5, RECURRENT_FEATURES = 3 };
static const int64_t recurrent_offsets[] = {0, 2, 2, 7, 8, RECURRENT_TOKENS};

/* Leaves are x, weight_ih and weight_hh; then, where they are given, both biases, or the states, or all of these. */
typedef struct recurrent_case {
    bool lstm, reverse, biases, start;
} recurrent_case;

/* The outputs, then the last states */
static inline att_var *recurrent(att_tape *t, const problem *p)
{
    const recurrent_case *c = p->options;
    const int states = c->biases ? 5 : 3;
    att_recurrent_state last;
    const att_recurrent o = {.size = sizeof o,
                             .weight_ih = p->weight[1],
                             .weight_hh = p->weight[2],
                             .bias_ih = c->biases ? p->weight[3] : NULL,
                             .bias_hh = c->biases ? p->weight[4] : NULL,
                             .reverse = c->reverse,
                             .initial.hidden = c->start ? p->var[states] : NULL,
                             .initial.cell = c->start && c->lstm ? p->var[states + 1] : NULL};
    att_var *y = (c->lstm ? att_lstm : att_gru)(t, p->var[0], recurrent_offsets, p->n, &o, &last);
    return att_concat(t, c->lstm ? 3 : 2, (att_var *[]){y, last.hidden, last.cell}, 0);
}

/* y [gates] = W x + b, of rows of leaves; x [n] */
static inline void recurrent_product(const leaf *w, const leaf *b, const double *x, double *y)
{
    for (int64_t i = 0; i < w->dim[0]; i++) {
        y[i] = b ? (double)b->x[i] : 0;
        for (int64_t j = 0; j < w->dim[1]; j++)
            y[i] += (double)w->x[i * w->dim[1] + j] * x[j];
    }
}

/* Sequence s, step by step */
static inline void recurrent_sequence(const problem *p, int64_t s, double *y)
{
    enum { U = RECURRENT_UNITS, N = RECURRENT_SEQUENCES };
    const recurrent_case *c = p->options;
    const leaf *l = p->leaf, *b = c->biases ? &l[3] : NULL, *states = &l[c->biases ? 5 : 3];
    const int64_t length = recurrent_offsets[s + 1] - recurrent_offsets[s];
    double h[U], cell[U], in[4 * U], product[4 * U], x[RECURRENT_FEATURES];
    for (int64_t i = 0; i < U; i++) {
        h[i] = c->start ? (double)states[0].x[s * U + i] : 0;
        cell[i] = c->start && c->lstm ? (double)states[1].x[s * U + i] : 0;
    }
    for (int64_t step = 0; step < length; step++) {
        const int64_t row = c->reverse ? recurrent_offsets[s + 1] - 1 - step : recurrent_offsets[s] + step;
        for (int64_t i = 0; i < RECURRENT_FEATURES; i++)
            x[i] = (double)l[0].x[row * RECURRENT_FEATURES + i];
        recurrent_product(&l[1], b, x, in);
        recurrent_product(&l[2], b ? b + 1 : NULL, h, product);
        if (c->lstm)
            att_ref_lstm(U, in, product, cell, h, cell);
        else
            att_ref_gru(U, in, product, h, h);
        memcpy(y + row * U, h, sizeof h);
    }
    memcpy(y + (RECURRENT_TOKENS + s) * U, h, sizeof h);
    if (c->lstm)
        memcpy(y + (RECURRENT_TOKENS + N + s) * U, cell, sizeof cell);
}

static inline void recurrent_reference(const problem *p, double *y)
{
    for (int64_t s = 0; s < RECURRENT_SEQUENCES; s++)
        recurrent_sequence(p, s, y);
}

static inline void check_recurrent(const recurrent_case *c)
{
    const int64_t gates = (c->lstm ? 4 : 3) * RECURRENT_UNITS;
    problem p = {.build = recurrent,
                 .reference = recurrent_reference,
                 .leaf = {{.rank = 2, .dim = {RECURRENT_TOKENS, RECURRENT_FEATURES}},
                          {.rank = 2, .dim = {gates, RECURRENT_FEATURES}, .param = true},
                          {.rank = 2, .dim = {gates, RECURRENT_UNITS}, .param = true}},
                 .spread = 0.75f,
                 /* A state's gradient is a sum, over at most 5 steps of sums of 20, of numbers below 1, each rounded as
                  * it is added, and off by some 8 roundings of gates; those of weights are sums of 11 of these. */
                 .tolerance = (5 * (20 + 8) + 11) * FLT_EPSILON,
                 /* 5 steps of sums of 10, as well */
                 .y_tolerance = 5 * (10 + 8) * FLT_EPSILON / 2,
                 .n = RECURRENT_SEQUENCES,
                 .options = c};
    int n = 3;
    for (int i = 0; i < 2 && c->biases; i++)
        p.leaf[n++] = (leaf){.rank = 1, .dim = {gates}, .param = true};
    for (int i = 0; i < (c->lstm ? 2 : 1) && c->start; i++)
        p.leaf[n++] = (leaf){.rank = 2, .dim = {RECURRENT_SEQUENCES, RECURRENT_UNITS}};
    check_problem(p, c->lstm ? "lstm" : "gru");
}

static inline void gradients_of_gru(void **state)
{
    (void)state;
    for (int i = 0; i < 8; i++)
        check_recurrent(&(const recurrent_case){.reverse = i & 1, .biases = i & 2, .start = i & 4});
}

static inline void gradients_of_lstm(void **state)
{
    (void)state;
    for (int i = 0; i < 8; i++)
        check_recurrent(&(const recurrent_case){.lstm = true, .reverse = i & 1, .biases = i & 2, .start = i & 4});
}

/* The cells alone, and of outputs nothing: through states that nothing else reads. */
static inline att_var *last_cells(att_tape *t, const problem *p)
{
    att_recurrent_state last;
    att_lstm(t, p->var[0], recurrent_offsets, p->n,
             ATT_OPTIONS(att_recurrent, .weight_ih = p->weight[1], .weight_hh = p->weight[2]), &last);
    return last.cell;
}

static inline void last_cells_reference(const problem *p, double *y)
{
    enum { CELLS = RECURRENT_SEQUENCES * RECURRENT_UNITS, BEFORE = RECURRENT_TOKENS * RECURRENT_UNITS + CELLS };
    double all[BEFORE + CELLS];
    recurrent_reference(p, all);
    memcpy(y, all + BEFORE, CELLS * sizeof *y);
}

static inline void gradients_of_last_states(void **state)
{
    (void)state;
    const problem p = {.build = last_cells,
                       .reference = last_cells_reference,
                       .leaf = {{.rank = 2, .dim = {RECURRENT_TOKENS, RECURRENT_FEATURES}},
                                {.rank = 2, .dim = {4 * RECURRENT_UNITS, RECURRENT_FEATURES}, .param = true},
                                {.rank = 2, .dim = {4 * RECURRENT_UNITS, RECURRENT_UNITS}, .param = true}},
                       .spread = 0.75f,
                       .tolerance = (5 * (20 + 8) + 11) * FLT_EPSILON, /* as above */
                       .y_tolerance = 5 * (10 + 8) * FLT_EPSILON / 2,
                       .n = RECURRENT_SEQUENCES,
                       .options = &(const recurrent_case){.lstm = true}};
    check_problem(p, "last_states");
}

#endif
