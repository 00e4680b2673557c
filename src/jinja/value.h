/* Values of a template, in an arena that is freed as a whole. A function that fails does not return: att_jinja_fail
 * jumps to the function that has begun. */
#ifndef ATT_JINJA_VALUE_H
#define ATT_JINJA_VALUE_H

#include "attend_util.h"
#include "text/tokenizer.h"

#include <setjmp.h>
#include <stdarg.h>

typedef enum att_jinja_type {
    ATT_JINJA_UNDEFINED,
    ATT_JINJA_NONE,
    ATT_JINJA_BOOL,
    ATT_JINJA_INT,
    ATT_JINJA_FLOAT,
    ATT_JINJA_STRING,
    ATT_JINJA_LIST,
    ATT_JINJA_TUPLE,
    ATT_JINJA_DICT,
    ATT_JINJA_NAMESPACE,
    ATT_JINJA_LOOP,
    ATT_JINJA_CALLABLE
} att_jinja_type;

/* A text. Its characters are from the template, except those of the ranges, which are from messages. */
typedef struct att_jinja_string {
    const char *data; /* [bytes], then a zero */
    size_t bytes;
    const att_literal *range; /* [n], ascending, not empty, not adjacent */
    size_t n;
} att_jinja_string;

typedef struct att_jinja_value att_jinja_value;
typedef struct att_jinja_list att_jinja_list;
typedef struct att_jinja_dict att_jinja_dict;
typedef struct att_jinja_loop att_jinja_loop;
typedef struct att_jinja_callable att_jinja_callable;
typedef struct att_jinja_state att_jinja_state;

struct att_jinja_value {
    att_jinja_type type;
    union {
        bool truth;
        int64_t number;
        double real;
        const att_jinja_string *string; /* undefined: its name, or NULL */
        att_jinja_list *list;           /* also of a tuple */
        att_jinja_dict *dict;           /* also of a namespace */
        att_jinja_loop *loop;
        const att_jinja_callable *callable;
    };
};

struct att_jinja_list {
    att_jinja_value *item; /* [n] */
    size_t n, room;
};

struct att_jinja_dict {
    att_jinja_value *key, *value; /* [n], in the order of insertion */
    size_t n, room;
};

/* Arguments of a call: positional ones, then named ones. */
typedef struct att_jinja_arguments {
    const att_jinja_value *value;         /* [n + named] */
    const att_jinja_string *const *names; /* [named] */
    size_t n, named;
} att_jinja_arguments;

typedef att_jinja_value att_jinja_function(att_jinja_state *s, const att_jinja_value *self,
                                           const att_jinja_arguments *a);

struct att_jinja_callable {
    att_jinja_function *call;
    att_jinja_value self; /* the object of a method */
    const void *node;     /* of a macro: its node and its scope */
    void *scope;
};

/* ---- memory, limits, errors */

typedef struct att_jinja_block att_jinja_block;
typedef struct att_jinja_arena {
    att_ctx *ctx;
    att_jinja_block *last;
    size_t used, room, total; /* of the last block; of all */
} att_jinja_arena;
void att_jinja_arena_free(att_jinja_arena *a);

/* The state of parsing or of a run. */
struct att_jinja_state {
    att_ctx *ctx;
    att_jinja_arena arena;
    jmp_buf *failed;
    att_status status;
    char message[400];
    int line, depth;
    int64_t steps; /* those that are left */
    /* Applies a filter by name, for filters that take one. */
    att_jinja_value (*filter)(att_jinja_state *s, const att_jinja_string *name, att_jinja_value value,
                              const att_jinja_arguments *a);
    struct att_jinja_scope *scope;
    struct att_jinja_builder *out;
    att_jinja_value content; /* of a filter block, or of a set block */
};

enum { ATT_JINJA_MAX_DEPTH = 400 };

_Noreturn void att_jinja_fail(att_jinja_state *s, const char *format, ...) ATT_PRINTF(2, 3);
/* Fails because the template refuses what it is given, by raise_exception. */
_Noreturn void att_jinja_refuse(att_jinja_state *s, const char *message, size_t bytes);
/* Returns memory, set to zero, that lives until the arena is freed. */
void *att_jinja_alloc(att_jinja_state *s, size_t count, size_t size);
/* Grows an array of the arena from n elements, so that one more fits. Returns its address. */
void *att_jinja_grow(att_jinja_state *s, void *array, size_t n, size_t *room, size_t size);
/* Counts steps. */
void att_jinja_work(att_jinja_state *s, size_t steps);
void att_jinja_enter(att_jinja_state *s);
static inline void att_jinja_leave(att_jinja_state *s) { s->depth--; }

