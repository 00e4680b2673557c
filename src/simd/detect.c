/* Finds the sets that can run on this machine. Compiled without instruction-set flags. */
#include "simd/isa.h"
#include "att_lists.h"

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
/* XCR0: SSE|AVX, opmask|ZMM beside them, and AMX's configuration and tiles */
enum { ATT_STATE_YMM = 0x06, ATT_STATE_ZMM = 0xe6, ATT_STATE_TILES = 0x600e6 };

/* The OS saves these registers when it switches threads; the CPU having them is not enough. Unused where kernels are
 * compiled for the scalar set alone (ATT_SETS). */
__attribute__((unused)) static bool att_cpu_saves(uint32_t state)
{
    uint32_t a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
        return false;
    __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
    return (a & state) == state;
}
#endif

#define ATT_SIMD_DETECT
#include "att_detect.h"

typedef struct set {
    const char *name;
    bool (*usable)(void);
} set;

static const set sets[] = {
#define SET(name) {#name, att_detect_##name},
    ATT_SET_LIST(SET)
#undef SET
};
enum { N_SETS = sizeof sets / sizeof sets[0] };

int att_isa_count(void) { return N_SETS; }
const char *att_isa_name(int isa) { return sets[isa].name; }
bool att_isa_usable(int isa) { return sets[isa].usable(); }

int att_isa_best(void)
{
    int best = N_SETS - 1;
    while (best > 0 && !sets[best].usable())
        best--;
    return best;
}

int att_isa_find(const char *name)
{
    for (int i = 0; i < N_SETS; i++)
        if (!strcmp(sets[i].name, name))
            return i;
    return -1;
}

bool att_isa_pairs_are_slow(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_is("intel");
#else
    return false;
#endif
}
