/* What tests of numbers share: instruction sets, random inputs, distances, and memory that
 * notices trespassers. */
#ifndef CHECK_H
#define CHECK_H

#include "attend.h"
#include "simd/isa.h"
#include "tensor/tensor.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- less, where everything takes fifty times as long */

/* 1, or n where ATTEND_TEST_LESS=1, as all have it but ./dev test: loops over like cases go in steps of this. Every
 * kind of case stays, only fewer of its sizes and combinations. */
static inline int check_step(int n)
{
    const char *less = getenv("ATTEND_TEST_LESS");
    return less && *less == '1' ? n : 1;
}

/* ---- instruction sets */

/* Asked once for each: on a virtual machine the question takes as long as a test. */
static inline bool check_usable(int isa)
{
    static enum { UNKNOWN, NO, YES } known[16];
    if (!known[isa])
        known[isa] = att_isa_usable(isa) ? YES : NO;
    return known[isa] == YES;
}

/* The next one that this machine can run, of $ATT_ISA only that: for (int isa = -1; check_next_isa(&isa);) */
static inline bool check_next_isa(int *isa)
{
    const char *name = getenv("ATT_ISA");
    const int only = name && *name ? att_isa_find(name) : -1;
    if (name && *name && (only < 0 || !check_usable(only)))
        fail_msg("ATT_ISA=%s cannot run here", name);
    do
        ++*isa;
    while (*isa < att_isa_count() && (!check_usable(*isa) || (only >= 0 && *isa != only)));
    return *isa < att_isa_count();
}

/* A context on the set of this name, NULL: the best. */
static inline att_ctx *check_open(const char *isa, int threads)
{
    att_ctx *ctx;
    assert_int_equal(att_open(&ctx, ATT_OPTIONS(att_config, .n_threads = threads, .isa = isa)), ATT_OK);
    return ctx;
}

/* A context on each of them, one after the other: for (att_ctx *ctx = NULL; check_next_context(&ctx, threads);) */
static inline bool check_next_context(att_ctx **ctx, int threads)
{
    int isa = *ctx ? att_isa_find(att_isa(*ctx)) : -1;
    att_close(*ctx);
    *ctx = check_next_isa(&isa) ? check_open(att_isa_name(isa), threads) : NULL;
    return *ctx;
}

/* A context on each of them at the same time, for what is the same on all and computed once: how many. */
enum { CHECK_MOST_SETS = 16 };
static inline int check_open_all(att_ctx **contexts, int threads)
{
    int n = 0;
    for (int isa = -1; check_next_isa(&isa);)
        contexts[n++] = check_open(att_isa_name(isa), threads);
    return n;
}
static inline void check_close_all(att_ctx **contexts, int n)
{
    while (n > 0)
        att_close(contexts[--n]);
}

/* The last error's sentence has these words in it. */
static inline void check_says(const att_ctx *ctx, const char *words)
{
    if (!strstr(att_error(ctx), words))
        fail_msg("\"%s\" is not in \"%s\"", words, att_error(ctx));
}

/* A file was refused with this status, and a sentence that names it and has these words. */
static inline void check_file_refused(const att_ctx *ctx, att_status is, att_status expected, const char *file,
                                      const char *words)
{
    if (is != expected || !strstr(att_error(ctx), words) || !strstr(att_error(ctx), file))
        fail_msg("%s: \"%s\" is not %s with \"%s\" and \"%s\"", att_status_name(is), att_error(ctx),
                 att_status_name(expected), file, words);
}

/* How many numbers a tensor has; 0 where it is not given. */
static inline int64_t check_count(const att_tensor *t) { return t->rank ? att_count(t) : 0; }

/* ---- random numbers: a function of (seed, i) alone (splitmix64) */

static inline uint64_t check_bits(uint64_t seed, uint64_t i)
{
    uint64_t z = seed * 0xd1342543de82ef95u + (i + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* in [-1, 1) */
static inline float check_uniform(uint64_t seed, uint64_t i)
{
    return (float)(int32_t)(check_bits(seed, i) >> 32) * 0x1p-31f;
}

/* x [n] = centre + spread * uniform */
static inline void check_fill(float *x, int64_t n, uint64_t seed, float centre, float spread)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = centre + spread * check_uniform(seed, (uint64_t)i);
}

/* n of them in [-1, 1); free() them */
static inline float *check_numbers(int64_t n, uint64_t seed)
{
    float *x = malloc((size_t)(n + 1) * sizeof *x);
    assert_non_null(x);
    check_fill(x, n, seed, 0, 1);
    return x;
}

/* ---- distances */

static inline uint32_t check_float_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* One unit in the last place of a float near x, a denormal's where x is smaller than all normal numbers. */
static inline double check_unit(double x)
{
    int e;
    frexp(x, &e);
    return ldexp(1, (e < FLT_MIN_EXP ? FLT_MIN_EXP : e) - FLT_MANT_DIG);
}

/* How far got is from expected in such units; 0 for NaN and NaN, or for infinities of one sign. */
static inline double check_ulp(double expected, float got)
{
    if (isnan(expected) && isnan(got))
        return 0;
    if (isinf(got) && (isinf(expected) || fabs(expected) > FLT_MAX)) /* rounds to infinity */
        return !signbit(got) == !signbit(expected) ? 0 : INFINITY;
    if (isnan(expected) || isnan(got) || isinf(expected) || isinf(got))
        return INFINITY;
    return fabs(got - expected) / check_unit(expected);
}

/* Fails unless |got - expected| <= tolerance, or both are NaN or the same infinity. */
static inline void check_near(double expected, float got, double tolerance, const char *what, ...)
{
    if (fabs(got - expected) <= tolerance || check_ulp(expected, got) == 0)
        return;
    char text[200];
    va_list args;
    va_start(args, what);
    vsnprintf(text, sizeof text, what, args);
    va_end(args);
    fail_msg("%s: %.9g, expected %.9g +- %.3g", text, (double)got, expected, tolerance);
}

/* ---- memory with a fence: a byte read or written behind the end faults, one written before the start is found */

typedef struct check_fence {
    unsigned char *start, *end; /* pages that may be used, then one that may not */
    size_t placed;
} check_fence;

enum { CHECK_CANARY = 0xa5, CHECK_ZONE = 4096 /* bytes of canaries before what is placed */ };

static inline check_fence check_fence_new(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), room = ((bytes + CHECK_ZONE) / page + 1) * page;
    unsigned char *p = mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED || mprotect(p + room, page, PROT_NONE))
        abort();
    return (check_fence){.start = p, .end = p + room};
}

static inline void check_fence_free(check_fence *f)
{
    munmap(f->start, (size_t)(f->end - f->start) + (size_t)sysconf(_SC_PAGESIZE));
}

/* The last `bytes` before the fence; they and a zone before them are filled with the canary. */
static inline void *check_place(check_fence *f, size_t bytes)
{
    assert_true(bytes + CHECK_ZONE <= (size_t)(f->end - f->start));
    f->placed = bytes;
    return (unsigned char *)memset(f->end - bytes - CHECK_ZONE, CHECK_CANARY, bytes + CHECK_ZONE) + CHECK_ZONE;
}

/* Fails if something before the placed bytes was written. */
static inline void check_untouched(const check_fence *f, const char *what)
{
    for (const unsigned char *p = f->end - f->placed - CHECK_ZONE; p < f->end - f->placed; p++)
        if (*p != CHECK_CANARY)
            fail_msg("%s: wrote %td bytes before its output", what, f->end - f->placed - p);
}

#endif
