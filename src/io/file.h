/* Files in memory: while a model is opened, those of io/file_source.h, otherwise those of the disk. */
#ifndef ATT_IO_FILE_H
#define ATT_IO_FILE_H

#include "attend_util.h"

#include <sys/stat.h>

enum { ATT_MAX_PATH = 4096 };

/* Joins folder and name to FOLDER/NAME -> path */
att_status att_join_path(att_ctx *ctx, const char *folder, const char *name, char path[ATT_MAX_PATH]);

/* Returns whether the path exists and is not a folder; also true if that cannot be determined, because opening it then
 * reports why. */
bool att_is_file(const char *path);
/* Returns whether a path exists, even as a folder or a link to nothing. */
bool att_exists(const char *path);
/* Opens a file for reading, without waiting for the writer of a pipe, and describes it; -1: an error, see errno. */
int att_open_file(const char *path, struct stat *is);

/* The content of a file that is not empty and is not a pointer of Git LFS; it begins at a multiple of 8. It is mapped
 * into memory, or copied or the caller's if a file source states so. */
typedef struct att_file_data {
    att_ctx *ctx;
    const unsigned char *bytes; /* [size] */
    size_t size;
    bool mapped;
    void *own; /* the copy, or NULL */
} att_file_data;
att_status att_file_data_open(att_file_data *d, att_ctx *ctx, const char *path);
void att_file_data_close(att_file_data *d);
/* Returns which memory of d has p, if any. */
typedef enum att_memory { ATT_MEMORY_OTHER = 0, ATT_MEMORY_MAPPED, ATT_MEMORY_GIVEN, ATT_MEMORY_COPIED } att_memory;
att_memory att_file_data_memory(const att_file_data *d, const void *p);

typedef struct att_text_file {
    att_ctx *ctx;
    char path[ATT_MAX_PATH];
    char *text; /* [bytes], followed by a zero byte */
    size_t bytes;
} att_text_file;

/* Reads a file. A missing file is an error if required; otherwise text is NULL. Error: it is known to be something else
 * (io/content.h). */
att_status att_text_file_open(att_text_file *f, att_ctx *ctx, const char *path, bool required);
/* Reads FOLDER/NAME as att_text_file_open reads a path. */
att_status att_text_file_read(att_text_file *f, att_ctx *ctx, const char *folder, const char *name, bool required);
void att_text_file_free(att_text_file *f);

#endif
