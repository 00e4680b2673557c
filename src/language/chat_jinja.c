#include "language/chat_jinja.h"

#include <string.h>

typedef struct jinja_reader {
    const char *s;
    size_t bytes, at;
    att_bytes *out;
    size_t string_end, output_end; /* length of `out` after the last string, after the last {{...}} */
    bool bad;
} jinja_reader;

static void put(jinja_reader *r, const char *s, size_t bytes) { att_bytes_add(r->out, s, bytes); }

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static bool starts(const jinja_reader *r, size_t at, const char *word)
{
    const size_t n = strlen(word);
    return n <= r->bytes - at && memcmp(r->s + at, word, n) == 0;
}

/* ---- strings */

static void put_char(jinja_reader *r, char c)
{
    static const char special[] = "\n\r\t'\\", letter[] = "nrt'\\";
    const char *found = c ? strchr(special, c) : NULL;
    if (found)
        put(r, (const char[]){'\\', letter[found - special]}, 2);
    else
        put(r, &c, 1);
}

/* Begins a string, or continues the one before "+". */
static void begin_string(jinja_reader *r)
{
    if (r->string_end > 0 && r->out->count == r->string_end + 1 && r->out->data[r->string_end] == '+')
        r->out->count = r->string_end - 1;
    else
        put(r, "'", 1);
}

static void end_string(jinja_reader *r)
{
    put(r, "'", 1);
    r->string_end = r->out->count;
}

/* Reads a string, at its quote. */
static void read_string(jinja_reader *r)
{
    static const char letter[] = "nrt'\\\"\n", is[] = "\n\r\t'\\\"";
    const char quote = r->s[r->at++];
    begin_string(r);
    for (; r->at < r->bytes && r->s[r->at] != quote; r->at++) {
        if (r->s[r->at] != '\\') {
            put_char(r, r->s[r->at]);
            continue;
        }
        const char c = ++r->at < r->bytes ? r->s[r->at] : 0;
        const char *found = c ? strchr(letter, c) : NULL;
        if (!found) { /* \x41 and similar escapes, which no known template has */
            r->bad = true;
            return;
        }
        if (c != '\n')
            put_char(r, is[found - letter]);
    }
    if (r->at == r->bytes)
        r->bad = true;
    else
        r->at++;
    end_string(r);
}

/* ---- tags */

/* Returns the length of ['name'] at r->at, and sets name [*bytes]; 0: it is something else. */
static size_t subscript(const jinja_reader *r, const char **name, size_t *bytes)
{
    size_t at = r->at + 1;
    if (at >= r->bytes || (r->s[at] != '\'' && r->s[at] != '"'))
        return 0;
    const char quote = r->s[at++];
    *name = r->s + at;
    while (at < r->bytes && ((r->s[at] >= 'a' && r->s[at] <= 'z') || r->s[at] == '_'))
        at++;
    *bytes = (size_t)(r->s + at - *name);
    if (*bytes == 0 || r->bytes - at < 2 || r->s[at] != quote || r->s[at + 1] != ']')
        return 0;
    return at + 2 - r->at;
}

/* Copies the inside of a tag up to its end, "}}" or "%}", and skips that. Returns whether the end has a "-". */
static bool read_tag(jinja_reader *r, const char *end)
{
    int depth = 0;
    while (!r->bad && r->at < r->bytes) {
        const char c = r->s[r->at], *name;
        size_t bytes, n;
        const bool dash = c == '-' && r->at + 1 < r->bytes;
        if (depth == 0 && starts(r, r->at + dash, end)) {
            r->at += 2 + dash;
            return dash;
        }
        if (c == '\'' || c == '"') {
            read_string(r);
            continue;
        }
        if (c == '[' && (n = subscript(r, &name, &bytes)) > 0) {
            put(r, ".", 1);
            put(r, name, bytes);
            r->at += n;
            continue;
        }
        depth += (c == '(' || c == '[' || c == '{') - (c == ')' || c == ']' || c == '}');
        if (!is_space(c))
            put(r, &c, 1);
        r->at++;
    }
    r->bad = true;
    return false;
}

static void begin_output(jinja_reader *r)
{
    if (r->output_end > 0 && r->out->count == r->output_end) {
        r->out->count -= 2;
        put(r, "+", 1);
    } else {
        put(r, "{{", 2);
    }
}

static void end_output(jinja_reader *r)
{
    put(r, "}}", 2);
    r->output_end = r->out->count;
}

/* Writes text [begin, end), which is outside of tags. */
static void put_text(jinja_reader *r, size_t begin, size_t end)
{
    if (begin >= end)
        return;
    begin_output(r);
    begin_string(r);
    for (size_t i = begin; i < end; i++)
        if (r->s[i] != '\r') /* Jinja reads CR LF as LF */
            put_char(r, r->s[i]);
    end_string(r);
    end_output(r);
}

