/* Recognizes files that were saved instead of the intended ones: a pointer to it, a web page, an archive. */
#ifndef ATT_IO_CONTENT_H
#define ATT_IO_CONTENT_H

#include "attend_util.h"

/* Returns an error if the file, whose first bytes are data [bytes], is a pointer of Git LFS. The message states how to
 * get the file. ctx or NULL. */
att_status att_refuse_pointer(att_ctx *ctx, const char *path, const void *data, size_t bytes);
/* Describes a file by its first bytes: "a web page (HTML); download the file itself"; "": not known. */
typedef struct att_content {
    char text[160];
} att_content;
att_content att_content_of(const void *data, size_t bytes);
/* Returns an error if the file is known to be something else than settings, a tokenizer or a template. */
att_status att_refuse_content(att_ctx *ctx, const char *path, const void *data, size_t bytes);

#endif
