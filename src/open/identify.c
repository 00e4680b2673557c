/* Identifies what a model's folder or .gguf file has. */
#include "att_subjects.h"
#include "io/file_source.h"
#include "io/gguf.h"
#include "open/subjects.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define DECLARE(name) extern const att_model_subject att_subject_##name;
ATT_SUBJECT_LIST(DECLARE)
#define ROW(name) &att_subject_##name,
const att_model_subject *const att_subjects[] = {ATT_SUBJECT_LIST(ROW) NULL};

const att_model_subject *att_subject_of(att_subject subject)
{
    const att_model_subject *const *s = att_subjects;
    while (*s && (*s)->subject != subject)
        s++;
    return *s;
}

const char *att_subject_name(att_subject subject)
{
    const att_model_subject *s = att_subject_of(subject);
    return s ? s->name : "model";
}

/* ---- by names of files */

static bool has_file(att_ctx *ctx, const char *folder, const char *name)
{
    char path[ATT_MAX_PATH];
    return name && !att_join_path(ctx, folder, name, path) && att_is_file(path);
}

static const att_model_subject *by_file(att_ctx *ctx, const char *folder)
{
    const att_model_subject *const *s = att_subjects;
    while (*s && !has_file(ctx, folder, (*s)->file))
        s++;
    return *s;
}

static const att_model_subject *by_gguf(void)
{
    const att_model_subject *const *s = att_subjects;
    while (*s && !(*s)->gguf)
        s++;
    return *s;
}

/* ---- by config.json */

static bool has_type(const att_model_subject *s, const char *type)
{
    const att_model_kind *const *k = s->kinds;
    while (*k && !att_model_type_find((*k)->types, type))
        k++;
    return *k;
}

/* The subject that claims a folder; it stays if none does. */
static att_status by_claim(att_ctx *ctx, const char *folder, const att_settings *config,
                           const att_model_subject **subject)
{
    att_status status = ATT_OK;
    for (const att_model_subject *const *s = att_subjects; !status && *s; s++) {
        bool is = false;
        status = (*s)->claims ? (*s)->claims(ctx, folder, config, &is) : ATT_OK;
        if (is)
            *subject = *s;
    }
    return status;
}

static const att_model_subject *by_settings(const att_settings *config, const char *type)
{
    const att_model_subject *const *s = att_subjects;
    while (*s && !has_type(*s, type))
        s++;
    if (*s)
        return *s;
    s = att_subjects;
    while (*s && !((*s)->recognizes && (*s)->recognizes(config)))
        s++;
    return *s;
}

/* Copies the text of a setting, truncated to the room for it; "" if it is not a text. */
static void copy_text(char *to, size_t size, const json_t *value)
{
    const char *text = json_string_value(value);
    snprintf(to, size, "%s", text ? text : "");
}

/* Reads config.json, or what stands for it in the .gguf file, "" if it is none. */
static att_status read_config(att_ctx *ctx, const char *path, const char *gguf, att_model_identity *id,
                              const att_model_subject **subject)
{
    att_settings s;
    att_model_settings_read(&s, ctx, path, "config.json", false);
    if (s.root) {
        const json_t *timm = att_settings_get(&s, "architecture");
        const json_t *class = json_array_get(att_settings_get(&s, "architectures"), 0);
        copy_text(id->type, sizeof id->type, att_settings_get(&s, "model_type"));
        copy_text(id->architecture, sizeof id->architecture, class ? class : timm);
        if (!*id->type && json_is_string(timm))
            snprintf(id->type, sizeof id->type, "timm");
        if (!*subject)
            *subject = by_settings(&s, id->type);
    }
    if (!*gguf && !s.status && (s.root || *subject))
        s.status = by_claim(ctx, path, &s, subject);
    att_settings_close(&s);
    return s.status;
}

/* Finds out whether a path exists, and whether it is a folder. If the caller supplies files (io/file_source.h), there
 * are no others. */
static att_status find(att_ctx *ctx, const char *path, bool *folder)
{
    struct stat is;
    *folder = !att_is_gguf_name(path);
    if (att_file_source_given())
        return ATT_OK;
    if (stat(path, &is))
        return att_fail(ctx, errno == ENOMEM ? ATT_ERR_MEMORY : ATT_ERR_IO, "%s: %s", path, strerror(errno));
    *folder = S_ISDIR(is.st_mode);
    return ATT_OK;
}

att_status att_model_identify(att_ctx *ctx, const char *path, att_model_identity *out)
{
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"path", path}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    att_model_identity id = {.size = sizeof id};
    char gguf[ATT_MAX_PATH];
    bool folder;
    att_status s = find(ctx, path, &folder);
    if (s)
        return s;
    const att_model_subject *subject = by_file(ctx, path);
    s = att_gguf_path(ctx, path, "config.json", gguf);
    if (!subject && (s || *gguf))
        subject = by_gguf();
    s = s ? s : read_config(ctx, path, gguf, &id, &subject);
    if (!s && !subject && folder)
        s = att_refuse_adapter(ctx, path);
    if (subject)
        id.subject = subject->subject;
    const att_status written = att_info_write(out, &id, sizeof id, "att_model_identity");
    return written ? written : s;
}
