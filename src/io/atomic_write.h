/* Atomic replacement of a file. The new content is written to a temporary file in the same folder, which is renamed
 * once all data is on the disk; until then (whatever fails, a killed process included) the old file is intact. As in
 * settings.h, the first error stays, so writing code needs no checks:
 *
 *    att_replace r;
 *    att_replace_open(&r, ctx, path, false);
 *    att_replace_write(&r, data, bytes);
 *    return att_replace_commit(&r); */
#ifndef ATT_IO_ATOMIC_WRITE_H
#define ATT_IO_ATOMIC_WRITE_H

#include "io/file.h"

/* Suffix of temporary files, followed by a number. The file of a killed process is removed by the next writer. */
#define ATT_UNFINISHED ".unfinished-"

typedef struct att_replace {
    att_ctx *ctx;
    att_status status;
    int fd; /* -1: no temporary file */
    char path[ATT_MAX_PATH], target[ATT_MAX_PATH], unfinished[ATT_MAX_PATH];
} att_replace;

/* follow: if path is a symbolic link, replace the file it leads to (for paths given by the user), otherwise the link
 * itself (in folders, where others may have made links). Errors: path is a folder, device or the like; a dangling
 * link. */
void att_replace_open(att_replace *r, att_ctx *ctx, const char *path, bool follow);
void att_replace_write(att_replace *r, const void *data, size_t bytes);
/* Fails with "PATH cannot be written: why"; ignored after an earlier error. */
void att_replace_fail(att_replace *r, att_status status, const char *why);
/* Puts the new file in place, durably, with the old file's permissions; after an error the old file is intact. The
 * exception, which the message mentions: if the disk fails after the rename, the new file is in place. Frees r in any
 * case. */
att_status att_replace_commit(att_replace *r);
/* Removes a temporary file of a process that has ended. */
void att_remove_unfinished(const char *path);
/* Returns whether the open file fd has this name now. A file that was opened and then locked may have been renamed or
 * removed in between. */
bool att_file_has_name(int fd, const char *path);

/* Replaces a file by data [bytes]; a symbolic link itself is replaced. */
att_status att_write_file(att_ctx *ctx, const char *path, const void *data, size_t bytes);
/* Copies those of the files `names` (ends with NULL) that exist from folder `from` to folder `to`, which is created if
 * necessary. The first `required` must exist. */
att_status att_copy_files(att_ctx *ctx, const char *from, const char *to, const char *const *names, int required);
/* Creates a folder and its parents if necessary. */
att_status att_make_folder(att_ctx *ctx, const char *path);

#endif
