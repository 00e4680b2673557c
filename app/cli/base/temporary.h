/* Files without a name, in $TMPDIR or /tmp: gone when they are closed, however the process ends. */
#ifndef CLI_BASE_TEMPORARY_H
#define CLI_BASE_TEMPORARY_H

#include <stdio.h>

/* $TMPDIR, or /tmp */
const char *cli_temporary_folder(void);
/* Opens one: a descriptor, or -1 and errno. */
int cli_temporary_descriptor(void);
/* Opens one for writing and reading. */
int cli_temporary_open(FILE **file);
/* Reports that it cannot be written or read, by errno; CLI_FAILED. */
int cli_temporary_fail(void);

#endif
