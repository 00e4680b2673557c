#include "text/post_processor.h"

#include <string.h>

typedef struct reader {
    att_settings *s;
    const att_vocabulary *v;
    att_post_processor *p;
} reader;

int32_t att_read_token_id(att_settings *s, const char *where, const char *token, const json_t *value)
{
    const double x = json_is_real(value) ? json_real_value(value) : -1;
    if (x >= 0 && x < ATT_MAX_VOCABULARY && x == (int32_t)x)
        return (int32_t)x;
    att_settings_fail(s, ATT_ERR_FORMAT, "%s: the id of token \"%.80s\" is %s, not a whole number in [0, %d)", where,
                      token, att_json_show(value).text, ATT_MAX_VOCABULARY);
    return ATT_NO_TOKEN;
}

static int32_t read_id(const reader *r, const char *token, const json_t *value)
{
    const int32_t id = att_read_token_id(r->s, "post_processor", token, value);
    if (!att_vocabulary_get(r->v, id))
        att_settings_fail(r->s, ATT_ERR_FORMAT, "post_processor has token \"%.80s\" with id %d, which no token has",
                          token, id);
    return id;
}

static void add(const reader *r, att_template *t, int32_t item, int32_t type)
{
    if (!att_template_add(t, item, type))
        att_settings_fail(r->s, ATT_ERR_UNSUPPORTED,
                          "post_processor adds more than %d tokens, or has more than two texts", ATT_MAX_SPECIAL);
}

/* ---- BertProcessing: "cls": ["[CLS]", 101], "sep": ["[SEP]", 102]; RobertaProcessing, which has two between texts */

static int32_t read_pair_id(const reader *r, const char *key)
{
    const json_t *pair = att_settings_list(r->s, key, true);
    const char *token = json_string_value(json_array_get(pair, 0));
    if (token)
        return read_id(r, token, json_array_get(pair, 1));
    att_settings_fail(r->s, ATT_ERR_FORMAT, "\"%s%s\" is %s, not a token and its id", r->s->within, key,
                      att_json_show(pair).text);
    return ATT_NO_TOKEN;
}

static void read_cls_sep(const reader *r, bool roberta)
{
    const int32_t cls = read_pair_id(r, "cls"), sep = read_pair_id(r, "sep");
    att_template *const both[] = {&r->p->single, &r->p->pair};
    for (int i = 0; i < 2; i++) {
        *both[i] = (att_template){.count = 0};
        add(r, both[i], cls, 0);
        add(r, both[i], ATT_TEXT_A, 0);
        add(r, both[i], sep, 0);
    }
    if (roberta)
        add(r, &r->p->pair, sep, 0);
    add(r, &r->p->pair, ATT_TEXT_B, !roberta);
    add(r, &r->p->pair, sep, !roberta);
}

/* Makes the template of the pair without special tokens. */
static void make_plain(const reader *r)
{
    const att_template *pair = &r->p->pair;
    r->p->plain_pair = (att_template){.count = 0};
    for (int64_t i = 0; i < pair->count; i++)
        if (pair->item[i] < 0)
            add(r, &r->p->plain_pair, pair->item[i], pair->type[i]);
}

static void read_bert(const reader *r) { read_cls_sep(r, false); }

static void read_byte_level(const reader *r)
{
    r->p->trim_offsets = att_settings_bool(r->s, "trim_offsets", true);
    r->p->add_prefix_space = att_settings_bool(r->s, "add_prefix_space", true);
}

static void read_roberta(const reader *r)
{
    read_byte_level(r);
    read_cls_sep(r, true);
    make_plain(r);
}

/* ---- TemplateProcessing */

/* Reads a special token, which may stand for several ids: {"[CLS]": {"id": "[CLS]", "ids": [101], "tokens":
 * ["[CLS]"]}}. */
static void read_special(const reader *r, const char *name, att_template *t, int32_t type)
{
    const att_settings_scope before = att_settings_enter(r->s, "special_tokens");
    att_settings_enter(r->s, name);
    const json_t *ids = att_settings_list(r->s, "ids", true);
    for (size_t i = 0; !r->s->status && i < json_array_size(ids); i++)
        add(r, t, read_id(r, name, json_array_get(ids, i)), type);
    att_settings_leave(r->s, before);
}

/* Reads an item of a template: a text, "A" or "B", or a special token. */
static void read_item(const reader *r, const char *list, const json_t *item, att_template *t)
{
    att_settings *s = r->s;
    const att_settings_scope before = att_settings_enter_item(s, list, item);
    const bool is_text = att_settings_has(s, "Sequence");
    att_settings_enter(s, is_text ? "Sequence" : "SpecialToken");
    const char *id = att_settings_text(s, "id", NULL);
    const int32_t type = (int32_t)att_settings_int(s, "type_id", 0, INT32_MAX);
    if (is_text && strcmp(id, "A") != 0 && strcmp(id, "B") != 0)
        att_settings_unsupported(s, "id", "\"A\" and \"B\"");
    att_settings_leave(s, before);
    if (is_text)
        add(r, t, strcmp(id, "A") == 0 ? ATT_TEXT_A : ATT_TEXT_B, type);
    else
        read_special(r, id, t, type);
}

static void read_list(const reader *r, const char *list, bool pair, att_template *t)
{
    att_settings *s = r->s;
    const json_t *items = att_settings_list(s, list, !pair);
    int texts[2] = {0, 0};
    *t = (att_template){.count = 0};
    for (size_t i = 0; !s->status && i < json_array_size(items); i++)
        read_item(r, list, json_array_get(items, i), t);
    for (int64_t i = 0; i < t->count; i++)
        if (t->item[i] < 0)
            texts[t->item[i] == ATT_TEXT_B]++;
    if (!s->status && (json_array_size(items) > 0 || !pair) && (texts[0] != 1 || texts[1] != pair))
        att_settings_fail(s, ATT_ERR_FORMAT, "\"%s%s\" has text A %d times and text B %d times, not once%s", s->within,
                          list, texts[0], texts[1], pair ? " each" : " and never");
}

static void read_template(const reader *r)
{
    read_list(r, "single", false, &r->p->single);
    read_list(r, "pair", true, &r->p->pair);
    make_plain(r);
}

/* ---- */

static void read_one(const reader *r, bool nested)
{
    static const struct {
        const char *name;
        void (*read)(const reader *r);
    } types[] = {{"TemplateProcessing", read_template},
                 {"BertProcessing", read_bert},
                 {"RobertaProcessing", read_roberta},
                 {"ByteLevel", read_byte_level}};
    att_settings *s = r->s;
    const char *name = att_settings_text(s, "type", NULL);
    if (!nested && strcmp(name, "Sequence") == 0) {
        const json_t *items = att_settings_list(s, "processors", true);
        for (size_t i = 0; !s->status && i < json_array_size(items); i++) {
            const att_settings_scope before = att_settings_enter_item(s, "processors", json_array_get(items, i));
            read_one(r, true);
            att_settings_leave(s, before);
        }
        return;
    }
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(name, types[i].name) == 0) {
            types[i].read(r);
            return;
        }
    att_settings_unsupported(s, "type", "TemplateProcessing, BertProcessing, RobertaProcessing or ByteLevel");
}

void att_post_processor_read(att_settings *s, const att_vocabulary *v, att_post_processor *p)
{
    *p = (att_post_processor){0};
    if (!att_settings_has(s, "post_processor"))
        return;
    const att_settings_scope before = att_settings_enter(s, "post_processor");
    read_one(&(reader){s, v, p}, false);
    att_settings_leave(s, before);
}
