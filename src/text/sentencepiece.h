/* SentencePiece (Kudo, Richardson 2018): a text is normalised, white space becomes the character U+2581, and the whole
 * is cut into pieces of a vocabulary that knows no words. The results are those of the `sentencepiece` package. */
#ifndef ATT_SENTENCEPIECE_H
#define ATT_SENTENCEPIECE_H

#include "io/text_file.h"
#include "text/charsmap.h"
#include "text/trie.h"

#define ATT_MAX_PIECES (1 << 22)
#define ATT_WORD_MARK "\xE2\x96\x81" /* U+2581, for a space */

/* The values of these two are the file's. */
typedef enum att_piece_type {
    ATT_PIECE_NORMAL = 1,
    ATT_PIECE_UNKNOWN = 2,
    ATT_PIECE_CONTROL = 3, /* "<s>": never found in a text */
    ATT_PIECE_USER = 4,    /* found before anything else, and kept whole */
    ATT_PIECE_UNUSED = 5,
    ATT_PIECE_BYTE = 6 /* "<0x0A>": what no other piece has is spelt in bytes */
} att_piece_type;

typedef enum att_piece_model {
    ATT_PIECES_UNIGRAM = 1, /* the most probable pieces */
    ATT_PIECES_BPE = 2,     /* neighbours are merged, the best first */
    ATT_PIECES_WORD = 3,
    ATT_PIECES_CHAR = 4
} att_piece_model;

typedef struct att_piece {
    const char *text; /* zero-terminated */
    size_t bytes;
    float score;
    int32_t type; /* att_piece_type */
} att_piece;

/* Only read from once it is open. */
typedef struct att_sentencepiece {
    att_ctx *ctx;
    att_piece_model model;
    bool add_prefix, remove_spaces, escape_spaces, space_is_suffix, byte_fallback;
    att_charsmap charsmap;
    att_piece *piece; /* [size] */
    int64_t size;
    char *text;         /* of all pieces */
    att_trie trie;      /* those that are found in texts: normal ones and the user's */
    bool has_user;      /* pieces of the user's */
    bool words_apart;   /* no piece has U+2581 behind another character, so words are cut one by one */
    int32_t unknown;    /* id */
    int32_t byte[256];  /* ids, with byte_fallback */
    float min;          /* score of the normal pieces */
    char *unknown_text; /* what decoding gives for an unknown piece */
} att_sentencepiece;

/* ---- opening (sentencepiece_file.c) */

/* Nothing, which may be freed. */
att_sentencepiece att_sentencepiece_empty(att_ctx *ctx);
/* On failure nothing need be freed. */
att_status att_sentencepiece_open(att_sentencepiece *m, att_ctx *ctx, const char *path);
/* The same from the bytes of a file; `path` is for errors. */
att_status att_sentencepiece_parse(att_sentencepiece *m, att_ctx *ctx, const char *path, att_byte_view file);
void att_sentencepiece_free(att_sentencepiece *m);

/* ---- text to pieces */

/* Takes pieces: their id, and the text that they stand for. Neighbours that are unknown come as one. */
typedef struct att_piece_taker {
    void (*take)(void *user, int32_t id, const char *text, size_t bytes);
    void *user;
    bool enough; /* set by the user: no further piece is wanted */
    const char *unknown_begin;
    size_t unknown_bytes; /* of unknown pieces that were not given yet */
} att_piece_taker;

/* Adds the normalised text to `out`, which is empty. */
void att_sentencepiece_normalize(const att_sentencepiece *m, const char *text, size_t bytes, att_bytes *out);
att_status att_sentencepiece_cut(const att_sentencepiece *m, const char *text, size_t bytes, att_piece_taker *taker);

/* Normalised text is cut by one of these, s[bytes] in order (unigram.c, merging.c, sentencepiece.c). */
typedef att_status att_piece_cutter(const att_sentencepiece *m, const char *s, size_t bytes, att_piece_taker *taker);
att_piece_cutter att_cut_unigram, att_cut_bpe;
/* What they hand over: a piece or, of any text, m->unknown. */
void att_piece_give(const att_sentencepiece *m, att_piece_taker *taker, int32_t id, const char *s, size_t bytes);
/* The byte that a piece of type BYTE stands for; -1: none. */
int att_piece_byte(const att_piece *p);
/* Bytes of the character at s, as its first byte says, at most `bytes`. */
size_t att_piece_char(const char *s, size_t bytes);
/* Bytes of the word at s, up to the next mark for a space. */
size_t att_piece_word(const char *s, size_t bytes);
/* The longest of the user's pieces at the start of s[bytes]; 0: none. */
size_t att_piece_user(const att_sentencepiece *m, const char *s, size_t bytes);

/* ---- pieces to text */

/* Adds the text of pieces to `text`, one by one. */
typedef struct att_piece_joiner {
    const att_sentencepiece *m;
    att_bytes *text;
    bool at_start; /* a mark that stands for no space may still come */
    bool took_mark;
    unsigned char pending[4]; /* bytes that are no character yet */
    size_t n_pending;
} att_piece_joiner;

att_piece_joiner att_piece_join(const att_sentencepiece *m, att_bytes *text);
void att_piece_join_next(att_piece_joiner *j, int32_t id); /* in [0, m->size) */
/* The text of a token that is no piece of m, zero-terminated. */
void att_piece_join_other(att_piece_joiner *j, const char *text);
void att_piece_join_end(att_piece_joiner *j);

#endif
