/* Records of logs: their formats and columns. */
#ifndef ATT_RECOMMEND_LOG_FORMAT_H
#define ATT_RECOMMEND_LOG_FORMAT_H

#include "text/table.h"

#include "attend_recommend.h"

enum { ATT_LOG_USER, ATT_LOG_ITEM, ATT_LOG_TIME, ATT_LOG_COLUMNS };

typedef struct att_log_format {
    att_interactions_format kind;
    bool has_header;                 /* the first record has names */
    att_byte_view heading;           /* a header in a format that has none, valid until the next record; or empty */
    int64_t fields;                  /* of each record */
    int64_t column[ATT_LOG_COLUMNS]; /* -1: none */
} att_log_format;

/* Finds the format of a log by its first records, sets the separator of the table, and reads the header or heading if
 * there is one. Errors: fewer than two fields, or a column is missing. */
att_status att_log_format_find(att_log_format *f, att_table *t, const att_interactions_options *options);
const char *att_log_format_name(att_interactions_format kind);
/* The columns of the current record, which is no history; a column that the format does not have is empty. Errors:
 * another number of fields than the first record. */
att_status att_log_format_split(const att_log_format *f, const att_table *t, att_byte_view field[ATT_LOG_COLUMNS]);

#endif
