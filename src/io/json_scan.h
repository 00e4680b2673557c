/* Finds the parts of a JSON text that is too large to be parsed at once. It checks no more than it must: parsing the
 * parts finds the other errors. */
#ifndef ATT_IO_JSON_SCAN_H
#define ATT_IO_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct att_json_scan {
    char *at, *end; /* *end is a zero byte */
} att_json_scan;

void att_json_skip_space(att_json_scan *c);
/* Skips white space; consumes this character if it follows. */
bool att_json_accept(att_json_scan *c, char what);
/* Skips a value of any type; false: the text ends in it. */
bool att_json_skip_value(att_json_scan *c);
/* Reads a number as the crate serde_json does, which `tokenizers` uses: its first digits, as many as fit 64 bits, times
 * or divided by one power of ten, so that it is rounded twice. False: it is not a number, or is not finite.
 */
bool att_json_number(att_json_scan *c, double *x);
/* Skips to the value of a key, from inside an object; false: there is no such key. */
bool att_json_find_key(att_json_scan *c, const char *key);

#endif
