/* Keys and values of sequences that grow, for decoding.
 *
 * A page has ATT_KEY_BLOCK tokens: for each head the keys, packed in panels as kernel/decode.c reads them, and then the
 * rows of values. Keys of a panel that is not full are rows, because in a panel each number would be in its own cache
 * line. A sequence is a list of pages; a short one has a single page with room for fewer tokens. Copies of a sequence
 * share its pages until one of them is appended to: beam search copies one page, not all earlier tokens.
 *
 * Memory is fastest if it is read in long stretches. So pages are allocated four at a time, [kv_heads][4 pages], and
 * assigned in order: the keys and values of a head are then one stretch of memory for each segment of tokens that are
 * appended together. */
#include "attn/call/cache.h"
#include "tensor/tensor.h"

#include <string.h>

/* ---- pages */

static int64_t pages_for(int64_t length) { return (length + ATT_KEY_BLOCK - 1) / ATT_KEY_BLOCK; }

/* Returns the smallest kind of page that holds this number of tokens. */
static int size_for(const att_cache *c, int64_t length)
{
    int size = ATT_CACHE_SIZES - 1;
    while (size > 0 && (ATT_KEY_BLOCK >> size < length || ATT_KEY_BLOCK >> size < c->kernels->q_tile))
        size--;
    return size;
}

/* Makes new pages, in the order of their memory; NULL: out of memory. */
static att_page *make_pages(att_cache *c, int size)
{
    att_page *p = att_arena_alloc(&c->pages, ATT_CACHE_SLAB * sizeof *p);
    char *at = p ? att_arena_alloc(&c->slabs, att_cache_head_at(c, c->kv_heads, size)) : NULL;
    for (int i = 0; at && i < ATT_CACHE_SLAB; i++)
        p[i] = (att_page){.at = at + (size_t)i * att_cache_head_bytes(c, size),
                          .next = i + 1 < ATT_CACHE_SLAB ? &p[i + 1] : NULL,
                          .size = size};
    return at ? p : NULL;
}

static att_page *acquire_page(att_cache *c, int size)
{
    att_page **first = &c->free_pages[size], *p = *first ? *first : make_pages(c, size);
    if (p) {
        *first = p->next;
        p->users = 1;
    }
    return p;
}

static void release_page(att_cache *c, att_page *p)
{
    if (--p->users > 0)
        return;
    p->next = c->free_pages[p->size];
    c->free_pages[p->size] = p;
}

void att_cache_trim(att_cache *c, att_cached_sequence *h)
{
    while (h->pages > pages_for(h->length))
        release_page(c, h->page[--h->pages]);
}

static att_status make_list(att_cache *c, att_cached_sequence *h, int64_t room)
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

/* Returns how many keys of a sequence are packed. */
static int64_t packed_keys(const att_cache *c, const att_cached_sequence *h)
{
    return h->loose ? h->length / c->kernels->q_tile * c->kernels->q_tile : h->length;
}

/* Copies the first `rows` of a page of a sequence: their keys, or the panels of these, and their values. */
static void copy_page(const att_cache *c, const att_cached_sequence *h, const att_page *from, const att_page *to,
                      int64_t rows)
{
    const size_t keys = (size_t)(h->loose ? rows : att_round_up(rows, c->kernels->q_tile));
    for (int64_t head = 0; head < c->kv_heads; head++) {
        const char *x = from->at + att_cache_head_at(c, head, from->size);
        char *y = to->at + att_cache_head_at(c, head, to->size);
        memcpy(y, x, c->key_bytes * keys);
        memcpy(y + att_cache_keys_bytes(c, to->size), x + att_cache_keys_bytes(c, from->size),
               c->value_bytes * (size_t)rows);
    }
}

/* Copies to make in sequences [first, first + n). */
typedef struct copies {
    att_cache *cache;
    int64_t first;
} copies;

static void copy_past(void *arg, int64_t i, int thread)
{
    (void)thread;
    const copies *j = arg;
    att_cached_sequence *h = &j->cache->sequence[j->first + i];
    if (h->past)
        copy_page(j->cache, h, h->past, h->page[h->pages - 1], h->length % ATT_KEY_BLOCK);
    h->past = NULL;
}

void att_cache_copy_shared(att_cache *c, int64_t first, int64_t last)
{
    bool any = false;
    for (int64_t b = first; b < last; b++)
        any = any || c->sequence[b].past;
    if (any)
        att_parallel_partition(c->ctx, last - first, copy_past, &(copies){c, first});
}

