#include "lines.h"
#include "command.h"
#include "finished.h"
#include "grow.h"
#include "shard.h"
#include "temporary.h"

#include <attend_text.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_BYTES = 1 << 18, BLOCK_BYTES = 1 << 22 };
static const size_t longest_line = (size_t)1 << 30;

static bool is_standard(const char *path) { return strcmp(path, "-") == 0; }

int cli_file_check(const char *path, double *bytes)
{
    struct stat s;
    if (is_standard(path) ? fstat(STDIN_FILENO, &s) : stat(path, &s))
        return cli_fail_errno(path);
    if (S_ISDIR(s.st_mode))
        return cli_fail("%s: is a folder, not a file", path);
    if (!is_standard(path) && access(path, R_OK))
        return cli_fail_errno(path);
    *bytes = S_ISREG(s.st_mode) ? (double)s.st_size : -1;
    return CLI_DONE;
}

int cli_lines_open(cli_lines *l, int n, char *const *paths)
{
    static char *const standard[] = {"-"};
    *l = (cli_lines){.paths = n ? paths : standard, .n_paths = n ? n : 1, .fd = -1};
    bool known = true;
    int code = n ? CLI_DONE : cli_finished_add_input();
    for (int i = 0; i < l->n_paths; i++) {
        double bytes = 0;
        code = code ? code : cli_file_check(l->paths[i], &bytes);
        if (code)
            return code;
        known = known && bytes >= 0;
        l->total += bytes;
    }
    if (!known)
        l->total = 0;
    return CLI_DONE;
}

void cli_lines_of(cli_lines *l, int64_t n, const char *const *texts)
{
    *l = (cli_lines){.given = texts, .n_given = n, .total = (double)n, .fd = -1};
}

int cli_lines_of_images(cli_lines *l, int n, char *const *paths)
{
    cli_paths found = {0};
    const int code = cli_paths_of_images(&found, n, paths);
    cli_lines_of(l, found.n, (const char *const *)found.path);
    l->own = found;
    return code;
}

/* Reports how to give a sentence, if one was given as a file. */
static int check_argument(const char *path)
{
    struct stat s;
    if (is_standard(path) || !strchr(path, ' ') || stat(path, &s) == 0)
        return CLI_DONE;
    return cli_fail("%s: %s; a sentence is given by --text", path, strerror(errno));
}

/* Counts the lines of all files, which must be such that they can be read again, and leaves standard input where it is.
 */
static int count_all(const cli_lines *l, int64_t *n)
{
    enum { LINES = 1 << 16 };
    cli_lines all = {.paths = l->paths, .n_paths = l->n_paths, .fd = -1, .any_bytes = true};
    const off_t standard = lseek(STDIN_FILENO, 0, SEEK_CUR);
    double bytes;
    int code = CLI_DONE;
    for (int i = 0; !code && i < l->n_paths; i++) {
        code = cli_file_check(l->paths[i], &bytes);
        if (!code && bytes < 0)
            code = cli_fail("%s is not a file: --shard reads its input twice, to count its lines",
                            is_standard(l->paths[i]) ? "standard input" : l->paths[i]);
    }
    *n = 0;
    do {
        code = code ? code : cli_lines_next(&all, LINES);
        *n += all.count;
    } while (!code && all.count > 0);
    if (!code && standard >= 0 && lseek(STDIN_FILENO, standard, SEEK_SET) < 0)
        code = cli_fail_errno("standard input");
    cli_lines_close(&all);
    return code;
}

int cli_lines_shard(cli_lines *l)
{
    int64_t n = l->n_given;
    if (!cli_shard_given())
        return CLI_DONE;
    const int code = l->given ? CLI_DONE : count_all(l, &n);
    const cli_range r = cli_shard_of(n);
    l->sharded = true;
    l->before = l->skip = r.first;
    l->left = l->all = r.end - r.first;
    return code;
}

