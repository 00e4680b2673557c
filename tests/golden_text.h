/* Golden files of lines: a name, then its numbers. */
#ifndef GOLDEN_TEXT_H
#define GOLDEN_TEXT_H

#include "check.h"

/* What follows `name` and a space on a line; valid until the next call. Fails where there is no such line. */
static inline char *golden_words(const char *path, const char *name)
{
    static char line[1 << 16];
    const size_t length = strlen(name);
    FILE *file = fopen(path, "r");
    if (!file)
        fail_msg("%s cannot be read", path);
    bool found = false;
    while (!found && fgets(line, sizeof line, file))
        found = !strncmp(line, name, length) && line[length] == ' ';
    fclose(file);
    if (!found)
        fail_msg("%s has no %s", path, name);
    return line + length + 1;
}

/* The numbers of the line that begins with `name`, to x [most]: how many there are. Fails where there is no such line.
 */
static inline int golden_line(const char *path, const char *name, double *x, int most)
{
    const char *at = golden_words(path, name);
    int n = 0;
    for (char *end;; at = end, n++) {
        const double value = strtod(at, &end);
        if (end == at)
            return n;
        assert_true(n < most);
        x[n] = value;
    }
}

#endif
