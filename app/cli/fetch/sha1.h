/* SHA-1 (FIPS 180-4), by which git names the content of files. It does not protect against somebody who forges a file.
 */
#ifndef CLI_FETCH_SHA1_H
#define CLI_FETCH_SHA1_H

#include <stddef.h>
#include <stdint.h>

typedef struct sha1 {
    uint32_t state[5];
    uint64_t bytes;    /* hashed so far, those in `block` included */
    uint8_t block[64]; /* bytes % 64 of them are waiting for a whole block */
} sha1;

enum { SHA1_TEXT = 41 };

void sha1_begin(sha1 *h);
void sha1_add(sha1 *h, const void *data, size_t bytes);
/* Writes the hash in hexadecimal, zero-terminated; h must not be used afterwards. */
void sha1_end(sha1 *h, char text[SHA1_TEXT]);

#endif
