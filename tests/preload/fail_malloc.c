/* Preloaded into a program: the FAIL_MALLOC_AT-th call of the C library's allocation gives nothing. Then the file that
 * FAIL_MALLOC_HIT names is made, so that whoever counts knows when to stop.
 * With FAIL_MALLOC_LIST none fails, but that file gets the numbers of those that are worth it, a line each: of the
 * calls from the same place, by the same callers, the first, second, fourth, eighth and so on. */
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *p, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

static atomic_long calls, fail_at;
static const char *hit;
static FILE *list;

/* Counts how often the same callers have called this. 0: never before. */
static unsigned seen_before(void)
{
    enum { CALLERS = 3, OWN = 2, PLACES = 1 << 16 };
    static struct {
        uint64_t callers;
        unsigned calls;
    } places[PLACES];
    void *frame[OWN + CALLERS];
    uint64_t hash = 14695981039346656037u;
    for (int i = OWN, n = backtrace(frame, OWN + CALLERS); i < n; i++)
        hash = (hash ^ (uintptr_t)frame[i]) * 1099511628211u;
    size_t at = hash % PLACES;
    while (places[at].calls && places[at].callers != hash)
        at = (at + 1) % PLACES;
    places[at].callers = hash;
    return places[at].calls++;
}

static void list_call(long number)
{
    static _Thread_local bool inside; /* what follows allocates as well */
    if (inside)
        return;
    inside = true;
    const unsigned before = seen_before();
    if ((before & (before + 1)) == 0) {
        fprintf(list, "%ld\n", number);
        fflush(list);
    }
    inside = false;
}

__attribute__((constructor)) static void begin(void)
{
    const char *to = getenv("FAIL_MALLOC_LIST");
    void *frame[1];
    backtrace(frame, 1); /* loads what it needs */
    list = to ? fopen(to, "we") : NULL;
    const char *at = getenv("FAIL_MALLOC_AT");
    hit = getenv("FAIL_MALLOC_HIT");
    calls = 0;
    fail_at = at ? atol(at) : 0;
}

static int refuses(void)
{
    const long number = ++calls;
    if (list)
        list_call(number);
    if (number != fail_at)
        return 0;
    close(open(hit, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t bytes) { return refuses() ? NULL : __libc_malloc(bytes); }
void *calloc(size_t n, size_t bytes) { return refuses() ? NULL : __libc_calloc(n, bytes); }
void *realloc(void *p, size_t bytes) { return refuses() ? NULL : __libc_realloc(p, bytes); }
void *memalign(size_t alignment, size_t bytes) { return refuses() ? NULL : __libc_memalign(alignment, bytes); }
void *aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }
int posix_memalign(void **out, size_t alignment, size_t bytes)
{
    void *p = memalign(alignment, bytes);
    if (p)
        *out = p;
    return p ? 0 : ENOMEM;
}
