/* Parses expressions: the grammar and the precedences of Jinja. */
#include "jinja/tree.h"

#include <stdlib.h>
#include <string.h>

static const att_jinja_token_kind OPERATOR = ATT_JINJA_T_OPERATOR, NAME = ATT_JINJA_T_NAME;

static att_jinja_node *parse_unary(att_jinja_parser *p, bool filters);

/* ---- tokens and nodes */

att_jinja_node *att_jinja_node_new(att_jinja_parser *p, att_jinja_kind kind)
{
    att_jinja_node *n = att_jinja_alloc(p->s, 1, sizeof *n);
    n->kind = kind;
    n->line = att_jinja_token_now(p)->line;
    return n;
}

void att_jinja_node_add(att_jinja_parser *p, att_jinja_body *to, att_jinja_node *node)
{
    to->node = att_jinja_grow(p->s, to->node, to->n, &to->room, sizeof *to->node);
    to->node[to->n++] = node;
}

void att_jinja_name_add(att_jinja_parser *p, att_jinja_node *to, const att_jinja_string *name)
{
    to->names = att_jinja_grow(p->s, to->names, to->named, &to->names_room, sizeof *to->names);
    to->names[to->named++] = name;
}

const att_jinja_token *att_jinja_token_now(const att_jinja_parser *p)
{
    const att_jinja_token *t = &p->tokens.token[p->at];
    p->s->line = t->line;
    return t;
}

bool att_jinja_is(const att_jinja_parser *p, att_jinja_token_kind kind, const char *text)
{
    const att_jinja_token *t = att_jinja_token_now(p);
    return t->kind == kind && (!text || att_jinja_same(t->text, text));
}

bool att_jinja_skip(att_jinja_parser *p, att_jinja_token_kind kind, const char *text)
{
    const bool is = att_jinja_is(p, kind, text);
    p->at += is;
    return is;
}

const att_jinja_string *att_jinja_expect(att_jinja_parser *p, att_jinja_token_kind kind, const char *text)
{
    static const char *const names[] = {"the end", "text",     "{{",         "}}",      "{%",         "%}",
                                        "a name",  "a string", "an integer", "a float", "an operator"};
    const att_jinja_token *t = att_jinja_token_now(p);
    if (t->kind != kind || (text && !att_jinja_same(t->text, text)))
        att_jinja_fail(p->s, "expected %s, but there is %s%s%.*s", text ? text : names[kind], names[t->kind],
                       t->text->bytes ? " " : "", (int)(t->text->bytes < 40 ? t->text->bytes : 40), t->text->data);
    p->at++;
    return t->text;
}

static att_jinja_node *constant(att_jinja_parser *p, att_jinja_value value)
{
    att_jinja_node *n = att_jinja_node_new(p, ATT_JINJA_CONSTANT);
    n->value = value;
    return n;
}

static att_jinja_node *two(att_jinja_parser *p, att_jinja_kind kind, att_jinja_node *a, att_jinja_node *b)
{
    att_jinja_node *n = att_jinja_node_new(p, kind);
    n->a = a;
    n->b = b;
    return n;
}

/* ---- arguments, subscripts, filters, tests */

static void parse_arguments(att_jinja_parser *p, att_jinja_node *to)
{
    while (!att_jinja_skip(p, OPERATOR, ")")) {
        if (to->list.n > 0) {
            att_jinja_expect(p, OPERATOR, ",");
            if (att_jinja_skip(p, OPERATOR, ")"))
                break;
        }
        if (att_jinja_is(p, OPERATOR, "*") || att_jinja_is(p, OPERATOR, "**"))
            att_jinja_fail(p->s, "* and ** before arguments are not supported");
        const att_jinja_token *next = att_jinja_token_now(p) + 1;
        if (att_jinja_is(p, NAME, NULL) && next->kind == ATT_JINJA_T_OPERATOR && att_jinja_same(next->text, "=")) {
            att_jinja_name_add(p, to, att_jinja_expect(p, NAME, NULL));
            p->at++;
        } else if (to->named > 0) {
            att_jinja_fail(p->s, "an argument without a name stands after one with a name");
        }
        att_jinja_node_add(p, &to->list, att_jinja_parse_expression(p));
    }
}

