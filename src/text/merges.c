/* All words lie in one row of places, one for each character; the first and the last place of a symbol say which it is,
 * so its neighbours are found from its length. Of each pair of symbols is known how often they are neighbours and where
 * they have been; a heap has the pairs, the most frequent first. A merge looks at the places of its pair only. Counts
 * in the heap may be too high, as merges take neighbours away: such a pair goes back when it comes up. */
#include "text/merges.h"

#include <string.h>
#include <utf8proc.h>

#include "text/sentencepiece.h"
#include "text/utf8.h"

enum { NONE = ATT_NO_ITEM };
enum { MAX_BYTES = INT32_MAX / 4 };    /* of words: of each place there are three visits at most */
enum { ANY, LETTERS, DIGITS, OTHERS }; /* what a symbol is made of; ANY: the mark for a space */

typedef struct symbol {
    int32_t length; /* characters */
    int32_t class;
} symbol;

typedef struct place {
    int32_t symbol; /* or NONE: it is amid a symbol, or is not learnt from */
    uint32_t word;
} place;

typedef struct pair {
    int32_t left, right; /* symbols */
    int64_t count;       /* of words in which they are neighbours, with their counts */
    int32_t first, last; /* of its visits */
    bool touched;        /* became more frequent since the last merge */
} pair;

/* Where a pair has been; it may be there no longer. */
typedef struct visit {
    int32_t place; /* of its left symbol */
    int32_t next;
} visit;

typedef struct waiting {
    int64_t count; /* of the pair, when it was put here */
    int32_t pair;
} waiting;

typedef struct learner {
    att_ctx *ctx;
    att_vocabulary *symbols;
    symbol *info; /* [symbols->size] */
    int64_t n_symbols, max_length;
    bool split_digits;
    const att_word *words;
    att_bytes places, pairs, visits, heap, touched; /* place, pair, visit, waiting, int32_t */
    int32_t free;                                   /* the first visit of those that are over, or NONE */
    att_hash_table by_symbols;                      /* pairs */
} learner;

static place *place_at(const learner *l, int32_t i) { return (place *)(void *)l->places.data + i; }
static pair *pair_at(const learner *l, int32_t i) { return (pair *)(void *)l->pairs.data + i; }
static visit *visit_at(const learner *l, int32_t i) { return (visit *)(void *)l->visits.data + i; }
static waiting *waiting_at(const learner *l, size_t i) { return (waiting *)(void *)l->heap.data + i; }

/* ---- pairs by their symbols */

static uint32_t hash_of(int32_t left, int32_t right) /* Fibonacci hashing (Knuth) */
{
    const uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    return (uint32_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 32);
}

static att_hash_slot *slot_of(const learner *l, int32_t left, int32_t right)
{
    const uint32_t hash = hash_of(left, right);
    for (uint32_t i = 0;; i++) {
        att_hash_slot *slot = att_hash_slot_at(&l->by_symbols, hash, i);
        if (slot->item == NONE ||
            (slot->hash == hash && pair_at(l, slot->item)->left == left && pair_at(l, slot->item)->right == right))
            return slot;
    }
}

/* The symbol that two make; length 0: they may not. */
static symbol joined(const learner *l, int32_t left, int32_t right)
{
    if (left < 0 || right < 0)
        return (symbol){0};
    const symbol a = l->info[left], b = l->info[right];
    const bool fits = a.length + b.length <= l->max_length && (a.class == ANY || a.class == b.class) &&
                      !(l->split_digits && b.class == DIGITS);
    return fits ? (symbol){a.length + b.length, b.class} : (symbol){0};
}

/* ---- neighbours */

static int32_t length_of(const learner *l, int32_t symbol) { return symbol == NONE ? 1 : l->info[symbol].length; }

/* The place in the same word, or NONE. */
static int32_t in_word(const learner *l, int32_t at, uint32_t word)
{
    const int32_t n = (int32_t)(l->places.count / sizeof(place));
    return at >= 0 && at < n && place_at(l, at)->word == word ? at : NONE;
}

/* The first place of the symbol behind the one that begins at `at`; or of the one before it. NONE: the word ends. */
static int32_t after(const learner *l, int32_t at)
{
    const place *p = place_at(l, at);
    return in_word(l, at + length_of(l, p->symbol), p->word);
}

static int32_t before(const learner *l, int32_t at)
{
    const int32_t last = in_word(l, at - 1, place_at(l, at)->word);
    return last == NONE ? NONE : last + 1 - length_of(l, place_at(l, last)->symbol);
}

static int32_t symbol_after(const learner *l, int32_t at)
{
    const int32_t next = after(l, at);
    return next == NONE ? NONE : place_at(l, next)->symbol;
}

