/* A language model in a .gguf file as the files of a folder describe it: settings as in config.json, and tensors with
 * the names of model.safetensors. */
#ifndef ATT_MODEL_GGUF_MODEL_H
#define ATT_MODEL_GGUF_MODEL_H

#include "io/gguf.h"
#include "io/settings.h"

/* Makes settings in the format of config.json, with integers as integers -> *root. Errors: an architecture other than
 * gpt2, llama, olmo2, phi3, qwen2 and qwen3 (the message names it); settings that these do not have. (gguf_config.c)
 *
 * Factors of frequencies become "rope_type": "llama3" if they are those of Llama 3, and otherwise "factors", which only
 * attend knows. */
att_status att_gguf_config(att_gguf *g, json_t **root);
/* Makes the settings of generation_config.json. */
att_status att_gguf_generation_config(att_gguf *g, json_t **root);

/* Reads a file of settings by its name: one of the two, or tokenizer_config.json. *root NULL without an error: there is
 * no such file. */
att_status att_gguf_file(att_gguf *g, const char *name, json_t **root);
/* Reads settings as att_settings_read does, for a model that is a folder or a .gguf file (or has one), from which the
 * three files are made. */
void att_model_settings_read(att_settings *s, att_ctx *ctx, const char *model, const char *name, bool required);

/* The tensors of a .gguf file. */
typedef struct att_gguf_weights {
    att_ctx *ctx;
    int64_t count;
    const char **name;  /* [count], as in model.safetensors, sorted */
    att_tensor *tensor; /* [count] */
    char *names, *memory;
} att_gguf_weights;

/* Lists all tensors as they are stored: views of the file, except those whose rows are in another order, which are
 * copied. Error: a tensor with an unknown name. */
att_status att_gguf_weights_read(att_ctx *ctx, att_gguf *g, att_gguf_weights *w);
void att_gguf_weights_free(att_gguf_weights *w);

#endif
