#include "image_overlap.h"
#include "cli/base/command.h"

#include <stdlib.h>
#include <string.h>

enum { SHOWN = 10 };

static int64_t count_of(const att_image_set *s)
{
    att_image_set_info info = {.size = sizeof info};
    return att_image_set_describe(s, &info) ? 0 : info.images;
}

static int by_text(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/* ---- groups */

/* Returns the names of the groups of all images [n], sorted, malloc'd. */
static const char **groups_of(const att_image_set *s, int64_t n)
{
    const char **name = malloc(((size_t)n + 1) * sizeof *name);
    for (int64_t i = 0; name && i < n; i++)
        name[i] = att_image_set_group_of(s, i);
    if (name)
        qsort(name, (size_t)n, sizeof *name, by_text);
    return name;
}

int cli_groups_refuse_shared(const att_image_set *train, const att_image_set *valid)
{
    const int64_t n = count_of(train), m = count_of(valid);
    if (n == 0 || m == 0 || !att_image_set_group_of(train, 0))
        return CLI_DONE;
    const char **a = groups_of(train, n), **b = groups_of(valid, m), *first = NULL;
    int64_t shared = 0;
    for (int64_t i = 0; a && b && i < m; i++)
        if ((i == 0 || strcmp(b[i], b[i - 1]) != 0) && bsearch(&b[i], a, (size_t)n, sizeof *a, by_text)) {
            first = first ? first : b[i];
            shared++;
        }
    const int code = !a || !b ? cli_fail_memory()
                     : shared ? cli_fail("--group: %lld group%s of --valid %s in --data, too, such as \"%.200s\"",
                                         (long long)shared, shared == 1 ? "" : "s", shared == 1 ? "is" : "are", first)
                              : CLI_DONE;
    free(a);
    free(b);
    return code;
}

/* ---- pixels */

static int by_path(const void *a, const void *b)
{
    const cli_image_file *x = a, *y = b;
    return strcmp(x->path, y->path);
}

static int by_pixels(const void *a, const void *b)
{
    const cli_image_file *x = a, *y = b;
    return x->pixels != y->pixels ? (x->pixels > y->pixels) - (x->pixels < y->pixels) : strcmp(x->path, y->path);
}

/* Reports which images of `valid` have the pixels of images of `train`. file [n]: the files of both, by path. */
static void note_twice(const cli_image_file *file, int64_t n, const att_image_set *train, const att_image_set *valid)
{
    const int64_t trained = count_of(train), validated = count_of(valid);
    cli_image_file *known = malloc(((size_t)trained + 1) * sizeof *known);
    int64_t twice = 0;
    if (!known)
        return;
    for (int64_t i = 0; i < trained; i++) {
        const cli_image_file wanted = {.path = (char *)(uintptr_t)att_image_set_path(train, i)};
        known[i] = *(const cli_image_file *)bsearch(&wanted, file, (size_t)n, sizeof *file, by_path);
    }
    qsort(known, (size_t)trained, sizeof *known, by_pixels);
    for (int64_t i = 0; i < validated; i++) {
        const cli_image_file wanted = {.path = (char *)(uintptr_t)att_image_set_path(valid, i)};
        const cli_image_file *is = bsearch(&wanted, file, (size_t)n, sizeof *file, by_path);
        int64_t low = 0, high = trained;
        while (low < high) {
            const int64_t middle = low + (high - low) / 2;
            if (known[middle].pixels < is->pixels)
                low = middle + 1;
            else
                high = middle;
        }
        if (low < trained && known[low].pixels == is->pixels && twice++ < SHOWN)
            cli_note("%s, for validation, has the pixels of %s", is->path, known[low].path);
    }
    if (twice)
        cli_note("%lld of %lld images for validation are in training, too, so that the validation measures too much",
                 (long long)twice, (long long)validated);
    free(known);
}

void cli_images_note_twice(const cli_training_images *t, const att_image_set *train, const att_image_set *valid)
{
    cli_image_file *file = t->resume || t->n == 0 ? NULL : malloc((size_t)t->n * sizeof *file);
    if (!file)
        return;
    memcpy(file, t->file, (size_t)t->n * sizeof *file);
    qsort(file, (size_t)t->n, sizeof *file, by_path);
    note_twice(file, t->n, train, valid);
    free(file);
}
