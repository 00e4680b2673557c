#include "io/gzip_reader.h"
#include "io/content.h"
#include "io/text_start.h"
#include "attend_util.h"
#include "util/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

/* Text is rarely compressed to less than a tenth of its size, but gzip can compress zeros to a thousandth. */
enum { MAX_RATIO = 100 };
static const int64_t always_allowed = (int64_t)64 << 20; /* bytes */
#define MAX_BYTES ((int64_t)1 << 48)

static att_status refused(const char *path)
{
    return att_fail(NULL, errno == ENOMEM ? ATT_ERR_MEMORY : ATT_ERR_IO, "%s: %s", path, strerror(errno));
}

static const char *temporary_folder(void)
{
    const char *folder = getenv("TMPDIR");
    return folder && *folder ? folder : "/tmp";
}

static att_status cannot_write(const char *path)
{
    return att_fail(NULL, ATT_ERR_IO, "%s is unpacked to a file in %s (TMPDIR), which cannot be written: %s", path,
                    temporary_folder(), strerror(errno));
}

/* Opens an unlinked file in the temporary folder. */
static att_status open_nameless(const char *path, int *file)
{
    char name[4096];
    if (snprintf(name, sizeof name, "%s/attend-XXXXXX", temporary_folder()) >= (int)sizeof name)
        return att_fail(NULL, ATT_ERR_IO, "the path in TMPDIR is longer than %zu bytes", sizeof name - 15);
    *file = mkostemp(name, O_CLOEXEC);
    if (*file < 0)
        return cannot_write(path);
    unlink(name);
    return ATT_OK;
}

static att_status write_all(const char *path, int file, const char *data, size_t n)
{
    for (size_t done = 0; done < n;) {
        const ssize_t written = write(file, data + done, n - done);
        if (written < 0 && errno != EINTR)
            return cannot_write(path);
        done += written > 0 ? (size_t)written : 0;
    }
    return ATT_OK;
}

/* Returns the error for zlib's report about a file that ended too early or is damaged. */
static att_status damaged(const char *path, gzFile from)
{
    int code;
    const char *why = gzerror(from, &code), *reason = strstr(why, ": "); /* follows "<fd:3>" */
    if (code == Z_ERRNO)
        return refused(path);
    if (code == Z_MEM_ERROR)
        return att_fail(NULL, ATT_ERR_MEMORY, "%s: out of memory", path);
    return att_fail(NULL, ATT_ERR_FORMAT, "%s: the gzip file is %s: %s", path,
                    code == Z_BUF_ERROR ? "truncated" : "damaged", reason ? reason + 2 : why);
}

/* Unpacks everything, at most `max` bytes. A truncated file is reported at its end, where gzread returns 0. */
static att_status unpack(const char *path, gzFile from, int64_t max, int to)
{
    char data[1 << 14];
    int64_t bytes = 0;
    att_status s = ATT_OK;
    for (int n = 1; !s && n > 0; bytes += n) {
        int code = Z_OK;
        n = gzread(from, data, sizeof data);
        gzerror(from, &code);
        if (n < 0 || code != Z_OK)
            return damaged(path, from);
        if (bytes + n > max)
            return att_fail(NULL, ATT_ERR_UNSUPPORTED,
                            "%s: unpacked it has more than %lld bytes, over %d times its size, as no such file has",
                            path, (long long)max, MAX_RATIO);
        s = write_all(path, to, data, (size_t)n);
    }
    return s;
}

/* Unpacks a file, and closes `from`. */
static att_status unpack_file(const char *path, int from, int64_t bytes, int *to)
{
    gzFile packed = gzdopen(from, "rb");
    if (!packed) {
        close(from);
        return att_fail(NULL, ATT_ERR_MEMORY, "%s: out of memory", path);
    }
    att_status s = open_nameless(path, to);
    s = s ? s : unpack(path, packed, always_allowed + MAX_RATIO * att_min(bytes, MAX_BYTES), *to);
    if (!s && lseek(*to, 0, SEEK_SET))
        s = cannot_write(path);
    gzclose(packed);
    if (s && *to >= 0) {
        close(*to);
        *to = -1;
    }
    return s;
}

