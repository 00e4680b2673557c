/* magic "GGUF", version, number of tensors, number of values; the values: key, type, value; the tensors: name, number
 * of dimensions, dimensions, type, offset; padding; the data. Numbers are little-endian, texts a length of 8 bytes and
 * bytes. Offsets count from the start of the data, and are multiples of the value "general.alignment" (32). */
#include "io/gguf_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/content.h"
#include "io/gguf_types.h"

/* MIN_VALUE: the length of an empty key, a type, a byte. MIN_TENSOR: the length of an empty name, the number of
 * dimensions, one dimension, a type, an offset. */
enum { MAX_COUNT = 1 << 20, MIN_VALUE = 8 + 4 + 1, MIN_TENSOR = 8 + 4 + 8 + 4 + 8 };

/* ---- reading the header */

typedef struct cursor {
    att_gguf *g;
    size_t at;
} cursor;

/* Returns the next bytes; NULL after an error. */
static const unsigned char *read_bytes(cursor *c, uint64_t bytes)
{
    att_gguf *g = c->g;
    if (!g->status && bytes > g->size - c->at)
        att_gguf_fail(g, ATT_ERR_FORMAT, "%llu bytes should follow byte %zu, but the file has %zu",
                      (unsigned long long)bytes, c->at, g->size);
    if (g->status)
        return NULL;
    const unsigned char *here = g->file + c->at;
    c->at += bytes;
    return here;
}

static uint64_t read_number(cursor *c, size_t bytes)
{
    const unsigned char *at = read_bytes(c, bytes);
    return at ? att_read_number(at, bytes) : 0;
}

static att_byte_view read_text(cursor *c)
{
    const uint64_t bytes = read_number(c, 8);
    return (att_byte_view){(const char *)read_bytes(c, bytes), bytes};
}

/* Copies a text; returns where it begins in g->texts. what: the name of one that may have no zero byte; or NULL. */
static size_t keep(cursor *c, const char *what)
{
    att_gguf *g = c->g;
    const att_byte_view text = read_text(c);
    const size_t at = g->texts.count;
    if (!g->status && what && memchr(text.data, 0, text.bytes))
        att_gguf_fail(g, ATT_ERR_FORMAT, "%s before byte %zu has a zero byte", what, c->at);
    if (g->status)
        return 0;
    att_bytes_add(&g->texts, text.data, text.bytes);
    att_bytes_add(&g->texts, "", 1);
    if (g->texts.status)
        g->status = g->texts.status;
    return at;
}

static void skip_items(cursor *c, att_gguf_value *v)
{
    v->item_type = (uint32_t)read_number(c, 4);
    const uint64_t n = read_number(c, 8);
    if (!c->g->status && (v->item_type >= ATT_GGUF_VALUE_TYPES || v->item_type == ATT_GGUF_LIST))
        att_gguf_fail(c->g, ATT_ERR_UNSUPPORTED, "a list before byte %zu has items of type %u", c->at, v->item_type);
    if (!c->g->status && n > c->g->size)
        att_gguf_fail(c->g, ATT_ERR_FORMAT, "a list before byte %zu has %llu items, but the file %zu bytes", c->at,
                      (unsigned long long)n, c->g->size);
    v->count = (int64_t)n;
    v->data = c->g->file + c->at;
    if (v->item_type != ATT_GGUF_TEXT)
        read_bytes(c, n * (uint64_t)(c->g->status ? 0 : att_gguf_value_types[v->item_type].bytes));
    for (uint64_t i = 0; v->item_type == ATT_GGUF_TEXT && !c->g->status && i < n; i++)
        read_text(c);
}

static void read_value(cursor *c, att_gguf_value *v)
{
    v->key_at = keep(c, "a key");
    const size_t begin = c->at;
    v->type = (uint32_t)read_number(c, 4);
    if (!c->g->status && v->type >= ATT_GGUF_VALUE_TYPES)
        att_gguf_fail(c->g, ATT_ERR_FORMAT, "a value before byte %zu has type %u, which the format does not know",
                      c->at, v->type);
    if (c->g->status)
        return;
    if (v->type == ATT_GGUF_TEXT)
        v->text_at = keep(c, NULL);
    else if (v->type == ATT_GGUF_LIST)
        skip_items(c, v);
    else
        v->data = read_bytes(c, (uint64_t)att_gguf_value_types[v->type].bytes);
    v->text_bytes = v->type == ATT_GGUF_TEXT && !c->g->status ? c->g->texts.count - 1 - v->text_at : 0;
    v->raw = (att_byte_view){(const char *)c->g->file + begin, c->at - begin};
}