static att_jinja_node *parse_subscript(att_jinja_parser *p, att_jinja_node *of)
{
    att_jinja_node *part[3] = {NULL};
    int n = 0;
    bool slice = false;
    while (!att_jinja_skip(p, OPERATOR, "]")) {
        if (att_jinja_skip(p, OPERATOR, ":")) {
            slice = true;
            if (++n > 2)
                att_jinja_fail(p->s, "a slice has more than three parts");
        } else if (part[n]) {
            att_jinja_expect(p, OPERATOR, "]");
        } else {
            part[n] = att_jinja_parse_expression(p);
        }
    }
    if (!slice && !part[0])
        att_jinja_fail(p->s, "expected a subscript, but there is ]");
    att_jinja_node *node = two(p, slice ? ATT_JINJA_SLICE : ATT_JINJA_ITEM, of, slice ? NULL : part[0]);
    for (int i = 0; slice && i < 3; i++)
        att_jinja_node_add(p, &node->list, part[i]);
    return node;
}

static att_jinja_node *parse_call(att_jinja_parser *p, att_jinja_node *of)
{
    att_jinja_node *call = two(p, ATT_JINJA_CALL, of, NULL);
    parse_arguments(p, call);
    return call;
}

static att_jinja_node *parse_postfix(att_jinja_parser *p, att_jinja_node *node)
{
    for (int n = 0;; n++) {
        if (n > ATT_JINJA_MAX_DEPTH)
            att_jinja_fail(p->s, "an expression has too many parts");
        if (att_jinja_skip(p, OPERATOR, ".")) {
            if (att_jinja_is(p, ATT_JINJA_T_INT, NULL)) {
                const att_jinja_string *number = att_jinja_expect(p, ATT_JINJA_T_INT, NULL);
                node = two(p, ATT_JINJA_ITEM, node, constant(p, att_jinja_int(strtol(number->data, NULL, 10))));
                continue;
            }
            node = two(p, ATT_JINJA_ATTRIBUTE, node, NULL);
            node->text = att_jinja_expect(p, NAME, NULL);
        } else if (att_jinja_skip(p, OPERATOR, "[")) {
            node = parse_subscript(p, node);
        } else if (att_jinja_skip(p, OPERATOR, "(")) {
            node = parse_call(p, node);
        } else {
            return node;
        }
    }
}

static att_jinja_node *parse_primary(att_jinja_parser *p);

static att_jinja_node *parse_test(att_jinja_parser *p, att_jinja_node *of)
{
    const bool negated = att_jinja_skip(p, NAME, "not");
    att_jinja_node *test = two(p, ATT_JINJA_TEST, of, NULL);
    test->text = att_jinja_expect(p, NAME, NULL);
    const att_jinja_token *t = att_jinja_token_now(p);
    const bool value = t->kind == ATT_JINJA_T_NAME || t->kind == ATT_JINJA_T_STRING || t->kind == ATT_JINJA_T_INT ||
                       t->kind == ATT_JINJA_T_FLOAT || att_jinja_is(p, OPERATOR, "[") || att_jinja_is(p, OPERATOR, "{");
    const bool word = att_jinja_is(p, NAME, "else") || att_jinja_is(p, NAME, "or") || att_jinja_is(p, NAME, "and");
    if (att_jinja_skip(p, OPERATOR, "(")) {
        parse_arguments(p, test);
    } else if (value && !word) {
        if (att_jinja_is(p, NAME, "is"))
            att_jinja_fail(p->s, "tests cannot be chained by \"is\"");
        att_jinja_node_add(p, &test->list, parse_postfix(p, parse_primary(p)));
    }
    return negated ? two(p, ATT_JINJA_NOT, test, NULL) : test;
}

