/* The one value of EXIF data that changes what an image shows: its orientation. */
#include "image/image.h"

#include <string.h>

enum { ORIENTATION = 274, SHORT = 3, ENTRY_BYTES = 12 };

typedef struct tiff {
    const uint8_t *data; /* [bytes] */
    size_t bytes;
    bool big_endian;
} tiff;

/* The number of n bytes at an offset; 0 where the data ends before. */
static uint32_t number(const tiff *t, size_t at, int n)
{
    uint32_t x = 0;
    if (at > t->bytes || t->bytes - at < (size_t)n)
        return 0;
    for (int i = 0; i < n; i++)
        x |= (uint32_t)t->data[at + (size_t)i] << 8 * (t->big_endian ? n - 1 - i : i);
    return x;
}

/* Some files have "Exif" and two zero bytes first. A TIFF file begins with "II" or "MM", 42, and the offset of a
 * directory: a count, then entries of a tag, a type, a count and a value. */
int att_exif_orientation(att_byte_view exif)
{
    const size_t skipped = exif.bytes >= 6 && !memcmp(exif.data, "Exif\0", 6) ? 6 : 0;
    if (exif.bytes - skipped < 8)
        return 1;
    const tiff t = {(const uint8_t *)exif.data + skipped, exif.bytes - skipped, exif.data[skipped] == 'M'};
    if (memcmp(t.data, t.big_endian ? "MM\0*" : "II*", 4) != 0)
        return 1;
    const size_t directory = number(&t, 4, 4), entries = number(&t, directory, 2);
    for (size_t i = 0; i < entries; i++) {
        const size_t at = directory + 2 + i * ENTRY_BYTES;
        const uint32_t value = number(&t, at + 8, 2);
        if (number(&t, at, 2) == ORIENTATION && number(&t, at + 2, 2) == SHORT)
            return value >= 1 && value <= 8 ? (int)value : 1;
    }
    return 1;
}
