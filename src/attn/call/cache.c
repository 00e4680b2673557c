/* Keys and values of sequences that grow, for decoding.
 *
 * A page has ATT_KEY_BLOCK tokens: of each head the keys, packed in panels as kernel/decode.c reads them, and after
 * them the rows of values. Keys of a panel that is not full lie as rows: in a panel each number would be in a line of
 * its own. A sequence is a list of pages, and one that is short has a single one with room for fewer tokens. Sequences
 * that were made of one share their pages until one of them is added to: beam search copies what is on one page, not a
 * past.
 *
 * Memory is fastest where it is read in long stretches. So pages are made four at a time, [kv_heads][4 pages], and
 * handed out in order: tokens that come together lie so that a head's keys and values are one stretch for a segment. */
#include "attn/call/call.h"
#include "tensor/tensor.h"

#include <string.h>

enum {
    SLAB = ATT_KEY_SEGMENT / ATT_KEY_BLOCK, /* pages that are made together */
    SIZES = 4                               /* of pages: ATT_KEY_BLOCK tokens, half as many, ... */
};

/* Of head h, at + h SLAB head_bytes: keys [tokens / panel][key_dim][panel], values [tokens][value_dim] */
struct att_page {
    char *at;
    att_page *next; /* of those that are not used */
    int64_t users;  /* sequences that it is part of */
    int size;       /* it has room for ATT_KEY_BLOCK >> size tokens */
};

/* A sequence. Several pages are all of size 0. */
typedef struct held {
    att_page **page; /* [room], the first `pages` are in use: as many as `length` needs */
    int64_t pages, room, length;
    bool loose;     /* keys of a panel that is not full are rows; it may be an older one, which was full */
    att_page *past; /* what its last page is yet to become a copy of, or NULL */
} held;

struct att_cache {
    att_ctx *ctx;
    const att_kernels *kernels;
    att_dtype dtype;
    int64_t kv_heads, key_dim, value_dim, sequences;
    size_t key_bytes, value_bytes; /* of a token, for each head */
    att_arena slabs, pages;        /* what pages have, and their structs: who fills a page is who first touches it */
    att_page *scratch_blocks[SIZES];
    held *sequence;
};

/* ---- pages */

/* In a page: a head's keys, with its values, and where the head begins. */
static size_t keys_bytes(const att_cache *c, int size) { return c->key_bytes * (ATT_KEY_BLOCK >> size); }
static size_t head_bytes(const att_cache *c, int size)
{
    return keys_bytes(c, size) + c->value_bytes * (ATT_KEY_BLOCK >> size);
}
static size_t head_at(const att_cache *c, int64_t head, int size) { return (size_t)head * SLAB * head_bytes(c, size); }

static int64_t pages_for(int64_t length) { return (length + ATT_KEY_BLOCK - 1) / ATT_KEY_BLOCK; }

/* The smallest kind of page that holds this number of tokens. */
static int size_for(const att_cache *c, int64_t length)
{
    int size = SIZES - 1;
    while (size > 0 && (ATT_KEY_BLOCK >> size < length || ATT_KEY_BLOCK >> size < c->kernels->q_tile))
        size--;
    return size;
}

/* New pages, in the order in which they lie; NULL: out of memory. */
static att_page *make_pages(att_cache *c, int size)
{
    att_page *p = att_arena_alloc(&c->pages, SLAB * sizeof *p);
    char *at = p ? att_arena_alloc(&c->slabs, head_at(c, c->kv_heads, size)) : NULL;
    for (int i = 0; at && i < SLAB; i++)
        p[i] = (att_page){
            .at = at + (size_t)i * head_bytes(c, size), .next = i + 1 < SLAB ? &p[i + 1] : NULL, .size = size};
    return at ? p : NULL;
}

static att_page *acquire_page(att_cache *c, int size)
{
    att_page **scratch_blocks = &c->scratch_blocks[size], *p = *scratch_blocks ? *scratch_blocks : make_pages(c, size);
    if (p) {
        *scratch_blocks = p->next;
        p->users = 1;
    }
    return p;
}

