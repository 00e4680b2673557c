#include "recommend/recommend_batches.h"
#include "util/util.h"
#include "train/shuffle.h"
#include "util/array.h"

#include <string.h>

enum { TRIES = 32 }; /* tries to draw an item that is not marked, before all such items are listed */
/* The last words of counters of random numbers. That of att_permutation is 0. */
enum { RANDOM_DRAW = 1, RANDOM_HISTORY };

typedef struct rooms {
    size_t items, rows, targets, candidates;
} rooms;

struct att_history_batches {
    att_ctx *ctx;
    att_history_source from;
    uint32_t *user; /* [n]: users with a history of two or more items */
    int64_t n;
    uint32_t *order; /* [n]: users of the epoch */
    int64_t epoch;
    int64_t *marked; /* [items]: the number of each item's last mark */
    int64_t mark;
    int32_t *rest; /* [n_drawn]: the items that may be drawn and do not have the mark rest_of */
    int64_t n_rest, rest_of;
    att_history_batch batch;
    rooms room;
};

/* ---- random numbers */

/* The random numbers of a history in a batch, one after another. */
typedef struct stream {
    uint64_t seed;
    uint32_t counter[4], words[4];
    int left; /* words that are left */
} stream;

static uint32_t next_word(stream *s)
{
    if (s->left == 0) {
        att_random(s->seed, s->counter, s->words);
        s->counter[0]++;
        s->left = 4;
    }
    return s->words[--s->left];
}

/* Returns a random number from 0 to n - 1. */
static int64_t below(stream *s, int64_t n) { return (int64_t)((uint64_t)next_word(s) * (uint64_t)n >> 32); }

static bool happens(stream *s, double share) { return (next_word(s) + 0.5) * 0x1p-32 < share; }

/* ---- epochs */

int64_t att_history_batches_begin(att_history_batches *b, int64_t epoch)
{
    b->epoch = epoch;
    att_permutation(b->from.seed, 0, epoch, b->n, b->order);
    for (int64_t i = 0; b->from.with_replacement && i < b->n; i++) {
        stream s = {.seed = b->from.seed, .counter = {0, (uint32_t)i, (uint32_t)epoch, RANDOM_DRAW}};
        b->order[i] = (uint32_t)below(&s, b->n);
    }
    return att_ceil_div(b->n, b->from.batch);
}

/* ---- a batch */

static att_status need(att_history_batches *b, int64_t tokens)
{
    att_history_batch *y = &b->batch;
    const size_t n = (size_t)tokens, at = (size_t)y->positions, count = 1 + (size_t)b->from.negatives;
    att_status e = att_grow(b->ctx, &y->items, sizeof *y->items, (size_t)y->offsets[y->n], n, &b->room.items);
    e = e ? e : att_grow(b->ctx, &y->rows, sizeof *y->rows, at, n, &b->room.rows);
    e = e ? e : att_grow(b->ctx, &y->targets, sizeof *y->targets, at, n, &b->room.targets);
    if (!e && b->from.negatives)
        e = att_grow(b->ctx, &y->candidates, sizeof *y->candidates, at * count, n * count, &b->room.candidates);
    return e;
}

/* Marks the items of a history. Returns the number of different items. */
static int64_t mark(att_history_batches *b, const att_history *h)
{
    int64_t different = 0;
    b->mark++;
    for (int64_t i = 0; i < h->count; i++) {
        different += b->marked[h->items[i]] != b->mark;
        b->marked[h->items[i]] = b->mark;
    }
    return different;
}

static int32_t item_at(const att_history_batches *b, int64_t i)
{
    return b->from.drawn ? b->from.drawn[i] : (int32_t)i;
}

static void list_rest(att_history_batches *b)
{
    b->rest_of = b->mark;
    b->n_rest = 0;
    for (int64_t i = 0; i < b->from.n_drawn; i++)
        if (b->marked[item_at(b, i)] != b->mark)
            b->rest[b->n_rest++] = item_at(b, i);
}

/* Draws an item that is not marked. There must be one. */
static int32_t draw(att_history_batches *b, stream *s)
{
    for (int i = 0; i < TRIES; i++) {
        const int32_t item = item_at(b, below(s, b->from.n_drawn));
        if (b->marked[item] != b->mark)
            return item;
    }
    if (b->rest_of != b->mark)
        list_rest(b);
    return b->rest[below(s, b->n_rest)];
}

/* Adds a position whose item is target. */
static void add_position(att_history_batches *b, stream *s, int64_t row, int32_t target)
{
    att_history_batch *y = &b->batch;
    const int64_t count = 1 + b->from.negatives, at = y->positions++;
    y->rows[at] = (int32_t)row;
    y->targets[at] = target;
    if (b->from.negatives)
        y->candidates[at * count] = target;
    for (int64_t k = 1; k < count; k++)
        y->candidates[at * count + k] = draw(b, s);
}

/* Adds a history in which each item is the target of the item before it. */
static void add_shifted(att_history_batches *b, stream *s, const att_history *h)
{
    att_history_batch *y = &b->batch;
    const int64_t first = y->offsets[y->n], count = att_min(h->count - 1, b->from.max);
    const int32_t *items = h->items + h->count - 1 - count;
    memcpy(y->items + first, items, (size_t)count * sizeof *items);
    for (int64_t i = 0; i < count; i++)
        add_position(b, s, first + i, items[i + 1]);
    y->offsets[y->n + 1] = first + count;
}

