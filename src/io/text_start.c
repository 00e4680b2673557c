#include "io/text_start.h"
#include "attend_util.h"

#include <stdio.h>
#include <string.h>

#define CONVERT(name) "convert it: ", "iconv -f " name " -t UTF-8", " > NEW"
#define UNPACK(command) "unpack it: ", command, ""
#define WRITE_CSV "write its table as CSV in UTF-8", NULL, NULL

enum { START = 1 << 16 }; /* bytes in which zero bytes are counted */

/* Formats by their first bytes; if two begin with the same bytes, the longer one is first. A "?" is any byte. Letters
 * alone may also begin a text. */
static const att_foreign known[] = {
    {"\xFF\xFE\0\0", 4, "UTF-32, not UTF-8", CONVERT("UTF-32")},
    {"\0\0\xFE\xFF", 4, "UTF-32, not UTF-8", CONVERT("UTF-32")},
    {"\xFF\xFE", 2, "UTF-16, not UTF-8", CONVERT("UTF-16")},
    {"\xFE\xFF", 2, "UTF-16, not UTF-8", CONVERT("UTF-16")},
    {"\x1F\x8B", 2, "packed by gzip", UNPACK("gzip -dk")},
    {"\x1F\x9D", 2, "packed by compress", UNPACK("gzip -dk")},
    {"BZh?1AY&SY", 10, "packed by bzip2", UNPACK("bzip2 -dk")},
    {"\xFD\x37zXZ\0", 6, "packed by xz", UNPACK("xz -dk")},
    {"LZIP\1", 5, "packed by lzip", UNPACK("lzip -dk")},
    {"\x28\xB5\x2F\xFD", 4, "packed by zstd", UNPACK("zstd -d")},
    {"\x04\x22\x4D\x18", 4, "packed by lz4", UNPACK("lz4 -d")},
    {"PK\x03\x04", 4, "a zip archive or a document of Excel, LibreOffice or Word",
     "write a document as CSV in UTF-8, unpack an archive: ", "unzip", ""},
    {"PK\x05\x06", 4, "an empty zip archive", NULL, NULL, NULL},
    {"7z\xBC\xAF\x27\x1C", 6, "an archive of 7-Zip", UNPACK("7z x")},
    {"Rar!\x1A\x07", 6, "an archive of RAR", UNPACK("unrar x")},
    {"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1", 8, "a document of an old Excel or Word", WRITE_CSV},
    {"PAR1\25", 5, "a table of Parquet", WRITE_CSV},
    {"ARROW1\0", 7, "a table of Arrow", WRITE_CSV},
    {"\x89HDF\r\n\x1A\n", 8, "a file of HDF5", WRITE_CSV},
    {"SQLite format 3\0", 16, "a database of SQLite", WRITE_CSV},
    {"\x93NUMPY", 6, "an array of NumPy", WRITE_CSV},
    {"%PDF-", 5, "a PDF document", "write its text: ", "pdftotext", " NEW"},
    {ATT_POINTER_START, sizeof ATT_POINTER_START - 1, "a pointer of git LFS, not the file that it stands for",
     "in its repository: git lfs pull", NULL, NULL},
};

/* ---- UTF-16 and UTF-32 without a byte order mark, told from their zero bytes */

enum { LITTLE, BIG };
static const att_foreign utf16[] = {
    {.kind = "UTF-16 (little endian, without a byte order mark), not UTF-8", CONVERT("UTF-16LE")},
    {.kind = "UTF-16 (big endian, without a byte order mark), not UTF-8", CONVERT("UTF-16BE")}};
static const att_foreign utf32[] = {
    {.kind = "UTF-32 (little endian, without a byte order mark), not UTF-8", CONVERT("UTF-32LE")},
    {.kind = "UTF-32 (big endian, without a byte order mark), not UTF-8", CONVERT("UTF-32BE")}};

/* Recognizes UTF-16: half of the bytes, at odd or at even positions, are upper bytes of the alphabets from Latin to
 * Arabic, 0 to 8, which are control characters in UTF-8, and almost none of the others are. */
