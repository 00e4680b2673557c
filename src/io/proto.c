#include "io/proto.h"
#include "io/error_position.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { VARINT = 0, FIXED64 = 1, LENGTH = 2, FIXED32 = 5 }; /* wire types */

static const unsigned char wire_of[] = {
    [ATT_PROTO_BOOL] = VARINT,  [ATT_PROTO_INT32] = VARINT,   [ATT_PROTO_FLOAT] = FIXED32,
    [ATT_PROTO_BYTES] = LENGTH, [ATT_PROTO_MESSAGE] = LENGTH, [ATT_PROTO_EACH] = LENGTH,
};

void att_proto_fail(att_proto *p, att_status status, const char *format, ...)
{
    va_list args;
    if (p->status)
        return;
    va_start(args, format);
    p->status = att_fail_in(p->ctx, p->path, status, format, args);
    va_end(args);
}

/* ---- reading */

typedef struct cursor {
    att_proto *p;
    const char *at, *end;
    const char *name; /* of the current field, for errors */
} cursor;

static void bad(cursor *c, const char *what)
{
    att_proto_fail(c->p, ATT_ERR_FORMAT, "byte %zu: \"%s\" %s", (size_t)(c->at - c->p->start), c->name, what);
}

static uint64_t read_varint(cursor *c)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (c->at == c->end) {
            bad(c, "ends within a number");
            return 0;
        }
        const unsigned char byte = (unsigned char)*c->at++;
        value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80)
            return value;
    }
    bad(c, "has a number of more than 64 bits");
    return 0;
}

static att_byte_view read_bytes(cursor *c, uint64_t bytes)
{
    const size_t left = (size_t)(c->end - c->at);
    if (c->p->status)
        return (att_byte_view){0};
    if (bytes > left) {
        att_proto_fail(c->p, ATT_ERR_FORMAT, "byte %zu: \"%s\" has %llu bytes, but only %zu are left",
                       (size_t)(c->at - c->p->start), c->name, (unsigned long long)bytes, left);
        return (att_byte_view){0};
    }
    c->at += bytes;
    return (att_byte_view){c->at - bytes, (size_t)bytes};
}

static float float_of(att_byte_view four)
{
    const uint32_t bits = (uint32_t)att_read_number(four.data, four.bytes);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Reads the value of a field: a number, or bytes. */
static att_byte_view read_value(cursor *c, unsigned wire, uint64_t *number)
{
    *number = 0;
    if (wire == VARINT)
        *number = read_varint(c);
    else if (wire == LENGTH)
        return read_bytes(c, read_varint(c));
    else if (wire == FIXED32 || wire == FIXED64)
        return read_bytes(c, wire == FIXED32 ? 4 : 8);
    else
        att_proto_fail(c->p, ATT_ERR_FORMAT, "byte %zu: \"%s\" has wire type %u, which does not exist",
                       (size_t)(c->at - c->p->start), c->name, wire);
    return (att_byte_view){0};
}

static void store(att_proto *p, const att_proto_field *f, att_byte_view bytes, uint64_t number, char *to)
{
    char *at = to + f->offset;
    if (f->kind == ATT_PROTO_BOOL)
        *(bool *)at = number != 0;
    else if (f->kind == ATT_PROTO_INT32)
        *(int32_t *)at = (int32_t)(uint32_t)number;
    else if (f->kind == ATT_PROTO_FLOAT)
        *(float *)at = float_of(bytes);
    else if (f->kind == ATT_PROTO_BYTES)
        *(att_byte_view *)at = bytes;
    else if (f->kind == ATT_PROTO_MESSAGE)
        att_proto_read(p, bytes, f->fields, to);
    else
        f->message(p, bytes, to);
}

void att_proto_read(att_proto *p, att_byte_view message, const att_proto_field *fields, void *to)
{
    cursor c = {p, message.data, message.data + message.bytes, "a field"};
    while (!p->status && c.at < c.end) {
        c.name = "a field";
        const uint64_t key = read_varint(&c);
        const att_proto_field *f = fields;
        while (f->number && f->number != key >> 3)
            f++;
        if (f->number)
            c.name = f->name;
        const unsigned wire = key & 7;
        if (f->number && wire != wire_of[f->kind])
            att_proto_fail(p, ATT_ERR_FORMAT, "byte %zu: \"%s\" has wire type %u, not %u", (size_t)(c.at - p->start),
                           f->name, wire, wire_of[f->kind]);
        uint64_t number;
        const att_byte_view bytes = read_value(&c, wire, &number);
        if (!p->status && f->number)
            store(p, f, bytes, number, to);
    }
}

/* ---- writing */

static void put_varint(att_bytes *b, uint64_t value)
{
    unsigned char bytes[10];
    size_t n = 0;
    for (; value >= 0x80; value >>= 7)
        bytes[n++] = (unsigned char)(value | 0x80);
    bytes[n++] = (unsigned char)value;
    att_bytes_add(b, bytes, n);
}

void att_proto_put_int(att_bytes *b, uint32_t number, uint64_t value)
{
    put_varint(b, (uint64_t)number << 3 | VARINT);
    put_varint(b, value);
}

void att_proto_put_float(att_bytes *b, uint32_t number, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_varint(b, (uint64_t)number << 3 | FIXED32);
    att_bytes_add_number(b, bits, sizeof bits);
}

void att_proto_put_bytes(att_bytes *b, uint32_t number, const void *data, size_t bytes)
{
    put_varint(b, (uint64_t)number << 3 | LENGTH);
    put_varint(b, bytes);
    att_bytes_add(b, data, bytes);
}
