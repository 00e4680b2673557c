/* All calls to the operating system (Linux). */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* ---- limits: files of /proc and of cgroups */

/* Reads the beginning of a small file as a string; false if it cannot be read. */
static bool read_text(char *text, size_t size, const char *folder, const char *name)
{
    char path[4352];
    snprintf(path, sizeof path, "%s/%s", folder, name);
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

/* Returns the integer at the beginning of a file; -1 if there is none ("max"). */
static int64_t read_number(const char *folder, const char *name)
{
    char text[64];
    long long x;
    return read_text(text, sizeof text, folder, name) && sscanf(text, "%lld", &x) == 1 ? x : -1;
}

/* Returns the smaller of two limits; 0 means no limit. */
static int64_t smaller_limit(int64_t a, int64_t b) { return a && (!b || a < b) ? a : b; }

typedef struct resource {
    const char *controller;
    const char *mounts[4]; /* below /sys/fs/cgroup: v2, v2 beside v1, v1 */
    int64_t (*limit)(const char *folder);
} resource;

/* Returns the smallest limit of a cgroup and its ancestors. In a container the path may be the host's and not exist;
 * the walk ends at the mount point, which is the container's group then. */
static int64_t limit_upwards(const resource *r, const char *mount, const char *group)
{
    char folder[4224];
    const size_t top = strlen(mount);
    const int n = snprintf(folder, sizeof folder, "%s%s", mount, group);
    int64_t min = r->limit(mount);
    for (size_t end = n > 0 && (size_t)n < sizeof folder ? (size_t)n : top; end > top; end--) {
        if (folder[end] != '/' && folder[end] != '\0')
            continue;
        folder[end] = '\0';
        min = smaller_limit(r->limit(folder), min);
    }
    return min;
}

static int64_t cgroup_limit(const resource *r, const char *root)
{
    char text[8192], mount[4096];
    if (!read_text(text, sizeof text, root, "proc/self/cgroup"))
        return 0;
    int64_t min = 0;
    char *rest = text, *line;
    while ((line = strsep(&rest, "\n"))) { /* "0::/group" (v2), "4:cpu,cpuacct:/group" (v1) */
        strsep(&line, ":");
        const char *controllers = strsep(&line, ":");
        if (!line || (*controllers && !strstr(controllers, r->controller)))
            continue;
        for (size_t i = 0; i < 4 && r->mounts[i]; i++) {
            snprintf(mount, sizeof mount, "%s/sys/fs/cgroup%s", root, r->mounts[i]);
            min = smaller_limit(limit_upwards(r, mount, line), min);
        }
    }
    return min;
}

/* ---- processors */

/* Returns the CPU quota of one group, rounded up. v2: "200000 100000" or "max 100000"; v1: two files, -1: none. */
static int64_t cpu_limit(const char *folder)
{
    char text[64];
    long long quota = -1, period = -1;
    if (!read_text(text, sizeof text, folder, "cpu.max")) {
        quota = read_number(folder, "cpu.cfs_quota_us");
        period = read_number(folder, "cpu.cfs_period_us");
    } else if (sscanf(text, "%lld %lld", &quota, &period) != 2) {
        return 0;
    }
    return quota > 0 && period > 0 ? quota / period + (quota % period > 0) : 0;
}

int64_t att_os_cpu_quota(const char *root)
{
    static const resource cpu = {"cpu", {"", "/unified", "/cpu", "/cpu,cpuacct"}, cpu_limit};
    return cgroup_limit(&cpu, root);
}

int att_os_cpu_count(void)
{
    cpu_set_t allowed[8]; /* 8192 processors */
    int n = 1;
    if (!sched_getaffinity(0, sizeof allowed, allowed))
        n = CPU_COUNT_S(sizeof allowed, allowed);
    return (int)smaller_limit(att_os_cpu_quota(""), n);
}

size_t att_os_listed_cache(const char *root, int level)
{
    char folder[4224], type[16];
    for (int i = 0; i < 8; i++) { /* index0 to index3 or so: level, type, and size, "48K" */
        snprintf(folder, sizeof folder, "%s/sys/devices/system/cpu/cpu0/cache/index%d", root, i);
        if (read_number(folder, "level") == level && read_text(type, sizeof type, folder, "type") && *type != 'I') {
            const int64_t size = read_number(folder, "size");
            return size > 0 && size < 1 << 30 ? (size_t)size << 10 : 0;
        }
    }
    return 0;
}

size_t att_os_cache(int level)
{
#ifdef _SC_LEVEL1_DCACHE_SIZE /* glibc, from the processor itself */
    static const int name[] = {_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE};
    const long bytes = sysconf(name[level - 1]);
    return bytes > 0 ? (size_t)bytes : 0;
#else
    return att_os_listed_cache("", level);
#endif
}

/* ---- registers */

/* Linux saves tile registers only for processes that have requested them. The first answer stays: packed weights are
 * laid out for it. */
bool att_os_allow_tiles(void)
{
#if defined(__x86_64__) && defined(SYS_arch_prctl)
    enum { REQUEST_STATE = 0x1023, TILES = 18 }; /* ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA (Linux 5.16) */
    enum { UNKNOWN, REFUSED, ALLOWED };
    static _Atomic int answer;
    int before = UNKNOWN;
    if (atomic_load_explicit(&answer, memory_order_relaxed) == UNKNOWN) {
        const bool allowed = syscall(SYS_arch_prctl, REQUEST_STATE, TILES) == 0;
        atomic_compare_exchange_strong(&answer, &before, allowed ? ALLOWED : REFUSED);
    }
    return atomic_load_explicit(&answer, memory_order_relaxed) == ALLOWED;
#else
    return false;
#endif
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
    const bool large = bytes >= huge_page;
    void *p;
    if (posix_memalign(&p, large && alignment < huge_page ? huge_page : alignment, bytes))
        return NULL;
    if (large)
        madvise(p, bytes / huge_page * huge_page, MADV_HUGEPAGE); /* a hint; failure is harmless */
    return p;
}

void att_os_free(void *p) { free(p); }

void att_os_release(const void *p, size_t bytes)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)p;
    const uintptr_t first = (at + page - 1) / page * page, end = (at + bytes) / page * page;
    if (first < end)
        madvise((void *)first, end - first, MADV_DONTNEED); /* if it fails, the pages stay */
}

