#include "io/file.h"
#include "io/content.h"
#include "io/text_start.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MAX_BYTES = 64 << 20 }; /* twice the size of the largest known tokenizer.json */

att_status att_join_path(att_ctx *ctx, const char *folder, const char *name, char path[ATT_MAX_PATH])
{
    if (snprintf(path, ATT_MAX_PATH, "%s/%s", folder, name) < ATT_MAX_PATH)
        return ATT_OK;
    return att_fail(ctx, ATT_ERR_IO, "the path of %s is longer than %d bytes", name, ATT_MAX_PATH - 1);
}

bool att_is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISDIR(st.st_mode);
}

int att_open_file(const char *path, struct stat *is)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, is) == 0)
        return fd;
    const int why = errno;
    close(fd);
    errno = why;
    return -1;
}

/* Is it a symbolic link to nothing? Folders of a cache are full of links, whose targets a copy may lack. */
static bool is_dangling(const char *path)
{
    struct stat is;
    return lstat(path, &is) == 0 && S_ISLNK(is.st_mode) && stat(path, &is) != 0;
}

/* errno is that of att_open_file. */
static att_status refused(att_ctx *ctx, const char *path)
{
    if (errno == ENOENT && is_dangling(path))
        return att_fail(ctx, ATT_ERR_IO, "%s is a symbolic link to a file that is missing; copy folders with cp -L",
                        path);
    return att_fail(ctx, errno == ENOMEM ? ATT_ERR_MEMORY : ATT_ERR_IO, "%s: %s", path, strerror(errno));
}

att_status att_map_file(att_ctx *ctx, const char *path, const void **data, size_t *bytes)
{
    struct stat is;
    att_status s = ATT_OK;
    const int fd = att_open_file(path, &is);
    if (fd < 0)
        return refused(ctx, path);
    if (!S_ISREG(is.st_mode))
        s = att_fail(ctx, ATT_ERR_IO, "%s is not a file", path);
    else if (is.st_size == 0)
        s = att_fail(ctx, ATT_ERR_FORMAT, "%s is empty", path);
    void *mapped = s ? NULL : mmap(NULL, (size_t)is.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (!s && mapped == MAP_FAILED)
        s = refused(ctx, path);
    close(fd);
    if (s)
        return s;
    s = att_refuse_pointer(ctx, path, mapped, (size_t)is.st_size);
    if (s) {
        munmap(mapped, (size_t)is.st_size);
        return s;
    }
    *data = mapped;
    *bytes = (size_t)is.st_size;
    return ATT_OK;
}

/* Reads at most `bytes`. */
static att_status read_text(att_text_file *f, int fd, size_t bytes)
{
    f->text = att_alloc(f->ctx, bytes + 1, 1);
    if (!f->text)
        return ATT_ERR_MEMORY;
    ssize_t n;
    while ((n = read(fd, f->text + f->bytes, bytes - f->bytes)) > 0)
        f->bytes += (size_t)n;
    if (n < 0)
        return att_fail(f->ctx, ATT_ERR_IO, "%s: %s", f->path, strerror(errno));
    const size_t mark = att_find_text_start(f->text, f->bytes).mark; /* a byte order mark is not part of the text */
    f->bytes -= mark;
    memmove(f->text, f->text + mark, f->bytes);
    f->text[f->bytes] = 0;
    return ATT_OK;
}

/* Opens and reads the file f->path. */
static att_status open_and_read(att_text_file *f, bool required)
{
    struct stat is;
    const int fd = att_open_file(f->path, &is);
    if (fd < 0 && !required && (errno == ENOTDIR || (errno == ENOENT && !is_dangling(f->path))))
        return ATT_OK;
    if (fd < 0)
        return refused(f->ctx, f->path);
    att_status s = !S_ISREG(is.st_mode)     ? att_fail(f->ctx, ATT_ERR_IO, "%s is not a file", f->path)
                   : is.st_size > MAX_BYTES ? att_fail(f->ctx, ATT_ERR_UNSUPPORTED, "%s has %lld bytes, the most is %d",
                                                       f->path, (long long)is.st_size, MAX_BYTES)
                                            : read_text(f, fd, (size_t)is.st_size);
    close(fd);
    s = s ? s : att_refuse_content(f->ctx, f->path, f->text, f->bytes);
    if (s)
        att_text_file_free(f);
    return s;
}

att_status att_text_file_open(att_text_file *f, att_ctx *ctx, const char *path, bool required)
{
    *f = (att_text_file){.ctx = ctx};
    if (snprintf(f->path, sizeof f->path, "%s", path) >= (int)sizeof f->path)
        return att_fail(ctx, ATT_ERR_IO, "the path %.80s... is longer than %zu bytes", path, sizeof f->path - 1);
    return open_and_read(f, required);
}

att_status att_text_file_read(att_text_file *f, att_ctx *ctx, const char *folder, const char *name, bool required)
{
    *f = (att_text_file){.ctx = ctx};
    const att_status s = att_join_path(ctx, folder, name, f->path);
    return s ? s : open_and_read(f, required);
}

void att_text_file_free(att_text_file *f)
{
    att_free(f->ctx, f->text);
    f->text = NULL;
}
