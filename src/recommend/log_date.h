/* Reads dates of ISO 8601, and converts them to seconds since 1970. */
#ifndef ATT_RECOMMEND_LOG_DATE_H
#define ATT_RECOMMEND_LOG_DATE_H

#include "io/bytes.h"
#include "io/error_position.h"

/* A date as written; the day need not exist. */
typedef struct att_date {
    int64_t year, month, day, hour, minute, second;
    double fraction;                           /* of a second */
    int64_t zone_sign, zone_hour, zone_minute; /* the zone's difference to UTC; sign 1 or -1 */
} att_date;

/* Reads "1997-09-20", "1997-09-20 03:05", "1997/9/20 3:05", "1997-09-20T03:05:10.5+01:00" or "19970920T030510Z". The
 * year is first; "-", "/" or "." follow it and the month. T or a blank is between date and time of day, and a fraction
 * begins with a point or a comma. A zone is Z, UTC, GMT, +01, +0100, +01:00 or +0000 UTC, and may follow a blank;
 * without a zone the time is in UTC. Returns false for another text. */
bool att_date_parse(att_byte_view text, att_date *out);
/* Returns whether a text is such a date, and its month and day exist. */
bool att_date_is_day(att_byte_view text);
/* Computes the seconds since the beginning of 1970 in UTC by the Gregorian calendar, also for dates before its
 * introduction. A leap second counts as the next second. text: the date, for errors. Errors: there is no such month,
 * day, hour, minute, second or zone. */
att_status att_date_seconds(const att_where *where, att_byte_view text, const att_date *date, double *out);

#endif
