/* Reads the one value of EXIF data that changes what an image shows: its orientation. */
#include "image/image.h"

#include <string.h>

enum { ORIENTATION = 274, ENTRY_BYTES = 12 };

typedef struct tiff {
    const uint8_t *data; /* [bytes] */
    size_t bytes;
    bool big_endian;
} tiff;

/* Returns whether n bytes at an offset lie in the data. */
static bool has(const tiff *t, size_t at, size_t n) { return at <= t->bytes && t->bytes - at >= n; }

/* Returns the number of n bytes at an offset; 0 if the data ends earlier. */
static uint64_t number(const tiff *t, size_t at, size_t n)
{
    uint64_t x = 0;
    for (size_t i = 0; i < n && has(t, at, n); i++)
        x |= (uint64_t)t->data[at + i] << 8 * (t->big_endian ? n - 1 - i : i);
    return x;
}

/* ---- values, by their type */

/* Read a number of a type. Signed integers from 1 to 8 have the bits of unsigned ones. */
static double whole(const tiff *t, size_t at, size_t n) { return (double)number(t, at, n); }

static double ratio(const tiff *t, size_t at, size_t n)
{
    const double below = whole(t, at + n / 2, n / 2);
    return below > 0 ? whole(t, at, n / 2) / below : 0;
}

static double fraction(const tiff *t, size_t at, size_t n)
{
    const uint64_t bits = number(t, at, n);
    double x;
    float y;
    memcpy(&x, &bits, sizeof x);
    memcpy(&y, &(uint32_t){(uint32_t)bits}, sizeof y);
    return n == sizeof x ? x : (double)y;
}

/* Types by number. Most writers use 3, SHORT. Bytes and texts (1, 2 and 7) are not numbers; Pillow ignores them,
 * too. */
static const struct {
    size_t bytes;
    double (*read)(const tiff *t, size_t at, size_t n); /* NULL: not a number */
} types[] = {[1] = {1, NULL},      [2] = {1, NULL},      [3] = {2, whole},  [4] = {4, whole}, [5] = {8, ratio},
             [6] = {1, whole},     [7] = {1, NULL},      [8] = {2, whole},  [9] = {4, whole}, [10] = {8, ratio},
             [11] = {4, fraction}, [12] = {8, fraction}, [13] = {4, whole}, [16] = {8, whole}};
enum { TYPES = sizeof types / sizeof types[0] };

/* Returns the first number of the entry if it is from 1 to 8, otherwise 1. Returns 0 if the entry has no number or the
 * data ends earlier. The values are in the entry if they fit, otherwise at an offset. */
static int read_orientation(const tiff *t, size_t entry, size_t type)
{
    const uint64_t count = number(t, entry + 4, 4), n = types[type].bytes;
    const size_t at = count * n > 4 ? number(t, entry + 8, 4) : entry + 8;
    if (count == 0 || !has(t, at, count * n))
        return 0;
    const double x = types[type].read ? types[type].read(t, at, n) : 1;
    return x >= 1 && x <= 8 && x == (int)x ? (int)x : 1;
}

/* Finds the orientation. Some files have "Exif" and two zero bytes before the data, once or twice. A TIFF file begins
 * with "II" or "MM", 42, and the offset of a directory: a count, then entries that consist of a tag, a type, a count
 * and a value. */
int att_exif_orientation(att_byte_view exif)
{
    while (exif.bytes >= 6 && !memcmp(exif.data, "Exif\0", 6))
        exif = (att_byte_view){exif.data + 6, exif.bytes - 6};
    if (exif.bytes < 8)
        return 0;
    const tiff t = {(const uint8_t *)exif.data, exif.bytes, exif.data[0] == 'M'};
    if (memcmp(t.data, "II*", 4) != 0 && memcmp(t.data, "MM\0*", 4) != 0)
        return 0;
    const size_t directory = number(&t, 4, 4), entries = number(&t, directory, 2);
    for (size_t i = 0; i < entries; i++) {
        const size_t at = directory + 2 + i * ENTRY_BYTES, type = number(&t, at + 2, 2);
        if (number(&t, at, 2) == ORIENTATION && type < TYPES && types[type].bytes > 0)
            return read_orientation(&t, at, type);
    }
    return 0;
}
