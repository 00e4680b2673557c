/* Points in time of logs, as they are typed and printed. */
#ifndef CLI_RECOMMEND_LOG_TIMES_H
#define CLI_RECOMMEND_LOG_TIMES_H

#include <stdbool.h>

/* Checks that the text of an option, or NULL, is a time; returns a code. */
int cli_time_check(const char *option, const char *text);
/* Its number in a log whose times have this unit, att_interactions_info.time_per_second; returns a code. */
int cli_time_read(const char *option, const char *text, double per_second, double *out);
/* Are both NULL, or the same point in time? A date is the same as its number in any unit. */
bool cli_time_same(const char *a, const char *b);

enum { CLI_TIME_BYTES = 48 };
/* Writes the day of a time in UTC; of times without a unit the number. Returns text. */
const char *cli_time_day(double time, double per_second, char text[CLI_TIME_BYTES]);
/* Writes the time so that it can be typed. Returns text. */
const char *cli_time_text(double time, double per_second, char text[CLI_TIME_BYTES]);
/* " in milliseconds", "" of seconds and where there is no unit */
const char *cli_time_unit(double per_second);

#endif
