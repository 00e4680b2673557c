/* Malformed lines that a command leaves out if an option permits it. */
#ifndef CLI_SKIPPED_H
#define CLI_SKIPPED_H

#include "command.h"
#include "json.h"

/* clang-format off */
#define CLI_SKIP_OPTION(to, files)                                                           \
    {"skip-bad-lines", 0, "N", .integer = (to), .max = 1e15, .quiet = true,                  \
     .help = "leave out up to N malformed lines of " files ", and report how many there were and what is wrong with the " \
             "first; default: 0"}
/* clang-format on */

/* Lines that have been left out. */
typedef struct cli_skipped {
    int64_t max, n;  /* the most; so far */
    char first[400]; /* the sentence on the first of them */
} cli_skipped;
/* Handles a malformed line: returns CLI_DONE if one more may be left out, otherwise fails with this message.
 */
int cli_skip(cli_skipped *s, const char *format, ...) ATT_PRINTF(2, 3);

/* Reports on standard error that n > 0 lines were left out; bad: the sentence on the first of them. */
void cli_skipped_report(int64_t n, const char *bad);
/* Writes the report as members of a JSON object; none if n is 0. */
void cli_skipped_json(cli_json *j, int64_t n, const char *bad);

#endif
