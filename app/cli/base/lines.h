/* The lines of files, in blocks: memory does not grow with the input. Or texts that are given, as if they were lines.
 */
#ifndef CLI_LINES_H
#define CLI_LINES_H

#include "command.h"
#include "paths.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum cli_line_ends { CLI_ENDS_UNKNOWN, CLI_LF, CLI_CR } cli_line_ends;

typedef struct cli_lines {
    /* The current block; each text is also zero-terminated. Without line ends (LF, CR LF; CR in a text without LF) and
     * byte order marks; NUL bytes are kept. */
    int64_t count;
    const char **text; /* [count] */
    size_t *bytes;     /* [count] */
    size_t part;       /* 0, or the maximum bytes of a text: longer lines are split at spaces */
    bool any_bytes;    /* lines need not be UTF-8, which otherwise is an error */
    double done,
        total;      /* bytes up to the end of the block; of all files, 0: unknown. Of given texts and shards: lines */
    int64_t before; /* lines of the input before the first one that is read: those of earlier shards */
    /* private */
    bool sharded; /* only `left` lines are read, after `skip` that are passed over; of `all` lines */
    int64_t skip, left, all;
    const char *const *given; /* [n_given]: the lines, instead of files; or NULL */
    int64_t n_given;
    cli_paths own; /* if they are paths that were found in folders */
    char *const *paths;
    double read;         /* bytes so far */
    int n_paths, at, fd; /* the next path; -1: none is open */
    const char *path;
    bool begun;         /* the first bytes of the open text have been checked */
    cli_line_ends ends; /* of the open text */
    int64_t line;       /* of the open file */
    char *data;         /* [capacity]: `used` bytes; those before `start` are in the block */
    size_t capacity, used, start;
    size_t *begin; /* [count]: of the lines, in data */
    size_t room;   /* capacity of text, bytes and begin */
} cli_lines;

/* Opens the lines of files. Without paths it reads standard input, as for the path "-". Fails if a file does not
 * exist. */
int cli_lines_open(cli_lines *l, int n, char *const *paths);
/* Opens lines that are these texts [n]. */
void cli_lines_of(cli_lines *l, int64_t n, const char *const *texts);
/* Opens lines that are paths of images: the given ones [n], with each folder replaced by the images in it. Fails if a
 * folder has none. */
int cli_lines_of_images(cli_lines *l, int n, char *const *paths);
/* Restricts lines that have just been opened to those of --shard, if it is given. Fails if they are those of a pipe. */
int cli_lines_shard(cli_lines *l);
/* Opens the lines of a command: the texts of --text, the file of --file (*file NULL: not given; it is read later), or
 * the files that are its arguments. images: its arguments are images. Fails if more than one of these is given. With
 * --shard only those of the shard. */
int cli_lines_choose(cli_lines *l, bool images, const cli_texts *texts, const char *const *file, int n,
                     char *const *paths);
/* Reads the next block, of at most max_count lines; count 0: end. A block may be smaller, to avoid waiting for
 * input. */
int cli_lines_next(cli_lines *l, int64_t max_count);
void cli_lines_close(cli_lines *l);

/* Reads line by line; the caller opens and closes `in`. */
typedef struct cli_reader {
    cli_lines in;
    int64_t at;    /* the current line of the block */
    int64_t lines; /* read until now */
} cli_reader;
/* Moves to the next line; *there: false at the end. */
int cli_reader_next(cli_reader *r, bool *there);

int cli_lines_count(const char *path, int64_t *n);

/* Checks that the file exists. *bytes: its size, -1: none (a pipe). "-": standard input. */
int cli_file_check(const char *path, double *bytes);

/* If *path is a pipe, which can be read only once: copies it to an unlinked file in $TMPDIR or /tmp and sets *path to
 * one that opens this file, as long as copy->file is open. */
typedef struct cli_copy {
    int file;      /* to be closed; -1: *path is not a pipe and unchanged */
    char path[24]; /* *path may point to it */
} cli_copy;
int cli_copy_pipe(const char **path, cli_copy *copy);

#endif
