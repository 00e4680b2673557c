/* Tables: records of fields, whose separators and quotes are those of many programs. */
#ifndef ATT_TEXT_TABLE_H
#define ATT_TEXT_TABLE_H

#include "io/string_list.h"
#include "io/line_reader.h"
#include "io/error_position.h"

#include "attend_text.h"

struct att_table {
    att_ctx *ctx;
    att_text_lines lines;
    const char *separator; /* "\t", ",", ";", "::"; " ": spaces and tabs, any number of them */
    bool quoted;           /* a field may be in quotes, in which "" is one and line ends are text (RFC 4180) */
    bool skip_spaces;      /* spaces before a field are not part of it */
    /* the current record; fields are valid until the next one */
    int64_t line;         /* where it begins, from 1 */
    int64_t last_line;    /* where it ends */
    int64_t n;            /* number of its fields; 0: the table has ended */
    att_byte_view *field; /* [n], without their quotes */
    size_t room;          /* of field */
    att_bytes unquoted;   /* fields whose quotes had quotes within */
    size_t bytes;         /* of the record in the block, with its line end; of its first line if it is damaged */
    bool damaged;         /* it has quotes inside a field that is not quoted */
    bool out_of_memory;   /* all further records fail, because some were not read completely */
    /* records that are left out */
    int64_t max_skipped, skipped, skipped_line; /* maximum; number so far; line of the first */
    att_names reason;                           /* error sentence of the first one; or none */
};

/* Begins a table, separated by tabs unless something else is set; *t = {0} may be closed, too. */
void att_table_init(att_table *t, att_ctx *ctx);
/* Checks that skip_bad_lines is not negative. */
att_status att_table_check_skip(att_ctx *ctx, int64_t skip_bad_lines);
/* Opens its file. */
att_status att_table_begin(att_table *t, const char *path);
void att_table_close(att_table *t);
void att_table_separate(att_table *t, const char *separator, bool quoted);
/* Finds the separator of CSV (see att_table_format), before the first record is read. */
att_status att_table_find_separator(att_table *t);

/* Reads the first line that is not blank, unread; 0 bytes: there is none. */
att_status att_table_first_line(att_table *t, att_byte_view *line);
/* Splits the first record that is not blank, and leaves it unread. */
att_status att_table_peek(att_table *t);
/* Calls `see` for each of the first 100 records that are not blank and that the block has, until it returns false. A
 * damaged record is the last one and has n = 0. The records stay unread. */
typedef bool att_table_see(const att_table *t, void *arg);
void att_table_sample(att_table *t, att_table_see *see, void *arg);
/* Reads the next record. */
att_status att_table_read(att_table *t);
/* Returns the current record. */
att_where att_table_where(const att_table *t);
/* Handles the error e of the current record: if it is an error of the file, and more records may be left out, leaves it
 * out and returns ATT_OK; otherwise returns e. */
att_status att_table_skip(att_table *t, att_status e);

/* Returns whether a text is blank. */
bool att_is_blank(att_byte_view text);

#endif
