/* Fields of a line, between separators. */
#ifndef ATT_IO_FIELDS_H
#define ATT_IO_FIELDS_H

#include "io/bytes.h"
#include "io/where.h"

/* The fields of a line, one after the other. */
typedef struct att_fields {
    const char *at, *end;  /* what is left; at NULL: nothing */
    const char *separator; /* "\t", "::", ","; " ": spaces and tabs, any number of them */
    bool quoted;           /* a field may be in quotes, in which "" is one (RFC 4180) */
} att_fields;

/* The next field, without its quotes; false: there is none, or it is in quotes that do not end. */
bool att_fields_next(att_fields *f, att_byte_view *field);

/* After the last field: are there characters left, which are no field? */
bool att_fields_damaged(const att_fields *f);
/* Fails: the fields of the line are damaged. */
att_status att_fields_refuse(const att_where *where);
/* A field of quotes with each "" replaced by ", in `to`, which has room for it. */
att_byte_view att_fields_unquote(att_bytes *to, att_byte_view field);

#endif
