/* A text file as a whole. */
#ifndef CLI_BASE_READ_FILE_H
#define CLI_BASE_READ_FILE_H

#include <stddef.h>

typedef struct cli_whole_text {
    char *text; /* [bytes], followed by a zero byte */
    size_t bytes;
} cli_whole_text;

/* "-": standard input. A file is opened as att_open_text does. The text may be freed after an error, too. */
int cli_whole_text_read(const char *path, cli_whole_text *out);
/* Removes the line end that editors and echo write after the last line. */
void cli_whole_text_end_line(cli_whole_text *t);
void cli_whole_text_free(cli_whole_text *t);

#endif
