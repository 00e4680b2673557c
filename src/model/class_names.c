#include "model/class_names.h"
#include "attend_util.h"
#include "io/check_texts.h"
#include "text/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER = 32 };

/* The name of class i, or its number, which is written to `text` [NUMBER]. In "id2label" each has a name, a text or a
 * number: other keys, such as those that count from 1, would give names to other classes. */
static const char *name_of(att_settings *s, const json_t *names, int64_t i, const char *prefix, char *text)
{
    snprintf(text, NUMBER, "%lld", (long long)i);
    const json_t *name = json_is_array(names) ? json_array_get(names, (size_t)i) : json_object_get(names, text);
    if (json_is_string(name))
        return json_string_value(name);
    if (json_is_real(name))
        snprintf(text, NUMBER, "%.15g", json_real_value(name));
    else if (names && names == att_settings_get(s, "id2label"))
        att_settings_fail(s, ATT_ERR_FORMAT,
                          "\"id2label\" has no name for class %s; its keys must be \"0\", \"1\" and so on", text);
    else
        snprintf(text, NUMBER, "%.10s%lld", prefix, (long long)i);
    return text;
}

static char *copy(att_ctx *ctx, const char *text)
{
    char *new = att_alloc(ctx, strlen(text) + 1, 1);
    if (new)
        memcpy(new, text, strlen(text) + 1);
    return new;
}

att_status att_class_names_read(att_settings *s, const json_t *names, int64_t n, const char *prefix, char ***out)
{
    *out = NULL;
    if (s->status)
        return s->status;
    char **name = att_calloc(s->ctx, (size_t)n, sizeof *name);
    att_status e = name ? ATT_OK : ATT_ERR_MEMORY;
    for (int64_t i = 0; !e && i < n; i++) {
        char number[NUMBER];
        const char *text = name_of(s, names, i, prefix, number);
        name[i] = s->status ? NULL : copy(s->ctx, text);
        if (!name[i])
            e = s->status ? s->status : ATT_ERR_MEMORY;
    }
    if (e) {
        att_class_names_free(s->ctx, n, name);
        name = NULL;
    }
    *out = name;
    return e;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Checks that no name is there twice: in order, one that is follows itself. */
static att_status check_distinct(att_ctx *ctx, const char *what, const char *const *names, int64_t n)
{
    const char **sorted = att_alloc(ctx, (size_t)n, sizeof *sorted);
    att_status s = sorted ? ATT_OK : ATT_ERR_MEMORY;
    if (!s) {
        memcpy(sorted, names, (size_t)n * sizeof *sorted);
        qsort(sorted, (size_t)n, sizeof *sorted, compare_names);
    }
    for (int64_t i = 1; !s && i < n; i++)
        if (!strcmp(sorted[i - 1], sorted[i]))
            s = att_fail(ctx, ATT_ERR_ARGUMENT, "%s has \"%.40s\" twice", what, sorted[i]);
    att_free(ctx, sorted);
    return s;
}

att_status att_class_names_check(att_ctx *ctx, const char *what, const char *const *names, int64_t n)
{
    att_status s = att_check_texts(ctx, what, names, n);
    for (int64_t i = 0; !s && i < n; i++)
        if (!att_utf8_valid(names[i], strlen(names[i])))
            s = att_fail(ctx, ATT_ERR_ARGUMENT, "%s[%lld] is not UTF-8", what, (long long)i);
    return s ? s : check_distinct(ctx, what, names, n);
}

att_status att_class_names_copy(att_ctx *ctx, const char *const *names, int64_t n, char ***out)
{
    char **name = att_calloc(ctx, (size_t)n, sizeof *name);
    bool copied = name;
    for (int64_t i = 0; copied && i < n; i++)
        copied = (name[i] = copy(ctx, names[i]));
    if (!copied) {
        att_class_names_free(ctx, n, name);
        name = NULL;
    }
    *out = name;
    return name ? ATT_OK : ATT_ERR_MEMORY;
}

void att_class_names_free(att_ctx *ctx, int64_t n, char **names)
{
    for (int64_t i = 0; names && i < n; i++)
        att_free(ctx, names[i]);
    att_free(ctx, names);
}

static const char *plain(const char *name) { return strncmp(name, "LABEL_", 6) ? name : name + 6; }

int64_t att_class_names_find(const char *name, char *const *names, int64_t n, int64_t first)
{
    if (first < n && !strcmp(plain(name), plain(names[first])))
        return first;
    int64_t i = 0;
    while (i < n && strcmp(plain(name), plain(names[i])) != 0)
        i++;
    return i;
}
