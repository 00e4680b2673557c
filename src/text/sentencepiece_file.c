/* Reads a SentencePiece model file (a ModelProto). */
#include "util/util.h"
#include "text/sentencepiece.h"

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "text/utf8.h"
#include "util/array.h"

typedef struct entry {
    att_byte_view text; /* in the file */
    float score;
    int32_t type;
} entry;

/* The parts of the file that are used. */
typedef struct contents {
    att_sentencepiece m; /* the settings of the model */
    att_byte_view unknown_text, charsmap, decoding_charsmap;
    att_byte_view begin, end, padding; /* texts of control symbols */
    entry *entry;                      /* [count] */
    size_t count, capacity, text_bytes;
} contents;

/* ---- from the file */

static void add_entry(att_proto *p, contents *c, entry e)
{
    p->status = att_grow(p->ctx, &c->entry, sizeof e, c->count, 1, &c->capacity);
    if (p->status)
        return;
    c->entry[c->count++] = e;
    c->text_bytes += e.text.bytes + 1;
}

static void read_piece(att_proto *p, att_byte_view message, void *to)
{
    static const att_proto_field fields[] = {
        {1, "pieces.piece", ATT_PROTO_BYTES, .offset = offsetof(entry, text)},
        {2, "pieces.score", ATT_PROTO_FLOAT, .offset = offsetof(entry, score)},
        {3, "pieces.type", ATT_PROTO_INT32, .offset = offsetof(entry, type)},
        {0},
    };
    contents *c = to;
    entry e = {.text = {"", 0}, .type = ATT_PIECE_NORMAL};
    att_proto_read(p, message, fields, &e);
    if (p->status)
        return;
    const size_t n = c->count;
    if (n == ATT_MAX_PIECES)
        att_proto_fail(p, ATT_ERR_UNSUPPORTED, "\"pieces\" has more than %d", ATT_MAX_PIECES);
    else if (e.text.bytes == 0)
        att_proto_fail(p, ATT_ERR_FORMAT, "\"pieces\" %zu is empty", n);
    else if (!att_utf8_valid(e.text.data, e.text.bytes) || memchr(e.text.data, 0, e.text.bytes))
        att_proto_fail(p, ATT_ERR_FORMAT, "\"pieces\" %zu is not text in UTF-8", n);
    else if (!isfinite(e.score))
        att_proto_fail(p, ATT_ERR_FORMAT, "\"pieces.score\" of piece %zu is %g, not a finite number", n,
                       (double)e.score);
    else if (e.type < ATT_PIECE_NORMAL || e.type > ATT_PIECE_BYTE)
        att_proto_fail(p, ATT_ERR_FORMAT, "\"pieces.type\" of piece %zu is %d, not in 1 to %d", n, e.type,
                       ATT_PIECE_BYTE);
    else
        add_entry(p, c, e);
}

