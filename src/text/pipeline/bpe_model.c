/* Byte-pair encoding (Sennrich et al. 2016) with a list of merges: of all adjacent tokens that have a merge, the pair
 * with the lowest number is merged, leftmost first. Pairs are in a heap, so n characters take O(n log n). */
#include <stdlib.h>
#include <string.h>

#include "util/util.h"
#include "text/pipeline/pipeline.h"
#include "text/utf8.h"

/* A part of the piece, in a list; initially a character, or a byte of one. */
typedef struct symbol {
    int32_t id, before, after; /* before, after: symbols, or -1 */
    uint32_t begin, end;       /* bytes of the piece; both 0: merged into the symbol before */
} symbol;

/* ---- merges */

static uint32_t hash_of(int32_t left, int32_t right)
{
    return att_fnv32(att_fnv32(ATT_FNV32_OFFSET, (uint32_t)left), (uint32_t)right);
}

/* Returns the slot of a pair, or the free one where it belongs; NULL: too many collisions. */
static att_hash_slot *find_slot(const att_bpe *b, int32_t left, int32_t right)
{
    const uint32_t hash = hash_of(left, right);
    for (uint32_t i = 0; i < ATT_MAX_PROBES; i++) {
        att_hash_slot *slot = att_hash_slot_at(&b->pairs, hash, i);
        if (slot->item == ATT_NO_ITEM ||
            (slot->hash == hash && b->merge[slot->item].left == left && b->merge[slot->item].right == right))
            return slot;
    }
    return NULL;
}

/* Returns the number of a pair's merge; ATT_NO_ITEM: none. */
static int32_t merge_of(const att_bpe *b, int32_t left, int32_t right)
{
    const att_hash_slot *slot = b->count ? find_slot(b, left, right) : NULL;
    return slot ? slot->item : ATT_NO_ITEM;
}

bool att_split_merge(const json_t *merge, att_byte_view side[2])
{
    const char *s = json_string_value(merge), *end = s ? s + json_string_length(merge) : NULL;
    const char *space = s ? memchr(s, ' ', (size_t)(end - s)) : NULL;
    if (space && !memchr(space + 1, ' ', (size_t)(end - space - 1))) {
        side[0] = (att_byte_view){s, (size_t)(space - s)};
        side[1] = (att_byte_view){space + 1, (size_t)(end - space - 1)};
        return true;
    }
    for (size_t i = 0; i < 2 && json_array_size(merge) == 2; i++) {
        const json_t *text = json_array_get(merge, i);
        side[i] = (att_byte_view){json_string_value(text), json_string_length(text)};
        if (!side[i].data)
            return false;
    }
    return json_array_size(merge) == 2;
}

/* Finds the merge of two tokens, and the token that they become. */
static bool find_merge(const att_pipeline *t, const att_byte_view side[2], att_bytes *joined, att_bpe_merge *m)
{
    const size_t prefix = strlen(t->bpe.prefix), skip = side[1].bytes < prefix ? side[1].bytes : prefix;
    joined->count = 0;
    att_bytes_add(joined, side[0].data, side[0].bytes);
    att_bytes_add(joined, side[1].data + skip, side[1].bytes - skip);
    m->left = att_vocabulary_find(&t->vocabulary, side[0].data, side[0].bytes);
    m->right = att_vocabulary_find(&t->vocabulary, side[1].data, side[1].bytes);
    m->id = joined->status ? ATT_NO_TOKEN : att_vocabulary_find(&t->vocabulary, joined->data, joined->count);
    return m->left != ATT_NO_TOKEN && m->right != ATT_NO_TOKEN && m->id != ATT_NO_TOKEN;
}

static void read_merge(att_settings *s, att_pipeline *t, const json_t *item, att_bytes *joined)
{
    att_bpe *b = &t->bpe;
    att_byte_view side[2];
    att_bpe_merge m;
    if (!att_split_merge(item, side)) {
        att_settings_fail(s, ATT_ERR_FORMAT, "\"%smerges\" has %s, not two tokens", s->within,
                          att_json_show(item).text);
        return;
    }
    if (!find_merge(t, side, joined, &m)) {
        if (joined->status && !s->status)
            s->status = joined->status;
        att_settings_fail(s, ATT_ERR_FORMAT,
                          "\"%smerges\" has %s, but \"%.*s\", \"%.*s\" and the two together are not all in the "
                          "vocabulary",
                          s->within, att_json_show(item).text, (int)att_min((int64_t)side[0].bytes, 40), side[0].data,
                          (int)att_min((int64_t)side[1].bytes, 40), side[1].data);
        return;
    }
    b->merge[b->count] = m;
    att_hash_slot *slot = find_slot(b, m.left, m.right);
    if (!slot)
        att_settings_fail(s, ATT_ERR_UNSUPPORTED, "more than %d merges collide, as if on purpose", ATT_MAX_PROBES);
    else if (slot->item == ATT_NO_ITEM)
        att_hash_insert(&b->pairs, slot, hash_of(m.left, m.right), (int32_t)b->count);
    else
        slot->item = (int32_t)b->count; /* if a merge occurs twice, the last one counts */
    b->count++;
}

