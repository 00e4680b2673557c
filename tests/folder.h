/* A folder of its own for a test. */
#ifndef FOLDER_H
#define FOLDER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

typedef struct test_folder {
    char path[64];
} test_folder;

static inline test_folder folder_new(void)
{
    test_folder f = {"/tmp/attend_test.XXXXXX"};
    assert_non_null(mkdtemp(f.path));
    return f;
}

static inline void folder_remove(const test_folder *f)
{
    char command[160];
    snprintf(command, sizeof command, "rm -r '%s'", f->path);
    assert_int_equal(system(command), 0);
}

/* A new file; the folders of its name are made. */
static inline FILE *folder_open(const test_folder *f, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", f->path, name);
    for (char *slash = strchr(path + strlen(f->path) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(path, 0777);
        *slash = '/';
    }
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    return file;
}

static inline void folder_write(const test_folder *f, const char *name, const char *text)
{
    FILE *file = folder_open(f, name);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

#endif