static void read_tensor(cursor *c, att_gguf_entry *e)
{
    att_gguf *g = c->g;
    att_gguf_tensor *t = &e->t;
    e->name_at = keep(c, "a tensor's name");
    const uint64_t rank = read_number(c, 4);
    if (!g->status && (rank < 1 || rank > ATT_MAX_RANK))
        att_gguf_fail(g, ATT_ERR_UNSUPPORTED, "a tensor before byte %zu has %llu dimensions, not 1 to %d", c->at,
                      (unsigned long long)rank, ATT_MAX_RANK);
    t->rank = g->status ? 0 : (int)rank;
    t->elements = 1;
    for (int i = t->rank - 1; i >= 0; i--) {
        const uint64_t dim = read_number(c, 8);
        if (!g->status &&
            (dim < 1 || dim > INT32_MAX || __builtin_mul_overflow(t->elements, (int64_t)dim, &t->elements)))
            att_gguf_fail(g, ATT_ERR_FORMAT, "a tensor before byte %zu has impossible dimensions", c->at);
        t->dim[i] = (int64_t)dim;
    }
    t->type = (int)read_number(c, 4);
    e->offset = read_number(c, 8);
}

/* ---- checks */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const att_gguf_entry *)a)->t.name, ((const att_gguf_entry *)b)->t.name);
}

static void locate_tensor(att_gguf *g, att_gguf_entry *e, size_t begin, uint64_t alignment)
{
    att_gguf_tensor *t = &e->t;
    const uint64_t offset = e->offset;
    const att_gguf_type *type = att_gguf_type_of(t->type);
    static const char supported[] =
        "F32, F16, BF16, Q8_0, Q6_K, Q5_K, Q5_1, Q5_0, Q4_K, Q4_1, Q4_0, IQ4_NL, IQ4_XS, Q3_K "
        "and Q2_K",
                      instead[] = "; take the file of the model that is called Q8_0 or Q4_K_M, or its original folder";
    if (!type)
        att_gguf_fail(g, ATT_ERR_UNSUPPORTED, "tensor \"%.80s\" has type %u, which is not known; %s are supported%s",
                      t->name, (unsigned)t->type, supported, instead);
    else if (!type->supported)
        att_gguf_fail(g, ATT_ERR_UNSUPPORTED, "tensor \"%.80s\" has type %s, which is not supported; %s are%s", t->name,
                      type->name, supported, instead);
    if (g->status)
        return;
    const int64_t block = att_dtype_block(type->dtype), row = t->dim[t->rank - 1];
    if (row % block)
        att_gguf_fail(g, ATT_ERR_FORMAT, "tensor \"%.80s\" has rows of %lld numbers, not a multiple of the %lld of %s",
                      t->name, (long long)row, (long long)block, type->name);
    t->type_name = type->name;
    const bool overflow = __builtin_mul_overflow(t->elements / block, att_dtype_bytes(type->dtype, block), &t->bytes);
    if (offset % alignment)
        att_gguf_fail(g, ATT_ERR_FORMAT,
                      "tensor \"%.80s\" begins at byte %llu of the data, not a multiple of the %llu of "
                      "\"general.alignment\"",
                      t->name, (unsigned long long)offset, (unsigned long long)alignment);
    else if (overflow || offset > g->size - begin || (uint64_t)t->bytes > g->size - begin - offset)
        att_gguf_fail(g, ATT_ERR_FORMAT,
                      "tensor \"%.80s\" has %lld numbers of %s from byte %llu of the data on, which "
                      "has %zu bytes",
                      t->name, (long long)t->elements, type->name, (unsigned long long)offset, g->size - begin);
    else
        t->data = g->file + begin + offset;
}

