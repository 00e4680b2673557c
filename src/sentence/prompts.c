#include "sentence/prompts.h"
#include "io/settings.h"
#include "util/util.h"

#include <stdio.h>
#include <string.h>

enum { MAX_PROMPTS = 10000 };

/* ---- names and texts */

static char *copy_text(att_ctx *ctx, const char *text)
{
    char *copy = att_alloc(ctx, strlen(text) + 1, 1);
    return copy ? strcpy(copy, text) : NULL;
}

static int64_t index_of(const att_prompts *p, const char *name)
{
    int64_t i = p->n - 1;
    while (i >= 0 && strcmp(p->prompt[i].name, name) != 0)
        i--;
    return i;
}

/* Sets a prompt, which may exist. p->prompt has room. */
static att_status set(att_ctx *ctx, att_prompts *p, const char *name, const char *text)
{
    const int64_t known = index_of(p, name);
    att_prompt *at = &p->prompt[known < 0 ? p->n : known];
    char *copy = copy_text(ctx, text);
    if (known < 0)
        at->name = copy ? copy_text(ctx, name) : NULL;
    if (!copy || !at->name) {
        att_free(ctx, copy);
        return ATT_ERR_MEMORY;
    }
    att_free(ctx, at->text);
    at->text = copy;
    p->n += known < 0;
    return ATT_OK;
}

/* Adds the prompts that each model has. object: the "prompts", or NULL. */
static att_status begin(att_ctx *ctx, att_prompts *p, size_t further)
{
    static const char *const always[] = {"query", "document"};
    p->prompt = att_calloc(ctx, further + 2, sizeof *p->prompt);
    att_status s = p->prompt ? ATT_OK : ATT_ERR_MEMORY;
    for (int i = 0; !s && i < 2; i++)
        s = set(ctx, p, always[i], "");
    return s;
}

/* Fails with WHAT is "NAME", but the model's prompts are ... */
static att_status fail_unknown(att_ctx *ctx, att_status status, const att_prompts *p, const char *what,
                               const char *name)
{
    char names[300] = "";
    size_t at = 0;
    for (int64_t i = 0; i < p->n && at < sizeof names; i++)
        at += (size_t)snprintf(names + at, sizeof names - at, "%s\"%.60s\"", i ? ", " : "", p->prompt[i].name);
    return att_fail(ctx, status, "%s is \"%.80s\", but the model's prompts are %s", what, name, names);
}

/* ---- the file */

static void read_prompts(att_settings *s, att_prompts *p)
{
    const json_t *object = att_settings_get(s, "prompts");
    if (object && !json_is_object(object))
        att_settings_fail(s, ATT_ERR_FORMAT, "\"prompts\" is %s, not an object of names and texts",
                          att_json_show(object).text);
    if (json_object_size(object) > MAX_PROMPTS)
        att_settings_fail(s, ATT_ERR_FORMAT, "\"prompts\" has %zu prompts, expected at most %d",
                          json_object_size(object), MAX_PROMPTS);
    if (s->status)
        return;
    s->status = begin(s->ctx, p, json_object_size(object));
    if (s->status || !object)
        return;
    const att_settings_scope file = att_settings_enter(s, "prompts");
    for (void *i = json_object_iter((json_t *)object); !s->status && i;
         i = json_object_iter_next((json_t *)object, i)) {
        const char *name = json_object_iter_key(i), *text = att_settings_text(s, name, "");
        if (!s->status)
            s->status = set(s->ctx, p, name, text);
    }
    att_settings_leave(s, file);
}

static void read_default(att_settings *s, att_prompts *p)
{
    const char *key = "default_prompt_name";
    if (s->status || !att_settings_has(s, key))
        return;
    const char *name = att_settings_text(s, key, NULL);
    char what[ATT_MAX_PATH + 64];
    snprintf(what, sizeof what, "%s: \"%s\"", s->path, key);
    p->chosen = s->status ? -1 : index_of(p, name);
    if (!s->status && p->chosen < 0)
        s->status = fail_unknown(s->ctx, ATT_ERR_FORMAT, p, what, name);
}

/* Reads "similarity_fn_name". The default, also for null, is the cosine. */
static att_similarity read_similarity(att_settings *s)
{
    static const char *const names[] = {[ATT_SIMILARITY_COSINE] = "cosine",
                                        [ATT_SIMILARITY_DOT] = "dot",
                                        [ATT_SIMILARITY_EUCLIDEAN] = "euclidean",
                                        [ATT_SIMILARITY_MANHATTAN] = "manhattan"};
    const char *key = "similarity_fn_name";
    return att_settings_has(s, key)
               ? (att_similarity)att_settings_choice(s, key, names, 4, "one of cosine, dot, euclidean and manhattan")
               : ATT_SIMILARITY_COSINE;
}

static void read_file(att_settings *s, att_prompts *p)
{
    att_settings_only_text(s, "model_type", "SentenceTransformer");
    p->truncate_dim = att_settings_int_or(s, "truncate_dim", 1, 1 << 20, 0);
    p->similarity = read_similarity(s);
    read_prompts(s, p);
    read_default(s, p);
}

att_status att_prompts_read(att_ctx *ctx, const char *folder, att_prompts *out)
{
    att_settings s = {0};
    *out = (att_prompts){.chosen = -1};
    if (folder)
        att_settings_read(&s, ctx, folder, "config_sentence_transformers.json", false);
    if (s.root)
        read_file(&s, out);
    else if (!s.status)
        s.status = begin(ctx, out, 0);
    att_settings_close(&s);
    return s.status;
}

void att_prompts_free(att_ctx *ctx, att_prompts *p)
{
    for (int64_t i = 0; i < p->n; i++) {
        att_free(ctx, p->prompt[i].name);
        att_free(ctx, p->prompt[i].text);
    }
    att_free(ctx, p->prompt);
    *p = (att_prompts){0};
}

/* ---- by name */

att_status att_prompts_find(att_ctx *ctx, const att_prompts *p, const char *what, const char *name, const char **text)
{
    const int64_t i = name ? index_of(p, name) : p->chosen;
    *text = i >= 0 ? p->prompt[i].text : "";
    return name && i < 0 ? fail_unknown(ctx, ATT_ERR_ARGUMENT, p, what, name) : ATT_OK;
}
