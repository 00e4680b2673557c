/* Text files, plain or packed by gzip. */
#ifndef ATT_IO_GZIP_READER_H
#define ATT_IO_GZIP_READER_H

#include "attend_text.h"

/* Unpacks the open file *file, at path, if it begins like a gzip file: replaces *file by an unnamed file that has its
 * text. Otherwise *file is unchanged. After an error *file is closed and -1. Error: a pointer of Git LFS. */
att_status att_unpack_text(const char *path, int *file);
/* Unpacks as att_unpack_text, then checks and sets the beginning of the text as att_open_text. */
att_status att_begin_text(const char *path, int *file);

#endif