/* ---- counting */

/* A visit of a place, in the room of one that is over where there is one. */
static int32_t add_visit(learner *l, int32_t at)
{
    const int32_t v = l->free;
    if (v == NONE) {
        att_bytes_add(&l->visits, &(visit){at, NONE}, sizeof(visit));
        return (int32_t)(l->visits.count / sizeof(visit)) - 1;
    }
    l->free = visit_at(l, v)->next;
    *visit_at(l, v) = (visit){at, NONE};
    return v;
}

static void add_pair(learner *l, int32_t at)
{
    const place *p = place_at(l, at);
    const int32_t right = symbol_after(l, at);
    if (!joined(l, p->symbol, right).length)
        return;
    att_hash_slot *slot = slot_of(l, p->symbol, right);
    const bool first = slot->item == NONE;
    const int32_t i = first ? (int32_t)(l->pairs.count / sizeof(pair)) : slot->item;
    if (first)
        att_bytes_add(&l->pairs, &(pair){p->symbol, right, 0, NONE, NONE, false}, sizeof(pair));
    const int32_t v = add_visit(l, at);
    if (l->pairs.status || l->visits.status)
        return;
    if (first)
        att_hash_take(&l->by_symbols, slot, hash_of(p->symbol, right), i);
    pair *q = pair_at(l, i);
    q->count += l->words[p->word].count;
    if (q->last == NONE)
        q->first = v;
    else
        visit_at(l, q->last)->next = v;
    q->last = v;
    if (!q->touched)
        att_bytes_add(&l->touched, &i, sizeof i);
    q->touched = true;
    if (first)
        l->pairs.status = att_hash_reserve(&l->by_symbols, l->by_symbols.count + 1);
}

static void remove_pair(learner *l, int32_t at)
{
    const place *p = place_at(l, at);
    const int32_t right = symbol_after(l, at);
    const int32_t i = joined(l, p->symbol, right).length ? slot_of(l, p->symbol, right)->item : NONE;
    if (i != NONE)
        pair_at(l, i)->count -= l->words[p->word].count;
}

/* ---- the heap */

static bool better(const learner *l, waiting x, waiting y)
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

static void push(learner *l, int32_t i)
{
    const waiting w = {pair_at(l, i)->count, i};
    size_t at = l->heap.count / sizeof w;
    att_bytes_add(&l->heap, &w, sizeof w);
    if (l->heap.status)
        return;
    for (; at > 0 && better(l, w, *waiting_at(l, (at - 1) / 2)); at = (at - 1) / 2)
        *waiting_at(l, at) = *waiting_at(l, (at - 1) / 2);
    *waiting_at(l, at) = w;
}

static waiting pop(learner *l)
{
    const size_t n = l->heap.count / sizeof(waiting) - 1;
    const waiting top = *waiting_at(l, 0), last = *waiting_at(l, n);
    l->heap.count = n * sizeof(waiting);
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && better(l, *waiting_at(l, child + 1), *waiting_at(l, child)))
            child++;
        if (!better(l, *waiting_at(l, child), last))
            break;
        *waiting_at(l, at) = *waiting_at(l, child);
    }
    if (n > 0)
        *waiting_at(l, at) = last;
    return top;
}

/* Pairs that became more frequent go into the heap. */
static void push_touched(learner *l)
{
    const int32_t *touched = (const int32_t *)(const void *)l->touched.data;
    for (size_t i = 0; i < l->touched.count / sizeof *touched; i++) {
        pair_at(l, touched[i])->touched = false;
        push(l, touched[i]);
    }
    l->touched.count = 0;
}

/* ---- learning */

static att_status first_failure(const learner *l)
{
    const att_bytes *all[] = {&l->places, &l->pairs, &l->visits, &l->heap, &l->touched};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i]->status)
            return all[i]->status;
    return ATT_OK;
}

