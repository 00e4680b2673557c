#include "io/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
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

/* ---- the file beside it */

/* A name that no other process and no other thread has taken. */
static void open_beside(att_replace *r)
{
    enum { MOST = 1000 };
    for (int i = 0; r->fd < 0 && i < MOST; i++) {
        const int n =
            snprintf(r->unfinished, sizeof r->unfinished, "%s.%ld-%d" ATT_UNFINISHED, r->path, (long)getpid(), i);
        if (n >= (int)sizeof r->unfinished) {
            att_replace_fail(r, ATT_ERR_IO, strerror(ENAMETOOLONG));
            return;
        }
        r->fd = open(r->unfinished, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (r->fd < 0 && errno != EEXIST)
            break;
    }
    if (r->fd < 0)
        fail_errno(r);
}

void att_replace_open(att_replace *r, att_ctx *ctx, const char *path)
{
    struct stat old;
    *r = (att_replace){.ctx = ctx, .fd = -1};
    if (snprintf(r->path, sizeof r->path, "%s", path) >= (int)sizeof r->path) {
        att_replace_fail(r, ATT_ERR_IO, strerror(ENAMETOOLONG));
        return;
    }
    const bool there = stat(path, &old) == 0;
    if (there && !S_ISREG(old.st_mode)) {
        att_replace_fail(r, ATT_ERR_IO, S_ISDIR(old.st_mode) ? "it is a folder" : "it is not a file");
        return;
    }
    open_beside(r);
    if (!r->status && there && fchmod(r->fd, old.st_mode & 0777))
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

/* ---- in its place */

/* A name is on the disk when its folder is. */
static void flush_folder(att_replace *r)
{
    char folder[ATT_MAX_PATH];
    memcpy(folder, r->path, sizeof folder);
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = 0; /* of "/name", the root */
    const int fd = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || (fsync(fd) && errno != EINVAL)) /* a file system that cannot do this says so */
        fail_errno(r);
    if (fd >= 0)
        close(fd);
}

att_status att_replace_commit(att_replace *r)
{
    if (!r->status && fsync(r->fd))
        fail_errno(r);
    if (r->fd >= 0 && close(r->fd))
        fail_errno(r);
    if (!r->status && rename(r->unfinished, r->path))
        fail_errno(r);
    if (!r->status)
        flush_folder(r);
    else if (r->fd >= 0)
        unlink(r->unfinished);
    r->fd = -1;
    return r->status;
}

att_status att_write_file(att_ctx *ctx, const char *path, const void *data, size_t bytes)
{
    att_replace r;
    att_replace_open(&r, ctx, path);
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
    return failed ? att_fail(ctx, ATT_ERR_IO, "the folder %s cannot be made: %s", path, strerror(errno)) : ATT_OK;
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
