/* Appends tokens to a cache: the keys and values of each head are written to the pages of their sequence, in the
 * cache's type, and keys of a panel that becomes full are transposed. */
#include "attn/call/cache.h"
#include "tensor/tensor.h"

#include <string.h>

typedef struct addition {
    att_cache *cache;
    const att_tensor *k, *v;
    int64_t first, last;    /* sequences */
    bool batched;           /* k and v are [sequences, kv_heads, n, dim] */
    const int64_t *offsets; /* k and v are [tokens, kv_heads, dim]; NULL and not batched: [kv_heads, n, dim] */
    int64_t n;              /* tokens of each sequence, if there are no offsets */
    int64_t items, tasks;
    char *panels; /* [threads][panel_bytes] or NULL */
    size_t panel_bytes;
} addition;

/* Returns which dimensions of k and v are heads and tokens. */
static int heads_dim(const addition *a) { return a->batched || a->offsets ? 1 : 0; }
static int tokens_dim(const addition *a) { return a->offsets ? 0 : heads_dim(a) + 1; }

/* Returns the number of new tokens of a sequence, counted from the addition's first. */
static int64_t count_of(const addition *a, int64_t sequence)
{
    return a->offsets ? a->offsets[sequence + 1] - a->offsets[sequence] : a->n;
}

/* ---- checks */

static att_status check_rows(const addition *a, const char *name, const att_tensor *t, const char *dim_name,
                             int64_t dim)
{
    const att_cache *c = a->cache;
    const int rank = a->batched ? 4 : 3;
    att_status e = att_check(c->ctx, name, t, t && t->dtype == ATT_F32 ? ATT_F32 : c->dtype, rank);
    if (!e && a->batched)
        e = att_check_dim(c->ctx, name, t, 0, "the number of the cache's sequences", c->sequences);
    e = e ? e : att_check_dim(c->ctx, name, t, heads_dim(a), "spec.kv_heads", c->kv_heads);
    e = e ? e : att_check_dim(c->ctx, name, t, rank - 1, dim_name, dim);
    return e ? e : att_check_contiguous(c->ctx, name, t);
}

static att_status check(const addition *a)
{
    static const char *const tokens_name[] = {"k.dim[0]", "k.dim[1]", "k.dim[2]"};
    const att_cache *c = a->cache;
    const int tokens = tokens_dim(a);
    att_status e = check_rows(a, "k", a->k, "spec.key_dim", c->key_dim);
    e = e ? e : check_rows(a, "v", a->v, "spec.value_dim", c->value_dim);
    return e ? e : att_check_dim(c->ctx, "v", a->v, tokens, tokens_name[tokens], a->k->dim[tokens]);
}

/* ---- one head */

/* Returns token i of a sequence, of one head. */
static const void *row_of(const addition *a, const att_tensor *t, int64_t sequence, int64_t head, int64_t i)
{
    const int64_t token = a->offsets ? a->offsets[sequence] + i : i;
    const int64_t element =
        (a->batched ? sequence * t->stride[0] : 0) + head * t->stride[heads_dim(a)] + token * t->stride[tokens_dim(a)];
    return (const char *)t->data + element * (int64_t)att_dtype_size(t->dtype);
}

/* Writes a row of the cache's type or of f32 to y [dim], in the cache's type. */
static void write_row(const att_cache *c, att_dtype type, int64_t dim, const void *x, void *y)
{
    if (type == c->dtype)
        memcpy(y, x, (size_t)dim * att_dtype_size(type));
    else
        (c->dtype == ATT_F16 ? c->kernels->vector.to_f16 : c->kernels->vector.to_bf16)(dim, x, y);
}

/* Transposes a panel's keys from rows [panel][key_dim] to columns [key_dim][panel], or back, in place; panel has room
 * for it. */
static void transpose_panel(const att_cache *c, bool back, void *keys, void *panel)
{
    const int64_t rows = back ? c->key_dim : c->kernels->q_tile, columns = back ? c->kernels->q_tile : c->key_dim;
    memcpy(panel, keys, c->key_bytes * (size_t)c->kernels->q_tile);
    if (c->dtype == ATT_F32) {
        c->kernels->vector.transpose(rows, columns, panel, columns, keys, rows);
        return;
    }
    const uint16_t *x = panel;
    uint16_t *y = keys;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            y[j * rows + i] = x[i * columns + j];
}

