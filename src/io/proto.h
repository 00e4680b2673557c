/* Protocol buffers. A message is read by a table of fields; unknown fields are skipped. As in settings.h, the first
 * error stays; errors name file, offset and field.
 *
 * A message is a list of fields, each a key (field number and wire type, as a varint) and a value: a varint (seven bits
 * per byte, least significant first), four or eight bytes, or a length and that many bytes, which may be a nested
 * message. */
#ifndef ATT_IO_PROTO_H
#define ATT_IO_PROTO_H

#include "io/bytes.h"

typedef struct att_proto {
    att_ctx *ctx;
    const char *path;
    const char *start; /* of the file, for errors */
    att_status status;
} att_proto;

typedef enum att_proto_kind {
    ATT_PROTO_BOOL,    /* bool */
    ATT_PROTO_INT32,   /* int32_t */
    ATT_PROTO_FLOAT,   /* float */
    ATT_PROTO_BYTES,   /* att_byte_view into the file */
    ATT_PROTO_MESSAGE, /* read by `fields` into the same struct */
    ATT_PROTO_EACH     /* a repeated message: `message` is called for each one */
} att_proto_kind;

typedef struct att_proto_field {
    uint32_t number;  /* 0 ends a table */
    const char *name; /* for errors: "pieces.score" */
    att_proto_kind kind;
    size_t offset; /* in the destination struct */
    const struct att_proto_field *fields;
    void (*message)(att_proto *p, att_byte_view message, void *to);
} att_proto_field;

/* Reads a message into the struct at `to`. The last occurrence of a field counts. */
void att_proto_read(att_proto *p, att_byte_view message, const att_proto_field *fields, void *to);
/* Fails with "PATH: message". */
void att_proto_fail(att_proto *p, att_status status, const char *format, ...) ATT_PRINTF(3, 4);

/* ---- writing a message */

void att_proto_put_int(att_bytes *b, uint32_t number, uint64_t value);
void att_proto_put_float(att_bytes *b, uint32_t number, float value);
/* Writes a field of bytes, a string or a message. */
void att_proto_put_bytes(att_bytes *b, uint32_t number, const void *data, size_t bytes);

#endif
