/* Parses {"token": id, ...}: the object model.vocab of tokenizer.json, and vocab.json. Most of the file is this object;
 * parsing 30,000 tokens takes jansson more than ten milliseconds, and this parser one. jansson then parses the rest. */
#include <string.h>

#include "io/json_scan.h"
#include "text/tokenizer_file.h"
#include "text/utf8.h"
#include "text/wordpiece.h"
#include "util/array.h"

typedef struct cursor {
    att_text_file *file;
    att_json_scan json;
} cursor;

static att_status bad(const cursor *c, const char *what)
{
    int line = 1;
    for (const char *s = c->file->text; s < c->json.at; s++)
        line += *s == '\n';
    return att_fail(c->file->ctx, ATT_ERR_FORMAT, "%s: line %d: %s", c->file->path, line, what);
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

/* Parses \uXXXX, or two of them for a character beyond U+FFFF; c->json.at is after the u. -1: invalid. */
static int32_t parse_unicode(cursor *c)
{
    int high = hex4(c->json.at);
    if (high < 0)
        return -1;
    c->json.at += 4;
    if (high < 0xD800 || high > 0xDFFF)
        return high;
    if (high > 0xDBFF || c->json.at[0] != '\\' || c->json.at[1] != 'u')
        return -1;
    int low = hex4(c->json.at + 2);
    if (low < 0xDC00 || low > 0xDFFF)
        return -1;
    c->json.at += 6;
    return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
}

/* Parses an escape; c->json.at is after the backslash. Returns the character or -1. */
static int32_t parse_escape(cursor *c)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    char name = *c->json.at++;
    if (name == 'u')
        return parse_unicode(c);
    const char *n = name ? strchr(names, name) : NULL;
    return n ? values[n - names] : -1;
}

/* Parses a token after its opening quote, and unescapes it in place. */
static att_status parse_token(cursor *c, att_trie_entry *entry)
{
    char *start = c->json.at, *out = c->json.at;
    while (*c->json.at != '"') {
        if ((unsigned char)*c->json.at < 0x20)
            return bad(c, "a token has a control character, or the file ends in it");
        if (*c->json.at != '\\') {
            *out++ = *c->json.at++;
            continue;
        }
        c->json.at++;
        int32_t code = parse_escape(c);
        if (code < 0)
            return bad(c, "a token has a wrong escape");
        out += att_utf8_encode((uint32_t)code, out);
    }
    c->json.at++;
    entry->text = start;
    entry->bytes = (size_t)(out - start);
    return entry->bytes == 0                      ? bad(c, "a token is empty")
           : !att_utf8_valid(start, entry->bytes) ? bad(c, "a token is not valid UTF-8")
                                                  : ATT_OK;
}

static att_status parse_id(cursor *c, att_trie_entry *entry)
{
    int64_t id = 0;
    if (!att_json_accept(&c->json, ':'))
        return bad(c, "a token has no id");
    att_json_skip_space(&c->json);
    const char *start = c->json.at;
    for (; *c->json.at >= '0' && *c->json.at <= '9' && id < ATT_MAX_VOCABULARY; c->json.at++)
        id = 10 * id + (*c->json.at - '0');
    att_json_skip_space(&c->json);
    if (c->json.at > start && id < ATT_MAX_VOCABULARY && (*c->json.at == ',' || *c->json.at == '}')) {
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
    att_settings_parse_tokens(settings, f->ctx, f->path, text, begin + 2 + after);
    att_free(f->ctx, text);
    return settings->status;
}

/* Parses {"token": id, ...} after its opening brace. */
static att_status parse_tokens(cursor *c, att_token_list *list)
{
    if (att_json_accept(&c->json, '}'))
        return ATT_OK;
    do {
        att_trie_entry entry;
        att_status s = att_json_accept(&c->json, '"') ? parse_token(c, &entry) : bad(c, "expected a token in quotes");
        if (s != ATT_OK || (s = parse_id(c, &entry)) != ATT_OK || (s = att_token_list_add(list, entry)) != ATT_OK)
            return s;
    } while (att_json_accept(&c->json, ','));
    return att_json_accept(&c->json, '}') ? ATT_OK : bad(c, "the vocabulary is not closed");
}

/* Parses the scores of [["token", score], ...] after its opening bracket; jansson finds other errors in it. */
static att_status parse_scores(att_json_scan *c, att_token_list *list)
{
    double x;
    do {
        if (!att_json_accept(c, '[') || !att_json_skip_value(c) || !att_json_accept(c, ',') || !att_json_number(c, &x))
            break;
        const att_status s = att_grow(list->ctx, &list->score, sizeof x, list->scores, 1, &list->scores_capacity);
        if (s)
            return s;
        list->score[list->scores++] = x;
    } while (att_json_accept(c, ']') && att_json_accept(c, ','));
    return ATT_OK;
}

att_status att_read_vocab_json(att_text_file *f, att_token_list *list, att_settings *settings)
{
    cursor c = {f, {f->text, f->text + f->bytes}};
    const bool found = att_json_accept(&c.json, '{') && att_json_find_key(&c.json, "model") &&
                       att_json_accept(&c.json, '{') && att_json_find_key(&c.json, "vocab");
    if (!found || !att_json_accept(&c.json, '{')) {
        const att_status s = found && att_json_accept(&c.json, '[') ? parse_scores(&c.json, list) : ATT_OK;
        if (s)
            return s;
        /* jansson also finds the error in what was read, and describes it */
        att_settings_parse_tokens(settings, f->ctx, f->path, f->text, f->bytes);
        return settings->status;
    }
    const size_t begin = (size_t)(c.json.at - 1 - f->text);
    const att_status s = parse_tokens(&c, list);
    return s ? s : read_rest(f, begin, (size_t)(c.json.at - f->text), settings);
}

att_status att_read_token_map(att_text_file *f, att_token_list *list)
{
    cursor c = {f, {f->text, f->text + f->bytes}};
    if (!att_json_accept(&c.json, '{'))
        return bad(&c, "expected {\"token\": id, ...}");
    const att_status s = parse_tokens(&c, list);
    att_json_skip_space(&c.json);
    return s || c.json.at == c.json.end ? s : bad(&c, "there is more after the tokens");
}
