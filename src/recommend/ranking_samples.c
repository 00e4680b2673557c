#include "recommend/ranking_samples.h"

#include <string.h>

/* The last word of counters of random numbers. Other draws use other words. */
enum { RANDOM_SAMPLE = 7 };
enum { TRIES = 32 }; /* tries to draw an item that is not marked, before the weights of all such items are added up */

static int64_t weight(const att_sampler *s, int64_t item) { return s->up_to[item] - (item ? s->up_to[item - 1] : 0); }

att_status att_sampler_init(att_sampler *s, const att_holdout *h, const att_ranking_options *options)
{
    const att_interactions *log = h->log;
    const int64_t items = log->info.items;
    *s = (att_sampler){h, options->candidates, options->negatives, options->seed, NULL};
    s->up_to = att_calloc(h->ctx, (size_t)items, sizeof *s->up_to);
    if (!s->up_to)
        return ATT_ERR_MEMORY;
    for (int64_t i = 0; s->kind == ATT_CANDIDATES_BY_POPULARITY && i < log->info.actions; i++)
        s->up_to[log->item[i]]++;
    for (int64_t i = 0; i < items; i++) {
        s->up_to[i] += s->kind != ATT_CANDIDATES_BY_POPULARITY;
        s->up_to[i] += i ? s->up_to[i - 1] : 0;
    }
    return ATT_OK;
}

void att_sampler_free(att_sampler *s)
{
    if (s->h)
        att_free(s->h->ctx, s->up_to);
    s->up_to = NULL;
}

static bool is_marked(const uint64_t *marked, int64_t item) { return marked[item / 64] >> item % 64 & 1; }
static void mark(uint64_t *marked, int64_t item) { marked[item / 64] |= UINT64_C(1) << item % 64; }
static void unmark(uint64_t *marked, int64_t item) { marked[item / 64] &= ~(UINT64_C(1) << item % 64); }

/* Returns the actions of a case's user whose items are not drawn. */
static att_history excluded(const att_sampler *s, const att_case *c)
{
    return s->kind == ATT_CANDIDATES_OUTSIDE_TRAINING ? att_holdout_train(s->h, c->user)
                                                      : att_interactions_history(s->h->log, c->user);
}

static void unmark_all(uint64_t *marked, const int32_t *items, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        unmark(marked, items[i]);
}

att_status att_sampler_check(const att_sampler *s, const att_case *c, uint64_t *marked)
{
    const att_history x = excluded(s, c);
    const bool distinct = s->kind != ATT_CANDIDATES_OUTSIDE_TRAINING;
    const int64_t items = s->h->log->info.items, needed = distinct ? s->negatives : 1;
    int64_t left = items; /* with BY_POPULARITY: items with an action */
    for (int64_t i = 0; i < x.count; i++) {
        left -= !is_marked(marked, x.items[i]);
        mark(marked, x.items[i]);
    }
    for (int64_t i = 0; s->kind == ATT_CANDIDATES_BY_POPULARITY && i < items; i++)
        left -= weight(s, i) == 0;
    unmark_all(marked, x.items, x.count);
    if (left >= needed)
        return ATT_OK;
    return att_fail(s->h->ctx, ATT_ERR_ARGUMENT,
                    "%lld negatives are to be drawn for the user %.80s, but there are %lld items besides those of the "
                    "user; rank all items instead",
                    (long long)s->negatives, att_interactions_user(s->h->log, c->user), (long long)left);
}

/* Returns a random number in [0, n), n < 2^53. Each user, draw and number has its own. */
static int64_t random_below(const att_sampler *s, const att_case *c, int64_t draw, uint32_t number, int64_t n)
{
    uint32_t r[4];
    att_random(s->seed, (const uint32_t[]){(uint32_t)c->user, (uint32_t)draw, number, RANDOM_SAMPLE}, r);
    const uint64_t bits = ((uint64_t)r[0] << 32 | r[1]) >> 11;
    const int64_t x = (int64_t)((double)bits * 0x1p-53 * (double)n);
    return x < n ? x : n - 1;
}

/* Returns the first item up to which the weights exceed x. */
static int64_t find_item(const att_sampler *s, int64_t x)
{
    int64_t low = 0, high = s->h->log->info.items - 1;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (s->up_to[middle] > x)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Draws one of the items that are not marked, by their weights. The distribution is the same as that of repeated
 * tries. */
static int64_t draw_of_rest(const att_sampler *s, const att_case *c, int64_t draw, uint32_t number,
                            const uint64_t *marked)
{
    const int64_t items = s->h->log->info.items;
    int64_t sum = 0, last = 0;
    for (int64_t i = 0; i < items; i++)
        sum += is_marked(marked, i) ? 0 : weight(s, i);
    int64_t x = random_below(s, c, draw, number, sum);
    for (int64_t i = 0; i < items && x >= 0; i++) {
        if (is_marked(marked, i))
            continue;
        x -= weight(s, i);
        last = i;
    }
    return last;
}

static int64_t draw_item(const att_sampler *s, const att_case *c, int64_t draw, uint32_t *number,
                         const uint64_t *marked)
{
    const int64_t sum = s->up_to[s->h->log->info.items - 1];
    for (int i = 0; i < TRIES; i++) {
        const int64_t item = find_item(s, random_below(s, c, draw, (*number)++, sum));
        if (!is_marked(marked, item))
            return item;
    }
    return draw_of_rest(s, c, draw, (*number)++, marked);
}

void att_sampler_draw(const att_sampler *s, const att_case *c, int64_t draw, uint64_t *marked, int32_t *out)
{
    const att_history x = excluded(s, c);
    const bool distinct = s->kind != ATT_CANDIDATES_OUTSIDE_TRAINING;
    uint32_t number = 0;
    for (int64_t i = 0; i < x.count; i++)
        mark(marked, x.items[i]);
    for (int64_t i = 0; i < s->negatives; i++) {
        out[i] = (int32_t)draw_item(s, c, draw, &number, marked);
        if (distinct)
            mark(marked, out[i]);
    }
    unmark_all(marked, x.items, x.count);
    unmark_all(marked, out, s->negatives);
}