static att_jinja_node *parse_filter(att_jinja_parser *p, att_jinja_node *of)
{
    att_jinja_node *filter = two(p, ATT_JINJA_FILTER, of, NULL);
    filter->text = att_jinja_expect(p, NAME, NULL);
    if (att_jinja_skip(p, OPERATOR, "("))
        parse_arguments(p, filter);
    return filter;
}

att_jinja_node *att_jinja_parse_filters(att_jinja_parser *p, att_jinja_node *node)
{
    for (int n = 0;; n++) {
        if (n > ATT_JINJA_MAX_DEPTH)
            att_jinja_fail(p->s, "an expression has too many parts");
        if (att_jinja_skip(p, OPERATOR, "|"))
            node = parse_filter(p, node);
        else if (att_jinja_skip(p, NAME, "is"))
            node = parse_test(p, node);
        else if (att_jinja_skip(p, OPERATOR, "("))
            node = parse_call(p, node);
        else
            return node;
    }
}

/* ---- values */

static att_jinja_node *parse_list(att_jinja_parser *p)
{
    att_jinja_node *list = att_jinja_node_new(p, ATT_JINJA_NEW_LIST);
    while (!att_jinja_skip(p, OPERATOR, "]")) {
        if (list->list.n > 0) {
            att_jinja_expect(p, OPERATOR, ",");
            if (att_jinja_skip(p, OPERATOR, "]"))
                break;
        }
        att_jinja_node_add(p, &list->list, att_jinja_parse_expression(p));
    }
    return list;
}

static att_jinja_node *parse_dict(att_jinja_parser *p)
{
    att_jinja_node *dict = att_jinja_node_new(p, ATT_JINJA_NEW_DICT);
    while (!att_jinja_skip(p, OPERATOR, "}")) {
        if (dict->list.n > 0) {
            att_jinja_expect(p, OPERATOR, ",");
            if (att_jinja_skip(p, OPERATOR, "}"))
                break;
        }
        att_jinja_node_add(p, &dict->list, att_jinja_parse_expression(p));
        att_jinja_expect(p, OPERATOR, ":");
        att_jinja_node_add(p, &dict->list, att_jinja_parse_expression(p));
    }
    return dict;
}

static att_jinja_node *parse_strings(att_jinja_parser *p)
{
    att_jinja_builder b = {.s = p->s};
    att_jinja_node *node = att_jinja_node_new(p, ATT_JINJA_CONSTANT);
    while (att_jinja_is(p, ATT_JINJA_T_STRING, NULL))
        att_jinja_add_string(&b, att_jinja_expect(p, ATT_JINJA_T_STRING, NULL));
    node->value = att_jinja_built_value(&b);
    return node;
}

static att_jinja_node *parse_number(att_jinja_parser *p)
{
    const att_jinja_token *t = att_jinja_token_now(p);
    char digits[72];
    memcpy(digits, t->text->data, t->text->bytes);
    digits[t->text->bytes] = 0;
    if (t->kind == ATT_JINJA_T_INT && strlen(digits) > 18)
        att_jinja_fail(p->s, "the integer %s is too large", digits);
    att_jinja_node *node =
        constant(p, t->kind == ATT_JINJA_T_INT ? att_jinja_int(strtoll(digits, NULL, 10))
                                               : att_jinja_float(att_jinja_read_float(digits, NULL)));
    p->at++;
    return node;
}

static att_jinja_node *parse_name(att_jinja_parser *p)
{
    static const struct {
        const char *name;
        att_jinja_value value;
    } constants[] = {{"true", {ATT_JINJA_BOOL, {.truth = true}}},
                     {"True", {ATT_JINJA_BOOL, {.truth = true}}},
                     {"false", {ATT_JINJA_BOOL, {.truth = false}}},
                     {"False", {ATT_JINJA_BOOL, {.truth = false}}},
                     {"none", {.type = ATT_JINJA_NONE}},
                     {"None", {.type = ATT_JINJA_NONE}}};
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        if (att_jinja_skip(p, NAME, constants[i].name))
            return constant(p, constants[i].value);
    att_jinja_node *node = att_jinja_node_new(p, ATT_JINJA_NAME);
    node->text = att_jinja_expect(p, NAME, NULL);
    static const char *const extra[] = {"varargs", "kwargs", "caller"};
    for (int i = 0; i < 3; i++)
        if (att_jinja_same(node->text, extra[i]))
            p->extra |= 1 << i;
    return node;
}

