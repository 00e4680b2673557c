/* attend_probe.h - classifiers on vectors: a linear probe, and nearest neighbors.
 *
 * Chapters: 1 Probes, 2 Training.
 *
 * A probe classifies the embeddings of a model whose weights stay as they are. It is trained in seconds, once the
 * embeddings have been computed. attend_vision.h and attend_text_classifier.h have the functions that embed images or
 * texts, train a probe on them and write a model folder. attend.h states how arguments that may be NULL are marked. */
#ifndef ATTEND_PROBE_H
#define ATTEND_PROBE_H

#include "attend_model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 1 Probes ----------------------------------------------------------- */

typedef struct att_probe att_probe;

typedef enum att_probe_kind {
    /* Multinomial logistic regression: logits W x + b (Alain, Bengio 2016, for neural networks) */
    ATT_PROBE_KIND_LINEAR = 0,
    /* Votes of the nearest training vectors by cosine, weighted by exp(cosine / temperature): Wu et al. 2018, 3.4;
     * eval_knn.py of DINO (Caron et al. 2021) */
    ATT_PROBE_KIND_NEIGHBORS
} att_probe_kind;

/* Labeled vectors. */
typedef struct att_probe_data {
    size_t size;
    int64_t n, dim, classes;
    const float *vectors;  /* [call] [n, dim] */
    const int32_t *labels; /* [call] [n], each from 0 to classes - 1 */
} att_probe_data;

typedef struct att_probe_options {
    size_t size;
    att_probe_kind kind;
    /* c is for the linear probe: the inverse strength of regularization, as in scikit-learn's LogisticRegression. It
     * minimizes c * sum over examples of weight * cross entropy + sum of W^2 / 2, of two classes sum of (W_1 - W_0)^2 /
     * 2; b is not regularized. 0: the c with the lowest mean cross entropy on the validation data, among powers of the
     * square root of 10, from strong regularization on, until two in a row are worse. */
    double c;
    const double
        *class_weights;     /* [call] [classes], above 0: factors of the loss of each class's examples; or NULL: 1 */
    bool balanced;          /* the factors are n / (classes * examples of the class) instead */
    int64_t max_iterations; /* of L-BFGS, for each c; 0: 1000 */
    double tolerance; /* L-BFGS ends when no derivative of the objective, divided by c and by the sum of the examples'
                       * weights, has a larger magnitude; 0: 1e-6 */
    /* The rest is for nearest neighbors. */
    int64_t neighbors;  /* that vote; 0: 20, or all vectors if there are fewer */
    double temperature; /* 0: 0.07 */
} att_probe_options;

typedef struct att_probe_info {
    size_t size;
    att_probe_kind kind;
    int64_t dim, classes;
    double c; /* of the linear probe; 0: it was read from a file without it */
    /* If a linear probe was fitted by this process: the steps of L-BFGS for this c, the largest magnitude of a
     * derivative at the end, and whether that is within the tolerance. */
    int64_t iterations;
    double gradient;
    bool converged;
    int64_t vectors, neighbors; /* of nearest neighbors: stored vectors; those that vote */
    double temperature;
} att_probe_info;

/* Trains a probe. valid or NULL: validation data, which only chooses options.c. options or NULL: defaults. L-BFGS
 * computes in double, from 0; the result has the same bits for any number of threads. Errors: sizes or options out of
 * range; a class without an example; vectors that are not finite; c is 0 and valid NULL; out of memory; cancelled. */
ATT_API att_status att_probe_fit(att_ctx *ctx, const att_probe_data *train, const att_probe_data *valid,
                                 const att_probe_options *options, att_probe **out);
ATT_API void att_probe_free(att_probe *p);
ATT_API att_status att_probe_describe(const att_probe *p, att_probe_info *info);
/* Returns W [classes, dim] and b [classes] of a linear probe, valid as long as the probe. Error: another kind. */
ATT_API att_status att_probe_weights(const att_probe *p, att_tensor *w, att_tensor *b);
/* Computes scores of vectors [n, dim] -> out [n, classes], whose softmax is the probability of each class: the logits
 * of a linear probe, and of nearest neighbors the logarithm of each class's share of the votes, but at least -80.
 * Errors: a vector that is not finite; out of memory; cancelled. */
ATT_API att_status att_probe_scores(const att_probe *p, int64_t n, const float *vectors, float *out);
/* Counts the examples whose class has the highest score; of equal scores the first class counts. */
ATT_API att_status att_probe_correct(const att_probe *p, const att_probe_data *data, int64_t *correct);

/* ---- 2 Training --------------------------------------------------------- */

/* The result of training a probe on a model's embeddings. */
typedef struct att_probe_result {
    size_t size;
    int64_t dim, classes; /* of the embeddings; of the data */
    /* As in att_probe_info: */
    double c, gradient;
    int64_t iterations, neighbors;
    bool converged;
    int64_t examples, validated, correct; /* correct: of the validated ones, by the probe that did not see them */
    double embedding_seconds, fit_seconds;
    /* The folder is one of ViTForImageClassification or Dinov2ForImageClassification, which `transformers` opens.
     * False: it has the model's own files, probe.json and probe.safetensors. */
    bool plain;
} att_probe_result;

#ifdef __cplusplus
}
#endif
#endif
