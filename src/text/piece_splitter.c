/* Finds where pieces of a text end, and emits them. */
#include "text/sentencepiece.h"

#include <string.h>

size_t att_piece_char(const char *s, size_t bytes)
{
    const unsigned char lead = (unsigned char)*s;
    const size_t length = lead < 0xC0 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    return length < bytes ? length : bytes;
}

size_t att_piece_user(const att_sentencepiece *m, const char *s, size_t bytes)
{
    size_t longest = 0;
    uint32_t node = 0;
    for (size_t i = 0; m->has_user && i < bytes && (node = att_trie_step(&m->trie, node, s[i])) != 0; i++) {
        const int32_t id = m->trie.node[node].id;
        if (id != ATT_NO_ID && m->piece[id].type == ATT_PIECE_USER)
            longest = i + 1;
    }
    return longest;
}

size_t att_piece_word(const char *s, size_t bytes)
{
    static const char mark[] = ATT_WORD_MARK;
    for (size_t i = 1; i + sizeof mark - 1 <= bytes; i++)
        if (memcmp(s + i, mark, sizeof mark - 1) == 0)
            return i;
    return bytes;
}

/* Aligns what is emitted next with s [bytes] of the normalized text. */
static void align(att_piece_sink *sink, const char *s, size_t bytes)
{
    if (!sink->origin)
        return;
    sink->begin = sink->origin[s - sink->normal];
    sink->end = sink->origin[s - sink->normal + (ptrdiff_t)bytes];
}

void att_piece_flush(const att_sentencepiece *m, att_piece_sink *sink)
{
    if (sink->unknown_bytes > 0) {
        align(sink, sink->unknown_begin, sink->unknown_bytes);
        sink->emit(sink->user, m->unknown, sink->unknown_begin, sink->unknown_bytes);
    }
    sink->unknown_bytes = 0;
}

/* Emits the bytes of a character as tokens: the last token stands for the character, the others for nothing. */
static void emit_bytes(const att_sentencepiece *m, att_piece_sink *sink, const char *s, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        const int32_t byte = m->byte[(unsigned char)s[i]];
        align(sink, s, i + 1 < bytes ? 0 : bytes);
        sink->emit(sink->user, byte, m->piece[byte].text, m->piece[byte].bytes);
    }
}

void att_piece_emit(const att_sentencepiece *m, att_piece_sink *sink, int32_t id, const char *s, size_t bytes)
{
    if (id != m->unknown) {
        att_piece_flush(m, sink);
        align(sink, s, bytes);
        sink->emit(sink->user, id, s, bytes);
    } else if (m->byte_fallback) {
        emit_bytes(m, sink, s, bytes);
    } else {
        if (sink->unknown_bytes == 0)
            sink->unknown_begin = s;
        sink->unknown_bytes += bytes;
    }
}

void att_piece_emit_node(const att_sentencepiece *m, att_piece_sink *sink, uint32_t node, const char *s, size_t bytes)
{
    const int32_t id = node ? m->trie.node[node].id : ATT_NO_ID;
    att_piece_emit(m, sink, id == ATT_NO_ID ? m->unknown : id, s, bytes);
}
