/* Writing a model's weights. */
#include "io/safetensors.h"
#include "io/file.h"
#include "model/model.h"

#include <stdio.h>
#include <string.h>

/* The tensors of a file that is written */
typedef struct file_tensors {
    struct file_name {
        char text[ATT_CHECKPOINT_NAME];
    } * theirs;
    const char **name;
    att_tensor *tensor;
    int64_t n;
} file_tensors;

static att_status allocate(file_tensors *f, att_ctx *ctx, int64_t n)
{
    f->theirs = att_alloc(ctx, (size_t)n, sizeof *f->theirs);
    f->name = att_alloc(ctx, (size_t)n, sizeof *f->name);
    f->tensor = att_alloc(ctx, (size_t)n, sizeof *f->tensor);
    return f->theirs && f->name && f->tensor ? ATT_OK : ATT_ERR_MEMORY;
}

/* Does an extension have the parameter? */
static bool is_of_extension(const att_model *m, const char *name)
{
    return m->extension && !strncmp(name, m->extension->names, strlen(m->extension->names));
}

/* Adds the parameters whose names begin with `part`, which is left out; "": those of the model without an extension's.
 */
static void add_params(file_tensors *f, const att_model *m, const char *part, att_parameter_naming naming)
{
    const att_checkpoint_name *names = *part ? NULL : m->kind->names;
    for (int64_t i = 0; i < att_nn_params_count(m->params); i++) {
        const char *name;
        const att_param *p = att_nn_params_at(m->params, i, &name);
        if (*part ? strncmp(name, part, strlen(part)) != 0 : is_of_extension(m, name))
            continue;
        f->tensor[f->n] = *att_param_value(p);
        f->name[f->n] = name + strlen(part);
        if (naming)
            naming(name, f->theirs[f->n].text, &f->tensor[f->n]);
        if (naming || (names && att_checkpoint_translate(names, "", name, f->theirs[f->n].text)))
            f->name[f->n] = f->theirs[f->n].text;
        f->n++;
    }
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
    att_free(ctx, f->tensor);
    att_free(ctx, f->name);
    att_free(ctx, f->theirs);
    return s;
}

att_status att_model_write(const att_model *m, const char *folder, att_dtype dtype, att_parameter_naming naming,
                           int64_t n, const char *const *names, const att_tensor *tensors)
{
    file_tensors f = {0};
    const att_status s = allocate(&f, m->ctx, att_nn_params_count(m->params) + n);
    if (!s)
        add_params(&f, m, "", naming);
    for (int64_t i = 0; !s && i < n; i++, f.n++) {
        f.name[f.n] = names[i];
        f.tensor[f.n] = tensors[i];
    }
    return write_file(&f, m->ctx, s, folder, dtype);
}

att_status att_model_write_part(const att_model *m, const char *folder, att_dtype dtype, const char *names)
{
    file_tensors f = {0};
    const att_status s = allocate(&f, m->ctx, att_nn_params_count(m->params));
    if (!s)
        add_params(&f, m, names, NULL);
    return write_file(&f, m->ctx, s, folder, dtype);
}
