/* Everything that the library asks of the operating system (Linux). */
#include "base/base.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* ---- processors */

/* A small file's text, as much as fits; false if there is none. */
static bool read_text(const char *path, char *text, size_t size)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    size_t n = 0;
    ssize_t got;
    while (n < size - 1 && (got = read(fd, text + n, size - 1 - n)) > 0)
        n += (size_t)got;
    text[n] = '\0';
    close(fd);
    return n > 0;
}

/* CPUs that the quota of one cgroup folder allows, rounded up; 0: no limit there. */
static int quota_of(const char *folder)
{
    char path[4352], text[64];
    long long quota = 0, period = 0;
    snprintf(path, sizeof path, "%s/cpu.max", folder); /* v2: "200000 100000", or "max 100000" */
    if (read_text(path, text, sizeof text)) {
        if (sscanf(text, "%lld %lld", &quota, &period) != 2)
            return 0;
    } else {
        snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder); /* v1: -1 is no limit */
        if (!read_text(path, text, sizeof text) || sscanf(text, "%lld", &quota) != 1)
            return 0;
        snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
        if (!read_text(path, text, sizeof text) || sscanf(text, "%lld", &period) != 1)
            return 0;
    }
    if (quota <= 0 || period <= 0 || quota / period >= ATT_MAX_THREADS)
        return 0;
    return (int)((quota + period - 1) / period);
}

static int smaller_limit(int a, int b) { return a && (!b || a < b) ? a : b; }

/* The least quota of a group and all above it. In a container the group's path may be the host's, which
 * is not there; the walk ends at the mount itself, which then is the container's group. */
static int quota_upwards(const char *mount, const char *group)
{
    char folder[4224];
    const int n = snprintf(folder, sizeof folder, "%s%s", mount, group);
    if (n < 0 || (size_t)n >= sizeof folder)
        return quota_of(mount);
    int least = 0;
    for (size_t end = (size_t)n; end >= strlen(mount); end--) {
        if (folder[end] != '/' && folder[end] != '\0')
            continue;
        folder[end] = '\0';
        least = smaller_limit(quota_of(folder), least);
    }
    return least;
}

int att_os_cpu_quota(const char *root)
{
    static const char *const mounts[] = {"", "/unified", "/cpu", "/cpu,cpuacct"};
    char path[4096], text[8192];
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    if (!read_text(path, text, sizeof text))
        return 0;
    int least = 0;
    char *rest = text, *line;
    while ((line = strsep(&rest, "\n"))) { /* "0::/group" (v2), "4:cpu,cpuacct:/group" (v1) */
        strsep(&line, ":");
        const char *controllers = strsep(&line, ":");
        if (!line || (*controllers && !strstr(controllers, "cpu")))
            continue;
        for (size_t i = 0; i < sizeof mounts / sizeof mounts[0]; i++) {
            snprintf(path, sizeof path, "%s/sys/fs/cgroup%s", root, mounts[i]);
            least = smaller_limit(quota_upwards(path, line), least);
        }
    }
    return least;
}

int att_os_cpu_count(void)
{
    cpu_set_t allowed[8]; /* 8192 processors */
    int n = 0;
    if (!sched_getaffinity(0, sizeof allowed, allowed))
        n = CPU_COUNT_S(sizeof allowed, allowed);
    n = smaller_limit(att_os_cpu_quota(""), n);
    return n > 0 ? n : 1;
}

/* ---- time */

double att_os_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- memory */

void *att_os_alloc(size_t bytes, size_t alignment)
{
    const size_t huge_page = (size_t)2 << 20;
    const bool large = bytes >= 2 * huge_page;
    void *p;
    if (posix_memalign(&p, large && alignment < huge_page ? huge_page : alignment, bytes))
        return NULL;
    if (large)
        madvise(p, bytes / huge_page * huge_page, MADV_HUGEPAGE); /* a hint: small pages do as well */
    return p;
}

void att_os_free(void *p) { free(p); }

size_t att_os_memory(void)
{
    char text[512];
    unsigned long long kilobytes = 0;
    if (!read_text("/proc/meminfo", text, sizeof text))
        return 0;
    const char *line = strstr(text, "MemAvailable:");
    return line && sscanf(line, "MemAvailable: %llu", &kilobytes) == 1 ? (size_t)kilobytes * 1024 : 0;
}

/* ---- threads */

bool att_os_thread(pthread_t *thread, void *(*run)(void *), void *arg)
{
    sigset_t all, before;
    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before)) /* the new thread inherits it: signals go to the host's threads */
        return false;
    const bool started = !pthread_create(thread, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

void att_os_wait(_Atomic uint32_t *word, uint32_t value)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

void att_os_wake(_Atomic uint32_t *word, int count)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}
