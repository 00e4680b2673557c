/* The C library's allocation with a failure at the n-th call, for the whole program, so that libraries' own calls
 * count too. Include in one file of a test program. With a sanitizer, which has its own, nothing fails.
 *
 *     malloc_fails_at(n);  ...  malloc_fails_never();      malloc_calls, malloc_live: since malloc_fails_at
 *
 * jansson's own calls are counted as live but never fail: where a token of over 16 bytes cannot grow, jansson 2.14
 * drops characters or stops at an assertion of its own (load.c, lex_scan_string), which no caller can help.
 */
#ifndef FAIL_MALLOC_H
#define FAIL_MALLOC_H

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FAIL_MALLOC_WORKS false
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define FAIL_MALLOC_WORKS false
#endif
#endif
#if !defined(FAIL_MALLOC_WORKS) && defined(__GLIBC__)
#define FAIL_MALLOC_WORKS true
#elif !defined(FAIL_MALLOC_WORKS)
#define FAIL_MALLOC_WORKS false
#endif

static atomic_bool malloc_armed;
static atomic_long malloc_calls, malloc_live, malloc_fail_at;

static inline void malloc_fails_at(long n)
{
    malloc_calls = malloc_live = 0;
    malloc_fail_at = n;
    malloc_armed = true;
}

static inline void malloc_fails_never(void) { malloc_armed = false; }

#if FAIL_MALLOC_WORKS
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *p, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *p);

static bool malloc_refuses(const void *caller)
{
    Dl_info from;
    if (!malloc_armed || (dladdr(caller, &from) && strstr(from.dli_fname, "jansson")) ||
        ++malloc_calls != malloc_fail_at)
        return false;
    errno = ENOMEM;
    return true;
}

static void *malloc_counted(void *p)
{
    if (malloc_armed && p)
        malloc_live++;
    return p;
}

void *malloc(size_t bytes)
{
    return malloc_refuses(__builtin_return_address(0)) ? NULL : malloc_counted(__libc_malloc(bytes));
}
void *calloc(size_t n, size_t bytes)
{
    return malloc_refuses(__builtin_return_address(0)) ? NULL : malloc_counted(__libc_calloc(n, bytes));
}
void *realloc(void *p, size_t bytes)
{
    if (malloc_refuses(__builtin_return_address(0)))
        return NULL;
    return p ? __libc_realloc(p, bytes) : malloc_counted(__libc_realloc(p, bytes));
}
void *memalign(size_t alignment, size_t bytes)
{
    return malloc_refuses(__builtin_return_address(0)) ? NULL : malloc_counted(__libc_memalign(alignment, bytes));
}
void *aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }
int posix_memalign(void **out, size_t alignment, size_t bytes)
{
    void *p = memalign(alignment, bytes);
    if (p)
        *out = p;
    return p ? 0 : ENOMEM;
}
void free(void *p)
{
    if (malloc_armed && p)
        malloc_live--;
    __libc_free(p);
}
#endif

#endif
