/* Columns of logs, by their names in a header or by their numbers. */
#ifndef ATT_RECOMMEND_LOG_COLUMNS_H
#define ATT_RECOMMEND_LOG_COLUMNS_H

#include "text/table.h"

#include "attend_recommend.h"

enum { ATT_LOG_USER, ATT_LOG_ITEM, ATT_LOG_TIME, ATT_LOG_EVENT, ATT_LOG_RATING, ATT_LOG_COLUMNS };

/* Finds the columns of a header, which is the current record: those that the options name, and for the rest those with
 * usual names. An option is the exact name, or the name in letters of either case and with or without blanks, "_" and
 * "-", or a number from 1 if no column has this name. column: the results; only the time, and what the options do not
 * filter by, may be missing (-1). types: names have a type after a colon (.inter). line: the header, for errors.
 * Errors: there is no such column, there are two, or one column has two roles. */
att_status att_log_columns_find(const att_table *t, bool types, att_byte_view line, const att_interactions_options *o,
                                int64_t column[ATT_LOG_COLUMNS]);
/* Returns the name or number that the options have for each column; or NULL. */
void att_log_columns_given(const att_interactions_options *o, const char *given[ATT_LOG_COLUMNS]);
/* Returns whether the options filter by this column, one of events or ratings. */
bool att_log_filters_by(const att_interactions_options *o, int column);
/* Checks that no column has two roles. */
att_status att_log_columns_check(const att_where *where, const int64_t column[ATT_LOG_COLUMNS]);
/* Returns whether there are one or more columns for the user and for the item. A column that an option states by its
 * number does not count. */
bool att_log_columns_exist(const att_table *t, const att_interactions_options *o);
/* Returns the name of a column, without blanks around it and without its type if it has one. */
att_byte_view att_log_column_name(att_byte_view field, bool type);
/* Returns whether a name is a usual one of a column. */
bool att_log_column_is_usual(att_byte_view name);
/* Returns whether a name is one of `names`, which end with NULL and have only small letters and digits. */
bool att_log_column_is_in(att_byte_view name, const char *const *names);
/* Returns whether the options name one column or more, all by numbers. */
bool att_log_columns_are_numbers(const att_interactions_options *o);
/* Returns the index, from 0, of the column that a text such as "3" names; -1: name is NULL or not such a number. */
int64_t att_log_column_number(const char *name);

#endif
