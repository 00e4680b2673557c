/* A model's folder while it is written: FOLDER.unfinished, beside its final name, is renamed at the end, so the folder
 * appears completely or not at all. The lock on it ends with the process, so the next process removes what a killed one
 * has left. While it is written there is a file FOLDER.unfinished.mark. A folder that has files but no mark, or files
 * of other names, is the user's, and the conversion is refused. */
#ifndef ATT_IO_NEW_FOLDER_H
#define ATT_IO_NEW_FOLDER_H

#include "io/file.h"

typedef struct att_new_folder {
    att_ctx *ctx;
    char target[ATT_MAX_PATH], path[ATT_MAX_PATH], mark[ATT_MAX_PATH]; /* path: the folder where files are written */
    int fd;                                                            /* descriptor of path, locked; -1: none */
} att_new_folder;

/* Begins a folder. Errors: a folder with files, or a symbolic link; another process is writing it. */
att_status att_new_folder_begin(att_new_folder *f, att_ctx *ctx, const char *folder);
/* Ends a folder: renames it if s is ATT_OK. After an error, s or its own, nothing of the conversion is left. */
att_status att_new_folder_end(att_new_folder *f, att_status s);

/* The files that a new folder may have besides config.json and model.safetensors, and that a conversion of a folder
 * copies; ends with NULL. */
extern const char *const att_new_folder_copied[];

#endif
