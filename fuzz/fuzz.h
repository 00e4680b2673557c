/* Shared by the fuzz targets: a context, checks that stop the run, and folders made from an input. */
#ifndef FUZZ_H
#define FUZZ_H

#include "attend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

/* Opens a context with one thread, so that findings are reproducible. */
static inline att_ctx *fuzz_context(void)
{
    static att_ctx *ctx;
    if (!ctx && att_open(&ctx, ATT_OPTIONS(att_config, .n_threads = 1)))
        abort();
    return ctx;
}

/* Fails the run unless a property holds. */
static inline void fuzz_check(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "fuzz: %s: %s\n", what, att_error(NULL));
    abort();
}

/* ---- an input as several files: sections with this byte between them, which neither JSON nor vocab.txt may contain */

enum { FUZZ_SEPARATOR = 0x1e };

typedef struct fuzz_section {
    const unsigned char *data;
    size_t size;
} fuzz_section;

/* Takes the next section off the input; data NULL: there is no further one. */
static inline fuzz_section fuzz_next(fuzz_section *rest)
{
    const fuzz_section all = *rest;
    const unsigned char *end = all.data ? memchr(all.data, FUZZ_SEPARATOR, all.size) : NULL;
    *rest = (fuzz_section){0};
    if (!end)
        return all;
    const size_t size = (size_t)(end - all.data);
    *rest = (fuzz_section){end + 1, all.size - size - 1};
    return (fuzz_section){all.data, size};
}

/* Returns a folder of this process, in memory if possible. */
static inline const char *fuzz_folder(void)
{
    static char folder[64];
    if (!*folder) {
        snprintf(folder, sizeof folder, "%s/attend-fuzz-XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
        if (!mkdtemp(folder))
            abort();
    }
    return folder;
}

/* FOLDER/NAME with the section as its content; an empty section is a missing file. */
static inline void fuzz_write(const char *name, fuzz_section content)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", fuzz_folder(), name);
    if (content.size == 0) {
        unlink(path);
        return;
    }
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(content.data, 1, content.size, f) != content.size || fclose(f))
        abort();
}

/* FOLDER/NAME as a folder. */
static inline void fuzz_make_folder(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", fuzz_folder(), name);
    mkdir(path, 0700);
}

/* Removes the folder at exit; names end with NULL, contents before their folder. */
static inline void fuzz_remove(const char *const *names)
{
    char path[256];
    for (; *names; names++) {
        snprintf(path, sizeof path, "%s/%s", fuzz_folder(), *names);
        remove(path);
    }
    rmdir(fuzz_folder());
}

#endif
