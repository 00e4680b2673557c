#include "log_times.h"
#include "cli/base/command.h"
#include "cli/base/output.h"

#include <attend_recommend.h>

#include <math.h>
#include <time.h>

int cli_time_check(const char *option, const char *text)
{
    double time;
    return text && att_interactions_time(text, 1, &time, NULL) ? cli_misuse("--%s: %s", option, att_error(NULL))
                                                               : CLI_DONE;
}

int cli_time_read(const char *option, const char *text, double per_second, double *out)
{
    return att_interactions_time(text, per_second, out, NULL) ? cli_fail("--%s: %s", option, att_error(NULL))
                                                              : CLI_DONE;
}

bool cli_time_same(const char *a, const char *b)
{
    double x, y;
    bool a_date, b_date, same = false;
    if (!a || !b)
        return !a && !b;
    if (att_interactions_time(a, 1, &x, &a_date) || att_interactions_time(b, 1, &y, &b_date))
        return false;
    if (a_date == b_date)
        return x == y;
    for (double unit = 1; unit <= 1e9; unit *= 1e3)
        same = same || (a_date ? x * unit == y : x == y * unit);
    return same;
}

static const char *write_number(double x, char text[CLI_TIME_BYTES])
{
    if (x == floor(x) && fabs(x) < 1e15)
        snprintf(text, CLI_TIME_BYTES, "%.0f", x);
    else
        cli_write_number(x, text);
    return text;
}

/* Writes the date and time of day in UTC. Returns false if the year does not have four digits. */
static bool split(double seconds, struct tm *date)
{
    const time_t whole = (time_t)(fabs(seconds) < 1e12 ? seconds : 0);
    return fabs(seconds) < 1e12 && gmtime_r(&whole, date) && date->tm_year >= -1900 && date->tm_year < 8100;
}

static void write_day(const struct tm *date, char text[CLI_TIME_BYTES])
{
    snprintf(text, CLI_TIME_BYTES, "%04d-%02d-%02d", date->tm_year + 1900, date->tm_mon + 1, date->tm_mday);
}

const char *cli_time_day(double time, double per_second, char text[CLI_TIME_BYTES])
{
    struct tm date;
    if (!(per_second > 0) || !split(floor(time / per_second), &date))
        return write_number(time, text);
    write_day(&date, text);
    return text;
}

const char *cli_time_text(double time, double per_second, char text[CLI_TIME_BYTES])
{
    char day[CLI_TIME_BYTES];
    struct tm date;
    const double seconds = per_second > 0 ? floor(time / per_second) : 0, parts = time - seconds * per_second;
    if (!(per_second > 0) || parts != floor(parts) || !split(seconds, &date))
        return write_number(time, text);
    write_day(&date, day);
    const int n = snprintf(text, CLI_TIME_BYTES, "%.10s", day);
    if (parts > 0)
        snprintf(text + n, CLI_TIME_BYTES - (size_t)n, "T%02d:%02d:%02d.%0*.0fZ", date.tm_hour, date.tm_min,
                 date.tm_sec, (int)lrint(log10(per_second)), parts);
    else if (date.tm_hour || date.tm_min || date.tm_sec)
        snprintf(text + n, CLI_TIME_BYTES - (size_t)n, "T%02d:%02d:%02dZ", date.tm_hour, date.tm_min, date.tm_sec);
    return text;
}

const char *cli_time_unit(double per_second)
{
    return per_second >= 1e9   ? " in nanoseconds"
           : per_second >= 1e6 ? " in microseconds"
           : per_second > 1    ? " in milliseconds"
                               : "";
}
