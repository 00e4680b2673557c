/* Learns byte-pair merges. All words are concatenated into an array of positions, one for each character; the first and
 * last position of a symbol store its number, so its neighbors are found by its length. For each pair of adjacent
 * symbols its count and its occurrences are stored, and a heap orders pairs by count. A merge visits only the
 * occurrences of its pair. Counts in the heap may be too high, because merges remove neighbors; such a pair is put back
 * with its current count when it reaches the top. */
#include "text/bpe_learn.h"

#include <string.h>
#include <utf8proc.h>

#include "io/progress.h"
#include "text/sentencepiece.h"
#include "text/utf8.h"

enum { NONE = ATT_NO_ITEM };
enum { MAX_BYTES = INT32_MAX / 4 };    /* of words: a position has at most three occurrences */
enum { ANY, LETTERS, DIGITS, OTHERS }; /* classes of characters in a symbol; ANY: the word mark */

typedef struct symbol {
    int32_t length; /* in characters */
    int32_t class;
} symbol;

typedef struct position {
    int32_t symbol; /* or NONE: inside a symbol, or not trained on */
    uint32_t word;
} position;

typedef struct pair {
    int32_t left, right; /* symbols */
    int64_t count;       /* occurrences, weighted by word counts */
    int32_t first, last; /* of its occurrences */
    bool touched;        /* its count has grown since the last merge */
} pair;

/* An occurrence of a pair; it may have been merged meanwhile. */
typedef struct occurrence {
    int32_t position; /* position of the left symbol */
    int32_t next;
} occurrence;

typedef struct heap_item {
    int64_t count; /* of the pair, when it was inserted */
    int32_t pair;
} heap_item;

typedef struct bpe_trainer {
    att_ctx *ctx;
    att_vocabulary *symbols;
    symbol *info; /* [symbols->size] */
    int64_t n_symbols;
    const att_vocab_options *options;
    const char *text; /* of all words */
    const att_word *words;
    att_bytes positions, pairs, occurrences, heap, touched; /* position, pair, occurrence, heap_item, int32_t */
    int32_t free;                                           /* free list of occurrences, or NONE */
    att_hash_table by_symbols;                              /* pairs */
} bpe_trainer;

static position *position_at(const bpe_trainer *l, int32_t i) { return (position *)(void *)l->positions.data + i; }
static pair *pair_at(const bpe_trainer *l, int32_t i) { return (pair *)(void *)l->pairs.data + i; }
static occurrence *occurrence_at(const bpe_trainer *l, int32_t i)
{
    return (occurrence *)(void *)l->occurrences.data + i;
}
static heap_item *heap_item_at(const bpe_trainer *l, size_t i) { return (heap_item *)(void *)l->heap.data + i; }

/* ---- hash table of pairs */

static uint32_t hash_of(int32_t left, int32_t right) /* Fibonacci hashing (Knuth) */
{
    const uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    return (uint32_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 32);
}

static att_hash_slot *slot_of(const bpe_trainer *l, int32_t left, int32_t right)
{
    const uint32_t hash = hash_of(left, right);
    for (uint32_t i = 0;; i++) {
        att_hash_slot *slot = att_hash_slot_at(&l->by_symbols, hash, i);
        if (slot->item == NONE ||
            (slot->hash == hash && pair_at(l, slot->item)->left == left && pair_at(l, slot->item)->right == right))
            return slot;
    }
}

/* Returns the symbol of a merged pair; length 0: the pair must not be merged. */
static symbol joined(const bpe_trainer *l, int32_t left, int32_t right)
{
    if (left < 0 || right < 0)
        return (symbol){0};
    const symbol a = l->info[left], b = l->info[right];
    const bool fits = a.length + b.length <= l->options->max_length && (a.class == ANY || a.class == b.class) &&
                      !(l->options->split_digits && b.class == DIGITS);
    return fits ? (symbol){a.length + b.length, b.class} : (symbol){0};
}

/* ---- neighbors */

