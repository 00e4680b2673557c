/* The rules by which a SentencePiece model normalises: at each place the longest key that is there is replaced.
 *
 * The field precompiled_charsmap holds the bytes of the keys' trie (4 bytes, lowest first), the trie, and the
 * replacements, each ended by a zero byte. The trie is a double array, as the library Darts-clone builds it, of units
 * of 32 bits:
 *
 *   bit 31     set: a leaf, whose other bits say where in the replacements that of the key begins
 *   bits 0-7   else: the byte that leads here
 *   bit 8      a key ends here; its leaf lies at `base`
 *   bit 9      the offset is to be multiplied by 256
 *   bits 10-30 offset: base = this unit's place XOR offset; byte c leads to unit base XOR c */
#ifndef ATT_CHARSMAP_H
#define ATT_CHARSMAP_H

#include "io/proto.h"

enum { ATT_MAX_RULE = 256 }; /* bytes of a key or a replacement that are looked at; real ones have 33 at most */

typedef struct att_charsmap {
    att_ctx *ctx;
    uint32_t *unit; /* [units] */
    size_t units;
    char *replacement; /* [bytes] */
    size_t bytes;
} att_charsmap;

/* From the field's bytes, of which nothing is kept; empty: no rules. No search goes out of bounds then. */
void att_charsmap_read(att_charsmap *m, att_proto *p, att_byte_view field);
void att_charsmap_free(att_charsmap *m);
/* The length of the longest key at the start of s[bytes], and what it becomes; 0: there is none. */
size_t att_charsmap_find(const att_charsmap *m, const char *s, size_t bytes, const char **to);

/* A key, without zero bytes, and what it becomes. */
typedef struct att_rule {
    att_byte_view key, to;
} att_rule;

/* Adds the field for the rules [n] to `out` (charsmap_write.c); of the same key twice, one stays. */
att_status att_charsmap_write(att_bytes *out, const att_rule *rules, size_t n);

#endif
