/* Integer helpers used everywhere. */
#ifndef ATT_UTIL_H
#define ATT_UTIL_H

#include <stdint.h>

static inline int64_t att_min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t att_max(int64_t a, int64_t b) { return a > b ? a : b; }
/* n / size, rounded up; n >= 0, size > 0 */
static inline int64_t att_ceil_div(int64_t n, int64_t size) { return n / size + (n % size > 0); }
/* n rounded up to a multiple of size */
static inline int64_t att_round_up(int64_t n, int64_t size) { return att_ceil_div(n, size) * size; }

#endif