/* Returns the new end of text [begin, end) before a tag: "{%-" removes the white space before it, "{%" and "{#" remove
 * the spaces before them in their line. starting: the text is at the start of a line. */
static size_t text_end(const jinja_reader *r, size_t begin, size_t end, bool starting)
{
    const char kind = r->s[end + 1], sign = end + 2 < r->bytes ? r->s[end + 2] : 0;
    size_t to = end;
    if (sign == '-') {
        while (to > begin && is_space(r->s[to - 1]))
            to--;
        return to;
    }
    if (kind == '{' || sign == '+')
        return end;
    while (to > begin && r->s[to - 1] != '\n' && is_space(r->s[to - 1]))
        to--;
    return to == begin ? (starting ? to : end) : r->s[to - 1] == '\n' ? to : end;
}

/* Skips the text after a tag that the tag removes. */
static void skip_after(jinja_reader *r, bool dash, bool output)
{
    while (dash && r->at < r->bytes && is_space(r->s[r->at]))
        r->at++;
    if (dash || output)
        return;
    if (r->bytes - r->at >= 2 && r->s[r->at] == '\r' && r->s[r->at + 1] == '\n')
        r->at++;
    if (r->at < r->bytes && r->s[r->at] == '\n')
        r->at++;
}

/* Reads the tag at r->at. */
static void read_any_tag(jinja_reader *r)
{
    const char kind = r->s[r->at + 1];
    bool dash = false;
    r->at += 2;
    if (kind == '#') {
        const char *end = memmem(r->s + r->at, r->bytes - r->at, "#}", 2);
        r->bad = r->bad || !end;
        if (!end)
            return;
        dash = end > r->s + r->at && end[-1] == '-';
        r->at = (size_t)(end - r->s) + 2;
    } else {
        if (r->at < r->bytes && (r->s[r->at] == '-' || r->s[r->at] == '+'))
            r->at++;
        if (kind == '{')
            begin_output(r);
        else
            put(r, "{%", 2);
        dash = read_tag(r, kind == '{' ? "}}" : "%}");
        if (kind == '{')
            end_output(r);
        else
            put(r, "%}", 2);
    }
    skip_after(r, dash, kind == '{');
}

bool att_jinja_normal_form(const char *text, size_t bytes, att_bytes *out)
{
    if (bytes > 0 && text[bytes - 1] == '\n') /* Jinja removes one line end */
        bytes -= 1 + (bytes > 1 && text[bytes - 2] == '\r');
    jinja_reader r = {text, bytes, 0, out, 0, 0, false};
    while (!r.bad && !out->status && r.at < bytes) {
        const size_t begin = r.at;
        const bool starting = begin == 0 || text[begin - 1] == '\n';
        size_t at = begin;
        while (at < bytes && !(text[at] == '{' && at + 1 < bytes && strchr("{%#", text[at + 1]) && text[at + 1]))
            at++;
        put_text(&r, begin, at < bytes ? text_end(&r, begin, at, starting) : at);
        r.at = at;
        if (at < bytes)
            read_any_tag(&r);
    }
    return !r.bad && !out->status && (out->count == 0 || !memmem(out->data, out->count, "{%raw%}", 7));
}

/* ---- parts that a conversation without tools does not reach */

typedef enum tag_kind { OUTPUT, SETS, BEGINS, BRANCHES, ENDS, OTHER } tag_kind;

/* Returns the end of the tag at text[at]; 0: there is no tag. */
static size_t tag_end(const char *text, size_t bytes, size_t at)
{
    int depth = 0;
    if (bytes - at < 4 || text[at] != '{' || (text[at + 1] != '{' && text[at + 1] != '%'))
        return 0;
    const char close = text[at + 1] == '{' ? '}' : '%';
    for (size_t i = at + 2; i + 1 < bytes; i++) {
        const char c = text[i];
        if (depth == 0 && c == close && text[i + 1] == '}')
            return i + 2;
        if (c == '\'')
            for (i++; i < bytes && text[i] != '\''; i++)
                i += text[i] == '\\';
        depth += (c == '(' || c == '[' || c == '{') - (c == ')' || c == ']' || c == '}');
    }
    return 0;
}

