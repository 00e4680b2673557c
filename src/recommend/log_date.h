/* Dates of ISO 8601 and the time since 1970. */
#ifndef ATT_RECOMMEND_LOG_DATE_H
#define ATT_RECOMMEND_LOG_DATE_H

#include "io/bytes.h"
#include "io/error_position.h"

/* A date as it is written, whether or not there is such a day. */
typedef struct att_date {
    int64_t year, month, day, hour, minute, second;
    double fraction;                           /* of a second */
    int64_t zone_sign, zone_hour, zone_minute; /* of the zone's difference to UTC; sign 1 or -1 */
} att_date;

/* Reads "1997-09-20", "1997-09-20 03:05", "1997/9/20 3:05", "1997-09-20T03:05:10.5+01:00" or "19970920T030510Z": the
 * year is first, with "-", "/" or "." after it and the month, date and time of day are divided by T or a blank, a
 * fraction begins with a point or a comma, and a zone is Z, UTC, GMT, +01, +0100, +01:00 or +0000 UTC, which may follow
 * a blank; without one the time is in UTC. false: another text. */
bool att_date_parse(att_byte_view text, att_date *out);
/* Is it such a text, and are there such a month and day? */
bool att_date_is_day(att_byte_view text);
/* Seconds since the beginning of 1970 in UTC, by the Gregorian calendar, also before it was introduced; a leap second
 * is the next second. text: the date, for errors. Errors: there is no such month, day, hour, minute, second or zone. */
att_status att_date_seconds(const att_where *where, att_byte_view text, const att_date *date, double *out);

#endif
