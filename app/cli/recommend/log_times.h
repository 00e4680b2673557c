/* Reads and prints points in time of logs. */
#ifndef CLI_RECOMMEND_LOG_TIMES_H
#define CLI_RECOMMEND_LOG_TIMES_H

#include <stdbool.h>

/* Checks that the text of an option, or NULL, is a time; returns a code. */
int cli_time_check(const char *option, const char *text);
/* Reads a time as a number in the unit of a log, att_interactions_info.time_per_second. Returns a code. */
int cli_time_read(const char *option, const char *text, double per_second, double *out);
/* Returns whether both are NULL, or the same point in time. A date is equal to its number in any unit. */
bool cli_time_same(const char *a, const char *b);

enum { CLI_TIME_BYTES = 48 };
/* Writes the day of a time in UTC; of times without a unit the number. Returns text. */
const char *cli_time_day(double time, double per_second, char text[CLI_TIME_BYTES]);
/* Writes the time so that it can be typed. Returns text. */
const char *cli_time_text(double time, double per_second, char text[CLI_TIME_BYTES]);
/* Returns the unit, such as " in milliseconds"; "" for seconds, or if there is no unit. */
const char *cli_time_unit(double per_second);

#endif
