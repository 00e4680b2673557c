/* Protocol buffers: messages as tables of the fields that are wanted. Whatever else a message has is passed over. As
 * in settings.h, the first failure stays, and errors name file, place and field.
 *
 * A message is a row of fields, each a key (number and wire type, as a varint) and a value: a varint (seven bits a
 * byte, lowest first), four or eight bytes, or a length and so many bytes, which may be a message again. */
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
    ATT_PROTO_BOOL,   /* bool */
    ATT_PROTO_INT32,  /* int32_t */
    ATT_PROTO_FLOAT,  /* float */
    ATT_PROTO_BYTES,  /* att_byte_view of the file */
    ATT_PROTO_MESSAGE /* `message` is called for each */
} att_proto_kind;

typedef struct att_proto_field {
    uint32_t number;  /* 0 ends a table */
    const char *name; /* for errors: "pieces.score" */
    att_proto_kind kind;
    size_t offset; /* in what is read into */
    void (*message)(att_proto *p, att_byte_view message, void *to);
} att_proto_field;

/* Reads a message into the struct at `to`. A field that comes again replaces what came before. */
void att_proto_read(att_proto *p, att_byte_view message, const att_proto_field *fields, void *to);
/* Fails with "PATH: sentence". */
void att_proto_fail(att_proto *p, att_status status, const char *format, ...) ATT_PRINTF(3, 4);

/* ---- writing a message */

void att_proto_put_int(att_bytes *b, uint32_t number, uint64_t value);
void att_proto_put_float(att_bytes *b, uint32_t number, float value);
/* Bytes, a text or a message. */
void att_proto_put_bytes(att_bytes *b, uint32_t number, const void *data, size_t bytes);

#endif
