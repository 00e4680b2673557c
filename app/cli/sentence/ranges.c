#include "ranges.h"

#include "cli/base/command.h"
#include "cli/base/npy.h"
#include "cli/base/output.h"

#include <stdlib.h>
#include <string.h>

char *cli_ranges_path(const char *vectors)
{
    char *path;
    return asprintf(&path, "%s.ranges.npy", vectors) < 0 ? NULL : path;
}

/* Opens a matrix of floats with dim columns. */
static int open_columns(cli_npy *a, const char *path, int64_t dim, const char *model)
{
    int code = cli_npy_open_floats(a, path);
    if (!code && a->columns != dim) {
        code = cli_fail("%s: has %lld columns, but the vectors of %s have %lld numbers", path, (long long)a->columns,
                        model, (long long)dim);
        cli_npy_close(a);
    }
    return code;
}

int cli_ranges_read(const char *path, int64_t dim, const char *model, float **ranges)
{
    cli_npy a;
    int code = open_columns(&a, path, dim, model);
    if (code)
        return code;
    if (a.rows != 2)
        code = cli_fail("%s: has %lld rows, but ranges have 2, the lowest and the highest numbers; vectors to compute "
                        "them from are an option of \"attend embed\", --calibration",
                        path, (long long)a.rows);
    for (int64_t d = 0; !code && d < dim; d++)
        if (!(a.data[d] <= a.data[dim + d]))
            code = cli_fail("%s: column %lld is from %g to %g, but the lowest number comes first", path,
                            (long long)d + 1, (double)a.data[d], (double)a.data[dim + d]);
    *ranges = code ? NULL : malloc(2 * (size_t)dim * sizeof **ranges);
    if (*ranges)
        memcpy(*ranges, a.data, 2 * (size_t)dim * sizeof **ranges);
    else if (!code)
        code = cli_fail_memory();
    cli_npy_close(&a);
    return code;
}

int cli_ranges_of_vectors(att_ctx *ctx, const char *path, int64_t dim, const char *model, float **ranges)
{
    cli_npy a;
    int code = open_columns(&a, path, dim, model);
    if (code)
        return code;
    *ranges = a.rows ? malloc(2 * (size_t)dim * sizeof **ranges) : NULL;
    if (a.rows == 0)
        code = cli_fail("%s: has no vectors", path);
    else if (!*ranges)
        code = cli_fail_memory();
    if (!code)
        code = cli_status(ctx, att_ranges_begin(dim, *ranges));
    if (!code)
        code = cli_status(ctx, att_ranges_add(ctx, a.data, a.rows, dim, *ranges));
    cli_npy_close(&a);
    return code;
}

int cli_ranges_write(const char *path, int64_t dim, const float *ranges)
{
    cli_output out;
    const int code = cli_output_open(&out, path);
    if (code)
        return code;
    cli_npy_header(out.file, CLI_NPY_FLOAT32, 2, dim);
    fwrite(ranges, sizeof *ranges, 2 * (size_t)dim, out.file);
    return cli_output_close(&out, code);
}
