/* The names of the classes of a model, in its settings. */
#ifndef ATT_MODEL_CLASS_NAMES_H
#define ATT_MODEL_CLASS_NAMES_H

#include "io/settings.h"

/* Copies the names of n classes: item i of `names`, a list or an object whose keys are "0", "1" and so on, or of a
 * class without one its number after `prefix`. names NULL: none has one. *out [n], which att_class_names_free frees.
 * Error: names are the setting "id2label", and lack one. */
att_status att_class_names_read(att_settings *s, const json_t *names, int64_t n, const char *prefix, char ***out);
/* Checks names [n], an argument called `what`. Errors: one is NULL, not UTF-8, or there twice; memory. */
att_status att_class_names_check(att_ctx *ctx, const char *what, const char *const *names, int64_t n);
/* Copies names [n]. */
att_status att_class_names_copy(att_ctx *ctx, const char *const *names, int64_t n, char ***out);
void att_class_names_free(att_ctx *ctx, int64_t n, char **names);
/* The index of a name in names [n], n if there is none; the one at `first` is compared before the others. "LABEL_7", as
 * `transformers` calls a class 7 without a name, is "7". */
int64_t att_class_names_find(const char *name, char *const *names, int64_t n, int64_t first);

#endif
