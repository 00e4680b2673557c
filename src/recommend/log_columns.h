/* Columns of logs, by their names in a header or by their numbers. */
#ifndef ATT_RECOMMEND_LOG_COLUMNS_H
#define ATT_RECOMMEND_LOG_COLUMNS_H

#include "text/table.h"

#include "attend_recommend.h"

enum { ATT_LOG_USER, ATT_LOG_ITEM, ATT_LOG_TIME, ATT_LOG_COLUMNS };

/* Finds the columns of a header, the current record: those that the options name, in letters of either case and with or
 * without blanks, "_" and "-", if none is exactly the same, or by a number, from 1, that is not a name; and of the
 * others those with usual names. -> column, -1: none, which only the time may be. types: names have one after a colon
 * (.inter). line: the header, for errors. Errors: there is no such column, or there are two, or one would be both of
 * two. */
att_status att_log_columns_find(const att_table *t, bool types, att_byte_view line, const att_interactions_options *o,
                                int64_t column[ATT_LOG_COLUMNS]);
/* Error: one column would be two of these. */
att_status att_log_columns_check(const att_where *where, const int64_t column[ATT_LOG_COLUMNS]);
/* Are there columns of a user and of an item, perhaps more than one? A number is not evidence of it. */
bool att_log_columns_exist(const att_table *t, const att_interactions_options *o);
/* Returns the name of a column without blanks around it and, if it has one, its type. */
att_byte_view att_log_column_name(att_byte_view field, bool type);
/* Is it the usual name of a column with users, items or times? */
bool att_log_column_is_usual(att_byte_view name);
/* Is it a name in `names`, up to NULL, which are in small letters and digits alone? */
bool att_log_column_is_in(att_byte_view name, const char *const *names);
/* Do the options name one column or more, and all of these by numbers? */
bool att_log_columns_are_numbers(const att_interactions_options *o);
/* Returns the number of a column that "3" stands for, from 0; -1: s is NULL or not such a number. */
int64_t att_log_column_number(const char *name);

#endif
