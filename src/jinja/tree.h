/* The tree of a template, and the tokens that it is made of. */
#ifndef ATT_JINJA_TREE_H
#define ATT_JINJA_TREE_H

#include "jinja/string.h"
#include "jinja/value.h"

/* ---- tokens */

typedef enum att_jinja_token_kind {
    ATT_JINJA_T_END,
    ATT_JINJA_T_DATA, /* text outside of tags */
    ATT_JINJA_T_PRINT,
    ATT_JINJA_T_PRINT_END,
    ATT_JINJA_T_BLOCK,
    ATT_JINJA_T_BLOCK_END,
    ATT_JINJA_T_NAME,
    ATT_JINJA_T_STRING, /* its content, unescaped */
    ATT_JINJA_T_INT,
    ATT_JINJA_T_FLOAT,
    ATT_JINJA_T_OPERATOR
} att_jinja_token_kind;

typedef struct att_jinja_token {
    att_jinja_token_kind kind;
    int line;
    const att_jinja_string *text;
} att_jinja_token;

typedef struct att_jinja_tokens {
    att_jinja_token *token; /* [n], the last one is ATT_JINJA_T_END */
    size_t n, room;
} att_jinja_tokens;

att_jinja_tokens att_jinja_scan(att_jinja_state *s, const char *text, size_t bytes);

/* ---- nodes */

typedef enum att_jinja_kind {
    ATT_JINJA_CONSTANT, /* value */
    ATT_JINJA_NAME,     /* text */
    ATT_JINJA_NEW_LIST, /* list */
    ATT_JINJA_NEW_TUPLE,
    ATT_JINJA_NEW_DICT,  /* list: keys and values in turn */
    ATT_JINJA_ATTRIBUTE, /* a.text */
    ATT_JINJA_ITEM,      /* a[b] */
    ATT_JINJA_SLICE,     /* a[list[0]:list[1]:list[2]]; NULL: left out */
    ATT_JINJA_CALL,      /* a(list), with names */
    ATT_JINJA_FILTER,    /* a|text(list), with names */
    ATT_JINJA_TEST,      /* a is text(list), with names */
    ATT_JINJA_NOT,       /* not a */
    ATT_JINJA_AND,       /* a and b */
    ATT_JINJA_OR,
    ATT_JINJA_IF_ELSE,      /* b if a else c; c NULL: undefined */
    ATT_JINJA_SIGN,         /* -a or +a: text */
    ATT_JINJA_BINARY,       /* a text b */
    ATT_JINJA_COMPARE,      /* a names[0] list[0] names[1] list[1] ... */
    ATT_JINJA_CONTENT,      /* the text of the block to which a filter applies */
    ATT_JINJA_DATA,         /* value: text outside of tags */
    ATT_JINJA_PRINT,        /* a */
    ATT_JINJA_FOR,          /* for a in b if c; body, other; flag: recursive */
    ATT_JINJA_IF,           /* a; body, other */
    ATT_JINJA_SET,          /* a = b */
    ATT_JINJA_SET_BLOCK,    /* a = body, through the filters b (or NULL) */
    ATT_JINJA_MACRO,        /* text: its name; names: parameters, list: their defaults or NULL; body */
    ATT_JINJA_CALL_BLOCK,   /* a: the call; names, list and body: of the caller */
    ATT_JINJA_FILTER_BLOCK, /* b: filters; body */
    ATT_JINJA_SCOPE,        /* list[i]: ATT_JINJA_SET; body in a scope of its own */
    ATT_JINJA_BREAK,
    ATT_JINJA_CONTINUE
} att_jinja_kind;

typedef struct att_jinja_node att_jinja_node;
typedef struct att_jinja_body {
    att_jinja_node **node; /* [n] */
    size_t n, room;
} att_jinja_body;

struct att_jinja_node {
    att_jinja_kind kind;
    int line;
    bool flag;
    int extra; /* of a macro: att_jinja_extra, which its body uses */
    const att_jinja_string *text;
    att_jinja_value value;
    att_jinja_node *a, *b, *c;
    att_jinja_body list, body, other;
    const att_jinja_string **names; /* of the last `named` of list, or of each */
    size_t named, names_room;
};

/* ---- parsing */

/* Names that a macro has only if its body uses them. */
typedef enum att_jinja_extra { ATT_JINJA_VARARGS = 1, ATT_JINJA_KWARGS = 2, ATT_JINJA_CALLER = 4 } att_jinja_extra;

typedef struct att_jinja_parser {
    att_jinja_state *s;
    att_jinja_tokens tokens;
    size_t at;
    int loops; /* that are open */
    int extra; /* those that were used */
} att_jinja_parser;

att_jinja_node *att_jinja_node_new(att_jinja_parser *p, att_jinja_kind kind);
void att_jinja_node_add(att_jinja_parser *p, att_jinja_body *to, att_jinja_node *node);
void att_jinja_name_add(att_jinja_parser *p, att_jinja_node *to, const att_jinja_string *name);
const att_jinja_token *att_jinja_token_now(const att_jinja_parser *p);
bool att_jinja_is(const att_jinja_parser *p, att_jinja_token_kind kind, const char *text); /* text or NULL: any */
bool att_jinja_skip(att_jinja_parser *p, att_jinja_token_kind kind, const char *text);
const att_jinja_string *att_jinja_expect(att_jinja_parser *p, att_jinja_token_kind kind, const char *text);

att_jinja_node *att_jinja_parse_expression(att_jinja_parser *p);
/* Parses an expression, or several with "," between them, as a tuple. conditions: "x if y" may be one. */
att_jinja_node *att_jinja_parse_tuple(att_jinja_parser *p, bool conditions);
att_jinja_node *att_jinja_parse_filters(att_jinja_parser *p, att_jinja_node *node);
/* Parses a name, names with "," between them, or a name with an attribute, to which values are assigned. */
att_jinja_node *att_jinja_parse_target(att_jinja_parser *p, bool attributes);
/* Parses statements to the end of the template. */
att_jinja_body att_jinja_parse_all(att_jinja_parser *p);

#endif
