/* The text in the pipeline of the `tokenizers` package: normalizers rewrite it, pre-tokenizers split it into pieces,
 * and each byte has the span of the original text for which it stands. */
#ifndef ATT_PIECES_H
#define ATT_PIECES_H

#include "io/bytes.h"
#include "text/pipeline/regex.h"

/* Bytes [begin, end) of the original text. */
typedef struct att_span {
    uint32_t begin, end;
} att_span;

/* Text in UTF-8, and for each of its bytes the span that it stands for. */
typedef struct att_aligned {
    att_bytes text, origin; /* origin: att_span[text.count] */
    size_t limit;           /* bytes of the text */
} att_aligned;

static inline const att_span *att_origin(const att_aligned *a) { return (const att_span *)(void *)a->origin.data; }

/* A part of the text; adjacent pieces need not touch. */
typedef struct att_text_piece {
    size_t begin, end; /* bytes of the text */
    uint32_t start;    /* start of its part of the original text */
    int32_t id;        /* id if it is an added token, which is not changed any more; otherwise ATT_NO_TOKEN */
} att_text_piece;

typedef struct att_piece_list {
    att_ctx *ctx;
    att_text_piece *piece; /* [count], none is empty */
    size_t count, capacity;
} att_piece_list;

typedef struct att_pieces {
    att_ctx *ctx;
    att_status status; /* the first error; after it nothing changes */
    att_aligned text, rewritten;
    att_piece_list list, split;
    att_bytes matches;     /* of the piece that is being split: att_match[] */
    att_regex_match match; /* memory of regular expressions */
} att_pieces;

/* Begins with one piece, the whole text [bytes]. Each maximal invalid subpart of UTF-8 becomes U+FFFD. */
void att_pieces_init(att_pieces *p, att_ctx *ctx, const char *text, size_t bytes);
void att_pieces_free(att_pieces *p);

/* ---- rewriting */

/* A piece that is being rewritten. Written characters get their origin from the cursor's position in the old text. */
typedef struct att_edit {
    const char *s; /* [bytes]: the old text */
    size_t bytes, at;
    const att_span *origin; /* [bytes] */
    uint32_t start;         /* of the piece */
    att_aligned *to;
} att_edit;

/* Calls `rewrite` with each piece that is not a token; it writes the new text. Empty pieces vanish. */
void att_pieces_rewrite(att_pieces *p, void (*rewrite)(const void *step, att_edit *e), const void *step);
/* Writes c in place of the character at the cursor and of `removed` more, which the cursor passes. */
void att_edit_replace(att_edit *e, uint32_t c, size_t removed);
/* Writes c as a new character, with the origin of the character before the cursor. */
void att_edit_insert(att_edit *e, uint32_t c);
/* Passes n characters and writes nothing. */
void att_edit_skip(att_edit *e, size_t n);
/* Copies the bytes up to `end`. */
void att_edit_copy(att_edit *e, size_t end);
/* Returns the length in bytes of the character at the cursor, without moving the cursor. */
size_t att_edit_peek(const att_edit *e, uint32_t *c);

/* ---- splitting */

typedef struct att_match {
    size_t begin, end; /* bytes of the piece */
    bool is;           /* true: the pattern matches; false: a part between matches */
} att_match;

/* How matches are split; the values are those of `behavior` in tokenizer.json. */
typedef enum att_split_behavior {
    ATT_SPLIT_REMOVED,
    ATT_SPLIT_ISOLATED,
    ATT_SPLIT_MERGED_WITH_PREVIOUS,
    ATT_SPLIT_MERGED_WITH_NEXT,
    ATT_SPLIT_CONTIGUOUS
} att_split_behavior;

/* One of these is set. */
typedef struct att_pattern {
    bool (*is)(uint32_t c); /* a property of characters; each one is a match */
    char *text;             /* [bytes] */
    size_t bytes;
    att_regex *regex;
} att_pattern;

/* Finds the matches in s [bytes] and the parts between them, which together cover it, into p->matches; returns their
 * number; 0 after an error. */
size_t att_pattern_find(att_pieces *p, const att_pattern *pattern, const char *s, size_t bytes);
static inline att_match *att_matches(att_pieces *p) { return (att_match *)(void *)p->matches.data; }

/* Splits each piece that is not a token. inverted: the parts between matches count as matches, and matches as parts
 * between. */
void att_pieces_split(att_pieces *p, const att_pattern *pattern, bool inverted, att_split_behavior behavior);
/* Begins a new list of pieces, adds bytes [begin, end) of the text to it, and makes it the list. */
void att_pieces_split_begin(att_pieces *p);
void att_pieces_split_add(att_pieces *p, size_t begin, size_t end, int32_t id);
void att_pieces_split_end(att_pieces *p);

#endif