static tag_kind kind_of(const char *tag, size_t bytes)
{
    static const struct {
        const char *begin;
        tag_kind kind;
    } kinds[] = {{"{{", OUTPUT},       {"{%if", BEGINS},    {"{%for", BEGINS},    {"{%else%}", BRANCHES},
                 {"{%elif", BRANCHES}, {"{%endif%}", ENDS}, {"{%endfor%}", ENDS}, {"{%set", SETS}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const size_t n = strlen(kinds[i].begin);
        if (n <= bytes && memcmp(tag, kinds[i].begin, n) == 0) /* a "set" without "=" is a block */
            return kinds[i].kind == SETS && !memchr(tag, '=', bytes) ? OTHER : kinds[i].kind;
    }
    return OTHER;
}

/* Skips statements from text[at] on. Returns the position of the statement that ends their block, or that begins
 * another branch of it; SIZE_MAX: there is none, or a statement is unknown. */
static size_t skip_branch(const char *text, size_t bytes, size_t at)
{
    for (int depth = 0;;) {
        const size_t end = tag_end(text, bytes, at);
        const tag_kind kind = end ? kind_of(text + at, end - at) : OTHER;
        if (kind == OTHER)
            return SIZE_MAX;
        if (depth == 0 && (kind == BRANCHES || kind == ENDS))
            return at;
        depth += (kind == BEGINS) - (kind == ENDS);
        at = end;
    }
}

/* Returns whether a condition is always false if there are no tools. */
static bool is_without_tools(const char *condition, size_t bytes)
{
    static const char *const known[] = {
        "tools",
        "toolsisnotnone",
        "toolsisnotnoneandnottools_in_user_message",
        "tools_in_user_messageandnottoolsisnone",
        "toolsisnotnoneand(message==user_messages[-1])",
        "custom_toolsisdefined",
        "builtin_toolsisdefined",
        "builtin_toolsisdefinedortoolsisnotnone",
        "'tool_calls'inmessage",
        "message.tool_calls",
        "message.tool_callsisdefinedandmessage.tool_callsisnotnone",
        "(message.tool_callsisdefinedandmessage.tool_callsisnotnone)",
        "message.role=='tool'",
        "message.role=='tool'ormessage.role=='ipython'",
        "message.role=='tool_results'ormessage.role=='tool'",
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strlen(known[i]) == bytes && memcmp(known[i], condition, bytes) == 0)
            return true;
    return false;
}

/* Skips each {%if...%}...{%endif%} and {%elif...%}... at text[at] whose condition asks for tools. */
static size_t skip_tools(const char *text, size_t bytes, size_t at)
{
    static const char *const names[] = {"{%if", "{%elif"};
    for (int i = 0; i < 2; i++) {
        const size_t end = tag_end(text, bytes, at), n = strlen(names[i]);
        if (end < at + n + 2 || memcmp(text + at, names[i], n) != 0 ||
            !is_without_tools(text + at + n, end - 2 - at - n))
            continue;
        size_t next = skip_branch(text, bytes, end);
        if (next == SIZE_MAX || (i == 0 && kind_of(text + next, bytes - next) != ENDS))
            return at;
        at = i == 0 ? tag_end(text, bytes, next) : next;
        i = -1;
    }
    return at;
}

/* ---- patterns */

/* Returns whether text [bytes] is inside a string: without the quote that ends it. */
static bool in_string(const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (text[i] == '\'')
            return false;
        else if (text[i] == '\\')
            i++;
    return true;
}

bool att_jinja_match(const char *pattern, const char *text, size_t bytes, att_byte_view *found)
{
    size_t at = 0; /* the text before it is matched */
    char wild = 0; /* the wild card before this part of the pattern */
    for (;;) {
        const size_t n = strcspn(pattern, "*^$?");
        at = wild == '*' ? skip_branch(text, bytes, at) : wild == '^' ? skip_tools(text, bytes, at) : at;
        if (at > bytes || n > bytes - at)
            return false;
        const bool string = wild == '$' || wild == '?';
        const char *here = string ? memmem(text + at, bytes - at, pattern, n) : text + at;
        if (!here || memcmp(here, pattern, n) != 0)
            return false;
        const att_byte_view between = {text + at, (size_t)(here - text) - at};
        if (string && !in_string(between.data, between.bytes))
            return false;
        if (wild == '$')
            *found = between;
        at = (size_t)(here - text) + n;
        wild = pattern[n];
        if (wild == 0)
            return at == bytes;
        pattern += n + 1;
    }
}

void att_jinja_unescape(att_byte_view s, att_bytes *out)
{
    for (size_t i = 0; i < s.bytes; i++) {
        char c = s.data[i];
        if (c == '\\' && i + 1 < s.bytes) {
            c = s.data[++i];
            c = c == 'n' ? '\n' : c == 'r' ? '\r' : c == 't' ? '\t' : c;
        }
        att_bytes_add(out, &c, 1);
    }
}
