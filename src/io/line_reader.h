/* Text files of any size, read block by block, or line by line at given offsets. */
#ifndef ATT_IO_LINE_READER_H
#define ATT_IO_LINE_READER_H

#include "io/bytes.h"
#include "io/file.h"

enum { ATT_MAX_LINE = 1 << 20 }; /* bytes; a longer line is an error */
enum { ATT_TEXT_BLOCK = 2 * ATT_MAX_LINE };

typedef struct att_text_line {
    const char *text; /* [bytes], not zero-terminated */
    size_t bytes;     /* without the line end (LF, CR LF) */
    int64_t offset;   /* of its start in the file */
} att_text_line;

typedef struct att_text_lines {
    att_ctx *ctx;
    char path[ATT_MAX_PATH];
    int file;           /* descriptor, closed unless stream */
    struct stat opened; /* of the file when it was opened */
    int64_t lines;      /* read so far */
    char *block;        /* [ATT_TEXT_BLOCK], a part of the file; or NULL */
    size_t used, at;    /* bytes of the block; bytes read by att_text_lines_next */
    int64_t offset;     /* of the block in the file */
    bool end;           /* the file ends after the block */
    bool stream;        /* of a pipe, which cannot be read again */
    bool started;       /* stream: its first bytes have been checked */
    bool returns;       /* stream: lines end with CR, which is replaced by LF */
    const char *advice; /* of the error of a longer line, after "line N has more than M bytes" */
} att_text_lines;

/* Opens a regular file (others cannot be read twice) as att_open_text. l must be closed after an error, too; *l = {0}
 * may be closed. */
att_status att_text_lines_open(att_text_lines *l, att_ctx *ctx, const char *path);
/* Reads from the open descriptor `file`, which stays the caller's, once: att_text_lines_at and att_text_lines_check do
 * not work. name: what it is called in errors. */
att_status att_text_lines_of(att_text_lines *l, att_ctx *ctx, int file, const char *name);
void att_text_lines_close(att_text_lines *l);

/* Reads on, until the block has a line or the file has ended. Discards lines already read. */
att_status att_text_lines_fill(att_text_lines *l);
/* Fails: the next line is too long. */
att_status att_text_lines_too_long(const att_text_lines *l);
/* Reads the next line of the block, valid until the next fill; false: none, call fill. */
bool att_text_lines_next(att_text_lines *l, att_text_line *line);
/* Puts back the line read last. */
void att_text_lines_unread(att_text_lines *l, const att_text_line *line);
/* Reads and discards all remaining lines. */
att_status att_text_lines_skip(att_text_lines *l);
/* Frees the block when all lines have been read; att_text_lines_at still works. */
void att_text_lines_free_block(att_text_lines *l);

/* Reads the line at `offset` into buffer [room]; *fits is false if it is longer. May be called by several threads. */
att_status att_text_lines_at(const att_text_lines *l, int64_t offset, char *buffer, size_t room, att_text_line *line,
                             bool *fits);
/* Checks that the file has not changed since it was opened; to be called after reading. */
att_status att_text_lines_check(const att_text_lines *l);

#endif
