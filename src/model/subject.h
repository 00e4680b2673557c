/* A subject of models, for the room `open`. Each has a file src/SUBJECT/SUBJECT_subject.c, which the build finds, with
 * its row, `const att_model_subject att_subject_SUBJECT`. */
#ifndef ATT_MODEL_SUBJECT_H
#define ATT_MODEL_SUBJECT_H

#include "model/model.h"

typedef struct att_model_subject {
    att_subject subject;
    const char *name;                   /* what its models are called: "sentence model" */
    const att_model_kind *const *kinds; /* kinds by whose types its functions open a folder, up to NULL */
    const char *file;                   /* a folder with this file is of the subject, whatever else it has; or NULL */
    bool gguf;                          /* does it open .gguf files? */
    /* Is a folder of this subject, whatever another has of its types and files? config: its config.json. Error: memory.
     * Or NULL */
    att_status (*claims)(att_ctx *ctx, const char *folder, const att_settings *config, bool *is);
    /* Is a folder whose "model_type" no subject has one of this subject, by other settings? Or NULL */
    bool (*recognizes)(const att_settings *config);
    /* Its functions, for its own type of models. */
    att_status (*open)(att_ctx *ctx, const char *path, const att_model_options *options, void **out);
    att_status (*weights)(const void *model, att_model_weights *weights);
    const att_nn_params *(*params)(const void *model);
    void (*free)(void *model);
} att_model_subject;

#endif
