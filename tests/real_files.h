/* Where tests find what is not in the repository: models and data sets. */
#ifndef REAL_FILES_H
#define REAL_FILES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

enum { MAX_FILE_NAME = 1024 };

/* $ATTEND_MODELS/name, else $XDG_DATA_HOME/attend/models/name, else ~/.local/share/attend/models/name. Where it is not
 * there the test is skipped with a message; where ATTEND_REQUIRE_MODEL=1 says that it must be, the test fails. */
static inline const char *model_folder(const char *name)
{
    static char path[MAX_FILE_NAME];
    const char *models = getenv("ATTEND_MODELS"), *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    if (models)
        snprintf(path, sizeof path, "%s/%s", models, name);
    else if (data)
        snprintf(path, sizeof path, "%s/attend/models/%s", data, name);
    else
        snprintf(path, sizeof path, "%s/.local/share/attend/models/%s", home ? home : "", name);
    if (access(path, R_OK) == 0)
        return path;
    const char *required = getenv("ATTEND_REQUIRE_MODEL");
    if (required && required[0] == '1')
        fail_msg("%s is not there, but ATTEND_REQUIRE_MODEL=1", path);
    print_message("skipped: %s is not there; attend fetch %s downloads it\n", path, name);
    skip();
    return NULL;
}

/* $ATTEND_DATA/name, else ../shared/data/name; NULL if it does not exist. */
static inline const char *data_file(const char *name)
{
    static char path[MAX_FILE_NAME];
    const char *data = getenv("ATTEND_DATA");
    const int n = snprintf(path, sizeof path, "%s/%s", data ? data : "../shared/data", name);
    return n < (int)sizeof path && access(path, R_OK) == 0 ? path : NULL;
}

#endif
