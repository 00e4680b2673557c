#include "labels.h"
#include "cli/base/command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_integer(const char *text)
{
    char *end;
    errno = 0;
    strtoll(text, &end, 10);
    return end > text && !*end && !errno;
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Compares by number, then as words, so that "1" and "01" differ. */
static int by_number(const void *a, const void *b)
{
    const long long x = strtoll(*(char *const *)a, NULL, 10), y = strtoll(*(char *const *)b, NULL, 10);
    return x != y ? (x < y ? -1 : 1) : by_text(a, b);
}

/* Sorts the different labels by text. */
static int sort(const char *data, const size_t *begin, int64_t stride, int64_t n, const char ***word,
                int64_t *different)
{
    const char **w = malloc((size_t)n * sizeof *w);
    *word = w;
    *different = 0;
    if (!w)
        return cli_fail_memory();
    for (int64_t i = 0; i < n; i++)
        w[i] = data + begin[i * stride];
    qsort((void *)w, (size_t)n, sizeof *w, by_text);
    for (int64_t i = 0; i < n; i++)
        if (*different == 0 || strcmp(w[*different - 1], w[i]) != 0)
            w[(*different)++] = w[i];
    return CLI_DONE;
}

int cli_labels_count(const char *data, const size_t *begin, int64_t stride, int64_t n, int64_t *different)
{
    const char **word;
    const int code = sort(data, begin, stride, n, &word, different);
    free((void *)word);
    return code;
}

int cli_labels_number(const char *data, const size_t *begin, int64_t stride, int64_t n, int32_t *label,
                      const char ***word, int64_t *different)
{
    const int code = sort(data, begin, stride, n, word, different);
    bool integers = true;
    for (int64_t i = 0; i < *different; i++)
        integers = integers && is_integer((*word)[i]);
    int (*const order)(const void *, const void *) = integers ? by_number : by_text;
    if (!code && integers)
        qsort((void *)*word, (size_t)*different, sizeof **word, order);
    for (int64_t i = 0; !code && i < n; i++) {
        const char *text = data + begin[i * stride];
        const char *const *found = bsearch(&text, (void *)*word, (size_t)*different, sizeof **word, order);
        label[i] = (int32_t)(found - *word);
    }
    return code;
}
