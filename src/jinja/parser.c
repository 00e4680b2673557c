/* Parses a template to a tree of statements. */
#include "jinja/tree.h"

static const att_jinja_token_kind BLOCK_END = ATT_JINJA_T_BLOCK_END, NAME = ATT_JINJA_T_NAME,
                                  OPERATOR = ATT_JINJA_T_OPERATOR;

static att_jinja_node *parse_statement(att_jinja_parser *p);

/* Returns whether a tag with one of these names comes next. */
static bool ends(const att_jinja_parser *p, const char *const *words)
{
    const att_jinja_token *t = att_jinja_token_now(p);
    for (; words && *words; words++)
        if (t->kind == ATT_JINJA_T_BLOCK && t[1].kind == ATT_JINJA_T_NAME && att_jinja_same(t[1].text, *words))
            return true;
    return false;
}

/* Parses statements up to a tag with one of these names, and skips its "{%". words or NULL: up to the end. */
static att_jinja_body parse_body(att_jinja_parser *p, const char *const *words)
{
    att_jinja_body body = {0};
    att_jinja_enter(p->s);
    while (!ends(p, words)) {
        att_jinja_node *node = NULL;
        if (att_jinja_is(p, ATT_JINJA_T_DATA, NULL)) {
            node = att_jinja_node_new(p, ATT_JINJA_DATA);
            node->value = att_jinja_string_value(att_jinja_expect(p, ATT_JINJA_T_DATA, NULL));
        } else if (att_jinja_skip(p, ATT_JINJA_T_PRINT, NULL)) {
            node = att_jinja_node_new(p, ATT_JINJA_PRINT);
            node->a = att_jinja_parse_tuple(p, true);
            att_jinja_expect(p, ATT_JINJA_T_PRINT_END, NULL);
        } else if (att_jinja_skip(p, ATT_JINJA_T_BLOCK, NULL)) {
            node = parse_statement(p);
            att_jinja_expect(p, BLOCK_END, NULL);
        } else if (!words) {
            break;
        } else {
            att_jinja_fail(p->s, "the template ends before %s", *words);
        }
        att_jinja_node_add(p, &body, node);
    }
    p->at += words != NULL;
    att_jinja_leave(p->s);
    return body;
}

/* Parses the body of a statement, after whose tag it stands, up to its end. */
static att_jinja_body parse_block(att_jinja_parser *p, const char *end)
{
    const char *const words[] = {end, NULL};
    att_jinja_expect(p, BLOCK_END, NULL);
    const att_jinja_body body = parse_body(p, words);
    att_jinja_expect(p, NAME, end);
    return body;
}

static att_jinja_node *parse_for(att_jinja_parser *p)
{
    static const char *const words[] = {"endfor", "else", NULL};
    att_jinja_node *node = att_jinja_node_new(p, ATT_JINJA_FOR);
    node->a = att_jinja_parse_target(p, false);
    att_jinja_expect(p, NAME, "in");
    node->b = att_jinja_parse_tuple(p, false);
    if (att_jinja_skip(p, NAME, "if"))
        node->c = att_jinja_parse_expression(p);
    node->flag = att_jinja_skip(p, NAME, "recursive");
    att_jinja_expect(p, BLOCK_END, NULL);
    p->loops++;
    node->body = parse_body(p, words);
    p->loops--;
    if (att_jinja_skip(p, NAME, "else"))
        node->other = parse_block(p, "endfor");
    else
        att_jinja_expect(p, NAME, "endfor");
    return node;
}

static att_jinja_node *parse_if(att_jinja_parser *p)
{
    static const char *const words[] = {"endif", "elif", "else", NULL};
    att_jinja_node *first = att_jinja_node_new(p, ATT_JINJA_IF), *node = first;
    for (;;) {
        node->a = att_jinja_parse_tuple(p, false);
        att_jinja_expect(p, BLOCK_END, NULL);
        node->body = parse_body(p, words);
        if (!att_jinja_skip(p, NAME, "elif"))
            break;
        att_jinja_node *next = att_jinja_node_new(p, ATT_JINJA_IF);
        node->c = next; /* a chain, so that many branches nest no deeper */
        node = next;
    }
    if (att_jinja_skip(p, NAME, "else"))
        node->other = parse_block(p, "endif");
    else
        att_jinja_expect(p, NAME, "endif");
    return first;
}

/* Parses a body whose text is a value: break and continue cannot leave it for a loop around it. */
static void parse_captured(att_jinja_parser *p, att_jinja_node *node, const char *end)
{
    const int loops = p->loops, extra = p->extra;
    p->loops = p->extra = 0;
    node->body = parse_block(p, end);
    node->extra = p->extra;
    p->loops = loops;
    p->extra |= extra;
}

