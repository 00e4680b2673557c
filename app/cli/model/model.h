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
/* Opens a model. m: the first member of the kind's struct. name NULL: the only model of the subject. weights: an
 * att_weight_type, of CLI_DTYPE. *m must not move until it is closed. */
int cli_model_open(cli_model *m, const cli_model_kind *kind, const char *name, int weights, int64_t threads);
int cli_model_open_with(cli_model *m, const cli_model_kind *kind, const char *name, const att_model_options *options,
                        int64_t threads);
void cli_model_close(cli_model *m);

/* clang-format off */
/* The option --dtype. to: an int, which is an att_weight_type. */
#define CLI_DTYPE(to)                                                                        \
    {"dtype", 0, "stored|f32|f16|bf16|int8|int4", .choice = (to),                            \
     .help = "type of the weights in memory; int8 (Q8_0) and int4 (Q4_0) have blocks of 32, in matrices whose rows are " \
             "whole blocks; default: as stored"}
/* clang-format on */

#endif