att_status att_unpack_text(const char *path, int *file)
{
    unsigned char begin[64] = {0};
    struct stat is;
    const size_t length = strlen(path);
    const bool named = length > 3 && !strcmp(path + length - 3, ".gz");
    const int from = *file;
    if (fstat(from, &is) || !S_ISREG(is.st_mode))
        return ATT_OK; /* a pipe: bytes that were read cannot be put back */
    const ssize_t bytes = pread(from, begin, sizeof begin, 0);
    const bool packed = bytes >= 2 && begin[0] == 0x1f && begin[1] == 0x8b;
    const att_status pointer = att_refuse_pointer(NULL, path, begin, sizeof begin);
    if (!pointer && !packed && !named)
        return ATT_OK;
    *file = -1;
    if (packed)
        return unpack_file(path, from, is.st_size, file);
    close(from);
    return pointer ? pointer
                   : att_fail(NULL, ATT_ERR_FORMAT, "%s: is not a gzip file, though its name ends in .gz", path);
}

/* ---- the text */

/* Copies the text with a LF for each CR; *found: the text has a LF, so its lines do not end with CR. */
static att_status copy_returns(const char *path, int from, int to, bool *found)
{
    char data[1 << 14];
    att_status s = ATT_OK;
    for (ssize_t n = 1; !s && n != 0 && !*found;) {
        n = read(from, data, sizeof data);
        *found = n > 0 && memchr(data, '\n', (size_t)n);
        for (ssize_t i = 0; i < n; i++)
            data[i] = data[i] == '\r' ? '\n' : data[i];
        if (n > 0)
            s = write_all(path, to, data, (size_t)n);
        else if (n < 0 && errno != EINTR)
            s = refused(path);
    }
    return s;
}

/* Replaces *file, if it has no LF, by a copy in which each CR is a LF. */
static att_status replace_returns(const char *path, int *file)
{
    int copy = -1;
    bool found = false;
    att_status s = open_nameless(path, &copy);
    s = s ? s : copy_returns(path, *file, copy, &found);
    if (copy >= 0)
        close(s || found ? copy : *file);
    *file = s || found ? *file : copy;
    return s;
}

/* Fails if the first bytes are not those of a text. */
static att_status check_start(const char *path, int *file, att_text_start *start)
{
    char data[1 << 14];
    struct stat is;
    const int packed = *file;
    att_status s = att_unpack_text(path, file);
    *start = (att_text_start){0};
    if (s || fstat(*file, &is) || !S_ISREG(is.st_mode))
        return s;
    const ssize_t n = pread(*file, data, sizeof data, 0);
    if (n < 0)
        return refused(path);
    const att_foreign *foreign = att_foreign_of(data, (size_t)n);
    if (foreign)
        return att_fail_foreign(NULL, *file == packed ? path : NULL, path, foreign);
    *start = att_find_text_start(data, (size_t)n);
    return ATT_OK;
}

att_status att_begin_text(const char *path, int *file)
{
    att_text_start start;
    att_status s = check_start(path, file, &start);
    if (!s && start.returns)
        s = replace_returns(path, file);
    if (!s && (start.mark || start.returns) && lseek(*file, (off_t)start.mark, SEEK_SET) < 0)
        s = refused(path);
    if (s && *file >= 0) {
        close(*file);
        *file = -1;
    }
    return s;
}

att_status att_open_text(const char *path, int *file)
{
    if (file)
        *file = -1;
    if (att_require(__func__, ATT_NAMED({"path", path}, {"file", file})))
        return ATT_ERR_ARGUMENT;
    *file = open(path, O_RDONLY | O_CLOEXEC);
    return *file < 0 ? refused(path) : att_begin_text(path, file);
}
