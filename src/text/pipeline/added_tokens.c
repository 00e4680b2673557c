#include "text/pipeline/added_tokens.h"

#include <stdlib.h>
#include <string.h>

#include "text/post_processor.h"
#include "text/pipeline/unicode_v16.h"
#include "text/utf8.h"
#include "util/array.h"

void att_added_token_read(att_settings *s, const json_t *item, att_added_tokens *a)
{
    const char *name = json_string_value(json_object_get(item, "content"));
    const att_settings_scope file = att_settings_enter_item(s, name ? name : "added_tokens", item);
    att_added_token t = {.special = att_settings_bool(s, "special", false),
                         .single_word = att_settings_bool(s, "single_word", false),
                         .lstrip = att_settings_bool(s, "lstrip", false),
                         .rstrip = att_settings_bool(s, "rstrip", false)};
    t.normalized = att_settings_bool(s, "normalized", !t.special);
    t.left_out = t.special;
    t.id = att_read_token_id(s, "added_tokens", name ? name : "", att_settings_get(s, "id"));
    att_step_read_text(s, "content", false, &t.text, &t.bytes);
    att_settings_leave(s, file);
    if (!s->status)
        s->status = att_grow(s->ctx, &a->token, sizeof t, a->count, 1, &a->capacity);
    if (s->status)
        att_free(s->ctx, t.text);
    else
        a->token[a->count++] = t;
}

void att_added_tokens_free(att_added_tokens *a)
{
    for (size_t i = 0; i < a->count; i++)
        att_free(a->ctx, a->token[i].text);
    att_free(a->ctx, a->token);
    att_trie_free(&a->trie[0]);
    att_trie_free(&a->trie[1]);
    *a = (att_added_tokens){.ctx = a->ctx};
}

static att_status normalize(att_added_tokens *a, att_added_token *t, const att_steps *normalizers)
{
    att_pieces p;
    att_pieces_init(&p, a->ctx, t->text, t->bytes);
    att_steps_apply(normalizers, &p);
    const att_bytes *text = &p.text.text;
    char *copy = p.status ? NULL : att_alloc(a->ctx, text->count + 1, 1);
    if (copy) {
        if (text->count > 0)
            memcpy(copy, text->data, text->count);
        copy[text->count] = 0;
        t->left_out = t->special && text->count == t->bytes && memcmp(copy, t->text, t->bytes) == 0;
        att_free(a->ctx, t->text);
        t->text = copy;
        t->bytes = text->count;
    }
    const att_status s = p.status;
    att_pieces_free(&p);
    return s ? s : copy ? ATT_OK : ATT_ERR_MEMORY;
}

