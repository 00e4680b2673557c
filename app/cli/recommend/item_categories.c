#include "item_categories.h"

#include <stdlib.h>
#include <string.h>

/* An item and its category. */
typedef struct entry {
    const char *category;
    int64_t item;
} entry;

static int by_category(const void *a, const void *b)
{
    return strcmp(((const entry *)a)->category, ((const entry *)b)->category);
}

int cli_item_categories_number(const cli_item_texts *texts, const cli_recommender *m, const char *path, int32_t **out)
{
    const int64_t items = m->info.items;
    int64_t n = 0;
    int32_t number = -1;
    entry *all = malloc((size_t)items * sizeof *all);
    *out = malloc((size_t)items * sizeof **out);
    if (!all || !*out) {
        free(all);
        return cli_fail_memory();
    }
    for (int64_t i = 0; i < items; i++) {
        const char *category = cli_item_texts_find(texts, m->items[i]);
        (*out)[i] = -1;
        if (category && *category)
            all[n++] = (entry){category, i};
    }
    qsort(all, (size_t)n, sizeof *all, by_category);
    for (int64_t i = 0; i < n; i++) {
        number += i == 0 || strcmp(all[i].category, all[i - 1].category) != 0;
        (*out)[all[i].item] = number;
    }
    free(all);
    if (n == 0)
        return cli_fail("%s: no item of %s has a category there; the first id is \"%.64s\", and that of the model "
                        "\"%.64s\"",
                        path, m->base.name, texts->id[0], m->items[0]);
    if (n < items)
        cli_note("%s: %lld of %lld items of %s have no category, which --max-per-category does not limit", path,
                 (long long)(items - n), (long long)items, m->base.name);
    return CLI_DONE;
}
