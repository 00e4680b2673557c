/* The first bytes of a text: its byte order mark and its line ends; or what a file is instead of a text in UTF-8. */
#ifndef ATT_IO_TEXT_START_H
#define ATT_IO_TEXT_START_H

#include "attend_text.h"

/* What a file is that begins with certain bytes, and how a text is made of it. */
typedef struct att_foreign {
    const char *bytes; /* [n] */
    size_t n;
    const char *kind;                    /* "packed by xz", "UTF-16" */
    const char *advice, *command, *rest; /* "unpack it: ", "xz -dk", what follows the file's name; or NULL */
} att_foreign;

/* What it is that begins with data [bytes]; NULL: a text, as far as can be seen. */
const att_foreign *att_foreign_of(const void *data, size_t bytes);
/* Fails with what it is and the command; path: of the file, in which case name is not used, or NULL: it has none. */
att_status att_fail_foreign(att_ctx *ctx, const char *path, const char *name, const att_foreign *f);

/* A file's name as a word of a shell's command. */
typedef struct att_shell_word {
    char text[512];
} att_shell_word;
att_shell_word att_shell_quote(const char *path);

/* A pointer of git LFS begins so. */
#define ATT_POINTER_START "version https://git-lfs.github.com/"

/* How long the byte order mark of UTF-8 is with which data [bytes] begins; 0: there is none. */
size_t att_mark_bytes(const void *data, size_t bytes);
/* The start of a text whose first bytes are data [bytes]. */
att_text_start att_find_text_start(const void *data, size_t bytes);

#endif
