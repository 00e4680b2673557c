/* Replacing a model of several files. A file is replaced atomically, but a process may be killed between two, or
 * another one may read meanwhile. So other files change only while the weights, model.safetensors, do not exist: a
 * folder with weights is one model, and one without them is none. */
#ifndef ATT_IO_INSTALL_H
#define ATT_IO_INSTALL_H

#include "io/file.h"

/* The name of the folder, inside that of the model, where a new one is written first. */
#define ATT_INSTALL_FOLDER "model.unfinished"

/* Makes FOLDER/model.unfinished -> path, where the model is written next, without what a killed process left in it, and
 * opens and locks it -> *file: a program that must end early knows by the lock that the folder is its own. */
att_status att_install_begin(att_ctx *ctx, const char *folder, char path[ATT_MAX_PATH], int *file);
/* If e, the status of writing, is not an error: moves the files of the model in FOLDER/model.unfinished, which are on
 * the disk, to FOLDER. Removes that folder and closes the file. Files that are there already, with the same content,
 * stay; if no other one but the weights differs, these are replaced at once, without a moment in which there are none.
 * Other files in FOLDER stay. After an error the old model is intact, or there are no weights. */
att_status att_install_end(att_ctx *ctx, const char *folder, int file, att_status e);
/* Removes FOLDER/model.unfinished, as a killed process may have left it. */
void att_install_discard(const char *folder);
/* Removes FOLDER/model.safetensors, before other files of the model change. */
att_status att_install_forget(att_ctx *ctx, const char *folder);

#endif