static void drop_page(att_cache *c, att_page *p)
{
    if (--p->users > 0)
        return;
    p->next = c->scratch_blocks[p->size];
    c->scratch_blocks[p->size] = p;
}

/* Drops the pages that a sequence's length does not need. */
static void trim(att_cache *c, held *h)
{
    while (h->pages > pages_for(h->length))
        drop_page(c, h->page[--h->pages]);
}

static att_status make_list(att_cache *c, held *h, int64_t room)
{
    att_page **list = att_alloc(c->ctx, (size_t)room, sizeof *list);
    if (!list)
        return ATT_ERR_MEMORY;
    if (h->pages)
        memcpy(list, h->page, (size_t)h->pages * sizeof *list);
    att_free(c->ctx, h->page);
    h->page = list;
    h->room = room;
    return ATT_OK;
}

/* Keys of a sequence that are packed. */
static int64_t packed_keys(const att_cache *c, const held *h)
{
    return h->loose ? h->length / c->kernels->q_tile * c->kernels->q_tile : h->length;
}

/* The first `rows` of a page of a sequence: those keys, or their panels, and their values. */
static void copy_page(const att_cache *c, const held *h, const att_page *from, const att_page *to, int64_t rows)
{
    const size_t keys = (size_t)(h->loose ? rows : att_round_up(rows, c->kernels->q_tile));
    for (int64_t head = 0; head < c->kv_heads; head++) {
        const char *x = from->at + head_at(c, head, from->size);
        char *y = to->at + head_at(c, head, to->size);
        memcpy(y, x, c->key_bytes * keys);
        memcpy(y + keys_bytes(c, to->size), x + keys_bytes(c, from->size), c->value_bytes * (size_t)rows);
    }
}

/* In sequences [first, first + n). */
typedef struct copies {
    att_cache *cache;
    int64_t first;
} copies;

static void copy_past(void *arg, int64_t i, int thread)
{
    (void)thread;
    const copies *j = arg;
    held *h = &j->cache->sequence[j->first + i];
    if (h->past)
        copy_page(j->cache, h, h->past, h->page[h->pages - 1], h->length % ATT_KEY_BLOCK);
    h->past = NULL;
}

/* The pages that tokens of sequences [first, last) will go to become theirs alone; those that cannot stay shared. */
static att_status part(att_cache *c, int64_t first, int64_t last)
{
    att_status e = ATT_OK;
    bool any = false;
    for (int64_t b = first; !e && b < last; b++) {
        held *h = &c->sequence[b];
        att_page *shared = h->length % ATT_KEY_BLOCK ? h->page[h->pages - 1] : NULL;
        if (!shared || shared->users == 1)
            continue;
        att_page *own = acquire_page(c, shared->size);
        if (own) {
            h->page[h->pages - 1] = own;
            h->past = shared;
            shared->users--;
            any = true;
        }
        e = own ? ATT_OK : ATT_ERR_MEMORY;
    }
    if (any)
        att_parallel_partition(c->ctx, last - first, copy_past, &(copies){c, first});
    return e;
}

/* Pages for n more tokens: one for all that is larger than before, or more of them. */
static att_status make_room(att_cache *c, held *h, int64_t n)
{
    const int64_t length = h->length + n, need = pages_for(length), twice = 2 * h->room + 4;
    const int size = size_for(c, length);
    if (need > h->room && make_list(c, h, need > twice ? need : twice))
        return ATT_ERR_MEMORY;
    if (h->pages && h->page[0]->size > size) {
        att_page *larger = acquire_page(c, size);
        if (!larger)
            return ATT_ERR_MEMORY;
        copy_page(c, h, h->page[0], larger, h->length);
        drop_page(c, h->page[0]);
        h->page[0] = larger;
    }
    for (; h->pages < need; h->pages++)
        if (!(h->page[h->pages] = acquire_page(c, size)))
            return ATT_ERR_MEMORY;
    return ATT_OK;
}

