/* Splits a template into tokens, and removes white space around tags as trim_blocks and lstrip_blocks state. */
#include "jinja/tree.h"

#include "text/utf8.h"

#include <string.h>

typedef struct lexer {
    att_jinja_state *s;
    const char *text; /* [bytes] */
    size_t bytes, at;
    int line;
    att_jinja_tokens out;
} lexer;

static void add(lexer *l, att_jinja_token_kind kind, const char *data, size_t bytes)
{
    l->out.token = att_jinja_grow(l->s, l->out.token, l->out.n, &l->out.room, sizeof *l->out.token);
    l->out.token[l->out.n++] = (att_jinja_token){kind, l->line, att_jinja_text(l->s, data, bytes, false).string};
}

static bool here(const lexer *l, const char *word)
{
    const size_t n = strlen(word);
    return n <= l->bytes - l->at && memcmp(l->text + l->at, word, n) == 0;
}

static void advance(lexer *l, size_t n)
{
    for (; n > 0; n--)
        l->line += l->text[l->at++] == '\n';
}

static void skip_space(lexer *l)
{
    while (l->at < l->bytes) {
        uint32_t c;
        const size_t n = att_utf8_decode(l->text + l->at, l->bytes - l->at, &c);
        if (!att_jinja_is_space(c))
            break;
        advance(l, n);
    }
}

/* Skips the end of a tag, after which a sign removes white space, or, if trimmed, one line end is removed. */
static bool skip_end(lexer *l, const char *end, bool trimmed)
{
    const char sign = l->at < l->bytes ? l->text[l->at] : 0;
    const size_t before = sign == '-' || (sign == '+' && trimmed);
    l->at += before;
    if (!here(l, end)) {
        l->at -= before;
        return false;
    }
    advance(l, strlen(end));
    if (before && sign == '-')
        skip_space(l);
    else if (!before && trimmed && here(l, "\n"))
        advance(l, 1);
    return true;
}

/* Adds the text [begin, end) before a tag, which begins at `end`. */
static void add_data(lexer *l, size_t begin, size_t end, bool block)
{
    const char sign = end + 2 < l->bytes ? l->text[end + 2] : 0;
    size_t last = end, line = end;
    if (sign == '-') {
        const att_jinja_string x = {.data = l->text + begin, .bytes = end - begin};
        last = begin + att_jinja_strip(l->s, &x, NULL, false, true)->bytes;
    } else if (block && sign != '+') {
        while (line > begin && l->text[line - 1] != '\n' && strchr(" \t\v\f\r", l->text[line - 1]))
            line--;
        if (line == 0 || l->text[line - 1] == '\n')
            last = line;
    }
    if (last > begin)
        add(l, ATT_JINJA_T_DATA, l->text + begin, last - begin);
}

/* ---- tags */

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c) || (unsigned char)c >= 0x80;
}

static size_t digits(const lexer *l, size_t at)
{
    while (at < l->bytes && (is_digit(l->text[at]) || l->text[at] == '_'))
        at++;
    return at;
}

static void scan_number(lexer *l)
{
    size_t end = digits(l, l->at), more;
    bool real = false;
    char clean[64];
    size_t n = 0;
    if (end + 1 < l->bytes && l->text[end] == '.' && is_digit(l->text[end + 1])) {
        end = digits(l, end + 1);
        real = true;
    }
    if (end < l->bytes && (l->text[end] == 'e' || l->text[end] == 'E')) {
        const size_t sign = end + 1 < l->bytes && (l->text[end + 1] == '-' || l->text[end + 1] == '+');
        more = digits(l, end + 1 + sign);
        if (more > end + 1 + sign) {
            end = more;
            real = true;
        }
    }
    for (size_t i = l->at; i < end; i++) {
        if (n == sizeof clean)
            att_jinja_fail(l->s, "a number is too long");
        if (l->text[i] != '_')
            clean[n++] = l->text[i];
    }
    add(l, real ? ATT_JINJA_T_FLOAT : ATT_JINJA_T_INT, clean, n);
    l->at = end;
}

