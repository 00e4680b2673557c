/* The lines of files, in blocks: memory does not grow with the input. */
#ifndef CLI_LINES_H
#define CLI_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cli_lines {
    /* The current block; each text is also zero-terminated. Without line ends (LF, CR LF); NUL bytes are kept. */
    int64_t count;
    const char **text;  /* [count] */
    size_t *bytes;      /* [count] */
    size_t part;        /* 0, or so many bytes: a line that is longer comes in parts, cut at spaces */
    double done, total; /* bytes up to the end of the block; of all files, 0 where unknown */
    /* private */
    char *const *paths;
    double read;         /* bytes so far */
    int n_paths, at, fd; /* the next path; -1: none is open */
    const char *path;
    int64_t line; /* of the open file */
    char *data;   /* [capacity]: used bytes, of which those before start are in the block */
    size_t capacity, used, start;
    size_t *begin; /* [count]: of the lines, in data */
    size_t room;   /* of text, bytes and begin */
} cli_lines;

/* No paths: standard input, as for the path "-". Sees to it that the files are there. */
int cli_lines_open(cli_lines *l, int n, char *const *paths);
/* The next block of at most `most` lines; count 0: no more. A block ends early where the input makes us wait. */
int cli_lines_next(cli_lines *l, int64_t most);
void cli_lines_close(cli_lines *l);

/* Lines one by one: `in` is opened and closed as any. */
typedef struct cli_reader {
    cli_lines in;
    int64_t at;    /* the current line of the block */
    int64_t lines; /* so far */
} cli_reader;
/* Moves on; *there: there was a line. */
int cli_reader_next(cli_reader *r, bool *there);

int cli_lines_count(const char *path, int64_t *n);

/* Is there a file to read? *bytes: its size, -1 where it has none (a pipe). "-": standard input. */
int cli_file_check(const char *path, double *bytes);

/* A pipe can be read once only: what comes out of one is copied to a file without a name, in $TMPDIR or /tmp, and *path
 * becomes one by which that can be opened, as long as copy->file is open. */
typedef struct cli_copy {
    int file;      /* to be closed; -1: *path is no pipe, and stays */
    char path[24]; /* what *path may point to */
} cli_copy;
int cli_copy_pipe(const char **path, cli_copy *copy);

#endif
