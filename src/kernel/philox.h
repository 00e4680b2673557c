/* Philox4x32-10, a random number generator without state (Salmon, Moraes, Dror, Shaw 2011): ten rounds turn a key of 64
 * bits and a counter of 128 into four words. Any number can be computed directly, so it does not depend on order,
 * threads or batch. */
#ifndef ATT_KERNEL_PHILOX_H
#define ATT_KERNEL_PHILOX_H

#include <stdint.h>

enum { ATT_PHILOX_ROUNDS = 10 };
static const uint32_t att_philox_multiplier[2] = {0xd2511f53, 0xcd9e8d57};
static const uint32_t att_philox_key_step[2] = {0x9e3779b9, 0xbb67ae85};

/* Applies one round to c [4] with the round's key. */
static inline void att_philox_round(const uint32_t key[2], uint32_t c[4])
{
    const uint64_t first = (uint64_t)att_philox_multiplier[0] * c[0];
    const uint64_t second = (uint64_t)att_philox_multiplier[1] * c[2];
    c[0] = (uint32_t)(second >> 32) ^ c[1] ^ key[0];
    c[1] = (uint32_t)second;
    c[2] = (uint32_t)(first >> 32) ^ c[3] ^ key[1];
    c[3] = (uint32_t)first;
}

/* Computes words [4] of counter [4]; the key is the seed, low word first. */
static inline void att_philox(uint64_t seed, const uint32_t counter[4], uint32_t words[4])
{
    uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    for (int i = 0; i < 4; i++)
        words[i] = counter[i];
    for (int r = 0; r < ATT_PHILOX_ROUNDS; r++) {
        att_philox_round(key, words);
        key[0] += att_philox_key_step[0];
        key[1] += att_philox_key_step[1];
    }
}

#endif
