#include "io/file.h"
#include "io/content.h"
#include "io/cancelled.h"
#include "io/file_source.h"
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
    const void *data;
    size_t bytes;
    if (att_file_source_given())
        return att_file_source_read(NULL, path, &data, &bytes) || data;
    return stat(path, &st) == 0 && !S_ISDIR(st.st_mode);
}

bool att_exists(const char *path)
{
    struct stat st;
    return att_file_source_given() ? att_is_file(path) : lstat(path, &st) == 0;
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

/* Returns whether a path is a symbolic link to nothing. Folders of a cache have many links, whose targets a copy may
 * lack. */
static bool is_dangling(const char *path)
{
    struct stat is;
    return lstat(path, &is) == 0 && S_ISLNK(is.st_mode) && stat(path, &is) != 0;
}

/* Returns the error of a file that att_open_file could not open; errno has the reason. */
static att_status refused(att_ctx *ctx, const char *path)
{
    if (errno == ENOENT && is_dangling(path))
        return att_fail(ctx, ATT_ERR_IO, "%s is a symbolic link to a file that is missing; copy folders with cp -L",
                        path);
    return att_fail(ctx, errno == ENOMEM ? ATT_ERR_MEMORY : ATT_ERR_IO, "%s: %s", path, strerror(errno));
}

/* Returns the error about a required file that does not exist. */
static att_status missing(att_ctx *ctx, const char *path)
{
    return att_fail(ctx, ATT_ERR_IO, "%s: %s", path, strerror(ENOENT));
}

/* Reads at most `bytes` -> *got; an error if the file cannot be read. Cancelling stops it only while a model is opened
 * whose files are copied: a cancelled training must still read the files that it then writes. */
static att_status read_bytes(att_ctx *ctx, const char *path, int fd, char *to, size_t bytes, size_t *got)
{
    enum { CHUNK = 16 << 20 }; /* at most this much is read after a cancellation */
    *got = 0;
    while (*got < bytes) {
        const size_t rest = bytes - *got;
        const ssize_t n = read(fd, to + *got, rest < CHUNK ? rest : CHUNK);
        if (n == 0)
            break;
        if (n < 0 && errno != EINTR)
            return att_fail(ctx, ATT_ERR_IO, "%s: %s", path, strerror(errno));
        *got += n > 0 ? (size_t)n : 0;
        if (att_file_source_copies() && att_check_cancelled(ctx, path))
            return ATT_ERR_CANCELLED;
    }
    return ATT_OK;
}

/* ---- data */

static att_status map_or_read(att_file_data *d, const char *path, int fd, size_t size)
{
    d->size = size;
    if (!att_file_source_copies()) {
        void *mapped = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
        d->mapped = mapped != MAP_FAILED;
        d->bytes = d->mapped ? mapped : NULL;
        return d->mapped ? ATT_OK : refused(d->ctx, path);
    }
    size_t got;
    d->bytes = d->own = att_alloc(d->ctx, size, 1);
    const att_status s = d->own ? read_bytes(d->ctx, path, fd, d->own, size, &got) : ATT_ERR_MEMORY;
    if (s || got == size)
        return s;
    return att_fail(d->ctx, ATT_ERR_IO, "%s: had %zu bytes when it was opened, but %zu were read", path, size, got);
}

static att_status open_on_disk(att_file_data *d, const char *path)
{
    struct stat is;
    const int fd = att_open_file(path, &is);
    if (fd < 0)
        return refused(d->ctx, path);
    const att_status s = !S_ISREG(is.st_mode) ? att_fail(d->ctx, ATT_ERR_IO, "%s is not a file", path)
                         : is.st_size == 0    ? att_fail(d->ctx, ATT_ERR_FORMAT, "%s is empty", path)
                                              : map_or_read(d, path, fd, (size_t)is.st_size);
    close(fd);
    return s;
}

static att_status open_given(att_file_data *d, const char *path)
{
    enum { ALIGN = 8 };
    const void *data;
    const att_status s = att_file_source_read(d->ctx, path, &data, &d->size);
    if (s)
        return s;
    if (!data)
        return missing(d->ctx, path);
    if (d->size == 0)
        return att_fail(d->ctx, ATT_ERR_FORMAT, "%s is empty", path);
    d->bytes = data;
    if (!att_file_source_copies() && (uintptr_t)data % ALIGN == 0)
        return ATT_OK;
    d->bytes = d->own = att_alloc(d->ctx, d->size, 1);
    if (d->own)
        memcpy(d->own, data, d->size);
    return d->own ? ATT_OK : ATT_ERR_MEMORY;
}

att_status att_file_data_open(att_file_data *d, att_ctx *ctx, const char *path)
{
    *d = (att_file_data){.ctx = ctx};
    att_status s = att_file_source_given() ? open_given(d, path) : open_on_disk(d, path);
    s = s ? s : att_refuse_pointer(ctx, path, d->bytes, d->size);
    if (s)
        att_file_data_close(d);
    return s;
}

void att_file_data_close(att_file_data *d)
{
    if (d->mapped)
        munmap((void *)(uintptr_t)d->bytes, d->size);
    att_free(d->ctx, d->own);
    *d = (att_file_data){.ctx = d->ctx};
}

att_memory att_file_data_memory(const att_file_data *d, const void *p)
{
    if ((uintptr_t)p < (uintptr_t)d->bytes || (uintptr_t)p >= (uintptr_t)d->bytes + d->size)
        return ATT_MEMORY_OTHER;
    return d->mapped ? ATT_MEMORY_MAPPED : d->own ? ATT_MEMORY_COPIED : ATT_MEMORY_GIVEN;
}

/* ---- texts */

/* Removes the byte order mark, which is not part of the text. */
static void end_text(att_text_file *f)
{
    const size_t mark = att_find_text_start(f->text, f->bytes).mark;
    f->bytes -= mark;
    memmove(f->text, f->text + mark, f->bytes);
    f->text[f->bytes] = 0;
}

/* Allocates memory for a file of `bytes`. */
static att_status alloc_text(att_text_file *f, size_t bytes)
{
    if (bytes > MAX_BYTES)
        return att_fail(f->ctx, ATT_ERR_UNSUPPORTED, "%s has %zu bytes, the maximum is %d", f->path, bytes, MAX_BYTES);
    f->text = att_alloc(f->ctx, bytes + 1, 1);
    return f->text ? ATT_OK : ATT_ERR_MEMORY;
}

/* Reads the file f->path. If it does not exist, that is an error if required; otherwise there is no text. */
static att_status read_on_disk(att_text_file *f, bool required)
{
    struct stat is;
    const int fd = att_open_file(f->path, &is);
    if (fd < 0 && !required && (errno == ENOTDIR || (errno == ENOENT && !is_dangling(f->path))))
        return ATT_OK;
    if (fd < 0)
        return refused(f->ctx, f->path);
    att_status s = S_ISREG(is.st_mode) ? alloc_text(f, (size_t)is.st_size)
                                       : att_fail(f->ctx, ATT_ERR_IO, "%s is not a file", f->path);
    s = s ? s : read_bytes(f->ctx, f->path, fd, f->text, (size_t)is.st_size, &f->bytes);
    close(fd);
    return s;
}

static att_status read_given(att_text_file *f, bool required)
{
    const void *data;
    size_t bytes;
    att_status s = att_file_source_read(f->ctx, f->path, &data, &bytes);
    if (s || !data)
        return s || !required ? s : missing(f->ctx, f->path);
    s = alloc_text(f, bytes);
    if (s)
        return s;
    memcpy(f->text, data, bytes);
    f->bytes = bytes;
    return ATT_OK;
}

static att_status open_and_read(att_text_file *f, bool required)
{
    att_status s = att_file_source_given() ? read_given(f, required) : read_on_disk(f, required);
    if (!s && f->text) {
        end_text(f);
        s = att_refuse_content(f->ctx, f->path, f->text, f->bytes);
    }
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
