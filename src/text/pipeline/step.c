#include "text/pipeline/step.h"
#include "util/array.h"

#include <string.h>

static void copy(att_settings *s, att_byte_view value, char **text, size_t *bytes)
{
    *bytes = value.bytes;
    *text = att_alloc(s->ctx, *bytes + 1, 1);
    if (*text)
        memcpy(*text, value.data, *bytes + 1); /* with the zero byte after it */
    else if (!s->status)
        s->status = ATT_ERR_MEMORY;
}

void att_step_set_text(att_settings *s, const char *value, char **text, size_t *bytes)
{
    copy(s, (att_byte_view){value, strlen(value)}, text, bytes);
}

void att_step_read_text(att_settings *s, const char *key, bool empty, char **text, size_t *bytes)
{
    const att_byte_view value = att_settings_bytes(s, key);
    if (!s->status && !empty && value.bytes == 0)
        att_settings_fail(s, ATT_ERR_FORMAT, "\"%s%s\" is empty", s->within, key);
    copy(s, value, text, bytes);
}

void att_step_read_pattern(att_settings *s, att_step *step)
{
    const att_settings_scope before = att_settings_enter(s, "pattern");
    if (att_settings_has(s, "Regex"))
        step->pattern.regex = att_regex_new(s, "Regex", att_settings_text(s, "Regex", NULL));
    else
        att_step_read_text(s, "String", false, &step->pattern.text, &step->pattern.bytes);
    att_settings_leave(s, before);
}

void att_step_read_replace(att_settings *s, att_step *step)
{
    att_step_read_pattern(s, step);
    att_step_read_text(s, "content", true, &step->text, &step->bytes);
}

/* ---- a list of steps */

static const att_step_type *find(const att_step_type *types, const char *name)
{
    while (types->name && strcmp(types->name, name) != 0)
        types++;
    return types->name ? types : NULL;
}

/* Writes the names of the types, for an error: "A, B, C". */
static void name_all(const att_step_type *types, char *text, size_t bytes)
{
    size_t at = 0;
    for (; types->name && at < bytes; types++)
        at += (size_t)snprintf(text + at, bytes - at, "%s%s", at ? ", " : "", types->name);
}

/* Reads the object that was entered. */
static void read_step(att_settings *s, const char *list, const att_step_type *types, att_steps *steps)
{
    char names[400];
    const char *name = att_settings_text(s, "type", NULL);
    const att_step_type *type = find(types, name);
    if (strcmp(name, "Sequence") == 0) {
        const json_t *items = att_settings_list(s, list, true);
        for (size_t i = 0; !s->status && i < json_array_size(items); i++) {
            const att_settings_scope before = att_settings_enter_item(s, list, json_array_get(items, i));
            if (strcmp(att_settings_text(s, "type", ""), "Sequence") == 0)
                att_settings_fail(s, ATT_ERR_UNSUPPORTED,
                                  "\"%stype\" is Sequence, within a Sequence, which is not "
                                  "supported",
                                  s->within);
            read_step(s, list, types, steps);
            att_settings_leave(s, before);
        }
        return;
    }
    name_all(types, names, sizeof names);
    if (!s->status && !type)
        att_settings_unsupported(s, "type", names);
    if (!s->status && steps->count == ATT_MAX_STEPS)
        att_settings_fail(s, ATT_ERR_UNSUPPORTED, "\"%.*s\" has more than %d steps", (int)strcspn(s->within, "."),
                          s->within, ATT_MAX_STEPS);
    if (!s->status)
        s->status = att_grow(s->ctx, &steps->step, sizeof *steps->step, steps->count, 1, &steps->capacity);
    if (s->status)
        return;
    att_step *step = &steps->step[steps->count++];
    *step = (att_step){.apply = type->apply,
                       .rewrite = type->rewrite,
                       .decode = type->decode,
                       .form = type->form,
                       .charsmap.ctx = s->ctx};
    if (type->read)
        type->read(s, step);
}

void att_steps_read(att_settings *s, const char *key, const char *list, const att_step_type *types, att_steps *steps)
{
    if (!att_settings_has(s, key))
        return;
    const att_settings_scope before = att_settings_enter(s, key);
    read_step(s, list, types, steps);
    att_settings_leave(s, before);
}

void att_steps_free(att_ctx *ctx, att_steps *steps)
{
    for (size_t i = 0; i < steps->count; i++) {
        att_step *s = &steps->step[i];
        att_free(ctx, s->text);
        att_free(ctx, s->pattern.text);
        att_regex_free(s->pattern.regex);
        att_charsmap_free(&s->charsmap);
    }
    att_free(ctx, steps->step);
    *steps = (att_steps){0};
}

void att_steps_apply(const att_steps *steps, att_pieces *p)
{
    for (size_t i = 0; !p->status && i < steps->count; i++) {
        const att_step *s = &steps->step[i];
        if (s->apply)
            s->apply(s, p);
        else
            att_pieces_rewrite(p, s->rewrite, s);
    }
}