static int32_t class_of(const char *s, size_t bytes)
{
    uint32_t c;
    att_utf8_decode((const unsigned char *)s, bytes, &c);
    if (strncmp(s, ATT_WORD_MARK, bytes) == 0)
        return ANY;
    switch (utf8proc_category((utf8proc_int32_t)c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
        return LETTERS;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
        return DIGITS;
    default:
        return OTHERS;
    }
}

/* The places of a word. */
static void add_word(learner *l, uint32_t word)
{
    const att_byte_view text = l->words[word].text;
    for (size_t i = 0; i < text.bytes;) {
        const size_t n = att_piece_char(text.data + i, text.bytes - i);
        att_bytes_add(&l->places, &(place){att_vocabulary_find(l->symbols, text.data + i, n), word}, sizeof(place));
        i += n;
    }
}

static att_status set_up(learner *l, size_t n_words)
{
    size_t bytes = 0;
    for (size_t i = 0; i < n_words; i++)
        bytes += l->words[i].text.bytes;
    if (bytes > MAX_BYTES || n_words > UINT32_MAX)
        return att_fail(l->ctx, ATT_ERR_UNSUPPORTED, "the different words have %zu bytes in all, more than %d", bytes,
                        MAX_BYTES);
    l->info = att_alloc(l->ctx, (size_t)l->symbols->size, sizeof *l->info);
    if (!l->info || att_hash_reserve(&l->by_symbols, 1) || !att_bytes_reserve(&l->places, bytes * sizeof(place)))
        return ATT_ERR_MEMORY;
    for (int64_t i = 0; i < l->n_symbols; i++)
        l->info[i] = (symbol){1, class_of(att_vocabulary_get(l->symbols, i), l->symbols->tokens[i].bytes)};
    for (size_t i = 0; i < n_words; i++)
        add_word(l, (uint32_t)i);
    const int32_t n = first_failure(l) ? 0 : (int32_t)(l->places.count / sizeof(place));
    att_bytes_reserve(&l->visits, (size_t)n * sizeof(visit));
    for (int32_t i = 0; i < n && !first_failure(l); i++)
        add_pair(l, i);
    push_touched(l);
    return first_failure(l);
}

/* The symbol of two, which may be there already, of others; NONE: a failure. */
static int32_t make_symbol(learner *l, const pair *p)
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

/* Makes one symbol of the pair at `at` and the place behind. */
static void merge_at(learner *l, int32_t at, int32_t symbol)
{
    const int32_t second = after(l, at), first = before(l, at);
    if (first != NONE)
        remove_pair(l, first);
    remove_pair(l, second);
    place_at(l, second - 1)->symbol = place_at(l, second)->symbol = NONE;
    place_at(l, at)->symbol = place_at(l, at + l->info[symbol].length - 1)->symbol = symbol;
    if (first != NONE)
        add_pair(l, first);
    add_pair(l, at);
}

static att_status merge(learner *l, int32_t i)
{
    const pair p = *pair_at(l, i);
    const int32_t symbol = make_symbol(l, &p);
    if (symbol == NONE)
        return att_fail(l->ctx, ATT_ERR_UNSUPPORTED, "more than %d symbols collide, as if made for it", ATT_MAX_PROBES);
    for (int32_t v = p.first, next; v != NONE && !first_failure(l); v = next) {
        const int32_t at = visit_at(l, v)->place;
        if (place_at(l, at)->symbol == p.left && symbol_after(l, at) == p.right)
            merge_at(l, at, symbol);
        next = visit_at(l, v)->next;
        visit_at(l, v)->next = l->free;
        l->free = v;
    }
    pair *q = pair_at(l, i);
    q->count = 0;
    q->first = q->last = NONE;
    push_touched(l);
    return first_failure(l);
}

static att_status learn(learner *l, const att_merge_options *opt)
{
    enum { STEPS = 64 }; /* between two looks at the clock and at the flag */
    const int64_t from = l->n_symbols, to = l->symbols->size;
    while (l->n_symbols < to && l->heap.count > 0) {
        const waiting w = pop(l);
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
        if (att_cancelled(l->ctx))
            return att_fail(l->ctx, ATT_ERR_CANCELLED, "cancelled");
        if (opt->progress)
            opt->progress(opt->user, (double)(l->n_symbols - from) / (double)(to - from));
    }
    return ATT_OK;
}

att_status att_merges_learn(att_vocabulary *symbols, int64_t *n, const att_word *words, size_t n_words,
                            const att_merge_options *opt)
{
    att_ctx *ctx = symbols->ctx;
    learner l = {.ctx = ctx,
                 .symbols = symbols,
                 .n_symbols = *n,
                 .max_length = opt->max_length,
                 .split_digits = opt->split_digits,
                 .words = words,
                 .free = NONE};
    l.by_symbols.ctx = l.places.ctx = l.pairs.ctx = l.visits.ctx = l.heap.ctx = l.touched.ctx = ctx;
    att_status s = set_up(&l, n_words);
    if (!s)
        s = learn(&l, opt);
    *n = l.n_symbols;
    att_free(ctx, l.info);
    att_hash_free(&l.by_symbols);
    att_bytes_free(&l.places);
    att_bytes_free(&l.pairs);
    att_bytes_free(&l.visits);
    att_bytes_free(&l.heap);
    att_bytes_free(&l.touched);
    return s;
}
