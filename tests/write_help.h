/* For tests of what writes files: listing a folder, a disk that is full, a process that is killed. */
#ifndef WRITE_HELP_H
#define WRITE_HELP_H

#include "folder.h"

#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* FOLDER/NAME, until the next call but three. */
static inline const char *path_in(const test_folder *f, const char *name)
{
    static char path[4][400];
    static int next;
    char *p = path[next++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", f->path, name);
    return p;
}

static inline int files_in(const test_folder *f)
{
    int count = 0;
    DIR *d = opendir(f->path);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));)
        count += e->d_name[0] != '.';
    closedir(d);
    return count;
}

/* The file's bytes are these. */
static inline void file_has(const test_folder *f, const char *name, const void *data, size_t bytes)
{
    FILE *file = fopen(path_in(f, name), "rb");
    assert_non_null(file);
    char *is = malloc(bytes + 1);
    assert_int_equal(fread(is, 1, bytes + 1, file), bytes);
    assert_memory_equal(is, data, bytes);
    free(is);
    fclose(file);
}

/* Limits the size of files to `bytes`; -1: no limit. */
static inline void limit_files(long bytes)
{
    struct rlimit limit;
    signal(SIGXFSZ, SIG_IGN); /* an error instead */
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes < 0 ? limit.rlim_max : (rlim_t)bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* Runs body(arg), which does not return, in a process of its own and kills it after a while. */
static inline void run_and_kill(void (*body)(void *arg), void *arg, useconds_t microseconds)
{
    int status;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        body(arg);
        _exit(1);
    }
    usleep(microseconds);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status)); /* it had not ended before */
}

#endif
