/* The first bytes of a text: its byte order mark and its line ends; or what a file is instead of a text in UTF-8. */
#ifndef ATT_IO_TEXT_START_H
#define ATT_IO_TEXT_START_H

#include "attend_text.h"

/* A foreign format, recognized by its first bytes, and how to convert it to text. */
typedef struct att_foreign {
    const char *bytes; /* [n] */
    size_t n;
    const char *kind;                    /* "packed by xz", "UTF-16" */
    const char *advice, *command, *rest; /* "unpack it: ", "xz -dk", what follows the file's name; or NULL */
} att_foreign;

/* Returns the foreign format of a file that begins with data [bytes]; NULL: it seems to be a text. */
const att_foreign *att_foreign_of(const void *data, size_t bytes);
/* Fails with the format and the command. path: of the file, and then name is not used; or NULL: it has no path. */
att_status att_fail_foreign(att_ctx *ctx, const char *path, const char *name, const att_foreign *f);

/* A file's name as a word of a shell's command. */
typedef struct att_shell_word {
    char text[512];
} att_shell_word;
att_shell_word att_shell_quote(const char *path);

/* The beginning of a Git LFS pointer. */
#define ATT_POINTER_START "version https://git-lfs.github.com/"

/* Returns the length of the UTF-8 byte order mark at the start of data [bytes]; 0: there is none. */
size_t att_mark_bytes(const void *data, size_t bytes);
/* Returns the start of a text whose first bytes are data [bytes]. */
att_text_start att_find_text_start(const void *data, size_t bytes);

#endif
