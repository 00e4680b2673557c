#include "io/atomic_write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

void att_replace_fail(att_replace *r, att_status status, const char *why)
{
    if (!r->status)
        r->status = att_fail(r->ctx, status, "%s cannot be written: %s", r->path, why);
}

static void fail_errno(att_replace *r)
{
    att_replace_fail(r, errno == ENOMEM ? ATT_ERR_MEMORY : ATT_ERR_IO, strerror(errno));
}

/* ---- the temporary file */

bool att_file_has_name(int fd, const char *path)
{
    struct stat a, b;
    return !fstat(fd, &a) && !lstat(path, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

void att_remove_unfinished(const char *path)
{
    struct stat is;
    const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return;
    /* A writer holds a lock on its file. Another writer may have begun a new file of this name after the open. */
    if (!flock(fd, LOCK_EX | LOCK_NB) && !fstat(fd, &is) && S_ISREG(is.st_mode) && att_file_has_name(fd, path))
        unlink(path);
    close(fd);
}

/* Creates and locks a new file; returns a descriptor, or -1 with EEXIST if another process writes it. */
static int open_unfinished(const char *path, mode_t mode)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0)
        return -1;
    /* If the file system does not support locks, no other process removes the file either. */
    const bool lost = flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK;
    errno = 0;
    if (!lost && att_file_has_name(fd, path))
        return fd;
    /* Another process has removed the file before it was locked (and may have created its own of this name), or the
     * name could not be checked; then no other process knows of the file. */
    const int failed = errno == ENOENT ? 0 : errno;
    if (failed)
        unlink(path);
    close(fd);
    errno = failed ? failed : EEXIST;
    return -1;
}

/* Makes the i-th temporary name. A name at the length limit of file systems is truncated to leave room for the
 * suffix. */
static bool name_beside(att_replace *r, int i)
{
    const char *slash = strrchr(r->target, '/'), *name = slash ? slash + 1 : r->target;
    return snprintf(r->unfinished, sizeof r->unfinished, "%.*s%.200s" ATT_UNFINISHED "%d", (int)(name - r->target),
                    r->target, name, i) < (int)sizeof r->unfinished;
}

/* Opens the first free temporary name, after removing files of processes that have ended. */
static void open_beside(att_replace *r, mode_t mode)
{
    enum { MAX_WRITERS = 64 }; /* concurrent writers of one file */
    for (int i = 0; i < MAX_WRITERS; i++)
        if (name_beside(r, i))
            att_remove_unfinished(r->unfinished);
    errno = EEXIST;
    for (int i = 0; r->fd < 0 && errno == EEXIST && i < MAX_WRITERS; i++) {
        if (name_beside(r, i))
            r->fd = open_unfinished(r->unfinished, mode);
        else
            errno = ENAMETOOLONG;
    }
    if (r->fd < 0)
        fail_errno(r);
}

/* Sets r->target: the path, or the end of a chain of symbolic links. */
static bool find_target(att_replace *r, bool follow)
{
    struct stat is;
    if (follow && !lstat(r->path, &is) && S_ISLNK(is.st_mode))
        return realpath(r->path, r->target) != NULL;
    memcpy(r->target, r->path, sizeof r->target);
    return true;
}

void att_replace_open(att_replace *r, att_ctx *ctx, const char *path, bool follow)
{
    struct stat old;
    *r = (att_replace){.ctx = ctx, .fd = -1};
    if (snprintf(r->path, sizeof r->path, "%s", path) >= (int)sizeof r->path) {
        att_replace_fail(r, ATT_ERR_IO, strerror(ENAMETOOLONG));
        return;
    }
    const bool found = find_target(r, follow), there = found && lstat(r->target, &old) == 0;
    if (!found || (!there && errno != ENOENT)) {
        fail_errno(r);
        return;
    }
    if (there && !S_ISREG(old.st_mode) && !S_ISLNK(old.st_mode)) {
        att_replace_fail(r, ATT_ERR_IO, S_ISDIR(old.st_mode) ? "it is a folder" : "it is not a file");
        return;
    }
    const bool keep = there && S_ISREG(old.st_mode);
    open_beside(r, keep ? old.st_mode & 0777 : 0666);
    if (!r->status && keep && fchmod(r->fd, old.st_mode & 0777))
        fail_errno(r);
}

