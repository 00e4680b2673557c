/* Opens what consists of a model and of other parts in its folder, such as its tokenizer or its preprocessing. */
#ifndef ATT_MODEL_COMPOSITE_H
#define ATT_MODEL_COMPOSITE_H

#include "attend_model.h"

typedef struct att_composite {
    size_t bytes; /* of the struct, whose first member is an att_ctx pointer, which is set */
    /* Opens all parts; the struct's other members are zeros. */
    att_status (*open)(void *self, const char *folder, const att_model_options *options);
    void (*free)(void *self); /* of one that may be open in part */
} att_composite;

/* Opens the parts in FOLDER. options or NULL: defaults. `caller` is for errors. out: the address of a pointer to the
 * struct; *out is NULL after an error. Errors: ctx, folder or out is NULL; those of the options and of the parts. */
att_status att_composite_open(att_ctx *ctx, const char *caller, const att_composite *kind, const char *folder,
                              const att_model_options *options, void *out);

#endif
