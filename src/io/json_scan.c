#include "io/json_scan.h"

#include <string.h>

void att_json_skip_space(att_json_scan *c)
{
    while (*c->at == ' ' || *c->at == '\n' || *c->at == '\t' || *c->at == '\r')
        c->at++;
}

bool att_json_accept(att_json_scan *c, char what)
{
    att_json_skip_space(c);
    bool there = *c->at == what;
    c->at += there;
    return there;
}

/* Skips the rest of a string after its opening quote. */
static bool skip_string(att_json_scan *c)
{
    for (; c->at < c->end; c->at++) {
        if (*c->at == '"') {
            c->at++;
            return true;
        }
        if (*c->at == '\\' && c->at + 1 < c->end)
            c->at++;
    }
    return false;
}

bool att_json_skip_value(att_json_scan *c)
{
    for (int64_t depth = 0; c->at < c->end;) {
        char x = *c->at;
        if (depth == 0 && (x == ',' || x == '}' || x == ']'))
            return true;
        c->at++;
        if (x == '"' && !skip_string(c))
            return false;
        depth += (x == '{' || x == '[') - (x == '}' || x == ']');
    }
    return false;
}

bool att_json_find_key(att_json_scan *c, const char *key)
{
    size_t bytes = strlen(key);
    do {
        if (!att_json_accept(c, '"'))
            return false;
        const char *name = c->at;
        if (!skip_string(c) || !att_json_accept(c, ':'))
            return false;
        if (strncmp(name, key, bytes) == 0 && name[bytes] == '"') {
            att_json_skip_space(c);
            return true;
        }
        if (!att_json_skip_value(c))
            return false;
    } while (att_json_accept(c, ','));
    return false;
}