att_status att_cache_own_last_page(att_cache *c, att_cached_sequence *h)
{
    att_page *shared = h->length % ATT_KEY_BLOCK ? h->page[h->pages - 1] : NULL;
    if (!shared || shared->users == 1)
        return ATT_OK;
    att_page *own = acquire_page(c, shared->size);
    if (!own)
        return ATT_ERR_MEMORY;
    h->page[h->pages - 1] = own;
    h->past = shared;
    shared->users--;
    return ATT_OK;
}

att_status att_cache_make_room(att_cache *c, att_cached_sequence *h, int64_t n)
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
        release_page(c, h->page[0]);
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
        "\"%s\" prepares keys anew in each call, so it cannot use a cache, which has keys as they were appended",
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
    att_cached_sequence *h = c ? att_alloc(plan->ctx, (size_t)sequences, sizeof *h) : NULL;
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
        h[b] = (att_cached_sequence){.loose = true};
    att_arena_init(&c->slabs, plan->ctx);
    att_arena_init(&c->pages, plan->ctx);
    *out = c;
    return ATT_OK;
}

static void free_lists(att_ctx *ctx, att_cached_sequence *h, int64_t n)
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

size_t att_cache_bytes(const att_cache *c)
{
    if (!c)
        return 0;
    size_t bytes = sizeof *c + (size_t)c->sequences * sizeof *c->sequence;
    for (int64_t b = 0; b < c->sequences; b++)
        bytes += (size_t)c->sequence[b].room * sizeof(att_page *);
    return bytes + att_arena_bytes(&c->slabs) + att_arena_bytes(&c->pages);
}

/* ---- changed */

att_status att_cache_find(const att_cache *c, int64_t sequence, int64_t *first, int64_t *last)
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

att_status att_cache_truncate(att_cache *c, int64_t sequence, int64_t length)
{
    int64_t first, last;
    const att_status e = att_cache_find(c, sequence, &first, &last);
    for (int64_t b = first; !e && b < last; b++)
        if (length < 0 || length > c->sequence[b].length)
            return att_fail(c->ctx, ATT_ERR_ARGUMENT, "length is %lld, but sequence %lld has %lld", (long long)length,
                            (long long)b, (long long)c->sequence[b].length);
    for (int64_t b = first; !e && b < last; b++) {
        att_cached_sequence *h = &c->sequence[b];
        h->loose = length % c->kernels->q_tile == 0 || length > packed_keys(c, h);
        h->length = length;
        att_cache_trim(c, h);
    }
    return e;
}

/* Makes a sequence that shares the pages of h. */
static att_status share(att_cache *c, const att_cached_sequence *h, att_cached_sequence *next)
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
    att_cached_sequence *next = att_calloc(c->ctx, (size_t)n, sizeof *next);
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
            release_page(c, c->sequence[b].page[i - 1]);
    free_lists(c->ctx, c->sequence, c->sequences);
    c->sequence = next;
    c->sequences = n;
    return ATT_OK;
}

/* ---- in a call */

/* Checks that the cache has this plan's shape. */
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
    } beside[] = {
        {"k", att_given(&a->k)}, {"v", att_given(&a->v)}, {"k_offsets", a->k_offsets}, {"k_lengths", a->k_lengths}};
    for (int i = 0; i < 4; i++)
        if (beside[i].given)
            return att_fail(ctx, ATT_ERR_ARGUMENT, "args.%s is given together with args.cache, which %s",
                            beside[i].name, i < 2 ? "has keys and values" : "states the lengths");
    if (a->q_offsets && a->n_sequences != c->sequences)
        return att_fail(ctx, ATT_ERR_SHAPE, "args.n_sequences is %lld, but args.cache has %lld sequences",
                        (long long)a->n_sequences, (long long)c->sequences);
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
    const att_cached_sequence *h = &c->sequence[sequence];
    const int size = h->pages ? h->page[0]->size : 0;
    const size_t keys = att_cache_head_at(c, head, size);
    view->k_rows = h->length;
    view->k_row = (att_rows){.stride = c->key_dim,
                             .packed = packed_keys(c, h),
                             .dtype = c->dtype,
                             .panel = c->kernels->q_tile,
                             .page = h->page,
                             .offset = keys};
    view->v = (att_rows){
        .stride = c->value_dim, .dtype = c->dtype, .page = h->page, .offset = keys + att_cache_keys_bytes(c, size)};
}

void *att_page_at(const att_page *page, size_t offset) { return page->at + offset; }
