#include "text/not_utf8.h"
#include "io/text_start.h"
#include "text/utf8.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef unsigned char byte;

static bool is_in(byte c, byte first, byte last) { return c >= first && c <= last; }

/* ---- Japanese: kana show the encoding, as all other texts have none of their bytes where they have them */

/* Returns the bytes of the character at s in Shift JIS; 0: it is not valid; *kana: it is hiragana or katakana. */
static size_t shift_jis(const byte *s, size_t bytes, bool *kana)
{
    *kana = false;
    if (s[0] < 0x80 || is_in(s[0], 0xA1, 0xDF)) /* ASCII, katakana of half width */
        return 1;
    if (bytes < 2 || !(is_in(s[0], 0x81, 0x9F) || is_in(s[0], 0xE0, 0xFC)) || !is_in(s[1], 0x40, 0xFC) || s[1] == 0x7F)
        return 0;
    *kana = (s[0] == 0x82 && is_in(s[1], 0x9F, 0xF1)) || (s[0] == 0x83 && is_in(s[1], 0x40, 0x96));
    return 2;
}

static size_t euc_jp(const byte *s, size_t bytes, bool *kana)
{
    *kana = false;
    if (s[0] < 0x80)
        return 1;
    if (bytes < 2 || !is_in(s[0], 0xA1, 0xFE) || !is_in(s[1], 0xA1, 0xFE))
        return 0;
    *kana = (s[0] == 0xA4 && s[1] <= 0xF3) || (s[0] == 0xA5 && s[1] <= 0xF6);
    return 2;
}

static bool is_japanese(att_byte_view text, size_t (*next)(const byte *s, size_t bytes, bool *kana))
{
    bool any = false, kana;
    for (size_t i = 0, n; i < text.bytes; i += n) {
        n = next((const byte *)text.data + i, text.bytes - i, &kana);
        if (!n)
            return false;
        any |= kana;
    }
    return any;
}

/* ---- Western Europe: letters beyond ASCII are few, and stand among others; also the quotes and dashes of Windows */

static bool is_western(att_byte_view text)
{
    size_t run = 0;
    for (size_t i = 0; i < text.bytes; i++) {
        const byte c = (byte)text.data[i];
        run = c < 0x80 ? 0 : run + 1;
        /* Three letters beyond ASCII in a row are rare, and the encoding does not have these codes. */
        if (run > 2 || c == 0x81 || c == 0x8D || c == 0x8F || c == 0x90 || c == 0x9D)
            return false;
    }
    return true;
}

/* Returns how many characters beyond ASCII are valid UTF-8, minus the number of invalid ones. */
static int64_t count_valid(att_byte_view text)
{
    int64_t n = 0;
    uint32_t c;
    for (size_t i = 0, length; i < text.bytes; i += length) {
        length = att_utf8_decode(text.data + i, text.bytes - i, &c);
        n += length > 1 && c != ATT_REPLACEMENT ? 1 : (byte)text.data[i] >= 0x80 ? -1 : 0;
    }
    return n;
}

/* Returns the encoding of a text that is not UTF-8, as iconv calls it: "WINDOWS-1252", "SHIFT_JIS", "EUC-JP"; "UTF-8":
 * only some characters are damaged; NULL: another one. */
static const char *guess_encoding(att_byte_view text)
{
    return is_japanese(text, shift_jis) ? "SHIFT_JIS"
           : is_japanese(text, euc_jp)  ? "EUC-JP"
           : count_valid(text) > 0      ? "UTF-8"
           : is_western(text)           ? "WINDOWS-1252"
                                        : NULL;
}

/* ---- messages */

/* Writes a command like "iconv -f WINDOWS-1252 -t UTF-8 FILE > NEW"; the file may be packed, or there may be none. */
static void write_command(char *to, size_t size, const char *encoding, const char *path)
{
    const size_t n = path ? strlen(path) : 0;
    const bool packed = n > 3 && !strcmp(path + n - 3, ".gz"), file = path && !access(path, F_OK);
    const char *discard = strcmp(encoding, "UTF-8") ? "" : "-c ";
    if (file && packed)
        snprintf(to, size, "gzip -dc %s | iconv %s-f %s -t UTF-8 > NEW", att_shell_quote(path).text, discard, encoding);
    else
        snprintf(to, size, "iconv %s-f %s -t UTF-8%s%s%s", discard, encoding, file ? " " : "",
                 file ? att_shell_quote(path).text : "", file ? " > NEW" : "");
}

att_status att_fail_not_utf8(const att_where *where, const char *what, att_byte_view text)
{
    const char *encoding = guess_encoding(text);
    const char *after = what ? " " : "";
    char command[640];
    write_command(command, sizeof command, encoding ? encoding : "ENCODING", where->path);
    if (!encoding)
        return att_fail_at(where, ATT_ERR_FORMAT, "%s%sis not UTF-8; convert it from what it is in: %s",
                           what ? what : "", after, command);
    if (!strcmp(encoding, "UTF-8"))
        return att_fail_at(where, ATT_ERR_FORMAT,
                           "%s%sis not UTF-8: after byte %zu a character is damaged; without such ones: %s",
                           what ? what : "", after, att_utf8_prefix(text.data, text.bytes), command);
    return att_fail_at(where, ATT_ERR_FORMAT, "%s%sis not UTF-8, but seems to be in %s; convert it: %s",
                       what ? what : "", after, encoding, command);
}

att_status att_check_utf8(const char *name, int64_t line, const char *text, size_t bytes)
{
    if (att_require(__func__, ATT_NAMED({"name", name}, {"text", text})))
        return ATT_ERR_ARGUMENT;
    if (att_utf8_valid(text, bytes))
        return ATT_OK;
    return att_fail_not_utf8(&(att_where){.path = name, .number = line}, NULL, (att_byte_view){text, bytes});
}