/* ---- made and freed */

static bool prepares_keys(const att_plan *p) { return p->transforms && p->transforms->k.kind != ATT_TRANSFORM_NONE; }

static att_status refuse_prepared(const att_plan *p)
{
    return att_fail(
        p->ctx, ATT_ERR_UNSUPPORTED,
        "\"%s\" prepares keys anew in each call, so a cache, which has them as they were appended, does not "
        "serve it",
        p->score.name);
}

att_status att_cache_new(const att_plan *plan, int64_t sequences, att_cache **out)
{
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"plan", plan}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    if (prepares_keys(plan))
        return refuse_prepared(plan);
    if (sequences < 1)
        return att_fail(plan->ctx, ATT_ERR_ARGUMENT, "sequences is %lld, expected at least 1", (long long)sequences);
    att_cache *c = att_calloc(plan->ctx, 1, sizeof *c);
    held *h = c ? att_alloc(plan->ctx, (size_t)sequences, sizeof *h) : NULL;
    if (!h) {
        att_free(plan->ctx, c);
        return ATT_ERR_MEMORY;
    }
    const att_attention_spec *s = &plan->spec;
    *c = (att_cache){.ctx = plan->ctx,
                     .kernels = plan->kernels,
                     .dtype = s->dtype,
                     .kv_heads = s->kv_heads,
                     .key_dim = s->key_dim,
                     .value_dim = s->value_dim,
                     .sequences = sequences,
                     .key_bytes = (size_t)s->key_dim * att_dtype_size(s->dtype),
                     .value_bytes = (size_t)s->value_dim * att_dtype_size(s->dtype),
                     .sequence = h};
    for (int64_t b = 0; b < sequences; b++)
        h[b] = (held){.loose = true};
    att_arena_init(&c->slabs, plan->ctx);
    att_arena_init(&c->pages, plan->ctx);
    *out = c;
    return ATT_OK;
}

static void free_lists(att_ctx *ctx, held *h, int64_t n)
{
    for (int64_t b = 0; h && b < n; b++)
        att_free(ctx, h[b].page);
    att_free(ctx, h);
}

void att_cache_free(att_cache *c)
{
    if (!c)
        return;
    free_lists(c->ctx, c->sequence, c->sequences);
    att_arena_free(&c->slabs);
    att_arena_free(&c->pages);
    att_free(c->ctx, c);
}

int64_t att_cache_sequences(const att_cache *c) { return c ? c->sequences : 0; }

int64_t att_cache_length(const att_cache *c, int64_t sequence)
{
    return c && sequence >= 0 && sequence < c->sequences ? c->sequence[sequence].length : -1;
}

/* ---- changed */

/* Sequences [*first, *last). */
static att_status find(const att_cache *c, int64_t sequence, int64_t *first, int64_t *last)
{
    if (!c)
        return att_fail(NULL, ATT_ERR_ARGUMENT, "cache is NULL");
    if (sequence != ATT_ALL_SEQUENCES && (sequence < 0 || sequence >= c->sequences))
        return att_fail(c->ctx, ATT_ERR_ARGUMENT, "sequence is %lld, but the cache has %lld", (long long)sequence,
                        (long long)c->sequences);
    *first = sequence == ATT_ALL_SEQUENCES ? 0 : sequence;
    *last = sequence == ATT_ALL_SEQUENCES ? c->sequences : sequence + 1;
    return ATT_OK;
}

/* [sequences, kv_heads, n, dim], or without the first for one sequence. */
static att_status check_rows(const att_cache *c, const char *name, const att_tensor *t, bool all, const char *dim_name,
                             int64_t dim)
{
    const int rank = all ? 4 : 3;
    att_status e = att_check(c->ctx, name, t, c->dtype, rank);
    if (!e && all)
        e = att_check_dim(c->ctx, name, t, 0, "the number of the cache's sequences", c->sequences);
    e = e ? e : att_check_dim(c->ctx, name, t, rank - 3, "spec.kv_heads", c->kv_heads);
    e = e ? e : att_check_dim(c->ctx, name, t, rank - 1, dim_name, dim);
    return e ? e : att_check_contiguous(c->ctx, name, t);
}

