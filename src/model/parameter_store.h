/* Parameters for training: f32 copies, initialised randomly or from a checkpoint. */
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
    att_checkpoint *from; /* NULL: random initialisation */
    uint64_t seed;
    att_stored_parameter *stored; /* [count], in the order of requests */
    int64_t count;
    size_t room;
} att_parameter_store;

/* Parameters are copied from the checkpoint, which the store owns until att_parameter_store_close_checkpoint. from
 * NULL: gamma is 1, beta and bias are 0, a matrix [..., out, in] is uniform in +-sqrt(6 / (in + out)) (Glorot, Bengio
 * 2010); random numbers depend on the seed and the name. */
att_status att_parameter_store_new(att_ctx *ctx, uint64_t seed, att_checkpoint *from, att_parameter_store **out);
/* To be called when all parameters have been requested. */
void att_parameter_store_close_checkpoint(att_parameter_store *s);
/* The number of parameters, and parameter i with its name; NULL if out of range. s NULL: none. */
int64_t att_parameter_store_count(const att_parameter_store *s);
att_param *att_parameter_store_get(const att_parameter_store *s, int64_t i, const char **name);
/* Sets the name and layout of a parameter in a file. */
typedef void (*att_parameter_naming)(const att_stored_parameter *w, char theirs[ATT_CHECKPOINT_NAME],
                                     att_tensor *value);
/* Writes FOLDER/model.safetensors, with our names if naming is NULL, and n further tensors. dtype 0: f32. */
att_status att_parameter_store_write(const att_parameter_store *s, const char *folder, att_dtype dtype,
                                     att_parameter_naming naming, int64_t n, const char *const *names,
                                     const att_tensor *tensors);
/* Frees the parameters, too. NULL is allowed. */
void att_parameter_store_free(att_parameter_store *s);
/* Initialises an embedding table [n, features] of a new model: normal with mean 0 and standard deviation 1 /
 * sqrt(features); row `pad`, if it exists, is 0. Does nothing if s is NULL or initialised from a checkpoint. */
void att_parameter_store_init_embedding(att_parameter_store *s, att_param *table, int64_t pad);

#endif
