/* Writing a model's weights. */
#include "io/safetensors.h"
#include "io/file.h"
#include "model/model.h"

#include <stdio.h>

typedef struct file_name {
    char text[ATT_CHECKPOINT_NAME];
} file_name;

att_status att_model_write(const att_model *m, const char *folder, att_dtype dtype, att_parameter_naming naming,
                           int64_t n, const char *const *names, const att_tensor *tensors)
{
    static const char *const metadata[] = {"format", "pt"};
    const int64_t own = att_nn_params_count(m->params), all = own + n;
    char path[ATT_MAX_PATH];
    file_name *theirs = att_alloc(m->ctx, (size_t)own, sizeof *theirs);
    const char **name = att_alloc(m->ctx, (size_t)all, sizeof *name);
    att_tensor *tensor = att_alloc(m->ctx, (size_t)all, sizeof *tensor);
    att_status e = theirs && name && tensor ? ATT_OK : ATT_ERR_MEMORY;
    for (int64_t i = 0; !e && i < own; i++) {
        tensor[i] = *att_param_value(att_nn_params_at(m->params, i, &name[i]));
        if (naming)
            naming(name[i], theirs[i].text, &tensor[i]);
        if (naming || (m->kind->names && att_checkpoint_translate(m->kind->names, "", name[i], theirs[i].text)))
            name[i] = theirs[i].text;
    }
    for (int64_t i = 0; !e && i < n; i++) {
        name[own + i] = names[i];
        tensor[own + i] = tensors[i];
    }
    e = e ? e : att_join_path(m->ctx, folder, "model.safetensors", path);
    e = e ? e
          : att_safetensors_write_in_folder(
                m->ctx, path, all, name, tensor,
                ATT_OPTIONS(att_safetensors_options, .dtype = dtype, .metadata = metadata, .n_metadata = 1));
    att_free(m->ctx, tensor);
    att_free(m->ctx, name);
    att_free(m->ctx, theirs);
    return e;
}
