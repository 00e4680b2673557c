/* What the first records of a log are, where the format does not state it: a heading or an action, columns or
 * histories.
 */
#ifndef ATT_RECOMMEND_LOG_HEADING_H
#define ATT_RECOMMEND_LOG_HEADING_H

#include "recommend/log_columns.h"

/* Does the first record, split, name columns of logs, in letters of either case? */
bool att_log_has_names(const att_table *t);
/* Is the first record a heading of what follows: is none of its fields a number, but the last one of the next record,
 * or, any: one of its fields? */
bool att_log_has_heading(att_table *t, bool any);
/* Have all of the first records the same number of fields, from min to max? */
bool att_log_has_fields(att_table *t, int64_t min, int64_t max);
/* Is it likely a time, or a date in any form of numbers, perhaps one that is not read? */
bool att_log_seems_time(att_byte_view field);
/* Have the first records columns of different kinds, where histories have items: the same number of fields, and one
 * column of numbers, decimal numbers or times alone, while another one has none of that kind. */
bool att_log_has_columns(att_table *t);
/* Are all of the first records actions as in lines, "user item", "user item time", "user item rating" or "user item
 * rating time": is that as good as certain? */
bool att_log_is_lines(att_table *t);

#endif