static void append_head(const addition *a, int64_t sequence, int64_t head, void *scratch)
{
    const att_cache *c = a->cache;
    const att_cached_sequence *h = &c->sequence[a->first + sequence];
    const int64_t panel = c->kernels->q_tile, n = count_of(a, sequence);
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = (h->length + i) % ATT_KEY_BLOCK;
        const att_page *page = h->page[(h->length + i) / ATT_KEY_BLOCK];
        char *keys = page->at + att_cache_head_at(c, head, page->size);
        char *values = keys + att_cache_keys_bytes(c, page->size);
        char *now = keys + (size_t)(at - at % panel) * c->key_bytes;
        if (i == 0 && !h->loose)
            transpose_panel(c, true, now, scratch);
        write_row(c, a->k->dtype, c->key_dim, row_of(a, a->k, sequence, head, i), keys + (size_t)at * c->key_bytes);
        write_row(c, a->v->dtype, c->value_dim, row_of(a, a->v, sequence, head, i),
                  values + (size_t)at * c->value_bytes);
        if ((at + 1) % panel == 0)
            transpose_panel(c, false, now, scratch);
    }
}

/* ---- all of them */

static void run_task(void *arg, int64_t i, int thread)
{
    const addition *a = arg;
    const int64_t heads = a->cache->kv_heads;
    void *scratch = a->panels ? a->panels + (size_t)thread * a->panel_bytes : NULL;
    for (int64_t item = a->items * i / a->tasks; item < a->items * (i + 1) / a->tasks; item++)
        append_head(a, item / heads, item % heads, scratch);
}

/* Allocates memory of one panel for each thread, if panels become full or one is split into rows. */
static att_status make_panels(addition *a)
{
    const att_cache *c = a->cache;
    const int64_t panel = c->kernels->q_tile;
    bool used = false;
    for (int64_t b = a->first; b < a->last; b++) {
        const att_cached_sequence *h = &c->sequence[b];
        const int64_t n = count_of(a, b - a->first);
        used = used || (n > 0 && (!h->loose || h->length % panel + n >= panel));
    }
    a->panel_bytes = c->key_bytes * (size_t)panel;
    a->panels = used ? att_alloc(c->ctx, (size_t)c->ctx->n_threads, a->panel_bytes) : NULL;
    return used && !a->panels ? ATT_ERR_MEMORY : ATT_OK;
}

/* Makes pages for all new tokens, which are not shared; sequences without new tokens keep sharing theirs. */
static att_status make_room(const addition *a)
{
    att_cache *c = a->cache;
    att_status e = ATT_OK;
    for (int64_t b = a->first; !e && b < a->last; b++)
        if (count_of(a, b - a->first) > 0)
            e = att_cache_own_last_page(c, &c->sequence[b]);
    att_cache_copy_shared(c, a->first, a->last);
    for (int64_t b = a->first; !e && b < a->last; b++)
        if (count_of(a, b - a->first) > 0)
            e = att_cache_make_room(c, &c->sequence[b], count_of(a, b - a->first));
    for (int64_t b = a->first; e && b < a->last; b++)
        att_cache_trim(c, &c->sequence[b]);
    return e;
}

/* Appends `tokens` tokens, of all sequences together, at least 1. */
static att_status append(addition *a, int64_t tokens)
{
    enum { TASK_NUMBERS = 16384 }; /* fewer are not worth waking a thread for */
    att_cache *c = a->cache;
    att_status e = make_panels(a);
    e = e ? e : make_room(a);
    if (!e) {
        a->items = (a->last - a->first) * c->kv_heads;
        const double numbers = (double)tokens * (double)(c->key_dim + c->value_dim) * (double)c->kv_heads;
        const double worth = numbers / TASK_NUMBERS + 1;
        a->tasks = worth < (double)a->items ? (int64_t)worth : a->items;
        att_parallel_partition(c->ctx, a->tasks, run_task, a);
    }
    att_free(c->ctx, a->panels);
    for (int64_t b = a->first; !e && b < a->last; b++) {
        const int64_t n = count_of(a, b - a->first);
        c->sequence[b].length += n;
        c->sequence[b].loose = c->sequence[b].loose || n > 0;
    }
    return e;
}

att_status att_cache_append(att_cache *c, int64_t sequence, const att_tensor *k, const att_tensor *v)
{
    addition a = {.cache = c, .k = k, .v = v, .batched = sequence == ATT_ALL_SEQUENCES};
    att_status e = att_cache_find(c, sequence, &a.first, &a.last);
    e = e ? e : check(&a);
    if (e)
        return e;
    a.n = k->dim[tokens_dim(&a)];
    return a.n == 0 ? ATT_OK : append(&a, a.n * (a.last - a.first));
}

att_status att_cache_append_ragged(att_cache *c, const int64_t *offsets, const att_tensor *k, const att_tensor *v)
{
    if (att_require(__func__, ATT_NAMED({"cache", c}, {"offsets", offsets})))
        return ATT_ERR_ARGUMENT;
    addition a = {.cache = c, .k = k, .v = v, .last = c->sequences, .offsets = offsets};
    int64_t longest;
    att_status e = check(&a);
    e = e ? e : att_check_offsets(c->ctx, "offsets", offsets, c->sequences, "k.dim[0]", k->dim[0], &longest);
    return e || longest == 0 ? e : append(&a, k->dim[0]);
}
