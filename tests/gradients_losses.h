/* Norms, softmax, dropout and losses, of gradients.c. */
#ifndef GRADIENTS_LOSSES_H
#define GRADIENTS_LOSSES_H

#include "gradients.h"

/* ---- rms_norm */

static att_var *rms_norm(att_tape *t, const problem *p) { return att_rms_norm(t, p->var[0], p->weight[1], p->eps); }
static void rms_norm_reference(const problem *p, double *y)
{
    const int64_t f = p->leaf[0].dim[1];
    for (int64_t i = 0; i < count_of(&p->leaf[0]); i += f)
        att_ref_rms_norm(f, p->leaf[0].x + i, p->leaf[1].x, p->eps, y + i);
}

static void gradients_of_rms_norm(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = {{1, 1}, {1, 17}, {65, 3}, {129, 7}, {3, 97}, {2, 383}};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        const int64_t rows = shapes[s][0], f = shapes[s][1];
        const problem p = {.build = rms_norm,
                           .reference = rms_norm_reference,
                           .leaf = {{.rank = 2, .dim = {rows, f}}, {.rank = 1, .dim = {f}, .param = true}},
                           /* as layer_norm's */
                           .tolerance = (double)(100 + rows) * FLT_EPSILON,
                           .y_tolerance = 8 * 2 * FLT_EPSILON, /* numbers that are hardly ever above 2 */
                           .eps = 0.01f};
        check_problem(p, "rms_norm");
    }
}

/* ---- softmax */

static att_var *softmax(att_tape *t, const problem *p) { return att_softmax(t, p->var[0]); }

static void softmax_reference(const problem *p, double *y)
{
    const int64_t f = p->leaf[0].dim[1];
    for (int64_t i = 0; i < count_of(&p->leaf[0]); i += f)
        att_ref_softmax(f, p->leaf[0].x + i, y + i);
}

static void gradients_of_softmax(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = {{1, 1}, {1, 17}, {65, 3}, {3, 97}, {2, 383}};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        const problem p = {.build = softmax,
                           .reference = softmax_reference,
                           .leaf = {{.rank = 2, .dim = {shapes[s][0], shapes[s][1]}}},
                           .spread = 4,
                           /* weights below 1, off by some units of exp and of a sum of as many; dy below 1 */
                           .tolerance = 16 * FLT_EPSILON,
                           .y_tolerance = 8 * FLT_EPSILON};
        check_problem(p, "softmax");
    }
}

/* ---- dropout */

static const int64_t dropout_offsets[] = {0, 5, 5, 16}, dropout_starts[] = {3, 0, 6};
static const uint32_t dropout_ids[] = {8, 1, 4};
static const att_positions dropout_at = {
    .size = sizeof dropout_at, .offsets = dropout_offsets, .n = 3, .starts = dropout_starts};
#define DROPOUT_P 0.25f
#define DROPOUT_SEED 77

static att_var *dropout(att_tape *t, const problem *p)
{
    return att_dropout(t, p->var[0], p->var[1], DROPOUT_P, DROPOUT_SEED, &dropout_at, dropout_ids);
}

static void dropout_reference(const problem *p, double *y)
{
    const int64_t f = p->leaf[0].dim[1];
    for (int64_t b = 0; b < 3; b++)
        for (int64_t i = dropout_offsets[b]; i < dropout_offsets[b + 1]; i++)
            for (int64_t d = 0; d < f; d++) {
                const att_dropout_mask keep = {DROPOUT_SEED, dropout_ids[b], UINT32_MAX,
                                               (uint32_t)(DROPOUT_P * 0x1p32f)};
                const uint32_t position = (uint32_t)(dropout_starts[b] + i - dropout_offsets[b]);
                const int64_t at = i * f + d;
                y[at] = att_dropout_keep(&keep, (uint32_t)d, position) ? (double)p->leaf[0].x[at] / 0.75 : 0;
                y[at] += p->leaf[1].rank ? (double)p->leaf[1].x[at] : 0;
            }
}

