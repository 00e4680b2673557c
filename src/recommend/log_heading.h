/* Finds what the first records of a log are, if the format does not state it: a heading or an action, columns or
 * histories.
 */
#ifndef ATT_RECOMMEND_LOG_HEADING_H
#define ATT_RECOMMEND_LOG_HEADING_H

#include "recommend/log_columns.h"

/* Returns whether the first record, which is split, has names of columns of logs, in letters of either case. */
bool att_log_has_names(const att_table *t);
/* Returns whether the first record is a heading: none of its fields is a number, but the last field of the next record
 * is one. any: any field of the next record may be the number. */
bool att_log_has_heading(att_table *t, bool any);
/* Returns whether all of the first records have the same number of fields, from min to max. */
bool att_log_has_fields(att_table *t, int64_t min, int64_t max);
/* Returns whether a field is likely a time, or a date in any form of numbers, including forms that attend does not
 * read. */
bool att_log_seems_time(att_byte_view field);
/* Returns whether the first records have columns of different kinds, unlike histories, which have only items. They do
 * if all have the same number of fields, and one column has only integers, decimal numbers or times while another
 * column has none of that kind. */
bool att_log_has_columns(att_table *t);
/* Returns whether it is practically certain that all of the first records are lines of actions: "user item", "user item
 * time", "user item rating" or "user item rating time". */
bool att_log_is_lines(att_table *t);

#endif
