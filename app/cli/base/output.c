#include "output.h"
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A new file beside the target, with the rights that the target has or would get. */
static int open_temporary(cli_output *o, const struct stat *old)
{
    char *folder = strdup(o->target);
    if (!folder || asprintf(&o->temporary, "%s/.attend-XXXXXX", dirname(folder)) < 0)
        o->temporary = NULL;
    free(folder);
    if (!o->temporary)
        return cli_fail_memory();
    int fd = mkostemp(o->temporary, O_CLOEXEC);
    if (fd < 0) {
        free(o->temporary);
        o->temporary = NULL;
        return cli_fail_errno(o->path);
    }
    mode_t mask = umask(0);
    umask(mask);
    if (fchmod(fd, old ? old->st_mode & 07777 : 0666 & ~mask)) {
        /* a file system without rights: the file is as good as it gets */
    }
    o->file = fdopen(fd, "wb");
    return o->file ? CLI_DONE : cli_fail_errno(o->path);
}

int cli_output_open(cli_output *o, const char *path)
{
    *o = (cli_output){.path = path};
    if (!path || strcmp(path, "-") == 0) {
        *o = (cli_output){.file = stdout, .path = "standard output"};
        return CLI_DONE;
    }
    struct stat s;
    bool exists = stat(path, &s) == 0;
    if (exists && S_ISDIR(s.st_mode))
        return cli_fail("%s: is a folder, not a file", path);
    if (exists && !S_ISREG(s.st_mode)) {
        o->file = fopen(path, "wb");
        return o->file ? CLI_DONE : cli_fail_errno(path);
    }
    o->target = exists ? realpath(path, NULL) : strdup(path); /* a link stays a link */
    int code = o->target ? open_temporary(o, exists ? &s : NULL) : cli_fail_errno(path);
    return code ? cli_output_close(o, code) : code;
}

int cli_output_flush(cli_output *o)
{
    errno = 0;
    if (fflush(o->file) == 0 && !ferror(o->file))
        return CLI_DONE;
    return cli_fail("%s: %s", o->path, errno ? strerror(errno) : "not everything could be written");
}

int cli_output_close(cli_output *o, int code)
{
    if (o->file && !code)
        code = cli_output_flush(o);
    if (o->file && o->file != stdout) {
        if (!code && o->temporary && fsync(fileno(o->file)))
            code = cli_fail_errno(o->path);
        if (fclose(o->file) && !code)
            code = cli_fail_errno(o->path);
    }
    if (!code && cli_signal)
        code = CLI_INTERRUPTED;
    if (o->temporary && !code && rename(o->temporary, o->target))
        code = cli_fail_errno(o->path);
    if (o->temporary && code)
        unlink(o->temporary);
    free(o->temporary);
    free(o->target);
    *o = (cli_output){0};
    return code;
}

/* ---- Numbers --------------------------------------------------------------- */

static const double power[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12};

/* The two roundings in double are far below half of the ninth digit, and nine digits tell all floats apart. */
size_t cli_put_float(char *to, float x)
{
    double a = x < 0 ? -(double)x : (double)x;
    if (!(a >= 1e-4 && a < 1e8)) /* zero, NaN and what needs an exponent */
        return (size_t)snprintf(to, CLI_FLOAT_BYTES, "%.9g", (double)x);
    int decimals = 8; /* behind the point, for nine digits in all */
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

/* ---- JSON text ------------------------------------------------------------- */

/* Bytes of the UTF-8 character at p [n], or minus the bytes that make one U+FFFD: those that could begin a character
 * (Unicode, "maximal subpart"). */
static int character(const unsigned char *p, size_t n)
{
    static const struct {
        unsigned char first, last, low, high; /* lead byte in [first, last], second byte in [low, high] */
        int bytes;
    } form[] = {{0x00, 0x7F, 0, 0, 1},       {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3},
                {0xE1, 0xEC, 0x80, 0xBF, 3}, {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3},
                {0xF0, 0xF0, 0x90, 0xBF, 4}, {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4}};
    for (size_t i = 0; i < sizeof form / sizeof *form; i++) {
        if (*p < form[i].first || *p > form[i].last)
            continue;
        for (int k = 1; k < form[i].bytes; k++) {
            unsigned char low = k == 1 ? form[i].low : 0x80, high = k == 1 ? form[i].high : 0xBF;
            if ((size_t)k == n || p[k] < low || p[k] > high)
                return -k;
        }
        return form[i].bytes;
    }
    return -1;
}

void cli_write_json(FILE *f, const char *text, size_t bytes)
{
    const unsigned char *p = (const unsigned char *)text, *end = p + bytes, *plain = p; /* not yet written */
    fputc('"', f);
    while (p < end) {
        int n = character(p, (size_t)(end - p));
        if (n > 1 || (n == 1 && *p >= 0x20 && *p != '"' && *p != '\\' && *p != 0x7F)) {
            p += n;
            continue;
        }
        fwrite(plain, 1, (size_t)(p - plain), f);
        if (n < 0)
            fputs("\\ufffd", f);
        else if (*p == '"' || *p == '\\')
            fprintf(f, "\\%c", *p);
        else
            fprintf(f, "\\u%04x", *p);
        p += n < 0 ? -n : n;
        plain = p;
    }
    fwrite(plain, 1, (size_t)(p - plain), f);
    fputc('"', f);
}
