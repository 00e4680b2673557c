#include "npy.h"
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEADER = 128 }; /* a multiple of 64, as the format requires */
static const char magic[6] = "\x93NUMPY";

void cli_npy_header(FILE *f, int64_t rows, int64_t columns)
{
    char text[HEADER - 10 + 1];
    int n = snprintf(text, sizeof text, "{'descr': '<f4', 'fortran_order': False, 'shape': (%lld, %lld), }",
                     (long long)rows, (long long)columns);
    memset(text + n, ' ', sizeof text - (size_t)n);
    text[HEADER - 10 - 1] = '\n';
    fwrite(magic, 1, sizeof magic, f);
    fwrite("\1\0\x76\0", 1, 4, f); /* version 1.0, HEADER - 10 = 0x76 bytes follow */
    fwrite(text, 1, HEADER - 10, f);
}

/* The text after 'key': in the header's dictionary, or NULL. */
static const char *value(const char *header, const char *key)
{
    char quoted[32];
    snprintf(quoted, sizeof quoted, "'%s':", key);
    const char *p = strstr(header, quoted);
    if (!p)
        return NULL;
    p += strlen(quoted);
    return p + strspn(p, " ");
}

static int check_header(cli_npy *a, const char *path, const char *header, size_t data_bytes)
{
    const char *descr = value(header, "descr"), *order = value(header, "fortran_order"),
               *shape = value(header, "shape");
    if (!descr || !order || !shape)
        return cli_fail("%s: the header names no descr, fortran_order or shape", path);
    if (strncmp(descr, "'<f4'", 5))
        return cli_fail("%s: the numbers are %.*s, but must be '<f4' (float32)", path, (int)strcspn(descr, ",}"),
                        descr);
    if (strncmp(order, "False", 5))
        return cli_fail("%s: the array is in Fortran order, but must be in C order", path);
    long long rows, columns;
    int used = 0;
    if (sscanf(shape, "(%lld, %lld%n", &rows, &columns, &used) != 2 || shape[used] != ')' || rows < 0 || columns < 1)
        return cli_fail("%s: the shape is %.*s), but must be (rows, columns)", path, (int)strcspn(shape, ")"), shape);
    size_t bytes;
    if (__builtin_mul_overflow((size_t)rows, (size_t)columns, &bytes) ||
        __builtin_mul_overflow(bytes, sizeof(float), &bytes) || bytes != data_bytes)
        return cli_fail("%s: the shape is (%lld, %lld), but the file has %zu bytes of numbers", path, rows, columns,
                        data_bytes);
    a->rows = rows;
    a->columns = columns;
    return CLI_DONE;
}

static int check(cli_npy *a, const char *path)
{
    const unsigned char *p = a->map;
    if (a->bytes < 12 || memcmp(p, magic, sizeof magic))
        return cli_fail("%s: is no .npy file", path);
    if (p[6] < 1 || p[6] > 3)
        return cli_fail("%s: version %d of the .npy format is not known", path, p[6]);
    size_t start = p[6] == 1 ? 10 : 12;
    size_t length = (size_t)p[8] | (size_t)p[9] << 8;
    if (p[6] > 1)
        length |= (size_t)p[10] << 16 | (size_t)p[11] << 24;
    if (length > a->bytes - start)
        return cli_fail("%s: the header has %zu bytes, but the file only %zu", path, length, a->bytes);
    if ((start + length) % sizeof(float))
        return cli_fail("%s: the numbers begin at byte %zu, which is no multiple of 4", path, start + length);
    char *header = strndup((const char *)p + start, length);
    if (!header)
        return cli_fail_memory();
    int code = check_header(a, path, header, a->bytes - start - length);
    free(header);
    a->data = (const float *)(p + start + length);
    return code;
}

static int check_numbers(const cli_npy *a, const char *path)
{
    for (int64_t i = 0; i < a->rows * a->columns; i++)
        if (!isfinite(a->data[i]))
            return cli_fail("%s: row %lld has a number that is %s", path, (long long)(i / a->columns) + 1,
                            isnan(a->data[i]) ? "NaN" : "infinite");
    return CLI_DONE;
}

int cli_npy_open(cli_npy *a, const char *path)
{
    *a = (cli_npy){0};
    struct stat s;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* O_NONBLOCK: do not wait for the writer of a pipe */
    if (fd < 0 || fstat(fd, &s)) {
        int code = cli_fail_errno(path);
        if (fd >= 0)
            close(fd);
        return code;
    }
    int code = CLI_DONE;
    if (!S_ISREG(s.st_mode) || s.st_size == 0) {
        code = cli_fail("%s: is no .npy file", path);
    } else {
        a->bytes = (size_t)s.st_size;
        a->map = mmap(NULL, a->bytes, PROT_READ, MAP_PRIVATE, fd, 0);
        if (a->map == MAP_FAILED) {
            a->map = NULL;
            code = cli_fail_errno(path);
        }
    }
    close(fd);
    if (!code)
        code = check(a, path);
    if (!code)
        code = check_numbers(a, path);
    if (code)
        cli_npy_close(a);
    return code;
}

void cli_npy_close(cli_npy *a)
{
    if (a->map)
        munmap(a->map, a->bytes);
    *a = (cli_npy){0};
}
