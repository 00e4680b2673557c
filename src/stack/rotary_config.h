/* Rotary positions by config.json: frequencies, and how they are scaled for long contexts. */
#ifndef ATT_STACK_ROTARY_CONFIG_H
#define ATT_STACK_ROTARY_CONFIG_H

#include "io/settings.h"

enum { ATT_MAX_HEAD_DIM = 1024 };

/* base^(-2 i / dims) -> frequency [dims / 2], radians per position */
void att_rotary_frequencies(double base, int64_t dims, double *frequency);

typedef struct att_rotary_scaling {
    char type[16]; /* "default", "linear", "llama3", "factors" */
    double factor; /* of "linear"; else 1 */
} att_rotary_scaling;
/* Reads "rope_type", or "type" of older files, and the settings of that type from the object that was entered, and
 * scales frequency [n]. */
att_rotary_scaling att_rotary_scale(att_settings *s, double *frequency, int64_t n);

#endif
