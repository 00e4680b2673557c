#include "temporary.h"

#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *cli_temporary_folder(void)
{
    const char *folder = getenv("TMPDIR");
    return folder && *folder ? folder : "/tmp";
}

int cli_temporary_descriptor(void)
{
    char *name;
    if (asprintf(&name, "%s/attend-XXXXXX", cli_temporary_folder()) < 0) {
        errno = ENOMEM;
        return -1;
    }
    const int file = mkostemp(name, O_CLOEXEC), error = errno;
    if (file >= 0)
        unlink(name);
    free(name);
    errno = error;
    return file;
}

int cli_temporary_fail(void)
{
    return cli_fail("a file in %s (TMPDIR), where vectors wait for their ranges, cannot be written or read: %s",
                    cli_temporary_folder(), strerror(errno ? errno : EIO));
}

int cli_temporary_open(FILE **file)
{
    const int descriptor = cli_temporary_descriptor();
    *file = descriptor < 0 ? NULL : fdopen(descriptor, "w+b");
    if (*file)
        return CLI_DONE;
    const int code = cli_temporary_fail();
    if (descriptor >= 0)
        close(descriptor);
    return code;
}
