/* A .gguf file in memory, which gguf.c reads and checks, and gguf_values.c searches. */
#ifndef ATT_IO_GGUF_FILE_H
#define ATT_IO_GGUF_FILE_H

#include "io/gguf.h"

/* Types of values by number; texts and lists state their sizes. */
enum { ATT_GGUF_BOOL = 7, ATT_GGUF_TEXT = 8, ATT_GGUF_LIST = 9, ATT_GGUF_VALUE_TYPES = 13 };
typedef struct att_gguf_value_type {
    const char *name;
    int bytes;
    bool is_signed, is_float;
} att_gguf_value_type;
extern const att_gguf_value_type att_gguf_value_types[ATT_GGUF_VALUE_TYPES];

typedef struct att_gguf_value {
    size_t key_at, text_at; /* in att_gguf.texts, while that grows */
    const char *key;        /* zero-terminated */
    const char *text;       /* of a text, [text_bytes], zero-terminated; it may have zero bytes */
    size_t text_bytes;
    uint32_t type, item_type;
    int64_t count;             /* of a list */
    const unsigned char *data; /* of a number, or the items of a list */
    att_byte_view raw;         /* the type and the value */
} att_gguf_value;

typedef struct att_gguf_entry {
    att_gguf_tensor t;
    size_t name_at; /* in att_gguf.texts */
    uint64_t offset;
} att_gguf_entry;

struct att_gguf {
    att_ctx *ctx;
    att_status status;
    const unsigned char *file; /* [size]: in `data`, or the caller's */
    size_t size;
    att_file_data data;
    att_gguf_value *value;  /* [n_values], sorted by key */
    att_gguf_entry *tensor; /* [n_tensors], sorted by name */
    int64_t n_values, n_tensors;
    att_gguf **part; /* [parts]: the other files of a model, whose tensors are among those of the first one */
    int64_t parts;
    att_bytes texts; /* keys, names and texts, each followed by a zero byte */
    char label[];    /* the path, for errors */
};

/* Opens one file as att_gguf_open does, even if it is one part of a model. */
att_status att_gguf_open_file(att_ctx *ctx, const char *path, att_gguf **out);
/* Sorts the tensors by name; an error if a name occurs twice. */
void att_gguf_sort_tensors(att_gguf *g);

/* Sorts the values by key after they are read; an error if a key occurs twice. */
void att_gguf_sort_values(att_gguf *g);

#endif
