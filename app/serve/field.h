/* The fields of requests, as tables: reading JSON by them, and describing them for /openapi.json. */
#ifndef SERVE_FIELD_H
#define SERVE_FIELD_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum serve_type {
    SERVE_TEXT = 1,  /* serve_text */
    SERVE_TEXTS,     /* serve_texts: a string or a list of strings */
    SERVE_DOCUMENTS, /* serve_texts: a list of strings, or of objects with a string "text" */
    SERVE_INPUT,     /* serve_texts, or the ids of tokens: a list of integers or of such lists */
    SERVE_BOOL,      /* bool */
    SERVE_INTEGER,   /* int64_t */
    SERVE_NUMBER,    /* double */
    SERVE_CHOICE,    /* int: the index of the word in `words` */
    SERVE_JSON,      /* const json_t *: any value, which the route reads */
    SERVE_IGNORED,   /* is accepted and changes nothing; help has the reason */
    SERVE_REFUSED /* is refused if it is given; help has the reason. A value that equals `words`, as JSON, is accepted
                   */
} serve_type;

/* Strings of the request, valid as long as it; text NULL: not given. */
typedef struct serve_text {
    const char *text; /* [bytes], followed by a zero byte */
    size_t bytes;
} serve_text;

typedef struct serve_texts {
    int64_t n;
    const char **text; /* [n]; NULL: not given, or ids are given */
    size_t *bytes;     /* [n] */
    int32_t *ids;      /* [offsets[n]]; NULL: texts are given */
    int64_t *offsets;  /* [n + 1] */
    bool single;       /* one string, or one list of ids, that is not in a list */
} serve_texts;

/* A field of a request's JSON object, which is stored at `offset` of the route's struct. null is as if it were left
 * out: then the value is `usual`, or 0. */
typedef struct serve_field {
    const char *name; /* NULL ends a table */
    serve_type type;
    size_t offset;
    double min, max;   /* of an integer, a number, and the number of texts */
    const char *words; /* of a choice; the accepted value of a refused field; the shape (schema.h) of a JSON value */
    double usual;
    bool required;
    bool empty;                      /* a list of texts may be empty */
    const struct serve_field *table; /* of the fields of a JSON value that is an object; or NULL */
    const char *help;                /* one sentence without a full stop */
} serve_field;

typedef struct serve_field_error {
    const char *field; /* NULL: of none */
    char name[64];     /* of an unknown one */
    char message[512];
} serve_field_error;

/* Reads an object into a struct of zeros, `to`. max_texts: of each list. Returns false after an error. Texts must be
 * freed by serve_fields_free, also then. */
bool serve_fields_read(const serve_field *fields, const json_t *object, int64_t max_texts, void *to,
                       serve_field_error *error);
void serve_fields_free(const serve_field *fields, void *to);

#endif
