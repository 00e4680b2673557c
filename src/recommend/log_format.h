/* Records of logs: their formats and columns. */
#ifndef ATT_RECOMMEND_LOG_FORMAT_H
#define ATT_RECOMMEND_LOG_FORMAT_H

#include "recommend/log_columns.h"

typedef struct att_log_format {
    att_interactions_format kind;
    bool has_header;                 /* the first record has names */
    att_byte_view heading;           /* a header in a format that has none, valid until the next record; or empty */
    int64_t fields;                  /* of each record */
    int64_t column[ATT_LOG_COLUMNS]; /* -1: none */
    int64_t time_fields;             /* the last fields, which are the time: spaces separate a date, time of day and
                                      * zone */
    bool guessed_time;               /* the column of the time was neither given nor named */
    bool wants_times;                /* it has no times, although the options do not state that */
    att_names names;                 /* of the header or heading; empty: there is none */
    const char *unused_times;        /* the name of a column that likely has some; NULL: none */
} att_log_format;

/* Finds the format of a log by its first records, sets the separator of the table, and reads the header or heading if
 * there is one. Errors: fewer than two fields, or a column is missing. */
att_status att_log_format_find(att_log_format *f, att_table *t, const att_interactions_options *options);
void att_log_format_free(att_log_format *f);
/* Returns the name of a column of the current record that likely has times, which are not used; NULL: none. */
const char *att_log_format_unused_times(const att_log_format *f, const att_table *t);
/* Returns whether the current record repeats the header or heading, as in files that were joined. */
bool att_log_format_is_heading(const att_log_format *f, const att_table *t);
const char *att_log_format_name(att_interactions_format kind);
/* Finds the columns of the current record, which is not a history. A column that the format does not have is empty.
 * Error: the number of fields is not that of the first record. */
att_status att_log_format_split(const att_log_format *f, const att_table *t, att_byte_view field[ATT_LOG_COLUMNS]);

#endif
