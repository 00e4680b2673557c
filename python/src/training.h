/* Trainings of all subjects: a table for each kind. */
#ifndef ATT_PYTHON_TRAINING_H
#define ATT_PYTHON_TRAINING_H

#include "attend_train.h"
#include "options.h"

typedef struct training_kind {
    const char *name;
    const option_field *fields; /* of the struct of its options, which begins with its size */
    size_t bytes;
    /* Sets what is not in the table from the data of the constructor, which the training holds; NULL: there is none.
     * *memory: what else it needs as long, which `release` frees. false with an exception */
    bool (*read)(module_state *state, PyObject *data, void *options, void **memory);
    void (*release)(void *memory);
    att_status (*open)(att_ctx *ctx, const char *folder, const att_training_options *common, const void *options,
                       att_training **out);
    /* Measures of the current weights; NULL: there are none */
    PyObject *(*evaluate)(module_state *state, att_training *t, PyObject *data, PyObject *options);
} training_kind;

extern const training_kind training_kinds[]; /* the last one has no name */

#endif
