#include "train/shuffle.h"

#include "attend_util.h"

void att_permutation(uint64_t seed, uint32_t stream, int64_t number, int64_t n, uint32_t *x)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = (uint32_t)i;
    for (int64_t i = n - 1; i > 0; i--) {
        uint32_t words[4];
        att_random(seed, (const uint32_t[]){(uint32_t)i, (uint32_t)(i >> 32), (uint32_t)number, stream}, words);
        const uint64_t wide = (uint64_t)words[0] << 32 | words[1];
        const int64_t k = (int64_t)(wide % (uint64_t)(i + 1));
        const uint32_t other = x[k];
        x[k] = x[i];
        x[i] = other;
    }
}
