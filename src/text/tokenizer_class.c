/* Finds the class of tokenizers in `transformers` that a folder belongs to. */
#include "text/tokenizer_file.h"

#include <stdio.h>
#include <string.h>

/* Classes by the type of the model, where no file names one */
static const struct {
    const char *model_type, *class;
} of_models[] = {{"bert", "BertTokenizer"},       {"distilbert", "BertTokenizer"},
                 {"mpnet", "MPNetTokenizer"},     {"xlm-roberta", "XLMRobertaTokenizer"},
                 {"roberta", "RobertaTokenizer"}, {"camembert", "CamembertTokenizer"}};

static const char *class_of_model(const char *type)
{
    for (size_t i = 0; type && i < sizeof of_models / sizeof of_models[0]; i++)
        if (!strcmp(of_models[i].model_type, type))
            return of_models[i].class;
    return "";
}

att_class_name att_tokenizer_class(att_settings *config, const char *folder)
{
    att_class_name name;
    att_settings model = {0};
    const char *class = att_settings_text(config, "tokenizer_class", "");
    if (!*class && !config->status) {
        att_settings_read(&model, config->ctx, folder, "config.json", false);
        class = json_string_value(att_settings_get(&model, "tokenizer_class"));
        class = class ? class : class_of_model(json_string_value(att_settings_get(&model, "model_type")));
        config->status = model.status;
    }
    const size_t n = strlen(class);
    const bool fast = n > 4 && !strcmp(class + n - 4, "Fast") && strcmp(class, "PreTrainedTokenizerFast") != 0;
    snprintf(name.text, sizeof name.text, "%.*s", (int)(fast ? n - 4 : n), class);
    att_settings_close(&model);
    return name;
}
