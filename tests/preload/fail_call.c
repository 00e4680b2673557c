/* Preloaded into a program: of its calls that change files whose path contains FAIL_CALL_IN, counted from 1, the
 * FAIL_CALL_AT-th fails with the error FAIL_CALL_ERROR, an errno; 0: the process is killed before it. FAIL_CALL_HIT
 * names a file that is made then, so that whoever counts knows when to stop. Calls inside the C library, as those of
 * fwrite, are not seen. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_long calls, fail_at;
static int error;
static const char *within, *hit;

__attribute__((constructor)) static void begin(void)
{
    const char *at = getenv("FAIL_CALL_AT"), *number = getenv("FAIL_CALL_ERROR");
    within = getenv("FAIL_CALL_IN");
    hit = getenv("FAIL_CALL_HIT");
    error = number ? atoi(number) : 0;
    calls = 0;
    fail_at = at ? atol(at) : 0;
}

static int refuses(const char *path)
{
    if (!within || !strstr(path, within) || ++calls != fail_at)
        return 0;
    syscall(SYS_close, (int)syscall(SYS_openat, AT_FDCWD, hit, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    if (!error)
        kill(getpid(), SIGKILL);
    errno = error;
    return 1;
}

static int refuses_file(int fd)
{
    char link[32], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t n = readlink(link, path, sizeof path - 1);
    path[n > 0 ? n : 0] = 0;
    return refuses(path);
}

int open(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    const mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
    va_end(more);
    return (flags & O_CREAT) && refuses(path) ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

ssize_t write(int fd, const void *data, size_t n) { return refuses_file(fd) ? -1 : syscall(SYS_write, fd, data, n); }
int fsync(int fd) { return refuses_file(fd) ? -1 : (int)syscall(SYS_fsync, fd); }
int fdatasync(int fd) { return refuses_file(fd) ? -1 : (int)syscall(SYS_fdatasync, fd); }
int ftruncate(int fd, off_t n) { return refuses_file(fd) ? -1 : (int)syscall(SYS_ftruncate, fd, n); }
int mkdir(const char *path, mode_t mode)
{
    return refuses(path) ? -1 : (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}
int unlink(const char *path) { return refuses(path) ? -1 : (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0); }
int rmdir(const char *path) { return refuses(path) ? -1 : (int)syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR); }

int unlinkat(int at, const char *path, int flags)
{
    return refuses(path) ? -1 : (int)syscall(SYS_unlinkat, at, path, flags);
}

int renameat(int from_at, const char *from, int to_at, const char *to)
{
    return refuses(from) ? -1 : (int)syscall(SYS_renameat2, from_at, from, to_at, to, 0);
}

int rename(const char *from, const char *to) { return renameat(AT_FDCWD, from, AT_FDCWD, to); }
