#include "environment.h"
#include "cli/base/command.h"

#include <attend_model.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *value_of(const char *variable)
{
    const char *value = getenv(variable);
    return value && *value ? value : NULL;
}

static bool is_true(const char *variable)
{
    static const char *const words[] = {"1", "ON", "YES", "TRUE"};
    const char *value = value_of(variable);
    bool is = false;
    for (size_t i = 0; value && i < sizeof words / sizeof *words; i++)
        is = is || !strcasecmp(value, words[i]);
    return is;
}

/* Writes the path of the file with the token to `path`; "" if there is none. */
static void find_file(char *path, size_t size)
{
    static const char *const where[][2] = {{"HF_TOKEN_PATH", ""},
                                           {"HF_HOME", "/token"},
                                           {"XDG_CACHE_HOME", "/huggingface/token"},
                                           {"HOME", "/.cache/huggingface/token"}};
    const char *value = NULL, *home = value_of("HOME");
    size_t i = 0;
    while (i < sizeof where / sizeof where[0] && !(value = value_of(where[i][0])))
        i++;
    const bool below_home = value && home && value[0] == '~' && value[1] == '/';
    snprintf(path, size, "%s%s%s", below_home ? home : "", value ? value + below_home : "", value ? where[i][1] : "");
}

/* Copies a token without blanks around it. Only visible characters may become a part of a request. */
static int set_token(hub_environment *e, const char *text)
{
    static const char blanks[] = " \t\r\n";
    text += strspn(text, blanks);
    size_t n = strlen(text);
    while (n > 0 && strchr(blanks, text[n - 1]))
        n--;
    for (size_t i = 0; i < n; i++)
        if (text[i] <= ' ' || text[i] > '~')
            return cli_fail("what %s has is not a token: it has characters other than letters, digits and signs",
                            e->token_from);
    if (n >= sizeof e->token)
        return cli_fail("what %s has is not a token: it is too long", e->token_from);
    snprintf(e->token, sizeof e->token, "%.*s", (int)n, text);
    return CLI_DONE;
}

static int read_token_file(hub_environment *e)
{
    char text[2 * sizeof e->token];
    find_file(e->token_from, sizeof e->token_from);
    FILE *file = *e->token_from ? fopen(e->token_from, "re") : NULL;
    if (!file)
        return !*e->token_from || errno == ENOENT || errno == ENOTDIR ? CLI_DONE : cli_fail_errno(e->token_from);
    const size_t n = fread(text, 1, sizeof text - 1, file);
    const bool failed = ferror(file);
    fclose(file);
    text[n] = '\0';
    return failed ? cli_fail_errno(e->token_from) : set_token(e, text);
}

int hub_environment_read(hub_environment *e)
{
    static const char *const variables[] = {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"};
    *e = (hub_environment){.endpoint = value_of("HF_ENDPOINT"),
                           .offline = is_true("HF_HUB_OFFLINE") || is_true("TRANSFORMERS_OFFLINE")};
    if (!e->endpoint)
        e->endpoint = "https://huggingface.co";
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        if (value_of(variables[i])) {
            snprintf(e->token_from, sizeof e->token_from, "%s", variables[i]);
            return set_token(e, value_of(variables[i]));
        }
    return read_token_file(e);
}
