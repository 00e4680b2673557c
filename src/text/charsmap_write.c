/* Builds the double array of charsmap.h: first the trie of the keys, then an index for each node, from the root. The
 * base of a node must be unique, and the indices of all children must be free. */
#include "text/charsmap.h"
#include "text/trie.h"

#include <stdlib.h>

enum {
    LEAF_LABEL = 0,
    BLOCK = 256,
    OPEN = 16 * BLOCK,  /* only the last OPEN indices are searched: earlier ones are almost all used */
    MAX_UNITS = 1 << 21 /* offsets have 21 bits */
};
enum { TAKEN = 1, BASE = 2 };

static const uint32_t leaf = 1u << 31, ends_key = 1u << 8;

typedef struct builder {
    att_ctx *ctx;
    att_trie trie; /* ids are those of the rules */
    const char *text;
    const att_rule *rules;
    uint32_t *index_of; /* [nodes] */
    att_bytes units;    /* uint32_t: the unit at each index */
    att_bytes state;    /* a byte per index: TAKEN, BASE of some node */
    uint32_t first_free;
    att_bytes texts; /* replacements */
} builder;

static uint32_t *unit_at(builder *b, uint32_t index) { return (uint32_t *)(void *)b->units.data + index; }

static void grow(builder *b)
{
    uint32_t none[BLOCK];
    for (int i = 0; i < BLOCK; i++)
        none[i] = leaf; /* no edge leads to it */
    att_bytes_add(&b->units, none, sizeof none);
    att_bytes_add(&b->state, (char[BLOCK]){0}, BLOCK);
    if (b->state.count > MAX_UNITS && !b->units.status)
        b->units.status = att_fail(b->ctx, ATT_ERR_UNSUPPORTED, "the rules need more than %d units", MAX_UNITS);
}

static bool is_free(const builder *b, uint32_t index) { return !(b->state.data[index] & TAKEN); }

/* Returns whether all children of a node can be placed with this base. */
static bool fits(const builder *b, const att_trie_node *node, uint32_t base)
{
    if (b->state.data[base] & BASE || (node->id != ATT_NO_ID && !is_free(b, base ^ LEAF_LABEL)))
        return false;
    for (uint32_t i = 0; i < node->count; i++)
        if (!is_free(b, base ^ b->trie.node[node->first + i].byte))
            return false;
    return true;
}

static bool failed(const builder *b) { return b->units.status || b->state.status || b->texts.status; }

static uint32_t find_base(builder *b, const att_trie_node *node)
{
    const uint32_t label = node->id != ATT_NO_ID ? LEAF_LABEL : b->trie.node[node->first].byte;
    if (b->first_free + OPEN < b->state.count)
        b->first_free = (uint32_t)b->state.count - OPEN;
    while (b->first_free < b->state.count && !is_free(b, b->first_free))
        b->first_free++;
    for (uint32_t index = b->first_free; !failed(b); index++) {
        if (index == b->state.count)
            grow(b);
        if (!failed(b) && is_free(b, index) && fits(b, node, index ^ label))
            return index ^ label;
    }
    return 0;
}

static void put(builder *b, uint32_t index, uint32_t unit)
{
    b->state.data[index] |= TAKEN;
    *unit_at(b, index) = unit;
}

static void index_children(builder *b, uint32_t at)
{
    const att_trie_node *node = &b->trie.node[at];
    const uint32_t base = find_base(b, node), index = b->index_of[at];
    if (failed(b))
        return;
    b->state.data[base] |= BASE;
    *unit_at(b, index) |= (index ^ base) << 10;
    if (node->id != ATT_NO_ID) {
        const att_rule r = b->rules[node->id];
        *unit_at(b, index) |= ends_key;
        put(b, base ^ LEAF_LABEL, leaf | (uint32_t)b->texts.count);
        att_bytes_add(&b->texts, b->text + r.begin + r.key, r.to);
        att_bytes_add(&b->texts, "", 1);
    }
    for (uint32_t i = node->first; i < node->first + node->count; i++) {
        b->index_of[i] = base ^ b->trie.node[i].byte;
        put(b, b->index_of[i], b->trie.node[i].byte);
    }
}

static att_status build(builder *b, size_t nodes)
{
    b->index_of = att_alloc(b->ctx, nodes, sizeof *b->index_of);
    if (!b->index_of)
        return ATT_ERR_MEMORY;
    b->index_of[0] = 0;
    grow(b);
    if (!failed(b)) {
        put(b, 0, 0);
        b->state.data[0] |= BASE; /* Darts-clone requires another base for the root */
    }
    for (uint32_t i = 0; i < nodes && !failed(b); i++)
        index_children(b, i);
    return b->units.status ? b->units.status : b->state.status ? b->state.status : b->texts.status;
}

att_status att_charsmap_write(att_bytes *out, const char *text, const att_rule *rules, size_t n)
{
    builder b = {.ctx = out->ctx, .text = text, .rules = rules};
    b.trie.ctx = b.units.ctx = b.state.ctx = b.texts.ctx = out->ctx;
    att_trie_entry *entries = att_alloc(out->ctx, n, sizeof *entries);
    if (!entries)
        return ATT_ERR_MEMORY;
    for (size_t i = 0; i < n; i++)
        entries[i] = (att_trie_entry){text + rules[i].begin, rules[i].key, (int32_t)i};
    qsort(entries, n, sizeof *entries, att_trie_order);
    att_status s = att_trie_init(&b.trie, out->ctx, entries, n);
    s = s ? s : build(&b, b.trie.size);
    if (!s) {
        att_bytes_add_number(out, b.units.count, 4);
        for (uint32_t i = 0; i < b.state.count; i++)
            att_bytes_add_number(out, *unit_at(&b, i), 4);
        att_bytes_add(out, b.texts.data, b.texts.count);
        s = out->status;
    }
    att_free(out->ctx, entries);
    att_free(out->ctx, b.index_of);
    att_trie_free(&b.trie);
    att_bytes_free(&b.units);
    att_bytes_free(&b.state);
    att_bytes_free(&b.texts);
    return s;
}
