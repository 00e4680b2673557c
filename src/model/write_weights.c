/* Writing a model's weights. */
#include "io/safetensors.h"
#include "io/file.h"
#include "model/model.h"
#include "util/shape.h"

#include <stdio.h>
#include <string.h>

/* The tensors of a file that is written */
typedef struct file_tensors {
    struct file_name {
        char text[ATT_CHECKPOINT_NAME];
    } * theirs;
    const char **name;
    att_tensor *tensor;
    void **own; /* memory of tensors that are not parameters as they are, else NULL */
    int64_t n;
} file_tensors;

static att_status allocate(file_tensors *f, att_ctx *ctx, int64_t n)
{
    f->theirs = att_alloc(ctx, (size_t)n, sizeof *f->theirs);
    f->name = att_alloc(ctx, (size_t)n, sizeof *f->name);
    f->tensor = att_alloc(ctx, (size_t)n, sizeof *f->tensor);
    f->own = att_calloc(ctx, (size_t)n, sizeof *f->own);
    return f->theirs && f->name && f->tensor && f->own ? ATT_OK : ATT_ERR_MEMORY;
}

/* Returns whether an extension has the parameter. */
static bool is_of_extension(const att_model *m, const char *name)
{
    return m->extension && !strncmp(name, m->extension->names, strlen(m->extension->names));
}

/* Gives tensor i memory of its own, for this number of rows: f32 or, if as_is, of its type. Rows that are new have no
 * values. */
static att_status own(file_tensors *f, att_ctx *ctx, int64_t i, int64_t rows, bool as_is)
{
    att_tensor *to = &f->tensor[i], all, first;
    int64_t dim[ATT_MAX_RANK];
    memcpy(dim, to->dim, sizeof dim);
    dim[0] = rows;
    att_status s = att_wrap(&all, NULL, as_is ? to->dtype : ATT_F32, to->rank, dim, NULL);
    if (s)
        return s;
    all.data = att_alloc(ctx, (size_t)att_elements(&all), att_dtype_size(all.dtype));
    if (!all.data)
        return ATT_ERR_MEMORY;
    first = all;
    first.dim[0] = to->dim[0];
    s = att_tensor_convert(ctx, to, &first);
    att_free(ctx, f->own[i]);
    f->own[i] = all.data;
    *to = all;
    return s;
}

/* Appends the rows of x to those of tensor i, which becomes f32, unless both have one type that a file may have. */
static att_status append_rows(file_tensors *f, att_ctx *ctx, int64_t i, const att_tensor *x)
{
    const bool as_is = f->tensor[i].dtype == x->dtype && att_dtype_size(x->dtype) > 0;
    const int64_t before = f->tensor[i].dim[0];
    const att_status s = own(f, ctx, i, before + x->dim[0], as_is);
    if (s)
        return s;
    att_tensor part = f->tensor[i];
    part.data = (char *)part.data + att_dtype_bytes(part.dtype, before * part.stride[0]);
    part.dim[0] = x->dim[0];
    return att_tensor_convert(ctx, x, &part);
}

/* Adds a number to all of tensor i. */
static att_status add_number(file_tensors *f, att_ctx *ctx, int64_t i, float plus)
{
    const att_status s = own(f, ctx, i, f->tensor[i].dim[0], false);
    for (int64_t k = 0; !s && k < att_elements(&f->tensor[i]); k++)
        ((float *)f->tensor[i].data)[k] += plus;
    return s;
}

/* Adds a parameter; those of the same name in the file are rows of one tensor, in the order of the parameters. */
static att_status add(file_tensors *f, att_ctx *ctx, const att_file_tensor *x)
{
    int64_t i = 0;
    while (i < f->n && strcmp(f->name[i], x->name) != 0)
        i++;
    if (i < f->n && x->value.rank > 0 && x->value.rank == f->tensor[i].rank)
        return append_rows(f, ctx, i, &x->value);
    i = f->n++;
    snprintf(f->theirs[i].text, sizeof f->theirs[i].text, "%s", x->name);
    f->name[i] = f->theirs[i].text;
    f->tensor[i] = x->value;
    return x->plus != 0 ? add_number(f, ctx, i, x->plus) : ATT_OK;
}

/* Names a parameter by the model's table, or as we do. */
static void name_by_table(const void *model, const char *ours, att_file_tensor *out)
{
    const att_checkpoint_name *names = ((const att_model *)model)->kind->names;
    if (!names || !att_checkpoint_translate(names, "", ours, out->name))
        snprintf(out->name, sizeof out->name, "%s", ours);
}