static const att_proto_field trainer_fields[] = {
    {3, "trainer_spec.model_type", ATT_PROTO_INT32, .offset = offsetof(contents, m.model)},
    {24, "trainer_spec.treat_whitespace_as_suffix", ATT_PROTO_BOOL, .offset = offsetof(contents, m.space_is_suffix)},
    {35, "trainer_spec.byte_fallback", ATT_PROTO_BOOL, .offset = offsetof(contents, m.byte_fallback)},
    {44, "trainer_spec.unk_surface", ATT_PROTO_BYTES, .offset = offsetof(contents, unknown_text)},
    {46, "trainer_spec.bos_piece", ATT_PROTO_BYTES, .offset = offsetof(contents, begin)},
    {47, "trainer_spec.eos_piece", ATT_PROTO_BYTES, .offset = offsetof(contents, end)},
    {48, "trainer_spec.pad_piece", ATT_PROTO_BYTES, .offset = offsetof(contents, padding)},
    {0},
};
static const att_proto_field normalizer_fields[] = {
    {2, "normalizer_spec.precompiled_charsmap", ATT_PROTO_BYTES, .offset = offsetof(contents, charsmap)},
    {3, "normalizer_spec.add_dummy_prefix", ATT_PROTO_BOOL, .offset = offsetof(contents, m.add_prefix)},
    {4, "normalizer_spec.remove_extra_whitespaces", ATT_PROTO_BOOL, .offset = offsetof(contents, m.remove_spaces)},
    {5, "normalizer_spec.escape_whitespaces", ATT_PROTO_BOOL, .offset = offsetof(contents, m.escape_spaces)},
    {0},
};
static const att_proto_field denormalizer_fields[] = {
    {2, "denormalizer_spec.precompiled_charsmap", ATT_PROTO_BYTES, .offset = offsetof(contents, decoding_charsmap)},
    {0},
};
static const att_proto_field model_fields[] = {
    {1, "pieces", ATT_PROTO_EACH, .message = read_piece},
    {2, "trainer_spec", ATT_PROTO_MESSAGE, .fields = trainer_fields},
    {3, "normalizer_spec", ATT_PROTO_MESSAGE, .fields = normalizer_fields},
    {5, "denormalizer_spec", ATT_PROTO_MESSAGE, .fields = denormalizer_fields},
    {0},
};

static void read_contents(att_proto *p, att_byte_view file, contents *c)
{
    att_proto_read(p, file, model_fields, c);
    if (c->count == 0)
        att_proto_fail(p, ATT_ERR_FORMAT, "has no \"pieces\": it is not a SentencePiece model");
    if (c->m.model < ATT_PIECES_UNIGRAM || c->m.model > ATT_PIECES_CHAR)
        att_proto_fail(p, ATT_ERR_UNSUPPORTED,
                       "\"trainer_spec.model_type\" is %d, which is not supported; 1 (unigram), 2 (BPE), 3 (word) and "
                       "4 (char) are",
                       c->m.model);
    if (c->decoding_charsmap.bytes > 0)
        att_proto_fail(p, ATT_ERR_UNSUPPORTED,
                       "\"denormalizer_spec.precompiled_charsmap\" has %zu bytes; only an empty one is supported",
                       c->decoding_charsmap.bytes);
}

/* ---- to the model */

int att_piece_byte(const att_piece *p)
{
    static const char digits[] = "0123456789ABCDEF";
    if (p->bytes != 6 || memcmp(p->text, "<0x", 3) != 0 || p->text[5] != '>')
        return -1;
    const char *high = strchr(digits, p->text[3]), *low = strchr(digits, p->text[4]);
    return high && low ? (int)(16 * (high - digits) + (low - digits)) : -1;
}

static void copy_pieces(att_sentencepiece *m, att_proto *p, const contents *c)
{
    char *text = m->text;
    for (size_t i = 0; i < c->count; i++) {
        const entry *e = &c->entry[i];
        m->piece[i] = (att_piece){text, e->text.bytes, e->score, e->type};
        memcpy(text, e->text.data, e->text.bytes);
        text[e->text.bytes] = 0;
        text += e->text.bytes + 1;
    }
    m->size = (int64_t)c->count;
    memcpy(text, c->unknown_text.data, c->unknown_text.bytes);
    text[c->unknown_text.bytes] = 0;
    m->unknown_text = text;
    if (!att_utf8_valid(text, c->unknown_text.bytes))
        att_proto_fail(p, ATT_ERR_FORMAT, "\"trainer_spec.unk_surface\" is not text in UTF-8");
}

