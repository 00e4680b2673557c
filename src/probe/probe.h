/* Classifiers on vectors, internal. Public: att_probe_*. */
#ifndef ATT_PROBE_PROBE_H
#define ATT_PROBE_PROBE_H

#include "attend_learn.h"
#include "attend_probe.h"
#include "io/settings.h"

struct att_probe {
    att_ctx *ctx;
    att_probe_info info;
    float *w, *b;             /* of a linear probe: [classes, dim], [classes]; or NULL */
    att_param *weight, *bias; /* views of them */
    float *vectors;           /* of nearest neighbors: [info.vectors, dim], of norm 1, class by class; or NULL */
    int64_t *counts;          /* [classes]: the number of vectors of each class; or NULL */
    int32_t *labels;          /* [info.vectors]: the class of each; or NULL */
    char **name;              /* [classes] of a probe that was read from a folder, or NULL */
};

/* Makes a probe without weights or vectors of a kind, for info.dim and info.classes. */
att_status att_probe_make(att_ctx *ctx, const att_probe_info *info, att_probe **out);
/* Returns the scores of x [n, dim], [n, classes]; those of nearest neighbors have no gradient. */
att_var *att_probe_apply(att_tape *t, const att_probe *p, att_var *x);

/* ---- in a folder (probe_file.c) */

/* What is embedded. */
typedef enum att_probe_inputs { ATT_PROBE_IMAGES, ATT_PROBE_TEXTS } att_probe_inputs;

/* Reads FOLDER/probe.json and FOLDER/probe.safetensors; *out NULL: there is no such file. dim: of the model's
 * embeddings. Errors name the file, the setting and its value. */
att_status att_probe_read(att_ctx *ctx, const char *folder, att_probe_inputs inputs, int64_t dim, att_probe **out);
/* Returns whether the folder has a probe of these inputs. Reading it reports what is wrong with it. */
bool att_probe_is_in(att_ctx *ctx, const char *folder, att_probe_inputs inputs);
/* Writes both files. names [classes]: of the classes, UTF-8. dtype of the weights or vectors; 0: f32. */
att_status att_probe_write(const att_probe *p, const char *folder, att_probe_inputs inputs, const char *const *names,
                           att_dtype dtype);

#endif
