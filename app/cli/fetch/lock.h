/* Locks of files and folders, by which processes that download the same thing wait for each other, and folders. A lock
 * ends with its process. */
#ifndef CLI_FETCH_LOCK_H
#define CLI_FETCH_LOCK_H

#include "cli/base/command.h"

/* Locks an open file or folder. If another process has it, waits, after a note that `name` is being downloaded. A file
 * system without locks counts as locked. */
int cli_lock(int fd, const char *path, const char *name);
/* Returns whether the descriptor still leads to the path: no other process has removed it. */
bool cli_lock_is_at(int fd, const char *path);

/* Creates the folder and its parents. */
int cli_make_folders(const char *path);
/* Creates the folder that the last part of a path is in, and its parents. */
int cli_make_folder_of(const char *path);

#endif
