/* Replaces a model of several files. Each file is replaced atomically, but a process may be killed between two files,
 * or another process may read meanwhile. So other files change only while the weights, model.safetensors, do not exist:
 * a folder with weights is one consistent model, and one without weights is not a model. */
#ifndef ATT_IO_INSTALL_H
#define ATT_IO_INSTALL_H

#include "io/file.h"

/* The name of the folder, inside the model's folder, to which a new model is written first. */
#define ATT_INSTALL_FOLDER "model.unfinished"

/* Makes FOLDER/model.unfinished -> path, to which the model is written next, without remains of a killed process, and
 * opens and locks it -> *file. By the lock a program that must end early knows that the folder is its own. */
att_status att_install_begin(att_ctx *ctx, const char *folder, char path[ATT_MAX_PATH], int *file);
/* Moves the files of the model in FOLDER/model.unfinished, which are on the disk, to FOLDER, if e, the status of
 * writing, is not an error. Then it removes that folder and closes the file. Files with the same content are not
 * replaced; if only the weights differ, they are replaced atomically, so that there is no moment without them. Other
 * files in FOLDER stay. After an error the old model is intact, or there are no weights. */
att_status att_install_end(att_ctx *ctx, const char *folder, int file, att_status e);
/* Removes FOLDER/model.unfinished, as a killed process may have left it. */
void att_install_discard(const char *folder);
/* Removes FOLDER/model.safetensors, before other files of the model change. */
att_status att_install_forget(att_ctx *ctx, const char *folder);

#endif
