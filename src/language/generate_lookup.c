/* Prompt lookup decoding: proposes tokens, because text often repeats parts of itself. */
#include "language/text_generator.h"

#include <string.h>

/* Returns the latest earlier position of the last `length` of ids [n]; -1: there is none. */
static int64_t find_last(const int32_t *ids, int64_t n, int64_t length)
{
    for (int64_t i = n - length - 1; i >= 0; i--)
        if (memcmp(ids + i, ids + n - length, (size_t)length * sizeof *ids) == 0)
            return i;
    return -1;
}

int64_t att_lookup(const int32_t *ids, int64_t n, int64_t max, int32_t *out)
{
    for (int64_t length = 3; max > 0 && length >= 2; length--) {
        const int64_t at = find_last(ids, n, length);
        if (at < 0)
            continue;
        const int64_t count = out == ids + n ? max : max < n - at - length ? max : n - at - length;
        for (int64_t i = 0; i < count; i++) /* in ascending order, because out may be ids + n */
            out[i] = ids[at + length + i];
        return count;
    }
    return 0;
}