/* Returns the memory that one group may still allocate. v1 has a huge number for no limit. */
static int64_t memory_limit(const char *folder)
{
    int64_t limit = read_number(folder, "memory.max"), used = read_number(folder, "memory.current");
    if (used < 0) {
        limit = read_number(folder, "memory.limit_in_bytes");
        used = read_number(folder, "memory.usage_in_bytes");
    }
    if (limit < 0 || used < 0)
        return 0;
    return limit > used ? limit - used : 1;
}

size_t att_os_memory(const char *root)
{
    static const resource memory = {"memory", {"", "/unified", "/memory"}, memory_limit};
    char text[512];
    long long kilobytes = 0;
    if (read_text(text, sizeof text, root, "proc/meminfo")) {
        const char *line = strstr(text, "MemAvailable:");
        if (line)
            sscanf(line, "MemAvailable: %lld", &kilobytes);
    }
    return (size_t)smaller_limit(cgroup_limit(&memory, root), kilobytes * 1024);
}

/* ---- threads */

bool att_os_thread(pthread_t *thread, void *(*run)(void *), void *arg)
{
    enum { STACK = 1 << 20 }; /* bodies use a fifth of it at most */
    static const int faults[] = {SIGBUS, SIGFPE, SIGILL, SIGSEGV};
    size_t usual;
    sigset_t all, before;
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes))
        return false;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        sigdelset(&all, faults[i]); /* raised by the thread itself, so the host's handlers must receive them here */
    bool started = !pthread_attr_getstacksize(&attributes, &usual) &&
                   (usual >= STACK || !pthread_attr_setstacksize(&attributes, STACK)) &&
                   !pthread_sigmask(SIG_SETMASK, &all, &before);
    if (started) { /* the new thread inherits the mask: signals are delivered to the host's threads */
        const int refused = pthread_create(thread, &attributes, run, arg);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        started = !refused;
        errno = refused;
    }
    pthread_attr_destroy(&attributes);
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

void att_os_yield(void) { sched_yield(); }

/* ---- processes */

/* Identifies the process by a page instead of getpid, which takes as long as a small computation. */
att_os_process att_os_process_here(void)
{
    att_os_process p = {.id = getpid()};
#ifdef MADV_WIPEONFORK /* Linux 4.14 */
    _Atomic bool *page =
        mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return p;
    *page = true;
    p.here = page;
    if (madvise(page, (size_t)sysconf(_SC_PAGESIZE), MADV_WIPEONFORK))
        att_os_process_forget(&p);
#endif
    return p;
}

void att_os_process_renew(att_os_process *p)
{
    if (p->here)
        atomic_store_explicit(p->here, true, memory_order_release);
    atomic_store_explicit(&p->id, getpid(), memory_order_release);
}

void att_os_process_forget(att_os_process *p)
{
    if (p->here)
        munmap((void *)(uintptr_t)p->here, (size_t)sysconf(_SC_PAGESIZE));
    p->here = NULL;
}

bool att_os_process_is(const att_os_process *p)
{
    return p->here ? atomic_load_explicit(p->here, memory_order_acquire)
                   : atomic_load_explicit(&p->id, memory_order_acquire) == getpid();
}

/* ---- locks, which hold the id of the holder's process */

void att_lock_acquire(att_lock *l)
{
    const uint32_t mine = (uint32_t)getpid();
    uint32_t holder = 0;
    while (
        !atomic_compare_exchange_strong_explicit(&l->holder, &holder, mine, memory_order_acquire, memory_order_relaxed))
        if (holder == mine) { /* another thread; a lock of another process (before a fork) is taken over */
            att_os_wait(&l->holder, mine);
            holder = 0;
        }
}

void att_lock_release(att_lock *l)
{
    atomic_store_explicit(&l->holder, 0, memory_order_release);
    att_os_wake(&l->holder, 1);
}