/* ---- making values */

static inline att_jinja_value att_jinja_undefined(void) { return (att_jinja_value){.type = ATT_JINJA_UNDEFINED}; }
static inline att_jinja_value att_jinja_none(void) { return (att_jinja_value){.type = ATT_JINJA_NONE}; }
static inline att_jinja_value att_jinja_bool(bool x) { return (att_jinja_value){ATT_JINJA_BOOL, {.truth = x}}; }
static inline att_jinja_value att_jinja_int(int64_t x) { return (att_jinja_value){ATT_JINJA_INT, {.number = x}}; }
static inline att_jinja_value att_jinja_float(double x) { return (att_jinja_value){ATT_JINJA_FLOAT, {.real = x}}; }
static inline att_jinja_value att_jinja_string_value(const att_jinja_string *x)
{
    return (att_jinja_value){ATT_JINJA_STRING, {.string = x}};
}
/* Returns a text [bytes], which is copied. message: it is from a message. */
att_jinja_value att_jinja_text(att_jinja_state *s, const char *data, size_t bytes, bool message);
att_jinja_value att_jinja_list_new(att_jinja_state *s, att_jinja_type type);
void att_jinja_push(att_jinja_state *s, att_jinja_value list, att_jinja_value item);
att_jinja_value att_jinja_dict_new(att_jinja_state *s, att_jinja_type type);
void att_jinja_put(att_jinja_state *s, att_jinja_value dict, att_jinja_value key, att_jinja_value value);
/* Puts a value with a key of the template. */
void att_jinja_put_named(att_jinja_state *s, att_jinja_value dict, const char *key, att_jinja_value value);
att_jinja_value att_jinja_function_value(att_jinja_state *s, att_jinja_function *call, att_jinja_value self);

/* ---- questions */

static inline bool att_jinja_is_list(att_jinja_value v)
{
    return v.type == ATT_JINJA_LIST || v.type == ATT_JINJA_TUPLE;
}
static inline bool att_jinja_is_number(att_jinja_value v)
{
    return v.type == ATT_JINJA_BOOL || v.type == ATT_JINJA_INT || v.type == ATT_JINJA_FLOAT;
}
bool att_jinja_truth(att_jinja_value v);
double att_jinja_real(att_jinja_value v); /* of a number */
bool att_jinja_equal(att_jinja_state *s, att_jinja_value a, att_jinja_value b);
/* Returns a number that is negative, 0 or positive; fails if they have no order. */
int att_jinja_compare(att_jinja_state *s, att_jinja_value a, att_jinja_value b);
bool att_jinja_contains(att_jinja_state *s, att_jinja_value all, att_jinja_value item);
/* Returns the value of a key, or NULL. */
const att_jinja_value *att_jinja_find(att_jinja_state *s, const att_jinja_dict *dict, att_jinja_value key);
/* Returns the items that a loop over the value visits, as a list. */
att_jinja_value att_jinja_iterate(att_jinja_state *s, att_jinja_value v);
/* Returns the number of items or characters. */
int64_t att_jinja_length(att_jinja_state *s, att_jinja_value v);
const char *att_jinja_type_name(att_jinja_type type);
bool att_jinja_same(const att_jinja_string *s, const char *text);

/* Returns an argument by position or name, or NULL. */
const att_jinja_value *att_jinja_argument(const att_jinja_arguments *a, size_t at, const char *name);
/* Returns an argument that is a text, an integer or a truth, or what stands for a missing one. */
const att_jinja_string *att_jinja_argument_text(att_jinja_state *s, const att_jinja_arguments *a, size_t at,
                                                const char *name, const char *missing);
int64_t att_jinja_argument_int(att_jinja_state *s, const att_jinja_arguments *a, size_t at, const char *name,
                               int64_t missing);
bool att_jinja_argument_truth(const att_jinja_arguments *a, size_t at, const char *name, bool missing);
/* Returns an integer; fails if the value is not one. what: for the message. */
int64_t att_jinja_integer(att_jinja_state *s, att_jinja_value v, const char *what);

#endif
