/* The public random number generator, the one of dropout. */
#include "attend_util.h"
#include "kernel/philox.h"

void att_random(uint64_t seed, const uint32_t counter[4], uint32_t words[4])
{
    if (counter && words)
        att_philox(seed, counter, words);
}
