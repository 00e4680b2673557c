/* Prints facts as lines or as JSON. */
#include "facts.h"

static cli_json object = {.first = "\n  ", .between = ",\n  ", .last = "\n"};
static const char *key; /* of the next value; NULL: the value belongs to a list */
static bool in_json, more;

void info_begin(bool json) { in_json = json; }

void info_end(void)
{
    if (in_json)
        cli_json_end(&object);
    else
        putchar('\n');
}

cli_json *info_json(void) { return in_json ? &object : NULL; }

void info_fact_begin(const char *key_of, const char *title)
{
    key = key_of;
    if (!in_json) {
        printf("%s%-20s", more ? "\n" : "", title);
    } else if (!more) {
        object.file = stdout;
        cli_json_object(&object, NULL);
    }
    more = true;
}

void info_text(const char *value)
{
    if (in_json)
        cli_json_string(&object, key, value);
    else
        fputs(value, stdout);
}

void info_integer(int64_t value)
{
    if (in_json)
        cli_json_integer(&object, key, value);
    else
        printf("%lld", (long long)value);
}

void info_list_begin(void)
{
    if (in_json)
        cli_json_array(&object, key);
    key = NULL;
}

void info_object_begin(void)
{
    if (in_json)
        cli_json_object(&object, key);
}

void info_list_end(void)
{
    if (in_json)
        cli_json_end(&object);
}

void info_name(void *precedes, const char *name)
{
    bool *another = precedes;
    if (!in_json && *another)
        fputs(", ", stdout);
    *another = true;
    info_text(name);
}

void info_bytes(bool *precedes, const char *key_of, const char *title, int64_t bytes)
{
    if (in_json)
        cli_json_integer(&object, key_of, bytes);
    else
        printf("%s%s %.1f MB", *precedes ? ", " : "", title, (double)bytes / 1e6);
    *precedes = true;
}

void info_facts(const info_fact *facts, int n)
{
    for (int i = 0; i < n; i++) {
        info_fact_begin(facts[i].key, facts[i].title);
        if (facts[i].text)
            info_text(facts[i].text);
        else
            info_integer(facts[i].number);
    }
}
