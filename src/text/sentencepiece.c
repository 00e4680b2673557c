/* Text to pieces: normalization, then splitting. */
#include "text/sentencepiece.h"
#include "text/utf8.h"

#include <string.h>

/* ---- normalization */

typedef struct normalizer {
    const att_sentencepiece *m;
    att_bytes *out;    /* initially empty */
    att_bytes *origin; /* initially empty; or NULL */
    const char *space; /* a space in the result */
    bool after_space;  /* skip further spaces */
    size_t at;         /* bytes of the text before what is written */
} normalizer;

/* Matches the start of s [bytes] (not empty): a user-defined piece, the longest rule, or a character; a byte that is
 * not UTF-8 gives U+FFFD. Returns the number of bytes matched. */
static size_t match_prefix(const att_sentencepiece *m, const char *s, size_t bytes, att_byte_view *to)
{
    static const char replacement[] = "\xEF\xBF\xBD";
    size_t n = att_piece_user(m, s, bytes);
    *to = (att_byte_view){s, n};
    if (n > 0)
        return n;
    const char *replaced;
    n = att_charsmap_find(&m->charsmap, s, bytes, &replaced);
    if (n > 0) {
        *to = (att_byte_view){replaced, strlen(replaced)};
        return n;
    }
    uint32_t c;
    n = att_utf8_decode(s, bytes, &c);
    const bool valid = c != ATT_REPLACEMENT || (n == 3 && memcmp(s, replacement, 3) == 0);
    *to = valid ? (att_byte_view){s, n} : (att_byte_view){replacement, sizeof replacement - 1};
    return valid ? n : 1;
}

static void write(normalizer *z, const char *s, size_t bytes)
{
    att_bytes_add(z->out, s, bytes);
    for (size_t i = 0; z->origin && i < bytes; i++)
        att_bytes_add(z->origin, &z->at, sizeof z->at);
}

static void write_space(normalizer *z) { write(z, z->space, strlen(z->space)); }

static void add(normalizer *z, att_byte_view text)
{
    if (z->after_space)
        for (; text.bytes > 0 && *text.data == ' '; text.bytes--)
            text.data++;
    for (size_t i = 0; i < text.bytes; i++)
        if (text.data[i] == ' ')
            write_space(z);
        else
            write(z, text.data + i, 1);
    if (text.bytes > 0)
        z->after_space = z->m->remove_spaces && text.data[text.bytes - 1] == ' ';
}

static void remove_trailing_spaces(normalizer *z)
{
    const size_t n = strlen(z->space);
    while (z->out->count >= n && memcmp(z->out->data + z->out->count - n, z->space, n) == 0) {
        z->out->count -= n;
        if (!z->origin || z->origin->status)
            continue;
        z->origin->count -= n * sizeof z->at;
        memcpy(&z->at, z->origin->data + z->origin->count, sizeof z->at);
    }
}

void att_sentencepiece_normalize(const att_sentencepiece *m, const char *s, size_t bytes, att_bytes *out,
                                 att_bytes *origin)
{
    normalizer z = {.m = m, .out = out, .origin = origin, .space = m->escape_spaces ? ATT_WORD_MARK : " "};
    att_byte_view to;
    for (size_t n; m->remove_spaces && z.at < bytes; z.at += n) {
        n = match_prefix(m, s + z.at, bytes - z.at, &to);
        if (to.bytes != 1 || *to.data != ' ')
            break;
    }
    if (z.at == bytes)
        return;
    if (m->add_prefix && !m->space_is_suffix)
        write_space(&z);
    z.after_space = m->remove_spaces;
    while (z.at < bytes && !out->status) {
        const size_t n = match_prefix(m, s + z.at, bytes - z.at, &to);
        add(&z, to);
        z.at += n;
    }
    if (m->remove_spaces)
        remove_trailing_spaces(&z);
    if (m->add_prefix && m->space_is_suffix)
        write_space(&z);
    if (origin)
        att_bytes_add(origin, &z.at, sizeof z.at);
}

/* ---- splitting */

/* Splits each word, which begins with the word mark, separately. */
static att_status split_words(const att_sentencepiece *m, const char *s, size_t bytes, att_piece_sink *sink)
{
    for (size_t at = 0, n; at < bytes && !sink->full; at += n) {
        n = att_piece_word(s + at, bytes - at);
        att_piece_emit_node(m, sink, att_trie_walk(&m->trie, 0, s + at, n), s + at, n);
    }
    return ATT_OK;
}

static att_status split_characters(const att_sentencepiece *m, const char *s, size_t bytes, att_piece_sink *sink)
{
    for (size_t at = 0, n; at < bytes && !sink->full; at += n) {
        n = att_piece_user(m, s + at, bytes - at);
        n = n ? n : att_piece_char(s + at, bytes - at);
        att_piece_emit_node(m, sink, att_trie_walk(&m->trie, 0, s + at, n), s + at, n);
    }
    return ATT_OK;
}

att_status att_sentencepiece_split(const att_sentencepiece *m, const char *text, size_t bytes, att_piece_sink *sink)
{
    static att_piece_splitter *const cutters[] = {[ATT_PIECES_UNIGRAM] = att_split_unigram,
                                                  [ATT_PIECES_BPE] = att_split_bpe,
                                                  [ATT_PIECES_WORD] = split_words,
                                                  [ATT_PIECES_CHAR] = split_characters};
    att_bytes normal = {.ctx = m->ctx}, origin = {.ctx = m->ctx};
    att_sentencepiece_normalize(m, text, bytes, &normal, sink->aligned ? &origin : NULL);
    att_status s = normal.status ? normal.status : origin.status;
    sink->unknown_bytes = 0;
    sink->normal = normal.data;
    sink->origin = sink->aligned ? (const size_t *)(const void *)origin.data : NULL;
    if (!s && normal.count > 0) {
        s = cutters[m->model](m, normal.data, normal.count, sink);
        att_piece_flush(m, sink);
    }
    att_bytes_free(&normal);
    att_bytes_free(&origin);
    return s;
}
