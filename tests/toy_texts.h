/* A small language to learn: each word has its translation, and translations stand in reverse order. */
#ifndef TOY_TEXTS_H
#define TOY_TEXTS_H

#include "check.h"
#include "folder.h"

enum { TOY_WORDS = 12 };
static const char *const toy_words[2][TOY_WORDS] = {
    {"eins", "zwei", "drei", "vier", "rot", "blau", "klein", "neu", "Haus", "Hund", "Ball", "Tag"},
    {"one", "two", "three", "four", "red", "blue", "small", "new", "house", "dog", "ball", "day"}};

static inline void toy_write(const test_folder *folder, const char *source, const char *target, uint64_t seed,
                             int lines)
{
    FILE *f[2] = {folder_open(folder, source), folder_open(folder, target)};
    for (int i = 0; i < lines; i++) {
        const int n = 1 + (int)(check_bits(seed, (uint64_t)i) % 5);
        for (int w = 0; w < 2 * n; w++) {
            const int side = w / n, at = side ? 2 * n - 1 - w : w;
            const int word = (int)(check_bits(seed + 1, (uint64_t)(8 * i + at)) % TOY_WORDS);
            fprintf(f[side], "%s%s", toy_words[side][word], w % n == n - 1 ? "\n" : " ");
        }
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(fclose(f[i]), 0);
}

#endif