/* Copies a prefix or suffix. */
static void read_affix(att_settings *s, const char *key, char affix[ATT_MAX_PREFIX])
{
    const char *text = att_settings_text(s, key, "");
    if (strlen(text) >= ATT_MAX_PREFIX)
        att_settings_unsupported(s, key, "a shorter text");
    else
        memcpy(affix, text, strlen(text) + 1);
}

void att_find_byte_tokens(const att_vocabulary *v, int32_t byte[256])
{
    for (int i = 0; i < 256; i++) {
        char text[8];
        const int n = snprintf(text, sizeof text, "<0x%02X>", i);
        byte[i] = att_vocabulary_find(v, text, (size_t)n);
    }
}

static void read_bpe(att_settings *s, att_pipeline *t)
{
    att_bpe *b = &t->bpe;
    const char *unknown = att_settings_text(s, "unk_token", "");
    if (*unknown) {
        t->vocabulary.unknown = att_vocabulary_find(&t->vocabulary, unknown, strlen(unknown));
        if (t->vocabulary.unknown == ATT_NO_TOKEN)
            att_settings_fail(s, ATT_ERR_FORMAT, "the unknown token \"%.80s\" is not in the vocabulary", unknown);
    }
    att_settings_only_number(s, "dropout", 0);
    read_affix(s, "continuing_subword_prefix", b->prefix);
    read_affix(s, "end_of_word_suffix", b->suffix);
    b->byte_fallback = att_settings_bool(s, "byte_fallback", false);
    b->fuse_unknown = att_settings_bool(s, "fuse_unk", false);
    b->ignore_merges = att_settings_bool(s, "ignore_merges", false);
    att_find_byte_tokens(&t->vocabulary, b->byte);
    const json_t *merges = att_settings_list(s, "merges", true);
    const size_t n = json_array_size(merges);
    if (s->status)
        return;
    b->pairs.ctx = s->ctx;
    b->merge = att_alloc(s->ctx, n, sizeof *b->merge);
    s->status = b->merge ? att_hash_reserve(&b->pairs, (uint32_t)n) : ATT_ERR_MEMORY;
    att_bytes joined = {.ctx = s->ctx};
    for (size_t i = 0; !s->status && i < n; i++)
        read_merge(s, t, json_array_get(merges, i), &joined);
    att_bytes_free(&joined);
}

/* ---- segmenting */

static symbol *symbols_of(const att_encoding *e) { return (symbol *)(void *)e->a.data; }

static void add_symbol(att_encoding *e, int32_t id, size_t begin, size_t end)
{
    const size_t count = e->a.count / sizeof(symbol);
    if (count == INT32_MAX && !e->a.status)
        e->a.status = att_fail(e->a.ctx, ATT_ERR_UNSUPPORTED, "a word of more than %zu symbols is too long", count);
    const int32_t n = (int32_t)count;
    const symbol x = {id, n - 1, -1, (uint32_t)begin, (uint32_t)end};
    att_bytes_add(&e->a, &x, sizeof x);
    if (n > 0 && !e->a.status)
        symbols_of(e)[n - 1].after = n;
}

/* Returns where the next symbol begins: after the last symbol, even if a character between them has no token, as in the
 * package. */
static size_t symbols_end(const att_encoding *e)
{
    const size_t n = e->a.count / sizeof(symbol);
    return n > 0 ? symbols_of(e)[n - 1].end : 0;
}

/* Adds the unknown token for *bytes that are not in the vocabulary, if there are some. */
static void end_unknown(att_encoding *e, size_t *bytes)
{
    const size_t begin = symbols_end(e);
    if (*bytes > 0)
        add_symbol(e, e->t->vocabulary.unknown, begin, begin + *bytes);
    *bytes = 0;
}

/* Adds a symbol for each byte of text [bytes], a character of n bytes with its prefix and suffix; each stands for the
 * whole character, since those of the affixes are not bytes of the piece. */
static bool add_bytes(att_encoding *e, const char *text, size_t bytes, size_t n)
{
    const att_bpe *b = &e->t->bpe;
    const size_t begin = symbols_end(e);
    for (size_t i = 0; i < bytes; i++)
        if (b->byte[(unsigned char)text[i]] == ATT_NO_TOKEN)
            return false;
    for (size_t i = 0; i < bytes; i++)
        add_symbol(e, b->byte[(unsigned char)text[i]], begin, begin + n);
    return true;
}