static int by_id(const void *a, const void *b)
{
    const att_added_token *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

/* Keeps, among tokens with the same text, which may result from normalization, the one with the lowest id. Since
 * version 0.23 the package finds any of them, at random. */
static void keep_first(att_token_list *list)
{
    size_t n = 0;
    if (list->count > 0)
        qsort(list->entry, list->count, sizeof *list->entry, att_trie_order);
    for (size_t i = 0; i < list->count; i++) {
        const att_trie_entry one = list->entry[i];
        att_trie_entry *last = n > 0 ? &list->entry[n - 1] : NULL;
        if (!last || last->bytes != one.bytes || memcmp(last->text, one.text, one.bytes) != 0)
            list->entry[n++] = one;
        else if (one.id < last->id)
            *last = one;
    }
    list->count = n;
}

att_status att_added_tokens_finish(att_added_tokens *a, const att_steps *normalizers)
{
    att_status s = ATT_OK;
    if (a->count > 0)
        qsort(a->token, a->count, sizeof *a->token, by_id);
    for (size_t i = 0; !s && i < a->count; i++)
        if (a->token[i].normalized && normalizers->count > 0)
            s = normalize(a, &a->token[i], normalizers);
    for (int k = 0; !s && k < 2; k++) {
        att_token_list list = {.ctx = a->ctx};
        for (size_t i = 0; !s && i < a->count; i++) {
            const att_added_token *t = &a->token[i];
            if (t->normalized != k || t->bytes == 0)
                continue;
            a->begins[k][(unsigned char)t->text[0]] = true;
            s = att_token_list_add(&list, (att_trie_entry){t->text, t->bytes, (int32_t)i});
        }
        if (!s) {
            keep_first(&list);
            s = att_token_list_trie(&list, &a->trie[k]);
        }
        att_token_list_free(&list);
    }
    return s;
}

const att_added_token *att_added_token_get(const att_added_tokens *a, int32_t id)
{
    const att_added_token wanted = {.id = id};
    return a->count ? bsearch(&wanted, a->token, a->count, sizeof wanted, by_id) : NULL;
}

/* ---- in a text */

static size_t char_before(const char *s, size_t at)
{
    do
        at--;
    while (at > 0 && ((unsigned char)s[at] & 0xC0) == 0x80);
    return at;
}

static bool word_at(const char *s, size_t at, size_t bytes)
{
    uint32_t c;
    att_utf8_decode(s + at, bytes - at, &c);
    return att_char_is_word(c);
}

static bool space_at(const char *s, size_t at, size_t bytes, size_t *length)
{
    uint32_t c;
    *length = att_utf8_decode(s + at, bytes - at, &c);
    return att_char_is_space(c);
}

/* Spaces [begin, end) of a text, not followed by another space. */
typedef struct space_run {
    size_t begin, end;
} space_run;

/* Returns the end of the spaces at `at` in s [bytes]. *known has the spaces of the previous call, because a token of
 * spaces may be found at each of many spaces. */
static size_t after_spaces(const char *s, size_t at, size_t bytes, space_run *known)
{
    if (at >= known->begin && at < known->end)
        return known->end;
    *known = (space_run){at, at};
    for (size_t n; known->end < bytes && space_at(s, known->end, bytes, &n); known->end += n)
        ;
    return known->end;
}

/* Returns whether the original text of bytes [begin, end), not empty, overlaps `literal`. */
static bool is_literal(const att_literals *literal, const att_pieces *p, size_t begin, size_t end)
{
    const att_span *origin = att_origin(&p->text);
    const int64_t from = origin[begin].begin, to = origin[end - 1].end;
    size_t first = 0, last = literal->count; /* the first range that ends after `from` is in [first, last] */
    while (first < last) {
        const size_t middle = first + (last - first) / 2;
        if (literal->range[middle].end <= from)
            first = middle + 1;
        else
            last = middle;
    }
    return first < literal->count && literal->range[first].begin < to;
}

/* Splits one piece. */
static void find_in(const att_added_tokens *a, int k, const att_literals *literal, att_pieces *p, att_text_piece piece)
{
    const char *s = p->text.text.data + piece.begin;
    const size_t bytes = piece.end - piece.begin;
    size_t done = 0, length, n; /* done: end of the last piece */
    space_run spaces = {0, 0};
    for (size_t at = 0; at < bytes; at += length) {
        length = 1;
        if (!a->begins[k][(unsigned char)s[at]])
            continue;
        const int32_t i = att_trie_longest(&a->trie[k], s + at, bytes - at, &length);
        if (i == ATT_NO_ID) {
            length = 1;
            continue;
        }
        const att_added_token *t = &a->token[i];
        size_t begin = at, end = at + length;
        if (t->special && is_literal(literal, p, piece.begin + begin, piece.begin + end)) {
            if (!is_literal(literal, p, piece.begin + begin, piece.begin + begin + 1) ||
                !is_literal(literal, p, piece.begin + end - 1, piece.begin + end))
                length = 1; /* a token that begins in it may lie outside of the literal text */
            continue;
        }
        if (t->single_word &&
            ((begin > 0 && word_at(s, char_before(s, begin), bytes)) || (end < bytes && word_at(s, end, bytes))))
            continue;
        for (size_t b = begin; t->lstrip && begin > done; begin = b)
            if (b = char_before(s, begin), !space_at(s, b, bytes, &n))
                break;
        if (t->rstrip)
            end = after_spaces(s, end, bytes, &spaces);
        begin = begin < done && t->lstrip ? done : begin;
        if (done < begin)
            att_pieces_split_add(p, piece.begin + done, piece.begin + begin, ATT_NO_TOKEN);
        att_pieces_split_add(p, piece.begin + begin, piece.begin + end, t->id);
        done = end;
    }
    if (done < bytes)
        att_pieces_split_add(p, piece.begin + done, piece.end, ATT_NO_TOKEN);
}

void att_added_tokens_find(const att_added_tokens *a, bool normalized, const att_literals *literal, att_pieces *p)
{
    if (p->status || a->trie[normalized].size <= 1)
        return;
    att_pieces_split_begin(p);
    for (size_t i = 0; i < p->list.count; i++) {
        const att_text_piece piece = p->list.piece[i];
        if (piece.id == ATT_NO_TOKEN)
            find_in(a, normalized, literal, p, piece);
        else
            att_pieces_split_add(p, piece.begin, piece.end, piece.id);
    }
    att_pieces_split_end(p);
}
