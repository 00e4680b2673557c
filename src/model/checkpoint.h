/* Parameters from a .safetensors file, asked for by our names and found under the checkpoint's. */
#ifndef ATT_MODEL_CHECKPOINT_H
#define ATT_MODEL_CHECKPOINT_H

#include "attend_model.h"
#include "attend_util.h"
#include "nn/nn.h"

/* One row of a model's table. A '*' stands for the same number in both. Several rows with one of our names: the first
 * of theirs that is in the file counts. The table ends with {0}. */
typedef struct att_checkpoint_name {
    const char *ours, *theirs;
} att_checkpoint_name;
/* The rows of a linear layer */
#define ATT_CHECKPOINT_LINEAR(ours, theirs)                                                                            \
    {ours ".weight", theirs ".weight"}, { ours ".bias", theirs ".bias" }

enum { ATT_CHECKPOINT_NAME = 128 };
/* Our `name` by the first row that it fits, with prefix -> theirs; false: there is none. */
bool att_checkpoint_translate(const att_checkpoint_name *names, const char *prefix, const char *name,
                              char theirs[ATT_CHECKPOINT_NAME]);

typedef struct att_checkpoint {
    att_nn_loader loader; /* first: layers load from &checkpoint.loader */
    att_ctx *ctx;
    char *path;
    att_safetensors *file;
    const att_checkpoint_name *names;
    const char *prefix; /* all of their names may begin with it: "bert." */
    att_param **param;  /* [count]: of tensor i, NULL while nobody has asked for it */
    int64_t count;
} att_checkpoint;

/* Opens FOLDER/model.safetensors; names NULL: theirs are ours. Error where there are only other kinds of weights: how
 * to convert them. */
att_status att_checkpoint_open(att_ctx *ctx, const char *folder, const att_checkpoint_name *names, const char *prefix,
                               att_checkpoint **out);
/* Frees the parameters too. NULL is allowed. */
void att_checkpoint_close(att_checkpoint *c);
/* Is there a tensor for our `name`? */
bool att_checkpoint_has(const att_checkpoint *c, const char *name);
/* Error: a tensor that nobody has asked for and that does not begin with one of `unused` (ends with NULL). */
att_status att_checkpoint_all_used(const att_checkpoint *c, const char *const *unused);

#endif
