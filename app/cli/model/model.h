/* Models by name: finding them, and opening one of any subject. */
#ifndef CLI_MODEL_MODEL_H
#define CLI_MODEL_MODEL_H

#include "cli/base/command.h"

#include <attend_model.h>

/* ---- Finding ----------------------------------------------------------------- */

/* Returns the subject of a folder or a .gguf file, as far as its files tell. */
att_subject cli_model_subject(const char *path);
/* Returns whether there is a model of this name or path, and of this subject. name NULL: false. */
bool cli_model_is(att_subject subject, const char *name);
/* Finds the folder of a model of this subject by att_model_find; ATT_SUBJECT_NONE: of any. name NULL: the only model of
 * the subject. A folder of a language model counts as a sentence model, too. Errors: it is of another subject (the
 * message names the command for it); there is none (the message states how to get one); there are several. */
int cli_model_find(att_subject subject, const char *name, att_model_path *path);
/* Refuses a folder that has no model but whose subfolders have one, which the message names. Returns CLI_DONE if there
 * is none in them either. */
int cli_model_refuse_outer(const char *name, const char *folder);

/* ---- Opening ----------------------------------------------------------------- */

typedef struct cli_model cli_model;

/* The differences between the models of each subject, whose struct begins with a cli_model. */
typedef struct cli_model_kind {
    att_subject subject;
    int (*describe)(cli_model *m); /* sets the members after it, of a model that is open; returns a code */
    void (*free)(cli_model *m);    /* these members; or NULL */
} cli_model_kind;

struct cli_model {
    const cli_model_kind *kind;
    att_ctx *ctx;
    att_any_model *opened;
    const char *name; /* as the user wrote it; its folder, if it was not given */
    att_model_path folder;
};
/* The types that a model is opened with: an att_weight_type of its weights in memory, an att_compute of its products.
 */
typedef struct cli_types {
    int weights, compute;
} cli_types;
/* Opens a model. m: the first member of the kind's struct. name NULL: the only model of the subject. *m must not move
 * until it is closed. */
int cli_model_open(cli_model *m, const cli_model_kind *kind, const char *name, cli_types types, int64_t threads);
int cli_model_open_with(cli_model *m, const cli_model_kind *kind, const char *name, const att_model_options *options,
                        int64_t threads);
void cli_model_close(cli_model *m);
/* Returns what products of an open model compute, of matrices that are not quantized: "f32" or "bf16". */
const char *cli_model_compute(const cli_model *m);

/* clang-format off */
/* The option --dtype; its value is types.weights. */
#define CLI_DTYPE(types)                                                                     \
    {"dtype", 0, "stored|f32|f16|bf16|int8|int4", .choice = &(types).weights,                \
     .help = "type of the weights in memory; int8 (Q8_0) and int4 (Q4_0) have blocks of 32, in matrices whose rows are " \
             "whole blocks; default: as stored"}
/* The options of the types that a model is opened with. types: a cli_types. */
#define CLI_TYPES(types)                                                                     \
    CLI_DTYPE(types),                                                                        \
    CLI_COMPUTE(&(types).compute,                                                            \
                "type of the numbers that products multiply, and sum in f32: bf16 is faster and less exact, on "    \
                "processors with bf16 instructions; auto: bf16 where they are faster; int8 and int4 weights keep "  \
                "products of their own; default: f32")
/* clang-format on */

#endif