static int by_data(const void *a, const void *b)
{
    const att_gguf_tensor *x = *(const att_gguf_tensor *const *)a, *y = *(const att_gguf_tensor *const *)b;
    return (x->data > y->data) - (x->data < y->data);
}

static void check_overlaps(att_gguf *g)
{
    const att_gguf_tensor **order = att_alloc(g->ctx, (size_t)g->n_tensors, sizeof *order);
    if (!order)
        g->status = ATT_ERR_MEMORY;
    for (int64_t i = 0; order && i < g->n_tensors; i++)
        order[i] = &g->tensor[i].t;
    if (order && g->n_tensors > 0)
        qsort(order, (size_t)g->n_tensors, sizeof *order, by_data);
    for (int64_t i = 1; order && i < g->n_tensors; i++)
        if ((const char *)order[i - 1]->data + order[i - 1]->bytes > (const char *)order[i]->data)
            att_gguf_fail(g, ATT_ERR_FORMAT, "tensors \"%.80s\" and \"%.80s\" overlap", order[i - 1]->name,
                          order[i]->name);
    att_free(g->ctx, order);
}

void att_gguf_sort_tensors(att_gguf *g)
{
    if (g->n_tensors > 0)
        qsort(g->tensor, (size_t)g->n_tensors, sizeof *g->tensor, by_name);
    for (int64_t i = 1; i < g->n_tensors; i++)
        if (strcmp(g->tensor[i - 1].t.name, g->tensor[i].t.name) == 0)
            att_gguf_fail(g, ATT_ERR_FORMAT, "tensor \"%.80s\" occurs twice", g->tensor[i].t.name);
}

/* Turns offsets in g->texts into pointers, because it does not grow any more. */
static void settle(att_gguf *g)
{
    for (int64_t i = 0; i < g->n_values; i++) {
        g->value[i].key = g->texts.data + g->value[i].key_at;
        g->value[i].text = g->texts.data + g->value[i].text_at;
    }
    for (int64_t i = 0; i < g->n_tensors; i++)
        g->tensor[i].t.name = g->texts.data + g->tensor[i].name_at;
}

/* ---- opening */

static int64_t read_count(cursor *c, const char *what, size_t each)
{
    const uint64_t n = read_number(c, 8);
    if (!c->g->status && (n > MAX_COUNT || n > c->g->size / each))
        att_gguf_fail(c->g, ATT_ERR_FORMAT, "%llu %s cannot be in a file of %zu bytes (the maximum is %d)",
                      (unsigned long long)n, what, c->g->size, MAX_COUNT);
    return c->g->status ? 0 : (int64_t)n;
}

static void read_version(cursor *c)
{
    enum { OLDEST = 2, NEWEST = 3, LATER = 1 << 16 };
    att_gguf *g = c->g;
    const att_content content = att_content_of(g->file, g->size);
    if (g->size < 4 || memcmp(g->file, "GGUF", 4) != 0) {
        if (*content.text)
            att_gguf_fail(g, ATT_ERR_FORMAT, "is not a GGUF file: it is %s", content.text);
        else
            att_gguf_fail(g, ATT_ERR_FORMAT, "is not a GGUF file: it does not begin with \"GGUF\"");
        return;
    }
    c->at = 4;
    const uint64_t version = read_number(c, 4);
    if (!g->status && version >= LATER && version % LATER == 0) /* version 3 in big-endian order */
        att_gguf_fail(
            g, ATT_ERR_UNSUPPORTED,
            "is for big-endian machines, which is not supported; take the usual file of the model, or convert "
            "this one with gguf-convert-endian of the Python package gguf");
    else if (!g->status && (version < OLDEST || version > NEWEST))
        att_gguf_fail(g, ATT_ERR_UNSUPPORTED, "is of version %llu of the format; 2 and 3 are supported%s",
                      (unsigned long long)version,
                      version < OLDEST ? "; take a newer file of the model, or its original folder" : "");
}