static int hex(char c)
{
    const char *const all = "0123456789abcdef", *const at = c ? strchr(all, c >= 'A' && c <= 'F' ? c + 32 : c) : NULL;
    return at ? (int)(at - all) : -1;
}

/* Reads n hexadecimal digits. */
static uint32_t scan_code(lexer *l, int n)
{
    uint32_t code = 0;
    for (; n > 0; n--, l->at++) {
        const int digit = l->at < l->bytes ? hex(l->text[l->at]) : -1;
        if (digit < 0)
            att_jinja_fail(l->s, "an escape sequence is incomplete");
        code = code << 4 | (uint32_t)digit;
    }
    return code;
}

static void add_code(lexer *l, att_jinja_builder *b, uint32_t c)
{
    char out[4];
    if (c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))
        att_jinja_fail(l->s, "an escape sequence is not a character");
    const size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = n; i-- > 1; c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3F));
    out[0] = (char)(lead[n] | c);
    att_jinja_add(b, out, n, false);
}

/* Reads what stands after a backslash in a string. */
static void scan_escape(lexer *l, att_jinja_builder *b)
{
    static const char from[] = "\\'\"abfnrtv", to[] = "\\'\"\a\b\f\n\r\t\v";
    const char c = l->text[l->at++];
    const char *const simple = c ? strchr(from, c) : NULL;
    if (simple) {
        att_jinja_add(b, &to[simple - from], 1, false);
    } else if (c == 'x' || c == 'u' || c == 'U') {
        add_code(l, b, scan_code(l, c == 'x' ? 2 : c == 'u' ? 4 : 8));
    } else if (c >= '0' && c <= '7') {
        uint32_t code = (uint32_t)(c - '0');
        for (int i = 0; i < 2 && l->at < l->bytes && l->text[l->at] >= '0' && l->text[l->at] <= '7'; i++)
            code = code * 8 + (uint32_t)(l->text[l->at++] - '0');
        add_code(l, b, code);
    } else if (c == '\n') {
        l->line++;
    } else if (c == 'N') {
        att_jinja_fail(l->s, "\\N{...} in a string is not supported; write \\uXXXX");
    } else {
        att_jinja_add(b, "\\", 1, false);
        att_jinja_add(b, &c, 1, false);
    }
}

static void scan_string(lexer *l)
{
    const char quote = l->text[l->at++];
    att_jinja_builder b = {.s = l->s};
    for (;;) {
        if (l->at >= l->bytes)
            att_jinja_fail(l->s, "a string has no end");
        const char c = l->text[l->at];
        if (c == '\\' && l->at + 1 < l->bytes) {
            l->at++;
            scan_escape(l, &b);
            continue;
        }
        advance(l, 1);
        if (c == quote)
            break;
        att_jinja_add(&b, &c, 1, false);
    }
    add(l, ATT_JINJA_T_STRING, b.data ? b.data : "", b.bytes);
}

static char scan_operator(lexer *l)
{
    static const char *const operators[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "*", "/", "%", "~", "<",
                                            ">",  "=",  "(",  ")",  "[",  "]",  "{", "}", "|", ",", ":", ".", NULL};
    const char *const *o = operators;
    while (*o && !here(l, *o))
        o++;
    if (!*o)
        att_jinja_fail(l->s, "the character \"%.1s\" is not expected in a tag", l->text + l->at);
    add(l, ATT_JINJA_T_OPERATOR, *o, strlen(*o));
    l->at += strlen(*o);
    return **o;
}

