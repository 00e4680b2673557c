#include "output.h"
#include "command.h"
#include "in_use.h"
#include "signals.h"
#include "terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- The temporary file ----------------------------------------------------- */

/* The libraries use the same scheme and names: see src/io/atomic_write.c. */

/* Returns the i-th temporary name, malloc'd; a long one is truncated for the suffix. NULL: out of memory. */
static char *name_beside(const char *target, int i)
{
    const char *slash = strrchr(target, '/'), *name = slash ? slash + 1 : target;
    char *path = NULL;
    return asprintf(&path, "%.*s%.200s.unfinished-%d", (int)(name - target), target, name, i) < 0 ? NULL : path;
}

/* Removes the file of a killed process; a file that is being written is locked. */
static void remove_unfinished(const char *path)
{
    struct stat s;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return;
    if (!flock(fd, LOCK_EX | LOCK_NB) && !fstat(fd, &s) && S_ISREG(s.st_mode) && s.st_nlink == 1)
        unlink(path);
    close(fd);
}

/* Creates and locks a file that is removed if the process ends early: a descriptor, or -1. EEXIST: another process
 * writes it. */
static int open_unfinished(char *path, mode_t mode)
{
    struct stat s;
    int fd = cli_end_create(path, mode);
    if (fd < 0)
        return -1;
    bool lost = flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK;
    bool removed = !lost && !fstat(fd, &s) && s.st_nlink == 0; /* before it was locked */
    if (!lost && !removed)
        return fd;
    cli_end_keeps(path);
    close(fd);
    errno = EEXIST;
    return -1;
}

/* Sets the permissions that the target has or would get. */
static int open_beside(cli_output *o, const struct stat *old)
{
    enum { MAX_WRITERS = 64 }; /* concurrent writers of one file */
    int fd = -1;
    for (int i = 0; i < MAX_WRITERS; i++) {
        char *path = name_beside(o->target, i);
        if (!path)
            return cli_fail_memory();
        remove_unfinished(path);
        free(path);
    }
    errno = EEXIST;
    for (int i = 0; fd < 0 && errno == EEXIST && i < MAX_WRITERS; i++) {
        free(o->unfinished);
        o->unfinished = name_beside(o->target, i);
        if (!o->unfinished)
            return cli_fail_memory();
        fd = open_unfinished(o->unfinished, old ? old->st_mode & 0777 : 0666);
    }
    if (fd < 0) {
        int code = cli_fail_errno(o->path);
        free(o->unfinished);
        o->unfinished = NULL;
        return code;
    }
    if (old && fchmod(fd, old->st_mode & 0777)) {
        /* a file system without permissions: ignored */
    }
    o->file = fdopen(fd, "w+b");
    return o->file ? CLI_DONE : cli_fail_errno(o->path);
}

/* Renames the output to the target, durably: syncs the folder or, if that cannot be read, the whole file system. */
static int replace_target(const cli_output *o)
{
    char *copy = strdup(o->target);
    if (!copy) {
        unlink(o->unfinished);
        return cli_fail_memory();
    }
    int folder = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(copy);
    if ((folder < 0 && errno != EACCES) || rename(o->unfinished, o->target)) {
        int code = cli_fail_errno(o->path);
        if (folder >= 0)
            close(folder);
        unlink(o->unfinished);
        return code;
    }
    int code = CLI_DONE;
    if ((folder >= 0 ? fsync(folder) : syncfs(fileno(o->file))) && errno != EINVAL)
        code = cli_fail("%s: is the new file, but may not be so after a power failure: %s", o->path, strerror(errno));
    if (folder >= 0)
        close(folder);
    return code;
}

/* ---- Opening and closing ----------------------------------------------------- */

/* Opens a device. Returns NULL and sets errno after an error. */
static FILE *open_device(const char *path)
{
    const int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    FILE *f = fd < 0 ? NULL : isatty(fd) ? cli_terminal_open(fd) : fdopen(fd, "wb");
    if (fd >= 0 && !f)
        close(fd);
    return f;
}

