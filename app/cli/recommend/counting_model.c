#include "counting_model.h"
#include "cli/base/output.h"

#include <stdio.h>
#include <string.h>

static void add_number(char text[COUNTING_SETTINGS], const char *name, double x)
{
    char number[CLI_NUMBER_BYTES];
    const size_t n = strlen(text);
    cli_write_number(x, number);
    if (x > 0)
        snprintf(text + n, COUNTING_SETTINGS - n, ", \"%s\": %s", name, number);
}

const char *counting_settings_text(const counting_settings *s, char text[COUNTING_SETTINGS])
{
    static const char *const types[] = {[COUNTING_NEIGHBORS] = "attend-neighbors",
                                        [COUNTING_EASE] = "attend-ease",
                                        [COUNTING_POPULARITY] = "attend-popularity"};
    snprintf(text, COUNTING_SETTINGS, "{\"model_type\": \"%s\"", types[s->kind]);
    add_number(text, "neighbors", (double)s->neighbors);
    add_number(text, "l2", s->l2);
    add_number(text, "decay", s->decay);
    strcat(text, "}");
    return text;
}
