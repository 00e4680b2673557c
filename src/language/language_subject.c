/* Opens language models. */
#include "attend_language.h"
#include "stack/language_model.h"
#include "model/subject.h"

#include <string.h>

static att_status open_model(att_ctx *ctx, const char *path, const att_model_options *options, void **out)
{
    att_text_generator *m;
    const att_status s = att_text_generator_open(ctx, path, options, &m);
    *out = m;
    return s;
}

static att_status weights(const void *model, att_model_weights *weights)
{
    return att_language_model_weights(att_text_generator_model(model), weights);
}

static const att_nn_params *params(const void *model) { return att_text_generator_params(model); }

static void free_model(void *model) { att_text_generator_free(model); }

/* Recognizes a folder whose class has such a name, even if its type is not supported: the error of opening it states
 * the supported types. */
static bool recognizes(const att_settings *config)
{
    static const char *const ends[] = {"ForCausalLM", "LMHeadModel"};
    const char *class = json_string_value(json_array_get(att_settings_get(config, "architectures"), 0));
    const size_t n = class ? strlen(class) : 0;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (n >= strlen(ends[i]) && !strcmp(class + n - strlen(ends[i]), ends[i]))
            return true;
    return false;
}

const att_model_subject att_subject_language = {.subject = ATT_SUBJECT_LANGUAGE,
                                                .name = "language model",
                                                .kinds = att_language_kinds,
                                                .gguf = true,
                                                .recognizes = recognizes,
                                                .open = open_model,
                                                .weights = weights,
                                                .params = params,
                                                .free = free_model};
