/* Trains a probe on the embeddings of a model, and writes the model with it. */
#ifndef ATT_PROBE_PROBE_TRAINING_H
#define ATT_PROBE_PROBE_TRAINING_H

#include "probe/opened_files.h"
#include "probe/probe.h"

/* Embeddings, those for validation last. */
typedef struct att_probe_examples {
    att_ctx *ctx;
    const char *what;         /* the examples, in messages: "image" */
    const char *const *names; /* [classes] */
    int64_t n, n_valid, dim, classes;
    float *vectors;  /* [n + n_valid, dim] */
    int32_t *labels; /* [n + n_valid] */
} att_probe_examples;

/* Checks everything but the arrays and dim, and allocates the labels. Errors: sizes out of range; names that are not
 * UTF-8, or the same. After an error, too, the caller calls att_probe_examples_free. */
att_status att_probe_examples_begin(att_probe_examples *e);
/* Sets dim and allocates the vectors. Error: a class has no example, by the labels, which have been set. */
att_status att_probe_examples_embed(att_probe_examples *e, int64_t dim);
void att_probe_examples_free(att_probe_examples *e);

/* Trains a probe on the first n examples, and counts the correct ones of the others. refit: *out is trained with the c
 * that these chose on all. options or NULL: defaults. Sets the fields of *result but for embedding_seconds and plain.
 */
att_status att_probe_train(const att_probe_examples *e, const att_probe_options *options, bool refit, att_probe **out,
                           att_probe_result *result);

/* Writes the files of the model, and the probe, to a new folder that is being written. After an error its files are
 * removed. */
att_status att_probe_write_model(const att_probe *p, const att_opened_files *model, const char *folder,
                                 att_probe_inputs inputs, const char *const *names, att_dtype dtype);

#endif
