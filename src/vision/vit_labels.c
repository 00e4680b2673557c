/* Names of the classes of a vision Transformer, and its classifier in their order. */
#include "attend_util.h"
#include "vision/vit.h"

#include <stdio.h>
#include <string.h>

/* Finds the labels: Hugging Face has an object whose keys are numbers; timm has that or a list. NULL: none. */
static const json_t *find_labels(const att_settings *s)
{
    static const char *const keys[] = {"id2label", "label_names"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (att_settings_has(s, keys[i]))
            return att_settings_get(s, keys[i]);
    return json_object_get(att_settings_get(s, "pretrained_cfg"), "label_names");
}

/* Returns the name of class i of n, or its number, which is written to `text` [24]. In "id2label" each has a name, a
 * text or a number: other keys, such as those that count from 1, would give names to other classes. */
static const char *label_of(att_settings *s, const json_t *names, int64_t i, char *text)
{
    snprintf(text, 24, "%lld", (long long)i);
    const json_t *name = json_is_array(names) ? json_array_get(names, (size_t)i) : json_object_get(names, text);
    if (json_is_string(name))
        return json_string_value(name);
    if (json_is_real(name))
        snprintf(text, 24, "%.15g", json_real_value(name));
    else if (names && names == att_settings_get(s, "id2label"))
        att_settings_fail(s, ATT_ERR_FORMAT,
                          "\"id2label\" has no name for class %s; its keys must be \"0\", \"1\" and so on", text);
    return text;
}

att_status att_vit_read_labels(att_ctx *ctx, const char *folder, int64_t n, char ***out)
{
    att_settings s;
    att_settings_read(&s, ctx, folder, "config.json", true);
    const json_t *names = s.status ? NULL : find_labels(&s);
    char **label = att_calloc(ctx, (size_t)n, sizeof *label);
    att_status e = s.status ? s.status : label ? ATT_OK : ATT_ERR_MEMORY;
    for (int64_t i = 0; !e && i < n; i++) {
        char number[24];
        const char *text = label_of(&s, names, i, number);
        label[i] = s.status ? NULL : att_alloc(ctx, strlen(text) + 1, 1);
        if (label[i])
            memcpy(label[i], text, strlen(text) + 1);
        else
            e = s.status ? s.status : ATT_ERR_MEMORY;
    }
    att_settings_close(&s);
    if (e) {
        att_vit_free_labels(ctx, n, label);
        label = NULL;
    }
    *out = label;
    return e;
}

void att_vit_free_labels(att_ctx *ctx, int64_t n, char **labels)
{
    for (int64_t i = 0; labels && i < n; i++)
        att_free(ctx, labels[i]);
    att_free(ctx, labels);
}

/* ---- the same classes in another order */

/* "LABEL_7", as `transformers` names a class 7 without a name, is "7". */
static const char *plain(const char *label) { return strncmp(label, "LABEL_", 6) ? label : label + 6; }

/* Returns the index of a name in labels [n], or n; first: where it is tried first. */
static int64_t find(const char *name, char *const *labels, int64_t n, int64_t first)
{
    if (!strcmp(plain(name), plain(labels[first])))
        return first;
    int64_t i = 0;
    while (i < n && strcmp(plain(name), plain(labels[i])) != 0)
        i++;
    return i;
}

/* Permutes the rows of `was`, a copy: row i was row[i]. */
static void permute(const att_tensor *w, const float *was, const int64_t *row)
{
    const int64_t width = w->stride[0];
    for (int64_t i = 0; i < w->dim[0]; i++)
        memcpy((float *)w->data + i * width, was + row[i] * width, (size_t)width * sizeof *was);
}

static bool is_sorted(const int64_t *row, int64_t n)
{
    int64_t i = 0;
    while (i < n && row[i] == i)
        i++;
    return i == n;
}

static att_status permute_head(const att_vit *m, const int64_t *row)
{
    att_ctx *ctx = m->model.ctx;
    const char *name;
    att_param *p;
    for (int64_t i = 0; (p = att_nn_params_at(att_vit_params(m), i, &name)); i++) {
        if (strncmp(name, "head.", 5) != 0)
            continue;
        if (is_sorted(row, att_param_value(p)->dim[0]))
            continue;
        if (att_param_frozen(p))
            return att_fail(ctx, ATT_ERR_ARGUMENT,
                            "%s is frozen, but the model has its classes in another order than the images", name);
        const att_tensor *w = att_param_value(p);
        const size_t n = (size_t)(w->dim[0] * w->stride[0]);
        float *was = att_alloc(ctx, n, sizeof *was);
        if (!was)
            return ATT_ERR_MEMORY;
        memcpy(was, w->data, n * sizeof *was);
        permute(w, was, row);
        att_param_invalidate(p);
        att_free(ctx, was);
    }
    return ATT_OK;
}

/* row [n]: where the model has the class i of labels [n]; false: these are not its classes. */
static bool match(const char *const *labels, char *const *own, int64_t n, int64_t *row, bool *used)
{
    for (int64_t i = 0; i < n; i++) {
        row[i] = find(labels[i], own, n, i);
        if (row[i] == n || used[row[i]])
            return false;
        used[row[i]] = true;
    }
    return true;
}

att_status att_vit_order_classes(const att_vit *m, const char *folder, const char *const *labels, bool *same)
{
    att_ctx *ctx = m->model.ctx;
    const int64_t n = m->config.info.classes;
    char **own;
    *same = false;
    att_status e = att_vit_read_labels(ctx, folder, n, &own);
    int64_t *row = att_alloc(ctx, (size_t)n, sizeof *row);
    bool *used = att_calloc(ctx, (size_t)n, sizeof *used);
    e = e || (row && used) ? e : ATT_ERR_MEMORY;
    *same = !e && match(labels, own, n, row, used);
    if (*same)
        e = permute_head(m, row);
    att_free(ctx, used);
    att_free(ctx, row);
    att_vit_free_labels(ctx, n, own);
    return e;
}
