/* The folder of a training: one process at a time has it, and what it saves there is whole or is not there.
 *
 * A checkpoint is one file, checkpoint-0000001200.safetensors, of tensors and of a few facts, all by their names. It
 * appears when all of it is on the disk, so the newest is the one of the highest step, whenever a process was killed.
 * One that is made where a training stops for a while has "-pause" in its name. Nothing is read or written through
 * symbolic links in the folder, which itself may be one.
 */
#ifndef ATT_TRAIN_RUN_STATE_H
#define ATT_TRAIN_RUN_STATE_H

#include "io/text_file.h"

#include "attend_model.h"

typedef enum att_field_kind {
    ATT_FIELD_INT,    /* int64_t */
    ATT_FIELD_DOUBLE, /* double, of which the bits are kept */
    ATT_FIELD_TEXT    /* char [room], zero-terminated */
} att_field_kind;

/* Something small that a training must know to go on: one table serves saving and loading. */
typedef struct att_field {
    const char *name;
    att_field_kind kind;
    void *value;
    size_t room;   /* of a text */
    bool setting;  /* it is not loaded: a checkpoint where it is another one is of another training, and refused */
    bool optional; /* it stays as it is where a checkpoint does not have it */
} att_field;

/* A list of them, which stays where it is: copies of settings are in it. */
enum { ATT_MAX_FIELDS = 64 };
typedef struct att_fields {
    int64_t n;
    att_field field[ATT_MAX_FIELDS];
    int64_t whole[ATT_MAX_FIELDS];
    double number[ATT_MAX_FIELDS];
} att_fields;
/* One that is loaded, to *value; and settings. */
void att_fields_add(att_fields *l, const char *name, att_field_kind kind, void *value);
void att_fields_int(att_fields *l, const char *name, int64_t value);
void att_fields_double(att_fields *l, const char *name, double value);
/* A text [room] that is loaded where a checkpoint has it. */
void att_fields_note(att_fields *l, const char *name, char *text, size_t room);
/* value stays where it is. */
void att_fields_text(att_fields *l, const char *name, const char *value);

typedef struct att_run_state {
    int64_t n;
    const char *const *names;  /* [n] */
    const att_tensor *tensors; /* [n], of any type and strides: parameters, moments, steps */
    int64_t n_fields;
    const att_field *fields; /* [n_facts] */
} att_run_state;

typedef struct att_run att_run;
/* Makes the folder, if it is not there, and takes it until att_run_close or the end of the process, however it ends.
 * keep: so many checkpoints stay, at least 1. Errors: another training runs there; its file
 * "lock" is a link or someone else's. Files that killed processes left unfinished are removed. */
att_status att_run_open(att_ctx *ctx, const char *folder, int64_t keep, att_run **out);
void att_run_close(att_run *run); /* NULL is allowed */

enum { ATT_RUN_NEWEST = -1 };
/* The steps that have a checkpoint, ascending: steps [n], for att_free. Pauses count only as the newest. */
att_status att_run_steps(const att_run *run, int64_t **steps, int64_t *n);
/* The file of a step. */
att_status att_run_path(const att_run *run, int64_t step, char path[ATT_MAX_PATH]);
/* That, opened (for averages). Errors: it is a symbolic link or the like, which none is made as; it is damaged. */
att_status att_run_checkpoint(const att_run *run, int64_t step, att_safetensors **out);
/* Removes all checkpoints but the newest `keep` of those: a process that was killed may have had no time to. */
att_status att_run_remove_old(const att_run *run);
/* pause: the next checkpoint takes its place, as if the training had not stopped there. Then removes old
 * ones; there is never more than one above `keep`. Errors: the disk; there is a checkpoint of a higher
 * step, which would be taken for the newest. After an error the newest are as they were. */
att_status att_run_save(const att_run *run, int64_t step, bool pause, const att_run_state *state);
/* Reads the checkpoint of `step` or the newest (*loaded, NULL allowed: its step) to where state's tensors and facts
 * are. Everything is checked before anything is written. Errors name the file, the tensor or fact, and both values:
 * none is there; it is damaged; a setting, a name, a type or a shape is not what it is here. */
att_status att_run_load(const att_run *run, int64_t step, const att_run_state *state, int64_t *loaded);

#endif
