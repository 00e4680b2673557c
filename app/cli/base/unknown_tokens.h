/* Collects the texts of an input that are unknown to a model, and reports them once, at the end. */
#ifndef CLI_BASE_UNKNOWN_TOKENS_H
#define CLI_BASE_UNKNOWN_TOKENS_H

#include <attend_text.h>

#include <jansson.h>

enum { CLI_UNKNOWN_SHOWN = 20, CLI_UNKNOWN_BYTES = 64, CLI_UNKNOWN_LIST = 4096 };

typedef struct cli_unknown {
    bool ids;      /* they are quoted, with commas between them */
    json_t *array; /* or NULL: receives all unknown texts of a line that are UTF-8 */
    int64_t lines; /* with unknown texts */
    int n;         /* number of different texts, mostly characters */
    char text[CLI_UNKNOWN_SHOWN][CLI_UNKNOWN_BYTES];
    bool more;    /* there are further ones that do not fit */
    bool in_line; /* the current line has unknown texts */
} cli_unknown;

/* Adds a text. A function for att_tokenize_options.unknown; user: a cli_unknown. */
void cli_unknown_add(void *user, const char *text, size_t bytes);
/* Ends the current line. */
void cli_unknown_end_line(cli_unknown *u);
/* Adds the unknown texts of a line, up to max_tokens (0: no limit). */
int cli_unknown_scan(cli_unknown *u, att_ctx *ctx, const att_tokenizer *t, const char *line, size_t bytes,
                     int64_t max_tokens);
/* Writes all texts, separated by spaces, or as ids; invisible characters as code points: U+200B. */
void cli_unknown_list(const cli_unknown *u, char list[CLI_UNKNOWN_LIST]);
/* Returns whether one of them has spaces, so that it may be several ids. */
bool cli_unknown_has_spaces(const cli_unknown *u);
/* Prints "3 lines have characters that the model does not know: 4 5 %", if there are any. */
void cli_unknown_report(const cli_unknown *u);

#endif
