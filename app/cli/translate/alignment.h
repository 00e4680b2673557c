/* Alignments of translations as pictures or as JSON. */
#ifndef CLI_TRANSLATE_ALIGNMENT_H
#define CLI_TRANSLATE_ALIGNMENT_H

#include "cli/base/command.h"
#include "cli/draw/picture.h"
#include "cli/translate/translator.h"

typedef struct cli_alignment {
    const char *path;    /* FILE.svg, FILE.png: a picture of the first text. "-": a picture below each translation, on
                          * standard output. Otherwise JSON, an object for each text. NULL: nothing */
    int64_t layer, head; /* -1: the last, the mean of all */
    /* private */
    const cli_translator *m;
    picture file;
    int64_t count; /* number of texts until now */
} cli_alignment;

int cli_alignment_open(cli_alignment *a, const cli_translator *m);
/* text [bytes] and its translation */
int cli_alignment_add(cli_alignment *a, const char *text, size_t bytes, const att_translation *t);
/* code 0: the file is put in place. Returns code, or CLI_FAILED. */
int cli_alignment_close(cli_alignment *a, int code);

#endif
