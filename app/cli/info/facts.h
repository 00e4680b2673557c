/* Facts on the machine or a model: lines for people, or one object of JSON. */
#ifndef CLI_INFO_FACTS_H
#define CLI_INFO_FACTS_H

#include "cli/base/json.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct info_fact {
    const char *key, *title;
    int64_t number;
    const char *text; /* or NULL: the number */
} info_fact;

/* Chooses JSON instead of lines; before all others. */
void info_begin(bool json);
/* Ends the last line or the object. */
void info_end(void);
/* Returns the object that is being written; NULL: lines are. */
cli_json *info_json(void);
/* Begins a fact: a line with its title, or its key. A value or a list follows. */
void info_fact_begin(const char *key, const char *title);
void info_text(const char *value);
void info_integer(int64_t value);
void info_list_begin(void);
/* Begins an object of numbers of bytes. */
void info_object_begin(void);
/* Ends a list or an object. */
void info_list_end(void);
/* Adds a name to a list. *precedes, a bool: whether another one precedes it; becomes true. */
void info_name(void *precedes, const char *name);
/* Adds a number of bytes to an object: "title 7.4 MB". precedes as of info_name. */
void info_bytes(bool *precedes, const char *key, const char *title, int64_t bytes);
/* Prints facts [n], whose values are single ones. */
void info_facts(const info_fact *facts, int n);

#endif
