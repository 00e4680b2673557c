/* Memory: the context's allocator, and arenas. */
#include "base/base.h"

#include <string.h>

enum { ALIGNMENT = 64 };

size_t att_size_mul(size_t a, size_t b)
{
    size_t product;
    return __builtin_mul_overflow(a, b, &product) ? SIZE_MAX : product;
}

static void *allocate(att_ctx *ctx, size_t bytes)
{
    if (att_require("att_alloc", ATT_NAMED({"ctx", ctx})))
        return NULL;
    void *p = bytes > SIZE_MAX / 2 ? NULL : ctx->allocator.alloc(ctx->allocator.user, bytes ? bytes : 1, ALIGNMENT);
    if (!p && bytes == SIZE_MAX)
        att_fail(ctx, ATT_ERR_MEMORY, "out of memory: the size is more than an address can count");
    else if (!p)
        att_fail(ctx, ATT_ERR_MEMORY, "out of memory: %zu bytes requested", bytes);
    return p;
}

void *att_alloc(att_ctx *ctx, size_t count, size_t element_size)
{
    return allocate(ctx, att_size_mul(count, element_size));
}

void *att_calloc(att_ctx *ctx, size_t count, size_t element_size)
{
    void *p = att_alloc(ctx, count, element_size);
    return p ? memset(p, 0, count * element_size) : NULL;
}

void att_free(att_ctx *ctx, void *p)
{
    if (ctx && p)
        ctx->allocator.free(ctx->allocator.user, p);
}

att_status att_grow_array(att_ctx *ctx, void *array, size_t size, size_t count, size_t more, size_t *room)
{
    enum { MIN = 64 };
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"array", array}, {"room", room})))
        return ATT_ERR_ARGUMENT;
    if (more <= *room - count)
        return ATT_OK;
    size_t wanted = *room ? *room : MIN;
    while (wanted - count < more && wanted <= SIZE_MAX / 2)
        wanted *= 2;
    if (wanted - count < more)
        return att_fail(ctx, ATT_ERR_MEMORY, "an array of %zu elements and %zu more is too large", count, more);
    void *items, *larger = att_alloc(ctx, wanted, size);
    if (!larger)
        return ATT_ERR_MEMORY;
    memcpy(&items, array, sizeof items); /* all pointers to objects have the same representation */
    if (count > 0)
        memcpy(larger, items, count * size);
    att_free(ctx, items);
    memcpy(array, &larger, sizeof larger);
    *room = wanted;
    return ATT_OK;
}

/* ---- arena
 *
 *    first                     current
 *    [header|data.......] -> [header|data....     ] -> [header|            ]   kept for later
 *             start = 0              start = 900
 *                                            ^ used
 *
 * start is the value of arena.used when the block was entered: the block has used - start bytes in use. */

enum { SMALLEST_BLOCK = 64 * 1024 };

struct att_arena_block {
    _Alignas(ALIGNMENT) att_arena_block *next;
    size_t size; /* size of the data */
    size_t start;
    _Alignas(ALIGNMENT) unsigned char data[];
};

void att_arena_init(att_arena *a, att_ctx *ctx) { *a = (att_arena){.ctx = ctx}; }

static bool fits(const att_arena *a, const att_arena_block *b, size_t bytes)
{
    return bytes <= b->size - (a->used - b->start);
}

/* Appends a block as large as all others together (so there are O(log n) blocks), but at least max_used. */
static att_arena_block *append(att_arena *a, size_t bytes)
{
    size_t size = a->max_used > SMALLEST_BLOCK ? a->max_used : SMALLEST_BLOCK, total = 0;
    att_arena_block **end = &a->first;
    for (; *end; end = &(*end)->next)
        total += (*end)->size;
    size = total > size ? total : size;
    size = bytes > size || a->tight ? bytes : size;
    att_arena_block *b = allocate(a->ctx, sizeof *b + size);
    if (!b)
        return NULL;
    *b = (att_arena_block){.size = size};
    return *end = b;
}

void *att_arena_alloc(att_arena *a, size_t bytes)
{
    if (bytes > SIZE_MAX / 2) {
        att_fail(a->ctx, ATT_ERR_MEMORY, "out of memory: the size is more than an address can count");
        return NULL;
    }
    bytes = bytes ? (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT : ALIGNMENT;
    att_arena_block *b = a->current ? a->current : a->first;
    while (b && !fits(a, b, bytes)) {
        b = b->next;
        if (b)
            b->start = a->used;
    }
    if (!b) {
        b = append(a, bytes);
        if (!b)
            return NULL;
        b->start = a->used;
    }
    void *p = b->data + (a->used - b->start);
    a->current = b;
    a->used += bytes;
    a->max_used = a->used > a->max_used ? a->used : a->max_used;
    return p;
}

size_t att_arena_mark(const att_arena *a) { return a->used; }

void att_arena_release(att_arena *a, size_t mark)
{
    att_arena_block *b = a->first;
    while (b != a->current && b->next->start < mark)
        b = b->next;
    a->current = b;
    a->used = mark;
}

size_t att_arena_bytes(const att_arena *a)
{
    size_t bytes = 0;
    for (const att_arena_block *b = a->first; b; b = b->next)
        bytes += sizeof *b + b->size;
    return bytes;
}

static void free_blocks(const att_arena *a, att_arena_block *b)
{
    for (att_arena_block *next; b; b = next) {
        next = b->next;
        att_free(a->ctx, b);
    }
}

void att_arena_trim(att_arena *a)
{
    if (a->used == 0) {
        att_arena_free(a);
    } else {
        free_blocks(a, a->current->next);
        a->current->next = NULL;
        a->max_used = a->used;
    }
}

void att_arena_free(att_arena *a)
{
    free_blocks(a, a->first);
    att_arena_init(a, a->ctx);
}

void att_arena_reset(att_arena *a)
{
    const size_t max_used = a->max_used;
    if (a->first && a->first->next)
        att_arena_free(a);
    else
        att_arena_release(a, 0);
    a->max_used = max_used;
}
