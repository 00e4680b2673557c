/* Which instruction sets this build has, and which this machine can run. */
#ifndef ATT_SIMD_ISA_H
#define ATT_SIMD_ISA_H

#include <stdbool.h>

/* Sets are numbered by rank, the best last; 0 is scalar and always usable. */
int att_isa_count(void);
const char *att_isa_name(int isa);
bool att_isa_usable(int isa); /* by the CPU and by what the OS saves */
int att_isa_best(void);
int att_isa_find(const char *name); /* -1: no such set in this build */

#endif