static void read_all(att_gguf *g)
{
    cursor c = {g, 0};
    read_version(&c);
    g->n_tensors = read_count(&c, "tensors", MIN_TENSOR);
    g->n_values = read_count(&c, "values", MIN_VALUE);
    g->value = att_calloc(g->ctx, (size_t)g->n_values, sizeof *g->value);
    g->tensor = att_calloc(g->ctx, (size_t)g->n_tensors, sizeof *g->tensor);
    if (!g->status && (!g->value || !g->tensor))
        g->status = ATT_ERR_MEMORY;
    for (int64_t i = 0; !g->status && i < g->n_values; i++)
        read_value(&c, &g->value[i]);
    for (int64_t i = 0; !g->status && i < g->n_tensors; i++)
        read_tensor(&c, &g->tensor[i]);
    if (g->status)
        return;
    settle(g);
    att_gguf_sort_values(g);
    att_gguf_sort_tensors(g);
    const int64_t alignment =
        att_gguf_has(g, "general.alignment") ? att_gguf_int(g, "general.alignment", 8, 1 << 20) : 32;
    if (!g->status && alignment & (alignment - 1))
        att_gguf_fail(g, ATT_ERR_FORMAT, "\"general.alignment\" is %lld, not a power of two", (long long)alignment);
    if (g->status)
        return;
    const size_t begin = (c.at + (size_t)alignment - 1) & ~((size_t)alignment - 1);
    if (g->n_tensors > 0 && begin > g->size)
        att_gguf_fail(g, ATT_ERR_FORMAT, "ends before its data, at byte %zu", g->size);
    for (int64_t i = 0; !g->status && i < g->n_tensors; i++)
        locate_tensor(g, &g->tensor[i], begin, (uint64_t)alignment);
    if (!g->status)
        check_overlaps(g);
}

static att_gguf *new_file(att_ctx *ctx, const char *label)
{
    const size_t length = strlen(label) + 1;
    att_gguf *g = att_alloc(ctx, sizeof *g + length, 1);
    if (!g)
        return NULL;
    *g = (att_gguf){.ctx = ctx, .texts.ctx = ctx, .data.ctx = ctx};
    memcpy(g->label, label, length);
    return g;
}

static att_status finish(att_gguf *g, att_gguf **out)
{
    if (!g->status)
        read_all(g);
    const att_status s = g->status;
    if (s)
        att_gguf_free(g);
    else
        *out = g;
    return s;
}

att_status att_gguf_open_file(att_ctx *ctx, const char *path, att_gguf **out)
{
    *out = NULL;
    att_gguf *g = new_file(ctx, path);
    if (!g)
        return ATT_ERR_MEMORY;
    g->status = att_file_data_open(&g->data, ctx, path);
    g->file = g->data.bytes;
    g->size = g->data.size;
    return finish(g, out);
}

att_status att_gguf_from_memory(att_ctx *ctx, const char *label, const void *data, size_t bytes, att_gguf **out)
{
    *out = NULL;
    att_gguf *g = new_file(ctx, label);
    if (!g)
        return ATT_ERR_MEMORY;
    g->file = data;
    g->size = bytes;
    return finish(g, out);
}

void att_gguf_free(att_gguf *g)
{
    if (!g)
        return;
    for (int64_t i = 0; i < g->parts; i++)
        att_gguf_free(g->part[i]);
    att_free(g->ctx, g->part);
    att_free(g->ctx, g->value);
    att_free(g->ctx, g->tensor);
    att_bytes_free(&g->texts);
    att_file_data_close(&g->data);
    att_free(g->ctx, g);
}

att_memory att_gguf_memory(const att_gguf *g, const void *p)
{
    att_memory m = att_file_data_memory(&g->data, p);
    for (int64_t i = 0; !m && i < g->parts; i++)
        m = att_file_data_memory(&g->part[i]->data, p);
    return m;
}

/* ---- tensors */

int64_t att_gguf_count(const att_gguf *g) { return g->n_tensors; }

const att_gguf_tensor *att_gguf_at(const att_gguf *g, int64_t i)
{
    return i >= 0 && i < g->n_tensors ? &g->tensor[i].t : NULL;
}

const att_gguf_tensor *att_gguf_find(const att_gguf *g, const char *name)
{
    const att_gguf_entry wanted = {.t.name = name};
    const att_gguf_entry *e =
        g->n_tensors ? bsearch(&wanted, g->tensor, (size_t)g->n_tensors, sizeof wanted, by_name) : NULL;
    return e ? &e->t : NULL;
}
