/* Lines of logs: their formats, and the fields of a line. */
#ifndef ATT_RECOMMEND_LOG_FORMAT_H
#define ATT_RECOMMEND_LOG_FORMAT_H

#include "io/fields.h"

#include "attend_recommend.h"

enum { ATT_LOG_USER, ATT_LOG_ITEM, ATT_LOG_TIME, ATT_LOG_COLUMNS };

typedef struct att_log_format {
    att_interactions_format kind;
    const char *separator;           /* "\t", "::", ","; " ": spaces and tabs, any number of them */
    bool has_header;                 /* the first line has names */
    int64_t fields;                  /* of each line */
    int64_t column[ATT_LOG_COLUMNS]; /* -1: none */
    att_bytes unquoted;              /* of a line: fields whose quotes had quotes within */
} att_log_format;

/* Finds the format of a log by its first line that is not empty. Errors: fewer than two fields, or a column is missing.
 */
att_status att_log_format_find(att_log_format *f, att_ctx *ctx, const att_where *where, att_byte_view line,
                               const att_interactions_options *options);
void att_log_format_free(att_log_format *f);
const char *att_log_format_name(att_interactions_format kind);
/* Splits a line; a column that the format does not have is empty. Fields are valid until the next line. Errors: another
 * number of fields than the first line; quotes that do not end. */
att_status att_log_format_split(att_log_format *f, const att_where *where, att_byte_view line,
                                att_byte_view field[ATT_LOG_COLUMNS]);
/* The user, items being the further fields, of a line with a history. */
att_fields att_log_format_history(const att_log_format *f, att_byte_view line);
/* Reads a time. Errors: not a finite number; an integer that a double cannot hold. */
att_status att_log_format_time(const att_where *where, att_byte_view field, double *out);

#endif
