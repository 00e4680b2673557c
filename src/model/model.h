/* The common base of all models, which opens, makes and frees them. A model is a struct whose first member is an
 * att_model; its kind has the functions and tables that differ between models. */
#ifndef ATT_MODEL_MODEL_H
#define ATT_MODEL_MODEL_H

#include "io/progress.h"
#include "io/settings.h"
#include "model/checkpoint.h"
#include "model/check_sequences.h"
#include "model/model_types.h"
#include "util/pattern.h"

typedef struct att_model att_model;

typedef struct att_model_kind {
    size_t bytes;                 /* sizeof the model's struct */
    const att_model_types *types; /* values of "model_type"; NULL: its settings have none, or it consists of others */
    bool settings_optional;       /* configure gets settings whose root is NULL where a folder has no config.json */
    /* For a model with parameters of its own: configure reads settings in the format of config.json, build makes layers
     * with m->params; its own errors are returned, those of the parameters are found by the caller. */
    void (*configure)(att_model *m, att_settings *s);
    att_status (*build)(att_model *m);
    /* Loads a parameter from m->checkpoint, as att_nn_params_config.load with the model as its user. NULL:
     * att_checkpoint_load. */
    att_status (*load_parameter)(void *model, const char *name, int rank, const int64_t *dim, att_tensor *out);
    const att_checkpoint_name *names; /* names of parameters in model.safetensors; NULL: ours */
    const char *prefix;               /* optional prefix of all of them */
    const char *const *unused;        /* prefixes of tensors that are not needed, '*' is a number; ends with NULL */
    /* The name of a matrix that is not a weight of products: it keeps the type of the file, whatever options.weights
     * is. Or NULL */
    const char *unconverted;
    /* Opens a model that consists of other models, instead of configure and build. */
    att_status (*load)(att_model *m, const char *folder);
    /* Applies an open model to a small input for options.prepare, so that all copies of weights are made that calls
     * need. NULL: the function that opens the model does it. */
    att_var *(*prepare)(att_tape *t, const void *model);
    /* Frees the members besides the att_model; the model may be incomplete. NULL: all members belong to m->params. */
    void (*free)(att_model *m);
} att_model_kind;

/* What is changed of a model that is opened. Members may be NULL; user is an argument of all functions. */
typedef struct att_model_change {
    /* May read settings, and change what `configure` has read. */
    void (*configured)(att_model *m, att_settings *s, const void *user);
    /* Adds parameters to m->params after `build`, and their names in files to those of the kind. */
    att_status (*built)(att_model *m, const void *user);
    const att_checkpoint_name *names;
    /* Is a parameter initialized with the seed, not loaded? Of a model for training. */
    bool (*fresh)(const att_model *m, const char *name, const void *user);
    att_init init; /* of such matrices; size 0: as in a new model. Vectors become 0, but weights of norms 1. */
    uint64_t seed;
    const void *user;
} att_model_change;

/* Layers that a model has besides those of its kind, as the Dense modules of a sentence model. build is called after
 * the kind's: it calls att_model_add_folder, and makes layers with m->params. */
typedef struct att_model_extension {
    att_status (*build)(att_model *m, void *user);
    void *user;
    const char *names; /* what all names of their parameters begin with: "module." */
} att_model_extension;

struct att_model {
    const att_model_kind *kind;
    att_ctx *ctx;
    bool trainable;
    att_model_options
        options;         /* of a model for inference; `compute`, and `weights` of frozen ones, also for training */
    att_patterns freeze; /* of a model for training; during opening */
    const char
        *unquantized; /* by configure: "recurrent layers", which have no products of quantized weights; or NULL */
    att_model_weights weights;            /* their bytes */
    att_progress progress;                /* of opening */
    uint64_t seed;                        /* of a new model, or of fresh parameters */
    const att_model_change *change;       /* during opening, or NULL */
    const att_model_extension *extension; /* or NULL */
    att_nn_params *params;
    att_checkpoint *checkpoint; /* has the memory of the parameters; NULL: they have their own */
};

/* Returns which of these kinds, up to NULL, opens the "model_type" of settings; NULL: none, and the settings have
 * failed, with a message that has the purpose: " for embeddings of sentences", or "". */
const att_model_kind *att_model_kind_of(att_settings *s, const att_model_kind *const *kinds, const char *purpose);
/* Finds the kind that opens FOLDER's config.json, or what a .gguf file has in its place, and checks the arguments of a
 * following att_model_open_for_training. */
att_status att_model_kind_find(att_ctx *ctx, const char *caller, const char *folder, const att_model_kind *const *kinds,
                               const att_model_kind **kind, void *out);

/* Opens the model of FOLDER for inference. options or NULL: defaults. `caller` is for errors. out: the address of a
 * pointer to the model's struct; *out is NULL after an error. Errors: ctx, folder or out is NULL; those of the folder's
 * content. */
att_status att_model_open(att_ctx *ctx, const char *caller, const att_model_kind *kind, const char *folder,
                          const att_model_options *options, void *out);
