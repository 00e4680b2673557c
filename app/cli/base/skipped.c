#include "skipped.h"
#include <stdarg.h>
#include <string.h>

int cli_skip(cli_skipped *s, const char *format, ...)
{
    char sentence[sizeof s->first];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    if (s->n >= s->max)
        return cli_fail("%s", sentence);
    if (s->n++ == 0)
        memcpy(s->first, sentence, sizeof s->first);
    return CLI_DONE;
}

void cli_skipped_report(int64_t n, const char *bad)
{
    if (n == 1)
        cli_note("a malformed line was left out (--skip-bad-lines): %s", bad);
    else if (n > 1)
        cli_note("%lld malformed lines were left out (--skip-bad-lines), first: %s", (long long)n, bad);
}

void cli_skipped_json(cli_json *j, int64_t n, const char *bad)
{
    if (n < 1)
        return;
    cli_json_integer(j, "skipped_lines", n);
    cli_json_string(j, "first_skipped", bad);
}
