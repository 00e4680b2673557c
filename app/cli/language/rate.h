/* How fast tokens are generated: the time to the first one, and how many a second then. */
#ifndef CLI_LANGUAGE_RATE_H
#define CLI_LANGUAGE_RATE_H

#include "cli/base/json.h"

/* clang-format off */
#define CLI_STATS(to)                                                                        \
    {"stats", 0, NULL, .flag = (to),                                                         \
     .help = "report the time to the first token, and how many tokens a second follow (speed, latency)"}
/* clang-format on */

typedef struct cli_rate {
    double begin, first, last; /* seconds of a monotonic clock */
    int64_t tokens;
} cli_rate;

void cli_rate_begin(cli_rate *r);
void cli_rate_token(cli_rate *r); /* a token was generated */
/* Reports it, with the number of the prompt's tokens, and of those that were cached and not computed. */
void cli_rate_note(const cli_rate *r, int64_t prompt, int64_t cached);
/* Writes seconds_to_first_token and tokens_per_second into the open object; null: there were too few tokens. */
void cli_rate_write(cli_json *j, const cli_rate *r);

#endif