/* Adds the parameters of the model, without those of an extension. */
static att_status add_params(file_tensors *f, const att_model *m, att_parameter_naming naming, const void *user)
{
    att_status s = ATT_OK;
    for (int64_t i = 0; !s && i < att_nn_params_count(m->params); i++) {
        const char *name;
        att_file_tensor x = {.value = *att_param_value(att_nn_params_at(m->params, i, &name))};
        if (is_of_extension(m, name))
            continue;
        if (naming)
            naming(user, name, &x);
        else
            name_by_table(m, name, &x);
        s = add(f, m->ctx, &x);
    }
    return s;
}

/* Adds the parameters whose names begin with `part`, which is left out. */
static att_status add_part(file_tensors *f, const att_model *m, const char *part)
{
    att_status s = ATT_OK;
    for (int64_t i = 0; !s && i < att_nn_params_count(m->params); i++) {
        const char *name;
        att_file_tensor x = {.value = *att_param_value(att_nn_params_at(m->params, i, &name))};
        if (strncmp(name, part, strlen(part)) != 0)
            continue;
        snprintf(x.name, sizeof x.name, "%s", name + strlen(part));
        s = add(f, m->ctx, &x);
    }
    return s;
}

/* Writes the file, if s is ATT_OK, and frees f. */
static att_status write_file(file_tensors *f, att_ctx *ctx, att_status s, const char *folder, att_dtype dtype)
{
    static const char *const metadata[] = {"format", "pt"};
    char path[ATT_MAX_PATH];
    s = s ? s : att_join_path(ctx, folder, "model.safetensors", path);
    s = s ? s
          : att_safetensors_write_in_folder(
                ctx, path, f->n, f->name, f->tensor,
                ATT_OPTIONS(att_safetensors_options, .dtype = dtype, .metadata = metadata, .n_metadata = 1));
    for (int64_t i = 0; f->own && i < f->n; i++)
        att_free(ctx, f->own[i]);
    att_free(ctx, f->own);
    att_free(ctx, f->tensor);
    att_free(ctx, f->name);
    att_free(ctx, f->theirs);
    return s;
}

att_status att_model_write(const att_model *m, const char *folder, att_dtype dtype, att_parameter_naming naming,
                           const void *user, int64_t n, const char *const *names, const att_tensor *tensors)
{
    file_tensors f = {0};
    att_status s = allocate(&f, m->ctx, att_nn_params_count(m->params) + n);
    s = s ? s : add_params(&f, m, naming, user);
    for (int64_t i = 0; !s && i < n; i++, f.n++) {
        f.name[f.n] = names[i];
        f.tensor[f.n] = tensors[i];
    }
    return write_file(&f, m->ctx, s, folder, dtype);
}

bool att_model_set_dtype(json_t *settings, att_dtype dtype, bool *changed)
{
    static const char *const keys[] = {"dtype", "torch_dtype"};
    const char *name = dtype == ATT_BF16 ? "bfloat16" : dtype == ATT_F16 ? "float16" : "float32";
    bool set = true;
    for (int i = 0; i < 2; i++) {
        const char *was = json_string_value(json_object_get(settings, keys[i]));
        if (was && strcmp(was, name) != 0) {
            set &= !json_object_set_new(settings, keys[i], json_string(name));
            *changed = true;
        }
    }
    return set;
}

att_status att_model_write_dtype(att_ctx *ctx, const char *folder, att_dtype dtype)
{
    json_t *settings;
    bool changed = false;
    att_status s = att_settings_read_as_is(ctx, folder, "config.json", false, &settings);
    if (!s && !att_model_set_dtype(settings, dtype, &changed))
        s = att_fail(ctx, ATT_ERR_MEMORY, "%s: out of memory for config.json", folder);
    if (!s && changed)
        s = att_settings_write(ctx, folder, "config.json", json_incref(settings));
    json_decref(settings);
    return s;
}

att_status att_model_write_part(const att_model *m, const char *folder, att_dtype dtype, const char *names)
{
    file_tensors f = {0};
    att_status s = allocate(&f, m->ctx, att_nn_params_count(m->params));
    s = s ? s : add_part(&f, m, names);
    return write_file(&f, m->ctx, s, folder, dtype);
}