static att_jinja_node *parse_primary(att_jinja_parser *p)
{
    const att_jinja_token *t = att_jinja_token_now(p);
    if (t->kind == ATT_JINJA_T_STRING)
        return parse_strings(p);
    if (t->kind == ATT_JINJA_T_INT || t->kind == ATT_JINJA_T_FLOAT)
        return parse_number(p);
    if (att_jinja_skip(p, OPERATOR, "(")) {
        att_jinja_node *node = att_jinja_is(p, OPERATOR, ")") ? att_jinja_node_new(p, ATT_JINJA_NEW_TUPLE)
                                                              : att_jinja_parse_tuple(p, true);
        att_jinja_expect(p, OPERATOR, ")");
        return node;
    }
    if (att_jinja_skip(p, OPERATOR, "["))
        return parse_list(p);
    if (att_jinja_skip(p, OPERATOR, "{"))
        return parse_dict(p);
    return parse_name(p);
}

/* ---- operators, from those that bind most */

static att_jinja_node *parse_unary(att_jinja_parser *p, bool filters)
{
    att_jinja_node *node;
    att_jinja_enter(p->s);
    if (att_jinja_is(p, OPERATOR, "-") || att_jinja_is(p, OPERATOR, "+")) {
        node = att_jinja_node_new(p, ATT_JINJA_SIGN);
        node->text = att_jinja_expect(p, OPERATOR, NULL);
        node->a = parse_unary(p, false);
    } else {
        node = parse_primary(p);
    }
    node = parse_postfix(p, node);
    if (filters)
        node = att_jinja_parse_filters(p, node);
    att_jinja_leave(p->s);
    return node;
}

/* The operators of each level; the last level's operands are unary. */
static const char *const levels[][5] = {{"+", "-"}, {"~"}, {"*", "/", "//", "%"}, {"**"}};

static att_jinja_node *parse_level(att_jinja_parser *p, size_t level)
{
    if (level == sizeof levels / sizeof *levels)
        return parse_unary(p, true);
    att_jinja_node *node = parse_level(p, level + 1);
    for (int n = 0;; n++) {
        const char *const *o = levels[level];
        while (*o && !att_jinja_is(p, OPERATOR, *o))
            o++;
        if (!*o)
            return node;
        if (n > ATT_JINJA_MAX_DEPTH / 2)
            att_jinja_fail(p->s, "an expression has too many parts");
        att_jinja_node *binary = two(p, ATT_JINJA_BINARY, node, NULL);
        binary->text = att_jinja_expect(p, OPERATOR, NULL);
        binary->b = parse_level(p, level + 1);
        node = binary;
    }
}

static const att_jinja_string *skip_comparison(att_jinja_parser *p)
{
    static const char *const operators[] = {"==", "!=", "<", "<=", ">", ">=", NULL};
    const att_jinja_token *t = att_jinja_token_now(p), *next = t + 1;
    for (const char *const *o = operators; *o; o++)
        if (att_jinja_skip(p, OPERATOR, *o))
            return t->text;
    if (att_jinja_skip(p, NAME, "in"))
        return t->text;
    if (!att_jinja_is(p, NAME, "not") || next->kind != ATT_JINJA_T_NAME || !att_jinja_same(next->text, "in"))
        return NULL;
    p->at += 2;
    return t->text;
}

static att_jinja_node *parse_comparison(att_jinja_parser *p)
{
    att_jinja_node *node = parse_level(p, 0), *comparison = NULL;
    for (const att_jinja_string *o; (o = skip_comparison(p));) {
        if (!comparison)
            comparison = two(p, ATT_JINJA_COMPARE, node, NULL);
        att_jinja_name_add(p, comparison, o);
        att_jinja_node_add(p, &comparison->list, parse_level(p, 0));
    }
    return comparison ? comparison : node;
}

