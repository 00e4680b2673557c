#include "counting_model.h"
#include "cli/base/output.h"

#include <stdio.h>
#include <string.h>

const char *counting_name(counting_kind kind)
{
    static const char *const names[] = {
        [COUNTING_NEIGHBORS] = "neighbors", [COUNTING_EASE] = "ease", [COUNTING_POPULARITY] = "popularity"};
    return names[kind];
}

int counting_check(counting_kind kind, const cli_option *options, const bool *typed)
{
    static const char *const used[] = {"data",
                                       "format",
                                       "user-column",
                                       "item-column",
                                       "time-column",
                                       "drop-duplicates",
                                       "skip-bad-lines",
                                       "event",
                                       "event-column",
                                       "min-rating",
                                       "rating-column",
                                       "min-count",
                                       "split",
                                       "min-actions",
                                       "held-out-users",
                                       "valid-share",
                                       "test-share",
                                       "valid-from",
                                       "test-from",
                                       "output",
                                       "resume",
                                       "arch",
                                       "exclude-seen",
                                       "validate-candidates",
                                       "seed",
                                       "dtype",
                                       "json",
                                       "threads",
                                       NULL};
    static const struct {
        const char *name;
        counting_kind kind, other; /* that have it */
    } own[] = {{"neighbors", COUNTING_NEIGHBORS, COUNTING_NEIGHBORS},
               {"l2", COUNTING_EASE, COUNTING_EASE},
               {"history-decay", COUNTING_NEIGHBORS, COUNTING_EASE}};
    for (int i = 0; options[i].name; i++) {
        bool fits = !typed[i];
        for (int k = 0; !fits && used[k]; k++)
            fits = !strcmp(options[i].name, used[k]);
        for (size_t k = 0; !fits && k < sizeof own / sizeof *own; k++)
            fits = !strcmp(options[i].name, own[k].name) && (kind == own[k].kind || kind == own[k].other);
        if (!fits)
            return cli_misuse("--%s does not go with --arch %s, which counts the actions once and is not trained%s",
                              options[i].name, counting_name(kind),
                              strcmp(options[i].name, "refit") ? "" : "; --split none counts all of them");
    }
    return CLI_DONE;
}

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
