/* Reads the names of the classes of a vision Transformer, and puts its classifier into their order. */
#include "attend_util.h"
#include "model/class_names.h"
#include "vision/vit.h"

#include <string.h>

/* Finds the labels. Hugging Face has an object whose keys are numbers; timm has such an object or a list. Returns NULL
 * if there are none. */
static const json_t *find_labels(const att_settings *s)
{
    static const char *const keys[] = {"id2label", "label_names"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (att_settings_has(s, keys[i]))
            return att_settings_get(s, keys[i]);
    return json_object_get(att_settings_get(s, "pretrained_cfg"), "label_names");
}

att_status att_vit_read_labels(att_ctx *ctx, const char *folder, int64_t n, char ***out)
{
    att_settings s;
    att_settings_read(&s, ctx, folder, "config.json", true);
    const att_status e = att_class_names_read(&s, s.status ? NULL : find_labels(&s), n, "", out);
    att_settings_close(&s);
    return e;
}

/* ---- the same classes in another order */

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

/* Finds row [n]: the model's index of each class of labels [n]. Returns false if these are not its classes. */
static bool match(const char *const *labels, char *const *own, int64_t n, int64_t *row, bool *used)
{
    for (int64_t i = 0; i < n; i++) {
        row[i] = att_class_names_find(labels[i], own, n, i);
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
    att_class_names_free(ctx, n, own);
    return e;
}
