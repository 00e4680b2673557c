#include "shard.h"

#include <stdlib.h>
#include <string.h>

static const char placeholder[] = "{shard}";

cli_shard_options cli_shard;
static int64_t part = 1, parts = 1;

bool cli_shard_given(void) { return cli_shard.text != NULL; }

cli_range cli_shard_of(int64_t n)
{
    const int64_t each = n / parts, more = n % parts, before = part - 1;
    const int64_t first = before * each + (before < more ? before : more);
    return (cli_range){first, first + each + (before < more)};
}

/* Reads "I/N". */
static int read_shard(const char *text)
{
    enum { MAX_PARTS = 1000000 };
    int end = 0;
    long long i = 0, n = 0;
    const bool digits = strspn(text, "0123456789/") == strlen(text) && strlen(text) < sizeof "1000000/1000000";
    if (!digits || sscanf(text, "%lld/%lld%n", &i, &n, &end) != 2 || text[end])
        return cli_misuse("--shard: \"%s\" is not I/N, such as 1/7", text);
    if (n < 1 || n > MAX_PARTS)
        return cli_misuse("--shard %s: there may be 1 to %d parts, not %lld", text, MAX_PARTS, n);
    if (i < 1 || i > n)
        return cli_misuse("--shard %s: parts are counted from 1/%lld to %lld/%lld%s", text, n, n, n,
                          i ? "" : "; add 1 to an index from 0");
    part = i;
    parts = n;
    return CLI_DONE;
}

/* Replaces each {shard} of an output's name, whose memory is that of the process. */
static int name_output(const cli_option *o)
{
    char own[64], last[32];
    const int digits = snprintf(last, sizeof last, "%lld", (long long)parts);
    const size_t n = (size_t)snprintf(own, sizeof own, "%0*lld-of-%s", digits, (long long)part, last);
    size_t count = 0;
    for (const char *p = *o->text; (p = strstr(p, placeholder)); p += strlen(placeholder))
        count++;
    char *name = malloc(strlen(*o->text) + count * n + 1), *to = name;
    if (!name)
        return cli_fail_memory();
    const char *from = *o->text;
    for (const char *p; (p = strstr(from, placeholder)); from = p + strlen(placeholder))
        to += sprintf(to, "%.*s%s", (int)(p - from), from, own);
    strcpy(to, from);
    *o->text = name;
    return CLI_DONE;
}

int cli_shard_begin(const cli_command *c)
{
    bool known = false;
    for (const cli_option *o = c->options; o && o->name; o++)
        known = known || o->text == &cli_shard.text;
    int code = cli_shard.text ? read_shard(cli_shard.text) : CLI_DONE;
    for (const cli_option *o = c->options; known && !code && o->name; o++) {
        if (!o->writes || !*o->text || !strstr(*o->text, placeholder))
            continue;
        code = cli_shard.text ? name_output(o)
                              : cli_misuse("--%s %s: %s needs --shard I/N", o->name, *o->text, placeholder);
    }
    return code;
}
