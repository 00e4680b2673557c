/* The register that says how floating-point numbers are rounded, for tests of hosts that have set it. */
#ifndef FP_CONTROL_H
#define FP_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <immintrin.h>
enum { FLUSH_UP = 0x1f80 | 0x8000 | 0x0040 | 0x4000 }; /* denormals are 0, also where they are read; round up */
static inline uint64_t fp_control(void) { return _mm_getcsr(); }
static inline void set_fp_control(uint64_t x) { _mm_setcsr((unsigned)x); }
#elif defined(__aarch64__)
enum { FLUSH_UP = 1 << 24 | 1 << 22 };
static inline uint64_t fp_control(void)
{
    uint64_t x;
    __asm__ volatile("mrs %0, fpcr" : "=r"(x));
    return x;
}
static inline void set_fp_control(uint64_t x) { __asm__ volatile("msr fpcr, %0" : : "r"(x)); }
#else
enum { FLUSH_UP = 1 };
static inline uint64_t fp_control(void) { return 0; }
static inline void set_fp_control(uint64_t x) { (void)x; }
#endif

/* Can it be set here? Not under valgrind, which has no such processor. */
static inline bool fp_control_works(void)
{
    const uint64_t before = fp_control();
    set_fp_control(FLUSH_UP);
    const bool works = fp_control() == FLUSH_UP;
    set_fp_control(before);
    return works;
}

#endif