static int choose(cli_lines *l, bool images, const cli_texts *texts, const char *const *file, int n, char *const *paths)
{
    *l = (cli_lines){.fd = -1};
    if ((texts->n > 0) + (*file != NULL) + (n > 0) > 1)
        return cli_misuse("%s does not go with %s", texts->n ? "--text" : "--file",
                          texts->n && *file ? "--file" : "files as arguments");
    if (texts->n) {
        cli_lines_of(l, texts->n, texts->text);
        return CLI_DONE;
    }
    if (images && n > 0)
        return cli_lines_of_images(l, n, paths);
    int code = CLI_DONE;
    for (int i = 0; !code && i < n; i++)
        code = check_argument(paths[i]);
    if (code)
        return code;
    return *file ? cli_lines_open(l, 1, (char *const *)file) : cli_lines_open(l, n, paths);
}

int cli_lines_choose(cli_lines *l, bool images, const cli_texts *texts, const char *const *file, int n,
                     char *const *paths)
{
    const int code = choose(l, images, texts, file, n, paths);
    return code ? code : cli_lines_shard(l);
}

void cli_lines_close(cli_lines *l)
{
    if (l->fd > STDIN_FILENO)
        close(l->fd);
    free(l->data);
    free(l->text);
    free(l->bytes);
    free(l->begin);
    cli_paths_free(&l->own);
    *l = (cli_lines){.fd = -1};
}

static int open_next(cli_lines *l)
{
    const char *path = l->paths[l->at++];
    l->path = is_standard(path) ? "standard input" : path;
    l->line = 0;
    l->fd = STDIN_FILENO;
    l->begun = false;
    l->ends = CLI_ENDS_UNKNOWN;
    if (is_standard(path))
        return CLI_DONE;
    const int code = cli_status(NULL, att_open_text(path, &l->fd));
    struct stat packed, text;
    if (code || fstat(l->fd, &text) || !S_ISREG(text.st_mode))
        return code;
    l->begun = true; /* att_open_text has done that */
    l->ends = CLI_LF;
    if (l->total > 0 && !stat(path, &packed))
        l->total += (double)(text.st_size - packed.st_size);
    return CLI_DONE;
}

/* Checks the first bytes of a pipe. */
static int begin_stream(cli_lines *l)
{
    att_text_start start = {.size = sizeof start};
    const int code = cli_status(NULL, att_text_begin(l->path, l->data + l->start, l->used - l->start, &start));
    l->start += start.mark;
    l->begun = true;
    return code;
}

/* Makes LF of the CR at the ends of lines. */
static void replace_returns(cli_lines *l, size_t from)
{
    for (size_t i = from; i < l->used; i++)
        l->data[i] = l->data[i] == '\r' ? '\n' : l->data[i];
}

/* Decides how the lines of a pipe end, after a line, many bytes or everything has been read. from: the beginning of the
 * new bytes. */
static void find_ends(cli_lines *l, size_t from, bool file_ends)
{
    enum { ENOUGH = 1 << 16 };
    const size_t n = l->used - l->start;
    if (l->ends == CLI_ENDS_UNKNOWN && n > 0 && memchr(l->data + l->start, '\n', n))
        l->ends = CLI_LF;
    const bool all = l->ends == CLI_ENDS_UNKNOWN && (file_ends || n > ENOUGH);
    if (all && n > 0 && memchr(l->data + l->start, '\r', n - 1)) { /* the last CR may be that of a CR LF */
        l->ends = CLI_CR;
        from = l->start;
    }
    if (l->ends == CLI_CR)
        replace_returns(l, from);
}

static bool must_wait(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0) == 0;
}

