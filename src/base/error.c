/* Status names and texts, the error message of each thread, and reading of structs with a size field. */
#include "base/base.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    SENTENCE = 1024,          /* maximum bytes of a message; longer ones are truncated */
    LARGEST_STRUCT = 1 << 16, /* a larger size field is garbage, not a newer header */
};

static _Thread_local char sentence[SENTENCE];
static _Thread_local int number; /* errno of the sentence's reason, or 0 */

static const struct {
    const char *name, *text;
} statuses[] = {
#define STATUS(name, code, text) [code] = {#name, text},
    ATT_STATUS_LIST(STATUS)
#undef STATUS
};

static bool known(att_status s) { return (unsigned)s < sizeof statuses / sizeof statuses[0]; }

const char *att_status_name(att_status s) { return known(s) ? statuses[s].name : "ERR_UNKNOWN"; }
const char *att_status_text(att_status s) { return known(s) ? statuses[s].text : "not a status of this library"; }

const char *att_error(const att_ctx *ctx)
{
    (void)ctx;
    return sentence;
}

int att_error_number(void) { return number; }

/* Truncates a text of n bytes at the end of its last complete UTF-8 character. */
static void truncate_at_character(char *text, size_t n)
{
    size_t lead = n;
    while (lead > 0 && n - lead < 3 && ((unsigned char)text[lead - 1] & 0xc0) == 0x80)
        lead--;
    if (lead == 0)
        return;
    const unsigned char c = (unsigned char)text[lead - 1];
    const size_t length = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
    if (lead - 1 + length > n)
        text[lead - 1] = '\0';
}

/* Returns the bytes of a control character at c, zero-terminated UTF-8: C0, DEL, C1, line and paragraph separators,
 * marks of the direction of text; 0: it is not a control character. */
static int control_bytes(const unsigned char *c)
{
    static const struct {
        unsigned char lead, second, first, last; /* second 0: two bytes, the last in [first, last] */
    } forms[] = {{0xc2, 0, 0x80, 0x9f},
                 {0xd8, 0, 0x9c, 0x9c},
                 {0xe2, 0x80, 0x8e, 0x8f},
                 {0xe2, 0x80, 0xa8, 0xae},
                 {0xe2, 0x81, 0xa6, 0xa9}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (c[0] != forms[i].lead || (forms[i].second && c[1] != forms[i].second))
            continue;
        const int at = forms[i].second ? 2 : 1;
        if (c[at] >= forms[i].first && c[at] <= forms[i].last)
            return at + 1;
    }
    return *c < 0x20 || *c == 0x7f;
}

/* Replaces control characters: names in a message may come from a hostile file and must not control a terminal. */
static void replace_controls(char *text)
{
    while (*text) {
        int n = control_bytes((const unsigned char *)text);
        for (; n > 1; n--)
            *text++ = '?';
        if (n)
            *text = '?';
        text++;
    }
}

att_status att_require(const char *function, const att_named *given, size_t n)
{
    if (!function || (!given && n > 0))
        return att_fail(NULL, ATT_ERR_ARGUMENT, "att_require: %s is NULL", function ? "given" : "function");
    for (size_t i = 0; i < n; i++)
        if (!given[i].pointer)
            return att_fail(NULL, ATT_ERR_ARGUMENT, "%s: %s is NULL", function, given[i].name);
    return ATT_OK;
}

/* Prints a sentence by its format, or `otherwise` if that cannot be printed. */
static void print_sentence(char text[SENTENCE], const char *otherwise, const char *format, va_list args)
{
    const int length = vsnprintf(text, SENTENCE, format, args);
    if (length < 0)
        snprintf(text, SENTENCE, "%s", otherwise);
    else if (length >= SENTENCE)
        truncate_at_character(text, SENTENCE - 1);
    replace_controls(text);
}

/* Returns whether a sentence ends with the reason of this error number; errno may be left from an earlier call. */
static bool is_reason(const char *text, int error)
{
    const char *words = error ? strerror(error) : "";
    const size_t n = strlen(text), m = strlen(words);
    return m > 0 && n >= m && !strcmp(text + n - m, words);
}

att_status att_fail(att_ctx *ctx, att_status s, const char *format, ...)
{
    const int now = errno, before = number; /* `before` if the previous message is repeated */
    if (!format)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "att_fail: format is NULL");
    char text[SENTENCE]; /* a copy: an argument may be the previous message */
    va_list args;
    va_start(args, format);
    print_sentence(text, att_status_text(s), format, args);
    va_end(args);
    memcpy(sentence, text, sizeof text);
    const bool of_system = s == ATT_ERR_IO || s == ATT_ERR_SYSTEM;
    number = !of_system ? 0 : is_reason(text, now) ? now : is_reason(text, before) ? before : 0;
    return s;
}

att_status att_fail_text(att_ctx *ctx, att_status s, const char *text)
{
    return att_require(__func__, ATT_NAMED({"text", text})) ? ATT_ERR_ARGUMENT : att_fail(ctx, s, "%s", text);
}

void att_note(att_ctx *ctx, const char *format, ...)
{
    char text[SENTENCE];
    va_list args;
    if (!ctx || !ctx->note || !format)
        return;
    va_start(args, format);
    print_sentence(text, "", format, args);
    va_end(args);
    ctx->note(ctx->note_user, text);
}

/* Reads the size field of an option or result struct. */
static att_status read_size(const void *of, const char *type_name, size_t *size)
{
    memcpy(size, of, sizeof *size);
    if (*size >= sizeof *size && *size <= LARGEST_STRUCT)
        return ATT_OK;
    return att_fail(NULL, ATT_ERR_ARGUMENT, "%s: its field size is %zu, but must be sizeof(%s); see ATT_OPTIONS",
                    type_name, *size, type_name);
}

att_status att_options_read(void *dst, size_t dst_size, const void *src, const char *type_name)
{
    if (att_require(__func__, ATT_NAMED({"dst", dst}, {"type_name", type_name})))
        return ATT_ERR_ARGUMENT;
    size_t size = dst_size;
    const att_status s = src ? read_size(src, type_name, &size) : ATT_OK;
    if (s)
        return s;
    const unsigned char *bytes = src;
    for (size_t i = dst_size; i < size; i++)
        if (bytes[i])
            return att_fail(NULL, ATT_ERR_UNSUPPORTED,
                            "%s: byte %zu is set, but the library that runs (%s) is older and knows only the first %zu",
                            type_name, i, ATT_VERSION, dst_size);
    memset(dst, 0, dst_size);
    if (src)
        memcpy(dst, src, size < dst_size ? size : dst_size);
    memcpy(dst, &dst_size, sizeof dst_size);
    return ATT_OK;
}

att_status att_info_write(void *dst, const void *src, size_t src_size, const char *type_name)
{
    if (att_require(__func__, ATT_NAMED({"dst", dst}, {"src", src}, {"type_name", type_name})))
        return ATT_ERR_ARGUMENT;
    size_t size;
    const att_status s = read_size(dst, type_name, &size);
    if (s)
        return s;
    memset(dst, 0, size);
    memcpy(dst, src, size < src_size ? size : src_size);
    memcpy(dst, &size, sizeof size);
    return ATT_OK;
}