/* Finds required pieces: the unknown piece and, with byte fallback, all bytes. */
static void find_special(att_sentencepiece *m, att_proto *p)
{
    for (int i = 0; i < 256; i++)
        m->byte[i] = ATT_NO_ID;
    m->unknown = ATT_NO_ID;
    for (int32_t id = 0; id < m->size; id++) {
        const att_piece *piece = &m->piece[id];
        const int byte = piece->type == ATT_PIECE_BYTE ? att_piece_byte(piece) : 0;
        if (byte < 0)
            att_proto_fail(p, ATT_ERR_FORMAT, "\"pieces\" %d is of type BYTE but \"%.80s\", not as \"<0x0A>\"", id,
                           piece->text);
        if (piece->type == ATT_PIECE_BYTE && !m->byte_fallback)
            att_proto_fail(p, ATT_ERR_FORMAT,
                           "\"pieces\" %d is of type BYTE, but \"trainer_spec.byte_fallback\" is false", id);
        if (piece->type == ATT_PIECE_UNKNOWN && m->unknown != ATT_NO_ID)
            att_proto_fail(p, ATT_ERR_FORMAT, "\"pieces\" %d and %d are both of type UNKNOWN", m->unknown, id);
        if (p->status)
            return;
        if (piece->type == ATT_PIECE_BYTE)
            m->byte[byte] = id;
        if (piece->type == ATT_PIECE_UNKNOWN)
            m->unknown = id;
    }
    if (m->unknown == ATT_NO_ID)
        att_proto_fail(p, ATT_ERR_FORMAT, "no piece is of type UNKNOWN");
    for (int i = 0; m->byte_fallback && i < 256; i++)
        if (m->byte[i] == ATT_NO_ID)
            att_proto_fail(p, ATT_ERR_FORMAT,
                           "\"trainer_spec.byte_fallback\" is true, but there is no piece \"<0x%02X>\"", i);
}

static void measure(att_sentencepiece *m, att_proto *p)
{
    m->min = FLT_MAX;
    m->words_apart = true;
    for (int32_t id = 0; id < m->size; id++) {
        const att_piece *piece = &m->piece[id];
        m->has_user |= piece->type == ATT_PIECE_USER;
        m->words_apart &= !strstr(piece->text + 1, ATT_WORD_MARK);
        if (piece->type == ATT_PIECE_NORMAL)
            m->min = fminf(m->min, piece->score);
        if (piece->type == ATT_PIECE_UNUSED && m->model != ATT_PIECES_UNIGRAM)
            att_proto_fail(p, ATT_ERR_UNSUPPORTED,
                           "\"pieces.type\" of piece %d is 5 (UNUSED), which is supported for "
                           "\"trainer_spec.model_type\" 1 (unigram) only",
                           id);
    }
}

/* Returns the control symbol of this text; ATT_NO_ID: none. */
static int32_t find_control(const att_sentencepiece *m, att_byte_view text)
{
    for (int32_t id = 0; id < m->size; id++) {
        const att_piece *p = &m->piece[id];
        if (p->type == ATT_PIECE_CONTROL && p->bytes == text.bytes && memcmp(p->text, text.data, text.bytes) == 0)
            return id;
    }
    return ATT_NO_ID;
}

/* Sorts pieces by text, and keeps those for the trie in `entries`; duplicates are an error. */
static size_t sort_pieces(const att_sentencepiece *m, att_proto *p, att_trie_entry *entries)
{
    size_t n = 0, used = 0;
    for (int32_t id = 0; id < m->size; id++)
        entries[n++] = (att_trie_entry){m->piece[id].text, m->piece[id].bytes, id};
    qsort(entries, n, sizeof *entries, att_trie_order);
    for (size_t i = 1; i < n; i++) {
        const int64_t a = entries[i - 1].id, b = entries[i].id;
        if (att_trie_order(&entries[i - 1], &entries[i]) == 0)
            att_proto_fail(p, ATT_ERR_FORMAT, "\"pieces\" %d and %d are both \"%.80s\"", (int)att_min(a, b),
                           (int)att_max(a, b), entries[i].text);
    }
    for (size_t i = 0; i < n; i++)
        if (m->piece[entries[i].id].type == ATT_PIECE_NORMAL || m->piece[entries[i].id].type == ATT_PIECE_USER)
            entries[used++] = entries[i];
    return used;
}

