/* Text files in memory. */
#ifndef ATT_IO_FILE_H
#define ATT_IO_FILE_H

#include "attend_util.h"

#include <sys/stat.h>

enum { ATT_MAX_PATH = 4096 };

/* Joins FOLDER/NAME -> path */
att_status att_join_path(att_ctx *ctx, const char *folder, const char *name, char path[ATT_MAX_PATH]);

/* Does the path exist, and is not a folder? */
bool att_is_file(const char *path);
/* Opens a file for reading, without waiting for the writer of a pipe, and describes it; -1: an error, see errno. */
int att_open_file(const char *path, struct stat *is);

/* Maps a file, which is not empty and no pointer of Git LFS, for reading: *data [*bytes], to be unmapped by munmap. */
att_status att_map_file(att_ctx *ctx, const char *path, const void **data, size_t *bytes);

typedef struct att_text_file {
    att_ctx *ctx;
    char path[ATT_MAX_PATH];
    char *text; /* [bytes], followed by a zero byte */
    size_t bytes;
} att_text_file;

/* Reads a file. A missing file is an error if required; otherwise text is NULL. Error: it is known to be something else
 * (io/content.h). */
att_status att_text_file_open(att_text_file *f, att_ctx *ctx, const char *path, bool required);
/* The same for FOLDER/NAME. */
att_status att_text_file_read(att_text_file *f, att_ctx *ctx, const char *folder, const char *name, bool required);
void att_text_file_free(att_text_file *f);

#endif