/* Opens a model as att_model_open does, by the kind that att_model_kind_find finds. */
att_status att_model_open_as(att_ctx *ctx, const char *caller, const att_model_kind *const *kinds, const char *folder,
                             const att_model_options *options, void *out);
/* Opens a model as att_model_open_as does, and makes the change, or none if that is NULL. */
att_status att_model_open_as_changed(att_ctx *ctx, const char *caller, const att_model_kind *const *kinds,
                                     const char *folder, const att_model_options *options,
                                     const att_model_change *change, void *out);
/* Opens a model for training; it gets f32 weights of its own, except frozen ones. options or NULL: defaults. */
att_status att_model_open_for_training(att_ctx *ctx, const char *caller, const att_model_kind *kind, const char *folder,
                                       const att_trainable_options *options, void *out);
/* Opens a model for training and makes the change. */
att_status att_model_open_changed(att_ctx *ctx, const char *caller, const att_model_kind *kind, const char *folder,
                                  const att_trainable_options *options, const att_model_change *change, void *out);
/* Opens a model that is a part of `outer` in the same way as outer: with its options, or for training with its
 * patterns. outer has called att_file_source_begin. extension, which must outlive the model, or NULL. Whoever opens
 * outer does what options.prepare asks for. */
att_status att_model_open_inside(const att_model *outer, const att_model_kind *kind, const char *folder,
                                 const att_model_extension *extension, void *out);
/* Adds a folder during the build of an extension: parameters whose names begin with `names` are those of
 * FOLDER/model.safetensors, whose names follow that. */
att_status att_model_add_folder(att_model *m, const char *names, const char *folder);
/* Makes a new model for training, randomly initialized. out NULL: only checks the settings. */
att_status att_model_new(att_ctx *ctx, const att_model_kind *kind, att_settings *settings, uint64_t seed, void *out);
/* Frees a model; model: the struct, or NULL. */
void att_model_free(void *model);

/* Makes a tape that computes what the model was opened for: att_model_options.compute. (tape_pool.c) */
att_status att_model_tape(const att_model *m, att_tape **out);

/* Returns, during build, whether this parameter exists; always true in a new model. */
bool att_model_has(const att_model *m, const char *name);
/* Makes, during build, an embedding table name.weight [n, features]; in a new model normal with mean 0 and standard
 * deviation 1 / sqrt(features), and row `pad`, if it exists, is 0. */
att_param *att_model_embedding(att_model *m, const char *name, int64_t n, int64_t features, int64_t pad);

/* Marks p, a parameter of the model or a view of one, as mapped if its value is in a mapped file (model_memory.c). */
void att_model_set_mapped(const att_model *m, att_param *p);
/* Adds the weights of m to sum. */
void att_model_weights_add(const att_model *m, att_model_weights *sum);
/* Counts the bytes of the weights of m, or NULL; `caller` is for errors. */
att_status att_model_weights_write(const char *caller, const att_model *m, att_model_weights *weights);

/* Checks that results x [n, width] are finite; damaged weights can make them infinite or NaN. what: "the probabilities
 * of image". */
att_status att_check_finite(att_ctx *ctx, const char *what, int64_t n, int64_t width, const float *x);
/* Checks x, rows [first, first + n) of the results, as att_check_finite does. */
att_status att_check_finite_from(att_ctx *ctx, const char *what, int64_t first, int64_t n, int64_t width,
                                 const float *x);

/* Returns the parameters of a model; NULL for NULL. */
const att_nn_params *att_model_params(const att_model *m);
/* A parameter in a file */
typedef struct att_file_tensor {
    char name[ATT_CHECKPOINT_NAME];
    att_tensor value; /* ours, maybe in another layout */
    float plus;       /* is added to each number */
} att_file_tensor;
/* Sets the name, layout and `plus` of a parameter in a file; out has its value. Parameters of one name are rows of one
 * tensor. */
typedef void (*att_parameter_naming)(const void *user, const char *ours, att_file_tensor *out);
/* Writes FOLDER/model.safetensors, and n further tensors; without the layers of an extension. naming NULL: by the
 * kind's names, or else ours; user is its first argument. dtype 0: f32. (write_weights.c) */
att_status att_model_write(const att_model *m, const char *folder, att_dtype dtype, att_parameter_naming naming,
                           const void *user, int64_t n, const char *const *names, const att_tensor *tensors);
/* Sets "dtype", if settings have it, to the type of weights that are written: `transformers` computes in it. Sets
 * *changed if that is another one. dtype 0: f32. Returns false: out of memory. */
bool att_model_set_dtype(json_t *settings, att_dtype dtype, bool *changed);
/* Changes FOLDER/config.json, if there is one, as att_model_set_dtype does. */
att_status att_model_write_dtype(att_ctx *ctx, const char *folder, att_dtype dtype);
/* Writes FOLDER/model.safetensors with the parameters of an extension whose names begin with `names`, without that. */
att_status att_model_write_part(const att_model *m, const char *folder, att_dtype dtype, const char *names);

#endif