/* Writes the character at `at` of s, with the prefix and suffix that it has as a token; returns the bytes of all. */
static size_t character(const att_bpe *b, const char *s, size_t at, size_t n, bool last,
                        char text[2 * ATT_MAX_PREFIX + 4])
{
    size_t bytes = 0;
    const size_t prefix = at > 0 ? strlen(b->prefix) : 0, suffix = last ? strlen(b->suffix) : 0;
    memcpy(text, b->prefix, prefix);
    bytes += prefix;
    memcpy(text + bytes, s + at, n);
    bytes += n;
    memcpy(text + bytes, b->suffix, suffix);
    return bytes + suffix;
}

static void add_characters(att_encoding *e, const char *s, size_t bytes)
{
    const att_bpe *b = &e->t->bpe;
    size_t unknown = 0; /* bytes, of one character or of several that are fused */
    for (size_t at = 0, n; at < bytes && !e->a.status; at += n) {
        char text[2 * ATT_MAX_PREFIX + 4];
        uint32_t c;
        n = att_utf8_decode(s + at, bytes - at, &c);
        const size_t length = character(b, s, at, n, at + n == bytes, text);
        const int32_t id = att_vocabulary_find(&e->t->vocabulary, text, length);
        if (id != ATT_NO_TOKEN) {
            end_unknown(e, &unknown);
            add_symbol(e, id, symbols_end(e), symbols_end(e) + n);
        } else if (!b->byte_fallback || !add_bytes(e, text, length, n)) {
            att_encoding_unknown(e, at, at + n);
            if (e->t->vocabulary.unknown == ATT_NO_TOKEN)
                continue;
            if (!b->fuse_unknown)
                end_unknown(e, &unknown);
            unknown += n;
        }
    }
    end_unknown(e, &unknown);
}

/* ---- the heap: the lowest number of a merge first, then the leftmost */

static uint64_t *heap_of(const att_encoding *e) { return (uint64_t *)(void *)e->b.data; }

static void push(att_encoding *e, int32_t left, int32_t right)
{
    if (left < 0 || right < 0)
        return;
    const symbol *x = symbols_of(e);
    const int32_t merge = merge_of(&e->t->bpe, x[left].id, x[right].id);
    if (merge == ATT_NO_ITEM)
        return;
    const uint64_t key = (uint64_t)merge << 32 | (uint32_t)left;
    size_t at = e->b.count / sizeof key;
    att_bytes_add(&e->b, &key, sizeof key);
    uint64_t *heap = heap_of(e);
    if (e->b.status)
        return;
    for (; at > 0 && heap[(at - 1) / 2] > key; at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = key;
}

static uint64_t pop(att_encoding *e)
{
    uint64_t *heap = heap_of(e);
    const size_t n = e->b.count / sizeof *heap - 1;
    const uint64_t top = heap[0], last = heap[n];
    e->b.count -= sizeof *heap;
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        child += child + 1 < n && heap[child + 1] < heap[child];
        if (heap[child] >= last)
            break;
        heap[at] = heap[child];
    }
    heap[at] = last;
    return top;
}

/* Applies a merge, unless its symbols have changed. */
static void merge(att_encoding *e, int32_t number, int32_t left)
{
    symbol *x = symbols_of(e);
    const int32_t right = x[left].after, id = e->t->bpe.merge[number].id;
    if (x[left].end == 0 || right < 0)
        return;
    const int32_t now = merge_of(&e->t->bpe, x[left].id, x[right].id);
    if (now == ATT_NO_ITEM || e->t->bpe.merge[now].id != id)
        return;
    x[left].id = id;
    x[left].end = x[right].end;
    x[left].after = x[right].after;
    x[right].begin = x[right].end = 0;
    if (x[left].after >= 0)
        x[x[left].after].before = left;
    push(e, x[left].before, left);
    push(e, left, x[left].after);
}

static void segment(att_encoding *e, const char *s, size_t bytes)
{
    if (e->t->bpe.ignore_merges) {
        const int32_t whole = att_vocabulary_find(&e->t->vocabulary, s, bytes);
        if (whole != ATT_NO_TOKEN) {
            att_encoding_add(e, whole, 0, bytes);
            return;
        }
    }
    e->a.count = e->b.count = 0;
    add_characters(e, s, bytes);
    const int32_t n = e->a.status ? 0 : (int32_t)(e->a.count / sizeof(symbol));
    for (int32_t i = 1; i < n; i++)
        push(e, i - 1, i);
    while (e->b.count > 0 && !e->b.status) {
        const uint64_t top = pop(e);
        merge(e, (int32_t)(top >> 32), (int32_t)(top & UINT32_MAX));
    }
    for (int32_t i = n > 0 ? 0 : -1; i >= 0; i = symbols_of(e)[i].after) {
        const symbol x = symbols_of(e)[i];
        att_encoding_add(e, x.id, x.begin, x.end);
    }
}

const att_subword_model att_bpe_model = {"BPE", read_bpe, segment};
