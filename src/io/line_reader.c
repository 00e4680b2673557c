#include "io/line_reader.h"
#include "io/gzip_reader.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static att_status refused(const att_text_lines *l)
{
    return att_fail(l->ctx, errno == ENOMEM ? ATT_ERR_MEMORY : ATT_ERR_IO, "%s: %s", l->path, strerror(errno));
}

att_status att_text_lines_open(att_text_lines *l, att_ctx *ctx, const char *path)
{
    *l = (att_text_lines){.ctx = ctx, .file = -1, .advice = ", which no text to learn has"};
    if (snprintf(l->path, sizeof l->path, "%s", path) >= (int)sizeof l->path)
        return att_fail(ctx, ATT_ERR_IO, "the path %.80s... is longer than %zu bytes", path, sizeof l->path - 1);
    l->file = att_open_file(path, &l->opened);
    if (l->file < 0)
        return refused(l);
    if (!S_ISREG(l->opened.st_mode))
        return att_fail(ctx, ATT_ERR_IO, "%s is not a file: texts are read more than once, which only a file can be",
                        path);
    const att_status e = att_begin_text(path, &l->file);
    if (e)
        return e;
    l->offset = lseek(l->file, 0, SEEK_CUR);         /* after a byte order mark */
    if (fstat(l->file, &l->opened) || l->offset < 0) /* of the unpacked file */
        return refused(l);
    l->block = att_alloc(ctx, ATT_TEXT_BLOCK, 1);
    return l->block ? ATT_OK : ATT_ERR_MEMORY;
}

att_status att_text_lines_of(att_text_lines *l, att_ctx *ctx, int file, const char *name)
{
    *l = (att_text_lines){.ctx = ctx, .file = file, .stream = true, .advice = ""};
    snprintf(l->path, sizeof l->path, "%s", name);
    l->block = att_alloc(ctx, ATT_TEXT_BLOCK, 1);
    return l->block ? ATT_OK : ATT_ERR_MEMORY;
}

void att_text_lines_free_block(att_text_lines *l)
{
    att_free(l->ctx, l->block);
    l->block = NULL;
}

void att_text_lines_close(att_text_lines *l)
{
    if (!l->ctx)
        return;
    att_text_lines_free_block(l);
    if (l->file >= 0 && !l->stream)
        close(l->file);
    *l = (att_text_lines){0};
}

/* Reads up to `bytes` at `offset`; returns the number read, or -1 and sets errno. */
static ssize_t read_at(const att_text_lines *l, int64_t offset, char *to, size_t bytes)
{
    size_t used = 0;
    for (ssize_t n = 1; n != 0 && used < bytes;) {
        n = pread(l->file, to + used, bytes - used, offset + (int64_t)used);
        if (n < 0 && errno != EINTR)
            return -1;
        used += n > 0 ? (size_t)n : 0;
    }
    return (ssize_t)used;
}

/* Finds the line at the start of text [bytes]; `end`: the file ends after the text. Returns the length of the line with
 * its end; 0: incomplete, or no line. */
static size_t first_line(const char *text, size_t bytes, bool end, att_text_line *line)
{
    const char *feed = memchr(text, '\n', bytes);
    const size_t n = feed ? (size_t)(feed - text) : end ? bytes : 0;
    line->text = text;
    line->bytes = n - (n > 0 && text[n - 1] == '\r');
    return n + (feed != NULL);
}

/* Checks the first bytes of a pipe, when there is a line, and skips its byte order mark. */
static att_status start_stream(att_text_lines *l)
{
    att_text_start start = {.size = sizeof start};
    const att_status e = att_text_begin(l->path, l->block, l->used, &start);
    l->at = start.mark;
    l->returns = start.returns;
    l->started = true;
    return e;
}