static int32_t length_of(const bpe_trainer *l, int32_t symbol) { return symbol == NONE ? 1 : l->info[symbol].length; }

/* Returns the position if it is in the word, or NONE. */
static int32_t in_word(const bpe_trainer *l, int32_t at, uint32_t word)
{
    const int32_t n = (int32_t)(l->positions.count / sizeof(position));
    return at >= 0 && at < n && position_at(l, at)->word == word ? at : NONE;
}

/* Returns the first position of the symbol after the one at `at`, or of the one before it. NONE: end of the word. */
static int32_t after(const bpe_trainer *l, int32_t at)
{
    const position *p = position_at(l, at);
    return in_word(l, at + length_of(l, p->symbol), p->word);
}

static int32_t before(const bpe_trainer *l, int32_t at)
{
    const int32_t last = in_word(l, at - 1, position_at(l, at)->word);
    return last == NONE ? NONE : last + 1 - length_of(l, position_at(l, last)->symbol);
}

static int32_t symbol_after(const bpe_trainer *l, int32_t at)
{
    const int32_t next = after(l, at);
    return next == NONE ? NONE : position_at(l, next)->symbol;
}

/* ---- counting */

/* Adds an occurrence, reusing the free list. */
static int32_t add_occurrence(bpe_trainer *l, int32_t at)
{
    const int32_t v = l->free;
    if (v == NONE) {
        att_bytes_add(&l->occurrences, &(occurrence){at, NONE}, sizeof(occurrence));
        return (int32_t)(l->occurrences.count / sizeof(occurrence)) - 1;
    }
    l->free = occurrence_at(l, v)->next;
    *occurrence_at(l, v) = (occurrence){at, NONE};
    return v;
}

static void add_pair(bpe_trainer *l, int32_t at)
{
    const position *p = position_at(l, at);
    const int32_t right = symbol_after(l, at);
    if (!joined(l, p->symbol, right).length)
        return;
    att_hash_slot *slot = slot_of(l, p->symbol, right);
    const bool first = slot->item == NONE;
    const int32_t i = first ? (int32_t)(l->pairs.count / sizeof(pair)) : slot->item;
    if (first)
        att_bytes_add(&l->pairs, &(pair){p->symbol, right, 0, NONE, NONE, false}, sizeof(pair));
    const int32_t v = add_occurrence(l, at);
    if (l->pairs.status || l->occurrences.status)
        return;
    if (first)
        att_hash_insert(&l->by_symbols, slot, hash_of(p->symbol, right), i);
    pair *q = pair_at(l, i);
    q->count += l->words[p->word].count;
    if (q->last == NONE)
        q->first = v;
    else
        occurrence_at(l, q->last)->next = v;
    q->last = v;
    if (!q->touched)
        att_bytes_add(&l->touched, &i, sizeof i);
    q->touched = true;
    if (first)
        l->pairs.status = att_hash_reserve(&l->by_symbols, l->by_symbols.count + 1);
}

static void remove_pair(bpe_trainer *l, int32_t at)
{
    const position *p = position_at(l, at);
    const int32_t right = symbol_after(l, at);
    const int32_t i = joined(l, p->symbol, right).length ? slot_of(l, p->symbol, right)->item : NONE;
    if (i != NONE)
        pair_at(l, i)->count -= l->words[p->word].count;
}

/* ---- the heap */

static bool better(const bpe_trainer *l, heap_item x, heap_item y)
{
    if (x.count != y.count)
        return x.count > y.count;
    const pair *a = pair_at(l, x.pair), *b = pair_at(l, y.pair);
    const int32_t length =
        l->info[a->left].length + l->info[a->right].length - (l->info[b->left].length + l->info[b->right].length);
    if (length != 0)
        return length < 0;
    return a->left != b->left ? a->left < b->left : a->right < b->right;
}

