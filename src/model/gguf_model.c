/* Reads the settings of a .gguf file as if they were files. */
#include "model/gguf_model.h"

#include "text/gguf_tokenizer.h"

#include <string.h>

att_status att_gguf_file(att_gguf *g, const char *name, json_t **root)
{
    static const struct {
        const char *name;
        att_status (*make)(att_gguf *g, json_t **root);
    } files[] = {{"config.json", att_gguf_config},
                 {"generation_config.json", att_gguf_generation_config},
                 {"tokenizer_config.json", att_gguf_tokenizer_config}};
    *root = NULL;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (strcmp(files[i].name, name) == 0)
            return files[i].make(g, root);
    return ATT_OK;
}

void att_model_settings_read(att_settings *s, att_ctx *ctx, const char *model, const char *name, bool required)
{
    char path[ATT_MAX_PATH];
    att_gguf *g = NULL;
    json_t *root = NULL;
    att_status status = att_gguf_path(ctx, model, "config.json", path);
    if (!status && !*path) {
        att_settings_read(s, ctx, model, name, required);
        return;
    }
    status = status ? status : att_gguf_open(ctx, path, &g);
    status = status ? status : att_gguf_file(g, name, &root);
    if (root)
        att_settings_from_json(s, ctx, path, root);
    else
        att_settings_init(s, ctx, path, NULL);
    if (!root && !status && required)
        status = att_fail(ctx, ATT_ERR_IO, "%s: there is no %s", path, name);
    s->status = status ? status : s->status;
    att_gguf_free(g);
}
