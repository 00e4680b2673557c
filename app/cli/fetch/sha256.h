/* SHA-256 (FIPS 180-4). */
#ifndef CLI_FETCH_SHA256_H
#define CLI_FETCH_SHA256_H

#include <stddef.h>
#include <stdint.h>

typedef struct sha256 {
    uint32_t state[8];
    uint64_t bytes;    /* hashed so far, those in `block` included */
    uint8_t block[64]; /* bytes % 64 of them are waiting for a whole block */
} sha256;

enum { SHA256_TEXT = 65 };

void sha256_begin(sha256 *h);
void sha256_add(sha256 *h, const void *data, size_t bytes);
/* Writes the hash in hexadecimal, zero-terminated; h must not be used afterwards. */
void sha256_end(sha256 *h, char text[SHA256_TEXT]);

#endif
