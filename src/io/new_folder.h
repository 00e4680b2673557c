/* A model's folder while it is written: beside its final name, FOLDER.unfinished, which is then renamed, so it appears
 * completely or not at all. The lock on it ends with the process, so what a killed one has left is removed by the next.
 * While it is written there is a file FOLDER.unfinished.mark; a folder with files but without it, or with files of
 * other names, is the user's, and the conversion is refused. */
#ifndef ATT_IO_NEW_FOLDER_H
#define ATT_IO_NEW_FOLDER_H

#include "io/file.h"

typedef struct att_new_folder {
    att_ctx *ctx;
    char target[ATT_MAX_PATH], path[ATT_MAX_PATH], mark[ATT_MAX_PATH]; /* where files are written: path */
    int fd;                                                            /* of path, locked; -1: none */
} att_new_folder;

/* Errors: a folder with files, or a symbolic link; another process that writes it. */
att_status att_new_folder_begin(att_new_folder *f, att_ctx *ctx, const char *folder);
/* After an error s, and after its own, nothing of the conversion is left. */
att_status att_new_folder_end(att_new_folder *f, att_status s);

/* The files that a new folder may have besides config.json and model.safetensors, and that a conversion of a folder
 * copies; ends with NULL */
extern const char *const att_new_folder_copied[];

#endif
