/* The files that the opening of a model reads, so that they can be copied to the folder of a model made from it. */
#ifndef ATT_PROBE_OPENED_FILES_H
#define ATT_PROBE_OPENED_FILES_H

#include "attend_model.h"
#include "io/file.h"

typedef struct att_opened_file {
    char *name; /* relative to the folder */
    att_file_data data;
} att_opened_file;

typedef struct att_opened_files {
    att_ctx *ctx;
    const char *folder;
    att_opened_file *file; /* [n] */
    size_t n, room;
} att_opened_files;

/* att_model_options.read with an att_opened_files as its user: returns files of the folder, which it keeps. */
att_status att_opened_files_read(void *files, const char *name, const void **data, size_t *bytes);
/* Writes all of them to a folder, with the folders of their names. */
att_status att_opened_files_copy(const att_opened_files *f, const char *folder);
/* Removes the copies, and the folders of their names. */
void att_opened_files_remove(const att_opened_files *f, const char *folder);
/* To be called when the model has been freed. */
void att_opened_files_free(att_opened_files *f);

#endif
