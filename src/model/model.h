/* Inside models: what each of them begins with, and the one way to open, to make and to free it. A model is a struct
 * whose first member is an att_model; its kind says what is special about it. */
#ifndef ATT_MODEL_MODEL_H
#define ATT_MODEL_MODEL_H

#include "io/settings.h"
#include "model/parameter_store.h"

typedef struct att_model att_model;

typedef struct att_model_kind {
    size_t bytes; /* of the model's struct */
    /* Of a model with parameters of its own: its configuration, from settings as FOLDER/config.json has them; then its
     * layers by that, with parameters from the loader. */
    void (*configure)(att_model *m, att_settings *s);
    att_status (*build)(att_model *m, att_nn_loader *loader);
    const att_checkpoint_name *names; /* of parameters in model.safetensors; NULL: they are ours */
    const char *prefix;               /* which all of them may have */
    const char *const *unused;        /* beginnings of names of tensors that are not needed; ends with NULL */
    /* Of a model that is made of others, instead: opens them. */
    att_status (*load)(att_model *m, const char *folder);
    /* Frees what the model has beside the att_model, whatever of it is there. */
    void (*free)(att_model *m);
} att_model_kind;

struct att_model {
    const att_model_kind *kind;
    att_ctx *ctx;
    bool trainable;
    att_checkpoint *checkpoint; /* owns all parameters, or, where it is trainable, */
    att_parameter_store *store; /* does */
};

/* The model of FOLDER: to use it, or to train it, with f32 numbers of its own. `caller` is for errors. out: a pointer
 * to a pointer to the model's struct; *out is NULL after an error. Errors: ctx, folder or out is NULL. */
att_status att_model_open(att_ctx *ctx, const char *caller, const att_model_kind *kind, const char *folder,
                          bool trainable, void *out);
/* A new one to train, with random weights. out NULL: makes none, but says what is wrong with the settings. */
att_status att_model_new(att_ctx *ctx, const att_model_kind *kind, att_settings *settings, uint64_t seed, void *out);
/* model: its struct, or NULL. */
void att_model_free(void *model);

/* While it is built: is there a parameter of that name? In a new model there is any. */
bool att_model_has(const att_model *m, const char *name);

#endif
