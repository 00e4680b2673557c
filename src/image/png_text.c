/* Reads the texts of a PNG file that may state its orientation: XMP, and EXIF data in hexadecimal, as ImageMagick
 * writes it.
 */
#include "image/png_text.h"

#include <string.h>

#include <zlib.h>

/* The limits of a text. With zlib's window a text needs 1 MiB, as much as Pillow unpacks. It is allocated after
 * libpng's memory is freed. */
enum { MAX_TEXT = 15 << 16, MAX_RATIO = 1032 };

/* ---- which texts */

/* Returns the orientation in a profile of APP1, a segment of JPEG, which is XMP or EXIF. Pillow reads neither it nor a
 * profile of XMP. */
static int either_orientation(att_byte_view app1)
{
    const int x = att_exif_orientation(app1);
    return x ? x : att_xmp_orientation(app1);
}

/* The kinds of texts. The first one that states an orientation counts. */
static const struct {
    const char *keyword;
    bool hexadecimal, exif;
    int (*orientation)(att_byte_view data);
} kinds[ATT_PNG_TEXTS] = {{"Raw profile type exif", true, true, att_exif_orientation},
                          {"Raw profile type APP1", true, true, either_orientation},
                          {"XML:com.adobe.xmp", false, false, att_xmp_orientation},
                          {"Raw profile type xmp", true, false, att_xmp_orientation}};

/* Returns the view after the first n bytes; empty if it has fewer. */
static att_byte_view skip(att_byte_view v, size_t n)
{
    return v.bytes > n ? (att_byte_view){v.data + n, v.bytes - n} : (att_byte_view){0};
}

/* Returns the view after the first byte of this value. */
static att_byte_view skip_past(att_byte_view v, char c)
{
    const char *at = v.bytes > 0 ? memchr(v.data, c, v.bytes) : NULL;
    return at ? skip(v, (size_t)(at - v.data) + 1) : (att_byte_view){0};
}

/* The keyword and a zero byte are followed, in tEXt, by the text; in zTXt, by the method of compression, 0, and the
 * text; in iTXt, by whether the text is compressed, the method, two texts that end with a zero byte, and the text. */
void att_png_text_add(att_png_text texts[ATT_PNG_TEXTS], const char *name, att_byte_view data)
{
    const bool z = !memcmp(name, "zTXt", 4), i = !memcmp(name, "iTXt", 4);
    if (!z && !i && memcmp(name, "tEXt", 4) != 0)
        return;
    for (int kind = 0; kind < ATT_PNG_TEXTS; kind++) {
        const size_t n = strlen(kinds[kind].keyword) + 1;
        if (data.bytes < n || memcmp(data.data, kinds[kind].keyword, n) != 0)
            continue;
        const att_byte_view text = skip(data, n);
        const bool packed = z || (i && text.bytes > 0 && text.data[0]);
        const att_byte_view body = i ? skip_past(skip_past(skip(text, 2), 0), 0) : skip(text, z);
        if (!packed || (text.bytes > (size_t)i && text.data[i] == 0))
            texts[kind] = (att_png_text){body, packed};
    }
}

/* ---- reading them */

/* Unpacks as much as fits into out [*bytes]. *bytes is then the unpacked size, 0 if the data is damaged. */
static att_status inflate_to(att_ctx *ctx, att_byte_view packed, uint8_t *out, size_t *bytes)
{
    z_stream z = {
        .next_in = (Bytef *)packed.data, .avail_in = (uInt)packed.bytes, .next_out = out, .avail_out = (uInt)*bytes};
    if (inflateInit(&z) != Z_OK)
        return att_fail(ctx, ATT_ERR_MEMORY, "out of memory for a text in a PNG file");
    const int s = inflate(&z, Z_SYNC_FLUSH);
    *bytes = s == Z_OK || s == Z_STREAM_END || s == Z_BUF_ERROR ? (size_t)z.total_out : 0;
    inflateEnd(&z);
    return ATT_OK;
}

static int hexadecimal_digit(char c)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) % 16 : -1;
}

/* Replaces a text by the bytes that it states in hexadecimal. These follow three lines: an empty one, the profile's
 * name, and its size, which is not needed. Returns the number of bytes. */
static size_t read_hexadecimal(uint8_t *text, size_t bytes)
{
    att_byte_view rest = {(const char *)text, bytes};
    for (int line = 0; line < 3; line++)
        rest = skip_past(rest, '\n');
    size_t digits = 0;
    for (size_t i = 0; i < rest.bytes; i++) {
        const int x = hexadecimal_digit(rest.data[i]);
        if (x < 0)
            continue;
        text[digits / 2] = (uint8_t)(digits % 2 ? text[digits / 2] << 4 | x : x);
        digits++;
    }
    return digits / 2;
}

static att_status read_text(att_ctx *ctx, att_png_text text, int kind, int *orientation)
{
    const bool small = text.packed ? text.data.bytes <= MAX_TEXT / MAX_RATIO : text.data.bytes <= MAX_TEXT;
    size_t bytes = small ? text.data.bytes * (text.packed ? MAX_RATIO : 1) : MAX_TEXT;
    uint8_t *buffer = att_alloc(ctx, bytes, 1);
    if (!buffer)
        return ATT_ERR_MEMORY;
    att_status s = ATT_OK;
    if (text.packed)
        s = inflate_to(ctx, text.data, buffer, &bytes);
    else
        memcpy(buffer, text.data.data, bytes);
    if (!s && kinds[kind].hexadecimal)
        bytes = read_hexadecimal(buffer, bytes);
    if (!s)
        *orientation = kinds[kind].orientation((att_byte_view){(const char *)buffer, bytes});
    att_free(ctx, buffer);
    return s;
}

/* EXIF data in its own chunk replaces EXIF data in texts. */
att_status att_png_orientation(att_ctx *ctx, att_byte_view exif, const att_png_text texts[ATT_PNG_TEXTS],
                               int *orientation)
{
    att_status s = ATT_OK;
    *orientation = att_exif_orientation(exif);
    for (int kind = 0; kind < ATT_PNG_TEXTS && !s && *orientation == 0; kind++)
        if (texts[kind].data.bytes > 0 && !(exif.data && kinds[kind].exif))
            s = read_text(ctx, texts[kind], kind, orientation);
    *orientation = *orientation ? *orientation : 1;
    return s;
}