static void gradients_of_dropout(void **state)
{
    (void)state;
    static const int64_t features[] = {1, 7, 64, 81};
    for (int i = 0; i < 8; i++) {
        const problem p = {
            .build = dropout,
            .reference = dropout_reference,
            .leaf = {{.rank = 2, .dim = {16, features[i / 2]}}, {.rank = i % 2 ? 2 : 0, .dim = {16, features[i / 2]}}},
            .tolerance = 2 * FLT_EPSILON, /* 1 / (1 - p) is rounded, and the product */
            .y_tolerance = 4 * FLT_EPSILON};
        check_problem(p, "dropout");
    }
}

/* ---- cross_entropy */

static att_var *cross_entropy(att_tape *t, const problem *p)
{
    return att_cross_entropy(t, p->var[0], p->ids, p->entropy);
}

/* Of a linear layer, whose logits' numbers become their gradient. */
static att_var *cross_entropy_of_linear(att_tape *t, const problem *p)
{
    return att_cross_entropy(t, att_linear(t, p->var[0], p->weight[1], NULL, ATT_IDENTITY, NULL), p->ids, p->entropy);
}

/* -log softmax(x)[target], or with smoothing s (1 - s) of that and s of the mean over all classes that take part. */
static double row_loss(int64_t classes, const double *x, int64_t target, double s)
{
    double sum = 0, mean = 0;
    for (int64_t i = 0; i < classes; i++) {
        sum += exp(x[i]);
        mean += x[i] / (double)classes;
    }
    return log(sum) - (1 - s) * x[target] - s * mean;
}

static void cross_entropy_reference(const problem *p, double *y)
{
    const leaf *x = &p->leaf[0], *w = p->leaf[1].rank ? &p->leaf[1] : NULL, *b = p->leaf[2].rank ? &p->leaf[2] : NULL;
    const int64_t rows = x->dim[0], all = w ? w->dim[0] : x->dim[1];
    const int64_t classes = p->entropy->classes ? p->entropy->classes : all;
    double logits[64], sum = 0;
    int64_t count = 0;
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < all; j++) {
            logits[j] = b ? (double)b->x[j] : w ? 0 : (double)x->x[i * all + j];
            for (int64_t d = 0; w && d < x->dim[1]; d++)
                logits[j] += (double)x->x[i * x->dim[1] + d] * (double)w->x[j * x->dim[1] + d];
        }
        if (p->ids[i] >= 0) {
            sum += row_loss(classes, logits, p->ids[i], (double)p->entropy->label_smoothing);
            count++;
        }
    }
    y[0] = p->entropy->sum || !count ? sum : sum / (double)count;
}

enum { ROWS = 19, CLASSES = 37, TARGETS = 15 }; /* targets: rows that have one */

/* A loss of ROWS by CLASSES logits, with each of the options. */
static void check_cross_entropy(problem p, const char *name)
{
    int32_t ids[ROWS];
    for (int i = 0; i < ROWS; i++)
        ids[i] = i % 4 == 3 ? -100 : i * 5 % (CLASSES - 2);
    for (int i = 0; i < 8; i++) {
        int64_t count = 0;
        const att_cross_entropy_options options = {.size = sizeof options,
                                                   .label_smoothing = i & 1 ? 0.1f : 0,
                                                   .classes = i & 2 ? CLASSES - 2 : 0,
                                                   .sum = i & 4,
                                                   .count = &count};
        p.reference = cross_entropy_reference;
        p.ids = ids;
        p.entropy = &options;
        /* losses below 8, each of as many roundings of that, in double summed */
        p.y_tolerance = (i & 4 ? TARGETS : 1) * 16 * FLT_EPSILON;
        check_problem(p, name);
        assert_int_equal(count, TARGETS);
    }
}

