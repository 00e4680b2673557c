/* A file of texts, one a line, of any size: it is read block by block, or a line at a time from anywhere. */
#ifndef ATT_TRAIN_TEXT_LINES_H
#define ATT_TRAIN_TEXT_LINES_H

#include "io/text_file.h"

enum { ATT_LONGEST_LINE = 1 << 20 }; /* bytes: a longer line is an error */

typedef struct att_text_line {
    const char *text; /* [bytes], not zero-terminated */
    size_t bytes;     /* without its end (LF, CR LF) */
    int64_t offset;   /* where it begins in the file */
} att_text_line;

typedef struct att_text_lines {
    att_ctx *ctx;
    char path[ATT_MAX_PATH];
    int file;                            /* descriptor */
    int64_t bytes, seconds, nanoseconds; /* size and last change of the file when it was opened */
    int64_t lines;                       /* taken so far */
    char *block;                         /* a part of the file; or NULL */
    size_t used, at;                     /* bytes of the block; those that were taken */
    int64_t offset;                      /* where the block begins in the file */
    bool end;                            /* the block ends with the file */
} att_text_lines;

/* Only regular files: others cannot be read twice. l is to be closed after an error, too; *l = {0} may be closed. */
att_status att_text_lines_open(att_text_lines *l, att_ctx *ctx, const char *path);
void att_text_lines_close(att_text_lines *l);

/* Reads on: then there is a line to take, or the file has ended. Lines that were taken are gone. */
att_status att_text_lines_fill(att_text_lines *l);
/* The next line of the block, valid until the next fill. false: there is none, fill reads on. */
bool att_text_lines_take(att_text_lines *l, att_text_line *line);
/* Gives back the line that was taken last. */
void att_text_lines_back(att_text_lines *l, const att_text_line *line);
/* Takes all lines that are left. */
att_status att_text_lines_skip(att_text_lines *l);
/* Frees the block when all has been taken; single lines can be read still. */
void att_text_lines_done(att_text_lines *l);

/* Reads the line at `offset` to buffer [room]. *fits is false if it has more bytes. Any threads may call it at a time.
 */
att_status att_text_lines_at(const att_text_lines *l, int64_t offset, char *buffer, size_t room, att_text_line *line,
                             bool *fits);
/* Error: the file is not as it was when it was opened; it is asked after reading. */
att_status att_text_lines_check(const att_text_lines *l);

#endif
