/* The folder of a training: it is locked by one process, and files in it are written atomically.
 *
 * A checkpoint is a file checkpoint-0000001200.safetensors with named tensors and a few named fields (its metadata). It
 * appears when it is completely on the disk, so the one with the highest step is valid whenever a process was killed. A
 * checkpoint for an interruption has "-pause" in its name. Symbolic links in the folder are not followed; the folder
 * itself may be one. */
#ifndef ATT_TRAIN_TRAINING_FOLDER_H
#define ATT_TRAIN_TRAINING_FOLDER_H

#include "io/file.h"

#include "attend_model.h"
#include "attend_util.h"

typedef enum att_field_kind {
    ATT_FIELD_INT,    /* int64_t */
    ATT_FIELD_DOUBLE, /* double, stored bit by bit */
    ATT_FIELD_TEXT    /* char [room], zero-terminated */
} att_field_kind;

/* A named value of a checkpoint; the same table is used for saving and loading. */
typedef struct att_field {
    const char *name;
    att_field_kind kind;
    void *value;
    size_t room;  /* size of a text that is loaded */
    bool setting; /* compared instead of loaded: a checkpoint with another value belongs to another training, and is
                   * refused */
    const char *sum_of; /* the value is a checksum of this, which messages name instead; or NULL */
    bool optional;      /* unchanged if a checkpoint does not have it */
} att_field;

/* A list of fields. It must not move, because it has values of settings. */
enum { ATT_MAX_FIELDS = 64 };
typedef struct att_fields {
    int64_t n;
    att_field field[ATT_MAX_FIELDS];
    int64_t whole[ATT_MAX_FIELDS];
    double number[ATT_MAX_FIELDS];
} att_fields;
/* Add fields: att_fields_add a value that is loaded to *value, the others settings. The value of a text must stay
 * valid. */
att_field *att_fields_add(att_fields *l, const char *name, att_field_kind kind, void *value);
att_field *att_fields_int(att_fields *l, const char *name, int64_t value);
att_field *att_fields_double(att_fields *l, const char *name, double value);
void att_fields_text(att_fields *l, const char *name, const char *value);

typedef struct att_run_state {
    int64_t n;
    const char *const *names;  /* [n] */
    const att_tensor *tensors; /* [n], any type and strides: parameters, moments, steps */
    int64_t n_fields;
    const att_field *fields; /* [n_fields] */
} att_run_state;

typedef struct att_run {
    att_ctx *ctx;
    int lock; /* descriptor */
    bool locked;
    int64_t keep;
    char folder[ATT_MAX_PATH];
    size_t existing; /* length of the part of `folder` that att_run_open found; the folders after it are new */
} att_run;
/* Opens a folder, creating it if necessary, and locks it until att_run_close or the end of the process. keep: number of
 * checkpoints to keep, at least 1. Removes temporary files of killed processes. Errors: another training runs there;
 * its file "lock" is a link or a foreign file. */
att_status att_run_open(att_ctx *ctx, const char *folder, int64_t keep, att_run **out);
void att_run_close(att_run *run); /* removes the lock; NULL is allowed */
/* Closes a folder after a failed start: if att_run_open has made the folder, removes the files and empty folders
 * `names` (up to NULL; or NULL) and each folder that it has made and that is then empty. */
void att_run_discard(att_run *run, const char *const *names);

enum { ATT_RUN_NEWEST = -1, ATT_NO_CHECKPOINT = -1 };
/* Lists the steps of all checkpoints, ascending: steps [n], free with att_free. A pause counts only if it is the
 * newest. */
att_status att_run_steps(const att_run *run, int64_t **steps, int64_t *n);
/* Finds the step of the newest checkpoint, or ATT_NO_CHECKPOINT. */
att_status att_run_newest(const att_run *run, int64_t *step);
/* Writes the path of a step's checkpoint. */
att_status att_run_path(const att_run *run, int64_t step, char path[ATT_MAX_PATH]);
/* Writes the path to which a checkpoint of a step is saved. */
att_status att_run_new_path(const att_run *run, int64_t step, bool pause, char path[ATT_MAX_PATH]);
/* Opens a checkpoint, for averaging. Errors: not a regular file; damaged. */
att_status att_run_checkpoint(const att_run *run, int64_t step, att_safetensors **out);
/* Removes all checkpoints except the newest: as many as att_run_open was told to keep, or another number, 0 or more. */
att_status att_run_remove_old(const att_run *run);
att_status att_run_keep(const att_run *run, int64_t keep);

/* ---- one checkpoint (training_checkpoint.c)
 *
 * Saves it, then removes old ones, so there is at most one more than `keep`. pause: the next checkpoint
 * replaces this one. Errors: I/O; a checkpoint with a higher step exists, which would count as the newest. After an
 * error the newest checkpoints are intact. */
att_status att_run_save(const att_run *run, int64_t step, bool pause, const att_run_state *state);
/* Loads the checkpoint of `step`, or the newest (*loaded receives its step; may be NULL), into the tensors and fields
 * of state. Everything is checked before anything is written. Errors name the file, the tensor or field and both
 * values: no checkpoint; damaged; a different setting, name, type or shape. */
att_status att_run_load(const att_run *run, int64_t step, const att_run_state *state, int64_t *loaded);

#endif
