/* Digests of files, which tell by content whether two are the same. They do not protect against somebody who forges
 * one, as SHA-256 in cli/fetch/hash.h does. SHA-256 reads 135 MB a second, this digest 4,300. Each part of a run
 * that --resume continues digests the model first: of the 91 MB of all-MiniLM-L6-v2, SHA-256 would need 0.7 s, the
 * time of hundreds of texts. */
#ifndef CLI_BASE_DIGEST_H
#define CLI_BASE_DIGEST_H

#include <stdint.h>

typedef struct cli_digest {
    int64_t bytes;
    uint64_t sum;
} cli_digest;

/* Digests a file's content; "-": the rest of standard input, which stays unread. Returns 0, or a code after a message:
 * it must not be a pipe. */
int cli_digest_file(const char *path, cli_digest *out);
/* Digests a model, a .gguf file or the files in a folder that belong to it. */
int cli_digest_model(const char *path, cli_digest *out);
/* Digests what can be compared without reading the files of a folder: their names and sizes. Of a file: its size. */
int cli_digest_names(const char *path, cli_digest *out);

#endif
