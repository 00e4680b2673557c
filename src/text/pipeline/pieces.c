#include "text/pipeline/pieces.h"

#include <string.h>

#include "text/utf8.h"
#include "text/wordpiece.h"
#include "util/array.h"

/* A normalizer lengthens a text by a factor of at most 18 (NFKC) or that of Replace; a tokenizer with many normalizers
 * could fill the memory.
 */
enum { MAX_GROWTH = 64, MORE = 1 << 20 };

static void fail(att_pieces *p, att_status s)
{
    if (!p->status)
        p->status = s;
}

static void add(att_aligned *a, const char *s, size_t bytes, att_span origin)
{
    if (a->text.count + bytes > a->limit && !a->text.status)
        a->text.status = att_fail(a->text.ctx, ATT_ERR_UNSUPPORTED,
                                  "the normalizers make more than %zu bytes of this text, which is too long", a->limit);
    att_bytes_add(&a->text, s, bytes);
    for (size_t i = 0; i < bytes; i++)
        att_bytes_add(&a->origin, &origin, sizeof origin);
}

static void list_add(att_pieces *p, att_piece_list *list, att_text_piece piece)
{
    if (p->status || piece.begin == piece.end)
        return;
    fail(p, att_grow(p->ctx, &list->piece, sizeof piece, list->count, 1, &list->capacity));
    if (!p->status)
        list->piece[list->count++] = piece;
}

void att_pieces_init(att_pieces *p, att_ctx *ctx, const char *text, size_t bytes)
{
    const size_t max = bytes < INT32_MAX / MAX_GROWTH ? MAX_GROWTH * bytes + MORE : INT32_MAX;
    const att_aligned empty = {{.ctx = ctx}, {.ctx = ctx}, max};
    *p = (att_pieces){
        .ctx = ctx, .text = empty, .rewritten = empty, .matches.ctx = ctx, .match.time = att_regex_time(bytes)};
    if (bytes > INT32_MAX) {
        fail(p, att_fail(ctx, ATT_ERR_UNSUPPORTED, "a text of %zu bytes is too long: %d at most", bytes, INT32_MAX));
        return;
    }
    att_bytes_reserve(&p->text.text, bytes);
    att_bytes_reserve(&p->text.origin, bytes * sizeof(att_span));
    for (size_t i = 0, n; i < bytes; i += n) {
        uint32_t c;
        char utf8[4];
        n = att_utf8_decode(text + i, bytes - i, &c);
        add(&p->text, utf8, att_utf8_encode(c, utf8), (att_span){(uint32_t)i, (uint32_t)(i + n)});
    }
    fail(p, p->text.text.status ? p->text.text.status : p->text.origin.status);
    list_add(p, &p->list, (att_text_piece){0, p->text.text.count, 0, ATT_NO_TOKEN});
}

static void aligned_free(att_aligned *a)
{
    att_bytes_free(&a->text);
    att_bytes_free(&a->origin);
}

void att_pieces_free(att_pieces *p)
{
    aligned_free(&p->text);
    aligned_free(&p->rewritten);
    att_free(p->ctx, p->list.piece);
    att_free(p->ctx, p->split.piece);
    att_bytes_free(&p->matches);
    att_regex_match_free(&p->match);
}

/* ---- rewriting */

size_t att_edit_peek(const att_edit *e, uint32_t *c) { return att_utf8_decode(e->s + e->at, e->bytes - e->at, c); }

void att_edit_skip(att_edit *e, size_t n)
{
    uint32_t c;
    for (; n > 0 && e->at < e->bytes; n--)
        e->at += att_edit_peek(e, &c);
}

void att_edit_replace(att_edit *e, uint32_t c, size_t removed)
{
    char utf8[4];
    const att_span nowhere = {e->start, e->start};
    add(e->to, utf8, att_utf8_encode(c, utf8), e->at < e->bytes ? e->origin[e->at] : nowhere);
    att_edit_skip(e, 1 + removed);
}

void att_edit_insert(att_edit *e, uint32_t c)
{
    char utf8[4];
    const att_span nowhere = {e->start, e->start};
    add(e->to, utf8, att_utf8_encode(c, utf8), e->at > 0 ? e->origin[e->at - 1] : nowhere);
}

void att_edit_copy(att_edit *e, size_t end)
{
    att_bytes_add(&e->to->text, e->s + e->at, end - e->at);
    att_bytes_add(&e->to->origin, e->origin + e->at, (end - e->at) * sizeof *e->origin);
    e->at = end;
}

void att_pieces_rewrite(att_pieces *p, void (*rewrite)(const void *step, att_edit *e), const void *step)
{
    size_t kept = 0;
    att_aligned *to = &p->rewritten;
    to->text.count = to->origin.count = 0;
    for (size_t i = 0; !p->status && i < p->list.count; i++) {
        att_text_piece piece = p->list.piece[i];
        att_edit e = {.s = p->text.text.data + piece.begin,
                      .bytes = piece.end - piece.begin,
                      .origin = att_origin(&p->text) + piece.begin,
                      .start = piece.start,
                      .to = to};
        piece.begin = to->text.count;
        if (piece.id == ATT_NO_TOKEN)
            rewrite(step, &e);
        else
            att_edit_copy(&e, e.bytes);
        piece.end = to->text.count;
        if (piece.end > piece.begin)
            p->list.piece[kept++] = piece;
        fail(p, to->text.status ? to->text.status : to->origin.status);
    }
    p->list.count = kept;
    const att_aligned old = p->text;
    p->text = *to;
    *to = old;
}

