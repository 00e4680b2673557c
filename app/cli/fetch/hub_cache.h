/* The cache of the Hugging Face Hub, written as huggingface_hub lays it out, so that both find what the other has
 * downloaded: CACHE/models--OWNER--NAME/blobs/HASH, snapshots/COMMIT/FILE, a link to its blob, and refs/REVISION, with
 * the commit; locks in CACHE/.locks/models--OWNER--NAME/HASH.lock. */
#ifndef CLI_FETCH_HUB_CACHE_H
#define CLI_FETCH_HUB_CACHE_H

#include "hub_listing.h"
#include "hash.h"

#include <attend_model.h>

typedef struct hub_snapshot {
    /* CACHE/models--OWNER--NAME, the folder of its locks, its snapshots/COMMIT and .no_exist/COMMIT */
    att_model_path root, locks, folder, lacks;
} hub_snapshot;

/* Finds the paths for a commit. name: OWNER/NAME. */
int hub_snapshot_find(hub_snapshot *p, const char *name, const char *commit);
/* Returns whether a file of the listing is in the snapshot. */
bool hub_snapshot_has(const hub_snapshot *p, const hub_file *f);
/* Has the snapshot lead to the blob of a file, which exists. */
int hub_snapshot_link(const hub_snapshot *p, const hub_file *f);
/* Notes that the model does not have a file: .no_exist/COMMIT/FILE, by which others do not ask for it. */
int hub_snapshot_lack(const hub_snapshot *p, const char *name);
/* Writes refs/REVISION, unless the revision is the commit itself. */
int hub_snapshot_refer(const hub_snapshot *p, const char *revision, const char *commit);

/* A blob that is being downloaded, in blobs/HASH.incomplete, whose bytes are hashed as they come. */
typedef struct hub_blob {
    const hub_file *file;
    att_model_path path, unfinished;
    int lock, fd; /* fd -1: the blob is there */
    int64_t at;   /* bytes that are in the unfinished file */
    bool resumed; /* an earlier process has written some of them */
    hash hash;    /* SHA-1 as by git, or SHA-256 */
} hub_blob;

/* Waits for other processes that download the blob. Then b->fd is -1 if it is there, or its unfinished file, which may
 * have the first bytes already. */
int hub_blob_open(hub_blob *b, const hub_snapshot *p, const hub_file *f);
/* Appends data [bytes]. */
int hub_blob_put(hub_blob *b, const void *data, size_t bytes);
/* Drops what is there, and begins anew. */
int hub_blob_restart(hub_blob *b);
/* Sets *good to whether all bytes are there and have the hash. If so, the blob gets its name; else the unfinished file
 * is emptied, and `found` is the hash that it had. */
int hub_blob_finish(hub_blob *b, bool *good, char found[HUB_HASH]);
void hub_blob_close(hub_blob *b);

#endif
