/* Reads times of logs: numbers, and dates of ISO 8601. The locale and the time zone of the process have no effect. */
#ifndef ATT_RECOMMEND_LOG_TIME_H
#define ATT_RECOMMEND_LOG_TIME_H

#include "io/bytes.h"
#include "io/error_position.h"

/* The kind of the times of a column. All are of one kind. */
typedef enum att_time_kind {
    ATT_TIME_ANY = 0, /* none has been read yet */
    ATT_TIME_NUMBER,
    ATT_TIME_DATE
} att_time_kind;

/* Reads a time and ignores blanks around it. A number is taken as it is; a date becomes the seconds since the beginning
 * of 1970 in UTC. *kind: the kind of the earlier times, replaced by that of this one. Errors: it is neither; it is not
 * of the kind of the earlier times; there is no such day or time of day; the number is not finite; it is an integer
 * that a double cannot hold and not a time in nanoseconds. These are rounded to 2^-8 of a microsecond. */
att_status att_time_read(const att_where *where, att_byte_view field, att_time_kind *kind, double *out);
/* Reads a number, such as "-5", "2.5e3" or " 7 ", -> *out. Returns false if it is anything else. */
bool att_log_number(att_byte_view field, double *out);
/* Returns whether a field is a date, or a number of the size of seconds, milli-, micro- or nanoseconds since 1970 for a
 * time after 2001. */
bool att_time_is_likely(att_byte_view field);
/* Returns the number of units per second, 1, 1e3, 1e6 or 1e9, with which the last time is in the years 1973 to 2096, as
 * all times except outliers should be. 0: there is no such unit. */
double att_time_per_second(double last);
/* Returns whether a time in this unit is in these years. */
static inline bool att_time_is_usual(double time, double per_second)
{
    return time >= 1e8 * per_second && time < 4e9 * per_second;
}

#endif
