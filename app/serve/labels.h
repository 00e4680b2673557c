/* Labels with their scores, the best ones first, as answers have them. */
#ifndef SERVE_LABELS_H
#define SERVE_LABELS_H

#include "cli/base/json.h"

typedef struct serve_labels {
    const void *model;
    const char *(*name)(const void *model, int64_t i);
    int64_t n, top; /* labels; those to write, 0: all */
} serve_labels;

/* Writes [{"label", "score"}, ...] for scores [n]; null if out of memory. */
void serve_labels_write(const serve_labels *l, cli_json *j, const char *key, const float *scores);

#endif
