/* Pieces to text, as in the `sentencepiece` package. */
#include "text/sentencepiece.h"

#include <string.h>

#include "text/utf8.h"

att_piece_decoder att_piece_decode(const att_sentencepiece *m, att_bytes *text)
{
    return (att_piece_decoder){.m = m, .text = text, .at_start = true};
}

/* Writes the characters formed by the pending byte pieces, invalid ones as U+FFFD; `last`: no byte follows. */
static void write_pending(att_piece_decoder *j, bool last)
{
    while (j->n_pending > 0) {
        uint32_t c;
        size_t n = att_utf8_decode(j->pending, j->n_pending, &c);
        const bool valid = c != ATT_REPLACEMENT || att_utf8_valid(j->pending, n);
        if (!valid && n == j->n_pending && !last && n < att_piece_char(j->pending, 4))
            return; /* incomplete so far */
        if (valid)
            att_bytes_add(j->text, j->pending, n);
        else
            att_bytes_add(j->text, "\xEF\xBF\xBD", 3);
        n = valid ? n : 1;
        j->n_pending -= n;
        memmove(j->pending, j->pending + n, j->n_pending);
    }
}

/* Replaces marks by spaces. */
static void add_marked(att_piece_decoder *j, const char *s, size_t bytes)
{
    for (size_t i = 0; i < bytes;) {
        const bool is_mark = i + 3 <= bytes && memcmp(s + i, ATT_WORD_MARK, 3) == 0;
        att_bytes_add(j->text, is_mark ? " " : s + i, 1);
        i += is_mark ? 3 : 1;
    }
}

/* Ends pending bytes, before a piece that is not a byte. */
static void begin_piece(att_piece_decoder *j)
{
    write_pending(j, true);
    if (j->took_mark || j->text->count > 0)
        j->at_start = false;
    j->took_mark = false;
}

void att_piece_decode_next(att_piece_decoder *j, int32_t id)
{
    const att_sentencepiece *m = j->m;
    const att_piece *p = &m->piece[id];
    if (p->type == ATT_PIECE_BYTE) {
        j->pending[j->n_pending++] = att_piece_byte(p);
        write_pending(j, false);
        return;
    }
    begin_piece(j);
    if (p->type == ATT_PIECE_UNKNOWN)
        att_bytes_add(j->text, m->unknown_text, strlen(m->unknown_text));
    if (p->type == ATT_PIECE_UNKNOWN || p->type == ATT_PIECE_CONTROL)
        return;
    size_t skip = 0;
    if (j->at_start && (m->add_prefix || m->remove_spaces) && strncmp(p->text, ATT_WORD_MARK, 3) == 0) {
        skip = 3;
        j->took_mark = !m->remove_spaces; /* otherwise all marks at the start are removed */
    }
    add_marked(j, p->text + skip, p->bytes - skip);
}

void att_piece_decode_other(att_piece_decoder *j, const char *text)
{
    begin_piece(j);
    add_marked(j, text, strlen(text));
}

void att_piece_decode_end(att_piece_decoder *j) { write_pending(j, true); }