/* Tokens on their way into a cache. */
typedef struct addition {
    att_cache *cache;
    const att_tensor *k, *v;
    int64_t first, n; /* sequence, tokens */
    int64_t items, tasks;
    char *scratch_blocks; /* [threads][scratch_bytes] or NULL */
    size_t scratch_bytes;
} addition;

/* Of one head: rows from the addition's i-th on. */
static const char *row_of(const att_tensor *t, int64_t sequence, int64_t head, int64_t i)
{
    const int64_t *stride = t->stride + t->rank - 3;
    const int64_t element = (t->rank == 4 ? sequence * t->stride[0] : 0) + head * stride[0] + i * stride[1];
    return (const char *)t->data + element * (int64_t)att_dtype_size(t->dtype);
}

/* A panel's keys as rows [panel][key_dim] to columns [key_dim][panel], or back, where they lie */
static void turn_panel(const att_cache *c, bool back, void *keys, void *scratch_blocks)
{
    const int64_t rows = back ? c->key_dim : c->kernels->q_tile, columns = back ? c->kernels->q_tile : c->key_dim;
    memcpy(scratch_blocks, keys, c->key_bytes * (size_t)c->kernels->q_tile);
    if (c->dtype == ATT_F32) {
        c->kernels->vector.transpose(rows, columns, scratch_blocks, columns, keys, rows);
        return;
    }
    const uint16_t *x = scratch_blocks;
    uint16_t *y = keys;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            y[j * rows + i] = x[i * columns + j];
}

static void add_head(const addition *a, int64_t sequence, int64_t head, void *scratch_blocks)
{
    const att_cache *c = a->cache;
    const held *h = &c->sequence[a->first + sequence];
    const int64_t panel = c->kernels->q_tile;
    for (int64_t done = 0; done < a->n; done++) {
        const int64_t at = (h->length + done) % ATT_KEY_BLOCK;
        const att_page *page = h->page[(h->length + done) / ATT_KEY_BLOCK];
        char *keys = page->at + head_at(c, head, page->size), *values = keys + keys_bytes(c, page->size);
        char *now = keys + (size_t)(at - at % panel) * c->key_bytes;
        if (done == 0 && !h->loose)
            turn_panel(c, true, now, scratch_blocks);
        memcpy(keys + (size_t)at * c->key_bytes, row_of(a->k, sequence, head, done), c->key_bytes);
        memcpy(values + (size_t)at * c->value_bytes, row_of(a->v, sequence, head, done), c->value_bytes);
        if ((at + 1) % panel == 0)
            turn_panel(c, false, now, scratch_blocks);
    }
}

static void add_task(void *arg, int64_t i, int thread)
{
    const addition *a = arg;
    const int64_t heads = a->cache->kv_heads;
    void *scratch_blocks = a->scratch_blocks ? a->scratch_blocks + (size_t)thread * a->scratch_bytes : NULL;
    for (int64_t item = a->items * i / a->tasks; item < a->items * (i + 1) / a->tasks; item++)
        add_head(a, item / heads, item % heads, scratch_blocks);
}

/* Where panels become full, or one is taken apart, there is a spare one for each thread. */
static att_status make_spare(addition *a, int64_t last)
{
    const att_cache *c = a->cache;
    bool turns = false;
    for (int64_t b = a->first; b < last; b++)
        turns =
            turns || !c->sequence[b].loose || c->sequence[b].length % c->kernels->q_tile + a->n >= c->kernels->q_tile;
    a->scratch_bytes = c->key_bytes * (size_t)c->kernels->q_tile;
    a->scratch_blocks = turns ? att_alloc(c->ctx, (size_t)att_threads(c->ctx), a->scratch_bytes) : NULL;
    return turns && !a->scratch_blocks ? ATT_ERR_MEMORY : ATT_OK;
}