/* Reads from a pipe, at least once, until there is a line. */
static att_status read_stream(att_text_lines *l)
{
    const size_t before = l->used;
    bool line = false;
    while (!line && !l->end && l->used < ATT_TEXT_BLOCK) {
        const ssize_t n = read(l->file, l->block + l->used, ATT_TEXT_BLOCK - l->used);
        if (n < 0 && errno != EINTR)
            return refused(l);
        l->end = n == 0;
        l->used += n > 0 ? (size_t)n : 0;
        line = n > 0 && memchr(l->block + before, l->returns ? '\r' : '\n', l->used - before);
    }
    const att_status e = l->started ? ATT_OK : start_stream(l);
    for (size_t i = before; l->returns && i < l->used; i++)
        l->block[i] = l->block[i] == '\r' ? '\n' : l->block[i];
    return e;
}

static att_status read_file(att_text_lines *l)
{
    const ssize_t n = read_at(l, l->offset + (int64_t)l->used, l->block + l->used, ATT_TEXT_BLOCK - l->used);
    if (n < 0)
        return refused(l);
    l->used += (size_t)n;
    l->end = l->used < ATT_TEXT_BLOCK;
    return ATT_OK;
}

att_status att_text_lines_too_long(const att_text_lines *l)
{
    return att_fail(l->ctx, ATT_ERR_UNSUPPORTED, "%s: line %lld has more than %d bytes%s", l->path,
                    (long long)l->lines + 1, ATT_MAX_LINE, l->advice);
}

att_status att_text_lines_fill(att_text_lines *l)
{
    att_text_line line;
    memmove(l->block, l->block + l->at, l->used - l->at);
    l->offset += (int64_t)l->at;
    l->used -= l->at;
    l->at = 0;
    const att_status e = l->stream ? read_stream(l) : read_file(l);
    if (e)
        return e;
    const size_t n_line = first_line(l->block + l->at, l->used - l->at, l->end, &line);
    if ((n_line > 0 || l->used == l->at) && line.bytes <= ATT_MAX_LINE)
        return ATT_OK;
    return att_text_lines_too_long(l);
}

bool att_text_lines_next(att_text_lines *l, att_text_line *line)
{
    const size_t n = first_line(l->block + l->at, l->used - l->at, l->end, line);
    if (n == 0 || line->bytes > ATT_MAX_LINE) /* the next fill reports it */
        return false;
    line->offset = l->offset + (int64_t)l->at;
    l->at += n;
    l->lines++;
    return true;
}

void att_text_lines_unread(att_text_lines *l, const att_text_line *line)
{
    l->at = (size_t)(line->offset - l->offset);
    l->lines--;
}

att_status att_text_lines_skip(att_text_lines *l)
{
    att_text_line line;
    int64_t before;
    att_status e;
    do {
        before = l->lines;
        e = att_text_lines_fill(l);
        while (!e && att_text_lines_next(l, &line)) {
        }
    } while (!e && l->lines > before);
    return e;
}

att_status att_text_lines_at(const att_text_lines *l, int64_t offset, char *buffer, size_t room, att_text_line *line,
                             bool *fits)
{
    const ssize_t n = read_at(l, offset, buffer, room);
    if (n < 0)
        return refused(l);
    *fits = first_line(buffer, (size_t)n, (size_t)n < room, line) > 0;
    line->offset = offset;
    return ATT_OK;
}

att_status att_text_lines_check(const att_text_lines *l)
{
    const struct stat *was = &l->opened;
    struct stat is;
    if (fstat(l->file, &is))
        return refused(l);
    const bool written = is.st_mtim.tv_sec != was->st_mtim.tv_sec || is.st_mtim.tv_nsec != was->st_mtim.tv_nsec;
    if (is.st_size == was->st_size && !written)
        return ATT_OK;
    return att_fail(l->ctx, ATT_ERR_IO,
                    "%s was changed while it was trained on (it had %lld bytes and has %lld): texts are read again in "
                    "each epoch and have to stay as they are",
                    l->path, (long long)was->st_size, (long long)is.st_size);
}