static void push(bpe_trainer *l, int32_t i)
{
    const heap_item w = {pair_at(l, i)->count, i};
    size_t at = l->heap.count / sizeof w;
    att_bytes_add(&l->heap, &w, sizeof w);
    if (l->heap.status)
        return;
    for (; at > 0 && better(l, w, *heap_item_at(l, (at - 1) / 2)); at = (at - 1) / 2)
        *heap_item_at(l, at) = *heap_item_at(l, (at - 1) / 2);
    *heap_item_at(l, at) = w;
}

static heap_item pop(bpe_trainer *l)
{
    const size_t n = l->heap.count / sizeof(heap_item) - 1;
    const heap_item top = *heap_item_at(l, 0), last = *heap_item_at(l, n);
    l->heap.count = n * sizeof(heap_item);
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && better(l, *heap_item_at(l, child + 1), *heap_item_at(l, child)))
            child++;
        if (!better(l, *heap_item_at(l, child), last))
            break;
        *heap_item_at(l, at) = *heap_item_at(l, child);
    }
    if (n > 0)
        *heap_item_at(l, at) = last;
    return top;
}

/* Pushes all touched pairs. */
static void push_touched(bpe_trainer *l)
{
    const int32_t *touched = (const int32_t *)(const void *)l->touched.data;
    for (size_t i = 0; i < l->touched.count / sizeof *touched; i++) {
        pair_at(l, touched[i])->touched = false;
        push(l, touched[i]);
    }
    l->touched.count = 0;
}

/* ---- learning */

static att_status first_failure(const bpe_trainer *l)
{
    const att_bytes *all[] = {&l->positions, &l->pairs, &l->occurrences, &l->heap, &l->touched};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i]->status)
            return all[i]->status;
    return ATT_OK;
}

static int32_t class_of(const char *s, size_t bytes)
{
    uint32_t c;
    att_utf8_decode(s, bytes, &c);
    if (strncmp(s, ATT_WORD_MARK, bytes) == 0)
        return ANY;
    const utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)c);
    if (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_ME) /* also marks */
        return LETTERS;
    return category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO ? DIGITS : OTHERS;
}

/* Adds the positions of a word. */
static void add_word(bpe_trainer *l, uint32_t word)
{
    const char *at = l->text + l->words[word].begin, *end = at + l->words[word].bytes;
    for (size_t n; at < end; at += n) {
        n = att_piece_char(at, (size_t)(end - at));
        att_bytes_add(&l->positions, &(position){att_vocabulary_find(l->symbols, at, n), word}, sizeof(position));
    }
}

static att_status set_up(bpe_trainer *l, size_t n_words)
{
    size_t bytes = 0;
    for (size_t i = 0; i < n_words; i++)
        bytes += l->words[i].bytes;
    if (bytes > MAX_BYTES || n_words > UINT32_MAX)
        return att_fail(l->ctx, ATT_ERR_UNSUPPORTED, "the different words have %zu bytes in all, more than %d", bytes,
                        MAX_BYTES);
    l->info = att_alloc(l->ctx, (size_t)l->symbols->size, sizeof *l->info);
    if (!l->info || att_hash_reserve(&l->by_symbols, 1) || !att_bytes_reserve(&l->positions, bytes * sizeof(position)))
        return ATT_ERR_MEMORY;
    for (int64_t i = 0; i < l->n_symbols; i++)
        l->info[i] = (symbol){1, class_of(att_vocabulary_get(l->symbols, i), l->symbols->tokens[i].bytes)};
    for (size_t i = 0; i < n_words; i++)
        add_word(l, (uint32_t)i);
    const int32_t n = first_failure(l) ? 0 : (int32_t)(l->positions.count / sizeof(position));
    att_bytes_reserve(&l->occurrences, (size_t)n * sizeof(occurrence));
    for (int32_t i = 0; i < n && !first_failure(l); i++)
        add_pair(l, i);
    push_touched(l);
    return first_failure(l);
}

