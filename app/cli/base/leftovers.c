#include "leftovers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, MAX_DESCRIPTORS = 1024 };

static const char unfinished[] = ".unfinished";

/* Finds the path of an open file: path [PATH_BYTES - 16]. Returns false if it has none. */
static bool path_of(int fd, char *path)
{
    char link[32] = "/proc/self/fd/", digits[8];
    size_t n = strlen(link), k = 0;
    for (int rest = fd; k == 0 || rest > 0; rest /= 10)
        digits[k++] = (char)('0' + rest % 10);
    while (k > 0)
        link[n++] = digits[--k];
    const ssize_t bytes = readlink(link, path, PATH_BYTES - 16);
    if (bytes <= 0 || bytes == PATH_BYTES - 16)
        return false;
    path[bytes] = '\0';
    return *path == '/';
}

/* Returns whether a path ends like that of a temporary file, in ".unfinished-" and a number. */
static bool is_temporary(const char *path)
{
    const char *dash = strrchr(path, '-');
    const size_t n = sizeof unfinished - 1;
    return dash && dash[1] && !dash[1 + strspn(dash + 1, "0123456789")] && (size_t)(dash - path) > n &&
           !strncmp(dash - n, unfinished, n);
}

/* Returns whether the path has this end. */
static bool has_end(const char *path, const char *end)
{
    const size_t n = strlen(path), m = strlen(end);
    return n > m && !strcmp(path + n - m, end);
}

/* Returns whether the folder is being written: it has a lock, and its mark (whose path is `mark`) or the name of a
 * training's model. */
static bool is_written(const char *path, const char *mark)
{
    if (!has_end(path, "/model.unfinished") && (!has_end(path, unfinished) || access(mark, F_OK)))
        return false;
    const int again = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    const bool locked = again >= 0 && flock(again, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK;
    if (again >= 0)
        close(again);
    return locked;
}

/* An entry as the kernel writes it; readdir would allocate. */
typedef struct entry {
    uint64_t number;
    int64_t next;
    unsigned short bytes;
    unsigned char type;
    char name[];
} entry;

/* Removes the files of a folder and, down to `depth`, its folders. */
static void remove_files(int fd, int depth)
{
    _Alignas(entry) char list[2048];
    lseek(fd, 0, SEEK_SET);
    for (long n; (n = syscall(SYS_getdents64, fd, list, sizeof list)) > 0;)
        for (long at = 0; at < n;) {
            const entry *e = (const entry *)(list + at);
            at += e->bytes;
            if (!strcmp(e->name, ".") || !strcmp(e->name, "..") || !unlinkat(fd, e->name, 0) || depth == 0)
                continue;
            const int folder = openat(fd, e->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            if (folder < 0)
                continue;
            remove_files(folder, depth - 1);
            close(folder);
            unlinkat(fd, e->name, AT_REMOVEDIR);
        }
}

void cli_remove_leftovers(void)
{
    char path[PATH_BYTES], mark[PATH_BYTES];
    struct stat s;
    for (int fd = STDERR_FILENO + 1; fd < MAX_DESCRIPTORS; fd++) {
        const int flags = fcntl(fd, F_GETFL);
        if (flags < 0 || fstat(fd, &s) || !path_of(fd, path))
            continue;
        if (S_ISREG(s.st_mode) && (flags & O_ACCMODE) != O_RDONLY && is_temporary(path))
            unlink(path);
        strcpy(mark, path);
        strcat(mark, ".mark");
        if (S_ISDIR(s.st_mode) && is_written(path, mark)) {
            remove_files(fd, 2);
            rmdir(path);
            unlink(mark);
        }
    }
}
