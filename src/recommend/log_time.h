/* Times of logs: numbers, and dates of ISO 8601, whatever the locale and the time zone of the process. */
#ifndef ATT_RECOMMEND_LOG_TIME_H
#define ATT_RECOMMEND_LOG_TIME_H

#include "io/bytes.h"
#include "io/error_position.h"

/* What the times of a column are; all are of one kind. */
typedef enum att_time_kind {
    ATT_TIME_ANY = 0, /* none has been read yet */
    ATT_TIME_NUMBER,
    ATT_TIME_DATE
} att_time_kind;

/* Reads a time, blanks around which do not count: a number as it is, of a date the seconds since the beginning of 1970
 * in UTC. *kind: that of the times before this one -> of this one. Errors: neither; another kind than those before; no
 * such day or time of day; a number that is not finite; an integer that a double cannot hold and that is not a time in
 * nanoseconds, which are rounded to 2^-8 of a microsecond. */
att_status att_time_read(const att_where *where, att_byte_view field, att_time_kind *kind, double *out);
/* Is it a date, or a number of the size that seconds, milli-, micro- or nanoseconds since 1970 have after 2001? */
bool att_time_is_likely(att_byte_view field);
/* Returns how many of the times' units are a second, where all times that are not far off lie in the years 1973 to
 * 2096: 1, 1e3, 1e6, 1e9; by the last one. 0: it is not such a time. */
double att_time_per_second(double last);
/* Does a time with this unit lie in these years? */
static inline bool att_time_is_usual(double time, double per_second)
{
    return time >= 1e8 * per_second && time < 4e9 * per_second;
}

#endif
