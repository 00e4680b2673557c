/* The files of a model of the Hugging Face Hub, as its answer to /api/models/OWNER/NAME/revision/REVISION?blobs=true
 * lists them. The answer is from outside: all that is used of it has been checked. */
#ifndef CLI_FETCH_HUB_LISTING_H
#define CLI_FETCH_HUB_LISTING_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum { HUB_HASH = 65, HUB_COMMIT = 41 }; /* bytes of a hash in hexadecimal, with the zero at the end */

typedef struct hub_file {
    const char *name; /* a path within the model: without empty parts, ".", ".." and control characters */
    int64_t bytes;
    char hash[HUB_HASH]; /* the name of its blob: the SHA-256 of the content; or git's SHA-1, in 40 digits */
} hub_file;

typedef struct hub_listing {
    json_t *root; /* has the names */
    char commit[HUB_COMMIT];
    hub_file *file; /* [n], by name */
    size_t n;
} hub_listing;

/* Reads an answer, text [bytes], zero-terminated. host: which sent it, for messages. Returns 0, or a code after a
 * message: it is not JSON, or lacks what is needed, or has a name that is not a path within a model. To be closed after
 * an error, too. */
int hub_listing_read(hub_listing *l, const char *text, size_t bytes, const char *host);
void hub_listing_close(hub_listing *l);
/* Returns the file of this name, or NULL. */
const hub_file *hub_listing_find(const hub_listing *l, const char *name);
/* Returns whether a name can be a path within a model. */
bool hub_is_path(const char *name);

#endif
