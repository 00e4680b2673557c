/* Prints the items most similar to an item, or to each item of a model. */
#include "similar_items.h"

#include "cli/base/shard.h"
#include "untrained.h"

#include <stdlib.h>

enum { ITEMS = 4096 }; /* at once */

int cli_similar_items_print(const cli_similar_items *s, const cli_texts *ids)
{
    const cli_range shard = cli_shard_of(ids->n);
    int code = CLI_DONE;
    for (int64_t i = shard.first; !code && i < shard.end; i++) {
        att_recommendation r;
        const int64_t item = att_recommender_find_item(s->m->model, ids->text[i]);
        if (item < 0)
            return cli_fail("--similar: %s has no item \"%s\"", s->m->base.name, ids->text[i]);
        code = cli_status(s->m->base.ctx, att_recommender_similar(s->m->model, item, s->options, &r));
        if (code)
            break;
        cli_lists_print(s->lists, ids->text[i], NULL, &r, 0);
        cli_untrained_note(s->m, (int32_t)item);
        att_recommendation_free(s->m->base.ctx, &r);
    }
    return code;
}

/* Prints the lists of items [first, end), and counts those without a vector. items [end - first]: is overwritten. */
static int print_block(const cli_similar_items *s, int32_t *items, int64_t first, int64_t end, int64_t *without)
{
    att_recommendation r;
    for (int64_t i = first; i < end; i++)
        items[i - first] = (int32_t)i;
    const int code =
        cli_status(s->m->base.ctx, att_recommender_similar_items(s->m->model, end - first, items, s->options, &r));
    if (code)
        return code;
    cli_progress_clear();
    for (int64_t i = first; i < end; i++) {
        cli_lists_print(s->lists, s->m->items[i], NULL, &r, i - first);
        *without += r.items[(i - first) * r.k] < 0;
    }
    att_recommendation_free(s->m->base.ctx, &r);
    return cli_output_flush(s->out);
}

int cli_similar_items_print_all(const cli_similar_items *s)
{
    const cli_range r = cli_shard_of(s->m->info.items);
    const int64_t all = r.end - r.first;
    int64_t without = 0;
    int32_t *items = malloc(ITEMS * sizeof *items);
    int code = items ? CLI_DONE : cli_fail_memory();
    for (int64_t i = r.first; !code && i < r.end; i += ITEMS) {
        const int64_t end = i + ITEMS < r.end ? i + ITEMS : r.end;
        code = print_block(s, items, i, end, &without);
        cli_progress_show(s->progress, end - r.first, "items", (double)(end - r.first) / (double)all);
    }
    free(items);
    if (!code && without > 0)
        cli_note("%lld of %lld items have no similar one, most often because they have no vector: neither a text nor "
                 "an action in training",
                 (long long)without, (long long)all);
    return code;
}
