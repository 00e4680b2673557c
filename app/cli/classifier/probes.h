/* attend train classify --head: a classifier on the embeddings of a model that stays as it is. */
#ifndef CLI_CLASSIFIER_PROBES_H
#define CLI_CLASSIFIER_PROBES_H

#include "cli/base/command.h"

#include <attend_text_classifier.h>
#include <attend_vision.h>

typedef struct cli_probe {
    att_ctx *ctx;
    att_probe_options options;
    const char *model, *folder; /* folders: of the model; the one that is written */
    const char *command;        /* that classifies with it, for the report: "attend classify -m FOLDER IMAGE" */
    bool f16, json;
} cli_probe;

/* Trains on images, with `valid` or NULL for validation. refit: finally on both. Reports to standard error, with json
 * also to standard output. Returns a code. */
int cli_probe_images(const cli_probe *p, const att_image_set *images, const att_image_set *valid, bool refit);

/* A table of texts with their labels: see cli_rows. */
typedef struct cli_probe_texts {
    const char *path, *valid; /* valid or NULL: a share of each label's texts is held out */
    double share;             /* 0: no validation */
    uint64_t seed;
    int format;   /* as of cli_records_open */
    int64_t skip; /* malformed rows of each file that may be left out */
} cli_probe_texts;
/* Trains on texts; if a share is held out, finally on all of them. */
int cli_probe_of_texts(const cli_probe *p, const cli_probe_texts *from);

#endif
