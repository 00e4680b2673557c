/* Recognizes names of .gguf files, and of the parts of a model in several. */
#include "io/gguf.h"

#include <string.h>
#include <strings.h>

bool att_is_gguf_name(const char *name)
{
    static const char end[] = ".gguf";
    const size_t n = strlen(name), m = sizeof end - 1;
    return n > m && strcasecmp(name + n - m, end) == 0;
}

/* Returns where the end of a path begins that is as in -00001-of-00003.gguf; NULL: it has another end. */
static const char *part_end(const char *path)
{
    static const char end[] = "-#####-of-#####.gguf";
    const size_t n = strlen(path), m = sizeof end - 1;
    bool is = n > m;
    for (size_t i = 0; is && i < m; i++) {
        const char c = path[n - m + i];
        is = end[i] == '#' ? c >= '0' && c <= '9' : c == end[i];
    }
    return is ? path + n - m : NULL;
}

bool att_gguf_is_part_of_same(const char *a, const char *b)
{
    static const char number[] = "-00001";
    const char *end = part_end(a);
    const size_t n = end ? (size_t)(end - a) : 0, m = n + sizeof number - 1;
    return end && part_end(b) && strlen(a) == strlen(b) && !strncmp(a, b, n) && !strcmp(a + m, b + m);
}