/* Reads more at the end of data, leaving space for one byte; *end: end of file. */
static int read_more(cli_lines *l, bool *end)
{
    const size_t max = l->part ? l->part : longest_line;
    if (l->used - l->start > max)
        return cli_fail("%s: line %lld has more than %zu bytes%s", l->path, (long long)l->line + 1, max,
                        l->part ? " without a space" : "");
    if (!cli_reserve(&l->capacity, l->used + READ_BYTES + 1, &(cli_array){&l->data, 1}, 1))
        return cli_fail_memory();
    ssize_t n;
    do
        n = read(l->fd, l->data + l->used, READ_BYTES);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return cli_fail_errno(l->path);
    l->used += (size_t)n;
    l->read += (double)n;
    *end = n == 0;
    return CLI_DONE;
}

static int reserve_lines(cli_lines *l, int64_t n)
{
    const cli_array arrays[] = {
        {&l->text, sizeof *l->text}, {&l->bytes, sizeof *l->bytes}, {&l->begin, sizeof *l->begin}};
    return cli_reserve(&l->room, (size_t)n, arrays, 3) ? CLI_DONE : cli_fail_memory();
}

/* Adds the line from start to the line feed or space at `end` to the block. */
static int add_line(cli_lines *l, size_t end)
{
    const int code = reserve_lines(l, l->count + 1);
    if (code)
        return code;
    size_t n = end - l->start;
    const bool whole = l->data[end] == '\n';
    if (n && whole && l->data[end - 1] == '\r')
        n--;
    if (!l->any_bytes && att_check_utf8(l->path, l->line + 1, l->data + l->start, n))
        return cli_status(NULL, ATT_ERR_FORMAT);
    l->data[l->start + n] = '\0';
    l->begin[l->count] = l->start;
    l->bytes[l->count++] = n;
    l->start = end + 1;
    l->line += whole;
    return CLI_DONE;
}

static int next_given(cli_lines *l, int64_t max_count)
{
    const int64_t rest = l->n_given - l->at, n = rest < max_count ? rest : max_count;
    const int code = reserve_lines(l, n);
    for (l->count = 0; !code && l->count < n; l->count++) {
        l->text[l->count] = l->given[l->at++];
        l->bytes[l->count] = strlen(l->text[l->count]);
    }
    l->done = l->at;
    return code;
}

/* Reads the next block, whether or not it is of the shard. */
static int next_block(cli_lines *l, int64_t max_count)
{
    int code = CLI_DONE;
    l->count = 0;
    if (l->given)
        return next_given(l, max_count);
    if (l->used > l->start)
        memmove(l->data, l->data + l->start, l->used - l->start);
    l->used -= l->start;
    l->start = 0;
    size_t seen = 0; /* no line feed in [start, seen) */
    while (!code && l->count < max_count && l->start < BLOCK_BYTES) {
        const char *end = l->used > seen ? memchr(l->data + seen, '\n', l->used - seen) : NULL;
        if (!end && l->part && l->used - l->start > l->part)
            end = memrchr(l->data + l->start, ' ', l->used - l->start);
        if (end) {
            code = add_line(l, (size_t)(end - l->data));
            seen = l->start;
            continue;
        }
        seen = l->used;
        if (l->fd < 0) {
            if (l->at == l->n_paths)
                break;
            code = open_next(l);
            continue;
        }
        if (l->count && must_wait(l->fd))
            break;
        bool file_ends = false;
        const size_t before = l->used;
        code = read_more(l, &file_ends);
        if (!code && !l->begun)
            code = begin_stream(l);
        if (!code && l->ends != CLI_LF) {
            find_ends(l, before, file_ends);
            seen = l->ends == CLI_CR ? l->start : seen;
        }
        if (!code && file_ends) {
            if (l->fd != STDIN_FILENO)
                close(l->fd);
            l->fd = -1;
            if (l->used > l->start && l->data[l->used - 1] != '\n') /* the last line has no line feed: add one */
                l->data[l->used++] = '\n';
        }
    }
    l->done = l->read - (double)(l->used - l->start);
    for (int64_t i = 0; i < l->count; i++)
        l->text[i] = l->data + l->begin[i]; /* only now, since data may have moved */
    return code;
}

