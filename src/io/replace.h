/* A file that takes the place of another all at once. It is written beside it and given its name when all of it is on
 * the disk, so whatever happens until then (a full disk, an error, the end of the process) the old file is as it was.
 * As in settings.h, the first failure stays, so that writing has no checks:
 *
 *     att_replace r;
 *     att_replace_open(&r, ctx, path, false);
 *     att_replace_write(&r, data, bytes);
 *     return att_replace_commit(&r);
 */
#ifndef ATT_IO_REPLACE_H
#define ATT_IO_REPLACE_H

#include "io/text_file.h"

/* What the name of a file that is not yet complete has behind it, before a number. Where a process is killed it stays,
 * until the next one writes the same file. */
#define ATT_UNFINISHED ".unfinished-"

typedef struct att_replace {
    att_ctx *ctx;
    att_status status;
    int fd; /* -1: there is nothing to take back */
    char path[ATT_MAX_PATH], target[ATT_MAX_PATH], unfinished[ATT_MAX_PATH];
} att_replace;

/* follow: where a symbolic link is there, the file that it leads to is replaced (one that the user names), else the
 * link itself (one of a folder, of which others may have made links). Errors: a folder, a device or the like is there;
 * a link that is followed leads to nothing. */
void att_replace_open(att_replace *r, att_ctx *ctx, const char *path, bool follow);
void att_replace_write(att_replace *r, const void *data, size_t bytes);
/* Fails with "PATH cannot be written: sentence", unless something has failed before. */
void att_replace_fail(att_replace *r, att_status status, const char *why);
/* The new file is there, with the old one's permissions, and is so after a power failure too; or, after a failure, all
 * is as it was. Only where the disk fails after the new file has its name it is there although this is an error, and
 * the sentence says so. In every case r is done with. */
att_status att_replace_commit(att_replace *r);
/* Removes a file that a process left unfinished; not one that is being written. */
void att_remove_unfinished(const char *path);

/* All of it: the file has data[bytes]. A symbolic link is replaced. */
att_status att_write_file(att_ctx *ctx, const char *path, const void *data, size_t bytes);
/* Those of the files `names` (ends with NULL) that the folder `from` has, into `to`, which is made if it is not there.
 * The first `required` must be there. */
att_status att_copy_files(att_ctx *ctx, const char *from, const char *to, const char *const *names, int required);
/* Makes a folder, and those above it, where they are not there. */
att_status att_make_folder(att_ctx *ctx, const char *path);

#endif
