/* SentencePiece (Kudo, Richardson 2018): a text is normalized, spaces become U+2581, and the result is split into
 * pieces of a vocabulary, independent of words. Results are those of the `sentencepiece` package. */
#ifndef ATT_SENTENCEPIECE_H
#define ATT_SENTENCEPIECE_H

#include "io/file.h"
#include "text/charsmap.h"
#include "text/trie.h"

#define ATT_MAX_PIECES (1 << 22)
#define ATT_WORD_MARK "\xE2\x96\x81" /* U+2581, stands for a space */

/* Both enums have the values of the file format. */
typedef enum att_piece_type {
    ATT_PIECE_NORMAL = 1,
    ATT_PIECE_UNKNOWN = 2,
    ATT_PIECE_CONTROL = 3, /* "<s>": never matched in text */
    ATT_PIECE_USER = 4,    /* user-defined: matched first, and never split */
    ATT_PIECE_UNUSED = 5,
    ATT_PIECE_BYTE = 6 /* "<0x0A>": byte fallback for characters without a piece */
} att_piece_type;

typedef enum att_piece_model {
    ATT_PIECES_UNIGRAM = 1, /* the most probable segmentation */
    ATT_PIECES_BPE = 2,     /* merges of adjacent parts, best score first */
    ATT_PIECES_WORD = 3,
    ATT_PIECES_CHAR = 4
} att_piece_model;

typedef struct att_piece {
    const char *text; /* zero-terminated */
    size_t bytes;
    float score;
    int32_t type; /* att_piece_type */
} att_piece;

/* Read-only after opening. */
typedef struct att_sentencepiece {
    att_ctx *ctx;
    int32_t model; /* att_piece_model */
    bool add_prefix, remove_spaces, escape_spaces, space_is_suffix, byte_fallback;
    att_charsmap charsmap;
    att_piece *piece; /* [size] */
    int64_t size;
    char *text;                  /* of all pieces, concatenated */
    att_trie trie;               /* pieces that are matched in text: normal and user-defined */
    bool has_user;               /* user-defined pieces exist */
    bool words_apart;            /* U+2581 is only at the start of pieces, so words can be split separately */
    int32_t unknown;             /* id of the unknown piece */
    int32_t begin, end, padding; /* ids of control symbols; ATT_NO_ID: none */
    int32_t byte[256];           /* ids, for byte fallback */
    float min;                   /* lowest score of the normal pieces */
    char *unknown_text;          /* decoded text of an unknown piece */
} att_sentencepiece;

/* ---- opening (sentencepiece_file.c) */

/* Returns an empty model, which may be freed. */
att_sentencepiece att_sentencepiece_empty(att_ctx *ctx);
/* Opens a model file. After an error nothing needs to be freed. */
att_status att_sentencepiece_open(att_sentencepiece *m, att_ctx *ctx, const char *path);
/* Reads a model from the bytes of a file; `path` is for errors. */
att_status att_sentencepiece_parse(att_sentencepiece *m, att_ctx *ctx, const char *path, att_byte_view file);
void att_sentencepiece_free(att_sentencepiece *m);

/* ---- text to pieces */

/* A receiver of pieces: id, and the text it stands for. Adjacent unknown pieces are combined. */
typedef struct att_piece_sink {
    void (*emit)(void *user, int32_t id, const char *text, size_t bytes);
    void *user;
    bool full;         /* set by the user: no more pieces are accepted */
    bool aligned;      /* set by a user who needs the following two fields */
    size_t begin, end; /* bytes of the text that the piece stands for */
    /* The text that is split: */
    const char *normal;   /* [bytes] */
    const size_t *origin; /* [bytes + 1]: number of bytes before each byte, in the text before normalization; or NULL */
    const char *unknown_begin;
    size_t unknown_bytes; /* bytes of unknown pieces that are not emitted yet */
} att_piece_sink;

/* Normalizes s [bytes] to `out`, which must be empty. origin, which must be empty or NULL, receives
 * size_t[out->count + 1]: for each byte of out, and for its end, the number of bytes of s before the corresponding
 * text; nothing for an empty text. */
void att_sentencepiece_normalize(const att_sentencepiece *m, const char *s, size_t bytes, att_bytes *out,
                                 att_bytes *origin);
att_status att_sentencepiece_split(const att_sentencepiece *m, const char *text, size_t bytes, att_piece_sink *sink);

/* Splits normalized text s [bytes] into pieces (unigram.c, bpe.c, sentencepiece.c). */
typedef att_status att_piece_splitter(const att_sentencepiece *m, const char *s, size_t bytes, att_piece_sink *sink);
att_piece_splitter att_split_unigram, att_split_bpe;

/* ---- for splitters (piece_splitter.c)
 *
 * Emits a piece, or m->unknown for any text. */
void att_piece_emit(const att_sentencepiece *m, att_piece_sink *sink, int32_t id, const char *s, size_t bytes);
/* Emits the piece of a node of m->trie, or the unknown piece if it has none. */
void att_piece_emit_node(const att_sentencepiece *m, att_piece_sink *sink, uint32_t node, const char *s, size_t bytes);
/* Emits the unknown pieces that have been combined. */
void att_piece_flush(const att_sentencepiece *m, att_piece_sink *sink);
/* Returns the byte of a byte piece; -1: not a byte piece. */
int att_piece_byte(const att_piece *p);
/* Returns the length of the character at s, by its first byte, at most `bytes`. */
size_t att_piece_char(const char *s, size_t bytes);
/* Returns the length of the word at s, up to the next word mark. */
size_t att_piece_word(const char *s, size_t bytes);
/* Returns the length of the longest user-defined piece at the start of s [bytes]; 0: none. */
size_t att_piece_user(const att_sentencepiece *m, const char *s, size_t bytes);

/* ---- pieces to text */

/* Appends the text of pieces to `text`, one piece at a time. */
typedef struct att_piece_decoder {
    const att_sentencepiece *m;
    att_bytes *text;
    bool at_start; /* a word mark that is not a space may follow */
    bool took_mark;
    char pending[4]; /* byte pieces that do not form a character yet */
    size_t n_pending;
} att_piece_decoder;

att_piece_decoder att_piece_decode(const att_sentencepiece *m, att_bytes *text);
void att_piece_decode_next(att_piece_decoder *j, int32_t id); /* in [0, m->size) */
/* Appends the text of a token that is not a piece of m, zero-terminated. */
void att_piece_decode_other(att_piece_decoder *j, const char *text);
void att_piece_decode_end(att_piece_decoder *j);

#endif
