/* A shape for errors: "[2, 3]". */
#ifndef ATT_IO_SHAPE_H
#define ATT_IO_SHAPE_H

#include "attend_util.h"

#include <stdio.h>

typedef struct att_shape_shown {
    char text[ATT_MAX_RANK * 22 + 3];
} att_shape_shown;

/* dim [rank] */
static inline att_shape_shown att_shape_show(int rank, const int64_t *dim)
{
    att_shape_shown s = {"["};
    int n = 1;
    for (int i = 0; i < rank && i < ATT_MAX_RANK; i++)
        n += snprintf(s.text + n, sizeof s.text - (size_t)n, "%s%lld", i ? ", " : "", (long long)dim[i]);
    snprintf(s.text + n, sizeof s.text - (size_t)n, "]");
    return s;
}

#endif
