/* Filters, tests and global functions by name. */
#ifndef ATT_JINJA_FILTERS_H
#define ATT_JINJA_FILTERS_H

#include "jinja/value.h"

/* A filter: makes a value of another one, self. */
typedef struct att_jinja_filter {
    const char *name;
    att_jinja_function *call;
} att_jinja_filter;

/* Lists that end with one without a name. */
extern const att_jinja_filter att_jinja_text_filters[], att_jinja_list_filters[];
/* The functions that templates call by name; self is undefined. */
extern const att_jinja_filter att_jinja_globals[];

/* Applies a test by name. */
bool att_jinja_test(att_jinja_state *s, const att_jinja_string *name, att_jinja_value v, const att_jinja_arguments *a);

#endif