/* Reads a tag up to its end. */
static void scan_tag(lexer *l, const char *end, bool block)
{
    int open = 0;
    for (;;) {
        skip_space(l);
        l->s->line = l->line;
        if (l->at >= l->bytes)
            att_jinja_fail(l->s, "a tag has no end, \"%s\"", end);
        const size_t at = l->at;
        if (open == 0 && skip_end(l, end, block)) {
            add(l, block ? ATT_JINJA_T_BLOCK_END : ATT_JINJA_T_PRINT_END, "", 0);
            return;
        }
        const char c = l->text[at];
        if (is_digit(c)) {
            scan_number(l);
        } else if (is_name(c)) {
            while (l->at < l->bytes && is_name(l->text[l->at]))
                l->at++;
            add(l, ATT_JINJA_T_NAME, l->text + at, l->at - at);
        } else if (c == '"' || c == '\'') {
            scan_string(l);
        } else {
            const char o = scan_operator(l);
            open += strchr("([{", o) ? 1 : strchr(")]}", o) ? -1 : 0;
            if (open < 0)
                att_jinja_fail(l->s, "\"%c\" closes nothing", o);
        }
    }
}

/* Skips "{% WORD %}", without its end if that is NULL. */
static bool skip_word_tag(lexer *l, const char *word, bool trimmed)
{
    const size_t at = l->at;
    const int line = l->line;
    if (here(l, "{%")) {
        l->at += 2;
        l->at += here(l, "-") || here(l, "+");
        skip_space(l);
        if (here(l, word)) {
            l->at += strlen(word);
            skip_space(l);
            if (skip_end(l, "%}", trimmed))
                return true;
        }
    }
    l->at = at;
    l->line = line;
    return false;
}

static void scan_raw(lexer *l)
{
    const size_t begin = l->at;
    for (; l->at < l->bytes; advance(l, 1)) {
        const size_t end = l->at;
        if (!skip_word_tag(l, "endraw", true))
            continue;
        add_data(l, begin, end, true);
        return;
    }
    att_jinja_fail(l->s, "raw has no endraw");
}

static void scan_comment(lexer *l)
{
    for (l->at += 2; l->at < l->bytes; advance(l, 1))
        if (skip_end(l, "#}", true))
            return;
    att_jinja_fail(l->s, "a comment has no end");
}

att_jinja_tokens att_jinja_scan(att_jinja_state *s, const char *text, size_t bytes)
{
    lexer l = {.s = s, .line = 1};
    att_jinja_builder b = {.s = s};
    for (size_t i = 0; i < bytes; i++) /* line ends become \n */
        if (text[i] != '\r')
            att_jinja_add(&b, text + i, 1, false);
        else if (i + 1 == bytes || text[i + 1] != '\n')
            att_jinja_add(&b, "\n", 1, false);
    l.text = b.data ? b.data : "";
    l.bytes = b.bytes - (b.bytes > 0 && b.data[b.bytes - 1] == '\n'); /* keep_trailing_newline is off */
    for (size_t begin = 0; l.at < l.bytes || begin < l.bytes; begin = l.at) {
        while (l.at < l.bytes && !here(&l, "{{") && !here(&l, "{%") && !here(&l, "{#"))
            advance(&l, 1);
        s->line = l.line;
        if (l.at >= l.bytes) {
            add(&l, ATT_JINJA_T_DATA, l.text + begin, l.at - begin);
            break;
        }
        const char kind = l.text[l.at + 1];
        add_data(&l, begin, l.at, kind != '{');
        if (kind == '#') {
            scan_comment(&l);
        } else if (kind == '%' && skip_word_tag(&l, "raw", false)) {
            scan_raw(&l);
        } else {
            l.at += 2;
            l.at += here(&l, "-") || (here(&l, "+") && kind == '%');
            add(&l, kind == '%' ? ATT_JINJA_T_BLOCK : ATT_JINJA_T_PRINT, "", 0);
            scan_tag(&l, kind == '%' ? "%}" : "}}", kind == '%');
        }
    }
    add(&l, ATT_JINJA_T_END, "", 0);
    return l.out;
}