/* ---- splitting */

void att_pieces_split_begin(att_pieces *p) { p->split.count = 0; }

void att_pieces_split_add(att_pieces *p, size_t begin, size_t end, int32_t id)
{
    if (begin < end)
        list_add(p, &p->split, (att_text_piece){begin, end, att_origin(&p->text)[begin].begin, id});
}

void att_pieces_split_end(att_pieces *p)
{
    const att_piece_list old = p->list;
    p->list = p->split;
    p->split = old;
}

/* Joins matches [n] to what is before or after them, as `behavior` states; returns the new number. */
static size_t join(att_match *m, size_t n, att_split_behavior behavior)
{
    size_t joined = 0;
    bool before = false; /* whether the neighbor, in the order of joining, was a match */
    const bool backward = behavior == ATT_SPLIT_MERGED_WITH_NEXT, contiguous = behavior == ATT_SPLIT_CONTIGUOUS;
    for (size_t i = 0; i < n; i++) {
        const att_match x = backward ? m[n - 1 - i] : m[i];
        const bool joins = contiguous ? x.is == before : x.is && !before;
        if (joins && joined > 0 && backward)
            m[n - joined].begin = x.begin;
        else if (joins && joined > 0)
            m[joined - 1].end = x.end;
        else if (joined++, backward)
            m[n - joined] = x;
        else
            m[joined - 1] = x;
        before = x.is;
    }
    if (backward)
        memmove(m, m + n - joined, joined * sizeof *m);
    return joined;
}

void att_pieces_split(att_pieces *p, const att_pattern *pattern, bool inverted, att_split_behavior behavior)
{
    att_pieces_split_begin(p);
    for (size_t i = 0; !p->status && i < p->list.count; i++) {
        const att_text_piece piece = p->list.piece[i];
        if (piece.id != ATT_NO_TOKEN) {
            list_add(p, &p->split, piece);
            continue;
        }
        size_t n = att_pattern_find(p, pattern, p->text.text.data + piece.begin, piece.end - piece.begin);
        att_match *m = att_matches(p);
        for (size_t k = 0; inverted && k < n; k++)
            m[k].is = !m[k].is;
        if (behavior != ATT_SPLIT_REMOVED && behavior != ATT_SPLIT_ISOLATED)
            n = join(m, n, behavior);
        for (size_t k = 0; k < n; k++)
            if (behavior != ATT_SPLIT_REMOVED || !m[k].is)
                att_pieces_split_add(p, piece.begin + m[k].begin, piece.begin + m[k].end, ATT_NO_TOKEN);
    }
    att_pieces_split_end(p);
}

/* ---- patterns */

/* Finds the first match in s [bytes] from `from` on; false: none, or an error. */
static bool next_match(att_pieces *p, const att_pattern *pattern, const char *s, size_t bytes, size_t from,
                       att_match *m)
{
    if (pattern->regex)
        return att_regex_find(pattern->regex, &p->match, s, bytes, from, &m->begin, &m->end);
    if (pattern->is) {
        uint32_t c;
        for (m->begin = from; m->begin < bytes; m->begin = m->end) {
            m->end = m->begin + att_utf8_decode(s + m->begin, bytes - m->begin, &c);
            if (pattern->is(c))
                return true;
        }
        return false;
    }
    const char *at = from < bytes ? memmem(s + from, bytes - from, pattern->text, pattern->bytes) : NULL;
    m->begin = at ? (size_t)(at - s) : bytes;
    m->end = m->begin + pattern->bytes;
    return at != NULL;
}

size_t att_pattern_find(att_pieces *p, const att_pattern *pattern, const char *s, size_t bytes)
{
    size_t end = 0, from = 0, last = SIZE_MAX; /* last: end of the last match */
    att_match m = {.is = true};
    p->matches.count = 0;
    while (from <= bytes && next_match(p, pattern, s, bytes, from, &m)) {
        if (m.begin == m.end && m.end == last) { /* an empty match right after another does not count */
            uint32_t c;
            from += from < bytes ? att_utf8_decode(s + from, bytes - from, &c) : 1;
            continue;
        }
        if (end < m.begin)
            att_bytes_add(&p->matches, &(att_match){end, m.begin, false}, sizeof m);
        att_bytes_add(&p->matches, &m, sizeof m);
        from = end = last = m.end;
    }
    if (end < bytes)
        att_bytes_add(&p->matches, &(att_match){end, bytes, false}, sizeof m);
    fail(p, p->match.status ? p->match.status : p->matches.status);
    return p->status ? 0 : p->matches.count / sizeof m;
}
