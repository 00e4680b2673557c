/* Models that count the actions of a log: their settings, and how they are made. */
#ifndef CLI_RECOMMEND_COUNTING_MODEL_H
#define CLI_RECOMMEND_COUNTING_MODEL_H

#include "cli/base/command.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum counting_kind { COUNTING_NEIGHBORS, COUNTING_EASE, COUNTING_POPULARITY } counting_kind;

typedef struct counting_settings {
    counting_kind kind;
    int64_t neighbors; /* 0, like the following: the default */
    double decay, l2;
} counting_settings;

/* Returns the word of --arch. */
const char *counting_name(counting_kind kind);
/* Refuses options that are typed (typed[i]: options[i]), but are of a training or of another kind. */
int counting_check(counting_kind kind, const cli_option *options, const bool *typed);

/* Returns the settings as att_recommender_fit has them, written to text. */
enum { COUNTING_SETTINGS = 160 };
const char *counting_settings_text(const counting_settings *s, char text[COUNTING_SETTINGS]);

#endif