att_status att_cache_append(att_cache *c, int64_t sequence, const att_tensor *k, const att_tensor *v)
{
    enum { TASK_NUMBERS = 16384 }; /* fewer are not worth waking a thread for */
    const bool all = sequence == ATT_ALL_SEQUENCES;
    int64_t first, last;
    att_status e = find(c, sequence, &first, &last);
    e = e ? e : check_rows(c, "k", k, all, "spec.key_dim", c->key_dim);
    e = e ? e : check_rows(c, "v", v, all, "spec.value_dim", c->value_dim);
    e = e ? e : att_check_dim(c->ctx, "v", v, v->rank - 2, all ? "k.dim[2]" : "k.dim[1]", k->dim[k->rank - 2]);
    if (e)
        return e;
    addition a = {.cache = c, .k = k, .v = v, .first = first, .n = k->dim[k->rank - 2]};
    if (a.n == 0)
        return ATT_OK;
    e = make_spare(&a, last);
    e = e ? e : part(c, first, last);
    for (int64_t b = first; !e && b < last; b++)
        e = make_room(c, &c->sequence[b], a.n);
    if (e) {
        for (int64_t b = first; b < last; b++)
            trim(c, &c->sequence[b]);
        att_free(c->ctx, a.scratch_blocks);
        return e;
    }
    a.items = (last - first) * c->kv_heads;
    const double worth = (double)a.n * (double)(c->key_dim + c->value_dim) * (double)a.items / TASK_NUMBERS + 1;
    a.tasks = worth < (double)a.items ? (int64_t)worth : a.items;
    att_parallel_partition(c->ctx, a.tasks, add_task, &a);
    att_free(c->ctx, a.scratch_blocks);
    for (int64_t b = first; b < last; b++) {
        c->sequence[b].length += a.n;
        c->sequence[b].loose = true;
    }
    return ATT_OK;
}

att_status att_cache_truncate(att_cache *c, int64_t sequence, int64_t length)
{
    int64_t first, last;
    const att_status e = find(c, sequence, &first, &last);
    for (int64_t b = first; !e && b < last; b++)
        if (length < 0 || length > c->sequence[b].length)
            return att_fail(c->ctx, ATT_ERR_ARGUMENT, "length is %lld, but sequence %lld has %lld", (long long)length,
                            (long long)b, (long long)c->sequence[b].length);
    for (int64_t b = first; !e && b < last; b++) {
        held *h = &c->sequence[b];
        h->loose = length % c->kernels->q_tile == 0 || length > packed_keys(c, h);
        h->length = length;
        trim(c, h);
    }
    return e;
}

/* A sequence of the same pages. */
static att_status share(att_cache *c, const held *h, held *next)
{
    const att_status e = make_list(c, next, h->pages + 1);
    if (!e && h->pages)
        memcpy(next->page, h->page, (size_t)h->pages * sizeof *h->page);
    next->pages = h->pages;
    next->length = h->length;
    next->loose = h->loose;
    return e;
}

att_status att_cache_select(att_cache *c, int64_t n, const int64_t *from)
{
    if (att_require(__func__, ATT_NAMED({"cache", c}, {"from", from})))
        return ATT_ERR_ARGUMENT;
    if (n < 1)
        return att_fail(c->ctx, ATT_ERR_ARGUMENT, "n is %lld, expected at least 1", (long long)n);
    for (int64_t b = 0; b < n; b++)
        if (from[b] < 0 || from[b] >= c->sequences)
            return att_fail(c->ctx, ATT_ERR_ARGUMENT, "from[%lld] is %lld, but the cache has %lld sequences",
                            (long long)b, (long long)from[b], (long long)c->sequences);
    held *next = att_calloc(c->ctx, (size_t)n, sizeof *next);
    att_status e = next ? ATT_OK : ATT_ERR_MEMORY;
    for (int64_t b = 0; !e && b < n; b++)
        e = share(c, &c->sequence[from[b]], &next[b]);
    if (e) {
        free_lists(c->ctx, next, n);
        return e;
    }
    for (int64_t b = 0; b < n; b++)
        for (int64_t i = 0; i < next[b].pages; i++)
            next[b].page[i]->users++;
    for (int64_t b = 0; b < c->sequences; b++)
        for (int64_t i = c->sequence[b].pages; i > 0; i--)
            drop_page(c, c->sequence[b].page[i - 1]);
    free_lists(c->ctx, c->sequence, c->sequences);
    c->sequence = next;
    c->sequences = n;
    return ATT_OK;
}

