/* Fills the kernel tables: the scalar set first, then the functions of each better set. */
#include "kernel/kernel.h"
#include "simd/isa.h"
#include "att_lists.h"

#include <pthread.h>

#define DECLARE(name, isa) void att_kernel_##name##_##isa(att_kernels *k);
#define FILL(name, isa) att_kernel_##name##_##isa(k);
#define SET(isa)                                                                                                       \
    ATT_KERNEL_LIST_##isa(DECLARE) static void fill_##isa(att_kernels *k) { ATT_KERNEL_LIST_##isa(FILL) }
ATT_SET_LIST(SET)
#undef SET

static void (*const fills[])(att_kernels *) = {
#define SET(isa) fill_##isa,
    ATT_SET_LIST(SET)
#undef SET
};
enum { N_SETS = sizeof fills / sizeof fills[0] };

static att_kernels tables[N_SETS];
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Fills the tables that this machine can use: filling a table runs code that was compiled for its set. */
static void fill_usable(void)
{
    for (int i = 0; i < N_SETS; i++) {
        fills[0](&tables[i]);
        if (att_isa_usable(i))
            fills[i](&tables[i]);
    }
}

const att_kernels *att_kernels_of(int isa)
{
    pthread_once(&once, fill_usable);
    return &tables[isa];
}
