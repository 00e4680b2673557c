#include "unknown_tokens.h"
#include "command.h"
#include "utf8.h"

#include <stdlib.h>
#include <string.h>

/* Returns the bytes of a text that are shown: all, or characters up to a limit. */
static size_t whole_characters(const char *text, size_t bytes)
{
    size_t n = 0;
    if (bytes < CLI_UNKNOWN_BYTES)
        return bytes;
    for (int next = 0; n + (size_t)next < CLI_UNKNOWN_BYTES - 4; next = abs(utf8_length(text + n, bytes - n)))
        n += (size_t)next;
    return n;
}

void cli_unknown_add(void *user, const char *text, size_t bytes)
{
    cli_unknown *u = user;
    u->in_line = true;
    char shown[CLI_UNKNOWN_BYTES] = "U+0000"; /* a zero byte counts as a character */
    if (bytes > 1 || *text)
        snprintf(shown, sizeof shown, "%.*s%s", (int)whole_characters(text, bytes), text,
                 whole_characters(text, bytes) < bytes ? "..." : "");
    if (u->array)
        json_array_append_new(u->array, json_stringn(text, bytes));
    for (int i = 0; i < u->n; i++)
        if (!strcmp(u->text[i], shown))
            return;
    if (u->n == CLI_UNKNOWN_SHOWN)
        u->more = true;
    else
        memcpy(u->text[u->n++], shown, sizeof shown);
}

void cli_unknown_end_line(cli_unknown *u)
{
    u->lines += u->in_line;
    u->in_line = false;
}

int cli_unknown_scan(cli_unknown *u, att_ctx *ctx, const att_tokenizer *t, const char *line, size_t bytes,
                     int64_t max_tokens)
{
    const att_tokenize_options *o =
        ATT_OPTIONS(att_tokenize_options, .max_tokens = max_tokens, .unknown = cli_unknown_add, .user = u);
    att_tokens tokens;
    const int code = cli_status(ctx, att_tokenize(t, line, bytes, o, &tokens));
    if (code)
        return code;
    att_tokens_free(ctx, &tokens);
    cli_unknown_end_line(u);
    return CLI_DONE;
}

/* Appends a text as far as it fits, invisible characters as code points; returns the new end of the list. */
static size_t append(char *list, size_t size, size_t end, const char *text)
{
    for (const char *s = text; *s;) {
        const char *begin = s;
        const uint32_t code = utf8_next(&s);
        const bool shows = !utf8_is_control(code) && utf8_columns(code) > 0;
        const int n = shows ? snprintf(list + end, size - end, "%.*s", (int)(s - begin), begin)
                            : snprintf(list + end, size - end, "U+%04X", (unsigned)code);
        if (n < 0 || (size_t)n >= size - end)
            return end;
        end += (size_t)n;
    }
    return end;
}

void cli_unknown_list(const cli_unknown *u, char list[CLI_UNKNOWN_LIST])
{
    size_t end = 0;
    list[0] = 0;
    for (int i = 0; i < u->n; i++) {
        end = append(list, CLI_UNKNOWN_LIST, end, !i ? "" : u->ids ? ", " : " ");
        end = append(list, CLI_UNKNOWN_LIST, end, u->ids ? "\"" : "");
        end = append(list, CLI_UNKNOWN_LIST, end, u->text[i]);
        end = append(list, CLI_UNKNOWN_LIST, end, u->ids ? "\"" : "");
    }
    if (u->more)
        append(list, CLI_UNKNOWN_LIST, end, " and others");
}

bool cli_unknown_has_spaces(const cli_unknown *u)
{
    for (int i = 0; i < u->n; i++)
        if (strchr(u->text[i], ' '))
            return true;
    return false;
}

void cli_unknown_report(const cli_unknown *u)
{
    char list[CLI_UNKNOWN_LIST];
    cli_unknown_list(u, list);
    if (u->lines > 0)
        cli_note("%lld %s characters that the model does not know: %s", (long long)u->lines,
                 u->lines == 1 ? "line has" : "lines have", list);
}