/* Adds a history in which items are masked at random, at least one. */
static void add_masked(att_history_batches *b, stream *s, const att_history *h)
{
    att_history_batch *y = &b->batch;
    const int64_t first = y->offsets[y->n], count = att_min(h->count, b->from.max), positions = y->positions;
    const int32_t *items = h->items + h->count - count;
    const bool last = happens(s, b->from.last_mask_share);
    memcpy(y->items + first, items, (size_t)count * sizeof *items);
    for (int64_t i = 0; !last && i < count; i++)
        if (happens(s, b->from.mask_share))
            add_position(b, s, first + i, items[i]);
    if (y->positions == positions) {
        const int64_t one = last ? count - 1 : below(s, count);
        add_position(b, s, first + one, items[one]);
    }
    for (int64_t i = positions; i < y->positions; i++)
        y->items[y->rows[i]] = (int32_t)b->from.items;
    y->offsets[y->n + 1] = first + count;
}

static att_status add_history(att_history_batches *b, int64_t number)
{
    att_history_batch *y = &b->batch;
    const uint32_t user = b->user[b->order[number]];
    const att_history h = att_holdout_train(b->from.data, user);
    stream s = {.seed = b->from.seed, .counter = {0, (uint32_t)number, (uint32_t)b->epoch, RANDOM_HISTORY}};
    const att_status e = need(b, att_min(h.count, b->from.max));
    if (e)
        return e;
    if (b->from.negatives && mark(b, &h) == b->from.n_drawn)
        return att_fail(b->ctx, ATT_ERR_ARGUMENT,
                        "user \"%.80s\" has all %lld items in training, so that no other can be drawn; "
                        "the loss softmax needs none",
                        att_interactions_user(att_holdout_log(b->from.data), user), (long long)b->from.n_drawn);
    (b->from.masked ? add_masked : add_shifted)(b, &s, &h);
    y->sequence_ids[y->n] = (uint32_t)(number % b->from.batch);
    y->n++;
    return ATT_OK;
}

int64_t att_history_batches_size(const att_history_batches *b, int64_t i)
{
    return att_min(b->from.batch, b->n - i * b->from.batch);
}

att_status att_history_batches_get(att_history_batches *b, int64_t i, int64_t first, int64_t last,
                                   const att_history_batch **out)
{
    att_status e = ATT_OK;
    b->batch.n = b->batch.positions = b->batch.offsets[0] = 0;
    for (int64_t k = first; !e && k < last; k++)
        e = add_history(b, i * b->from.batch + k);
    *out = &b->batch;
    return e;
}

/* ---- construction */

static att_status find_users(att_history_batches *b)
{
    b->user = att_alloc(b->ctx, (size_t)b->from.users, sizeof *b->user);
    if (!b->user)
        return ATT_ERR_MEMORY;
    for (int64_t u = 0; u < b->from.users; u++)
        if (att_holdout_train(b->from.data, u).count >= 2)
            b->user[b->n++] = (uint32_t)u;
    return b->n ? ATT_OK
                : att_fail(b->ctx, ATT_ERR_ARGUMENT,
                           "options.data has no user with two actions for training: there is nothing to predict");
}

att_status att_history_batches_new(att_ctx *ctx, const att_history_source *source, att_history_batches **out)
{
    att_history_batches *b = att_calloc(ctx, 1, sizeof *b);
    *out = NULL;
    if (!b)
        return ATT_ERR_MEMORY;
    b->ctx = ctx;
    b->from = *source;
    b->from.n_drawn = source->drawn ? source->n_drawn : source->items;
    att_status e = find_users(b);
    if (!e) {
        b->from.batch = att_min(b->from.batch, b->n);
        b->order = att_alloc(ctx, (size_t)b->n, sizeof *b->order);
        b->marked = att_calloc(ctx, (size_t)b->from.items, sizeof *b->marked);
        b->batch.offsets = att_alloc(ctx, (size_t)b->from.batch + 1, sizeof *b->batch.offsets);
        b->batch.sequence_ids = att_alloc(ctx, (size_t)b->from.batch, sizeof *b->batch.sequence_ids);
        b->rest = att_alloc(ctx, (size_t)b->from.n_drawn, sizeof *b->rest);
        e = b->order && b->marked && b->rest && b->batch.offsets && b->batch.sequence_ids ? ATT_OK : ATT_ERR_MEMORY;
    }
    if (e)
        att_history_batches_free(b);
    else
        *out = b;
    return e;
}

void att_history_batches_free(att_history_batches *b)
{
    if (!b)
        return;
    const att_history_batch *y = &b->batch;
    void *const all[] = {b->user,    b->order,        b->marked, b->rest,    y->items,
                         y->offsets, y->sequence_ids, y->rows,   y->targets, y->candidates};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        att_free(b->ctx, all[i]);
    att_free(b->ctx, b);
}

int64_t att_history_batches_count(const att_history_batches *b) { return b->n; }

uint64_t att_history_batches_sum(const att_history_batches *b)
{
    uint64_t sum = ATT_FNV64_OFFSET;
    for (int64_t k = 0; k < b->n; k++) {
        const att_history h = att_holdout_train(b->from.data, b->user[k]);
        sum = att_fnv64(sum, (uint32_t)h.count);
        for (int64_t i = 0; i < h.count; i++)
            sum = att_fnv64(sum, (uint32_t)h.items[i]);
    }
    return sum;
}
