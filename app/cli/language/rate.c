#include "rate.h"
#include "cli/base/command.h"
#include "cli/base/progress.h"

#include <math.h>

void cli_rate_begin(cli_rate *r) { *r = (cli_rate){.begin = cli_seconds()}; }

void cli_rate_token(cli_rate *r)
{
    r->last = cli_seconds();
    if (r->tokens++ == 0)
        r->first = r->last;
}

/* Returns tokens a second after the first one; NaN: there is none. */
static double per_second(const cli_rate *r)
{
    return r->tokens > 1 && r->last > r->first ? (double)(r->tokens - 1) / (r->last - r->first) : NAN;
}

void cli_rate_note(const cli_rate *r, int64_t prompt, int64_t cached)
{
    char of_prompt[80], then[80] = "";
    snprintf(of_prompt, sizeof of_prompt, "prompt of %lld tokens, %lld of them cached", (long long)prompt,
             (long long)cached);
    if (r->tokens > 1)
        snprintf(then, sizeof then, ", then %lld at %.1f tokens/s", (long long)r->tokens - 1, per_second(r));
    if (r->tokens > 0)
        cli_note("%s; first token after %.3f s%s", of_prompt, r->first - r->begin, then);
    else
        cli_note("%s; no token was generated", of_prompt);
}

void cli_rate_write(cli_json *j, const cli_rate *r)
{
    cli_json_number(j, "seconds_to_first_token", r->tokens > 0 ? r->first - r->begin : NAN, 4);
    cli_json_number(j, "tokens_per_second", per_second(r), 4);
}
