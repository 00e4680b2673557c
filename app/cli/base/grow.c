#include "grow.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

bool cli_reserve(size_t *room, size_t count, const cli_array *arrays, int n)
{
    enum { MIN = 256 };
    if (count <= *room)
        return true;
    size_t more = *room + *room / 2; /* half as much again: adding n elements one by one copies O(n) of them */
    more = more < count ? count : more;
    more = more < MIN ? MIN : more;
    for (int i = 0; i < n; i++) {
        void *array; /* by memcpy: a T * must not be accessed as a void * (C11, 6.5p7) */
        memcpy(&array, arrays[i].pointer, sizeof array);
        array = more <= PTRDIFF_MAX / arrays[i].size ? realloc(array, more * arrays[i].size) : NULL;
        if (!array)
            return false;
        memcpy(arrays[i].pointer, &array, sizeof array);
    }
    *room = more;
    return true;
}
