/* Reads all documents of a file: its lines or, of JSON Lines, their texts. */
#ifndef CLI_CLASSIFIER_DOCUMENTS_H
#define CLI_CLASSIFIER_DOCUMENTS_H

#include "cli/base/command.h"

typedef struct cli_documents {
    int64_t n;
    const char **text; /* [n], zero-terminated */
    size_t *bytes;     /* [n] */
    /* private */
    char *data;
    size_t *begin; /* [n]: in data */
    size_t used, capacity, room;
} cli_documents;

/* "-": standard input. A file whose name ends in .jsonl has an object with a "text" in each line, as "attend embed"
 * writes it. Errors name the line; a file without documents is one. */
int cli_documents_read(cli_documents *d, const char *path);
void cli_documents_free(cli_documents *d);

#endif
