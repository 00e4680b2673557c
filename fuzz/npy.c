/* The input is a .npy file, as the tool reads an index: what is accepted has all its numbers, which are finite, in
 * aligned memory. */
#include "fuzz.h"

#include "cli/base/npy.h"

#include <fcntl.h>
#include <math.h>
#include <sanitizer/common_interface_defs.h>

/* Refusals are printed to standard error. */
static int read_quietly(cli_npy *a, const unsigned char *bytes, size_t size)
{
    static int null = -1, error = -1;
    if (null < 0) {
        null = open("/dev/null", O_WRONLY);
        error = dup(STDERR_FILENO);
        __sanitizer_set_report_fd((void *)(intptr_t)error);
    }
    if (null < 0 || error < 0)
        abort();
    dup2(null, STDERR_FILENO);
    const int code = cli_npy_read(a, "input", bytes, size);
    dup2(error, STDERR_FILENO);
    return code;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    cli_npy a;
    unsigned char *bytes = malloc(size + !size); /* its end is known to a sanitizer */
    if (!bytes)
        abort();
    if (size > 0)
        memcpy(bytes, data, size);
    if (!read_quietly(&a, bytes, size)) {
        fuzz_check((uintptr_t)a.data % sizeof *a.data == 0, "numbers are not aligned");
        fuzz_check(!a.data != !a.codes, "it has neither floats nor codes, or both");
        for (int64_t i = 0; a.data && i < a.rows * a.columns; i++)
            fuzz_check(isfinite(a.data[i]), "a number is not finite");
        for (int64_t i = 0; a.codes && i < a.rows * a.columns; i++)
            fuzz_check(a.codes[i] <= UINT8_MAX, "a code is not a byte"); /* a sanitizer sees each */
    }
    cli_npy_close(&a);
    free(bytes);
    return 0;
}
