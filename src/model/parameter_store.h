/* Parameters that are trained: f32 numbers of their own, initialised at random or from a checkpoint. */
#ifndef ATT_MODEL_PARAMETER_STORE_H
#define ATT_MODEL_PARAMETER_STORE_H

#include "model/checkpoint.h"

typedef struct att_stored_parameter {
    char name[96]; /* ours */
    att_tensor value;
    att_param *param;
} att_stored_parameter;

typedef struct att_parameter_store {
    att_nn_loader loader; /* first: layers load from &store.loader */
    att_ctx *ctx;
    att_checkpoint *from; /* NULL: random numbers */
    uint64_t seed;
    att_stored_parameter *stored; /* [count], in the order in which they were asked for */
    int64_t count;
    size_t room;
} att_parameter_store;

/* Numbers are those of the checkpoint, which the store owns until att_parameter_store_close_checkpoint. from NULL:
 * gamma is 1, beta and bias 0, a matrix [..., out, in] uniform up to sqrt(6 / (in + out)) (Glorot, Bengio 2010); random
 * numbers follow from the seed and the name. */
att_status att_parameter_store_new(att_ctx *ctx, uint64_t seed, att_checkpoint *from, att_parameter_store **out);
/* When all has been asked for. */
void att_parameter_store_close_checkpoint(att_parameter_store *s);
/* How many there are, and the i-th in [0, that) with its name; NULL outside. Without a store there are none. */
int64_t att_parameter_store_count(const att_parameter_store *s);
att_param *att_parameter_store_get(const att_parameter_store *s, int64_t i, const char **name);
/* What a file calls a parameter and how it has it, where that is not our way. */
typedef void (*att_parameter_naming)(const att_stored_parameter *w, char theirs[ATT_CHECKPOINT_NAME],
                                     att_tensor *value);
/* Writes FOLDER/model.safetensors, by our names where naming is NULL; n further tensors beside them. dtype 0: as they
 * are, f32. */
att_status att_parameter_store_write(const att_parameter_store *s, const char *folder, att_dtype dtype,
                                     att_parameter_naming naming, int64_t n, const char *const *names,
                                     const att_tensor *tensors);
/* Frees the parameters too. NULL is allowed. */
void att_parameter_store_free(att_parameter_store *s);
/* Initialises a table of embeddings [n, features] of a new model: normally distributed, of mean 0 and deviation
 * 1 / sqrt(features); but 0 in row `pad`, if it has that. Does nothing where s is NULL, or numbers are a checkpoint's.
 */
void att_parameter_store_init_embedding(att_parameter_store *s, att_param *table, int64_t pad);

#endif
