#include "jinja/jinja.h"

#include "jinja/evaluate.h"
#include "io/file.h"
#include "text/utf8.h"

#include <stdio.h>
#include <string.h>

enum { MAX_STEPS = 20000000 };

struct att_jinja {
    att_ctx *ctx;
    att_jinja_arena arena;
    att_jinja_body body;
    char path[ATT_MAX_PATH];
};

/* A run, or the parsing of a template. */
typedef struct task {
    att_jinja_state s;
    const att_jinja *t;
    const char *text; /* [bytes] */
    size_t bytes;
    att_jinja_body body;
    att_jinja_variables *variables;
    void *user;
    att_bytes *out, *literal;
} task;

static void parse(task *k)
{
    att_jinja_parser p = {.s = &k->s};
    p.tokens = att_jinja_scan(&k->s, k->text, k->bytes);
    k->body = att_jinja_parse_all(&p);
}

static void run(task *k)
{
    att_jinja_builder out = {.s = &k->s};
    k->s.scope = att_jinja_scope_new(&k->s, NULL);
    k->s.out = &out;
    k->s.filter = att_jinja_apply_filter;
    k->variables(&k->s, k->user);
    att_jinja_execute(&k->s, &k->t->body);
    att_bytes_add(k->out, out.data, out.bytes);
    att_bytes_add(k->literal, out.range, out.n * sizeof *out.range);
    k->s.status = k->out->status ? k->out->status : k->literal->status;
}

/* Runs a function that may end by att_jinja_fail. Returns its status, with the error's sentence. */
static att_status guard(task *k, const char *path, void (*body)(task *k))
{
    jmp_buf failed;
    k->s.failed = &failed;
    k->s.steps = MAX_STEPS;
    if (!setjmp(failed))
        body(k);
    if (k->s.status == ATT_ERR_FORMAT)
        att_fail(k->s.ctx, ATT_ERR_FORMAT, "%s: chat template, line %d: %s", path, k->s.line, k->s.message);
    if (k->s.status == ATT_ERR_ARGUMENT)
        att_fail(k->s.ctx, ATT_ERR_ARGUMENT, "%s: the chat template refuses the conversation: %s", path, k->s.message);
    return k->s.status;
}

att_status att_jinja_open(att_ctx *ctx, const char *path, const char *text, size_t bytes, att_jinja **out)
{
    *out = NULL;
    const size_t valid = att_utf8_prefix(text, bytes);
    if (valid < bytes)
        return att_fail(ctx, ATT_ERR_FORMAT, "%s: the chat template is not UTF-8 at byte %zu", path, valid);
    att_jinja *t = att_calloc(ctx, 1, sizeof *t);
    if (!t)
        return ATT_ERR_MEMORY;
    t->ctx = ctx;
    snprintf(t->path, sizeof t->path, "%s", path);
    task k = {.s = {.ctx = ctx, .arena.ctx = ctx}, .text = text, .bytes = bytes};
    const att_status s = guard(&k, path, parse);
    t->arena = k.s.arena;
    t->body = k.body;
    if (s)
        att_jinja_free(t);
    else
        *out = t;
    return s;
}

void att_jinja_free(att_jinja *t)
{
    if (!t)
        return;
    att_jinja_arena_free(&t->arena);
    att_free(t->ctx, t);
}

att_status att_jinja_run(const att_jinja *t, att_jinja_variables *variables, void *user, att_bytes *out,
                         att_bytes *literal)
{
    task k = {.s = {.ctx = t->ctx, .arena.ctx = t->ctx},
              .t = t,
              .variables = variables,
              .user = user,
              .out = out,
              .literal = literal};
    const att_status s = guard(&k, t->path, run);
    att_jinja_arena_free(&k.s.arena);
    return s;
}

void att_jinja_set(att_jinja_state *s, const char *name, att_jinja_value value)
{
    att_jinja_put_named(s, s->scope->variables, name, value);
}

att_jinja_value att_jinja_json(att_jinja_state *s, const json_t *json, bool message)
{
    att_jinja_value out = att_jinja_none();
    const char *key;
    json_t *value;
    size_t i, bytes;
    att_jinja_enter(s);
    if (json_is_string(json)) {
        out = att_jinja_text(s, json_string_value(json), json_string_length(json), message);
    } else if (json_is_integer(json)) {
        out = att_jinja_int(json_integer_value(json));
    } else if (json_is_real(json)) {
        out = att_jinja_float(json_real_value(json));
    } else if (json_is_boolean(json)) {
        out = att_jinja_bool(json_is_true(json));
    } else if (json_is_array(json)) {
        out = att_jinja_list_new(s, ATT_JINJA_LIST);
        json_array_foreach(json, i, value) att_jinja_push(s, out, att_jinja_json(s, value, message));
    } else if (json_is_object(json)) {
        out = att_jinja_dict_new(s, ATT_JINJA_DICT);
        json_object_keylen_foreach((json_t *)(uintptr_t)json, key, bytes, value)
            att_jinja_put(s, out, att_jinja_text(s, key, bytes, message), att_jinja_json(s, value, message));
    }
    att_jinja_leave(s);
    return out;
}
