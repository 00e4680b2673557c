#include "train/distinct_batches.h"
#include "util/util.h"
#include "text/hash_table.h"

#include <string.h>

/* ---- numbers of texts */

typedef struct text_list {
    const char *const *texts;
    const size_t *bytes;  /* or NULL */
    const uint32_t *item; /* item[k] is the first text with number k */
} text_list;

static size_t bytes_of(const text_list *l, int64_t i) { return l->bytes ? l->bytes[i] : strlen(l->texts[i]); }

/* Returns the slot of text i, which is free if the text is new. */
static att_hash_slot *slot_of(const att_hash_table *table, const text_list *l, int64_t i, uint32_t hash)
{
    const size_t n = bytes_of(l, i);
    for (uint32_t k = 0;; k++) {
        att_hash_slot *slot = att_hash_slot_at(table, hash, k);
        if (slot->item == ATT_NO_ITEM)
            return slot;
        const uint32_t other = l->item[slot->item];
        if (slot->hash == hash && bytes_of(l, other) == n && memcmp(l->texts[other], l->texts[i], n) == 0)
            return slot;
    }
}

static att_status number_texts(att_distinct_batches *d, const char *const *texts, const size_t *bytes)
{
    const int64_t n = d->n * d->columns;
    att_hash_table table = {.ctx = d->ctx};
    uint32_t *item = att_alloc(d->ctx, (size_t)n, sizeof *item);
    const text_list l = {texts, bytes, item};
    att_status e = item ? att_hash_reserve(&table, (uint32_t)n) : ATT_ERR_MEMORY;
    for (int64_t i = 0; !e && i < n; i++) {
        const uint32_t hash = att_fnv32_bytes(ATT_FNV32_OFFSET, texts[i], bytes_of(&l, i));
        att_hash_slot *slot = slot_of(&table, &l, i, hash);
        if (slot->item == ATT_NO_ITEM) {
            item[d->texts] = (uint32_t)i;
            att_hash_insert(&table, slot, hash, (int32_t)d->texts++);
        }
        d->text[i] = (uint32_t)slot->item;
    }
    att_hash_free(&table);
    att_free(d->ctx, item);
    return e;
}

att_status att_distinct_batches_make(att_ctx *ctx, const char *const *texts, const size_t *bytes, int64_t n,
                                     int64_t columns, att_distinct_batches *out)
{
    *out = (att_distinct_batches){.ctx = ctx, .n = n, .columns = columns};
    out->text = att_alloc(ctx, (size_t)(n * columns), sizeof *out->text);
    out->next = att_alloc(ctx, (size_t)n, sizeof *out->next);
    out->shuffled = att_alloc(ctx, (size_t)n, sizeof *out->shuffled);
    att_status e = out->text && out->next && out->shuffled ? number_texts(out, texts, bytes) : ATT_ERR_MEMORY;
    if (!e) {
        out->used = att_alloc(ctx, (size_t)out->texts, sizeof *out->used);
        e = out->used ? ATT_OK : ATT_ERR_MEMORY;
    }
    if (e)
        att_distinct_batches_free(out);
    return e;
}

att_status att_distinct_batches_refuse(att_ctx *ctx, int64_t batch, int64_t filled)
{
    return att_fail(ctx, ATT_ERR_ARGUMENT,
                    "a batch of %lld without a text that occurs twice cannot be filled, only one of %lld: texts repeat "
                    "too often for so large a batch",
                    (long long)batch, (long long)filled);
}

void att_distinct_batches_free(att_distinct_batches *d)
{
    if (!d->ctx)
        return;
    att_free(d->ctx, d->text);
    att_free(d->ctx, d->used);
    att_free(d->ctx, d->next);
    att_free(d->ctx, d->shuffled);
    *d = (att_distinct_batches){0};
}

/* ---- batches */

/* Adds the example to batch number `batch`, unless one of its texts is already there. Returns whether it was added. */
static bool add(att_distinct_batches *d, uint32_t example, uint32_t batch)
{
    const uint32_t *text = d->text + (int64_t)example * d->columns;
    for (int64_t i = 0; i < d->columns; i++)
        if (d->used[text[i]] == batch)
            return false;
    for (int64_t i = 0; i < d->columns; i++)
        d->used[text[i]] = batch;
    return true;
}

/* The remaining examples are a list: next[i] is the position after i in `shuffled`, n at the end. */
int64_t att_distinct_batches_split(att_distinct_batches *d, int64_t batch, uint32_t *order, uint32_t *first)
{
    uint32_t begin = 0, taken = 0, batches = 0;
    memcpy(d->shuffled, order, (size_t)d->n * sizeof *order);
    memset(d->used, 0, (size_t)d->texts * sizeof *d->used);
    for (int64_t i = 0; i < d->n; i++)
        d->next[i] = (uint32_t)i + 1;
    while (begin < d->n) {
        uint32_t *link = &begin; /* the link to position i */
        first[batches++] = taken;
        for (uint32_t i = begin; i < d->n && taken - first[batches - 1] < batch; i = d->next[i]) {
            if (add(d, d->shuffled[i], batches)) {
                order[taken++] = d->shuffled[i];
                *link = d->next[i];
            } else
                link = &d->next[i];
        }
    }
    first[batches] = taken;
    return batches;
}
