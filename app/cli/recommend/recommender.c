#include "recommender.h"
#include "cli/base/grow.h"

#include <stdlib.h>
#include <string.h>

/* Lists the ids of all items, malloc'd: [items]. */
static int list_ids(const att_recommender *m, int64_t items, const char ***ids)
{
    *ids = malloc((size_t)(items + !items) * sizeof **ids);
    if (!*ids)
        return cli_fail_memory();
    for (int64_t i = 0; i < items; i++)
        (*ids)[i] = att_recommender_item(m, i);
    return CLI_DONE;
}

static int describe(cli_model *base)
{
    cli_recommender *m = (cli_recommender *)base;
    m->model = att_any_model_as(base->opened, ATT_SUBJECT_RECOMMEND);
    m->info = (att_recommender_info){.size = sizeof m->info};
    m->items = NULL;
    const int code = cli_status(base->ctx, att_recommender_describe(m->model, &m->info));
    return code ? code : list_ids(m->model, m->info.items, &m->items);
}

static void free_items(cli_model *base) { free(((cli_recommender *)base)->items); }

const cli_model_kind cli_recommender_kind = {
    .subject = ATT_SUBJECT_RECOMMEND, .describe = describe, .free = free_items};

/* ---- Histories -------------------------------------------------------------- */

int cli_histories_begin(cli_histories *h)
{
    if (!cli_reserve(&h->n_room, (size_t)h->n + 2, &(cli_array){&h->offsets, sizeof *h->offsets}, 1))
        return cli_fail_memory();
    if (h->n == 0)
        h->offsets[0] = 0;
    h->offsets[h->n + 1] = h->offsets[h->n];
    h->n++;
    return CLI_DONE;
}

int cli_histories_add(cli_histories *h, int64_t item)
{
    int64_t *end = &h->offsets[h->n];
    if (!cli_reserve(&h->items_room, (size_t)*end + 1, &(cli_array){&h->items, sizeof *h->items}, 1))
        return cli_fail_memory();
    h->items[(*end)++] = (int32_t)item;
    return CLI_DONE;
}

void cli_histories_clear(cli_histories *h) { h->n = 0; }

void cli_histories_free(cli_histories *h)
{
    free(h->offsets);
    free(h->items);
    *h = (cli_histories){0};
}

/* Removes spaces at both ends; an id that has them there is found with them first. */
static char *trim(char *id)
{
    id += strspn(id, " ");
    for (size_t n = strlen(id); n > 0 && id[n - 1] == ' ';)
        id[--n] = '\0';
    return id;
}

static int add_id(cli_histories *h, const att_recommender *m, char *id, const char *source, cli_unknown *unknown)
{
    int64_t item = att_recommender_find_item(m, id);
    if (item < 0) {
        id = trim(id);
        item = *id ? att_recommender_find_item(m, id) : -1;
    }
    if (item >= 0)
        return cli_histories_add(h, item);
    if (!*id)
        return CLI_DONE;
    if (!unknown)
        return cli_fail("%s: the model has no item \"%s\"", source, id);
    cli_unknown_add(unknown, id, strlen(id));
    return CLI_DONE;
}

int cli_histories_read(cli_histories *h, const att_recommender *m, const char *text, const char *source,
                       cli_unknown *unknown)
{
    const char *between = strchr(text, '\t') ? "\t" : ",";
    char *copy = strdup(text), *rest = copy;
    int code = copy ? cli_histories_begin(h) : cli_fail_memory();
    for (char *id; !code && (id = strsep(&rest, between));)
        code = add_id(h, m, id, source, unknown);
    free(copy);
    return code;
}
