/* The instruction sets of this build, and those that this machine can run. */
#ifndef ATT_SIMD_ISA_H
#define ATT_SIMD_ISA_H

#include <stdbool.h>

/* Sets are numbered by rank, the best last; 0 is scalar and always usable. */
int att_isa_count(void);
const char *att_isa_name(int isa);
bool att_isa_usable(int isa); /* whether the CPU has it and the OS saves its registers */
int att_isa_best(void);
bool att_isa_pairs_are_slow(void);  /* whether vectors multiply pairs of bf16 at half the rate of f32: Intel's */
int att_isa_find(const char *name); /* -1: no such set in this build */

#endif
