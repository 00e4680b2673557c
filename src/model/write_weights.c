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
    void **joined; /* memory of tensors that several parameters are rows of, else NULL */
    int64_t n;
} file_tensors;

static att_status allocate(file_tensors *f, att_ctx *ctx, int64_t n)
{
    f->theirs = att_alloc(ctx, (size_t)n, sizeof *f->theirs);
    f->name = att_alloc(ctx, (size_t)n, sizeof *f->name);
    f->tensor = att_alloc(ctx, (size_t)n, sizeof *f->tensor);
    f->joined = att_calloc(ctx, (size_t)n, sizeof *f->joined);
    return f->theirs && f->name && f->tensor && f->joined ? ATT_OK : ATT_ERR_MEMORY;
}

/* Returns whether an extension has the parameter. */
static bool is_of_extension(const att_model *m, const char *name)
{
    return m->extension && !strncmp(name, m->extension->names, strlen(m->extension->names));
}

/* Appends the rows of x to those of tensor i, which becomes memory of its own: f32, unless both have one type that a
 * file may have. */
static att_status append_rows(file_tensors *f, att_ctx *ctx, int64_t i, const att_tensor *x)
{
    att_tensor *to = &f->tensor[i], all, part;
    const bool as_is = to->dtype == x->dtype && att_dtype_size(x->dtype) > 0;
    int64_t dim[ATT_MAX_RANK];
    memcpy(dim, to->dim, sizeof dim);
    dim[0] += x->dim[0];
    att_status s = att_wrap(&all, NULL, as_is ? x->dtype : ATT_F32, to->rank, dim, NULL);
    if (s)
        return s;
    all.data = att_alloc(ctx, (size_t)att_elements(&all), att_dtype_size(all.dtype));
    if (!all.data)
        return ATT_ERR_MEMORY;
    part = all;
    part.dim[0] = to->dim[0];
    s = att_tensor_convert(ctx, to, &part);
    part.data = (char *)all.data + att_dtype_bytes(all.dtype, to->dim[0] * all.stride[0]);
    part.dim[0] = x->dim[0];
    s = s ? s : att_tensor_convert(ctx, x, &part);
    att_free(ctx, f->joined[i]);
    f->joined[i] = all.data;
    *to = all;
    return s;
}

/* Adds a parameter; those of the same name in the file are rows of one tensor, in the order of the parameters. */
static att_status add(file_tensors *f, att_ctx *ctx, const char *name, const att_tensor *x)
{
    int64_t i = 0;
    while (i < f->n && strcmp(f->name[i], name) != 0)
        i++;
    if (i < f->n && x->rank > 0 && x->rank == f->tensor[i].rank)
        return append_rows(f, ctx, i, x);
    f->name[f->n] = name;
    f->tensor[f->n++] = *x;
    return ATT_OK;
}

/* Adds the parameters whose names begin with `part`, which is left out; "": those of the model without an extension's.
 */
static att_status add_params(file_tensors *f, const att_model *m, const char *part, att_parameter_naming naming)
{
    const att_checkpoint_name *names = *part ? NULL : m->kind->names;
    att_status s = ATT_OK;
    for (int64_t i = 0; !s && i < att_nn_params_count(m->params); i++) {
        const char *name;
        const att_param *p = att_nn_params_at(m->params, i, &name);
        if (*part ? strncmp(name, part, strlen(part)) != 0 : is_of_extension(m, name))
            continue;
        att_tensor value = *att_param_value(p);
        const char *theirs = name + strlen(part);
        if (naming)
            naming(name, f->theirs[f->n].text, &value);
        if (naming || (names && att_checkpoint_translate(names, "", name, f->theirs[f->n].text)))
            theirs = f->theirs[f->n].text;
        s = add(f, m->ctx, theirs, &value);
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
    for (int64_t i = 0; f->joined && i < f->n; i++)
        att_free(ctx, f->joined[i]);
    att_free(ctx, f->joined);
    att_free(ctx, f->tensor);
    att_free(ctx, f->name);
    att_free(ctx, f->theirs);
    return s;
}

att_status att_model_write(const att_model *m, const char *folder, att_dtype dtype, att_parameter_naming naming,
                           int64_t n, const char *const *names, const att_tensor *tensors)
{
    file_tensors f = {0};
    att_status s = allocate(&f, m->ctx, att_nn_params_count(m->params) + n);
    s = s ? s : add_params(&f, m, "", naming);
    for (int64_t i = 0; !s && i < n; i++, f.n++) {
        f.name[f.n] = names[i];
        f.tensor[f.n] = tensors[i];
    }
    return write_file(&f, m->ctx, s, folder, dtype);
}

att_status att_model_write_part(const att_model *m, const char *folder, att_dtype dtype, const char *names)
{
    file_tensors f = {0};
    att_status s = allocate(&f, m->ctx, att_nn_params_count(m->params));
    s = s ? s : add_params(&f, m, names, NULL);
    return write_file(&f, m->ctx, s, folder, dtype);
}
