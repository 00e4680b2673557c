/* Reads XMP packets: XML texts in image files, which may state the orientation if EXIF data does not. */
#include "image/image.h"

#include <string.h>

static const char *skip_spaces(const char *at, const char *end)
{
    while (at < end && strchr(" \t\r\n", *at) && *at)
        at++;
    return at;
}

/* Returns the number that follows the name at `at`: ="6", ='6' or >6, with or without spaces. -1: there is none. */
static int read_value(const char *at, const char *end)
{
    enum { TOO_LARGE = 99 };
    at = skip_spaces(at, end);
    const bool attribute = at < end && *at == '=';
    if (attribute)
        at = skip_spaces(at + 1, end);
    if (at == end || !(attribute ? *at == '"' || *at == '\'' : *at == '>'))
        return -1;
    at = skip_spaces(at + 1, end);
    int x = -1;
    for (; at < end && *at >= '0' && *at <= '9' && x <= TOO_LARGE; at++)
        x = 10 * (x < 0 ? 0 : x) + *at - '0';
    return x;
}

/* The first name with a number counts, because an element has its name twice. Like Pillow, this function does not parse
 * XML; therefore it also reads packets that are damaged or cut off elsewhere. Unlike Pillow, it knows the single quotes
 * and spaces that XML allows. */
int att_xmp_orientation(att_byte_view xmp)
{
    static const char name[] = "tiff:Orientation";
    if (xmp.bytes == 0)
        return 0;
    const char *const end = xmp.data + xmp.bytes;
    for (const char *at = xmp.data; (at = memmem(at, (size_t)(end - at), name, sizeof name - 1));) {
        at += sizeof name - 1;
        const int x = read_value(at, end);
        if (x >= 0)
            return x >= 1 && x <= 8 ? x : 1;
    }
    return 0;
}

int att_image_orientation(att_byte_view exif, att_byte_view xmp)
{
    const int x = att_exif_orientation(exif), y = x ? x : att_xmp_orientation(xmp);
    return y ? y : 1;
}