static att_jinja_node *parse_set(att_jinja_parser *p)
{
    att_jinja_node *node = att_jinja_node_new(p, ATT_JINJA_SET);
    node->a = att_jinja_parse_target(p, true);
    if (att_jinja_skip(p, OPERATOR, "=")) {
        node->b = att_jinja_parse_tuple(p, true);
        return node;
    }
    node->kind = ATT_JINJA_SET_BLOCK;
    node->b = att_jinja_parse_filters(p, att_jinja_node_new(p, ATT_JINJA_CONTENT));
    parse_captured(p, node, "endset");
    return node;
}

static void parse_parameters(att_jinja_parser *p, att_jinja_node *node)
{
    att_jinja_expect(p, OPERATOR, "(");
    while (!att_jinja_skip(p, OPERATOR, ")")) {
        if (node->named > 0)
            att_jinja_expect(p, OPERATOR, ",");
        att_jinja_name_add(p, node, att_jinja_expect(p, NAME, NULL));
        att_jinja_node_add(p, &node->list, att_jinja_skip(p, OPERATOR, "=") ? att_jinja_parse_expression(p) : NULL);
    }
}

static att_jinja_node *parse_macro(att_jinja_parser *p)
{
    att_jinja_node *node = att_jinja_node_new(p, ATT_JINJA_MACRO);
    node->text = att_jinja_expect(p, NAME, NULL);
    parse_parameters(p, node);
    parse_captured(p, node, "endmacro");
    return node;
}

static att_jinja_node *parse_call_block(att_jinja_parser *p)
{
    att_jinja_node *node = att_jinja_node_new(p, ATT_JINJA_CALL_BLOCK);
    if (att_jinja_is(p, OPERATOR, "("))
        parse_parameters(p, node);
    node->a = att_jinja_parse_expression(p);
    if (node->a->kind != ATT_JINJA_CALL)
        att_jinja_fail(p->s, "expected a call");
    parse_captured(p, node, "endcall");
    return node;
}

static att_jinja_node *parse_filter_block(att_jinja_parser *p)
{
    att_jinja_node *node = att_jinja_node_new(p, ATT_JINJA_FILTER_BLOCK);
    p->at--; /* the word "filter" stands for the "|" before the first one */
    p->tokens.token[p->at] =
        (att_jinja_token){ATT_JINJA_T_OPERATOR, node->line, att_jinja_text(p->s, "|", 1, 0).string};
    node->b = att_jinja_parse_filters(p, att_jinja_node_new(p, ATT_JINJA_CONTENT));
    parse_captured(p, node, "endfilter");
    return node;
}

static att_jinja_node *parse_generation(att_jinja_parser *p)
{
    att_jinja_node *node = att_jinja_node_new(p, ATT_JINJA_SCOPE);
    parse_captured(p, node, "endgeneration");
    return node;
}

static att_jinja_node *parse_with(att_jinja_parser *p)
{
    att_jinja_node *node = att_jinja_node_new(p, ATT_JINJA_SCOPE);
    while (!att_jinja_is(p, BLOCK_END, NULL)) {
        if (node->list.n > 0)
            att_jinja_expect(p, OPERATOR, ",");
        att_jinja_node *set = att_jinja_node_new(p, ATT_JINJA_SET);
        set->a = att_jinja_node_new(p, ATT_JINJA_NAME);
        set->a->text = att_jinja_expect(p, NAME, NULL);
        att_jinja_expect(p, OPERATOR, "=");
        set->b = att_jinja_parse_expression(p);
        att_jinja_node_add(p, &node->list, set);
    }
    node->body = parse_block(p, "endwith");
    return node;
}

static att_jinja_node *parse_jump(att_jinja_parser *p)
{
    att_jinja_node *node = att_jinja_node_new(p, ATT_JINJA_CONTINUE);
    if (p->loops == 0)
        att_jinja_fail(p->s, "break and continue stand in a loop, not in a block whose text is a value");
    return node;
}

static att_jinja_node *parse_break(att_jinja_parser *p)
{
    att_jinja_node *node = parse_jump(p);
    node->kind = ATT_JINJA_BREAK;
    return node;
}

/* Parses a statement, without its last "%}". */
static att_jinja_node *parse_statement(att_jinja_parser *p)
{
    static const struct {
        const char *name;
        att_jinja_node *(*parse)(att_jinja_parser *p);
    } statements[] = {{"for", parse_for},
                      {"if", parse_if},
                      {"set", parse_set},
                      {"macro", parse_macro},
                      {"call", parse_call_block},
                      {"filter", parse_filter_block},
                      {"generation", parse_generation},
                      {"with", parse_with},
                      {"break", parse_break},
                      {"continue", parse_jump}};
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
        if (att_jinja_skip(p, NAME, statements[i].name))
            return statements[i].parse(p);
    const att_jinja_string *name = att_jinja_expect(p, NAME, NULL);
    att_jinja_fail(p->s, "the tag \"%.*s\" is not supported, or is not expected here",
                   (int)(name->bytes < 40 ? name->bytes : 40), name->data);
}

att_jinja_body att_jinja_parse_all(att_jinja_parser *p)
{
    const att_jinja_body body = parse_body(p, NULL);
    att_jinja_expect(p, ATT_JINJA_T_END, NULL);
    return body;
}
