/* Random operands of the peaks on words of two numbers of bf16 or four of int8. They are random because a processor
 * multiplies zeros at a higher clock. */
#ifndef ATT_KERNEL_PEAK_WORDS_H
#define ATT_KERNEL_PEAK_WORDS_H

#include <stdint.h>

/* The bits that are random, and those that are set, in a word: numbers of bf16 with a magnitude from 1 to 2, so that no
 * sum overflows; all numbers of int8. */
typedef struct peak_words {
    uint32_t random, set;
} peak_words;
static const peak_words peak_bf16_words = {0x807f807f, 0x3f803f80}, peak_int8_words = {0xffffffff, 0};

/* Fills words [n], from a generator of Marsaglia (2003, xorshift32). */
static inline void peak_fill(peak_words kind, int n, uint32_t *words)
{
    uint32_t x = 2463534242;
    for (int i = 0; i < n; i++) {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        words[i] = (x & kind.random) | kind.set;
    }
}

#endif
