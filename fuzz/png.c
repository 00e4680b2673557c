/* The input is a PNG file, or what libpng makes of it. Its checksums are made right first, so that changes within
 * chunks are read. */
#include "fuzz_image.h"

#include <zlib.h>

static uint32_t read_word(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* A file is 8 bytes, then chunks of a size, a name, data and the CRC-32 of name and data. */
static void set_checksums(unsigned char *data, size_t size)
{
    for (size_t at = 8; at + 12 <= size;) {
        const size_t bytes = read_word(data + at);
        if (bytes > size - at - 12)
            return;
        const uLong sum = crc32(0, data + at + 4, (uInt)bytes + 4);
        for (int i = 0; i < 4; i++)
            data[at + 8 + bytes + (size_t)i] = (unsigned char)(sum >> (24 - 8 * i));
        at += 12 + bytes;
    }
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    unsigned char *copy = malloc(size + !size);
    if (!copy)
        abort();
    if (size > 0)
        memcpy(copy, data, size);
    set_checksums(copy, size);
    fuzz_image(copy, size);
    free(copy);
    return 0;
}