void att_replace_write(att_replace *r, const void *data, size_t bytes)
{
    const char *at = data;
    while (!r->status && bytes > 0) {
        const ssize_t n = write(r->fd, at, bytes);
        if (n >= 0) {
            at += n;
            bytes -= (size_t)n;
        } else if (errno != EINTR) {
            fail_errno(r);
        }
    }
}

/* ---- replacing */

/* Opens the folder, because a rename is durable only once it is synced. Returns -1 without an error if the folder is
 * writable but not readable. */
static int open_folder(att_replace *r)
{
    char folder[ATT_MAX_PATH];
    memcpy(folder, r->target, sizeof folder);
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = 0; /* "/name": the root */
    const int fd = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno != EACCES)
        fail_errno(r);
    return fd;
}

/* Makes the rename durable: syncs the folder, or the whole file system if the folder cannot be opened. */
static void flush_name(att_replace *r, int folder)
{
    const int failed = folder >= 0 ? fsync(folder) : syncfs(r->fd);
    if (failed && errno != EINVAL) /* EINVAL: not supported by the file system */
        r->status = att_fail(r->ctx, ATT_ERR_IO, "%s is the new file, but may not be so after a power failure: %s",
                             r->path, strerror(errno));
}

att_status att_replace_commit(att_replace *r)
{
    if (!r->status && fsync(r->fd))
        fail_errno(r);
    const int folder = r->status ? -1 : open_folder(r);
    if (!r->status && rename(r->unfinished, r->target))
        fail_errno(r);
    if (!r->status)
        flush_name(r, folder);
    else if (r->fd >= 0)
        unlink(r->unfinished);
    if (folder >= 0)
        close(folder);
    if (r->fd >= 0)
        close(r->fd); /* also unlocks; all data is on the disk */
    r->fd = -1;
    return r->status;
}

att_status att_write_file(att_ctx *ctx, const char *path, const void *data, size_t bytes)
{
    att_replace r;
    att_replace_open(&r, ctx, path, false);
    att_replace_write(&r, data, bytes);
    return att_replace_commit(&r);
}

att_status att_make_folder(att_ctx *ctx, const char *path)
{
    char part[ATT_MAX_PATH];
    if (snprintf(part, sizeof part, "%s", path) >= (int)sizeof part)
        return att_fail(ctx, ATT_ERR_IO, "the path %.80s... is longer than %zu bytes", path, sizeof part - 1);
    int failed = !*path;
    errno = ENOENT;
    for (char *end = part; *end && !failed;) {
        end += 1 + strcspn(end + 1, "/");
        const char rest = *end;
        *end = 0;
        failed = mkdir(part, 0777) && errno != EEXIST;
        *end = rest;
    }
    struct stat is;
    if (failed)
        return att_fail(ctx, ATT_ERR_IO, "the folder %s cannot be made: %s", path, strerror(errno));
    return stat(path, &is) || S_ISDIR(is.st_mode) ? ATT_OK
                                                  : att_fail(ctx, ATT_ERR_IO, "%s is a file, not a folder", path);
}

att_status att_copy_files(att_ctx *ctx, const char *from, const char *to, const char *const *names, int required)
{
    att_status s = att_make_folder(ctx, to);
    for (int i = 0; !s && names[i]; i++) {
        att_text_file f = {0};
        char path[ATT_MAX_PATH];
        s = att_text_file_read(&f, ctx, from, names[i], i < required);
        s = s ? s : att_join_path(ctx, to, names[i], path);
        if (!s && f.text)
            s = att_write_file(ctx, path, f.text, f.bytes);
        att_text_file_free(&f);
    }
    return s;
}
