/* The context and the folder of a test program whose tests write files. */
#ifndef FOLDER_CONTEXT_H
#define FOLDER_CONTEXT_H

#include "context.h"
#include "folder.h"

static test_folder folder;

static inline int set_up(void **state)
{
    folder = folder_new();
    return open_context(state);
}

static inline int tear_down(void **state)
{
    folder_remove(&folder);
    return close_context(state);
}

/* The path of a file in the folder, until the next call. */
static inline const char *path_of(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder.path, name);
    return path;
}

#endif
