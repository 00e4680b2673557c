#include "text/wordpiece.h"
#include "util/util.h"

#include <string.h>

att_status att_vocabulary_init(att_vocabulary *v, att_ctx *ctx, int64_t size, size_t text_bytes)
{
    *v = (att_vocabulary){.ctx = ctx, .size = size, .ids.ctx = ctx, .unknown = ATT_NO_TOKEN};
    v->tokens = att_alloc(ctx, (size_t)size, sizeof *v->tokens);
    v->text = att_alloc(ctx, text_bytes + (size_t)size, 1);
    if (!v->tokens || !v->text || att_hash_reserve(&v->ids, (uint32_t)size)) {
        att_vocabulary_free(v);
        return ATT_ERR_MEMORY;
    }
    memset(v->tokens, 0, (size_t)size * sizeof *v->tokens);
    return ATT_OK;
}

void att_vocabulary_free(att_vocabulary *v)
{
    att_free(v->ctx, v->tokens);
    att_free(v->ctx, v->text);
    att_hash_free(&v->ids);
    *v = (att_vocabulary){.ctx = v->ctx, .ids.ctx = v->ctx};
}

const char *att_vocabulary_get(const att_vocabulary *v, int64_t id)
{
    return id >= 0 && id < v->size && v->tokens[id].bytes > 0 ? v->text + v->tokens[id].start : NULL;
}

att_byte_view att_vocabulary_view(const att_vocabulary *v, int64_t id)
{
    const char *text = att_vocabulary_get(v, id);
    return (att_byte_view){text, text ? v->tokens[id].bytes : 0};
}

/* Returns the slot of the token `head` followed by `tail`, with its hash, or the free slot for it; NULL: too many
 * probes. */
static att_hash_slot *find_slot(const att_vocabulary *v, uint32_t hash, const char *head, size_t head_bytes,
                                const char *tail, size_t tail_bytes)
{
    for (uint32_t i = 0; i < ATT_MAX_PROBES; i++) {
        att_hash_slot *slot = att_hash_slot_at(&v->ids, hash, i);
        if (slot->item == ATT_NO_TOKEN)
            return slot;
        if (slot->hash != hash || v->tokens[slot->item].bytes != head_bytes + tail_bytes)
            continue;
        const char *token = v->text + v->tokens[slot->item].start;
        if (memcmp(token, head, head_bytes) == 0 && memcmp(token + head_bytes, tail, tail_bytes) == 0)
            return slot;
    }
    return NULL;
}

static int32_t find(const att_vocabulary *v, uint32_t hash, const char *head, size_t head_bytes, const char *tail,
                    size_t tail_bytes)
{
    const att_hash_slot *slot = find_slot(v, hash, head, head_bytes, tail, tail_bytes);
    return slot ? slot->item : ATT_NO_TOKEN;
}

int32_t att_vocabulary_find(const att_vocabulary *v, const char *token, size_t bytes)
{
    return find(v, att_fnv32_bytes(ATT_FNV32_OFFSET, token, bytes), "", 0, token, bytes);
}

void att_vocabulary_set(att_vocabulary *v, int32_t id, const char *token, size_t bytes)
{
    v->tokens[id] = (att_vocabulary_token){(uint32_t)v->used, (uint32_t)bytes};
    memcpy(v->text + v->used, token, bytes);
    v->text[v->used + bytes] = 0;
    v->used += bytes + 1;
}

bool att_vocabulary_add(att_vocabulary *v, int32_t id, const char *token, size_t bytes)
{
    const uint32_t hash = att_fnv32_bytes(ATT_FNV32_OFFSET, token, bytes);
    att_hash_slot *slot = find_slot(v, hash, "", 0, token, bytes);
    if (!slot)
        return false;
    att_hash_insert(&v->ids, slot, hash, id);
    att_vocabulary_set(v, id, token, bytes);
    v->longest = bytes > v->longest ? bytes : v->longest;
    return true;
}

/* Returns the longest token at the start of word [bytes], and its length. All prefixes are hashed in one pass. */
static int32_t longest_piece(const att_vocabulary *v, const char *prefix, size_t prefix_bytes, const char *word,
                             size_t bytes, size_t *length)
{
    uint32_t hash[4 * ATT_MAX_WORD]; /* of each prefix */
    size_t end = bytes < v->longest ? bytes : v->longest;
    uint32_t h = att_fnv32_bytes(ATT_FNV32_OFFSET, prefix, prefix_bytes);
    for (size_t i = 0; i < end; i++)
        hash[i] = h = att_fnv32(h, (unsigned char)word[i]);
    for (; end > 0; end--) {
        if (end < bytes && ((unsigned char)word[end] & 0xC0) == 0x80)
            continue; /* inside a character */
        const int32_t id = find(v, hash[end - 1], prefix, prefix_bytes, word, end);
        if (id != ATT_NO_TOKEN) {
            *length = end;
            return id;
        }
    }
    return ATT_NO_TOKEN;
}

bool att_wordpiece_has(const att_vocabulary *v, const char *text, size_t bytes)
{
    const uint32_t inside = att_fnv32_bytes(att_fnv32_bytes(ATT_FNV32_OFFSET, v->prefix, v->prefix_bytes), text, bytes);
    return att_vocabulary_find(v, text, bytes) != ATT_NO_TOKEN ||
           find(v, inside, v->prefix, v->prefix_bytes, text, bytes) != ATT_NO_TOKEN;
}

int att_wordpiece(const att_vocabulary *v, const char *word, size_t bytes, int32_t *ids)
{
    int n = 0;
    size_t length;
    for (size_t i = 0; i < bytes; i += length) {
        ids[n] = longest_piece(v, v->prefix, i > 0 ? v->prefix_bytes : 0, word + i, bytes - i, &length);
        if (ids[n++] == ATT_NO_TOKEN) {
            ids[0] = v->unknown;
            return 1;
        }
    }
    return n;
}
