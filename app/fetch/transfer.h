/* The requests of a download: the list of a model's files, and each of them to its blob. */
#ifndef FETCH_TRANSFER_H
#define FETCH_TRANSFER_H

#include "cli/base/progress.h"
#include "cli/fetch/hub_cache.h"
#include "environment.h"
#include "http.h"

typedef struct hub_transfer {
    const char *name, *revision; /* OWNER/NAME */
    const hub_environment *environment;
    http *http;
    hub_listing listing;
    hub_snapshot snapshot;
    cli_progress line;
    int64_t all, done;        /* bytes: of all files, of those that are complete */
    int64_t before, received; /* bytes: that were there at the beginning, that this process has received */
} hub_transfer;

/* Connects, requests the list of files, and finds the paths of their snapshot. If the hub does not answer, the answer
 * says why, and t->listing has no files. Returns a code, after a message unless that is so. */
int hub_transfer_list(hub_transfer *t, http_answer *answer);
/* Downloads a file to its blob, unless that is there. */
int hub_transfer_get(hub_transfer *t, const hub_file *f);
/* Does the same with a small file, and reads it as JSON; a hub_reader with a hub_transfer as its user. */
int hub_transfer_read(void *transfer, const hub_file *f, json_t **out);
void hub_transfer_close(hub_transfer *t);

#endif
