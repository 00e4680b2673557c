/* Parameters that learn: numbers of their own, f32, made by chance or from a checkpoint. */
#ifndef ATT_MODEL_STORE_H
#define ATT_MODEL_STORE_H

#include "model/checkpoint.h"

typedef struct att_stored {
    char name[96]; /* ours */
    att_tensor value;
    att_param *param;
} att_stored;

typedef struct att_store {
    att_nn_source source; /* first: layers load from &store.source */
    att_ctx *ctx;
    att_checkpoint *from; /* NULL: by chance */
    uint64_t seed;
    att_stored *stored; /* [count], in the order in which they were asked for */
    int64_t count;
    size_t room;
} att_store;

/* Numbers are those of the checkpoint (which the store then owns, until att_store_filled), or: gamma 1, beta and bias
 * 0, a matrix [..., out, in] uniform up to sqrt(6 / (in + out)) (Glorot, Bengio 2010), following from the seed and the
 * name. */
att_status att_store_new(att_ctx *ctx, uint64_t seed, att_checkpoint *from, att_store **out);
/* All has been asked for: the checkpoint is closed. */
void att_store_filled(att_store *s);
/* How many there are, and the i-th in [0, that) with its name; NULL outside. Without a store there are none. */
int64_t att_store_params(const att_store *s);
att_param *att_store_param(const att_store *s, int64_t i, const char **name);
/* What a file calls a parameter and how it has it, where that is not our way. */
typedef void (*att_store_naming)(const att_stored *w, char theirs[ATT_CHECKPOINT_NAME], att_tensor *value);
/* Writes FOLDER/model.safetensors, by our names where naming is NULL; n further tensors beside them. dtype 0: as they
 * are, f32. */
att_status att_store_write(const att_store *s, const char *folder, att_dtype dtype, att_store_naming naming, int64_t n,
                           const char *const *names, const att_tensor *tensors);
/* Frees the parameters too. NULL is allowed. */
void att_store_free(att_store *s);
/* The parameter of a new model becomes a table of embeddings [n, features]: normally distributed, of mean 0 and
 * deviation 1 / sqrt(features); but 0 in row `pad`, if it has that, which says nothing. s NULL, or numbers that are
 * those of a checkpoint: nothing is done. */
void att_store_table(att_store *s, att_param *table, int64_t pad);

#endif
