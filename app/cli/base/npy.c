#include "npy.h"
#include "command.h"

#include "attend_text.h"

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

/* Types that are read and written */
static const struct {
    const char *descr;
    size_t bytes;
} types[] = {
    [CLI_NPY_FLOAT32] = {"'<f4'", sizeof(float)}, [CLI_NPY_INT8] = {"'|i1'", 1}, [CLI_NPY_UINT8] = {"'|u1'", 1}};
enum { TYPES = sizeof types / sizeof *types };

void cli_npy_header(FILE *f, cli_npy_type type, int64_t rows, int64_t columns)
{
    char text[HEADER - 10 + 1];
    int n = snprintf(text, sizeof text, "{'descr': %s, 'fortran_order': False, 'shape': (%lld, %lld), }",
                     types[type].descr, (long long)rows, (long long)columns);
    memset(text + n, ' ', sizeof text - (size_t)n);
    text[HEADER - 10 - 1] = '\n';
    fwrite(magic, 1, sizeof magic, f);
    fwrite("\1\0\x76\0", 1, 4, f); /* version 1.0, HEADER - 10 = 0x76 bytes follow */
    fwrite(text, 1, HEADER - 10, f);
}

/* Returns the text after 'key': in the header's dictionary, or NULL. */
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

/* Returns the name of a dtype of NumPy, for messages. */
static const char *dtype_name(const char *descr)
{
    static const struct {
        const char *descr, *name;
    } names[] = {{"'<f2'", "float16"},    {"'<f8'", "float64"},
                 {"'|b1'", "bool"},       {"'<i2'", "int16"},
                 {"'<i4'", "int32"},      {"'<i8'", "int64"},
                 {"'<u2'", "uint16"},     {"'<u4'", "uint32"},
                 {"'<u8'", "uint64"},     {"'|O'", "objects of Python"},
                 {"'>f2'", "big-endian"}, {"'>f4'", "big-endian float32"},
                 {"'>f8'", "big-endian"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strncmp(descr, names[i].descr, strlen(names[i].descr)))
            return names[i].name;
    return "another type";
}

/* "(rows, columns)"; Python 2 wrote "(3L, 4L)". */
static bool read_shape(const char *shape, int64_t size[2])
{
    const char *begins[] = {"(", ","};
    for (int i = 0; i < 2; i++) {
        char *end;
        if (*shape++ != *begins[i])
            return false;
        shape += strspn(shape, " ");
        errno = 0;
        size[i] = strtoll(shape, &end, 10);
        if (end == shape || *shape == '-' || *shape == '+' || errno)
            return false;
        shape = end + (*end == 'L');
    }
    return *shape == ')';
}

static int check_header(cli_npy *a, const char *path, const char *header, size_t data_bytes)
{
    const char *descr = value(header, "descr"), *order = value(header, "fortran_order"),
               *shape = value(header, "shape");
    int64_t size[2];
    size_t bytes;
    if (!descr || !order || !shape)
        return cli_fail("%s: the header names no descr, fortran_order or shape", path);
    int type = 0;
    while (type < TYPES && strncmp(descr, types[type].descr, strlen(types[type].descr)))
        type++;
    if (type == TYPES)
        return cli_fail("%s: the numbers are %.*s (%s), but must be '<f4' (float32): save "
                        "numpy.ascontiguousarray(x, '<f4')",
                        path, (int)strcspn(descr, ",}"), descr, dtype_name(descr));
    if (strncmp(order, "False", 5))
        return cli_fail("%s: the array is in Fortran order, but must be in C order: save "
                        "numpy.ascontiguousarray(x, '<f4')",
                        path);
    if (!read_shape(shape, size) || size[1] < 1)
        return cli_fail("%s: the shape is %.*s), but must be (rows, columns)", path, (int)strcspn(shape, ")"), shape);
    if (__builtin_mul_overflow((size_t)size[0], (size_t)size[1], &bytes) ||
        __builtin_mul_overflow(bytes, types[type].bytes, &bytes) || bytes != data_bytes)
        return cli_fail("%s: the shape is (%lld, %lld), but the file has %zu bytes of numbers", path,
                        (long long)size[0], (long long)size[1], data_bytes);
    a->type = (cli_npy_type)type;
    a->rows = size[0];
    a->columns = size[1];
    return CLI_DONE;
}

static int check(cli_npy *a, const char *path, const unsigned char *p, size_t bytes)
{
    if (bytes >= 4 && !memcmp(p, "PK\3\4", 4))
        return cli_fail("%s: is not a .npy file but a zip archive, as a .npz file is: save one array with numpy.save",
                        path);
    if (bytes < 12 || memcmp(p, magic, sizeof magic)) {
        att_text_start start = {.size = sizeof start};
        const att_status other = att_text_begin(path, p, bytes, &start); /* the error states the kind of the file */
        return other ? cli_status(NULL, other) : cli_fail("%s: is not a .npy file", path);
    }
    if (p[6] < 1 || p[6] > 3)
        return cli_fail("%s: version %d of the .npy format is not known", path, p[6]);
    size_t start = p[6] == 1 ? 10 : 12;
    size_t length = (size_t)p[8] | (size_t)p[9] << 8;
    if (p[6] > 1)
        length |= (size_t)p[10] << 16 | (size_t)p[11] << 24;
    if (length > bytes - start)
        return cli_fail("%s: the header has %zu bytes, but the file only %zu", path, length, bytes);
    char *header = strndup((const char *)p + start, length);
    if (!header)
        return cli_fail_memory();
    start += length;
    int code = check_header(a, path, header, bytes - start);
    free(header);
    if (!code && a->type != CLI_NPY_FLOAT32) {
        a->codes = p + start;
        return code;
    }
    a->data = (const float *)(p + start);
    if (code || (uintptr_t)a->data % sizeof(float) == 0)
        return code;
    a->own = malloc(bytes - start + 1); /* the header has any length */
    if (!a->own)
        return cli_fail_memory();
    a->data = memcpy(a->own, p + start, bytes - start);
    return CLI_DONE;
}

static int check_numbers(const cli_npy *a, const char *path)
{
    for (int64_t i = 0; a->data && i < a->rows * a->columns; i++)
        if (!isfinite(a->data[i]))
            return cli_fail("%s: row %lld has a number that is %s", path, (long long)(i / a->columns) + 1,
                            isnan(a->data[i]) ? "NaN" : "infinite");
    return CLI_DONE;
}

int cli_npy_read(cli_npy *a, const char *path, const void *file, size_t bytes)
{
    *a = (cli_npy){0};
    int code = check(a, path, file, bytes);
    if (!code)
        code = check_numbers(a, path);
    if (code)
        cli_npy_close(a);
    return code;
}

int cli_npy_open(cli_npy *a, const char *path)
{
    *a = (cli_npy){0};
    struct stat s;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* O_NONBLOCK: do not wait for the writer of a pipe */
    if (fd < 0)
        return cli_fail_errno(path);
    int code = fstat(fd, &s) ? cli_fail_errno(path) : CLI_DONE;
    if (!code && (!S_ISREG(s.st_mode) || s.st_size == 0))
        code = cli_fail("%s: is not a .npy file", path);
    void *map = code ? NULL : mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED) {
        map = NULL;
        code = cli_fail_errno(path);
    }
    close(fd);
    code = code ? code : cli_npy_read(a, path, map, (size_t)s.st_size);
    if (code && map)
        munmap(map, (size_t)s.st_size);
    else if (map) {
        a->map = map;
        a->bytes = (size_t)s.st_size;
    }
    return code;
}

int cli_npy_open_floats(cli_npy *a, const char *path)
{
    int code = cli_npy_open(a, path);
    if (!code && !a->data) {
        code = cli_fail("%s: the numbers are %s, but must be '<f4' (float32)", path, types[a->type].descr);
        cli_npy_close(a);
    }
    return code;
}

void cli_npy_close(cli_npy *a)
{
    if (a->map)
        munmap(a->map, a->bytes);
    free(a->own);
    *a = (cli_npy){0};
}
