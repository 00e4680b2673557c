/* Preloaded into a program: the FAIL_MALLOC_AT-th call of the C library's allocation gives nothing. Then the file that
 * FAIL_MALLOC_HIT names is made, so that whoever counts knows when to stop. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *p, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

static atomic_long calls, fail_at;
static const char *hit;

__attribute__((constructor)) static void begin(void)
{
    const char *at = getenv("FAIL_MALLOC_AT");
    hit = getenv("FAIL_MALLOC_HIT");
    calls = 0;
    fail_at = at ? atol(at) : 0;
}

static int refuses(void)
{
    if (++calls != fail_at)
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
