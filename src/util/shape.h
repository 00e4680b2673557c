/* Shapes: for messages, "[2, 3]", and their numbers of elements. */
#ifndef ATT_UTIL_SHAPE_H
#define ATT_UTIL_SHAPE_H

#include "attend.h"

#include <stdio.h>

typedef struct att_shape {
    char text[ATT_MAX_RANK * 22 + 3];
} att_shape;

/* Returns the text of the shape dim [rank]. */
static inline att_shape att_shape_show(int rank, const int64_t *dim)
{
    att_shape s = {"["};
    int n = 1;
    for (int i = 0; i < rank && i < ATT_MAX_RANK; i++)
        n += snprintf(s.text + n, sizeof s.text - (size_t)n, "%s%lld", i ? ", " : "", (long long)dim[i]);
    snprintf(s.text + n, sizeof s.text - (size_t)n, "]");
    return s;
}
/* Returns the number of elements. */
static inline int64_t att_elements(const att_tensor *x)
{
    int64_t n = 1;
    for (int i = 0; i < x->rank; i++)
        n *= x->dim[i];
    return n;
}
static inline att_shape att_shape_of(const att_tensor *x) { return att_shape_show(x->rank, x->dim); }

#endif