/* Passes over the lines of earlier shards, whatever is in them. */
static int pass_over(cli_lines *l)
{
    enum { LINES = 1 << 16 };
    const bool any_bytes = l->any_bytes;
    int code = CLI_DONE;
    l->any_bytes = true;
    while (!code && l->skip > 0) {
        code = next_block(l, l->skip < LINES ? l->skip : LINES);
        l->skip = l->count > 0 ? l->skip - l->count : 0;
    }
    l->any_bytes = any_bytes;
    return code;
}

int cli_lines_next(cli_lines *l, int64_t max_count)
{
    if (!l->sharded)
        return next_block(l, max_count);
    int code = pass_over(l);
    if (!code)
        code = next_block(l, max_count < l->left ? max_count : l->left);
    l->left -= l->count;
    l->done = (double)(l->all - l->left);
    l->total = (double)l->all;
    return code;
}

int cli_reader_next(cli_reader *r, bool *there)
{
    enum { LINES = 1024 };
    int code = CLI_DONE;
    if (++r->at >= r->in.count) {
        code = cli_lines_next(&r->in, LINES);
        r->at = 0;
    }
    *there = !code && r->at < r->in.count;
    r->lines += *there;
    return code;
}

int cli_lines_count(const char *path, int64_t *n)
{
    cli_lines l;
    int code = cli_lines_open(&l, 1, (char *const *)&path);
    *n = 0;
    do {
        code = code ? code : cli_lines_next(&l, INT64_MAX);
        *n += l.count;
    } while (!code && l.count > 0);
    cli_lines_close(&l);
    return code;
}

/* ---- pipes to files */

static int refuse_copy(const char *path)
{
    return cli_fail("%s is a pipe, and what comes out of it cannot be put into a file in %s (TMPDIR): %s", path,
                    cli_temporary_folder(), strerror(errno));
}

/* Copies all bytes. */
static int copy_bytes(const char *path, int from, int to)
{
    static char data[READ_BYTES];
    for (ssize_t n = 1; n != 0;) {
        n = read(from, data, sizeof data);
        if (n < 0 && errno != EINTR)
            return cli_fail_errno(path);
        for (ssize_t done = 0; done < n;) {
            const ssize_t written = write(to, data + done, (size_t)(n - done));
            if (written < 0 && errno != EINTR)
                return refuse_copy(path);
            done += written > 0 ? written : 0;
        }
    }
    return CLI_DONE;
}

/* Sets the path of a copy. If the pipe is a descriptor ("/dev/fd/63", "/dev/stdin"), the copy replaces it. */
static int name_copy(const char **path, cli_copy *copy)
{
    int descriptor = STDIN_FILENO;
    char more;
    if (!strcmp(*path, "/dev/stdin") || sscanf(*path, "/dev/fd/%d%c", &descriptor, &more) == 1) {
        if (dup3(copy->file, descriptor, O_CLOEXEC) < 0)
            return cli_fail_errno(*path);
        close(copy->file);
        copy->file = descriptor;
        return CLI_DONE;
    }
    snprintf(copy->path, sizeof copy->path, "/dev/fd/%d", copy->file);
    cli_note("%s is a pipe: what came out of it is %s now", *path, copy->path);
    *path = copy->path;
    return CLI_DONE;
}

int cli_copy_pipe(const char **path, cli_copy *copy)
{
    struct stat s;
    copy->file = -1;
    if (!*path || stat(*path, &s) || !(S_ISFIFO(s.st_mode) || S_ISSOCK(s.st_mode)))
        return CLI_DONE;
    const int from = open(*path, O_RDONLY | O_CLOEXEC);
    int code = from < 0 ? cli_fail_errno(*path) : CLI_DONE;
    if (!code && (copy->file = cli_temporary_descriptor()) < 0)
        code = refuse_copy(*path);
    if (!code)
        code = copy_bytes(*path, from, copy->file);
    if (from >= 0)
        close(from);
    return code ? code : name_copy(path, copy);
}