int cli_output_open(cli_output *o, const char *path)
{
    *o = (cli_output){.path = path};
    if (!path || strcmp(path, "-") == 0) {
        *o = (cli_output){.file = stdout, .path = "standard output"};
        return CLI_DONE;
    }
    struct stat s;
    bool is_link = lstat(path, &s) == 0 && S_ISLNK(s.st_mode), exists = stat(path, &s) == 0;
    if (exists && S_ISDIR(s.st_mode))
        return cli_fail("%s: is a folder, not a file", path);
    int code = cli_in_use_check(path);
    if (code)
        return code;
    if (exists && !S_ISREG(s.st_mode)) {
        o->file = open_device(path);
        return o->file ? CLI_DONE : cli_fail_errno(path);
    }
    o->target = is_link ? realpath(path, NULL) : strdup(path); /* a link is kept; a dangling one is refused */
    code = o->target ? open_beside(o, exists ? &s : NULL) : cli_fail_errno(path);
    return code ? cli_output_close(o, code) : code;
}

bool cli_output_is_terminal(const cli_output *o) { return o->file == stdout && isatty(STDOUT_FILENO); }

int cli_output_flush(cli_output *o)
{
    errno = 0;
    if (fflush(o->file) == 0 && !ferror(o->file))
        return CLI_DONE;
    return cli_fail("%s: %s", o->path, errno ? strerror(errno) : "not everything could be written");
}

int cli_output_close(cli_output *o, int code)
{
    const bool own = o->file && o->file != stdout;
    if (o->file && !code)
        code = cli_output_flush(o);
    if (o->unfinished && !code && fsync(fileno(o->file)))
        code = cli_fail_errno(o->path);
    if (o->unfinished && !code)
        code = replace_target(o);
    else if (o->unfinished)
        unlink(o->unfinished);
    if (own && fclose(o->file) && !code) /* also unlocks */
        code = cli_fail_errno(o->path);
    cli_end_keeps(o->unfinished);
    free(o->unfinished);
    free(o->target);
    *o = (cli_output){0};
    return code;
}

/* ---- Numbers --------------------------------------------------------------- */

static const double power[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12};

/* The two rounding errors in double are far below half of the ninth digit, and nine digits distinguish all floats. */
size_t cli_put_float(char *to, float x)
{
    double a = x < 0 ? -(double)x : (double)x;
    if (!(a >= 1e-4 && a < 1e8)) /* zero, NaN, or an exponent is needed */
        return (size_t)snprintf(to, CLI_FLOAT_BYTES, "%.9g", (double)x);
    int decimals = 8; /* after the point, for nine digits in all */
    while (decimals > 0 && a >= power[9 - decimals])
        decimals--;
    while (a * power[decimals] < 1e8)
        decimals++;
    uint64_t digits = (uint64_t)(a * power[decimals] + 0.5);
    for (; decimals && digits % 10 == 0; decimals--)
        digits /= 10;
    char text[CLI_FLOAT_BYTES], *p = text + sizeof text; /* written from the end */
    for (int i = 0; i < decimals; i++, digits /= 10)
        *--p = (char)('0' + digits % 10);
    if (decimals)
        *--p = '.';
    do {
        *--p = (char)('0' + digits % 10);
        digits /= 10;
    } while (digits);
    if (x < 0)
        *--p = '-';
    size_t n = (size_t)(text + sizeof text - p);
    memcpy(to, p, n);
    return n;
}

void cli_write_number(double x, char text[CLI_NUMBER_BYTES])
{
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, CLI_NUMBER_BYTES, "%.*g", digits, x);
        if (strtod(text, NULL) == x)
            break;
    }
}

void cli_write_row(FILE *f, const float *row, int64_t n, char between)
{
    char text[64 * (CLI_FLOAT_BYTES + 1)];
    size_t used = 0;
    for (int64_t i = 0; i < n; i++) {
        if (i)
            text[used++] = between;
        if (between == ',' && !(row[i] - row[i] == 0)) {
            memcpy(text + used, "null", 4);
            used += 4;
        } else {
            used += cli_put_float(text + used, row[i]);
        }
        if (used > sizeof text - 2 * (CLI_FLOAT_BYTES + 1)) {
            fwrite(text, 1, used, f);
            used = 0;
        }
    }
    fwrite(text, 1, used, f);
}
