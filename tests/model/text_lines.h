/* The lines that tests/golden/text_lines.py makes, made again, and its hashes. Tests run in the repository's root. */
#ifndef TEXT_LINES_H
#define TEXT_LINES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "text/utf8.h"

enum { N_TEXT_LINES = 10000, MAX_TEXT_LINE = 8192, MAX_SNIPPETS = 200 };

#define HASH_START 2166136261u

static inline uint32_t hash_bytes(uint32_t h, const void *data, size_t bytes) /* FNV-1a */
{
    for (size_t i = 0; i < bytes; i++)
        h = (h ^ ((const unsigned char *)data)[i]) * 16777619u;
    return h;
}

static inline uint32_t hash_int(uint32_t h, uint32_t n)
{
    const unsigned char bytes[4] = {n & 0xFF, n >> 8 & 0xFF, n >> 16 & 0xFF, n >> 24};
    return hash_bytes(h, bytes, sizeof bytes);
}

/* The lines of a file of tests/golden: lines[at most n], each ended by a zero byte; free *text at the end. */
static inline int golden_lines(const char *name, char **text, char **lines, int n)
{
    char path[256];
    snprintf(path, sizeof path, "tests/golden/%s", name);
    FILE *f = fopen(path, "rb");
    if (!f)
        fail_msg("%s cannot be opened", path);
    enum { LARGEST = 1 << 20 };
    *text = malloc(LARGEST);
    size_t bytes = fread(*text, 1, LARGEST - 1, f);
    fclose(f);
    (*text)[bytes] = 0;
    int count = 0;
    for (char *line = *text, *end; (end = strchr(line, '\n')); line = end + 1) {
        assert_true(count < n);
        *end = 0;
        lines[count++] = line;
    }
    return count;
}

typedef struct text_lines {
    char *text, *snippet[MAX_SNIPPETS];
    unsigned n_snippets;
    uint64_t random;
    char line[MAX_TEXT_LINE];
    size_t bytes;
} text_lines;

static inline void text_lines_init(text_lines *t)
{
    t->n_snippets = (unsigned)golden_lines("snippets.txt", &t->text, t->snippet, MAX_SNIPPETS);
}

static inline unsigned below(text_lines *t, unsigned n) /* splitmix64 */
{
    uint64_t z = t->random += 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return (unsigned)((z ^ z >> 31) % n);
}

static inline void add(text_lines *t, const char *s, size_t bytes)
{
    assert_true(t->bytes + bytes <= MAX_TEXT_LINE);
    memcpy(t->line + t->bytes, s, bytes);
    t->bytes += bytes;
}

static inline void add_characters(text_lines *t)
{
    static const unsigned ranges[][2] = {
        {0x61, 0x7A},       {0x20, 0x7E},     {0x00, 0x20},       {0x80, 0x24F},      {0x300, 0x36F},
        {0x370, 0x5FF},     {0x600, 0x6FF},   {0x8D4, 0x8E1},     {0x900, 0xDFF},     {0x1B00, 0x1BFF},
        {0x1E00, 0x1FFF},   {0x2000, 0x206F}, {0x3000, 0x30FF},   {0x302E, 0x302F},   {0x4E00, 0x9FFF},
        {0xAC00, 0xD7A3},   {0xF900, 0xFFFF}, {0x1D15E, 0x1D182}, {0x1E000, 0x1E02A}, {0x1F300, 0x1F64F},
        {0x1F3FB, 0x1F3FF}, {0x200D, 0x200D}, {0xFE0F, 0xFE0F},   {0x0, 0xD7FF},      {0xE000, 0x10FFFF},
    };
    const unsigned *range = ranges[below(t, sizeof ranges / sizeof ranges[0])];
    for (unsigned n = 1 + below(t, 6); n > 0; n--) {
        char utf8[4];
        add(t, utf8, att_utf8_encode(range[0] + below(t, range[1] - range[0] + 1), utf8));
    }
}

static inline void text_line(text_lines *t, unsigned number)
{
    t->random = number;
    t->bytes = 0;
    for (unsigned n = 1 + below(t, 12); n > 0; n--) {
        unsigned kind = below(t, 16);
        if (kind < 7) {
            const char *snippet = t->snippet[below(t, t->n_snippets)];
            add(t, snippet, strlen(snippet));
        } else if (kind < 13) {
            add_characters(t);
        } else if (kind < 14) {
            for (unsigned m = 1 + below(t, 5); m > 0; m--)
                add(t, &(char){(char)below(t, 256)}, 1);
        } else if (kind < 15) {
            size_t letter = 1 + 2 * below(t, 2);
            for (unsigned m = 45 + below(t, 60); m > 0; m--)
                add(t, "a\xC3\xA9", letter);
        } else {
            add(t, " ", 1);
        }
        if (below(t, 2))
            add(t, " ", 1);
    }
}

#endif