static void make_trie(att_sentencepiece *m, att_proto *p)
{
    if (p->status)
        return;
    att_trie_entry *entries = att_alloc(p->ctx, (size_t)m->size, sizeof *entries);
    if (!entries) {
        p->status = ATT_ERR_MEMORY;
        return;
    }
    const size_t n = sort_pieces(m, p, entries);
    if (!p->status)
        p->status = att_trie_init(&m->trie, p->ctx, entries, n);
    att_free(p->ctx, entries);
}

static void make_model(att_sentencepiece *m, att_proto *p, const contents *c)
{
    *m = c->m;
    m->piece = att_alloc(p->ctx, c->count, sizeof *m->piece);
    m->text = att_alloc(p->ctx, c->text_bytes + c->unknown_text.bytes + 1, 1);
    if (!m->piece || !m->text) {
        p->status = ATT_ERR_MEMORY;
        return;
    }
    copy_pieces(m, p, c);
    if (!p->status)
        find_special(m, p);
    m->begin = find_control(m, c->begin);
    m->end = find_control(m, c->end);
    m->padding = find_control(m, c->padding);
    measure(m, p);
    att_charsmap_read(&m->charsmap, p, c->charsmap);
    make_trie(m, p);
}

att_sentencepiece att_sentencepiece_empty(att_ctx *ctx)
{
    return (att_sentencepiece){.ctx = ctx, .charsmap.ctx = ctx, .trie.ctx = ctx};
}

att_status att_sentencepiece_parse(att_sentencepiece *m, att_ctx *ctx, const char *path, att_byte_view file)
{
    static const char unknown_text[] = " \xE2\x81\x87 "; /* defaults of the format, as are those of c */
    att_proto p = {.ctx = ctx, .path = path, .start = file.data};
    contents c = {.m = att_sentencepiece_empty(ctx),
                  .unknown_text = {unknown_text, sizeof unknown_text - 1},
                  .begin = {"<s>", 3},
                  .end = {"</s>", 4},
                  .padding = {"<pad>", 5}};
    c.m.model = ATT_PIECES_UNIGRAM;
    c.m.add_prefix = c.m.remove_spaces = c.m.escape_spaces = true;
    *m = c.m;
    read_contents(&p, file, &c);
    if (!p.status)
        make_model(m, &p, &c);
    att_free(ctx, c.entry);
    if (p.status)
        att_sentencepiece_free(m);
    return p.status;
}

/* Returns whether this is a text file. A model has control characters near its beginning: lengths, and the scores of
 * pieces. */
static bool is_text(const char *data, size_t bytes)
{
    bool visible = false;
    for (size_t i = 0; i < bytes && i < 256; i++) {
        visible = visible || (unsigned char)data[i] > ' ';
        if ((unsigned char)data[i] < ' ' && (!data[i] || !strchr("\t\n\r\f", data[i])))
            return false;
    }
    return visible;
}

att_status att_sentencepiece_open(att_sentencepiece *m, att_ctx *ctx, const char *path)
{
    att_text_file f;
    *m = att_sentencepiece_empty(ctx);
    att_status s = att_text_file_open(&f, ctx, path, true);
    if (!s && is_text(f.text, f.bytes))
        s = att_fail(ctx, ATT_ERR_FORMAT, "%s is not a SentencePiece model but a text", f.path);
    if (!s)
        s = att_sentencepiece_parse(m, ctx, f.path, (att_byte_view){f.text, f.bytes});
    att_text_file_free(&f);
    return s;
}

void att_sentencepiece_free(att_sentencepiece *m)
{
    att_charsmap_free(&m->charsmap);
    att_trie_free(&m->trie);
    att_free(m->ctx, m->piece);
    att_free(m->ctx, m->text);
    *m = att_sentencepiece_empty(m->ctx);
}