/* Returns the merged symbol of a pair, which may exist from another pair; NONE: an error. */
static int32_t make_symbol(bpe_trainer *l, const pair *p)
{
    char text[4 * ATT_MAX_SYMBOL];
    const att_vocabulary_token a = l->symbols->tokens[p->left], b = l->symbols->tokens[p->right];
    memcpy(text, l->symbols->text + a.start, a.bytes);
    memcpy(text + a.bytes, l->symbols->text + b.start, b.bytes);
    const int32_t found = att_vocabulary_find(l->symbols, text, a.bytes + b.bytes);
    if (found != ATT_NO_TOKEN)
        return found;
    const int32_t id = (int32_t)l->n_symbols;
    if (!att_vocabulary_add(l->symbols, id, text, a.bytes + b.bytes))
        return NONE;
    l->info[id] = joined(l, p->left, p->right);
    l->n_symbols++;
    return id;
}

/* Merges the pair at `at`. */
static void merge_at(bpe_trainer *l, int32_t at, int32_t symbol)
{
    const int32_t second = after(l, at), first = before(l, at);
    if (first != NONE)
        remove_pair(l, first);
    remove_pair(l, second);
    position_at(l, second - 1)->symbol = position_at(l, second)->symbol = NONE;
    position_at(l, at)->symbol = position_at(l, at + l->info[symbol].length - 1)->symbol = symbol;
    if (first != NONE)
        add_pair(l, first);
    add_pair(l, at);
}

static att_status merge(bpe_trainer *l, int32_t i)
{
    const pair p = *pair_at(l, i);
    const int32_t symbol = make_symbol(l, &p);
    if (symbol == NONE)
        return att_fail(l->ctx, ATT_ERR_UNSUPPORTED, "more than %d symbols collide, as if on purpose", ATT_MAX_PROBES);
    for (int32_t v = p.first, next; v != NONE && !first_failure(l); v = next) {
        const int32_t at = occurrence_at(l, v)->position;
        if (position_at(l, at)->symbol == p.left && symbol_after(l, at) == p.right)
            merge_at(l, at, symbol);
        next = occurrence_at(l, v)->next;
        occurrence_at(l, v)->next = l->free;
        l->free = v;
    }
    pair *q = pair_at(l, i);
    q->count = 0;
    q->first = q->last = NONE;
    push_touched(l);
    return first_failure(l);
}

static att_status learn(bpe_trainer *l)
{
    enum { STEPS = 64 }; /* merges between two reports of progress */
    const int64_t from = l->n_symbols, to = l->symbols->size;
    att_progress p = {.ctx = l->ctx,
                      .call = "att_vocab_train",
                      .report = l->options->progress,
                      .user = l->options->user,
                      .all = to - from};
    while (l->n_symbols < to && l->heap.count > 0) {
        const heap_item w = pop(l);
        const int64_t count = pair_at(l, w.pair)->count;
        if (count < 2)
            continue;
        if (count != w.count) {
            if (count < w.count)
                push(l, w.pair);
            continue;
        }
        const att_status s = merge(l, w.pair);
        if (s)
            return s;
        if (l->n_symbols % STEPS)
            continue;
        const att_status e = att_progress_add(&p, l->n_symbols - from - p.done);
        if (e)
            return e;
    }
    return att_progress_end(&p);
}

att_status att_bpe_learn(att_vocabulary *symbols, int64_t *n, const char *text, const att_word *words, size_t n_words,
                         const att_vocab_options *options)
{
    att_ctx *ctx = symbols->ctx;
    bpe_trainer l = {.ctx = ctx,
                     .symbols = symbols,
                     .n_symbols = *n,
                     .options = options,
                     .text = text,
                     .words = words,
                     .free = NONE};
    l.by_symbols.ctx = l.positions.ctx = l.pairs.ctx = l.occurrences.ctx = l.heap.ctx = l.touched.ctx = ctx;
    att_status s = set_up(&l, n_words);
    s = s ? s : learn(&l);
    *n = l.n_symbols;
    att_free(ctx, l.info);
    att_hash_free(&l.by_symbols);
    att_bytes_free(&l.positions);
    att_bytes_free(&l.pairs);
    att_bytes_free(&l.occurrences);
    att_bytes_free(&l.heap);
    att_bytes_free(&l.touched);
    return s;
}
