/* The normalization rules of a SentencePiece model: at each position the longest matching key is replaced.
 *
 * The field precompiled_charsmap consists of the size in bytes of the trie (4 bytes, little-endian), the trie of the
 * keys, and the zero-terminated replacements. The trie is a double array as made by the library Darts-clone, of units
 * of 32 bits:
 *
 * bit 31     1: a leaf; the other bits are the offset of the replacement
 * bits 0-7   else: the byte on the edge to this unit
 * bit 8      a key ends here; its leaf is at `base`
 * bit 9      multiply the offset by 256
 * bits 10-30 offset: base = index of this unit XOR offset; byte c leads to unit base XOR c */
#ifndef ATT_CHARSMAP_H
#define ATT_CHARSMAP_H

#include "io/proto.h"

enum { ATT_MAX_RULE = 256 }; /* bytes of a key or a replacement; known models have 33 at most */

typedef struct att_charsmap {
    att_ctx *ctx;
    uint32_t *unit; /* [units] */
    size_t units;
    char *replacement; /* [bytes] */
    size_t bytes;
} att_charsmap;

/* Reads the field (copied); an empty field has no rules. Valid rules never lead out of bounds in a search. */
void att_charsmap_read(att_charsmap *m, att_proto *p, att_byte_view field);
void att_charsmap_free(att_charsmap *m);
/* Returns the length of the longest key at the start of s [bytes], and its replacement; 0: none. */
size_t att_charsmap_find(const att_charsmap *m, const char *s, size_t bytes, const char **to);
/* Finds the shortest key at the start of s [bytes], as att_charsmap_find does the longest. */
size_t att_charsmap_find_shortest(const att_charsmap *m, const char *s, size_t bytes, const char **to);

/* A key, without zero bytes, and its replacement: adjacent in a text of all rules. */
typedef struct att_rule {
    size_t begin;
    size_t key, to; /* bytes */
} att_rule;

/* Appends the field for rules [n] to `out` (charsmap_write.c); only one of several rules with equal keys is used. */
att_status att_charsmap_write(att_bytes *out, const char *text, const att_rule *rules, size_t n);

/* Appends the field for Unicode normalization form NFKC (nfkc.c): maps each character to its NFKC form, and each
 * canonically ordered sequence of a base and marks that has a precomposed character to that, Hangul included.
 * Additionally, all white space becomes a space, and other control characters are removed. (Sequences that are not in
 * canonical order, or only arise from a compatibility mapping, are not composed.) */
att_status att_nfkc_write(att_bytes *out);

#endif
