/* A file of texts, one a line. */
#ifndef ATT_TRAIN_TEXT_LINES_H
#define ATT_TRAIN_TEXT_LINES_H

#include "io/text_file.h"

typedef struct att_text_lines {
    att_text_file file;
    const char **text; /* [n], not zero-terminated */
    size_t *bytes;     /* [n], without line ends (LF, CR LF) */
    int64_t n;
} att_text_lines;

/* l is all zero before; it is to be freed after an error, too. */
att_status att_text_lines_read(att_ctx *ctx, const char *path, att_text_lines *l);
void att_text_lines_free(att_ctx *ctx, att_text_lines *l);

#endif