static const att_foreign *find_utf16(const unsigned char *s, size_t bytes)
{
    size_t upper[2] = {0, 0};
    const size_t units = bytes / 2;
    for (size_t i = 0; i < 2 * units; i++)
        upper[i % 2] += s[i] <= 8;
    for (size_t side = 0; side < 2; side++)
        if (units > 1 && 2 * upper[side] >= units && 20 * upper[1 - side] <= units)
            return &utf16[side ? LITTLE : BIG];
    return NULL;
}

/* Recognizes UTF-32: each character has a zero byte at its upper end, then the byte of a Unicode plane, and a lower
 * byte that is not zero. */
static const att_foreign *find_utf32(const unsigned char *s, size_t bytes)
{
    size_t little = 0, big = 0;
    const size_t units = bytes / 4;
    for (size_t i = 0; i < 4 * units; i += 4) {
        little += s[i] && s[i + 2] <= 0x10 && !s[i + 3];
        big += !s[i] && s[i + 1] <= 0x10 && s[i + 3];
    }
    return units < 2 ? NULL : little == units ? &utf32[LITTLE] : big == units ? &utf32[BIG] : NULL;
}

static bool begins_as(const char *data, size_t bytes, const att_foreign *f)
{
    bool same = bytes >= f->n;
    for (size_t i = 0; same && i < f->n; i++)
        same = f->bytes[i] == '?' || f->bytes[i] == data[i];
    return same;
}

const att_foreign *att_foreign_of(const void *data, size_t bytes)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (begins_as(data, bytes, &known[i]))
            return &known[i];
    bytes = bytes < START ? bytes : START;
    const att_foreign *found = find_utf32(data, bytes);
    return found ? found : find_utf16(data, bytes);
}

/* ---- messages */

att_shell_word att_shell_quote(const char *path)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:@%+=,";
    att_shell_word w;
    if (!path[strspn(path, plain)]) {
        snprintf(w.text, sizeof w.text, "%s", path);
        return w;
    }
    size_t n = 1;
    w.text[0] = '\'';
    for (; *path && n + sizeof "'\\'''" < sizeof w.text; path++)
        if (*path == '\'')
            n += (size_t)snprintf(w.text + n, sizeof w.text - n, "'\\''");
        else
            w.text[n++] = *path;
    snprintf(w.text + n, sizeof w.text - n, "'");
    return w;
}

att_status att_fail_foreign(att_ctx *ctx, const char *path, const char *name, const att_foreign *f)
{
    if (!f->advice)
        return att_fail(ctx, ATT_ERR_FORMAT, "%s is %s", path ? path : name, f->kind);
    if (!f->command)
        return att_fail(ctx, ATT_ERR_FORMAT, "%s is %s; %s", path ? path : name, f->kind, f->advice);
    if (!path)
        return att_fail(ctx, ATT_ERR_FORMAT, "%s is %s; %s%s", name, f->kind, f->advice, f->command);
    return att_fail(ctx, ATT_ERR_FORMAT, "%s is %s; %s%s %s%s", path, f->kind, f->advice, f->command,
                    att_shell_quote(path).text, f->rest);
}

/* ---- a text */

size_t att_mark_bytes(const void *data, size_t bytes)
{
    static const char mark[] = "\xEF\xBB\xBF";
    return bytes >= sizeof mark - 1 && !memcmp(data, mark, sizeof mark - 1) ? sizeof mark - 1 : 0;
}

att_text_start att_find_text_start(const void *data, size_t bytes)
{
    att_text_start start = {.size = sizeof start, .mark = att_mark_bytes(data, bytes)};
    start.returns = bytes > 0 && !memchr(data, '\n', bytes) && memchr(data, '\r', bytes);
    return start;
}

att_status att_text_begin(const char *name, const void *data, size_t bytes, att_text_start *out)
{
    if (att_require(__func__, ATT_NAMED({"name", name}, {"data", data}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    const att_foreign *foreign = att_foreign_of(data, bytes);
    if (foreign)
        return att_fail_foreign(NULL, NULL, name, foreign);
    const att_text_start start = att_find_text_start(data, bytes);
    return att_info_write(out, &start, sizeof start, "att_text_start");
}
