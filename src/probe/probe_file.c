/* Writes and reads a probe: probe.json has its kind and the names of the classes, probe.safetensors its numbers. */
#include "io/file.h"
#include "io/safetensors.h"
#include "model/class_names.h"
#include "probe/probe.h"

#include <math.h>
#include <string.h>

static const char settings_name[] = "probe.json", tensors_name[] = "probe.safetensors";
static const char *const kinds[] = {[ATT_PROBE_KIND_LINEAR] = "linear", [ATT_PROBE_KIND_NEIGHBORS] = "knn"};
static const char *const inputs_names[] = {[ATT_PROBE_IMAGES] = "images", [ATT_PROBE_TEXTS] = "texts"};
enum { MAX_DIM = 32768, MAX_CLASSES = 1 << 20 };

/* ---- writing */

static json_t *texts(const char *const *names, int64_t n)
{
    json_t *list = json_array();
    for (int64_t i = 0; list && i < n; i++)
        if (json_array_append_new(list, json_string(names[i]))) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static json_t *numbers(const int64_t *x, int64_t n)
{
    json_t *list = json_array();
    for (int64_t i = 0; list && i < n; i++)
        if (json_array_append_new(list, json_integer(x[i]))) {
            json_decref(list);
            return NULL;
        }
    return list;
}

/* Returns the settings; NULL: out of memory. */
static json_t *describe(const att_probe *p, att_probe_inputs inputs, const char *const *names)
{
    const att_probe_info *i = &p->info;
    json_t *root = json_pack("{s:s, s:s, s:I, s:o}", "kind", kinds[i->kind], "inputs", inputs_names[inputs], "dim",
                             (json_int_t)i->dim, "labels", texts(names, i->classes));
    json_t *own = p->w ? json_pack("{s:f}", "c", i->c)
                       : json_pack("{s:I, s:f, s:o}", "neighbors", (json_int_t)i->neighbors, "temperature",
                                   i->temperature, "counts", numbers(p->counts, i->classes));
    const int failed = !root || !own || json_object_update(root, own);
    json_decref(own);
    if (!failed)
        return root;
    json_decref(root);
    return NULL;
}

/* Wraps the numbers of a probe. Returns how many tensors there are. */
static int tensors(const att_probe *p, const char *names[2], att_tensor out[2])
{
    const int64_t rows = p->w ? p->info.classes : p->info.vectors;
    names[0] = p->w ? "weight" : "vectors";
    names[1] = "bias";
    att_wrap(&out[0], p->w ? p->w : p->vectors, ATT_F32, 2, (const int64_t[]){rows, p->info.dim}, NULL);
    if (p->w)
        att_wrap(&out[1], p->b, ATT_F32, 1, &rows, NULL);
    return p->w ? 2 : 1;
}

att_status att_probe_write(const att_probe *p, const char *folder, att_probe_inputs inputs, const char *const *names,
                           att_dtype dtype)
{
    static const char *const metadata[] = {"format", "pt"};
    char path[ATT_MAX_PATH];
    const char *name[2];
    att_tensor tensor[2];
    const int n = tensors(p, name, tensor);
    att_status s = att_settings_write(p->ctx, folder, settings_name, describe(p, inputs, names));
    s = s ? s : att_join_path(p->ctx, folder, tensors_name, path);
    return s ? s
             : att_safetensors_write_in_folder(
                   p->ctx, path, n, name, tensor,
                   ATT_OPTIONS(att_safetensors_options, .dtype = dtype, .metadata = metadata, .n_metadata = 1));
}

/* ---- reading */

/* Reads the number of vectors of each class, at most 2^31 together. */
static void read_counts(att_settings *s, const att_probe_info *info, int64_t *counts, int64_t *sum)
{
    const json_t *list = att_settings_list(s, "counts", true);
    *sum = 0;
    if (!s->status && (int64_t)json_array_size(list) != info->classes)
        att_settings_fail(s, ATT_ERR_FORMAT, "\"counts\" has %lld numbers, but there are %lld labels",
                          (long long)json_array_size(list), (long long)info->classes);
    for (int64_t k = 0; !s->status && k < info->classes; k++) {
        const json_t *item = json_array_get(list, (size_t)k);
        const double number = json_is_number(item) ? json_number_value(item) : -1;
        const int64_t n = number >= 0 && number <= INT32_MAX ? (int64_t)number : -1;
        if ((double)n != number || n < 0 || n > INT32_MAX - *sum)
            att_settings_fail(s, ATT_ERR_FORMAT, "\"counts\" has %s, expected numbers of vectors, together below 2^31",
                              att_json_show(item).text);
        counts[k] = n;
        *sum += n;
    }
}

/* Reads all settings. counts [classes], to be freed, of nearest neighbors. */
static void read_settings(att_settings *s, att_probe_info *info, char ***names, int64_t **counts)
{
    const json_t *labels = att_settings_list(s, "labels", true);
    *info = (att_probe_info){.size = sizeof *info, .classes = (int64_t)json_array_size(labels)};
    info->kind = (att_probe_kind)att_settings_choice(s, "kind", kinds, 2, "linear or knn");
    info->dim = att_settings_int(s, "dim", 1, MAX_DIM);
    if (!s->status && (info->classes < 2 || info->classes > MAX_CLASSES))
        att_settings_fail(s, ATT_ERR_FORMAT, "\"labels\" has %lld names, expected 2 to %d", (long long)info->classes,
                          MAX_CLASSES);
    for (int64_t k = 0; !s->status && k < info->classes; k++)
        if (!json_is_string(json_array_get(labels, (size_t)k)))
            att_settings_fail(s, ATT_ERR_FORMAT, "\"labels\" has %s, not a name",
                              att_json_show(json_array_get(labels, (size_t)k)).text);
    if (!s->status)
        s->status = att_class_names_read(s, labels, info->classes, "", names);
    if (s->status || info->kind == ATT_PROBE_KIND_LINEAR) {
        info->c = att_settings_number_or(s, "c", 0, 1e18, 0);
        return;
    }
    *counts = att_calloc(s->ctx, (size_t)info->classes, sizeof **counts);
    if (!*counts) {
        s->status = ATT_ERR_MEMORY;
        return;
    }
    read_counts(s, info, *counts, &info->vectors);
    info->temperature = att_settings_number(s, "temperature", 1e-6, 1e18);
    info->neighbors = att_settings_int(s, "neighbors", 1, s->status ? 1 : info->vectors);
}

/* Converts a tensor of the file to out, which has `rank` dimensions dim. */
static att_status load(att_ctx *ctx, const char *path, const att_safetensors *f, const char *name, int rank,
                       const int64_t *dim, float *out)
{
    att_tensor from, to;
    att_status s = att_safetensors_get(f, name, &from);
    s = s ? s : att_wrap(&to, out, ATT_F32, rank, dim, NULL);
    if (!s && (from.rank != rank || from.dim[0] != dim[0] || from.dim[rank - 1] != dim[rank - 1]))
        s = att_fail(ctx, ATT_ERR_FORMAT, "%s: the shape of \"%s\" does not fit probe.json, which has %lld x %lld",
                     path, name, (long long)dim[0], (long long)(rank > 1 ? dim[1] : 1));
    s = s ? s : att_tensor_convert(ctx, &from, &to);
    int64_t i = 0, n = rank > 1 ? dim[0] * dim[1] : dim[0];
    while (!s && i < n && isfinite(out[i]))
        i++;
    return s || i == n ? s : att_fail(ctx, ATT_ERR_FORMAT, "%s: \"%s\" has numbers that are not finite", path, name);
}

static att_status load_tensors(att_probe *p, const char *folder)
{
    char path[ATT_MAX_PATH];
    att_safetensors *f = NULL;
    const int64_t rows = p->w ? p->info.classes : p->info.vectors, dim[] = {rows, p->info.dim};
    att_status s = att_join_path(p->ctx, folder, tensors_name, path);
    s = s ? s : att_safetensors_open(p->ctx, path, &f);
    s = s ? s : load(p->ctx, path, f, p->w ? "weight" : "vectors", 2, dim, p->w ? p->w : p->vectors);
    if (!s && p->w)
        s = load(p->ctx, path, f, "bias", 1, &rows, p->b);
    att_safetensors_free(f);
    return s;
}

/* Sets the class of each vector. */
static void label_vectors(att_probe *p, const int64_t *counts)
{
    int64_t at = 0;
    memcpy(p->counts, counts, (size_t)p->info.classes * sizeof *counts);
    for (int64_t k = 0; k < p->info.classes; k++)
        for (int64_t i = 0; i < counts[k]; i++)
            p->labels[at++] = (int32_t)k;
}

static att_status read_probe(att_settings *s, const char *folder, int64_t dim, att_probe **out)
{
    att_probe_info info;
    char **names = NULL;
    int64_t *counts = NULL;
    read_settings(s, &info, &names, &counts);
    if (!s->status && info.dim != dim)
        att_settings_fail(s, ATT_ERR_FORMAT, "\"dim\" is %lld, but the model's vectors have %lld numbers",
                          (long long)info.dim, (long long)dim);
    att_status e = s->status ? s->status : att_probe_make(s->ctx, &info, out);
    e = e ? e : load_tensors(*out, folder); /* whose shapes the counts must fit */
    if (!e && counts)
        label_vectors(*out, counts);
    if (!e)
        (*out)->name = names;
    else
        att_class_names_free(s->ctx, info.classes, names);
    att_free(s->ctx, counts);
    return e;
}

att_status att_probe_read(att_ctx *ctx, const char *folder, att_probe_inputs inputs, int64_t dim, att_probe **out)
{
    att_settings s;
    *out = NULL;
    att_settings_read(&s, ctx, folder, settings_name, false);
    if (s.root && (int)inputs != att_settings_choice(&s, "inputs", inputs_names, 2, "images or texts"))
        att_settings_fail(&s, ATT_ERR_FORMAT, "\"inputs\" is %s, but the model embeds %s",
                          att_json_show(att_settings_get(&s, "inputs")).text, inputs_names[inputs]);
    att_status e = s.status;
    if (!e && s.root)
        e = read_probe(&s, folder, dim, out);
    att_settings_close(&s);
    if (e) {
        att_probe_free(*out);
        *out = NULL;
    }
    return e;
}

bool att_probe_is_in(att_ctx *ctx, const char *folder, att_probe_inputs inputs)
{
    att_settings s;
    att_settings_read(&s, ctx, folder, settings_name, false);
    const char *of = s.root ? json_string_value(att_settings_get(&s, "inputs")) : NULL;
    const bool is = of && !strcmp(of, inputs_names[inputs]);
    att_settings_close(&s);
    return is;
}