/* ---- in a call */

/* Is the cache of this plan's shape? */
static att_status check_shape(const att_plan *p, const att_cache *c)
{
    const att_attention_spec *s = &p->spec;
    const struct {
        const char *name;
        int64_t has, wants;
    } counts[] = {{"kv_heads", c->kv_heads, s->kv_heads},
                  {"key_dim", c->key_dim, s->key_dim},
                  {"value_dim", c->value_dim, s->value_dim}};
    if (c->ctx != p->ctx)
        return att_fail(p->ctx, ATT_ERR_ARGUMENT, "args.cache was made in another context than the plan");
    if (c->dtype != s->dtype)
        return att_fail(p->ctx, ATT_ERR_DTYPE, "args.cache is %s but spec.dtype is %s", att_dtype_name(c->dtype),
                        att_dtype_name(s->dtype));
    for (int i = 0; i < 3; i++)
        if (counts[i].has != counts[i].wants)
            return att_fail(p->ctx, ATT_ERR_SHAPE, "args.cache has %s = %lld but spec.%s = %lld", counts[i].name,
                            (long long)counts[i].has, counts[i].name, (long long)counts[i].wants);
    return prepares_keys(p) ? refuse_prepared(p) : ATT_OK;
}

att_status att_cache_check(att_call *call)
{
    att_attention_args *a = &call->args;
    const att_cache *c = a->cache;
    att_ctx *ctx = call->plan->ctx;
    const struct {
        const char *name;
        bool given;
    } beside[] = {{"k", att_given(&a->k)},
                  {"v", att_given(&a->v)},
                  {"q_offsets", a->q_offsets},
                  {"k_offsets", a->k_offsets},
                  {"k_lengths", a->k_lengths}};
    for (int i = 0; i < 5; i++)
        if (beside[i].given)
            return att_fail(ctx, ATT_ERR_ARGUMENT, "args.%s is given beside args.cache, which %s", beside[i].name,
                            i < 2    ? "has keys and values"
                            : i == 2 ? "is for batched queries"
                                     : "says the lengths");
    const att_status e = check_shape(call->plan, c);
    int64_t longest = 0;
    for (int64_t b = 0; !e && b < c->sequences; b++)
        longest = c->sequence[b].length > longest ? c->sequence[b].length : longest;
    a->k = (att_tensor){.dtype = c->dtype, .rank = 4, .dim = {c->sequences, c->kv_heads, longest, c->key_dim}};
    a->v = (att_tensor){.dtype = c->dtype, .rank = 4, .dim = {c->sequences, c->kv_heads, longest, c->value_dim}};
    return e;
}

void att_cache_view(const att_cache *c, int64_t sequence, int64_t head, att_head_view *view)
{
    const held *h = &c->sequence[sequence];
    const int size = h->pages ? h->page[0]->size : 0;
    const size_t keys = head_at(c, head, size);
    view->k_rows = h->length;
    view->k_row = (att_rows){.stride = c->key_dim,
                             .packed = packed_keys(c, h),
                             .dtype = c->dtype,
                             .panel = c->kernels->q_tile,
                             .page = h->page,
                             .offset = keys};
    view->v =
        (att_rows){.stride = c->value_dim, .dtype = c->dtype, .page = h->page, .offset = keys + keys_bytes(c, size)};
}

void *att_page_at(const att_page *page, size_t offset) { return page->at + offset; }
