/* Reads numbers whatever the locale of the program is. */
#include "jinja/string.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

double att_jinja_read_float(char *text, char **end)
{
    char one[16], *const dot = strchr(text, '.');
    snprintf(one, sizeof one, "%.1f", 1.5); /* the locale's decimal point is its second character */
    if (dot)
        *dot = one[1];
    return strtod(text, end);
}