static void gradients_of_cross_entropy(void **state)
{
    (void)state;
    /* a weight below 1, from an exponential of a difference of numbers below 8 */
    const double tolerance = 8 * FLT_EPSILON;
    const problem p = {
        .build = cross_entropy, .leaf = {{.rank = 2, .dim = {ROWS, CLASSES}}}, .spread = 3, .tolerance = tolerance};
    check_cross_entropy(p, "cross_entropy");
    /* twelve logits of 3 products; rows are summed to gradients of weights */
    const problem of_linear = {.build = cross_entropy_of_linear,
                               .leaf = {{.rank = 2, .dim = {ROWS, 3}}, {.rank = 2, .dim = {CLASSES, 3}, .param = true}},
                               .spread = 1.5f,
                               .tolerance = 15 * tolerance};
    check_cross_entropy(of_linear, "cross_entropy of linear");
    int32_t ids[ROWS];
    for (int i = 0; i < ROWS; i++)
        ids[i] = -1;
    const problem none = {.build = cross_entropy,
                          .reference = cross_entropy_reference,
                          .leaf = {{.rank = 2, .dim = {ROWS, CLASSES}}},
                          .ids = ids,
                          .entropy = ATT_OPTIONS(att_cross_entropy_options, .label_smoothing = 0),
                          .tolerance = 1e-30,
                          .y_tolerance = 1e-30};
    check_problem(none, "cross_entropy of no targets");
}

/* ---- linear_cross_entropy: of some logits; blocks of more are in core/linear_cross_entropy.c */

static att_var *linear_cross_entropy(att_tape *t, const problem *p)
{
    return att_linear_cross_entropy(t, p->var[0], p->weight[1], p->weight[2], p->ids, p->entropy);
}

static void gradients_of_linear_cross_entropy(void **state)
{
    (void)state;
    for (int rank = 0; rank < 2; rank++) { /* of the bias */
        const problem p = {.build = linear_cross_entropy,
                           .leaf = {{.rank = 2, .dim = {ROWS, 3}},
                                    {.rank = 2, .dim = {CLASSES, 3}, .param = true},
                                    {.rank = rank, .dim = {CLASSES}, .param = true}},
                           .spread = 1.5f,
                           .tolerance = 15 * 8 * FLT_EPSILON}; /* as cross_entropy's of a linear layer */
        check_cross_entropy(p, "linear_cross_entropy");
    }
}

/* ---- binary_cross_entropy */

static att_var *binary_cross_entropy(att_tape *t, const problem *p)
{
    return att_binary_cross_entropy(t, p->var[0], p->targets, p->n, NULL);
}

static void binary_cross_entropy_reference(const problem *p, double *y)
{
    int64_t count = 0;
    y[0] = 0;
    for (int64_t i = 0; i < count_of(&p->leaf[0]); i++) {
        y[0] += att_ref_logistic((double)p->leaf[0].x[i], (double)p->targets[i]);
        count += p->targets[i] >= 0;
    }
    y[0] /= p->n ? 1 : (double)count;
}

static void gradients_of_binary_cross_entropy(void **state)
{
    (void)state;
    enum { COUNT = 77 };
    float targets[COUNT];
    for (int i = 0; i < COUNT; i++)
        targets[i] = i % 5 == 4 ? -1 : (float)(i % 5) / 3;
    for (int sum = 0; sum < 2; sum++) {
        const problem p = {.build = binary_cross_entropy,
                           .reference = binary_cross_entropy_reference,
                           .leaf = {{.rank = 2, .dim = {11, 7}}},
                           .spread = 5,
                           .targets = targets,
                           .n = sum,
                           .tolerance = 4 * FLT_EPSILON, /* a sigmoid less a number below 1 */
                           .y_tolerance = (sum ? COUNT : 1) * 5 * 4 * FLT_EPSILON}; /* of numbers below 5 */
        check_problem(p, "binary_cross_entropy");
    }
}

#endif
