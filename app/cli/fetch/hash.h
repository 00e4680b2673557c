/* Hashes of files (FIPS 180-4): SHA-256, and SHA-1, by which git names content. SHA-1 does not protect against somebody
 * who forges a file. */
#ifndef CLI_FETCH_HASH_H
#define CLI_FETCH_HASH_H

#include <stddef.h>
#include <stdint.h>

typedef enum hash_kind { HASH_SHA1, HASH_SHA256 } hash_kind;

enum { HASH_SHA1_DIGITS = 40, HASH_SHA256_DIGITS = 64, HASH_TEXT = HASH_SHA256_DIGITS + 1 };

typedef struct hash {
    hash_kind kind;
    uint32_t state[8]; /* of SHA-1 five are used */
    uint64_t bytes;    /* hashed so far, those in `block` included */
    uint8_t block[64]; /* bytes % 64 of them are waiting for a whole block */
} hash;

void hash_begin(hash *h, hash_kind kind);
void hash_add(hash *h, const void *data, size_t bytes);
/* Writes the hash in hexadecimal, zero-terminated; h must not be used afterwards. */
void hash_end(hash *h, char text[HASH_TEXT]);

#endif
