/* Which files of a model of the Hugging Face Hub are downloaded: those that attend reads. Weights are safetensors, and
 * never pickles, whose opening runs programs; or one .gguf file with all its parts. */
#ifndef CLI_FETCH_HUB_CHOICE_H
#define CLI_FETCH_HUB_CHOICE_H

#include "hub_listing.h"

#include <stddef.h>

typedef struct hub_choice {
    const hub_file **file; /* [n], those of the listing; settings first, so that a folder with weights is complete */
    size_t n, room;
    bool *has;          /* [files of the listing]: is it among them? */
    int64_t bytes;      /* of all */
    const char *chosen; /* the .gguf file, the first of its parts, or NULL */
} hub_choice;

/* What downloads a small file of a model and reads it as JSON; *out is the caller's. Returns a code. */
typedef struct hub_reader {
    int (*read)(void *user, const hub_file *file, json_t **out);
    void *user;
} hub_reader;

/* Chooses the files of a model. name: OWNER/NAME, for messages. If the model has no safetensors but one .gguf file,
 * chooses that. If it has several, prints them with their sizes, as JSON or as a table. Returns 0, or a code after a
 * message. To be closed after an error, too. */
int hub_choose(hub_choice *c, const hub_listing *l, const char *name, const hub_reader *reader, bool json);
/* Chooses one .gguf file, with all its parts if it is one of several. */
int hub_choose_gguf(hub_choice *c, const hub_listing *l, const char *name, const char *gguf);
void hub_choice_close(hub_choice *c);

#endif