static att_jinja_node *parse_not(att_jinja_parser *p)
{
    att_jinja_enter(p->s);
    att_jinja_node *node =
        att_jinja_skip(p, NAME, "not") ? two(p, ATT_JINJA_NOT, parse_not(p), NULL) : parse_comparison(p);
    att_jinja_leave(p->s);
    return node;
}

static att_jinja_node *parse_and(att_jinja_parser *p)
{
    att_jinja_node *node = parse_not(p);
    for (int n = 0; att_jinja_skip(p, NAME, "and"); n++) {
        if (n > ATT_JINJA_MAX_DEPTH / 2)
            att_jinja_fail(p->s, "an expression has too many parts");
        node = two(p, ATT_JINJA_AND, node, parse_not(p));
    }
    return node;
}

static att_jinja_node *parse_or(att_jinja_parser *p)
{
    att_jinja_node *node = parse_and(p);
    for (int n = 0; att_jinja_skip(p, NAME, "or"); n++) {
        if (n > ATT_JINJA_MAX_DEPTH / 2)
            att_jinja_fail(p->s, "an expression has too many parts");
        node = two(p, ATT_JINJA_OR, node, parse_and(p));
    }
    return node;
}

att_jinja_node *att_jinja_parse_expression(att_jinja_parser *p)
{
    att_jinja_enter(p->s);
    att_jinja_node *node = parse_or(p);
    while (att_jinja_skip(p, NAME, "if")) {
        node = two(p, ATT_JINJA_IF_ELSE, NULL, node);
        node->a = parse_or(p);
        if (att_jinja_skip(p, NAME, "else"))
            node->c = att_jinja_parse_expression(p);
    }
    att_jinja_leave(p->s);
    return node;
}

att_jinja_node *att_jinja_parse_tuple(att_jinja_parser *p, bool conditions)
{
    att_jinja_node *node = conditions ? att_jinja_parse_expression(p) : parse_or(p);
    if (!att_jinja_is(p, OPERATOR, ","))
        return node;
    att_jinja_node *tuple = att_jinja_node_new(p, ATT_JINJA_NEW_TUPLE);
    att_jinja_node_add(p, &tuple->list, node);
    while (att_jinja_skip(p, OPERATOR, ",")) {
        const att_jinja_token *t = att_jinja_token_now(p);
        if (t->kind == ATT_JINJA_T_BLOCK_END || t->kind == ATT_JINJA_T_PRINT_END || att_jinja_is(p, OPERATOR, ")"))
            break;
        att_jinja_node_add(p, &tuple->list, conditions ? att_jinja_parse_expression(p) : parse_or(p));
    }
    return tuple;
}

att_jinja_node *att_jinja_parse_target(att_jinja_parser *p, bool attributes)
{
    att_jinja_node *node = att_jinja_node_new(p, ATT_JINJA_NAME), *tuple;
    const bool open = att_jinja_skip(p, OPERATOR, "(");
    node->text = att_jinja_expect(p, NAME, NULL);
    if (attributes && att_jinja_skip(p, OPERATOR, ".")) {
        node = two(p, ATT_JINJA_ATTRIBUTE, node, NULL);
        node->text = att_jinja_expect(p, NAME, NULL);
    } else if (att_jinja_is(p, OPERATOR, ",")) {
        tuple = att_jinja_node_new(p, ATT_JINJA_NEW_TUPLE);
        att_jinja_node_add(p, &tuple->list, node);
        while (att_jinja_skip(p, OPERATOR, ",") && att_jinja_is(p, NAME, NULL)) {
            node = att_jinja_node_new(p, ATT_JINJA_NAME);
            node->text = att_jinja_expect(p, NAME, NULL);
            att_jinja_node_add(p, &tuple->list, node);
        }
        node = tuple;
    }
    if (open)
        att_jinja_expect(p, OPERATOR, ")");
    return node;
}
