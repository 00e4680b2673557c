/* Parses {"token": id, ...}: the object model.vocab of tokenizer.json, and vocab.json. Most of the file is this object;
 * parsing 30,000 tokens takes jansson more than ten milliseconds, and this parser one. jansson then parses the rest. */
#include <string.h>

#include "text/tokenizer_file.h"
#include "text/utf8.h"
#include "text/wordpiece.h"

typedef struct cursor {
    att_text_file *file;
    char *at, *end; /* *end is a zero byte */
} cursor;

static att_status bad(const cursor *c, const char *what)
{
    int line = 1;
    for (const char *s = c->file->text; s < c->at; s++)
        line += *s == '\n';
    return att_fail(c->file->ctx, ATT_ERR_FORMAT, "%s: line %d: %s", c->file->path, line, what);
}

static void skip_space(cursor *c)
{
    while (*c->at == ' ' || *c->at == '\n' || *c->at == '\t' || *c->at == '\r')
        c->at++;
}

/* Skips white space; consumes this character if it follows. */
static bool accept(cursor *c, char what)
{
    skip_space(c);
    bool there = *c->at == what;
    c->at += there;
    return there;
}

/* Skips the rest of a string after its opening quote. */
static bool skip_string(cursor *c)
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

/* Skips a value of any type. */
static bool skip_value(cursor *c)
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

/* Skips to the value of a key, from inside an object; false: there is no such key. */
static bool find_key(cursor *c, const char *key)
{
    size_t bytes = strlen(key);
    do {
        if (!accept(c, '"'))
            return false;
        const char *name = c->at;
        if (!skip_string(c) || !accept(c, ':'))
            return false;
        if (strncmp(name, key, bytes) == 0 && name[bytes] == '"') {
            skip_space(c);
            return true;
        }
        if (!skip_value(c))
            return false;
    } while (accept(c, ','));
    return false;
}

/* ---- tokens */

static int hex4(const char *s)
{
    static const char digits[] = "0123456789abcdef";
    int value = 0;
    for (int i = 0; i < 4; i++) {
        const char *d = s[i] ? strchr(digits, s[i] | (s[i] >= 'A' ? 0x20 : 0)) : NULL;
        if (!d)
            return -1;
        value = 16 * value + (int)(d - digits);
    }
    return value;
}

/* Parses \uXXXX, or two of them for a character beyond U+FFFF; c->at is after the u. -1: invalid. */
static int32_t parse_unicode(cursor *c)
{
    int high = hex4(c->at);
    if (high < 0)
        return -1;
    c->at += 4;
    if (high < 0xD800 || high > 0xDFFF)
        return high;
    if (high > 0xDBFF || c->at[0] != '\\' || c->at[1] != 'u')
        return -1;
    int low = hex4(c->at + 2);
    if (low < 0xDC00 || low > 0xDFFF)
        return -1;
    c->at += 6;
    return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
}

/* Parses an escape; c->at is after the backslash; the character or -1. */
static int32_t parse_escape(cursor *c)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    char name = *c->at++;
    if (name == 'u')
        return parse_unicode(c);
    const char *n = name ? strchr(names, name) : NULL;
    return n ? values[n - names] : -1;
}

/* Parses a token after its opening quote, and unescapes it in place. */
static att_status parse_token(cursor *c, att_trie_entry *entry)
{
    char *start = c->at, *out = c->at;
    while (*c->at != '"') {
        if ((unsigned char)*c->at < 0x20)
            return bad(c, "a token has a control character, or the file ends in it");
        if (*c->at != '\\') {
            *out++ = *c->at++;
            continue;
        }
        c->at++;
        int32_t code = parse_escape(c);
        if (code <= 0)
            return bad(c, "a token has a wrong escape");
        out += att_utf8_encode((uint32_t)code, out);
    }
    c->at++;
    entry->text = start;
    entry->bytes = (size_t)(out - start);
    return entry->bytes == 0                      ? bad(c, "a token is empty")
           : !att_utf8_valid(start, entry->bytes) ? bad(c, "a token is not valid UTF-8")
                                                  : ATT_OK;
}

static att_status parse_id(cursor *c, att_trie_entry *entry)
{
    int64_t id = 0;
    if (!accept(c, ':'))
        return bad(c, "a token has no id");
    skip_space(c);
    const char *start = c->at;
    for (; *c->at >= '0' && *c->at <= '9' && id < ATT_MAX_VOCABULARY; c->at++)
        id = 10 * id + (*c->at - '0');
    skip_space(c);
    if (c->at > start && id < ATT_MAX_VOCABULARY && (*c->at == ',' || *c->at == '}')) {
        entry->id = (int32_t)id;
        return ATT_OK;
    }
    int shown = (int)strcspn(start, ",} \n");
    return att_fail(c->file->ctx, ATT_ERR_FORMAT, "%s: the id of token \"%.*s\" is %.*s, not a whole number in [0, %d)",
                    c->file->path, entry->bytes < 80 ? (int)entry->bytes : 80, entry->text, shown < 40 ? shown : 40,
                    start, ATT_MAX_VOCABULARY);
}

/* Parses the rest of the file with {} in place of the tokens, [begin, end). */
static att_status read_rest(const att_text_file *f, size_t begin, size_t end, att_settings *settings)
{
    const size_t after = f->bytes - end;
    char *text = att_alloc(f->ctx, begin + 2 + after, 1);
    if (!text)
        return ATT_ERR_MEMORY;
    memcpy(text, f->text, begin);
    memcpy(text + begin, "{}", 2);
    memcpy(text + begin + 2, f->text + end, after);
    att_settings_parse(settings, f->ctx, f->path, text, begin + 2 + after);
    att_free(f->ctx, text);
    return settings->status;
}

/* {"token": id, ...} after its opening brace */
static att_status parse_tokens(cursor *c, att_token_list *list)
{
    if (accept(c, '}'))
        return ATT_OK;
    do {
        att_trie_entry entry;
        att_status s = accept(c, '"') ? parse_token(c, &entry) : bad(c, "expected a token in quotes");
        if (s != ATT_OK || (s = parse_id(c, &entry)) != ATT_OK || (s = att_token_list_add(list, entry)) != ATT_OK)
            return s;
    } while (accept(c, ','));
    return accept(c, '}') ? ATT_OK : bad(c, "the vocabulary is not closed");
}

att_status att_read_vocab_json(att_text_file *f, att_token_list *list, att_settings *settings)
{
    cursor c = {f, f->text, f->text + f->bytes};
    if (!accept(&c, '{') || !find_key(&c, "model") || !accept(&c, '{') || !find_key(&c, "vocab") || !accept(&c, '{')) {
        /* jansson finds the same error, and describes it */
        att_settings_parse(settings, f->ctx, f->path, f->text, f->bytes);
        return settings->status;
    }
    const size_t begin = (size_t)(c.at - 1 - f->text);
    const att_status s = parse_tokens(&c, list);
    return s ? s : read_rest(f, begin, (size_t)(c.at - f->text), settings);
}

att_status att_read_token_map(att_text_file *f, att_token_list *list)
{
    cursor c = {f, f->text, f->text + f->bytes};
    if (!accept(&c, '{'))
        return bad(&c, "expected {\"token\": id, ...}");
    const att_status s = parse_tokens(&c, list);
    skip_space(&c);
    return s || c.at == c.end ? s : bad(&c, "there is more behind the tokens");
}
